"""`interlock history`, `versions`, `conflicts`, `explain`: a table's versions and conflicts."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from interlock import _tabular
from interlock._commands.sessions import (
    add_conf,
    add_table,
    chosen_table,
    example,
    unlogged,
    user_session,
)

if TYPE_CHECKING:
    from interlock.results import Shown

_HELP = {
    "history": "show the versions of a table and what is known of each",
    "versions": "show the versions of a table and their times",
    "conflicts": "show the commits of a table that were rejected, or passed others",
}

_NO_POLICY = "The table has no policy, and conflicts are recorded only under one."


def add_to(commands: Any) -> None:
    """Declare the commands."""
    for name, text in _HELP.items():
        parser = _parser(commands, name, text, f"{text.capitalize()}, newest first.", example(name))
        parser.add_argument("--limit", type=int, metavar="N", help="only the newest N")
    text = "explain why a commit was rejected, or how it passed others"
    shown = example("explain", "TXN_ID")
    parser = _parser(commands, "explain", text, f"{text.capitalize()}.", shown)
    parser.add_argument(
        "txn_id",
        metavar="TXN_ID",
        help="the id of its transaction, as interlock conflicts prints it",
    )


def _parser(
    commands: Any, name: str, text: str, description: str, epilog: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=description, epilog=epilog
    )
    add_table(parser)
    add_conf(parser)
    parser.add_argument("--json", action="store_true", help="print JSON, with all columns")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for and return 0."""
    found = _found(arguments)
    if arguments.json:
        print(_tabular.as_json(found.to_dicts()))
    else:
        print(_wrapped(str(found)) if arguments.command == "explain" else found)
    return 0


def _wrapped(text: str) -> str:
    """Break the lines of a text where the terminal does, if standard output is one."""
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(map(wrapper.fill, text.splitlines()))


def _found(arguments: argparse.Namespace) -> Shown:
    with user_session(arguments.conf) as spark, unlogged():
        chosen = chosen_table(spark, arguments.table)
        limit: int | None = getattr(arguments, "limit", None)
        match arguments.command:
            case "explain":
                return chosen.explain(arguments.txn_id)
            case "conflicts":
                records = chosen.conflicts(limit=limit)
                if not records and chosen.policy is None:
                    print(_NO_POLICY, file=sys.stderr)
                return records
            case "versions":
                return chosen.versions(limit=limit)
            case _:
                return chosen.history(limit=limit)
