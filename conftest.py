"""What all tests share: who runs which, how their JVMs start, and that interrupts arrive."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadfile import LoadFileScheduling

from tests.kit import soak, variants

# Written by tools/first_session.py. A JVM that cannot use it starts without.
_CLASSES = Path(sys.prefix, "classes.jsa")
_QUIET = "-Xlog:disable -Xlog:all=warning:stderr"  # stdout is for what a process answers

if _CLASSES.exists():
    os.environ.setdefault("JDK_JAVA_OPTIONS", f'"-XX:SharedArchiveFile={_CLASSES}" {_QUIET}')

# What a shell starts in the background ignores interrupts, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make soak`."""
    parser.addoption(
        "--soak-record",
        type=Path,
        metavar="FOLDER",
        help="leave out the tests that have passed on this code, and note there those that do",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Follow the option."""
    folder: Path | None = config.getoption("soak_record")
    if folder is not None:
        soak.use(config, folder)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the variants, before pytest takes the tests that are asked for."""
    variants.mark(items, all_cases=not any("::" in asked for asked in config.args))


class _BySharedProcess(LoadFileScheduling):
    """Gives each file to one worker, and to the same one all files that share a process."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        shared = (name for name, files in _SHARED.items() if file.startswith(files))
        return next(shared, file)


# Processes that live to the end of the run, and the files whose tests use them.
_SHARED = {
    "the server of tests/api/conftest.py": ("tests/api/",),
    "the stock session of tests/conftest.py": (
        "tests/policies/test_foreign_writers.py",
        "tests/tables/test_exclusive.py",
        "tests/tables/test_remove_policy.py",
        "tests/tables/test_stock_behaviour.py",
    ),
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling:
    """Say who runs which test, where there are several workers."""
    return _BySharedProcess(config, log)
