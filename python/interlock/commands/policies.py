"""`interlock policies`: the matrices that tables can live by, as the jar holds them."""

from __future__ import annotations

import argparse
import json
from typing import Any

from interlock.commands.sessions import small_session
from interlock.lab.report import grid


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "policies",
        help="print the conflict policies",
        description="Prints each policy's matrix: rows earlier, columns later.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the policies and return 0."""
    with small_session() as (spark, _):
        jvm: Any = spark._jvm
        text: str = jvm.io.interlock.spark.Inspect.policiesJson()
    policies: list[dict[str, Any]] = json.loads(text)
    if arguments.json:
        print(json.dumps(policies, indent=2))
    else:
        print("\n\n".join(map(_policy_text, policies)))
    return 0


def _policy_text(policy: dict[str, Any]) -> str:
    verdicts = {
        (cell["earlier"], cell["later"]): f"{cell['id']} {cell['verdict']}".strip()
        for cell in policy["cells"]
    }
    classes: list[str] = policy["classes"]
    rows = [[earlier, *(verdicts[earlier, later] for later in classes)] for earlier in classes]
    title = f"{policy['name']} (OPTIMIZE is {policy['compaction']}; {policy['source']})"
    return "\n".join([title, "", *grid([["earlier \\ later", *classes], *rows])])
