"""Faults at the points of a commit: what was acknowledged stays, what was refused never comes.

Some pairs run in `make test`, all of them in `make soak`, which prints the table.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from integration.kill_cells import Fault, cell, cells
from integration.kill_lab import labs
from integration.kill_points import run, table
from integration.stores import ALL_STORES, FILE_SYSTEM, ON_HDFS, ON_S3, STORES
from tests.kit.spark_version import s3_without_database

NEWEST = STORES[-1]
ON_DISK_AND_S3 = (
    (FILE_SYSTEM.name, "K3", Fault.AFTER),
    (FILE_SYSTEM.name, "K2", Fault.DISK_FULL),
    (NEWEST, "K4", Fault.TERMINATE),
    (NEWEST, "K6", Fault.RESTART),
    (FILE_SYSTEM.name + ON_S3, "K7", Fault.KILL),
    (NEWEST + ON_S3, "K5", Fault.KILL),
)
ON_HDFS_ALONE = (
    (FILE_SYSTEM.name + ON_HDFS, "K6", Fault.BEFORE),
    (FILE_SYSTEM.name + ON_HDFS, "K7", Fault.KILL),
)


@pytest.mark.parametrize(
    ("store", "some"),
    [
        pytest.param(NEWEST + ON_S3, ON_DISK_AND_S3, marks=s3_without_database, id="disk and s3"),
        pytest.param(FILE_SYSTEM.name + ON_HDFS, ON_HDFS_ALONE, id="hdfs"),
    ],
)
def test_some_pairs(store: str, some: Sequence[tuple[str, str, Fault]], tmp_path: Path) -> None:
    said: dict[str, str] = {}
    with labs(store, tmp_path) as started:
        for name, point, fault in some:
            told = run(started[name], [cell(point, fault)])
            said |= {f"{name}: {which}": text for which, text in told.items()}
    assert len(said) == len(some)
    assert not {which: text for which, text in said.items() if text.startswith(("FAILED:", "n/a"))}


@pytest.mark.soak
@pytest.mark.parametrize("store", ALL_STORES)
def test_all_pairs(store: str, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"python -m integration.kill_points --store '{store}' --seed {seed}")
    wanted = cells()
    random.Random(seed).shuffle(wanted)
    with labs(store, tmp_path) as started:
        said = run(started[store], wanted)
    print(table(store, said))
    assert not {name: text for name, text in said.items() if text.startswith("FAILED:")}
