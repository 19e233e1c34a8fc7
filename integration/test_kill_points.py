"""Faults at the points of a commit: what was acknowledged stays, what was refused never comes.

Eight pairs run in `make test`, all of them in `make soak`, which prints the table.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from integration.kill_cells import Fault, cell, cells
from integration.kill_points import run, started, table
from integration.stores import FILE_SYSTEM, STORES

SHORT = {
    FILE_SYSTEM.name: [
        ("K3", Fault.AFTER),
        ("K6", Fault.BEFORE),
        ("K8", Fault.AFTER),
        ("K2", Fault.PAUSE),
    ],
    "postgres 18": [
        ("K4", Fault.TERMINATE),
        ("K5", Fault.CUT),
        ("K6", Fault.RESTART),
        ("K7", Fault.KILL),
    ],
}


@pytest.mark.parametrize("store", SHORT)
def test_eight_pairs(store: str, tmp_path: Path) -> None:
    with started(store, tmp_path) as lab:
        said = run(lab, [cell(name, fault) for name, fault in SHORT[store]], tmp_path)
    assert not [text for text in said.items() if "FAILED" in text[1]]
    assert not [text for text in said.values() if text.startswith("n/a")]


@pytest.mark.soak
@pytest.mark.parametrize("store", STORES)
def test_all_pairs(store: str, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"python -m integration.kill_points --store '{store}' --seed {seed}")
    wanted = cells()
    random.Random(seed).shuffle(wanted)
    with started(store, tmp_path) as lab:
        said = run(lab, wanted, tmp_path)
    print(table(store, said))
    assert not {name: text for name, text in said.items() if "FAILED" in text}
