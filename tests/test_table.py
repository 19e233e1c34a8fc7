"""`interlock.table`: the statements that it makes, and their results."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import interlock
import pytest
from pyspark.sql import Row, SparkSession

from tests.support import commit_info, deltalake_rows, latest_version, live_files, make_table, rows

NOTHING = Row(
    **{"version": None, "class": "COMPACT_MINOR", "files_in": 0, "files_out": 0, "bytes_in": 0},
    **{"bytes_out": 0, "rows": 0, "rows_purged": 0, "rebased_over": []},
)


class Recorder:
    """Stands for a session, and keeps the statements that it is given."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def sql(self, statement: str) -> Recorder:
        self.statements.append(statement)
        return self

    def collect(self) -> list[Row]:
        return [NOTHING]


def statement_of(use: Callable[[interlock.Table], object], name: str = "t") -> str:
    recorder = Recorder()
    use(interlock.table(cast(SparkSession, recorder), name))
    (statement,) = recorder.statements
    return statement


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("flights", "`flights`"),
        ("db.flights", "`db`.`flights`"),
        ("spark_catalog.my-db.flights", "`spark_catalog`.`my-db`.`flights`"),
        ("delta.`/data/flights`", "`delta`.`/data/flights`"),
        ("`a.b`.`c``d`", "`a.b`.`c``d`"),
        ("/data/o'brien`s.v1", "delta.`/data/o'brien``s.v1`"),
        ("s3a://bucket/flights", "delta.`s3a://bucket/flights`"),
        ("file:/data/flights", "delta.`file:/data/flights`"),
    ],
)
def test_names_and_paths_are_quoted(name: str, quoted: str) -> None:
    expected = f"ALTER TABLE {quoted} COMPACT MINOR"
    assert statement_of(lambda table: table.compact("minor"), name) == expected


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "a`b", "`a", "`a`b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a table's name or path"):
        interlock.table(cast(SparkSession, Recorder()), name)


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-7, "-7"),
        (0.1, "'0.1'"),
        (float("nan"), "'nan'"),
        (Decimal("1.50"), "'1.50'"),
        (date(2013, 1, 31), "DATE '2013-01-31'"),
        (datetime(2013, 1, 31, 5, 15), "TIMESTAMP '2013-01-31 05:15:00'"),
        (
            datetime(2013, 1, 31, 5, tzinfo=timezone(timedelta(hours=-5))),
            "TIMESTAMP '2013-01-31 05:00:00-05:00'",
        ),
        ("New York", "'New York'"),
        ("O'Hare", "'O\\'Hare'"),
        ("a\\", "'a\\\\'"),
        ("1') COMPACT MAJOR --", "'1\\') COMPACT MAJOR --'"),
    ],
)
def test_partition_values_become_literals(value: object, literal: str) -> None:
    made = statement_of(lambda table: table.merge_small_files(partition={"p": value}))
    assert made == f"ALTER TABLE `t` PARTITION (`p` = {literal}) MERGE SMALLFILES"


def test_partition_columns_are_quoted() -> None:
    made = statement_of(lambda table: table.compact("major", partition={"o`r": 1, "m d": 2}))
    assert made == "ALTER TABLE `t` PARTITION (`o``r` = 1, `m d` = 2) COMPACT MAJOR"


def test_wrong_arguments_are_refused() -> None:
    table = interlock.table(cast(SparkSession, Recorder()), "t")
    with pytest.raises(ValueError, match="kind must be 'minor' or 'major', not 'MINOR'"):
        table.compact(cast(Any, "MINOR"))
    with pytest.raises(ValueError, match="partition names no column"):
        table.compact("minor", partition={})
    with pytest.raises(TypeError, match="must not be of type bytes"):
        table.compact("minor", partition={"p": b"1"})


def test_the_result_has_the_columns() -> None:
    table = interlock.table(cast(SparkSession, Recorder()), "t")
    expected = interlock.CompactionResult(None, "COMPACT_MINOR", 0, 0, 0, 0, 0, 0, ())
    assert table.compact("minor") == expected


@pytest.mark.parametrize("policy", ["maxcompute_delta", "maxcompute_transactional", None])
def test_the_policy(spark: SparkSession, table_path: Path, policy: str | None) -> None:
    make_table(spark, table_path, policy=policy, statements=())
    assert interlock.table(spark, str(table_path)).policy == policy


def test_compaction(spark: SparkSession, table_path: Path) -> None:
    """Two files of three rows, one of them dead."""
    made = make_table(spark, table_path, properties={"delta.enableDeletionVectors": "true"})
    spark.sql(f"DELETE FROM {made} WHERE id = 2")
    table = interlock.table(spark, str(table_path))
    minor = table.compact("minor")
    assert minor.bytes_in > 0
    assert minor.bytes_out > 0
    expected = interlock.CompactionResult(
        4, "COMPACT_MINOR", 2, 1, minor.bytes_in, minor.bytes_out, 2, 1, ()
    )
    assert minor == expected
    nothing = table.compact("minor")
    assert (nothing.version, nothing.files_in, nothing.files_out) == (None, 0, 0)
    assert latest_version(made) == 4
    assert commit_info(made, 4)["operation"] == "COMPACT MINOR"
    assert rows(spark, made) == deltalake_rows(made) == ((1, "a"), (3, "c"))
    spark.sql(f"INSERT INTO {made} VALUES (4, 'd')")
    major = table.compact("major")
    assert (major.version, major.operation_class, major.files_in) == (6, "COMPACT_MAJOR", 2)
    spark.sql(f"INSERT INTO {made} VALUES (5, 'e')")
    merged = table.merge_small_files()
    assert (merged.version, merged.operation_class) == (8, "COMPACT_MINOR")
    assert commit_info(made, 8)["operation"] == "MERGE SMALLFILES"


VALUES = {
    "s": "it's a \\ `x`",
    "n": -3,
    "d": date(2013, 1, 31),
    "t": datetime(2013, 1, 31, 5, 15),
    "m": Decimal("1.50"),
    "x": 0.1,
    "b": True,
    "z": None,
}


def test_a_partition_is_found_by_its_values(spark: SparkSession, table_path: Path) -> None:
    columns = "s STRING, n INT, d DATE, t TIMESTAMP, m DECIMAL(5, 2), x DOUBLE, b BOOLEAN, z STRING"
    made = make_table(
        spark,
        table_path,
        columns=f"(id INT, {columns}) USING delta PARTITIONED BY ({', '.join(VALUES)})",
        statements=(),
    )
    for number in range(2):
        for values in (VALUES, {**VALUES, "z": "other"}):
            frame = spark.createDataFrame([(number, *values.values())], f"id INT, {columns}")
            frame.coalesce(1).write.format("delta").mode("append").save(str(table_path))
    before = live_files(made)
    result = interlock.table(spark, str(table_path)).compact("minor", partition=VALUES)
    assert (result.version, result.files_in, result.files_out, result.rows) == (5, 2, 1, 2)
    assert len(live_files(made) & before) == 2
    found = rows(spark, made)
    assert len(found) == 4
    assert {row[1:] for row in found} == {
        tuple(VALUES.values()),
        tuple({**VALUES, "z": "other"}.values()),
    }
