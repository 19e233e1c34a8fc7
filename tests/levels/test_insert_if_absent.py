"""An INSERT of what the table does not have yet, judged by its keys (policy `row_level`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from interlock.errors import ConflictError
from interlock.lab.model import Rows, in_order
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
from tests.kit.support import (
    Table,
    deltalake_rows,
    jobs_started,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
)

# It reads a row of the table, so it does not count as committed behind the INSERT.
NEW = "INSERT INTO {{t}} SELECT {0}, 'new', 3 FROM {{t}} WHERE id = 1"
BOTH = None
APPEND, DELETE = "ConcurrentAppendError", "ConcurrentDeleteReadError"
SAME_KEY = "t.id = s.id"


def ids(*values: int | str) -> str:
    """A source of ids."""
    return "SELECT col1 AS id FROM VALUES " + ", ".join(f"({value})" for value in values)


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


@dataclass(frozen=True)
class Case:
    """Two statements on one file of four rows.

    Attributes:
        fails: the error of the later one, with what it says and the row of its source that it
            shows; None if both succeed
        rows: the rows in the end

    """

    id: str
    earlier: str
    later: str
    fails: tuple[str, str, str | None] | None
    rows: Rows


KEYS = ids(2, 9)
A8, A9, N8, N9 = (8, "A", 1), (9, "A", 1), (8, "new", 3), (9, "new", 3)
SAME = (APPEND, "matches rows that the earlier job added", '{"id":9}')
EVERY = (APPEND, "it reads every row", None)
RANGES = "SELECT col1 AS id, col1 AS low, col2 AS high FROM VALUES (7, {}), (20, 21)"
BETWEEN = "t.id BETWEEN s.low AND s.high"
OF_P3 = "(SELECT id, p FROM {t} WHERE p = 3)"
ITSELF = "SELECT id + 10 AS id FROM {t} WHERE p = 2"
TWICE = "SELECT id FROM {t} WHERE id IS NOT NULL"
NOT_IN = (
    f"INSERT INTO {{t}} SELECT id, 'A', 1 FROM ({KEYS}) "
    "WHERE id NOT IN (SELECT id FROM {t} WHERE id IS NOT NULL)"
)
UNION = "SELECT id FROM range(8, 9) UNION ALL SELECT id FROM range(9, 10)"
CASES = [
    Case("other-key", NEW.format(8), anti_join(KEYS), BOTH, changed(N8, A9)),
    Case("same-key", NEW.format(9), anti_join(KEYS), SAME, changed(N9)),
    Case("two-of-other-keys", anti_join(ids(2, 8)), anti_join(KEYS), BOTH, changed(A8, A9)),
    Case("two-of-one-key", anti_join(KEYS), anti_join(ids(9, 8)), SAME, changed(A9)),
    Case("two-of-one-key-turned", anti_join(ids(9, 8)), anti_join(KEYS), SAME, changed(A8, A9)),
    Case("exists-other-key", NEW.format(8), not_exists(KEYS), BOTH, changed(N8, A9)),
    Case("exists-same-key", NEW.format(9), not_exists(KEYS), SAME, changed(N9)),
    Case("exists-or", NEW.format(9), not_exists(KEYS).replace("AND true", "OR s.id = 2"),
         SAME, changed(N9)),
    Case("exists-other-conditions", NEW.format(9),
         not_exists(ids(8, 9), more="s.id < 9 AND s.id IN (SELECT 8)"),
         BOTH, changed(N9, A8)),
    Case("outer-other-key", NEW.format(8), outer_join(KEYS), BOTH, changed(N8, A9)),
    Case("outer-same-key", NEW.format(9), outer_join(KEYS), SAME, changed(N9)),
    Case("semi-other-key", X1, semi_join(KEYS), BOTH,
         in_order((*changed((1, "X", 1)), (2, "A", 1)))),
    Case("semi-same-key", NEW.format(9), semi_join(KEYS), SAME, changed(N9)),
    Case("key-deleted", "DELETE FROM {t} WHERE id = 2", anti_join(KEYS),
         (DELETE, "matches rows that the earlier job removed", '{"id":2}'), changed(without=(2,))),
    Case("moved-to-its-key", "UPDATE {t} SET id = 9 WHERE id = 1", anti_join(KEYS), SAME,
         changed((9, "a", 1), without=(1,))),
    Case("other-row-updated", X1, anti_join(KEYS), BOTH, changed((1, "X", 1), A9)),
    Case("null-is-not-equal", NEW.format("NULL"), anti_join(ids("NULL", 9)), BOTH,
         in_order((*FILE, (None, "new", 3), (None, "A", 1), A9))),
    Case("null-safe", NEW.format("NULL"), anti_join(ids("NULL", 9), "t.id <=> s.id"),
         (APPEND, "matches rows", "{}"), in_order((*FILE, (None, "new", 3)))),
    Case("range", NEW.format(9), anti_join(RANGES.format(9), BETWEEN),
         (APPEND, "matches rows", '{"low":7,"high":9}'), changed(N9)),
    Case("range-of-others", NEW.format(9), anti_join(RANGES.format(8), BETWEEN), BOTH,
         changed(N9, (7, "A", 1), (20, "A", 1))),
    Case("filter-in-on", NEW.format(9), anti_join(KEYS, "t.id = s.id AND t.p = 3"), SAME,
         changed(N9)),
    Case("filter-in-on-of-others", NEW.format(9), anti_join(KEYS, "t.id = s.id AND t.p = 1"), BOTH,
         in_order((*changed(N9), A9))),
    Case("filtered-target", NEW.format(9), anti_join(KEYS, target=OF_P3), SAME, changed(N9)),
    Case("filtered-target-of-others", "UPDATE {t} SET id = 9 WHERE id = 1",
         anti_join(KEYS, target=OF_P3), BOTH,
         in_order((*changed((9, "a", 1), without=(1,)), A9, (2, "A", 1)))),
    Case("reads-itself-too", "UPDATE {t} SET id = 5 WHERE id = 3", anti_join(ITSELF),
         (APPEND, "(p = 2) selects rows", None), changed((5, "c", 2), without=(3,))),
    Case("reads-itself-other-rows", X1, anti_join(ITSELF), BOTH,
         changed((1, "X", 1), (13, "A", 1), (14, "A", 1))),
    Case("one-scan-for-two-reads", NEW.format(9), anti_join(TWICE, "t.id + 10 = s.id"),
         (APPEND, "selects rows", None), changed(N9)),
    Case("one-scan-for-two-joins", NEW.format(7), anti_join(UNION), BOTH,
         changed((7, "new", 3), A8, A9)),
    Case("one-scan-for-two-joins-same-key", NEW.format(9), anti_join(UNION), SAME, changed(N9)),
    Case("random-source", NEW.format(8), not_exists(KEYS + " WHERE rand() < 2"), EVERY,
         changed(N8)),
    Case("limited-source", NEW.format(8), not_exists("SELECT id FROM range(9, 20) LIMIT 2"), EVERY,
         changed(N8)),
    Case("not-decidable", NEW.format(8), anti_join(KEYS, "t.id = s.id AND interlock_is_even(t.id)"),
         (APPEND, "cannot be decided", None), changed(N8)),
    Case("not-in", NEW.format(8),
         NOT_IN,
         EVERY, changed(N8)),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def functions(spark: SparkSession) -> None:
    register_is_even(spark)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_insert_after_another_job(spark: SparkSession, table_path: Path, case: Case) -> None:
    table = one_file(spark, table_path)
    first, second = sql_race(spark, table, case.earlier, case.later)
    assert first.error is None
    assert second.held
    if case.fails is None:
        assert second.error is None
    else:
        assert isinstance(second.error, ConflictError)
        error, why, source_row = case.fails
        assert type(second.error).__name__ == error
        assert why in str(second.error)
        assert "MERGE" not in str(second.error)
        assert second.error.source_rows == (() if source_row is None else (source_row,))
        assert latest_version(table) == 2
    assert rows(spark, table) == deltalake_rows(table) == in_order(case.rows)
    assert rows(spark, table, version=1) == FILE
    check_log(table)


def absent(spark: SparkSession, table: Table) -> DataFrame:
    source, target = spark.sql(KEYS), spark.table(str(table))
    found = source.join(target, source.id == target.id, "left_anti")
    return found.select("id", lit("A").alias("v"), lit(1).alias("p"))


def by_insert_into(spark: SparkSession, table: Table) -> None:
    absent(spark, table).write.insertInto(str(table))


def by_save_as_table(spark: SparkSession, table: Table) -> None:
    absent(spark, table).write.format("delta").mode("append").saveAsTable(str(table))


def by_save(spark: SparkSession, table: Table) -> None:
    absent(spark, table).write.format("delta").mode("append").save(str(table.path))


def by_write_to(spark: SparkSession, table: Table) -> None:
    absent(spark, table).writeTo(str(table)).append()


def by_a_spark_job(spark: SparkSession, table: Table) -> None:
    """A source that is too large for the committing thread."""
    session = spark.newSession()
    session.conf.set("spark.interlock.judging.maxSourceRows", "1")
    by_write_to(session, table)


@pytest.mark.parametrize(
    "way", [by_insert_into, by_save_as_table, by_save, by_write_to, by_a_spark_job]
)
def test_data_frames(
    spark: SparkSession, table_path: Path, way: Callable[[SparkSession, Table], None]
) -> None:
    for key, conflicts in ((8, False), (9, True)):
        table = one_file(spark, table_path / str(key))
        later = python_job("insert", lambda session, table=table: way(session, table))
        _, second = race(spark, sql_job(NEW.format(key).format(t=table)), later)
        assert second.held
        assert (type(second.error).__name__ == APPEND) == conflicts, second.error
        assert rows(spark, table) == (changed(N9) if conflicts else changed(N8, A9))


@pytest.mark.parametrize(
    ("columns", "properties"),
    [("PARTITIONED BY (p)", {}), ("", {"delta.enableDeletionVectors": "false"})],
    ids=["partitioned", "no-deletion-vectors"],
)
def test_other_tables(
    spark: SparkSession, table_path: Path, columns: str, properties: dict[str, str]
) -> None:
    for key, conflicts in ((8, False), (9, True)):
        table = make_table(
            spark,
            table_path / str(key),
            policy="row_level",
            columns=f"{COLUMNS} {columns}",
            properties=properties,
            statements=(INSERT,),
        )
        update = f"UPDATE {{t}} SET id = {key} WHERE id = 1"
        _, second = sql_race(spark, table, update, anti_join(KEYS))
        assert (type(second.error).__name__ == APPEND) == conflicts, second.error
        moved = changed((key, "a", 1), without=(1,))
        assert rows(spark, table) == (moved if conflicts else in_order((*moved, A9)))


@pytest.mark.parametrize("policy", ["row_level", "row_serializable"])
def test_a_key_that_another_job_inserts_blindly(
    spark: SparkSession, table_path: Path, policy: str
) -> None:
    """An INSERT that read nothing counts as committed behind this one, but for Serializable."""
    for key in (8, 9):
        table = one_file(spark, table_path / str(key), policy=policy)
        insert = f"INSERT INTO {{t}} VALUES ({key}, 'i', 3)"
        _, second = sql_race(spark, table, insert, anti_join(KEYS))
        conflicts = policy == "row_serializable" and key == 9
        assert (type(second.error).__name__ == APPEND) == conflicts, second.error
        assert rows(spark, table) == in_order((*FILE, (key, "i", 3), *(() if conflicts else (A9,))))


@pytest.mark.parametrize(("key", "part", "conflicts"), [(9, 5, True), (5, 9, False)])
def test_a_view_with_other_columns(
    spark: SparkSession, table_path: Path, key: int, part: int, conflicts: bool
) -> None:
    """ON names columns of the view; the winner's rows have those of the table."""
    table = one_file(spark, table_path)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW swapped AS SELECT p AS id, id + 1 AS p, v FROM {table}")
    winner = f"INSERT INTO {{t}} SELECT {key}, 'new', {part} FROM {{t}} WHERE id = 1"
    later = anti_join(KEYS, "t.p = s.id + 1", target="swapped")
    _, second = sql_race(spark, table, winner, later)
    assert second.held
    assert (type(second.error).__name__ == APPEND) == conflicts, second.error


@pytest.mark.parametrize("later", [anti_join, not_exists])
def test_the_source_is_the_one_that_was_read(
    spark: SparkSession, table_path: Path, later: Callable[[str], str]
) -> None:
    """Another job changes the source's table, caches it and inserts one of its old keys."""
    for key, conflicts in ((8, False), (9, True)):
        table, source = one_file(spark, table_path / f"t{key}"), Table(table_path / f"s{key}")
        spark.sql(f"CREATE TABLE {source} USING delta AS {ids(2, 9)}")

        def winner(session: SparkSession, table: Table = table, source: Table = source) -> None:
            session.sql(f"UPDATE {source} SET id = id - 1")
            session.table(str(source)).cache()
            session.sql(NEW.format(key).format(t=table))  # noqa: B023 (runs at once)

        statement = later(f"SELECT id FROM {source}").format(t=table)
        _, second = race(spark, python_job("winner", winner), sql_job(statement))
        spark.catalog.clearCache()
        assert (type(second.error).__name__ == APPEND) == conflicts, second.error
        assert rows(spark, table) == (changed(N9) if conflicts else changed(N8, A9))


def cached(spark: SparkSession, path: Path) -> DataFrame:
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta AS {KEYS}")
    return spark.table(f"delta.`{path}`").cache()


def of_files(spark: SparkSession, path: Path) -> DataFrame:
    spark.sql(KEYS).write.parquet(str(path))
    return spark.read.parquet(str(path))


def of_an_rdd(spark: SparkSession, path: Path) -> DataFrame:
    return spark.createDataFrame([(2,), (9,)], "id INT")


def by_a_function(spark: SparkSession, path: Path) -> DataFrame:
    return spark.sql(KEYS).where("interlock_is_even(id) OR id = 9")


@pytest.mark.parametrize("make", [cached, of_files, of_an_rdd, by_a_function])
def test_a_source_that_may_have_other_rows_when_it_is_read_again(
    spark: SparkSession, table_path: Path, make: Callable[[SparkSession, Path], DataFrame]
) -> None:
    """Then the INSERT has read the whole table."""
    table = one_file(spark, table_path / "t")
    make(spark, table_path / "s").createOrReplaceTempView("unpinned")
    _, second = sql_race(spark, table, NEW.format(8), anti_join("SELECT * FROM unpinned"))
    spark.catalog.clearCache()
    assert type(second.error).__name__ == APPEND
    assert second.error.source_rows == ()
    assert rows(spark, table) == changed(N8)


def test_without_a_winner_nothing_is_read_again(spark: SparkSession, table_path: Path) -> None:
    counts = []
    for policy in ("row_level", "maxcompute_delta"):
        table = one_file(spark, table_path / policy, policy=policy)
        counts.append(jobs_started(spark, anti_join(KEYS).format(t=table)))
    assert counts[0] == counts[1]
