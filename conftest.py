"""What all tests share: which are variants, how their JVMs start, and that interrupts arrive."""

from __future__ import annotations

import os
import signal

import pytest

from tests.kit import variants
from tests.kit.tree import ROOT

# Written by tools/first_session.py. A JVM that cannot use it starts without.
_CLASSES = ROOT / ".build" / "classes.jsa"
_QUIET = "-Xlog:disable -Xlog:all=warning:stderr"  # stdout is for what a process answers

if _CLASSES.exists():
    os.environ.setdefault("JDK_JAVA_OPTIONS", f'"-XX:SharedArchiveFile={_CLASSES}" {_QUIET}')

# What a shell starts in the background ignores interrupts, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the variants, before pytest takes the tests that are asked for."""
    variants.mark(config, items)
