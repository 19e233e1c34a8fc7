"""`interlock history`, `versions`, `conflicts`, `explain`: a table's versions and conflicts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from interlock import _tabular
from interlock._commands.sessions import add_conf, complain, unlogged, user_session

if TYPE_CHECKING:
    from interlock.results import Shown

_HELP = {
    "history": "show the versions of a table and what is known of each",
    "versions": "show the versions of a table and their times",
    "conflicts": "show the commits of a table that were rejected, or passed others",
}


def add_to(commands: Any) -> None:
    """Declare the commands."""
    for name, text in _HELP.items():
        parser = _parser(commands, name, text, f"{text.capitalize()}, newest first.")
        parser.add_argument("--limit", type=int, metavar="N", help="only the newest N")
    text = "explain why a commit was rejected, or how it passed others"
    parser = _parser(commands, "explain", text, f"{text.capitalize()}.")
    parser.add_argument("txn_id", metavar="TXN_ID", help="the id of its transaction")


def _parser(commands: Any, name: str, text: str, description: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=description)
    parser.add_argument("table", metavar="TABLE", help="a name, or the path of its folder")
    add_conf(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, with all columns")
    parser.set_defaults(run=run, command=name)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for and return 0, or 1 if there is no such table or transaction."""
    from pyspark.errors import PySparkException

    try:
        found = _found(arguments)
    except (ValueError, PySparkException) as error:
        return complain(arguments.command, error)
    print(_tabular.as_json(found.to_dicts()) if arguments.json else found)
    return 0


def _found(arguments: argparse.Namespace) -> Shown:
    from interlock._tables import table

    with user_session(arguments.conf) as spark, unlogged():
        chosen = table(spark, arguments.table)
        limit: int | None = getattr(arguments, "limit", None)
        match arguments.command:
            case "explain":
                return chosen.explain(arguments.txn_id)
            case "conflicts":
                return chosen.conflicts(limit=limit)
            case "versions":
                return chosen.versions(limit=limit)
            case _:
                return chosen.history(limit=limit)
