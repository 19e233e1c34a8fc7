"""Statements that read the table they write: the reads count wherever they stand, and follow rows
that compactions moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from delta.tables import DeltaTable
from interlock.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConflictError,
)
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tests.kit.own_policy import KEY, text
from tests.kit.support import (
    Job,
    Table,
    commit_info,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    tags,
)

COLUMNS = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
START = ((1, "a", 1), (2, "b", 1), (3, "c", 2), (4, "d", 2))
FILES = (
    "INSERT INTO {t} VALUES (1, 'a', 1), (3, 'c', 2)",
    "INSERT INTO {t} VALUES (2, 'b', 1), (4, 'd', 2)",
)
LEVELS = ("serializable", "write_serializable", "row_level")
BY_FILES = {
    ("COMPACT_MINOR", "APPEND"): "AS_IS",
    ("OVERWRITE", "APPEND"): "BY_FILES",
    ("MUTATE", "APPEND"): "BY_FILES",
}


@pytest.fixture(scope="module", autouse=True)
def own_policy(spark: SparkSession) -> Iterator[None]:
    """A policy of a user's with the pair of cells that lets a read follow a compaction."""
    spark.conf.set(KEY, text(BY_FILES))
    yield
    spark.conf.unset(KEY)


def parted(spark: SparkSession, path: Path, policy: str, **properties: str) -> Table:
    """Make a table of two partitions, two files in each, at version 2."""
    return make_table(
        spark, path, policy=policy, columns=COLUMNS, properties=properties, statements=FILES
    )


def check(spark: SparkSession, table: Table, version: int, wanted: Rows) -> None:
    assert latest_version(table) == version
    assert rows(spark, table) == deltalake_rows(table) == in_order(wanted)


# ---- behind compactions ----

COPY = "INSERT INTO {t} SELECT id + 10, v, p FROM {t} WHERE p = 1"
COPIES = ((11, "a", 1), (12, "b", 1))
OPTIMIZE = "OPTIMIZE {t}"
MINOR = "ALTER TABLE {t} COMPACT MINOR"
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
TRUNCATE = "TRUNCATE TABLE {t}"
OVERWRITE = "INSERT OVERWRITE {t} VALUES (100, 'x', 3)"
DELETE_1 = "DELETE FROM {t} WHERE id = 1"


@pytest.mark.variant_cases(but=["serializable-OPTIMIZE {t}-TRUNCATE*", "row_level-ALTER*"])
@pytest.mark.parametrize(
    ("policy", "compaction", "then", "left"),
    [
        ("serializable", OPTIMIZE, TRUNCATE, ()),
        ("serializable", MAJOR, OVERWRITE, ((100, "x", 3),)),
        ("serializable", MINOR, DELETE_1, START[1:]),
        ("serializable", "OPTIMIZE {t} ZORDER BY (id)", DELETE_1, START[1:]),
        ("serializable", "ALTER TABLE {t} MERGE SMALLFILES", TRUNCATE, ()),
        ("write_serializable", MINOR, TRUNCATE, ()),
        ("write_serializable", OPTIMIZE, DELETE_1, START[1:]),
        ("ours", OPTIMIZE, TRUNCATE, ()),
        ("ours", MINOR, DELETE_1, START[1:]),
        ("row_level", OPTIMIZE, TRUNCATE, ()),
        ("row_level", MINOR, DELETE_1, START[1:]),
    ],
)
def test_a_read_follows_its_rows_through_a_compaction(
    spark: SparkSession, table_path: Path, policy: str, compaction: str, then: str, left: Rows
) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    table = parted(spark, table_path, policy, **vectors)
    error = last_of(spark, table, (compaction, then), COPY)
    assert isinstance(error, ConcurrentDeleteReadError)
    assert (error.read_version, error.winner_version) == (2, 4)
    check(spark, table, 4, left)


@pytest.mark.variant_cases(but=["serializable-winners0*", "row_level-winners2*"])
@pytest.mark.parametrize(
    ("policy", "winners", "left"),
    [
        *((policy, (OPTIMIZE,), START) for policy in (*LEVELS, "ours")),
        # Rows of another partition, whose file another statement compacted too.
        ("serializable", (OPTIMIZE, "DELETE FROM {t} WHERE id = 3"), (*START[:2], START[3])),
        ("serializable", (MINOR, "TRUNCATE TABLE {t} PARTITION (p = 2)"), START[:2]),
        # Another row of a file that it has read, told apart by row_level alone.
        ("row_level", (MINOR, "DELETE FROM {t} WHERE id = 3"), (*START[:2], START[3])),
    ],
)
def test_a_read_passes_a_compaction_and_what_others_did_elsewhere(
    spark: SparkSession, table_path: Path, policy: str, winners: tuple[str, ...], left: Rows
) -> None:
    table = parted(spark, table_path, policy, **{"delta.enableDeletionVectors": "true"})
    assert last_of(spark, table, winners, COPY) is None
    check(spark, table, 3 + len(winners), (*left, *COPIES))


def test_a_read_follows_its_rows_to_the_files_of_their_partition_only(
    spark: SparkSession, table_path: Path
) -> None:
    """The files that were read tell the partitions apart, not a predicate."""
    copy = COPY.replace("p = 1", "id < 3")
    table = parted(spark, table_path, "serializable", **{"delta.enableDeletionVectors": "true"})
    assert last_of(spark, table, (OPTIMIZE, "DELETE FROM {t} WHERE id = 3"), copy) is None
    check(spark, table, 5, (*START[:2], START[3], *COPIES))


def test_rows_of_one_file_are_told_apart_behind_a_compaction_by_row_level_only(
    spark: SparkSession, tmp_path: Path
) -> None:
    copy = "INSERT INTO {t} SELECT id + 10, v, p FROM {t} WHERE id = 2"
    vectors = {"delta.enableDeletionVectors": "true"}
    table = parted(spark, tmp_path / "rows", "row_level", **vectors)
    assert last_of(spark, table, (MINOR, DELETE_1), copy) is None
    check(spark, table, 5, (*START[1:], (12, "b", 1)))
    table = parted(spark, tmp_path / "files", "serializable", **vectors)
    error = last_of(spark, table, (MINOR, DELETE_1), copy)
    assert isinstance(error, ConcurrentDeleteReadError)
    check(spark, table, 4, START[1:])


# ---- reads that Delta does not track ----

CHANGE_2 = "UPDATE {t} SET id = id + 10 WHERE p = 2"
CHANGED = (*START[:2], (13, "c", 2), (14, "d", 2))
SUM = "(SELECT sum(id) FROM {t})"
ON_1 = "USING (SELECT 1 AS id) s ON t.id = s.id AND t.p = 1"
ON_9 = "USING (SELECT 9 AS id) s ON t.id = s.id AND t.p = 1"
UPDATE_TO_SUM = f"UPDATE {{t}} SET id = {SUM} WHERE p = 1"
LATEST = "get_latest_version('{t}')"


def as_job(later: str | Callable[[SparkSession, Table], object], table: Table) -> Job:
    if isinstance(later, str):
        return sql_job(later.format(t=table, path=table.path))
    return python_job("later", lambda spark: later(spark, table))


def append(data: Any, table: Table) -> None:
    moved = data.selectExpr("id + 20 AS id", "v", "1 AS p")
    moved.write.format("delta").mode("append").save(str(table.path))


def append_range_without_end(spark: SparkSession, table: Table) -> None:
    reader = spark.read.option("afterVersion", -1).format("delta")
    append(reader.load(str(table.path)), table)


def append_persisted(spark: SparkSession, table: Table) -> None:
    append(spark.read.format("delta").load(str(table.path)).persist(), table)
    spark.catalog.clearCache()


def append_persisted_changes(spark: SparkSession, table: Table, **end: int) -> None:
    changes = spark.read.option("readChangeFeed", True).option("startingVersion", 0)
    read = changes.options(**end).format("delta").load(str(table.path))
    append(read.select("id", "v", f.lit(1).alias("p")).persist(), table)
    spark.catalog.clearCache()


def update_by_api(spark: SparkSession, table: Table) -> None:
    DeltaTable.forPath(spark, str(table.path)).update("p = 1", {"id": f.expr(SUM.format(t=table))})


COUNTED: dict[str, str | Callable[[SparkSession, Table], object]] = {
    "UPDATE SET": UPDATE_TO_SUM,
    "UPDATE SET, answered by statistics": "UPDATE {t} SET id = (SELECT count(*) FROM {t}) "
    "WHERE p = 1",
    "UPDATE SET of another partition's rows": "UPDATE {t} SET id = (SELECT sum(id) FROM {t} "
    "WHERE p = 2) WHERE p = 1",
    "MERGE, UPDATE SET": f"MERGE INTO {{t}} t {ON_1} WHEN MATCHED THEN UPDATE SET id = {SUM}",
    "MERGE, INSERT VALUES": f"MERGE INTO {{t}} t {ON_9} WHEN NOT MATCHED THEN "
    f"INSERT (id, v, p) VALUES ({SUM}, 'x', 1)",
    "a list of columns": f"INSERT INTO {{t}} SELECT {SUM}, 'x', 1",
    "VERSION BETWEEN up to the latest": f"INSERT INTO {{t}} SELECT id, v, 1 FROM {{t}} "
    f"VERSION BETWEEN 0 AND {LATEST}",
    "VERSION AS OF the latest": f"INSERT INTO {{t}} SELECT id, v, 1 FROM {{t}} VERSION AS OF "
    f"{LATEST}",
    "a change data feed": "INSERT INTO {t} SELECT id, v, 1 FROM table_changes_by_path('{path}', 0)",
    "a range without an end": append_range_without_end,
    "persist": append_persisted,
    "persist a change data feed": append_persisted_changes,
    "DeltaTable.update": update_by_api,
}
# Each way once; those of one kind under the other levels too.
EVERYWHERE = ("UPDATE SET", "MERGE, INSERT VALUES", "a range without an end")


@pytest.mark.variant_cases(
    but=[
        "row_level-UPDATE SET",
        "serializable-UPDATE SET, answered by statistics",
        "serializable-VERSION BETWEEN up to the latest",
        "row_level-a range without an end",
        "serializable-persist a change data feed",
    ]
)
@pytest.mark.parametrize(
    ("policy", "read"),
    [
        ("serializable", read)
        if read not in EVERYWHERE
        else pytest.param(policy, read, marks=[pytest.mark.soak] if is_soak else [])
        for read in COUNTED
        for policy in (LEVELS if read in EVERYWHERE else LEVELS[:1])
        for is_soak in [policy == "write_serializable" and read != "UPDATE SET"]
    ],
)
def test_a_read_counts_wherever_it_stands(
    spark: SparkSession, table_path: Path, policy: str, read: str
) -> None:
    feed = {"delta.enableChangeDataFeed": "true"} if "feed" in read else {}
    table = parted(spark, table_path, policy, **feed)
    first, second = race(spark, sql_job(CHANGE_2.format(t=table)), as_job(COUNTED[read], table))
    assert first.ok
    assert second.held
    assert isinstance(second.error, ConcurrentAppendError)
    assert (second.error.read_version, second.error.winner_version) == (2, 3)
    check(spark, table, 3, CHANGED)


UPDATED = ((0, "a", 1), (0, "b", 1), *CHANGED[2:])
UNTOUCHED: dict[str, tuple[str, Rows]] = {
    "another partition": (
        "UPDATE {t} SET id = coalesce((SELECT sum(id) FROM {t} WHERE p = 3), 0) WHERE p = 1",
        UPDATED,
    ),
    "another table": ("UPDATE {t} SET id = (SELECT count(*) FROM range(0)) WHERE p = 1", UPDATED),
    "an earlier version": (
        "INSERT INTO {t} SELECT id + 20, v, p FROM {t} VERSION AS OF 1 WHERE p = 1",
        (*CHANGED, (21, "a", 1)),
    ),
    "a range up to an earlier version": (
        "INSERT INTO {t} SELECT id + 20, v, p FROM {t} VERSION BETWEEN 0 AND 1 WHERE p = 1",
        (*CHANGED, (21, "a", 1)),
    ),
}


@pytest.mark.variant_cases("*-serializable", "an*")
@pytest.mark.parametrize("policy", ["serializable", "row_level"])
@pytest.mark.parametrize("read", UNTOUCHED)
def test_a_read_of_what_nobody_changed_passes(
    spark: SparkSession, table_path: Path, policy: str, read: str
) -> None:
    later, left = UNTOUCHED[read]
    table = parted(spark, table_path, policy)
    assert last_of(spark, table, (CHANGE_2,), later) is None
    check(spark, table, 4, left)


def test_a_cached_change_feed_up_to_an_earlier_version_passes(
    spark: SparkSession, table_path: Path
) -> None:
    table = parted(spark, table_path, "serializable", **{"delta.enableChangeDataFeed": "true"})
    append_early = partial(append_persisted_changes, endingVersion=1)
    first, second = race(spark, sql_job(CHANGE_2.format(t=table)), as_job(append_early, table))
    assert first.ok
    assert second.held
    assert second.ok
    check(spark, table, 4, (*CHANGED, (21, "a", 1), (23, "c", 1)))


def test_the_scope_of_an_update_is_its_condition_where_classes_decide(
    spark: SparkSession, table_path: Path
) -> None:
    table = parted(spark, table_path, "maxcompute_delta")
    assert last_of(spark, table, (CHANGE_2,), UPDATE_TO_SUM) is None
    check(spark, table, 4, ((10, "a", 1), (10, "b", 1), *CHANGED[2:]))
    again = UPDATE_TO_SUM.replace("p = 1", "p = 2")
    error = last_of(spark, table, (CHANGE_2,), again)
    assert isinstance(error, ConflictError)
    assert (error.rule, latest_version(table)) == ("D13", 5)


def test_a_statement_that_reads_the_table_is_no_blind_append(
    spark: SparkSession, table_path: Path
) -> None:
    table = parted(spark, table_path, "maxcompute_delta")
    blind = {
        "INSERT INTO {t} VALUES (9, 'i', 1)": True,
        "INSERT INTO {t} SELECT id, v, p FROM {t} VERSION AS OF 1": True,
        f"INSERT INTO {{t}} SELECT id, v, p FROM {{t}} VERSION BETWEEN 0 AND {LATEST}": False,
        f"INSERT INTO {{t}} SELECT {SUM}, 'x', 1": False,
    }
    for statement in blind:
        spark.sql(statement.format(t=table))
    append_persisted(spark, table)
    said = [commit_info(table, version)["isBlindAppend"] for version in range(3, 8)]
    assert said == [*blind.values(), False]


@pytest.mark.variant_cases("write_serializable*")
@pytest.mark.parametrize(
    ("policy", "reader", "passes"),
    [
        ("row_level", UPDATE_TO_SUM.replace("p = 1", "p = 2"), False),
        ("write_serializable", UPDATE_TO_SUM.replace("p = 1", "p = 2"), False),
        ("row_level", "UPDATE {t} SET id = 0 WHERE p = 2", True),
    ],
)
def test_an_update_that_has_read_a_blind_append_ends_its_freedom(
    spark: SparkSession, table_path: Path, policy: str, reader: str, passes: bool
) -> None:
    """A third job has read the appended row, so no serial order is left for the last one."""
    table = parted(spark, table_path, policy)
    winners = ("INSERT INTO {t} VALUES (9, 'i', 1)", reader)
    error = last_of(spark, table, winners, "UPDATE {t} SET v = 'L' WHERE p = 1 AND id > 0")
    assert ("interlock.readsOthers" in tags(table, 4)) is not passes
    if passes:
        assert error is None
        assert (1, "L", 1) in rows(spark, table)
    else:
        assert isinstance(error, ConcurrentAppendError)
        assert error.winner_version == 3
        left = ((1, "a", 1), (2, "b", 1), (9, "i", 1), (19, "c", 2), (19, "d", 2))
        check(spark, table, 4, left)


# ---- files that both remove ----


def remove_unread(spark: SparkSession, table: Table) -> None:
    """Remove the files of p = 1, having read another partition, as a writer by Delta's API may."""
    jvm: Any = spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    log = delta.DeltaLog.forTable(spark._jsparkSession, str(table.path))
    transaction = log.startTransaction()
    parser = spark._jsparkSession.sessionState().sqlParser()

    def files(predicate: str) -> Any:
        conditions = jvm.java.util.List.of(parser.parseExpression(predicate))
        return jvm.scala.jdk.javaapi.CollectionConverters.asScala(conditions).toSeq()

    transaction.filterFiles(files("p = 3"), False)
    found = log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty()).filesForScan(
        files("p = 1"), False
    )
    adds = jvm.scala.jdk.javaapi.CollectionConverters.asJava(found.files())
    removes = jvm.java.util.ArrayList([add.remove() for add in adds])
    actions = jvm.scala.jdk.javaapi.CollectionConverters.asScala(removes).toSeq()
    name = "org.apache.spark.sql.delta.DeltaOperations$ManualUpdate$"
    loader = log.getClass().getClassLoader()
    manual = loader.loadClass(name).getField("MODULE$").get(None)
    transaction.commit(actions, manual)


@pytest.mark.variant_cases("serializable")
@pytest.mark.parametrize("policy", ["serializable", "maxcompute_delta"])
def test_two_that_remove_a_file_which_the_later_one_has_not_read(
    spark: SparkSession, table_path: Path, policy: str
) -> None:
    table = parted(spark, table_path, policy)
    delete = sql_job(f"DELETE FROM {table} WHERE p = 1")
    first, second = race(spark, delete, as_job(remove_unread, table))
    assert first.ok
    assert isinstance(second.error, ConcurrentDeleteDeleteError)
    check(spark, table, 3, START[2:])
