"""Statements without rows: overwrites still make a version, the others are still judged.

Conflict cells, traps 1 and 2; the lab has more of both. Stock Delta skips such commits, so that a
TRUNCATE of an empty snapshot leaves what was inserted meanwhile and an UPDATE that matches nothing
never loses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock.errors import ConcurrentAppendError
from pyspark.sql import SparkSession

from tests.support import (
    deltalake_rows,
    latest_version,
    make_table,
    rows,
    sql_race,
    tags,
    versions,
)

PARTITIONED = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
TWO_PARTITIONS = ("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",)
INSERT = "INSERT INTO {t} VALUES (10, 'i')"
NOTHING = "SELECT id, v FROM VALUES (1, 'a') AS n (id, v) WHERE id < 0"


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE {t}", "INSERT OVERWRITE {t} " + NOTHING])
class TestOverwriteOfAnEmptySnapshot:
    """Trap 1: what was inserted meanwhile is removed, and the version is recorded."""

    def test_it_removes_what_was_inserted_meanwhile(
        self, spark: SparkSession, table_path: Path, statement: str
    ) -> None:
        table = make_table(spark, table_path, policy="maxcompute_transactional", statements=())
        _, later = sql_race(spark, table, INSERT, statement)
        assert later.error is None
        assert (later.held, later.version) == (True, 2)
        assert rows(spark, table) == deltalake_rows(table) == ()
        assert rows(spark, table, version=1) == ((10, "i"),)
        assert tags(table, 2)["interlock.class"] == "OVERWRITE"
        assert tags(table, 2)["interlock.rebasedOver"] == "1"

    def test_alone_it_makes_a_version(
        self, spark: SparkSession, table_path: Path, statement: str
    ) -> None:
        table = make_table(spark, table_path, statements=())
        spark.sql(statement.format(t=table))
        assert versions(table) == [0, 1]

    def test_without_a_policy_it_is_skipped_as_on_stock(
        self, spark: SparkSession, table_path: Path, statement: str
    ) -> None:
        table = make_table(spark, table_path, policy=None, statements=())
        spark.sql(statement.format(t=table))
        assert versions(table) == [0]


class TestMutationThatMatchesNothing:
    """Trap 2: D8 says that it fails after an INSERT, whatever it matches."""

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE {t} SET v = 'U' WHERE id = 99",
            "MERGE INTO {t} t USING (SELECT 99 AS id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = 'U'",
        ],
    )
    def test_it_fails_after_an_insert(
        self, spark: SparkSession, table_path: Path, statement: str
    ) -> None:
        table = make_table(spark, table_path)
        _, later = sql_race(spark, table, INSERT, statement)
        assert later.held
        assert isinstance(later.error, ConcurrentAppendError)
        assert (later.error.rule, later.error.winner_version) == ("D8", 3)
        assert latest_version(table) == 3

    def test_alone_it_makes_no_version(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path)
        spark.sql(f"UPDATE {table} SET v = 'U' WHERE id = 99")
        spark.sql(f"DELETE FROM {table} WHERE id = 99")
        assert latest_version(table) == 2

    @pytest.mark.parametrize(("partition", "passes"), [(1, False), (2, True)])
    def test_its_scope_is_what_it_can_select(
        self, spark: SparkSession, table_path: Path, partition: int, passes: bool
    ) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO_PARTITIONS)
        _, later = sql_race(
            spark,
            table,
            "INSERT INTO {t} VALUES (10, 'i', 1)",
            f"UPDATE {{t}} SET v = 'U' WHERE p = {partition} AND id = 99",
        )
        assert later.ok is passes
        assert latest_version(table) == 2


class TestInsertOfNoRows:
    """It is judged as any INSERT; if it passes it makes no version."""

    @pytest.mark.parametrize(
        ("policy", "passes"), [("maxcompute_delta", False), ("maxcompute_transactional", True)]
    )
    def test_after_an_insert(
        self, spark: SparkSession, table_path: Path, policy: str, passes: bool
    ) -> None:
        table = make_table(spark, table_path, policy=policy)
        _, later = sql_race(spark, table, INSERT, "INSERT INTO {t} " + NOTHING)
        assert later.ok is passes
        assert latest_version(table) == 3
        assert rows(spark, table) == ((1, "a"), (10, "i"), (2, "b"), (3, "c"))

    def test_alone_it_makes_no_version(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path)
        spark.sql(f"INSERT INTO {table} {NOTHING}")
        assert latest_version(table) == 2
