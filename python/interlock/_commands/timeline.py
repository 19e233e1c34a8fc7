"""`interlock timeline`: a table's jobs as a web page."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from interlock._commands.sessions import (
    add_conf,
    add_table,
    chosen_table,
    example,
    unlogged,
    user_session,
)


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "timeline",
        help="draw a table's jobs as a web page",
        description="Draws who committed, who lost and who passed whom, from the version that a "
        "job read to the one that it made. The page is one file and needs no network.",
        epilog=example("timeline"),
    )
    add_table(parser)
    parser.add_argument("--output", type=Path, default=Path("timeline.html"), metavar="FILE")
    parser.add_argument(
        "--limit", type=int, default=200, metavar="N", help="the newest N versions; 200 by default"
    )
    add_conf(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page, print its path and return 0."""
    with user_session(arguments.conf) as spark, unlogged():
        chosen = chosen_table(spark, arguments.table)
        print(chosen.timeline(path=arguments.output, limit=arguments.limit))
    return 0
