"""What statements see of blocks over several tables that are visible in a part of them only."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from interlock.lab.model import in_order
from pyspark.sql import SparkSession

from tests.blocks.several_tables import LESS, MORE, START, Make, begin, check, end, moves
from tests.kit.commit_phases import observed
from tests.kit.snapshots import forget_logs
from tests.kit.support import Table, deltalake_rows, latest_version, log_of, make_table, rows

Half = tuple[Table, Table]
WHOLE_BLOCKS = "org.apache.spark.sql.delta.interlock.block.WholeBlocks"
SUM = "(SELECT CAST(sum(v) AS INT) FROM {})"


@pytest.fixture
def half(spark: SparkSession, make: Make, tmp_path: Path) -> Half:
    """Two tables as if a process had died that moved 5 from the first to the second, when the
    block was decided and visible in the first one only.
    """
    tables = make("a"), make("b")
    copies = tmp_path / "half"

    def at(phase: str, version: int) -> None:
        if (phase, version) == ("published", 3) and not copies.exists():
            for table in tables:
                shutil.copytree(table.path / "_delta_log", copies / table.path.name)

    begin(spark, *moves(*tables))
    with observed(spark._jvm, at):
        end(spark)
    for table in tables:
        shutil.rmtree(table.path / "_delta_log")
        shutil.move(copies / table.path.name, table.path / "_delta_log")
    forget_logs(spark)
    assert [latest_version(table) for table in tables] == [3, 2]
    return tables


def test_a_merge_from_the_other_table(spark: SparkSession, half: Half) -> None:
    """The source has the block if the table has it."""
    a, b = half
    source = f"(SELECT id + 10 AS id, v FROM {b} WHERE id = 1)"
    spark.newSession().sql(
        f"MERGE INTO {a} t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    check(spark, a, (*LESS, (11, 15)), 4)
    check(spark, b, MORE, 3)


def by_query(spark: SparkSession, a: Table, b: Table) -> object:
    (row,) = spark.sql(f"SELECT {SUM.format(b)}, {SUM.format(a)}").collect()
    return tuple(row)


def by_insert(spark: SparkSession, a: Table, b: Table) -> object:
    spark.sql(f"INSERT INTO {b} SELECT 50, {SUM.format(a)}")
    (copied,) = (row[1] for row in rows(spark, b) if row[0] == 50)
    return sum(row[1] for row in MORE), copied


def by_block(spark: SparkSession, a: Table, b: Table) -> object:
    spark.sql("BEGIN TRANSACTION")
    found = tuple(spark.sql(f"SELECT sum(v) FROM {t}").collect()[0][0] for t in (b, a))
    spark.sql("ROLLBACK")
    return found


@pytest.mark.parametrize("reads", [by_query, by_insert, by_block])
def test_what_was_committed_since_is_there(
    spark: SparkSession, half: Half, reads: Callable[[SparkSession, Table, Table], object]
) -> None:
    """The first table has a later commit, and the other one is named before it."""
    a, b = half
    own = spark.newSession()
    own.sql(f"UPDATE {a} SET v = 1000 WHERE id = 3")
    assert reads(own, a, b) == (65, 1025)
    assert rows(own, a) == deltalake_rows(a) == in_order((*LESS[:-1], (3, 1000)))


def test_a_table_that_was_put_back_behind_a_block(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    """A query reads the other one without the block too, and the log names who lacks it."""
    a, b = make("a"), make("b")
    backup = shutil.copytree(b.path / "_delta_log", tmp_path / "backup")
    begin(spark, *moves(a, b))
    end(spark)
    shutil.rmtree(b.path / "_delta_log")
    shutil.move(backup, b.path / "_delta_log")
    forget_logs(spark)
    with log_of(spark, WHOLE_BLOCKS) as log:
        assert by_query(spark.newSession(), a, b) == (60, 60)
        assert f"{b.path} ends with version 1, and another table" in str(log)
    check(spark, a, LESS, 3)
    assert rows(spark, b) == deltalake_rows(b) == START


class Pause:
    """A function of SQL that waits once, at its first row, until the test lets it go on."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        token, self._entered, self._go = (str(folder / name) for name in ("token", "in", "go"))
        Path(token).touch()
        os.mkfifo(self._entered)
        os.mkfifo(self._go)
        spark.udf.register("pause", _waiting(token, self._entered, self._go), "boolean")

    def during(self, statement: Callable[[], object], work: Callable[[], object]) -> None:
        """Run a statement, and work when it waits."""
        running = threading.Thread(target=statement)
        running.start()
        Path(self._entered).read_text(encoding="utf-8")
        try:
            work()
        finally:
            Path(self._go).write_text("", encoding="utf-8")
            running.join()


def _waiting(token: str, entered: str, go: str) -> Callable[[int], bool]:
    def pause(_: int) -> bool:
        try:
            os.unlink(token)
        except FileNotFoundError:
            return True
        Path(entered).write_text("", encoding="utf-8")
        Path(go).read_text(encoding="utf-8")
        return True

    return pause


@pytest.mark.parametrize("policy", ["row_level", "row_serializable"])
def test_a_block_between_the_queries_of_a_merge(
    spark: SparkSession, make: Make, tmp_path: Path, policy: str
) -> None:
    """Its source has read one table of the block, and its SET reads the other."""
    a, b, c = make("a", policy), make("b"), make("c")
    session, other = spark.newSession(), spark.newSession()
    source = f"SELECT 2 AS id, CAST(sum(v) AS INT) AS s FROM {b} WHERE pause(id)"
    merge = (
        f"MERGE INTO {a} t USING ({source}) s ON t.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET v = s.s + {SUM.format(c)}"
    )

    def move() -> None:
        begin(other, *moves(b, c))
        assert end(other) == [3, 3]

    Pause(session, tmp_path).during(lambda: session.sql(merge), move)
    check(spark, a, ((1, 10), (2, 120), (3, 30)), 2)
    check(spark, b, LESS, 3)


@pytest.mark.parametrize("last", ["b", "c"])
def test_two_blocks_while_a_merge_reads_its_source(
    spark: SparkSession, make: Make, tmp_path: Path, last: str
) -> None:
    """In whatever order it names their tables; its own is one of those of the first block."""
    a, b, c, d = (make(name) for name in "abcd")
    session, other = spark.newSession(), spark.newSession()
    named = (b, c) if last == "c" else (c, b)
    merge = (
        f"MERGE INTO {a} t USING (SELECT id FROM {d} WHERE pause(id) AND id = 2) s "
        f"ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {' + '.join(map(SUM.format, named))}"
    )

    def move() -> None:
        begin(other, *moves(a, b))
        assert end(other) == [3, 3]
        begin(other, *moves(b, c))
        assert end(other) == [5, 3]

    Pause(session, tmp_path).during(lambda: session.sql(merge), move)
    check(spark, a, ((1, 5), (2, 120), (3, 30)), 4)


def test_a_frame_from_before_the_table_was_exclusive(spark: SparkSession, make: Make) -> None:
    open_ = {"interlock.exclusive": "false"}
    a, b = make("a", **open_), make("b", **open_)
    views = ("frame_a", "frame_b")
    for view, table in zip(views, (a, b), strict=True):
        spark.table(str(table)).createOrReplaceTempView(view)
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.exclusive' = 'true')")
    other = spark.newSession()
    query = f"SELECT {' + '.join(map(SUM.format, views))}"
    found: list[int] = []

    def at(phase: str, version: int) -> None:
        if (phase, version) == ("published", 4) and not found:
            found.append(0)  # the query publishes the other part itself
            found[0] = spark.sql(query).collect()[0][0]

    begin(other, *moves(a, b))
    with observed(spark._jvm, at):
        assert end(other) == [4, 4]
    assert found == [120]


def test_a_stream_that_is_started_in_a_block(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    """It runs in a session of its own, which does not see what the block has written."""
    a, new = make("a"), make("new")
    spark.sql("BEGIN TRANSACTION")
    spark.sql(f"UPDATE {a} SET v = 777 WHERE id = 1")
    known = spark.table(str(a)).withColumnRenamed("v", "w")
    read = spark.readStream.format("delta").load(new.location).join(known, "id")
    written = read.writeStream.format("parquet").trigger(availableNow=True)
    written.option("checkpointLocation", str(tmp_path / "c")).start(
        str(tmp_path / "out")
    ).awaitTermination()
    spark.sql("ROLLBACK")
    out = spark.newSession().read.parquet(str(tmp_path / "out")).select("id", "w")
    assert in_order(tuple(map(tuple, out.collect()))) == START


def test_what_others_change_of_columns_that_a_block_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The highest value of an identity column, or a comment, is no other column."""
    table = make_table(
        spark,
        tmp_path / "t",
        policy="row_level",
        columns="(id BIGINT GENERATED ALWAYS AS IDENTITY, v INT) USING delta",
        statements=("INSERT INTO {t} (v) VALUES (1)",),
    )
    spark.sql("BEGIN TRANSACTION")
    assert rows(spark, table) == ((1, 1),)
    other = spark.newSession()
    other.sql(f"INSERT INTO {table} (v) VALUES (2)")
    other.sql(f"ALTER TABLE {table} ALTER COLUMN v COMMENT 'of something'")
    assert rows(spark, table) == ((1, 1),)
    spark.sql("ROLLBACK")
    assert len(rows(spark, table)) == 2
