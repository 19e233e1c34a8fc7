"""Random histories of overlapping jobs: verdicts and rows are those of the documents.

INTERLOCK_HISTORY_SEED=1234 pytest tests/policies/test_histories.py -k one_history  # that one again
INTERLOCK_HISTORIES=500 pytest -m soak tests/policies/test_histories.py             # new ones
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from pathlib import Path

import pytest
from interlock.lab.model import in_order
from pyspark.sql import SparkSession

from tests.kit.histories import templates
from tests.kit.histories.check import check
from tests.kit.histories.columns import plain
from tests.kit.histories.generate import History, history
from tests.kit.histories.oracle import Replay
from tests.kit.histories.report import shrunk, told
from tests.kit.histories.run import Runner
from tests.kit.histories.stock import observe_in_process
from tests.kit.histories.templates import Templates
from tests.kit.snapshots import check_next_snapshot, delete_table
from tests.kit.support import Table, deltalake_rows

# Some histories on each of six templates: both policies, all kinds of deletion vectors, with and
# without a change data feed. Those without partitions are the first ones.
QUICK = [templates.COUNT * n + index for index, count in ((1, 7), (32, 5)) for n in range(count)]
# The others are chosen so that each of these occurs in at least three: `s.p` in a REPLACE WHERE
# and in other predicates; names in capitals; sessions without ANSI mode, and statements about a
# partition whose value is none of its type; files that another writer adds and removes; a timestamp
# that two jobs spell differently; a compaction that passes a job which changed its files.
QUICK += [795, 2595, 5151, 7095, 8859]  # by a number, with a nested column
QUICK += [441, 729, 909, 2673, 3753]  # by a timestamp
QUICK += [15, 51, 87, 1239, 3867, 4803]  # by a number
QUICK += [994, 4234, 5026, 6178, 8410]  # by a timestamp, with a nested column
SEED = os.environ.get("INTERLOCK_HISTORY_SEED")
HISTORIES = int(os.environ.get("INTERLOCK_HISTORIES", "2000"))
PARTS = 10  # of a soak, each with as many histories
# Every fifth history compares snapshots after each commit, the others only in the end: to do so in
# all takes a fifth more time. Five has no factor in common with the number of templates, so in a
# soak each of them has such histories.
SNAPSHOTS_EVERY = 5
KEPT = 3  # in the quick run; a soak keeps every 25th table


class Laboratory:
    """Runs histories on tables of their own, of which it keeps some."""

    def __init__(self, spark: SparkSession, folder: Path, runner: Runner | None = None) -> None:
        self._spark = spark
        self._tables = Templates(spark, folder)
        self._runner = runner or Runner(spark)
        self.kept: list[tuple[Table, History, Replay]] = []

    def run(self, wanted: History, *, each_commit: bool) -> tuple[Table, Replay]:
        """Run a history and check what came of it, the snapshots after each commit if wanted."""
        table, start = self._tables.copy(wanted.template)

        def check_snapshot() -> None:
            if each_commit:
                check_next_snapshot(self._spark, table)

        ends = self._runner.run(wanted.jobs, table, check_snapshot)
        return table, check(self._spark, wanted, table, start, ends)

    def run_seed(self, seed: int, *, keep: bool = False) -> None:
        """Run a seed's history; a failure is told with the smallest history that fails."""
        wanted = history(seed)
        each_commit = seed % SNAPSHOTS_EVERY == 0
        try:
            table, replay = self.run(wanted, each_commit=each_commit)
        except AssertionError as error:
            smallest = shrunk(wanted, lambda smaller: self._fails(smaller, each_commit=each_commit))
            raise AssertionError(
                f"{error}\n\n{told(wanted)}\n\n-- The least that fails:\n{told(smallest)}"
            ) from error
        if keep:
            self.kept.append((table, wanted, replay))
        else:
            delete_table(self._spark, table)

    def _fails(self, smaller: History, *, each_commit: bool) -> bool:
        try:
            self.run(smaller, each_commit=each_commit)
        except AssertionError:
            return True
        return False


@pytest.fixture(scope="module")
def laboratory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(spark, tmp_path_factory.mktemp("histories"))


@pytest.mark.variant_cases(but=["795"])
@pytest.mark.parametrize("seed", QUICK)
def test_history(laboratory: Laboratory, seed: int) -> None:
    laboratory.run_seed(seed, keep=QUICK.index(seed) % (len(QUICK) // KEPT) == 0)


def check_in_stock_session(laboratory: Laboratory, folder: Path) -> None:
    for number, (table, _, _) in enumerate(laboratory.kept):
        shutil.copytree(table.path, folder / str(number))
    found = observe_in_process(folder, [min(replay.states) for _, _, replay in laboratory.kept])
    for number, (_, wanted, replay) in enumerate(laboratory.kept):
        states = {
            str(version): in_order(tuple(map(wanted.template.columns.of, rows)))
            for version, rows in replay.states.items()
        }
        lists = json.loads(json.dumps(states))
        restored, latest = found[number].restored, str(max(replay.states))
        assert found[number].read == lists, told(wanted)
        assert restored == {version: lists[version] for version in restored}, told(wanted)
        assert found[number].vacuumed == lists[latest], told(wanted)
        left = map(plain, deltalake_rows(Table(folder / str(number))))
        assert in_order(tuple(left)) == states[latest], told(wanted)


@pytest.mark.skipif(SEED is None, reason="INTERLOCK_HISTORY_SEED names none")
def test_one_history(laboratory: Laboratory) -> None:
    assert SEED is not None
    print(told(history(int(SEED))))
    laboratory.run_seed(int(SEED))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_many_histories(laboratory: Laboratory, tmp_path: Path, part: int) -> None:
    """Random histories with a new seed in each run."""
    laboratory.kept.clear()
    first = random.randrange(10**6)
    failed = []
    for seed in range(first, first + math.ceil(HISTORIES / PARTS)):
        try:
            laboratory.run_seed(seed, keep=seed % 25 == 0)
        except AssertionError as error:
            print(error)
            failed.append(seed)
    assert failed == []
    check_in_stock_session(laboratory, tmp_path)
