"""Conflicts and refusals arrive in Python as `interlock.errors`, by every way into a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import delta.exceptions
import interlock
import pytest
from interlock import errors
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    latest_version,
    make_table,
    python_job,
    race,
    sql_job,
    sql_race,
)

INSERT = "INSERT INTO {t} VALUES (10, 'i')"


def failure(
    spark: SparkSession, table: Table, later: Callable[[SparkSession], object]
) -> Exception:
    """Return what `later` raises when an INSERT commits before it."""
    earlier = sql_job(INSERT.format(t=table))
    first, second = race(spark, earlier, python_job("later", later))
    assert first.ok
    assert second.error is not None
    assert latest_version(table) == 3
    return second.error


def test_a_conflict_in_sql_says_everything(spark: SparkSession, example: Table) -> None:
    error = failure(spark, example, lambda s: s.sql(f"INSERT INTO {example} VALUES (20, 'j')"))
    assert isinstance(error, interlock.ConcurrentAppendError)
    assert error.condition == error.getCondition() == "INTERLOCK_CONCURRENT_APPEND"
    assert error.sqlstate == error.getSqlState() == "2D521"
    assert error.policy == "maxcompute_delta"
    assert error.rule == "D7"
    assert (error.winner_class, error.operation_class) == ("APPEND", "APPEND")
    assert (error.winner_operation, error.operation) == ("INSERT INTO", "INSERT INTO")
    assert (error.read_version, error.winner_version) == (2, 3)
    assert error.scope
    assert error.table is not None
    assert str(example.path) in error.table
    assert str(error) == error.message == error.getMessage()
    assert str(error).startswith("[INTERLOCK_CONCURRENT_APPEND]")


@pytest.mark.parametrize(
    ("earlier", "later", "ours", "deltas"),
    [
        (INSERT, "UPDATE {t} SET v = 'U' WHERE id = 1", "ConcurrentAppend", "ConcurrentAppend"),
        ("TRUNCATE TABLE {t}", INSERT, "ConcurrentDeleteRead", "ConcurrentDeleteRead"),
        ("OPTIMIZE {t}", "OPTIMIZE {t}", "ConcurrentDeleteDelete", "ConcurrentDeleteDelete"),
        ("ALTER TABLE {t} ADD COLUMN w INT", INSERT, "MetadataChanged", "MetadataChanged"),
    ],
    ids=["append", "delete-read", "delete-delete", "metadata"],
)
def test_each_conflict_is_also_deltas_own(
    spark: SparkSession, example: Table, earlier: str, later: str, ours: str, deltas: str
) -> None:
    _, lost = sql_race(spark, example, earlier, later)
    assert type(lost.error).__name__ == f"{ours}Error"
    assert isinstance(lost.error, interlock.ConflictError)
    assert isinstance(lost.error, getattr(errors, f"{ours}Error"))
    assert isinstance(lost.error, getattr(delta.exceptions, f"{deltas}Exception"))
    assert isinstance(lost.error, PySparkException)
    assert lost.error.getSqlState() == "2D521"


def test_a_conflict_on_sparks_test_bases(spark: SparkSession, example: Table) -> None:
    """In Spark's test mode, an error with parameters that its text does not use is refused."""
    system: Any = spark._jvm.java.lang.System  # type: ignore[union-attr]
    system.setProperty("spark.testing", "true")
    try:
        error = failure(spark, example, lambda s: s.sql(f"INSERT INTO {example} VALUES (20, 'j')"))
        with pytest.raises(interlock.UsageError, match="INTERLOCK_UNKNOWN_POLICY"):
            interlock.table(spark, str(example.path)).set_policy("other")
    finally:
        system.clearProperty("spark.testing")
    assert isinstance(error, interlock.ConcurrentAppendError)
    assert (error.condition, error.rule) == ("INTERLOCK_CONCURRENT_APPEND", "D7")


def test_usage_errors(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(interlock.InterlockError, match="maxcompute_delta") as caught:
        make_table(spark, tmp_path, policy="maxcompute_dleta")
    assert caught.value.condition == "INTERLOCK_UNKNOWN_POLICY"
    assert not isinstance(caught.value, interlock.ConflictError)


def test_a_jar_of_another_version_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.interlock.version", "0.0.1")
    with pytest.raises(interlock.VersionMismatchError, match="install"):
        session.sql(f"CREATE TABLE delta.`{tmp_path}/table` (id INT) USING delta")
