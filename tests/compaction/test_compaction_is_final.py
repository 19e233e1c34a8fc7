"""The refusal of a compaction is final, though Delta tries it again after the winner.

After a conflict Delta opens a second transaction and commits the same outputs if their inputs are
still live. So a compaction whose inputs the winner did not touch would get through.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from interlock.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConflictError,
)
from pyspark.sql import SparkSession

from tests.kit.gates import SecondTransactionGate
from tests.kit.support import (
    Table,
    deltalake_rows,
    latest_version,
    live_files,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    tags,
    unknown_files,
)

LARGE = "SELECT /*+ COALESCE(1) */ CAST(id AS INT), uuid() FROM range({start}, {start} + 500)"
TWO_SMALL_TWO_LARGE = (
    "INSERT INTO {t} VALUES (1, 'a')",
    "INSERT INTO {t} VALUES (2, 'b')",
    "INSERT INTO {t} " + LARGE.format(start=1000),
    "INSERT INTO {t} " + LARGE.format(start=2000),
    "DELETE FROM {t} WHERE id >= 1000 AND id % 2 = 0",
)
BEFORE = len(TWO_SMALL_TWO_LARGE)
OPTIMIZE = "OPTIMIZE {t}"
REORG = "REORG TABLE {t} APPLY (PURGE)"
INSERT = "INSERT INTO {t} VALUES (10, 'i')"
UPDATE_A_SMALL_FILE = "UPDATE {t} SET v = 'U' WHERE id = 1"


@pytest.fixture(scope="module")
def small_files(spark: SparkSession) -> SparkSession:
    """A session whose OPTIMIZE takes the two small files only."""
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.optimize.minFileSize", "5000")
    session.conf.set("spark.databricks.delta.optimize.maxDeletedRowsRatio", "1.0")
    return session


@pytest.fixture(scope="module")
def large_files(spark: SparkSession) -> SparkSession:
    """A session whose OPTIMIZE takes the two large files only, for their deleted rows."""
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.optimize.minFileSize", "1")
    return session


def make(spark: SparkSession, path: Path, policy: str | None) -> Table:
    properties = {"delta.enableDeletionVectors": "true"}
    table = make_table(
        spark, path, policy=policy, properties=properties, statements=TWO_SMALL_TWO_LARGE
    )
    assert len(live_files(table)) == 4
    return table


class TestAfterACompactionOfOtherFiles:
    @pytest.mark.variant_cases(but=["optimize-T16"])
    @pytest.mark.parametrize(
        ("statement", "policy", "rule"),
        [
            (OPTIMIZE, "maxcompute_transactional", "T16"),
            pytest.param(OPTIMIZE, "maxcompute_delta", "D19", marks=pytest.mark.soak),
            (REORG, "maxcompute_transactional", "T16"),
        ],
        ids=["optimize-T16", "optimize-D19", "reorg-T16"],
    )
    def test_it_fails_and_a_later_one_succeeds(
        self,
        spark: SparkSession,
        small_files: SparkSession,
        large_files: SparkSession,
        table_path: Path,
        statement: str,
        policy: str,
        rule: str,
    ) -> None:
        table = make(spark, table_path, policy)
        expected = rows(spark, table)
        refused: list[Exception] = []
        left: list[list[str]] = []

        def compact_twice(session: SparkSession) -> None:
            try:
                session.sql(statement.format(t=table))
            except ConflictError as error:
                refused.append(error)
                left.append(unknown_files(table))
            session.sql(statement.format(t=table))

        won, again = race(
            spark,
            sql_job(f"OPTIMIZE {table}", session=small_files),
            python_job("compact twice", lambda _: compact_twice(large_files)),
        )
        assert won.error is None
        assert isinstance(refused[0], ConcurrentDeleteDeleteError)
        assert (refused[0].rule, refused[0].winner_version) == (rule, BEFORE + 1)
        assert left == [[]]
        assert again.error is None  # the second one, on the same thread
        assert latest_version(table) == BEFORE + 2
        assert len(live_files(table)) == 2
        assert rows(spark, table) == deltalake_rows(table) == expected


@pytest.mark.variant_cases("reorg*")
@pytest.mark.parametrize(
    ("winner", "statement", "rule", "error"),
    [
        (INSERT, OPTIMIZE, "T8", ConcurrentAppendError),
        (UPDATE_A_SMALL_FILE, REORG, "T12", ConcurrentDeleteReadError),
    ],
    ids=["optimize-after-insert", "reorg-after-update"],
)
def test_after_a_change_of_other_files_it_fails_on_a_transactional_table(
    spark: SparkSession,
    large_files: SparkSession,
    table_path: Path,
    winner: str,
    statement: str,
    rule: str,
    error: type[ConflictError],
) -> None:
    table = make(spark, table_path, "maxcompute_transactional")
    _, lost = race(
        spark,
        sql_job(winner.format(t=table)),
        sql_job(statement.format(t=table), session=large_files),
    )
    assert lost.held
    assert isinstance(lost.error, error)
    assert lost.error.rule == rule
    assert latest_version(table) == BEFORE + 1
    assert rows(spark, table) == deltalake_rows(table)


def test_after_an_insert_it_succeeds_on_a_delta_table(
    spark: SparkSession, large_files: SparkSession, table_path: Path
) -> None:
    """Cell D9: an OPTIMIZE succeeds after an INSERT."""
    table = make(spark, table_path, "maxcompute_delta")
    _, later = race(
        spark, sql_job(INSERT.format(t=table)), sql_job(f"OPTIMIZE {table}", session=large_files)
    )
    assert later.error is None
    assert latest_version(table) == BEFORE + 2
    assert tags(table, BEFORE + 2)["interlock.rules"] == "D9"


@pytest.mark.variant
class TestAutoCompaction:
    """Auto compaction runs in the INSERT after its commit; its failure does not fail the INSERT."""

    @pytest.fixture
    def compacting(self, spark: SparkSession) -> SparkSession:
        session = spark.newSession()
        session.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
        session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
        return session

    @pytest.mark.parametrize(
        ("policy", "last_version"), [("maxcompute_transactional", 4), ("maxcompute_delta", 5)]
    )
    def test_after_an_insert(
        self,
        spark: SparkSession,
        compacting: SparkSession,
        table_path: Path,
        policy: str,
        last_version: int,
    ) -> None:
        """It fails by cell T8 and succeeds by cell D9."""
        table = make_table(spark, table_path, policy=policy)
        gate = SecondTransactionGate(spark)
        found: list[int] = []

        def insert_then_optimize() -> None:
            gate.install()
            try:
                compacting.sql(f"INSERT INTO {table} VALUES (4, 'd')")
            finally:
                gate.uninstall()
            found.append(latest_version(table))
            compacting.sql(f"OPTIMIZE {table}")

        with ThreadPoolExecutor(1) as thread:
            end = thread.submit(insert_then_optimize)
            gate.await_arrival()
            assert latest_version(table) == 3
            spark.sql(INSERT.format(t=table))
            gate.open()
            end.result()
        assert found == [last_version]
        assert latest_version(table) == last_version + 1
        expected = ((1, "a"), (10, "i"), (2, "b"), (3, "c"), (4, "d"))
        assert rows(spark, table) == deltalake_rows(table) == expected
        assert len(live_files(table)) == 1
        assert unknown_files(table) == []


@pytest.mark.parametrize("policy", ["maxcompute_delta", "maxcompute_transactional"])
def test_the_batches_of_one_optimize_do_not_fail_each_other(
    spark: SparkSession, table_path: Path, policy: str
) -> None:
    """They all start from one version, but they are one job."""
    table = make_table(
        spark,
        table_path,
        policy=policy,
        columns="(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)",
        statements=("INSERT INTO {t} SELECT id, 'v', id % 3 FROM range(6)",) * 2,
    )
    before = rows(spark, table)
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.optimize.batchSize", "1")
    session.sql(f"OPTIMIZE {table}")
    assert latest_version(table) == 2 + 3
    assert len(live_files(table)) == 3
    assert rows(spark, table) == deltalake_rows(table) == before
    assert rows(spark, table, version=3) == before


def test_a_batch_fails_after_another_optimize(spark: SparkSession, table_path: Path) -> None:
    """The other job's commit is between the batches of this one."""
    table = make_table(
        spark,
        table_path,
        columns="(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)",
        statements=("INSERT INTO {t} SELECT id, 'v', id % 2 FROM range(6)",) * 2,
    )
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.optimize.batchSize", "1")
    won, lost = race(
        spark,
        sql_job(f"OPTIMIZE {table} WHERE p = 1"),
        sql_job(f"OPTIMIZE {table}", session=session),
    )
    assert won.error is None
    assert isinstance(lost.error, ConcurrentDeleteDeleteError)
    assert rows(spark, table) == deltalake_rows(table)
