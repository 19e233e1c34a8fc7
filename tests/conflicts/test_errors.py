"""Conflicts and refusals arrive in Python as `interlock.errors`, by every way into a table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import delta.exceptions
import interlock
import pytest
from interlock import errors
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

from tests.kit.support import (
    Table,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
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


def one_row(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT 20 AS id, 'j' AS v")


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


@pytest.mark.variant
@pytest.mark.parametrize(
    "write",
    [
        lambda df, path: df.write.format("delta").mode("append").save(path),
        lambda df, path: df.writeTo(f"delta.`{path}`").append(),
        lambda df, path: df.write.insertInto(f"delta.`{path}`"),
    ],
    ids=["save", "writeTo", "insertInto"],
)
def test_dataframe_writers_raise_it(
    spark: SparkSession, example: Table, write: Callable[[DataFrame, str], None]
) -> None:
    error = failure(spark, example, lambda s: write(one_row(s), str(example.path)))
    assert isinstance(error, interlock.ConcurrentAppendError)
    assert error.rule == "D7"


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


@pytest.mark.variant
def test_restore_beside_a_commit(spark: SparkSession, example: Table) -> None:
    error = failure(spark, example, lambda s: s.sql(f"RESTORE TABLE {example} TO VERSION AS OF 1"))
    assert isinstance(error, interlock.ConcurrentWriteError)
    assert (error.policy, error.rule) == ("maxcompute_delta", "any concurrent commit")
    origin: Any = error
    parameters = origin._origin.getMessageParameters()  # all that a client of Spark Connect gets
    assert (parameters["winnerVersion"], parameters["scope"]) == ("3", "the whole table")


def test_usage_errors(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(interlock.InterlockError, match="maxcompute_delta") as caught:
        make_table(spark, tmp_path, policy="maxcompute_dleta")
    assert caught.value.condition == "INTERLOCK_UNKNOWN_POLICY"
    assert not isinstance(caught.value, interlock.ConflictError)


def test_other_errors_stay_what_they_are(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT * FROM no_such_table")
    assert not isinstance(caught.value, interlock.InterlockError)


def test_a_jar_of_another_version_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.interlock.version", "0.0.1")
    with pytest.raises(interlock.VersionMismatchError, match="install"):
        session.sql(f"CREATE TABLE delta.`{tmp_path}/table` (id INT) USING delta")


class SlowStream:
    """A streaming append whose batch has read the table and waits before it has written."""

    def __init__(self, spark: SparkSession, table: Table, folder: Path) -> None:
        self._spark, self._table, self._folder = spark, table, folder
        self.arrived, self.go = folder / "arrived", folder / "go"
        source = folder / "source"
        one_row(spark).write.format("delta").save(str(source))
        self._stream = spark.readStream.format("delta").load(str(source))

    def start(self) -> StreamingQuery:
        arrived, go = str(self.arrived), str(self.go)

        def wait(value: str) -> str:
            import os
            import time

            open(arrived, "w").close()
            while not os.path.exists(go):
                time.sleep(0.05)
            return value

        held = udf(lambda value: wait(value), "string")
        stream = self._stream.selectExpr("id", "v")
        return (
            stream.withColumn("v", held("v"))
            .writeStream.format("delta")
            .option("checkpointLocation", str(self._folder / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(self._table.path))
        )


def await_file(path: Path, query: StreamingQuery) -> None:
    pause = threading.Event()
    while not path.exists():
        assert query.isActive, query.exception()
        pause.wait(0.05)


def test_a_streaming_query_that_loses(spark: SparkSession, example: Table, tmp_path: Path) -> None:
    stream = SlowStream(spark, example, tmp_path)
    query = stream.start()
    await_file(stream.arrived, query)
    spark.sql(INSERT.format(t=example))
    stream.go.touch()
    with pytest.raises(interlock.ConcurrentAppendError) as caught:
        query.awaitTermination()
    assert isinstance(caught.value, StreamingQueryException)
    assert isinstance(caught.value, delta.exceptions.ConcurrentAppendException)
    assert caught.value.rule == "D7"
    assert rows(spark, example) == ((1, "a"), (10, "i"), (2, "b"), (3, "c"))

    stream.start().awaitTermination()  # again from its checkpoint: the batch is there once
    assert rows(spark, example) == ((1, "a"), (10, "i"), (2, "b"), (20, "j"), (3, "c"))


def test_a_foreach_batch_that_loses(spark: SparkSession, example: Table, tmp_path: Path) -> None:
    source = tmp_path / "source"
    one_row(spark).write.format("delta").save(str(source))

    def merge(batch: DataFrame, _: int) -> None:
        update = f"UPDATE {example} SET v = 'U' WHERE id = 1"
        error = failure(spark, example, lambda s: s.sql(update))
        raise error

    query = (
        spark.readStream.format("delta")
        .load(str(source))
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .foreachBatch(merge)
        .start()
    )
    with pytest.raises(interlock.ConcurrentAppendError) as caught:
        query.awaitTermination()
    assert caught.value.rule == "D8"
