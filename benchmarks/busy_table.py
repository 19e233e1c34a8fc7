"""A day of a busy table on stock Delta, with its users' retry loop, and under `row_level`.

    python -m benchmarks.busy_table [--hours 24] [--clustered] [--parquet 2.12.0]
        [--results results.json]

`benchmarks.busy_figure` draws the results.

One side after the other, each in a process of its own, runs the statements of `busy_table`, and
both must end with the same rows. Fails if under `row_level` an UPDATE or a DELETE was aborted: none
of them touches another's rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.rebase import print_table
from integration.busy_table import Day
from tests.kit.tree import ROOT

SIDES = ("stock", "row_level")


def run(side: str, folder: Path, hours: int, *, clustered: bool, parquet: str) -> Day:
    """Run one side in a process of its own."""
    command = [sys.executable, "-m", "integration.busy_table", side, str(folder)]
    done = subprocess.run(
        [*command, "--hours", str(hours), "--parquet", parquet, *["--clustered"] * clustered],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Day(**json.loads(done.stdout.splitlines()[-1]))


def machine() -> str:
    """Describe the machine of the figures."""
    cores = os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cores} cores, {memory:.0f} GiB, local disk, {platform.system()}"


def measures(day: Day) -> dict[str, float]:
    """Return what the two sides are compared by."""
    rerun = sum(day.aborted.values()) - sum(day.given_up.values())
    return {
        "aborted attempts": sum(day.aborted.values()),
        "of UPDATE and DELETE": day.aborted.get("UPDATE", 0) + day.aborted.get("DELETE", 0),
        "of MERGE": day.aborted.get("MERGE", 0),
        "jobs run again": rerun,
        "jobs given up": sum(day.given_up.values()),
        "MB written": day.written_bytes / 1e6,
        "wall time, s": day.wall_seconds,
    }


def report(days: list[Day]) -> None:
    """Print both sides, and why attempts under the policy lost."""
    stock, interlock = (measures(day) for day in days)
    lines = [["", *SIDES]]
    lines += [[name, f"{stock[name]:,.0f}", f"{interlock[name]:,.0f}"] for name in stock]
    print_table(lines)
    statements = days[1].statements
    print("statements: " + ", ".join(f"{count} {kind}" for kind, count in statements.items()))
    print(f"wall time: {stock['wall time, s'] / interlock['wall time, s']:.2f} times less")
    for (kind, why), count in Counter(map(tuple, days[1].reasons)).most_common():
        print(f"{count} x {kind}: {why}")


def main() -> None:
    """Run both sides, print them and check what must be."""
    parser = argparse.ArgumentParser(description="A busy table: stock Delta against row_level.")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--clustered", action="store_true", help="a table that is clustered")
    parser.add_argument("--parquet", default="1.0.0", help="version of the files")
    parser.add_argument("--results", type=Path, help="also write the measures, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        given = {name: value for name, value in vars(arguments).items() if name != "results"}
        days = [run(side, Path(folder), **given) for side in SIDES]
    report(days)
    if arguments.results:
        sides = dict(zip(SIDES, map(measures, days), strict=True))
        results = {**given, "machine": machine(), "sides": sides}
        arguments.results.write_text(json.dumps(results, indent=2), encoding="utf-8")
    assert days[0].given_up or days[0].rows == days[1].rows, "the sides end with other rows"
    lost = {kind: count for kind, count in days[1].aborted.items() if kind != "MERGE"}
    assert not lost, f"aborted under row_level, though no two touch one row: {lost}"


if __name__ == "__main__":
    main()
