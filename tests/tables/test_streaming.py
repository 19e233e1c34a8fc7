"""Streams: a query that loses stops with the conflict, and its checkpoint loses or doubles nothing.

A source file is one micro-batch. The batch with id 21 is held between its transaction's start and
its commit: the append at a barrier in its data, the MERGE of `foreachBatch` at a gate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import (
    ConcurrentAppendError,
    ConcurrentTransactionError,
    ConflictError,
)
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

from integration.compiled import compiled
from tests.kit.barrier import WAIT_SECONDS, barrier
from tests.kit.gates import phase_gate
from tests.kit.support import (
    Table,
    commit,
    deltalake_rows,
    make_table,
    rows,
    tags,
    unknown_files,
    versions,
)


@dataclass(frozen=True)
class Stream:
    """A folder of JSON files, one micro-batch each, written to a table by a query."""

    spark: SparkSession
    folder: Path
    table: Table

    def arrive(self, *identifiers: int) -> None:
        """Put one file with one row for each id."""
        (self.folder / "source").mkdir(exist_ok=True)
        for identifier in identifiers:
            row = json.dumps({"id": identifier, "v": "s"})
            (self.folder / "source" / f"{identifier}.json").write_text(row, encoding="utf-8")

    def read(self) -> DataFrame:
        reader = self.spark.readStream.schema("id INT, v STRING").option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder / "source"))

    def append(self, wait: Callable[[int], int] | None = None) -> StreamingQuery:
        """Append all that has arrived, then stop; ids pass through `wait`."""
        data = self.read()
        if wait is not None:
            data = data.withColumn("id", udf(wait, "int")("id"))
        return self.write(data)

    def write(self, data: DataFrame) -> StreamingQuery:
        """Append what has arrived as `data`, then stop."""
        return self._started(data.writeStream.format("delta"), str(self.table.path))

    def each_batch(self, run: Callable[[DataFrame, int], None]) -> StreamingQuery:
        """Call `run` for all that has arrived, then stop."""
        return self._started(self.read().writeStream.foreachBatch(run))

    def _started(self, writer: Any, path: str | None = None) -> StreamingQuery:
        checkpoint = str(self.folder / "checkpoint")
        configured = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        query: StreamingQuery = configured.start(path)
        return query


def stream_into(spark: SparkSession, folder: Path, policy: str) -> Stream:
    return Stream(spark, folder, make_table(spark, folder / "table", policy=policy, statements=()))


def end_of(query: StreamingQuery) -> Exception | None:
    """Wait until the query has stopped and return its error."""
    try:
        assert query.awaitTermination(WAIT_SECONDS)
    except Exception as error:
        return error
    return None


def batches_in_the_log(table: Table) -> list[int]:
    """List the batches that the streams' commits record, in the order of their versions."""
    actions = [action for version in versions(table) for action in commit(table, version)]
    return [action["txn"]["version"] for action in actions if "txn" in action]


class TestAppend:
    """A streaming append is an INSERT INTO: it fails by cell D7 and passes by T6."""

    def insert_while_batch_21_runs(self, stream: Stream) -> Exception | None:
        """Let batches 20 and 21 arrive, and an INSERT commit before batch 21 does."""
        stream.arrive(20, 21)
        with barrier() as at_21:
            query = stream.append(at_21.passing(21))
            at_21.await_arrival()
            stream.spark.sql(f"INSERT INTO {stream.table} VALUES (10, 'i')")
            at_21.open()
            return end_of(query)

    def test_that_loses_stops_and_restarted_writes_each_batch_once(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        stream = stream_into(spark, tmp_path, "maxcompute_delta")
        error = self.insert_while_batch_21_runs(stream)
        assert isinstance(error, ConflictError)
        assert (error.rule, error.operation_class, error.winner_version) == ("D7", "APPEND", 2)
        assert error.operation == "STREAMING UPDATE"
        assert rows(spark, stream.table) == ((10, "i"), (20, "s"))
        assert len(list(stream.table.path.glob("*.parquet"))) == 2

        stream.arrive(22)
        assert end_of(stream.append()) is None
        expected = ((10, "i"), (20, "s"), (21, "s"), (22, "s"))
        assert rows(spark, stream.table) == deltalake_rows(stream.table) == expected
        assert batches_in_the_log(stream.table) == [0, 1, 2]

    def test_does_not_lose_on_a_transactional_table(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        stream = stream_into(spark, tmp_path, "maxcompute_transactional")
        assert self.insert_while_batch_21_runs(stream) is None
        expected = ((10, "i"), (20, "s"), (21, "s"))
        assert rows(spark, stream.table) == deltalake_rows(stream.table) == expected
        assert tags(stream.table, 3)["interlock.winners"] == "2"
        assert batches_in_the_log(stream.table) == [0, 1]


class TestMergeOfEachBatch:
    """`foreachBatch` with a MERGE is an UPDATE: it fails by cells D8 and T7."""

    def test_that_loses_stops_and_restarted_merges_each_batch_once(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        stream = stream_into(spark, tmp_path, "maxcompute_transactional")
        stream.arrive(20, 21, 22)
        gate = phase_gate(spark)

        def merge(batch: DataFrame, batch_id: int) -> None:
            batch.createOrReplaceTempView("batch")
            if batch_id == 1:
                gate.install()  # Spark calls this function on the thread of the micro-batch
            try:
                batch.sparkSession.sql(
                    f"MERGE INTO {stream.table} t USING (SELECT * FROM batch) s ON t.id = 0 "
                    "WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.id) "
                    "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (0, s.id)"
                )
            finally:
                gate.uninstall()

        query = stream.each_batch(merge)
        assert gate.awaitArrival(WAIT_SECONDS * 1000)
        spark.sql(f"INSERT INTO {stream.table} VALUES (10, 'i')")
        gate.open()
        error = end_of(query)
        assert isinstance(error, ConflictError)
        assert (error.rule, error.operation) == ("T7", "MERGE")
        assert rows(spark, stream.table) == ((0, "20"), (10, "i"))

        assert end_of(stream.each_batch(merge)) is None
        expected = ((0, "202122"), (10, "i"))
        assert rows(spark, stream.table) == deltalake_rows(stream.table) == expected


@pytest.mark.variant_cases(but=["serializable"])
@pytest.mark.parametrize("level", ["serializable", "write_serializable"])
def test_two_queries_with_one_checkpoint(spark: SparkSession, tmp_path: Path, level: str) -> None:
    """S3, ConcurrentTransactionException: the later one of the two stops."""
    stream = stream_into(spark, tmp_path, level)
    stream.arrive(20)
    with barrier() as at_20:
        later = stream.append(at_20.passing(20))
        at_20.await_arrival()
        forget_queries(spark)
        twin = replace(stream, spark=spark.newSession())
        assert end_of(twin.append()) is None
        at_20.open()
        error = end_of(later)
    assert isinstance(error, ConcurrentTransactionError)
    assert rows(spark, stream.table) == deltalake_rows(stream.table) == ((20, "s"),)
    assert batches_in_the_log(stream.table) == [0]


def forget_queries(spark: SparkSession) -> None:
    """Make this process as ignorant of running queries as another one would be."""
    session: Any = spark._jsparkSession
    session.sharedState().activeStreamingQueries().clear()


class TestTwoStreamsIntoOneTable:
    """Each stream has its own checkpoint, so they are two separate writers."""

    def beside(
        self, spark: SparkSession, folder: Path, policy: str
    ) -> tuple[Stream, Stream, Exception | None]:
        """Let the second stream write batch 30 while the first stands at its batch 21."""
        first = stream_into(spark, folder, policy)
        second = replace(first, folder=folder / "second")
        second.folder.mkdir()
        first.arrive(20, 21)
        second.arrive(30)
        with barrier() as at_21:
            query = first.append(at_21.passing(21))
            at_21.await_arrival()
            assert end_of(second.append()) is None
            at_21.open()
            return first, second, end_of(query)

    def test_the_one_that_loses_goes_on_where_it_stopped(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        first, second, error = self.beside(spark, tmp_path, "maxcompute_delta")
        assert isinstance(error, ConflictError)
        assert (error.rule, error.winner_version) == ("D7", 2)
        assert rows(spark, first.table) == ((20, "s"), (30, "s"))
        for stream in (second, first):
            assert end_of(stream.append()) is None
        expected = ((20, "s"), (21, "s"), (30, "s"))
        assert rows(spark, first.table) == deltalake_rows(first.table) == expected


class TestThatReadsItsOwnTable:
    """Spark plans a batch, and what it reads, before the transaction of its sink begins."""

    @pytest.mark.parametrize(
        "condition",
        [
            "NOT EXISTS (SELECT 1 FROM {t} t WHERE t.id = h.id)",
            "id < 21 OR (SELECT count(*) FROM {t}) = 1",
        ],
        ids=["of rows", "of metadata"],
    )
    def test_in_a_subquery(self, spark: SparkSession, tmp_path: Path, condition: str) -> None:
        """Delta does not find reads in the batch's subqueries; Interlock does."""
        stream = stream_into(spark, tmp_path, "serializable")
        stream.arrive(20, 21)
        with barrier() as at_21:
            held = stream.read().withColumn("id", udf(at_21.passing(21), "int")("id"))
            held.createOrReplaceTempView("held")
            new = spark.sql(f"SELECT * FROM held h WHERE {condition.format(t=stream.table)}")
            query = stream.write(new)
            at_21.await_arrival()
            spark.sql(f"INSERT INTO {stream.table} VALUES (21, 'i')")
            at_21.open()
            error = end_of(query)
            assert isinstance(error, ConcurrentAppendError)
            assert (error.operation, error.winner_version) == ("STREAMING UPDATE", 2)
            assert rows(spark, stream.table) == ((20, "s"), (21, "i"))
            assert end_of(stream.write(new)) is None
        expected = ((20, "s"), (21, "i"))
        assert rows(spark, stream.table) == deltalake_rows(stream.table) == expected

    @pytest.mark.parametrize(
        ("policy", "loses"), [("serializable", True), ("maxcompute_transactional", False)]
    )
    def test_as_it_was_before_the_transaction(
        self, spark: SparkSession, tmp_path: Path, policy: str, loses: bool
    ) -> None:
        stream = stream_into(spark, tmp_path, policy)
        stream.arrive(20)
        new = stream.read().join(spark.table(str(stream.table)), "id", "left_anti")
        with held_planning(spark) as held:
            query = stream.write(new)
            assert held.awaitArrival(WAIT_SECONDS * 1000)
            spark.sql(f"INSERT INTO {stream.table} VALUES (20, 'i')")
            held.open()
            error = end_of(query)
        if loses:
            assert isinstance(error, ConcurrentAppendError)
            assert str(error.why).endswith("it had read them before its transaction began")
            assert (error.read_version, error.winner_version) == (0, 1)
            assert unknown_files(stream.table) == []
            assert end_of(stream.write(new)) is None
        else:
            assert error is None
        expected = ((20, "i"),) if loses else ((20, "i"), (20, "s"))
        assert rows(spark, stream.table) == deltalake_rows(stream.table) == expected


@contextmanager
def held_planning(spark: SparkSession) -> Iterator[Any]:
    """Hold batches of streams that start meanwhile, when it is planned what they read."""
    jvm: Any = spark._jvm
    held = compiled(spark, "HeldPlanning")()
    methods = spark._jsparkSession.experimental()
    set_strategies = getattr(methods, "extraStrategies_$eq")
    set_strategies(jvm.PythonUtils.toSeq([held]))
    try:
        yield held
    finally:
        held.open()
        set_strategies(jvm.PythonUtils.toSeq([]))
