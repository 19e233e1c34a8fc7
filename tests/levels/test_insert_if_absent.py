"""An INSERT of what the table does not have yet, judged by its keys (policy `row_level`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from interlock.errors import ConcurrentAppendError
from interlock.lab.model import in_order
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from tests.kit.log_replay import check_log
from tests.kit.one_file import (
    COLUMNS,
    FILE,
    INSERT,
    X1,
    changed,
    one_file,
    register_is_even,
)
from tests.kit.source_reads import APPEND, BOTH, DELETE, NEW, Case, ids
from tests.kit.support import (
    Table,
    deltalake_rows,
    jobs_started,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_race,
)

SAME_KEY = "t.id = s.id"


def anti_join(source: str, on: str = SAME_KEY, target: str = "{t}") -> str:
    return (
        f"INSERT INTO {{t}} SELECT s.id, 'A', 1 FROM ({source}) s LEFT ANTI JOIN {target} t ON {on}"
    )


def not_exists(source: str, on: str = SAME_KEY, more: str = "true") -> str:
    return (
        f"INSERT INTO {{t}} SELECT s.id, 'A', 1 FROM ({source}) s "
        f"WHERE NOT EXISTS (SELECT 1 FROM {{t}} t WHERE {on}) AND {more}"
    )


def outer_join(source: str, on: str = SAME_KEY) -> str:
    return (
        f"INSERT INTO {{t}} SELECT s.id, 'A', 1 FROM ({source}) s LEFT JOIN {{t}} t ON {on} "
        "WHERE t.id IS NULL"
    )


def semi_join(source: str) -> str:
    return anti_join(source).replace("ANTI", "SEMI")


KEYS = ids(2, 9)
A8, A9, N8, N9 = (8, "A", 1), (9, "A", 1), (8, "new", 3), (9, "new", 3)
SAME = (APPEND, "matches", '{"id":9}')
EVERY = (APPEND, "it reads every row", None)
RANGES = "SELECT col1 AS id, col1 AS low, col2 AS high FROM VALUES (7, {}), (20, 21)"
BETWEEN = "t.id BETWEEN s.low AND s.high"
OF_P3 = "(SELECT id, p FROM {t} WHERE p = 3)"
ITSELF = "SELECT id + 10 AS id FROM {t} WHERE p = 2"
TWICE = "SELECT id FROM {t} WHERE id IS NOT NULL"
NOT_IN = f"INSERT INTO {{t}} SELECT id, 'A', 1 FROM ({KEYS}) WHERE id NOT IN (SELECT id FROM {{t}})"
UNION = "SELECT id FROM range(8, 9) UNION ALL SELECT id FROM range(9, 10)"
RANDOM = "SELECT id FROM range(9, 10) WHERE rand() < id"
LIMITED = "SELECT id FROM range(9, 20) LIMIT 2"
CASES = [
    Case("other-key", NEW.format(8), anti_join(KEYS), BOTH, changed(N8, A9)),
    Case("same-key", NEW.format(9), anti_join(KEYS), SAME, changed(N9)),
    Case("two-of-one-key", anti_join(ids(9, 8)), anti_join(KEYS), SAME, changed(A8, A9)),
    Case("exists-other-key", NEW.format(8), not_exists(KEYS), BOTH, changed(N8, A9)),
    Case("exists-same-key", NEW.format(9), not_exists(KEYS), SAME, changed(N9)),
    Case("exists-other-conditions", NEW.format(9),
         not_exists(ids(8, 9), more="s.id < 9 AND s.id IN (SELECT 8)"),
         BOTH, changed(N9, A8)),
    Case("outer-other-key", NEW.format(8), outer_join(KEYS), BOTH, changed(N8, A9)),
    Case("outer-same-key", NEW.format(9), outer_join(KEYS), SAME, changed(N9)),
    Case("semi-other-key", X1, semi_join(KEYS), BOTH,
         in_order((*changed((1, "X", 1)), (2, "A", 1)))),
    Case("key-deleted", "DELETE FROM {t} WHERE id = 2", anti_join(KEYS),
         (DELETE, "matches", '{"id":2}'), changed(without=(2,))),
    Case("null-is-not-equal", NEW.format("NULL"), anti_join(ids("NULL", 9)), BOTH,
         in_order((*FILE, (None, "new", 3), (None, "A", 1), A9))),
    Case("null-safe", NEW.format("NULL"), anti_join(ids("NULL", 9), "t.id <=> s.id"),
         (APPEND, "matches", '{"id":null}'), in_order((*FILE, (None, "new", 3)))),
    Case("range", NEW.format(9), anti_join(RANGES.format(8), BETWEEN), BOTH,
         changed(N9, (7, "A", 1), (20, "A", 1))),
    Case("filtered-target", NEW.format(9), anti_join(KEYS, target=OF_P3), SAME, changed(N9)),
    Case("filtered-target-of-others", "UPDATE {t} SET id = 9 WHERE id = 1",
         anti_join(KEYS, target=OF_P3), BOTH,
         in_order((*changed((9, "a", 1), without=(1,)), A9, (2, "A", 1)))),
    Case("reads-itself-too", "UPDATE {t} SET id = 5 WHERE id = 3", anti_join(ITSELF),
         (APPEND, "(p = 2) selects", None), changed((5, "c", 2), without=(3,))),
    Case("reads-itself-other-rows", X1, anti_join(ITSELF), BOTH,
         changed((1, "X", 1), (13, "A", 1), (14, "A", 1))),
    Case("one-scan-for-two-reads", NEW.format(9), anti_join(TWICE, "t.id + 10 = s.id"),
         (APPEND, "selects", None), changed(N9)),
    Case("one-scan-for-two-joins", NEW.format(7), anti_join(UNION), BOTH,
         changed((7, "new", 3), A8, A9)),
    Case("one-scan-for-two-joins-same-key", NEW.format(9), anti_join(UNION), SAME, changed(N9)),
    Case("random-source", NEW.format(8), not_exists(RANDOM), EVERY, changed(N8)),
    Case("limited-source", NEW.format(8), not_exists(LIMITED), EVERY, changed(N8)),
    Case("not-decidable", NEW.format(8), anti_join(KEYS, "t.id = s.id AND interlock_is_even(s.id)"),
         (APPEND, "cannot be decided", None), changed(N8)),
    Case("right-join", NEW.format(8), anti_join(KEYS).replace("LEFT ANTI", "RIGHT"),
         EVERY, changed(N8)),
    Case("not-in", NEW.format(8), NOT_IN, EVERY, changed(N8)),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def functions(spark: SparkSession) -> None:
    register_is_even(spark)


@pytest.mark.variant_cases(
    but=[
        "other-key",
        "same-key",
        "key-deleted",
        "filtered-target-of-others",
        "reads-itself-too",
        "one-scan-for-two-reads",
        "not-decidable",
    ]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_insert_after_another_job(spark: SparkSession, table_path: Path, case: Case) -> None:
    assert "MERGE" not in case.check(spark, table_path)


def absent(spark: SparkSession, target: DataFrame) -> DataFrame:
    source = spark.sql(KEYS)
    found = source.join(target, source.id == target.id, "left_anti")
    return found.select("id", lit("A").alias("v"), lit(1).alias("p"))


def by_insert_into(spark: SparkSession, name: str) -> None:
    absent(spark, spark.table(name)).write.insertInto(name)


def by_save_as_table(spark: SparkSession, name: str) -> None:
    absent(spark, spark.table(name)).write.format("delta").mode("append").saveAsTable(name)


def by_save(spark: SparkSession, path: str) -> None:
    target = spark.read.format("delta").load(path)
    absent(spark, target).write.format("delta").mode("append").save(path)


def by_a_spark_job(spark: SparkSession, name: str) -> None:
    """A source that is too large for the committing thread."""
    session = spark.newSession()
    session.conf.set("spark.interlock.judging.maxSourceRows", "1")
    absent(session, session.table(name)).writeTo(name).append()


def race_twice(
    spark: SparkSession,
    table: Table,
    winner: Callable[[SparkSession], object],
    later: Callable[[SparkSession], object],
) -> None:
    """Run two INSERTs of key 9 after a winner with other keys: the first one passes it."""
    jobs = [python_job("first", later), python_job("second", later)]
    won, passed, lost = race(spark, python_job("winner", winner), *jobs)
    assert won.error is None
    assert passed.held
    assert passed.error is None
    assert lost.held
    assert isinstance(lost.error, ConcurrentAppendError)
    assert '{"id":9}' in lost.error.source_rows
    assert latest_version(table) == 3
    check_log(table)


@pytest.mark.variant_cases(but=["by_a_spark_job"])
@pytest.mark.parametrize("way", [by_insert_into, by_save_as_table, by_save, by_a_spark_job])
def test_data_frames(
    spark: SparkSession, table_path: Path, way: Callable[[SparkSession, str], None]
) -> None:
    table = one_file(spark, table_path)
    name = f"absent_{way.__name__}"
    spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{table.path}'")
    target = str(table.path) if way is by_save else name
    race_twice(
        spark,
        table,
        lambda session: session.sql(NEW.format(8).format(t=name)),
        lambda session: way(session, target),
    )
    spark.sql(f"DROP TABLE {name}")
    assert rows(spark, table) == deltalake_rows(table) == changed(N8, A9)


@pytest.mark.parametrize(
    ("columns", "properties"),
    [("PARTITIONED BY (p)", {}), ("", {"delta.enableDeletionVectors": "false"})],
    ids=["partitioned", "no-deletion-vectors"],
)
def test_other_tables(
    spark: SparkSession, table_path: Path, columns: str, properties: dict[str, str]
) -> None:
    table = make_table(
        spark,
        table_path,
        policy="row_level",
        columns=f"{COLUMNS} {columns}",
        properties=properties,
        statements=(INSERT,),
    )
    insert = anti_join(ids(9, 20)).format(t=table)
    race_twice(
        spark,
        table,
        lambda session: session.sql(f"UPDATE {table} SET id = 8 WHERE id = 1"),
        lambda session: session.sql(insert),
    )
    expected = changed((8, "a", 1), A9, (20, "A", 1), without=(1,))
    assert rows(spark, table) == deltalake_rows(table) == expected


def test_a_view_with_other_columns(spark: SparkSession, table_path: Path) -> None:
    """ON names the view's columns, while the winner's rows have the table's."""
    table = one_file(spark, table_path)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW swapped AS SELECT p AS id, id + 1 AS p, v FROM {table}")
    insert = anti_join(KEYS, "t.p = s.id + 1", target="swapped").format(t=table)
    race_twice(
        spark,
        table,
        lambda session: session.sql(
            f"INSERT INTO {table} SELECT 5, 'new', 9 FROM {table} WHERE id = 1"
        ),
        lambda session: session.sql(insert),
    )


def test_the_source_is_the_one_that_was_read(spark: SparkSession, table_path: Path) -> None:
    """The winner changes the source's table, caches it, and inserts one of its new keys."""
    table, source = one_file(spark, table_path / "t"), Table(table_path / "s")
    spark.sql(f"CREATE TABLE {source} USING delta AS {KEYS}")

    def winner(session: SparkSession) -> None:
        session.sql(f"UPDATE {source} SET id = id - 1")
        session.table(str(source)).cache()
        session.sql(NEW.format(8).format(t=table))

    insert = anti_join(f"SELECT id FROM {source}").format(t=table)
    race_twice(spark, table, winner, lambda session: session.sql(insert))
    spark.catalog.clearCache()
    assert rows(spark, table) == changed(N8, A9)


@pytest.mark.parametrize("policy", ["row_level", "row_serializable"])
def test_a_key_that_another_job_inserts_blindly(
    spark: SparkSession, table_path: Path, policy: str
) -> None:
    """A blind INSERT is ordered after this one, except under Serializable."""
    table = one_file(spark, table_path, policy=policy)
    blind = [f"INSERT INTO {{t}} VALUES ({key}, 'i', 3)" for key in (8, 9)]
    *_, last = sql_race(spark, table, *blind, anti_join(KEYS))
    found = in_order((*FILE, (8, "i", 3), (9, "i", 3)))
    if policy == "row_level":
        assert last.error is None
        assert rows(spark, table) == in_order((*found, A9))
    else:
        assert isinstance(last.error, ConcurrentAppendError)
        assert last.error.winner_version == 3
        assert rows(spark, table) == found


def cached(spark: SparkSession, path: Path) -> DataFrame:
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS {KEYS}")
    return spark.table(f"delta.`{path}`").cache()


def of_files(spark: SparkSession, path: Path) -> DataFrame:
    spark.sql(KEYS).write.parquet(str(path))
    return spark.read.parquet(str(path))


def by_a_function(spark: SparkSession, path: Path) -> DataFrame:
    return spark.range(9, 10).where("interlock_is_even(id + 1)")


@pytest.mark.parametrize("make", [cached, of_files, by_a_function])
def test_a_source_that_may_have_other_rows_when_it_is_read_again(
    spark: SparkSession, table_path: Path, make: Callable[[SparkSession, Path], DataFrame]
) -> None:
    """A source that is not deterministic makes the INSERT a reader of the whole table."""
    table = one_file(spark, table_path / "t")
    make(spark, table_path / "s").createOrReplaceTempView("unpinned")
    _, second = sql_race(spark, table, NEW.format(8), anti_join("SELECT * FROM unpinned"))
    spark.catalog.clearCache()
    assert isinstance(second.error, ConcurrentAppendError)
    assert second.error.source_rows == ()
    assert rows(spark, table) == changed(N8)


def test_without_a_winner_nothing_is_read_again(spark: SparkSession, table_path: Path) -> None:
    counts = []
    for policy in ("row_level", "maxcompute_delta"):
        table = one_file(spark, table_path / policy, policy=policy)
        counts.append(jobs_started(spark, anti_join(KEYS).format(t=table)))
    assert counts[0] == counts[1]
