"""Atomic blocks that change several tables of the default coordinator, on a local disk."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import interlock
import pytest
from interlock.errors import ConflictError
from interlock.lab.model import in_order
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from integration.small_disk import fill, may_mount, small_disk
from tests.blocks.several_tables import (
    LESS,
    MORE,
    START,
    Make,
    SeveralTables,
    begin,
    check,
    end,
    moves,
)
from tests.kit.commit_phases import observed
from tests.kit.log_replay import check_log
from tests.kit.support import deltalake_rows, rows


@pytest.fixture
def settings() -> dict[str, str]:
    return {}


class TestOnDisk(SeveralTables):
    STEP = 2
    JUDGED = "staged"
    FAILED = {"staged": 1, "ratifying": 2}  # noqa: RUF012
    KILLED = (
        ("published", 1, (3, 2), False),
        ("ratifying", 1, (3, 3), False),
        ("ratified", 1, (4, 4), True),
        ("published", 3, (4, 4), True),
    )


@pytest.mark.parametrize("phase", ["staging", "ratifying", "ratified"])
def test_a_disk_that_is_full(spark: SparkSession, make: Make, tmp_path: Path, phase: str) -> None:
    """That of the second table, before the decision or after it."""
    a, disk = make("a"), tmp_path / "disk"
    disk.mkdir()
    if not may_mount(disk):
        pytest.skip("needs the right to mount a disk")
    with small_disk(disk):
        b = make("disk/b")

        def at(found: str, _version: int) -> None:
            if found == phase:
                fill(disk / "full")

        begin(spark, *moves(a, b))
        is_made = phase != "staging"
        with observed(spark._jvm, at), suppress(Exception):
            end(spark)
        (disk / "full").unlink()
        for table, moved in ((a, LESS), (b, MORE)):
            spark.sql(f"INSERT INTO {table} VALUES (4, 40)")
            found = in_order((*(moved if is_made else START), (4, 40)))
            assert rows(spark, table) == deltalake_rows(table) == found
            check_log(table)


def test_a_batch_of_a_stream_goes_into_two_tables_once(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    """The query fails when its batch is committed, and writes it again when it is restarted."""
    source, events, totals = make("source"), make("events"), make("totals")
    fails = [True]

    def write(batch: DataFrame, number: int) -> None:
        once = {"txnAppId": "totals of events", "txnVersion": str(number)}
        with interlock.transaction(batch.sparkSession):
            append = batch.write.format("delta").mode("append").options(**once)
            append.save(events.location)
            total = batch.selectExpr("100 AS id", "CAST(sum(v) AS INT) AS v")
            total.write.format("delta").mode("append").options(**once).save(totals.location)
        if fails.pop():
            raise RuntimeError("the driver dies")

    def run() -> None:
        stream = spark.readStream.format("delta").load(source.location).writeStream
        stream = stream.foreachBatch(write).trigger(availableNow=True)
        stream.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="the driver dies"):
        run()
    fails.append(False)
    run()
    check(spark, events, (*START, *START), 3)
    check(spark, totals, (*START, (100, 60)), 3)


def test_a_person_is_deleted_from_five_tables(spark: SparkSession, make: Make) -> None:
    made = [make(f"t{n}") for n in range(5)]
    deletes = "; ".join(f"DELETE FROM {table} WHERE id = 2" for table in made)
    spark.sql(f"BEGIN ATOMIC {deletes}; END")
    for table in made:
        check(spark, table, (START[0], START[2]), 3)


def test_two_pipelines_share_a_staging_table(spark: SparkSession, make: Make) -> None:
    """Each moves what it finds there to its own table: no row is lost, and none is moved twice."""
    staging, a, b = make("staging"), make("a"), make("b")
    first, second = spark, spark.newSession()
    move = "INSERT INTO {} SELECT id + 10, v FROM {}"
    for session, target in ((first, a), (second, b)):
        begin(session, move.format(target, staging), f"DELETE FROM {staging}")
    spark.newSession().sql(f"INSERT INTO {staging} VALUES (4, 40)")
    assert len(end(first)) == 2
    with pytest.raises(ConflictError, match="statement 2 of the block that loses, DELETE"):
        end(second)
    assert rows(spark, staging) == ((4, 40),)
    begin(second, move.format(b, staging), f"DELETE FROM {staging}")
    end(second)
    assert rows(spark, a) == in_order((*START, (11, 10), (12, 20), (13, 30)))
    assert rows(spark, b) == in_order((*START, (14, 40)))
    assert rows(spark, staging) == ()
