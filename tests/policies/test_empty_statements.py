"""Statements without rows: overwrites still make a version, the others are still judged.

Races of such statements are traps 1 and 2 in test_cell_traps.py. Stock Delta skips such commits, so
that a TRUNCATE of an empty snapshot leaves what was inserted meanwhile and an UPDATE that matches
nothing never loses.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.support import (
    latest_version,
    make_table,
    rows,
    sql_race,
    versions,
)

PARTITIONED = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
TWO_PARTITIONS = ("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",)
INSERT = "INSERT INTO {t} VALUES (10, 'i')"
NOTHING = "SELECT id, v FROM VALUES (1, 'a') AS n (id, v) WHERE id < 0"


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE {t}", "INSERT OVERWRITE {t} " + NOTHING])
class TestOverwriteOfAnEmptySnapshot:
    """Trap 1 without a race."""

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
    """Trap 2 without a race, and by partition."""

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
