"""Faults at the points of a commit: what was acknowledged stays, what was refused never comes.

Some pairs run in `make test`, all of them in `make soak`, which prints the table.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from integration.kill_cells import Fault, cell, cells
from integration.kill_lab import labs
from integration.kill_points import run, table
from integration.stores import FILE_SYSTEM, ON_S3, STORES

NEWEST = STORES[-1]
SOME = (
    (FILE_SYSTEM.name, "K3", Fault.AFTER),
    (FILE_SYSTEM.name, "K2", Fault.DISK_FULL),
    (NEWEST, "K6", Fault.RESTART),
    (FILE_SYSTEM.name + ON_S3, "K7", Fault.KILL),
    (NEWEST + ON_S3, "K5", Fault.KILL),
)


def test_some_pairs(tmp_path: Path) -> None:
    said: dict[str, str] = {}
    with labs(NEWEST + ON_S3, tmp_path) as started:
        for name, point, fault in SOME:
            told = run(started[name], [cell(point, fault)])
            said |= {f"{name}: {which}": text for which, text in told.items()}
    assert len(said) == len(SOME)
    assert not {which: text for which, text in said.items() if text.startswith(("FAILED:", "n/a"))}


@pytest.mark.soak
@pytest.mark.parametrize("store", [*STORES, *(name + ON_S3 for name in STORES)])
def test_all_pairs(store: str, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"python -m integration.kill_points --store '{store}' --seed {seed}")
    wanted = cells()
    random.Random(seed).shuffle(wanted)
    with labs(store, tmp_path) as started:
        said = run(started[store], wanted)
    print(table(store, said))
    assert not {name: text for name, text in said.items() if text.startswith("FAILED:")}
