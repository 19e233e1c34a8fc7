"""Faults at the points of a commit: what was acknowledged stays, what was refused never comes.

Some pairs run in `make test`, all of them in `make soak`, which prints the table.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from integration.kill_cells import Fault, cell, cells
from integration.kill_lab import labs
from integration.kill_points import assert_all_hold, run, table
from integration.stores import ALL_STORES, FILE_SYSTEM, ON_S3, STORES
from tests.kit.spark_version import s3_without_database

NEWEST = STORES[-1]
SOME = (
    (FILE_SYSTEM.name, cell("K3", Fault.AFTER)),
    (FILE_SYSTEM.name, cell("K2", Fault.DISK_FULL)),
    (NEWEST, cell("K4", Fault.TERMINATE)),
    (NEWEST, cell("K6", Fault.RESTART)),
    (FILE_SYSTEM.name + ON_S3, cell("K7", Fault.KILL)),
    (NEWEST + ON_S3, cell("K5", Fault.KILL)),
)


@s3_without_database
def test_some_pairs(tmp_path: Path) -> None:
    """A few on the file system, in a database and on S3; tests/storage has those on HDFS."""
    assert_all_hold(NEWEST + ON_S3, SOME, tmp_path)


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
