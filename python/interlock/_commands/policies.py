"""`interlock policies`: the policies that a session of the user knows, with their matrices."""

from __future__ import annotations

import argparse
import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from interlock._commands.sessions import add_conf, unlogged, user_session
from interlock._tabular import grid

if TYPE_CHECKING:
    from pyspark.sql import Row


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "policies",
        help="print the conflict policies",
        description="Prints each policy's matrix: rows earlier, columns later. Policies of your "
        "own: --conf spark.interlock.policies.NAME=PATH.",
    )
    add_conf(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the policies and return 0."""
    with user_session(arguments.conf) as spark, unlogged():
        cells = spark.sql("CALL interlock.policies()").collect()
    policies = [_policy(list(own)) for _, own in groupby(cells, lambda cell: cell["policy"])]
    if arguments.json:
        print(json.dumps(policies, indent=2))
    else:
        print("\n\n".join(map(_policy_text, policies)))
    return 0


def _policy(cells: list[Row]) -> dict[str, Any]:
    head = cells[0]
    return {
        "name": head["policy"],
        "source": head["source"],
        "classes": list(dict.fromkeys(cell["earlier"] for cell in cells)),
        "compaction": head["compaction"],
        "isolation": head["isolation"],
        "digest": head["digest"],
        "cells": [
            {key: cell[key] for key in ("rule", "earlier", "later", "verdict")} for cell in cells
        ],
    }


def _policy_text(policy: dict[str, Any]) -> str:
    verdicts = {(cell["earlier"], cell["later"]): _cell_text(cell) for cell in policy["cells"]}
    classes: list[str] = policy["classes"]
    rows = [[earlier, *(verdicts[earlier, later] for later in classes)] for earlier in classes]
    title = (
        f"{policy['name']} (OPTIMIZE is {policy['compaction']}; {policy['source']}; "
        f"digest {policy['digest']})"
    )
    return "\n".join([title, "", *grid([["earlier \\ later", *classes], *rows])])


def _cell_text(cell: dict[str, str]) -> str:
    """Write the rule's number, if it has one, and the verdict."""
    numbered = "->" not in cell["rule"]
    return f"{cell['rule']} {cell['verdict']}" if numbered else cell["verdict"]
