"""A day of a busy table on stock Delta, with its users' retry loop, and under `row_level`.

    python -m benchmarks.busy_table [--hours 24] [--figure docs/busy-table.svg]

One side after the other, each in a process of its own, runs the statements of `busy_table`, and
both must end with the same rows. Fails if under `row_level` an UPDATE or a DELETE was aborted: none
of them touches another's rows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.rebase import print_table
from integration.busy_table import Day
from tests.kit.tree import ROOT

SIDES = ("stock", "row_level")
BAR, LABELS, LINE = 360, 220, 22


def run(side: str, folder: Path, hours: int) -> Day:
    """Run one side in a process of its own."""
    command = [sys.executable, "-m", "integration.busy_table", side, str(folder)]
    done = subprocess.run(
        [*command, "--hours", str(hours)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Day(**json.loads(done.stdout.splitlines()[-1]))


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


def figure(days: list[Day], hours: int) -> str:
    """Draw the measures as bars, as an SVG image."""
    both = [measures(day) for day in days]
    shown = ("aborted attempts", "of UPDATE and DELETE", "of MERGE", "MB written", "wall time, s")
    body, y = [], 40
    for name in shown:
        longest = max(max(side[name] for side in both), 1)
        body.append(f'<text x="{LABELS - 10}" y="{y + 19}" text-anchor="end">{name}</text>')
        for side, colour in zip(both, ("#9aa0a6", "#1a73e8"), strict=True):
            width = side[name] / longest * BAR
            value = f"{side[name]:,.0f}"
            body.append(
                f'<rect x="{LABELS}" y="{y}" width="{width:.0f}" height="12" fill="{colour}"/>'
            )
            body.append(f'<text x="{LABELS + width + 6:.0f}" y="{y + 10}">{value}</text>')
            y += 14
        y += LINE - 10
    title = f"{hours} hours of a busy table: stock Delta with a retry loop (grey), row_level (blue)"
    size = f'width="{LABELS + BAR + 80}" height="{y}"'
    font = 'font-family="sans-serif" font-size="12"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="10" y="22" font-size="14">{title}</text>',
            *body,
            "</svg>\n",
        ]
    )


def main() -> None:
    """Run both sides, print them and check what must be."""
    parser = argparse.ArgumentParser(description="A busy table: stock Delta against row_level.")
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--figure", type=Path, help="also draw it, as SVG")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        days = [run(side, Path(folder), arguments.hours) for side in SIDES]
    report(days)
    if arguments.figure:
        arguments.figure.write_text(figure(days, arguments.hours), encoding="utf-8")
    assert days[0].given_up or days[0].rows == days[1].rows, "the sides end with other rows"
    lost = {kind: count for kind, count in days[1].aborted.items() if kind != "MERGE"}
    assert not lost, f"aborted under row_level, though no two touch one row: {lost}"


if __name__ == "__main__":
    main()
