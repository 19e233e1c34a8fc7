"""The command `interlock`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from interlock import __version__
from interlock._commands import coordinator, doctor, lab, policies, tables, timeline
from interlock._commands.sessions import TABLE, complain, example


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="interlock",
        description="Conflict policies for Delta tables.",
        epilog=f"{example('conflicts')} (TABLE is {TABLE})",
    )
    parser.add_argument("--version", action="version", version=f"interlock {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for command in (tables, timeline, policies, lab, coordinator, doctor):
        command.add_to(commands)
    arguments = parser.parse_args(argv)
    try:
        status: int = arguments.run(arguments)
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "delta"):
            raise
        print(
            f"This command needs the Python package {error.name}, which is not installed: "
            "pip install 'spark-interlock[spark]'.",
            file=sys.stderr,
        )
        return 1
    except _told() as error:
        return complain(arguments.command, error)
    return status


def _told() -> tuple[type[Exception], ...]:
    """Return the errors of Spark, settings and storage; others are faults of this program."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError, OSError, ValueError
