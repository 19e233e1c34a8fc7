"""The demo in a process of its own, and another reader's view of its tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from deltalake import DeltaTable, QueryBuilder
from interlock.demo.replay import Totals
from interlock.demo.warehouse import totals_from


def run_demo(*options: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m interlock.demo` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "interlock.demo", *options],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def jobs_of(output: str) -> dict[str, list[list[str]]]:
    """Return how each job ended in each run: the cells behind its name, by that name."""
    found: dict[str, list[list[str]]] = {}
    for line in output.splitlines():
        name, cells = line[:26].rstrip(), line[26:].split()
        if len(cells) >= 6 and cells[2] in ("ok", "LOST"):
            found.setdefault(name, []).append([*cells[:5], " ".join(cells[5:])])
    return found


def deltalake_totals(path: Path) -> Totals:
    """Return what `deltalake` counts in a table of the demo."""
    query = QueryBuilder().register("t", DeltaTable(str(path)))

    def rows(sql: str) -> list[tuple[int, ...]]:
        found = query.execute(sql).read_all()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    return totals_from(rows, "t")
