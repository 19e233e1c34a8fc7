"""Random histories of overlapping jobs: verdicts and rows are those of the documents.

INTERLOCK_HISTORY_SEED=1234 pytest tests/test_histories.py -k one_history  # that one again
INTERLOCK_HISTORIES=500 pytest -m soak tests/test_histories.py               # that many new ones
"""

from __future__ import annotations

import os
import random

import pytest
from pyspark.sql import SparkSession

from tests.histories import templates
from tests.histories.check import check
from tests.histories.generate import History, history
from tests.histories.oracle import Replay
from tests.histories.report import shrunk, told
from tests.histories.run import Runner
from tests.histories.templates import Templates
from tests.support import Table

# Four histories on each of nine templates: both policies, all kinds of deletion vectors, both
# shapes, with and without a change data feed.
QUICK = [templates.COUNT * n + index for index in (0, 1, 2, 3, 9, 11, 15, 22, 31) for n in range(4)]
SEED = os.environ.get("INTERLOCK_HISTORY_SEED")
HISTORIES = int(os.environ.get("INTERLOCK_HISTORIES", "2000"))


class Laboratory:
    """Runs histories on tables of their own."""

    def __init__(self, spark: SparkSession, tables: Templates) -> None:
        self._spark = spark
        self._tables = tables
        self._runner = Runner(spark)

    def run(self, wanted: History) -> tuple[Table, Replay]:
        """Run a history and check what came of it."""
        table, start = self._tables.copy(wanted.template)
        ends = self._runner.run(wanted, table)
        return table, check(self._spark, wanted, table, start, ends)

    def run_seed(self, seed: int) -> tuple[Table, Replay]:
        """Run a seed's history; a failure is told with the smallest history that fails."""
        wanted = history(seed)
        try:
            return self.run(wanted)
        except AssertionError as error:
            smallest = shrunk(wanted, self._fails)
            raise AssertionError(
                f"{error}\n\n{told(wanted)}\n\n-- The least that fails:\n{told(smallest)}"
            ) from error

    def _fails(self, smaller: History) -> bool:
        try:
            self.run(smaller)
        except AssertionError:
            return True
        return False


@pytest.fixture(scope="module")
def laboratory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(spark, Templates(spark, tmp_path_factory.mktemp("histories")))


@pytest.mark.parametrize("seed", QUICK)
def test_history(laboratory: Laboratory, seed: int) -> None:
    laboratory.run_seed(seed)


@pytest.mark.skipif(SEED is None, reason="INTERLOCK_HISTORY_SEED names none")
def test_one_history(laboratory: Laboratory) -> None:
    assert SEED is not None
    print(told(history(int(SEED))))
    laboratory.run_seed(int(SEED))


@pytest.mark.soak
def test_many_histories(laboratory: Laboratory) -> None:
    first = random.randrange(10**6)
    failures = []
    for seed in range(first, first + HISTORIES):
        try:
            laboratory.run_seed(seed)
        except AssertionError as error:
            failures.append(str(error))
            print(error)
    assert not failures
