"""`interlock history` and `interlock versions`: what a table's log tells of it."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from interlock import tabular
from interlock.commands.sessions import add_conf, user_session
from interlock.lab.report import grid

_HELP = {
    "history": "show the versions of a table and what is known of each",
    "versions": "show the versions of a table and their times",
}
_COLUMNS = {
    "history": (
        "version", "time_version", "class", "policy", "operation", "rebased_over", "rule",
        "foreign", "rows_in", "rows_out", "files_added", "files_removed",
    ),
    "versions": ("version", "time_version", "timestamp", "operation"),
}  # fmt: skip


def add_to(commands: Any) -> None:
    """Declare both commands."""
    for name, text in _HELP.items():
        parser: argparse.ArgumentParser = commands.add_parser(
            name, help=text, description=f"{text.capitalize()}, newest first."
        )
        parser.add_argument("table", metavar="TABLE", help="a name, or the path of its folder")
        parser.add_argument("--limit", type=int, metavar="N", help="only the newest N")
        add_conf(parser)
        parser.add_argument("--json", action="store_true", help="print JSON, with all columns")
        parser.set_defaults(run=run, command=name)


def run(arguments: argparse.Namespace) -> int:
    """Print the versions and return 0, or 1 if there is no such table."""
    from pyspark.errors import PySparkException

    try:
        found = _found(arguments)
    except (ValueError, PySparkException) as error:
        text = str(error).partition("\n\nJVM stacktrace:")[0]
        print(f"interlock {arguments.command}: {text}", file=sys.stderr)
        return 1
    if arguments.json:
        print(tabular.as_json(found))
    else:
        titles = _COLUMNS[arguments.command]
        rows = [[tabular.text(row[title]) for title in titles] for row in found]
        print("\n".join(grid([list(titles), *rows])))
    return 0


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep PySpark from logging the errors that it raises."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        yield
    finally:
        logging.disable(before)


def _found(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    from interlock.tables import table

    with user_session(arguments.conf) as spark, _unlogged():
        chosen = table(spark, arguments.table)
        read = chosen.history if arguments.command == "history" else chosen.versions
        return read(limit=arguments.limit).to_dicts()
