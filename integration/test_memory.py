"""A driver with many tables: its memory does not grow with its commits.

What the queues keep of commits is bounded by a budget of the process, and not part of this.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.stores import FILE_SYSTEM
from integration.writers import Writer, acknowledged, answers, commit_files, make_files, order
from tests.kit.driver_process import driver_processes
from tests.kit.support import Table

TABLES, COMMITS = 1_000, 20
CHECKPOINTS = 10
"""Delta's interval of versions: memory is compared where each table has just had a checkpoint."""


@pytest.mark.soak
def test_commits_to_many_tables(tmp_path: Path) -> None:
    with driver_processes(tmp_path, FILE_SYSTEM.kind) as [driver]:
        first = Table(tmp_path / "0")
        assert driver.run(FILE_SYSTEM.create(first)).error is None
        make_files(first, range(COMMITS))
        tables = [first, *(Table(tmp_path / str(n)) for n in range(1, TABLES))]
        for table in tables[1:]:
            shutil.copytree(first.path, table.path)
        rounds = []
        for identifier in range(COMMITS):
            told = tmp_path / f"told-{identifier}"
            folders = f"{str(tmp_path)!r}, {TABLES}, {identifier}, {str(told)!r}"
            order(driver, f"from integration.test_memory import commit; commit(spark, {folders})")
            rounds.append(json.loads(told.read_text(encoding="utf-8")))
            print(rounds[-1])
    heap = [used["heap"] - used["commits"] for used in rounds]
    assert heap[2 * CHECKPOINTS - 1] <= 1.1 * heap[CHECKPOINTS - 1], rounds


def commit(spark: SparkSession, folder: str, tables: int, identifier: int, told: str) -> None:
    """Commit a file to each table, and write down the memory that is used, in MB."""
    for table in range(tables):
        lines = str(Path(folder) / "lines")
        writer = Writer(str(Path(folder) / str(table)), identifier, 1, "commit", lines)
        commit_files(spark, writer)
        assert acknowledged(answers([writer])) == [identifier]
    jvm: Any = spark._jvm
    jvm.System.gc()
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    characters = jvm.io.interlock.coordinator.CommitQueue.charactersKept()
    used = {"heap": heap.getUsed() / 1e6, "commits": characters / 1e6}
    Path(told).write_text(json.dumps(used), encoding="utf-8")
