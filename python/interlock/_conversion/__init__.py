"""Turns exceptions of the JVM into `interlock.errors`, on classic PySpark and on Spark Connect.

PySpark first makes its own error of an exception. If the exception or one of its causes is a
conflict (or one of Interlock's usage errors), the result belongs to PySpark's class *and* to
Interlock's, so that existing `except` clauses still work.
"""

from __future__ import annotations

import sys


def install() -> None:
    """Convert the errors of the clients that this process uses; it may be called again."""
    from pyspark.util import is_remote_only

    if not is_remote_only():
        from interlock._conversion import classic, interrupts

        classic.install()
        interrupts.install()
    if "pyspark.sql.connect.client.core" in sys.modules:
        install_connect()


def install_connect() -> None:
    """Convert the errors of Spark Connect, before a Connect session is started."""
    from interlock._conversion import connect

    connect.install()
