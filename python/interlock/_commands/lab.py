"""`interlock lab`: the documents' matrices, run live."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from interlock._artifacts import DELTA_VERSION, __version__
from interlock._commands.sessions import small_session


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "lab",
        help="run the documents' conflict matrices on real Spark and Delta",
        description="Runs two concurrent jobs per cell of the documents' matrices and compares "
        "what is seen with what must be. Exit status 1 if any cell is wrong.",
    )
    parser.add_argument("--policy", action="append", metavar="NAME", help="only this one")
    parser.add_argument(
        "--cell", nargs="+", default=[], metavar="ID", type=str.upper, help="only these, as D7"
    )
    parser.add_argument("--stock", action="store_true", help="on tables without a policy")
    parser.add_argument("--deletion-vectors", choices=("on", "off"), default="on")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a web page")
    parser.set_defaults(run=lambda arguments: run(parser, arguments))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Run the chosen cells, print them, and return 1 if any is wrong."""
    from interlock import lab
    from interlock.lab import html, report

    policies = _policies(parser, arguments.policy or lab.DEFAULT_POLICIES, arguments.cell)
    reports = []
    with small_session() as (spark, folder):
        versions = f"Interlock {__version__}, Spark {spark.version}, Delta {DELTA_VERSION}"
        for matrix in lab.run(
            spark,
            folder,
            policies=policies,
            cells=arguments.cell,
            rules="stock" if arguments.stock else "policy",
            deletion_vectors=arguments.deletion_vectors,
            on_result=_show_progress,
        ):
            reports.append(matrix)
            if not arguments.json:
                print(f"\n{report.as_text(matrix)}", flush=True)
    if arguments.json:
        matrices = [report.as_json(matrix) for matrix in reports]
        print(json.dumps({"versions": versions, "matrices": matrices}, indent=2))
    if arguments.html:
        arguments.html.write_text(html.as_html(reports, versions), encoding="utf-8")
    return 1 if any(matrix.count(report.Mark.WRONG) for matrix in reports) else 0


def _policies(
    parser: argparse.ArgumentParser, policies: Sequence[str], cells: Iterable[str]
) -> list[str]:
    """Return the policies whose matrix has any of the cells; an unknown name ends the command."""
    from interlock.lab.documents import MATRICES

    for policy in policies:
        if policy not in MATRICES:
            parser.error(f"no matrix of {policy}, only of {', '.join(sorted(MATRICES))}")
    known = {policy: {cell.id for cell in MATRICES[policy].cells} for policy in policies}
    for cell in cells:
        if not any(cell in ids for ids in known.values()):
            parser.error(f"no cell {cell} in the matrix of {', '.join(policies)}")
    return [policy for policy, ids in known.items() if not cells or ids.intersection(cells)]


def _show_progress(result: Any) -> None:
    mark = "ok" if result.ok else "WRONG"
    print(f"{result.case.id} {mark} ({result.seconds:.1f} s)", file=sys.stderr, flush=True)
