"""`interlock history`, `versions`, `conflicts`, `explain`: a table's versions and conflicts."""

from __future__ import annotations

import argparse
from typing import Any

from interlock import tabular
from interlock.commands.sessions import add_conf, complain, unlogged, user_session
from interlock.lab.report import grid

_HELP = {
    "history": "show the versions of a table and what is known of each",
    "versions": "show the versions of a table and their times",
    "conflicts": "show the commits of a table that were rejected, or passed others",
}
_COLUMNS = {
    "history": (
        "version", "time_version", "class", "policy", "operation", "winners", "rules",
        "foreign", "rows_in", "rows_out", "files_added", "files_removed",
    ),
    "versions": ("version", "time_version", "timestamp", "operation"),
    "conflicts": (
        "time", "outcome", "txn_id", "operation", "class", "read_version",
        "version", "winners", "rules", "verdicts", "winner_operation",
    ),
}  # fmt: skip


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
    if arguments.json:
        print(tabular.as_json(found))
    elif arguments.command == "explain":
        print(found[0]["text"])
    else:
        titles = _COLUMNS[arguments.command]
        rows = [[tabular.text(row[title]) for title in titles] for row in found]
        print("\n".join(grid([list(titles), *rows])))
    return 0


def _found(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    from interlock.tables import table

    with user_session(arguments.conf) as spark, unlogged():
        chosen = table(spark, arguments.table)
        limit: int | None = getattr(arguments, "limit", None)
        match arguments.command:
            case "explain":
                return chosen.explain(arguments.txn_id).to_dicts()
            case "conflicts":
                return chosen.conflicts(limit=limit).to_dicts()
            case "versions":
                return chosen.versions(limit=limit).to_dicts()
            case _:
                return chosen.history(limit=limit).to_dicts()
