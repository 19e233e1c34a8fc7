"""Turns exceptions of the JVM into `interlock.errors`, on classic PySpark and on Spark Connect.

What PySpark makes of an exception decides first what the error is. Where the exception or one of
its causes is a conflict (or one of Interlock's usage errors), the result is that *and* our class,
so code which catches what it caught before goes on working.
"""

from __future__ import annotations

import sys


def install() -> None:
    """Convert the errors of the clients that this process uses; calling it again is no error."""
    from pyspark.util import is_remote_only

    if not is_remote_only():
        from interlock._conversion import classic, interrupts

        classic.install()
        interrupts.install()
    if "pyspark.sql.connect.client.core" in sys.modules:
        install_connect()


def install_connect() -> None:
    """Convert the errors of Spark Connect, before there is a session of it."""
    from interlock._conversion import connect

    connect.install()
