"""One kind of error by every way into a table, on classic PySpark and on Spark Connect."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import delta.exceptions
import interlock
import pytest
from interlock.lab.example import PLAIN, Tables
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.kit.api_races import lose
from tests.kit.support import Table, latest_version, rows

FACTS = {
    "condition": "INTERLOCK_CONCURRENT_APPEND",
    "sqlstate": "2D521",
    "policy": "maxcompute_delta",
    "rule": "D7",
    "winner_class": "APPEND",
    "operation_class": "APPEND",
    "winner_operation": "INSERT INTO",
    "operation": "INSERT INTO",
    "read_version": 2,
    "winner_version": 3,
    "scope": "the whole table",
}


class Writers:
    """Every way to write a row, whose `id` passes through the function `held`."""

    def __init__(self, spark: SparkSession, table: Table, folder: Path) -> None:
        self._spark, self._table, self._folder = spark, table, folder
        self.queries: dict[str, StreamingQuery] = {}
        spark.sql("SELECT 20 AS id, 'j' AS v").write.format("delta").save(f"{folder}/source")

    def sql(self, held: str) -> None:
        self._spark.sql(f"INSERT INTO {self._table} SELECT {held}(20), 'j'")

    def save(self, held: str) -> None:
        self._frame(held).write.format("delta").mode("append").save(str(self._table.path))

    def write_to(self, held: str) -> None:
        self._frame(held).writeTo(str(self._table)).append()

    def insert_into(self, held: str) -> None:
        self._frame(held).write.insertInto(str(self._table))

    def stream(self, held: str) -> None:
        stream = self._source().selectExpr(f"{held}(id) AS id", "v").writeStream.format("delta")
        stream = stream.option("checkpointLocation", f"{self._folder}/stream")
        query = stream.trigger(availableNow=True).start(str(self._table.path))
        self.queries["stream"] = query
        query.awaitTermination()

    def foreach_batch(self, held: str) -> None:
        table = str(self._table)

        def merge(batch: DataFrame, _: int) -> None:
            batch.selectExpr(f"{held}(id) AS id", "v").createOrReplaceTempView("batch")
            batch.sparkSession.sql(
                f"MERGE INTO {table} AS t USING batch ON t.id = batch.id "
                "WHEN NOT MATCHED THEN INSERT *"
            )

        stream = self._source().writeStream.foreachBatch(merge)
        stream = stream.option("checkpointLocation", f"{self._folder}/batches")
        query = stream.trigger(availableNow=True).start()
        self.queries["foreach_batch"] = query
        query.awaitTermination()

    def _frame(self, held: str) -> DataFrame:
        return self._spark.sql(f"SELECT {held}(20) AS id, 'j' AS v")

    def _source(self) -> DataFrame:
        return self._spark.readStream.format("delta").load(f"{self._folder}/source")


class Race:
    """What each way to write raised after an INSERT had committed before them all."""

    def __init__(self, spark: SparkSession, table: Table, folder: Path) -> None:
        self._writers = Writers(spark, table, folder)
        names = ("sql", "save", "write_to", "insert_into", "stream", "foreach_batch")
        losers = {name: getattr(self._writers, name) for name in names}
        self._errors = lose(spark, losers, f"INSERT INTO {table} VALUES (10, 'i')")
        assert latest_version(table) == 3

    def error(self, name: str) -> interlock.ConcurrentAppendError:
        found = self._errors[name]
        assert isinstance(found, interlock.ConcurrentAppendError), found
        return found

    def query(self, name: str) -> StreamingQuery:
        return self._writers.queries[name]


@pytest.fixture(scope="module")
def race(spark: SparkSession, tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> Race:
    table = Table(tables.fresh(PLAIN, {"interlock.policy": "maxcompute_delta"}))
    return Race(spark, table, tmp_path_factory.mktemp("race"))


@pytest.mark.variant_cases(but=["connect-sql"])
@pytest.mark.parametrize("name", ["sql", "save", "write_to", "insert_into"])
def test_a_write_that_loses_says_everything(race: Race, name: str) -> None:
    error = race.error(name)
    assert {key: getattr(error, key) for key in FACTS} == FACTS
    assert error.table is not None
    assert error.table.startswith("delta.`")
    assert error.getCondition() == error.condition
    assert error.getSqlState() == error.sqlstate
    assert str(error) == error.message == error.getMessage()
    assert str(error).startswith("[INTERLOCK_CONCURRENT_APPEND] INSERT INTO lost: ")


def test_it_is_also_what_it_was(race: Race, mode: str) -> None:
    error = race.error("sql")
    assert isinstance(error, interlock.ConflictError)
    assert isinstance(error, delta.exceptions.ConcurrentAppendException)
    assert isinstance(error, PySparkException)
    client = "connect" if mode == "connect" else "captured"
    modules = {base.__module__ for base in type(error).__mro__}
    assert f"pyspark.errors.exceptions.{client}" in modules


@pytest.mark.variant_cases("connect")
def test_a_stream_that_loses(race: Race) -> None:
    error = race.error("stream")
    assert isinstance(error, StreamingQueryException)
    assert isinstance(error, delta.exceptions.ConcurrentAppendException)
    expected = {**FACTS, "operation": "STREAMING UPDATE"}
    assert {key: getattr(error, key) for key in FACTS} == expected
    kept = race.query("stream").exception()
    assert isinstance(kept, interlock.ConcurrentAppendError)
    assert isinstance(kept, StreamingQueryException)
    assert (kept.rule, kept.winner_version) == ("D7", 3)


@pytest.mark.variant
def test_foreach_batch_that_loses(race: Race) -> None:
    """On Connect only the error's text comes back, without its classes."""
    kept = race.query("foreach_batch").exception()
    for error in (race.error("foreach_batch"), cast(interlock.ConflictError, kept)):
        assert isinstance(error, StreamingQueryException)
        assert isinstance(error, delta.exceptions.ConcurrentAppendException)
        expected = {**FACTS, "rule": "D8", "operation_class": "MUTATE", "operation": "MERGE"}
        known = {key: getattr(error, key) for key in FACTS if getattr(error, key) is not None}
        assert known.items() <= expected.items()
        assert set(FACTS) - set(known) <= {"winner_class", "operation_class"}


def test_deltas_own_conflict(spark: SparkSession, example: Table, mode: str) -> None:
    def insert(held: str) -> None:
        spark.sql(f"INSERT INTO {example} SELECT {held}(20), 'j'")

    error = lose(spark, {"insert": insert}, f"ALTER TABLE {example} ADD COLUMN w INT")["insert"]
    assert isinstance(error, interlock.MetadataChangedError)
    assert isinstance(error, delta.exceptions.MetadataChangedException)
    assert error.sqlstate == "2D521"
    assert error.policy is None
    assert rows(spark, example) == ((1, "a", None), (2, "b", None), (3, "c", None))


def test_retry_runs_the_statement_again(spark: SparkSession, example: Table) -> None:
    def insert(held: str) -> None:
        statement = f"INSERT INTO {example} SELECT {held}(20), 'j'"
        interlock.retry(lambda: spark.sql(statement), attempts=2, backoff=0)

    error = lose(spark, {"insert": insert}, f"INSERT INTO {example} VALUES (10, 'i')")["insert"]
    assert error is None
    assert latest_version(example) == 4
    assert {(10, "i"), (20, "j")} <= set(rows(spark, example))


def test_a_usage_error(spark: SparkSession, example: Table) -> None:
    with pytest.raises(interlock.UsageError, match="maxcompute_delta") as caught:
        spark.sql(f"ALTER TABLE {example} SET TBLPROPERTIES ('interlock.policy' = 'maxcompute')")
    assert caught.value.condition == "INTERLOCK_UNKNOWN_POLICY"
    assert caught.value.sqlstate == "42616"
    assert not isinstance(caught.value, interlock.ConflictError)


@pytest.mark.variant_cases("connect")
def test_other_errors_stay_what_they_are(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql("SELECT * FROM no_such_table").collect()
    assert not isinstance(caught.value, interlock.InterlockError)
