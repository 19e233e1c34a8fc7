"""A table's own `delta.isolationLevel`: the stricter of it and its policy's level holds.

Under Serializable an UPDATE fails that a concurrent blind INSERT gave a row to read.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock.errors import ConcurrentAppendError
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    commit_info,
    deltalake_rows,
    last_of,
    log_of,
    make_table,
    rows,
    sql_race,
    versions,
)

STRICT = {"delta.isolationLevel": "Serializable"}
SET = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')"
INSERT_1 = "INSERT INTO {t} VALUES (1, 'new')"
INSERT_9 = "INSERT INTO {t} VALUES (9, 'new')"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 1"


def make(spark: SparkSession, path: Path, policy: str, *, strict: bool = True) -> Table:
    return make_table(spark, path, policy=policy, properties=STRICT if strict else {})


@pytest.mark.parametrize("policy", ["write_serializable", "row_level"])
class TestStricter:
    def test_a_row_to_read_is_a_conflict(
        self, spark: SparkSession, table_path: Path, policy: str
    ) -> None:
        table = make(spark, table_path, policy)
        inserted, updated = sql_race(spark, table, INSERT_1, UPDATE)
        assert inserted.ok
        assert isinstance(updated.error, ConcurrentAppendError)
        assert updated.error.policy == policy
        assert versions(table) == [0, 1, 2, 3]
        left = ((1, "a"), (1, "new"), (2, "b"), (3, "c"))
        assert rows(spark, table) == deltalake_rows(table) == left

    def test_a_row_that_is_not_read_is_none(
        self, spark: SparkSession, table_path: Path, policy: str
    ) -> None:
        table = make(spark, table_path, policy)
        inserted, updated = sql_race(spark, table, INSERT_9, UPDATE)
        assert (inserted.error, updated.error) == (None, None)
        assert rows(spark, table) == ((1, "U"), (2, "b"), (3, "c"), (9, "new"))
        assert commit_info(table, 4)["isolationLevel"] == "Serializable"

    def test_without_the_property_the_policy_decides(
        self, spark: SparkSession, table_path: Path, policy: str
    ) -> None:
        table = make(spark, table_path, policy, strict=False)
        inserted, updated = sql_race(spark, table, INSERT_1, UPDATE)
        assert (inserted.error, updated.error) == (None, None)
        assert rows(spark, table) == ((1, "U"), (1, "new"), (2, "b"), (3, "c"))
        assert commit_info(table, 4)["isolationLevel"] == "WriteSerializable"


def test_set_later_it_holds_from_then_on(spark: SparkSession, table_path: Path) -> None:
    table = make(spark, table_path, "row_level", strict=False)
    spark.sql(SET.format(t=table))
    assert isinstance(last_of(spark, table, (INSERT_1,), UPDATE), ConcurrentAppendError)
    assert last_of(spark, table, (INSERT_9,), UPDATE) is None


def test_a_weaker_one_is_not_looked_at(spark: SparkSession, table_path: Path) -> None:
    """Delta refuses to set a weaker level, but reads one that another engine has set."""
    table = make(spark, table_path, "serializable")
    first = table.path / "_delta_log" / "00000000000000000000.json"
    text = first.read_text(encoding="utf-8")
    weaker = text.replace(
        '"delta.isolationLevel":"Serializable"', '"delta.isolationLevel":"WriteSerializable"'
    )
    assert weaker != text
    first.write_text(weaker, encoding="utf-8")
    for checksum in (table.path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    for checksum in (table.path / "_delta_log").glob(".*.crc"):
        checksum.unlink()
    assert isinstance(last_of(spark, table, (INSERT_1,), UPDATE), ConcurrentAppendError)


class TestPoliciesOfClasses:
    """Policies of classes do not look at what was read, so the property has no effect."""

    def test_a_warning_says_so(self, spark: SparkSession, table_path: Path) -> None:
        with log_of(spark, "io.interlock.spark.properties.TableIsolation") as log:
            table = make(spark, table_path, "maxcompute_transactional", strict=False)
            assert log.toString() == ""
            spark.sql(SET.format(t=table))
        (line,) = log.toString().splitlines()
        assert "delta.isolationLevel = Serializable has no effect" in line
        assert "maxcompute_transactional" in line
        with log_of(spark, "io.interlock.spark.properties.TableIsolation") as log:
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.policy' = 'row_level')")
        assert log.toString() == ""

    def test_a_cell_passes_as_it_is(self, spark: SparkSession, table_path: Path) -> None:
        table = make(spark, table_path, "maxcompute_transactional")
        read = "INSERT INTO {t} SELECT id + 10, v FROM {t} WHERE id = 1"
        assert last_of(spark, table, (INSERT_1,), read) is None
