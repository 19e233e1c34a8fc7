"""Jobs that have lost before they write: each is held when its transaction has begun.

INTERLOCK_HISTORIES=500 pytest -m soak tests/conflicts/test_early_verdicts.py  # so many new ones
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import interlock
import pytest
from interlock.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteReadError,
    ConflictError,
    InterlockError,
    MetadataChangedError,
    UsageError,
)
from interlock.lab.model import Rows
from pyspark.sql import SparkSession

from tests.kit.foreign import added, commit_by_hand, compact_without_ids, remove
from tests.kit.gates import StartGate, end_behind
from tests.kit.histories.run import Runner
from tests.kit.isolation.generate import History, history
from tests.kit.one_file import register_is_even
from tests.kit.snapshots import delete_table
from tests.kit.support import (
    Table,
    confs,
    deltalake_rows,
    latest_version,
    log_of,
    make_table,
    rows,
    unknown_files,
)

HISTORIES = int(os.environ.get("INTERLOCK_HISTORIES", "200"))
BEFORE_WRITING = "before writing"
READ = 2

X1, X3 = (f"UPDATE {{t}} SET v = 'X' WHERE id = {i}" for i in (1, 3))
INSERT = "INSERT INTO {t} VALUES (4, 'd')"
UPDATE = "UPDATE {t} SET v = 'Y' WHERE id IN (1, 4)"
DELETE = "DELETE FROM {t} WHERE id IN (1, 4)"
MERGE = (
    "MERGE INTO {t} t USING (SELECT explode(array(1, 4)) AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'Y' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')"
)
ONLY_INSERTS = MERGE.replace("WHEN MATCHED THEN UPDATE SET v = 'Y' ", "")
APPEND, REMOVED = ConcurrentAppendError, ConcurrentDeleteReadError
START, WITH_4 = ((1, "a"), (2, "b"), (3, "c")), ((1, "a"), (2, "b"), (3, "c"), (4, "d"))
WITH_X1 = ((1, "X"), (2, "b"), (3, "c"))


def table_of(spark: SparkSession, path: Path, policy: str, *, vectors: bool = False) -> Table:
    """Make {1a, 2b} in one file and {3c} in another, at version 2."""
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    return make_table(spark, path, policy=policy, properties=properties)


def lost(
    spark: SparkSession, table: Table, job: str, *winners: str | Callable[[], object]
) -> Exception | None:
    """Run the winners when a job has begun, and let it go on; return its error."""

    def win() -> None:
        for winner in winners:
            spark.sql(winner.format(t=table)) if isinstance(winner, str) else winner()

    error = end_behind(spark, lambda: spark.sql(job.format(t=table)), win)
    assert error is None or isinstance(error, Exception)
    return error


class Case(NamedTuple):
    """A job that has lost before it writes.

    Attributes:
        later: the job
        winner: what has committed since it began
        error: the class of its error
        rows: those of the table in the end

    """

    policy: str
    later: str
    winner: str
    error: type[ConflictError]
    rows: Rows
    vectors: bool = False

    def __str__(self) -> str:
        inserts = " of new rows" if self.later == ONLY_INSERTS else ""
        vectors = ", vectors" if self.vectors else ""
        later, winner = (statement.split()[0] for statement in (self.later, self.winner))
        return f"{self.policy}, {later}{inserts} after {winner}{vectors}"


MAXCOMPUTE = ("maxcompute_delta", "maxcompute_transactional")
CASES = [
    *(Case(policy, job, INSERT, APPEND, WITH_4)
      for policy in MAXCOMPUTE for job in (UPDATE, DELETE, MERGE, ONLY_INSERTS)),
    *(Case("maxcompute_delta", job, INSERT, APPEND, WITH_4, vectors=True)
      for job in (UPDATE, DELETE, MERGE)),
    *(Case("write_serializable", job, X1, APPEND, WITH_X1) for job in (UPDATE, DELETE, MERGE)),
    Case("write_serializable", UPDATE, "DELETE FROM {t} WHERE id = 1", REMOVED, START[1:]),
    Case("serializable", UPDATE, INSERT, APPEND, WITH_4),
    Case("row_level", MERGE, X1, APPEND, WITH_X1, vectors=True),
    Case("row_level", MERGE, "DELETE FROM {t} WHERE id = 1", REMOVED, START[1:], vectors=True),
    Case("row_serializable", MERGE, INSERT, APPEND, WITH_4, vectors=True),
]  # fmt: skip


@pytest.mark.variant_cases(
    but=[
        "maxcompute_delta, UPDATE after INSERT",
        "maxcompute_transactional, MERGE of new rows after INSERT",
        "maxcompute_delta, DELETE after INSERT, vectors",
        "write_serializable, DELETE after UPDATE",
        "serializable, UPDATE after INSERT",
        "row_level, MERGE after DELETE, vectors",
    ]
)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_job_that_has_lost_does_not_write(
    spark: SparkSession, table_path: Path, case: Case
) -> None:
    table = table_of(spark, table_path, case.policy, vectors=case.vectors)
    error = lost(spark, table, case.later, case.winner)
    assert isinstance(error, ConflictError)
    assert isinstance(error, case.error), error
    assert (error.phase, error.read_version, error.winner_version) == (BEFORE_WRITING, READ, 3)
    assert latest_version(table) == 3
    assert rows(spark, table) == deltalake_rows(table) == case.rows
    assert unknown_files(table) == []
    (record,) = interlock.table(spark, str(table.path)).conflicts()
    assert (record.phase, record.txn_id, record.winners) == (BEFORE_WRITING, error.txn_id, (3,))
    assert (record.bytes, record.operation_class) == (0, "MUTATE")
    assert record.millis_saved is None  # no such statement before
    told = interlock.table(spark, str(table.path)).explain(error)
    assert "and 0 bytes of data files. It was stopped before writing." in told.text


@pytest.mark.variant_cases(but=["UPDATE-copies", "MERGE-vectors"])
@pytest.mark.parametrize("vectors", [False, True], ids=["copies", "vectors"])
@pytest.mark.parametrize("job", [UPDATE, DELETE, MERGE], ids=["UPDATE", "DELETE", "MERGE"])
def test_the_record_says_what_was_saved(
    spark: SparkSession, table_path: Path, job: str, *, vectors: bool
) -> None:
    """The estimate is the time that the last such statement took after its scan."""
    table = table_of(spark, table_path, "maxcompute_delta", vectors=vectors)
    spark.sql(job.replace("IN (1, 4)", "= 2").replace("(1, 4)", "(2)").format(t=table))
    spark.sql(f"UPDATE {table} SET v = 'C' WHERE id = 3")
    last = 4 if job == UPDATE else 3
    error = lost(spark, table, job, INSERT)
    assert isinstance(error, ConcurrentAppendError)
    (record,) = interlock.table(spark, str(table.path)).conflicts()
    (made,) = spark.sql(f"DESCRIBE HISTORY {table}").where(f"version = {last}").collect()
    measured = made.operationMetrics
    # An UPDATE or DELETE marks rows as it scans, and was stopped before that.
    found = () if vectors and job != MERGE else ("scanTimeMs", "materializeSourceTimeMs")
    before = (int(measured.get(key, 0)) for key in found)
    assert made.operation == job.split()[0]
    assert record.millis_saved == int(measured["executionTimeMs"]) - sum(before)
    told = interlock.table(spark, str(table.path)).explain(error).text
    spent = f"which the last {made.operation} of this table spent {record.millis_saved} ms on"
    assert f"It was stopped before writing, {spent}." in told


@pytest.mark.parametrize(
    ("metrics", "saved"),
    [
        ({"executionTimeMs": "70", "scanTimeMs": "20"}, 50),
        ({"executionTimeMs": "70"}, 70),
        ({"executionTimeMs": "5", "scanTimeMs": "900"}, None),
        ({"executionTimeMs": None}, None),
        ({"executionTimeMs": "70", "scanTimeMs": None}, None),
        ({"executionTimeMs": "many"}, None),
        ({"executionTimeMs": "99999999999999999999"}, None),
    ],
    ids=str,
)
def test_metrics_that_a_commit_may_have(
    spark: SparkSession, table_path: Path, metrics: dict[str, str | None], saved: int | None
) -> None:
    table = table_of(spark, table_path, "maxcompute_delta")
    commit_by_hand(table, "UPDATE", metrics=metrics)
    error = lost(spark, table, UPDATE, INSERT)
    assert isinstance(error, ConcurrentAppendError)
    (record,) = interlock.table(spark, str(table.path)).conflicts()
    assert record.millis_saved == saved


def test_a_winner_of_another_writer(spark: SparkSession, table_path: Path) -> None:
    """A commit of another writer is found only by listing the log."""
    table = table_of(spark, table_path, "write_serializable")
    (file,) = added(table, 1)
    values = {"partitionValues": {}, "extendedFileMetadata": True, "size": file["size"]}
    delete = remove(file, **values)
    error = lost(spark, table, UPDATE, lambda: commit_by_hand(table, "DELETE", delete))
    assert isinstance(error, ConcurrentDeleteReadError)
    assert (error.phase, error.winner_version) == (BEFORE_WRITING, 3)


def test_a_skipped_blind_append_that_another_has_read(
    spark: SparkSession, table_path: Path
) -> None:
    table = table_of(spark, table_path, "write_serializable")
    copy = "INSERT INTO {t} SELECT id + 10, v FROM {t} WHERE id = 4"
    error = lost(spark, table, UPDATE, INSERT, copy)
    assert isinstance(error, ConcurrentAppendError)
    assert (error.phase, error.winner_version) == (BEFORE_WRITING, 3)
    assert "and version 4 has read that" in str(error)


def test_it_is_run_again(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path, "maxcompute_delta")
    again = "io.interlock.spark.statements.Rerun"
    with confs(spark, {"spark.interlock.rerun.maxRuns": "2"}), log_of(spark, again) as told:
        assert lost(spark, table, UPDATE, INSERT) is None
    assert "lost against version 3 and runs again" in str(told)
    assert rows(spark, table) == ((1, "Y"), (2, "b"), (3, "c"), (4, "Y"))


UDF_UPDATE = "UPDATE {t} SET v = 'Y' WHERE id IN (2, 4) AND interlock_is_even(id)"
LEFT_TO_THE_COMMIT: dict[str, tuple[Any, ...]] = {
    "an UPDATE that may mark no row": ("serializable", True, UPDATE, INSERT, APPEND),
    "rows that cannot be followed": (
        "maxcompute_delta", False, UPDATE, lambda t: compact_without_ids(t, 1), REMOVED),
    "a predicate that cannot be decided": ("row_serializable", False, UDF_UPDATE, INSERT, APPEND),
    "a check by Delta": (
        "maxcompute_delta", False, UPDATE, "ALTER TABLE {t} ADD COLUMN w INT",
        MetadataChangedError),
    "a MERGE that may change nothing": ("serializable", False, ONLY_INSERTS, INSERT, APPEND),
    "an INSERT": ("maxcompute_delta", False, INSERT, INSERT, APPEND),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_TO_THE_COMMIT)
def test_what_is_not_certain_is_left_to_the_commit(
    spark: SparkSession, table_path: Path, name: str
) -> None:
    register_is_even(spark)
    policy, vectors, later, winner, expected = LEFT_TO_THE_COMMIT[name]
    table = table_of(spark, table_path, policy, vectors=vectors)
    error = lost(spark, table, later, winner if isinstance(winner, str) else lambda: winner(table))
    assert isinstance(error, ConflictError), error
    assert isinstance(error, expected), error
    assert (error.phase, latest_version(table)) == (None, 3)
    (record,) = interlock.table(spark, str(table.path)).conflicts()
    assert record.phase is None
    assert record.bytes
    assert unknown_files(table) == []


def test_a_job_that_is_cancelled_while_it_is_judged(spark: SparkSession, tmp_path: Path) -> None:
    """The job stops at once, before its commit."""
    table, source = (
        table_of(spark, tmp_path / "t", "row_serializable", vectors=True),
        tmp_path / "s",
    )
    odd = "SELECT INT(id) * 2 + 1 AS id FROM range(1000)"
    spark.sql(f"CREATE TABLE delta.`{source}` USING delta AS {odd}")
    slow = "aggregate(sequence(1, 10000), 0L, (sum, next) -> sum + next * id) > 0"
    context, ended = spark.sparkContext, threading.Event()

    def job() -> None:
        context.setJobGroup("merge", "")
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT id FROM delta.`{source}` WHERE {slow}) s "
            "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'Y'"
        )

    def cancel() -> bool:
        """Cancel again and again: another job of the judging may start after the first call."""
        known: Any = context._jsc.sc().statusStore()
        is_found = False
        while not ended.is_set():
            for number in context.statusTracker().getActiveJobsIds():
                if "interlock-judging" in str(known.job(number).jobTags()):
                    context.cancelJobGroup("merge")
                    is_found = True
        return is_found

    with ThreadPoolExecutor(1) as beside:
        futures = []

        def win() -> None:
            spark.sql(INSERT.format(t=table))
            futures.append(beside.submit(cancel))

        error = end_behind(spark, job, win)
        ended.set()
    assert futures[0].result()
    assert "SPARK_JOB_CANCELLED" in str(error)
    assert latest_version(table) == 3
    assert rows(spark, table) == WITH_4


def test_another_run_of_the_same_batch(spark: SparkSession, table_path: Path) -> None:
    """The second winner is the same batch (txnAppId, txnVersion): the commit finds it done, though
    the first one would make it lose.
    """
    table = table_of(spark, table_path, "maxcompute_delta")
    batch = {"txnAppId": "a", "txnVersion": "1"}
    names = {f"spark.databricks.delta.write.{key}": value for key, value in batch.items()}
    with confs(spark, names):
        unnumbered = spark.newSession()
        assert (
            lost(spark, table, UPDATE, lambda: unnumbered.sql(X1.format(t=table)), UPDATE) is None
        )
    assert latest_version(table) == READ + 2
    assert rows(spark, table) == ((1, "Y"), *START[1:])


def test_a_policy_that_does_not_permit_it(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path, "maxcompute_standard")
    error = lost(spark, table, UPDATE, INSERT)
    assert isinstance(error, UsageError)
    assert error.condition == "INTERLOCK_OPERATION_NOT_SUPPORTED"


def test_another_table_at_its_path(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path, "maxcompute_delta")

    def replaced() -> None:
        shutil.rmtree(table.path)
        spark.sql(
            f"CREATE TABLE {table} (id INT, v STRING) USING delta "
            "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
        )
        for _ in range(3):
            spark.sql(INSERT.format(t=table))

    error = lost(spark, table, UPDATE, replaced)
    assert isinstance(error, InterlockError)
    assert getattr(error, "phase", None) is None
    assert rows(spark, table) == ((4, "d"),) * 3


PASSING = {
    "rows that a compaction moved": (
        "maxcompute_delta", True, MERGE, "ALTER TABLE {t} COMPACT MINOR",
        ((1, "Y"), (2, "b"), (3, "c"), (4, "n"))),
    "other files": ("write_serializable", False, X1, X3, ((1, "X"), (2, "b"), (3, "X"))),
    "a blind append": ("write_serializable", False, UPDATE, INSERT,
                       ((1, "Y"), (2, "b"), (3, "c"), (4, "d"))),
    "other rows": ("row_level", True, MERGE, "UPDATE {t} SET v = 'X' WHERE id = 2",
                   ((1, "Y"), (2, "X"), (3, "c"), (4, "n"))),
    "a comment": ("row_level", True, MERGE, "COMMENT ON TABLE {t} IS 'it'",
                  ((1, "Y"), (2, "b"), (3, "c"), (4, "n"))),
}  # fmt: skip


@pytest.mark.variant_cases(but=["rows that a compaction moved"])
@pytest.mark.parametrize("name", PASSING)
def test_winners_that_it_passes(spark: SparkSession, table_path: Path, name: str) -> None:
    policy, vectors, later, winner, expected = PASSING[name]
    table = table_of(spark, table_path, policy, vectors=vectors)
    assert lost(spark, table, later, winner) is None
    assert latest_version(table) == 4
    assert rows(spark, table) == deltalake_rows(table) == expected


class Twice:
    """Runs a history twice: jobs are held before they read, and then before they commit."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._runners = (Runner(spark, StartGate), Runner(spark))
        self._numbers = itertools.count()

    def run(self, wanted: History) -> int:
        """Compare both, and return how many jobs were stopped before they wrote."""
        begun, written = ([*self._run(wanted, runner)] for runner in self._runners)
        early = 0
        for first, second in zip(begun, written, strict=True):
            told = f"{wanted}\n{first}\n{second}"
            if isinstance(first, ConflictError) and first.phase == BEFORE_WRITING:
                early += 1
                assert isinstance(second, ConflictError), told
                assert second.winner_version is not None, told
                assert first.winner_version is not None, told
                # What it writes may overlap with an earlier winner than what it reads.
                assert second.winner_version <= first.winner_version, told
            else:
                assert type(first).__name__ == type(second).__name__, told
        return early

    def _run(self, wanted: History, runner: Runner) -> Sequence[Exception | None]:
        table = wanted.table(self._spark, self._folder / str(next(self._numbers)))
        ends = [ended.error for ended in runner.run(wanted.planned, table)]
        delete_table(self._spark, table)
        return ends


QUICK = [
    ("write_serializable", "keys", 1, False),
    ("serializable", "own reads", 485, True),
    ("row_serializable", "own reads", 530, False),
    ("maxcompute_delta", "keys", 649, False),
]
WORKLOADS = ("changes", "skew", "own reads", "keys")
POLICIES = (*MAXCOMPUTE, "serializable", "write_serializable", "row_level", "row_serializable")


def test_no_verdict_that_the_commit_would_not_give(spark: SparkSession, tmp_path: Path) -> None:
    twice = Twice(spark, tmp_path)
    early = [twice.run(history(p, name, s, vectors=v)) for p, name, s, v in QUICK]
    assert all(early)


@pytest.mark.soak
def test_many_histories(spark: SparkSession, tmp_path: Path) -> None:
    """Random histories with a new seed in each run."""
    twice, chance = Twice(spark, tmp_path), random.Random()
    early, failed = 0, []
    for _ in range(HISTORIES):
        policy, name = chance.choice(POLICIES), chance.choice(WORKLOADS)
        wanted = history(policy, name, chance.randrange(10**6), vectors=chance.random() < 0.5)
        try:
            early += twice.run(wanted)
        except AssertionError as error:
            print(error)
            failed.append(wanted.seed)
    assert early
    assert failed == []
