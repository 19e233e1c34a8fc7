"""The demo in a process of its own, and another reader's view of its tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable, QueryBuilder
from interlock.demo.replay import Totals
from interlock.demo.warehouse import totals_from

from tests.kit.tree import ROOT

PATIENCE_SECONDS = 600


@contextmanager
def demo(*options: str, module: str = "interlock.demo") -> Iterator[subprocess.Popen[str]]:
    """Start `python -m interlock.demo` as the first process of a group, and end it at last."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *options],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def run_demo(*options: str, module: str = "interlock.demo") -> subprocess.CompletedProcess[str]:
    """Run `python -m interlock.demo` to its end, or another module that takes its options."""
    with demo(*options, module=module) as running:
        said, errors = running.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(running.args, running.returncode, said, errors)


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
