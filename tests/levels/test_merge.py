"""A MERGE and another job, judged by the rows that its condition matches (policy `row_level`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from interlock.lab.model import in_order
from pyspark.sql import Column, DataFrame, SparkSession

from tests.kit.one_file import FILE, X1, changed, one_file, register_is_even
from tests.kit.source_reads import APPEND, BOTH, DELETE, NEW, Case, ids
from tests.kit.support import (
    Table,
    confs,
    jobs_started,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
)


def merge(source: str, on: str = "t.id = s.id", *clauses: str) -> str:
    """MERGE of a source, by default an upsert that sets v."""
    upsert = (
        "WHEN MATCHED THEN UPDATE SET v = 'M'",
        "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'M', 1)",
    )
    return f"MERGE INTO {{t}} t USING ({source}) s ON {on} {' '.join(clauses or upsert)}"


UPSERT_2_9 = merge(ids(2, 9))
M2, M9 = (2, "M", 1), (9, "M", 1)
MATCHED = "WHEN MATCHED THEN UPDATE SET v = 'M'"
LOOK = "WHEN MATCHED AND t.v = 'other' THEN UPDATE SET v = 'M'"
ADD = "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'M', 1)"
OTHERS = "THEN UPDATE SET v = 'N'"
GONE = "WHEN NOT MATCHED BY SOURCE AND t.p = 2 THEN DELETE"
BETWEEN = "t.id BETWEEN s.low AND s.high"
CASES = [
    Case("other-row", X1, UPSERT_2_9, BOTH, changed((1, "X", 1), M2, M9)),
    Case("same-row", X1.replace("id = 1", "id = 2"), UPSERT_2_9,
         (DELETE, "changed 1 row that it changes too", '{"id":2}'), changed((2, "X", 1))),
    Case("new-key", NEW.format(9), UPSERT_2_9,
         (APPEND, "(t.id = s.id) matches", '{"id":9}'),
         changed((9, "new", 3))),
    Case("other-new-key", NEW.format(8), UPSERT_2_9, BOTH, changed((8, "new", 3), M2, M9)),
    Case("one-new-key-twice", UPSERT_2_9, merge(ids(9)), (APPEND, "matches", '{"id":9}'),
         changed(M2, M9)),
    Case("two-new-keys", merge(ids(8)), merge(ids(9)), BOTH, changed((8, "M", 1), M9)),
    Case("moved-to-its-key", "UPDATE {t} SET id = 9 WHERE id = 1", UPSERT_2_9,
         (APPEND, "matches", '{"id":9}'), changed((9, "a", 1), without=(1,))),
    Case("row-that-it-only-reads", "DELETE FROM {t} WHERE id = 2",
         merge(ids(2), "t.id = s.id", LOOK, ADD),
         (DELETE, "(t.id = s.id) matches", '{"id":2}'),
         changed(without=(2,))),
    Case("inserts-only", NEW.format(9), merge(ids(2, 9), "t.id = s.id", ADD),
         (APPEND, "matches", '{"id":9}'), changed((9, "new", 3))),
    Case("inserts-only-others", NEW.format(8), merge(ids(2, 9), "t.id = s.id", ADD), BOTH,
         changed((8, "new", 3), M9)),
    Case("range", NEW.format(9), merge("SELECT 7 AS id, 7 AS low, 9 AS high", BETWEEN, ADD),
         (APPEND, "matches", '{"low":7,"high":9}'), changed((9, "new", 3))),
    Case("range-of-others", NEW.format(9),
         merge("SELECT 7 AS id, 7 AS low, 8 AS high", BETWEEN, ADD),
         BOTH, changed((9, "new", 3), (7, "M", 1))),
    Case("several-columns", NEW.format(9),
         merge("SELECT 9 AS id, 1 AS p", "t.id = s.id AND t.p = s.p"),
         BOTH, in_order((*changed((9, "new", 3)), M9))),
    Case("null-is-not-equal", NEW.format("NULL"), merge(ids("CAST(NULL AS INT)")), BOTH,
         in_order((*FILE, (None, "new", 3), (None, "M", 1)))),
    Case("null-safe", NEW.format("NULL"), merge(ids("CAST(NULL AS INT)"), "t.id <=> s.id"),
         (APPEND, "matches", '{"id":null}'), in_order((*FILE, (None, "new", 3)))),
    Case("function", "UPDATE {t} SET v = 'q' WHERE id = 1",
         merge("SELECT 9 AS id, 'Q' AS k", "upper(t.v) = s.k"),
         (APPEND, "matches", '{"k":"Q"}'), changed((1, "q", 1))),
    Case("other-type", NEW.format(9),
         merge("SELECT 9 AS id, CAST(9 AS DECIMAL(9, 3)) AS k", "t.id = s.k"),
         (APPEND, "matches", '{"k":9.000}'), changed((9, "new", 3))),
    Case("not-a-number", NEW.format(9),
         merge("SELECT 9 AS id, double('NaN') AS k", "IF(t.id = 9, double('NaN'), t.id) = s.k"),
         (APPEND, "matches", '{"k":"NaN"}'), changed((9, "new", 3))),
    Case("struct", NEW.format(9),
         merge("SELECT 9 AS id, named_struct('a', 9, 'b', 3) AS k", "struct(t.id, t.p) = s.k"),
         (APPEND, "matches", '{"k":{"a":9,"b":3}}'), changed((9, "new", 3))),
    Case("no-source-row", NEW.format(9), merge("SELECT 9 AS id WHERE 1 = 0"), BOTH,
         changed((9, "new", 3))),
    Case("constant", NEW.format(9), merge("SELECT 7 AS id", "t.id = 9"),
         (APPEND, "matches", "{}"), changed((9, "new", 3))),
    Case("by-source-matched", NEW.format(9), merge(ids(9), "t.id = s.id", MATCHED, ADD, GONE),
         (APPEND, "matches", '{"id":9}'), changed((9, "new", 3))),
    Case("by-source-others", X1, merge(ids(2), "t.id = s.id", MATCHED, GONE), BOTH,
         changed((1, "X", 1), M2, without=(3, 4))),
    Case("by-source-selected", "UPDATE {t} SET p = 2 WHERE id = 1",
         merge(ids(2), "t.id = s.id", MATCHED, GONE),
         (APPEND, "WHEN NOT MATCHED BY SOURCE reads", None), changed((1, "a", 2))),
    Case("by-source-all", NEW.format(9),
         merge(ids(2), "t.id = s.id", MATCHED, GONE.replace("AND t.p = 2 THEN DELETE", OTHERS)),
         (APPEND, "WHEN NOT MATCHED BY SOURCE reads", None), changed((9, "new", 3))),
    Case("self-merge", "UPDATE {t} SET id = 5 WHERE id = 3",
         merge("SELECT id + 10 AS id FROM {t} WHERE p = 2", "t.id = s.id", ADD),
         (APPEND, "(p = 2) selects", None), changed((5, "c", 2), without=(3,))),
    Case("self-merge-others", X1,
         merge("SELECT id + 10 AS id FROM {t} WHERE p = 2", "t.id = s.id", ADD),
         BOTH, changed((1, "X", 1), (13, "M", 1), (14, "M", 1))),
    Case("random-source", NEW.format(8),
         merge("SELECT 9 AS id WHERE rand() < 2", "t.id = s.id", ADD), BOTH,
         changed((8, "new", 3), M9)),
    Case("not-decidable", X1, merge(ids(2), "t.id = s.id AND interlock_is_even(t.id)"),
         (APPEND, "cannot be decided", None), changed((1, "X", 1))),
    Case("raises-on-a-row", "UPDATE {t} SET p = 0 WHERE id = 1", merge(ids(2), "6 / t.p = s.id"),
         (APPEND, "cannot be evaluated on them", None), changed((1, "a", 0))),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def functions(spark: SparkSession) -> None:
    register_is_even(spark)


@pytest.mark.variant_cases(
    but=[
        "other-row",
        "new-key",
        "one-new-key-twice",
        "row-that-it-only-reads",
        "range-of-others",
        "not-a-number",
        "by-source-others",
        "by-source-selected",
        "not-decidable",
    ]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_merge_after_another_job(spark: SparkSession, table_path: Path, case: Case) -> None:
    case.check(spark, table_path)


def by_builder(table: Table) -> Callable[[SparkSession], object]:
    def run(spark: SparkSession) -> None:
        source = spark.createDataFrame([(2,), (9,)], "id INT").alias("s")
        target = DeltaTable.forPath(spark, str(table.path)).alias("t")
        upsert = target.merge(source, "t.id = s.id").whenMatchedUpdate(set={"v": "'M'"})
        new: dict[str, str | Column] = {"id": "s.id", "v": "'M'", "p": "1"}
        upsert.whenNotMatchedInsert(values=new).execute()

    return run


def by_a_stream(table: Table) -> Callable[[SparkSession], object]:
    """MERGE in foreachBatch of a stream that reads another table."""

    def upsert(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(merge("SELECT * FROM batch").format(t=table))

    def run(spark: SparkSession) -> None:
        source = str(table.path.parent / "source")
        spark.createDataFrame([(2,), (9,)], "id INT").write.format("delta").save(source)
        stream = spark.readStream.format("delta").load(source)
        query = stream.writeStream.foreachBatch(upsert).trigger(availableNow=True)
        query.option("checkpointLocation", source + "/checkpoint").start().awaitTermination()

    return run


def by_a_spark_job(table: Table) -> Callable[[SparkSession], object]:
    """MERGE whose source is too large for the committing thread."""

    def run(spark: SparkSession) -> None:
        session = spark.newSession()
        session.conf.set("spark.interlock.judging.maxSourceRows", "1")
        session.sql(UPSERT_2_9.format(t=table))

    return run


@pytest.mark.variant_cases("by_a_stream")
@pytest.mark.parametrize("way", [by_builder, by_a_stream, by_a_spark_job])
def test_other_ways(
    spark: SparkSession,
    table_path: Path,
    way: Callable[[Table], Callable[[SparkSession], object]],
) -> None:
    table = one_file(spark, table_path)
    _, passed = race(spark, sql_job(NEW.format(8).format(t=table)), python_job("merge", way(table)))
    assert passed.error is None, str(passed.error)
    assert rows(spark, table) == changed((8, "new", 3), M2, M9)


@pytest.mark.parametrize("policy", ["row_level", "row_serializable"])
def test_a_key_that_another_job_inserts_blindly(
    spark: SparkSession, table_path: Path, policy: str
) -> None:
    """A blind INSERT is ordered after the MERGE, except under Serializable."""
    insert, upsert = "INSERT INTO {t} VALUES (9, 'i', 3)", merge(ids(9))
    table = one_file(spark, table_path, policy=policy)
    _, second = sql_race(spark, table, insert, upsert)
    if policy == "row_level":
        assert second.error is None
        assert rows(spark, table) == in_order((*FILE, (9, "i", 3), M9))
    else:
        assert type(second.error).__name__ == APPEND
        assert rows(spark, table) == changed((9, "i", 3))
        _, second = sql_race(spark, table, merge(ids(8)), insert.replace("9", "8"))
        assert second.error is None  # as if it had run after the MERGE
        assert rows(spark, table) == in_order((*FILE, (9, "i", 3), (8, "M", 1), (8, "i", 3)))


@pytest.mark.parametrize(("key", "part", "conflicts"), [(9, 5, True), (5, 3, False)])
def test_a_view_with_other_columns(
    spark: SparkSession, table_path: Path, key: int, part: int, conflicts: bool
) -> None:
    """ON names the view's columns, while the winner's rows have the table's."""
    table = one_file(spark, table_path)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW swapped AS SELECT p AS id, id AS p, v FROM {table}")
    winner = f"INSERT INTO {table} SELECT {key}, 'new', {part} FROM {table} WHERE id = 1"
    upsert = merge(ids(5), "t.id = s.id", ADD).format(t="swapped")
    _, second = race(spark, winner, upsert)
    assert second.held
    assert (type(second.error).__name__ == APPEND) == conflicts, second.error


def test_a_source_that_is_cached_meanwhile(spark: SparkSession, table_path: Path) -> None:
    """A cache may hold a later version of the source than the one that the MERGE read."""
    table, source = one_file(spark, table_path), Table(table_path.parent / "source")
    spark.sql(f"CREATE TABLE {source} USING delta AS {ids(9)}")

    def winner(session: SparkSession) -> None:
        session.sql(f"DELETE FROM {source}")
        session.table(str(source)).cache()
        session.sql(NEW.format(9).format(t=table))

    upsert = merge(f"SELECT * FROM {source}", "t.id = s.id", ADD).format(t=table)
    _, second = race(spark, python_job("winner", winner), sql_job(upsert))
    spark.catalog.clearCache()
    assert "may have other rows when it is read again" in str(second.error)
    assert rows(spark, table) == changed((9, "new", 3))


def test_any_number_of_source_rows(spark: SparkSession, table_path: Path) -> None:
    table = one_file(spark, table_path)
    with confs(spark, {"spark.interlock.judging.maxSourceRows": str(2**31 - 1)}):
        _, second = sql_race(spark, table, NEW.format(8), UPSERT_2_9)
    assert second.error is None


def test_many_source_rows_of_one_key(spark: SparkSession, table_path: Path) -> None:
    """From 1,000 rows on a Spark job compares them, and not the committing thread."""
    started = []
    for count in (900, 1100):
        table = one_file(spark, table_path / str(count))
        many = f"SELECT id + 50 AS id, 3 AS p FROM range({count})"
        upsert = merge(many, "t.p = s.p AND t.id > s.id", ADD).format(t=table)

        def run(session: SparkSession, upsert: str = upsert) -> None:
            started.append(jobs_started(session, upsert))

        winner = sql_job(NEW.format(9).format(t=table))
        _, second = race(spark, winner, python_job("merge", run))
        assert second.error is None
    few, more = started
    assert few < more


def test_a_comparison_that_takes_too_long(spark: SparkSession, table_path: Path) -> None:
    """The committing thread stops comparing after a time limit."""
    table = one_file(spark, table_path)
    many = "SELECT id, id + 1000000 AS low, id + 1000000 AS high FROM range(1000)"
    winner = (
        "INSERT INTO {t} SELECT r.id, 'new', 3 FROM {t} t CROSS JOIN range(100000) r WHERE p = 1"
    )
    with confs(spark, {"spark.interlock.judging.timeout": "1s"}):
        _, second = sql_race(spark, table, winner, merge(many, BETWEEN, ADD))
    assert "not compared within 1 s (spark.interlock.judging.timeout)" in str(second.error)
