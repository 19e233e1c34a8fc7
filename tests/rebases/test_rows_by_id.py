"""Rows that ZORDER, clustering or a stock OPTIMIZE has moved are found by their row ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pyarrow.parquet as pq
import pytest
from interlock.errors import ConflictError
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.foreign import compact_without_ids
from tests.kit.log_replay import check_log, live_rows
from tests.kit.support import (
    Table,
    commit,
    confs,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    python_job,
    race,
    row_tracking,
    rows,
    sql_job,
    tags,
)

FILES = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, id % 2 FROM range(0, 10)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, id % 2 FROM range(10, 20)",
    "UPDATE {t} SET v = 7 WHERE id = 11",
    "DELETE FROM {t} WHERE id IN (1, 4, 12)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, id % 2 FROM range(20, 30)",
)
"""Some rows have their ids in a column, others by their place; version 5."""
BEFORE = {i: 7 if i == 11 else i % 2 for i in range(30) if i not in (1, 4, 12)}
FIRST = 6

ZORDER = "OPTIMIZE {t} ZORDER BY (v, id)"
UPDATE = "UPDATE {t} SET v = 50 WHERE id IN (2, 11, 25)"
DELETE = "DELETE FROM {t} WHERE id IN (0, 11, 29)"
MERGE = """
    MERGE INTO {t} t USING (VALUES (2, 50), (11, -1), (25, 50), (99, 99) AS s(id, v)) s
    ON t.id = s.id
    WHEN MATCHED AND s.v < 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET v = s.v
    WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
"""
UPDATED = {2: 50, 11: 50, 25: 50}
AFTER = {
    UPDATE: BEFORE | UPDATED,
    DELETE: {i: v for i, v in BEFORE.items() if i not in (0, 11, 29)},
    MERGE: {i: v for i, v in (BEFORE | UPDATED | {99: 99}).items() if i != 11},
}
COLUMNS = {
    ZORDER: "(id BIGINT, v BIGINT) USING delta",
    "OPTIMIZE {t}": "(id BIGINT, v BIGINT) USING delta CLUSTER BY (v)",
    "OPTIMIZE {t} FULL": "(id BIGINT, v BIGINT) USING delta CLUSTER BY (v)",
    "OPTIMIZE {t} ZORDER BY (id)": "(id BIGINT, v BIGINT) USING delta PARTITIONED BY (v)",
}


def a_table(
    spark: SparkSession,
    path: Path,
    columns: str = COLUMNS[ZORDER],
    *,
    vectors: bool = True,
    policy: str = "maxcompute_delta",
    properties: Mapping[str, str] = MappingProxyType({}),
) -> Table:
    properties = {
        **properties,
        "delta.enableDeletionVectors": str(vectors).lower(),
        "delta.enableChangeDataFeed": "true",
    }
    return make_table(
        spark, path, columns=columns, properties=properties, statements=FILES, policy=policy
    )


def changes(spark: SparkSession, table: Table, version: int) -> Rows:
    """Return the change feed from a version on, without times."""
    found = (
        spark.read.option("readChangeFeed", "true")
        .option("startingVersion", version)
        .format("delta")
        .load(str(table.path))
        .select("id", "v", "_change_type", "_commit_version")
    )
    return in_order(tuple(tuple(row) for row in found.collect()))


def feed(before: dict[int, int], after: dict[int, int], version: int) -> Rows:
    """Return the change feed of a job that changes one table into another."""
    both = {i for i in before.keys() & after.keys() if before[i] != after[i]}
    return in_order(
        (
            *((i, before[i], "update_preimage", version) for i in both),
            *((i, after[i], "update_postimage", version) for i in both),
            *((i, before[i], "delete", version) for i in before.keys() - after.keys()),
            *((i, after[i], "insert", version) for i in after.keys() - before.keys()),
        )
    )


def shows(
    spark: SparkSession,
    table: Table,
    ids: dict[int, tuple[int, int]],
    expected: dict[int, int],
    *,
    by: int,
) -> None:
    """Check rows, row ids, commit versions, feed and history after version `by` changed rows."""
    wanted = in_order(tuple(expected.items()))
    assert rows(spark, table) == deltalake_rows(table) == wanted
    assert live_rows(check_log(table)) == len(wanted)
    assert rows(spark, table, version=FIRST - 1) == in_order(tuple(BEFORE.items()))
    found = row_tracking(spark, table)
    changed = {i for i in expected if expected[i] != BEFORE.get(i)}
    assert {i: of[0] for i, of in found.items() if i in ids} == {
        i: of[0] for i, of in ids.items() if i in expected
    }
    assert {i: of[1] for i, of in found.items()} == {
        i: by if i in changed else ids[i][1] for i in expected
    }
    assert len({of[0] for of in found.values()}) == len(found)
    assert changes(spark, table, FIRST) == feed(BEFORE, expected, by)


CASES = {
    "zorder": (ZORDER, MERGE, True),
    "zorder-whole-files": (ZORDER, UPDATE, False),
    "zorder-delete": (ZORDER, DELETE, True),
    "clustered": ("OPTIMIZE {t}", UPDATE, True),
    "clustered-full-whole-files": ("OPTIMIZE {t} FULL", DELETE, False),
    "clustered-full": ("OPTIMIZE {t} FULL", MERGE, True),
    "partitioned": ("OPTIMIZE {t} ZORDER BY (id)", MERGE, True),
    "partitioned-whole-files": ("OPTIMIZE {t} ZORDER BY (id)", DELETE, False),
}


@pytest.mark.variant_cases(but=["zorder-whole-files", "partitioned"])
@pytest.mark.parametrize("case", CASES)
def test_a_job_follows_its_rows(spark: SparkSession, table_path: Path, case: str) -> None:
    compaction, statement, vectors = CASES[case]
    table = a_table(spark, table_path, COLUMNS[compaction], vectors=vectors)
    ids = row_tracking(spark, table)
    assert last_of(spark, table, (compaction,), statement) is None
    assert latest_version(table) == FIRST + 1
    assert tags(table, FIRST + 1)["interlock.verdicts"] == "REMAP_ROWS"
    assert "interlock.moved" not in str(commit(table, FIRST))
    shows(spark, table, ids, AFTER[statement], by=FIRST + 1)


@pytest.mark.variant_cases(but=["zorder", "clustered-full-whole-files", "partitioned"])
@pytest.mark.parametrize("case", CASES)
def test_a_compaction_takes_over_what_changed_meanwhile(
    spark: SparkSession, table_path: Path, case: str
) -> None:
    compaction, statement, vectors = CASES[case]
    table = a_table(spark, table_path, COLUMNS[compaction], vectors=vectors)
    ids = row_tracking(spark, table)
    assert last_of(spark, table, (statement,), compaction) is None
    assert latest_version(table) == FIRST + 1
    assert tags(table, FIRST + 1)["interlock.verdicts"] == "REBASE_COMPACTION"
    shows(spark, table, ids, AFTER[statement], by=FIRST)


def test_files_of_the_second_version_of_parquet(spark: SparkSession, table_path: Path) -> None:
    """Their row ids are delta-encoded, so that they hardly take room; all readers know that."""
    second = {"delta.parquet.format.version": "2.12.0"}
    table = a_table(spark, table_path, properties=second)
    ids = row_tracking(spark, table)
    assert last_of(spark, table, (ZORDER,), MERGE) is None
    shows(spark, table, ids, AFTER[MERGE], by=FIRST + 1)
    (add,) = (action["add"] for action in commit(table, FIRST) if "add" in action)
    group = pq.ParquetFile(table.path / add["path"]).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    (row_ids,) = (it for it in columns if it.path_in_schema.startswith("_row-id-col"))
    assert "DELTA_BINARY_PACKED" in row_ids.encodings


def test_an_optimize_by_stock_delta(
    spark: SparkSession, table_path: Path, stock: DriverProcess
) -> None:
    """Followed by a ZORDER of that session: an UPDATE follows its rows through both."""
    table = a_table(spark, table_path)
    ids = row_tracking(spark, table)

    def optimize(session: SparkSession) -> None:
        for statement in ("OPTIMIZE {t}", ZORDER):
            assert stock.run(statement.format(t=table)).error is None

    first, held = race(spark, python_job("stock", optimize), sql_job(UPDATE.format(t=table)))
    assert (first.error, held.error, held.held) == (None, None, True)
    assert latest_version(table) == FIRST + 2
    shows(spark, table, ids, AFTER[UPDATE], by=FIRST + 2)


def test_several_winners_one_after_the_other(spark: SparkSession, table_path: Path) -> None:
    """Rows go by id, then by tag, then by id; a compaction takes over two changes of one file."""
    table = a_table(spark, table_path, policy="row_level")
    ids = row_tracking(spark, table)
    hops = (ZORDER, "ALTER TABLE {t} COMPACT MAJOR", "OPTIMIZE {t} ZORDER BY (id)")
    assert last_of(spark, table, hops, UPDATE) is None
    shows(spark, table, ids, AFTER[UPDATE], by=FIRST + 3)
    winners = ("DELETE FROM {t} WHERE id = 3", "DELETE FROM {t} WHERE id IN (5, 25)")
    assert last_of(spark, table, winners, ZORDER) is None
    left = {i: v for i, v in AFTER[UPDATE].items() if i not in (3, 5, 25)}
    assert rows(spark, table) == deltalake_rows(table) == in_order(tuple(left.items()))
    assert live_rows(check_log(table)) == len(left)


def test_a_row_that_both_changed(spark: SparkSession, table_path: Path) -> None:
    """The UPDATE follows its rows, and one of them is gone; another DELETE does not hurt it."""
    table = a_table(spark, table_path, policy="row_level")
    error = last_of(spark, table, (ZORDER, "DELETE FROM {t} WHERE id = 11"), UPDATE)
    assert isinstance(error, ConflictError)
    assert "1 row that it changes too" in str(error)
    assert latest_version(table) == FIRST + 1
    update = "UPDATE {t} SET v = 50 WHERE id IN (2, 25)"
    assert last_of(spark, table, (ZORDER, "DELETE FROM {t} WHERE id = 3"), update) is None
    left = {i: 50 if i in (2, 25) else v for i, v in BEFORE.items() if i not in (3, 11)}
    assert rows(spark, table) == deltalake_rows(table) == in_order(tuple(left.items()))


@pytest.mark.parametrize(
    ("base", "why"),
    [(1000, "of 2 rows 0 were found by their ids"), (None, "its files have no row ids")],
    ids=["new-ids", "no-ids"],
)
def test_a_compaction_that_does_not_keep_row_ids(
    spark: SparkSession, table_path: Path, base: int | None, why: str
) -> None:
    table = a_table(spark, table_path)
    optimize = python_job("other", lambda _: compact_without_ids(table, FIRST - 1, base=base))
    update = "UPDATE {t} SET v = 50 WHERE id IN (21, 25)"
    first, held = race(spark, optimize, sql_job(update.format(t=table)))
    assert (first.error, held.held) == (None, True)
    assert isinstance(held.error, ConflictError)
    assert why in str(held.error)
    assert latest_version(table) == FIRST


@pytest.mark.soak
@pytest.mark.parametrize("timeout", ["60s", "1s"])
def test_ids_of_large_files(spark: SparkSession, table_path: Path, timeout: str) -> None:
    """Files of more than 64 MB are read by a Spark job, which ends after the time limit."""
    many = "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, xxhash64(id) FROM range(6000000)"
    table = make_table(
        spark, table_path, columns=COLUMNS[ZORDER], statements=(many,), policy="row_level"
    )
    (add,) = (action["add"] for action in commit(table, 1) if "add" in action)
    assert add["size"] > 64 * 1024 * 1024
    with confs(spark, {"spark.interlock.judging.timeout": timeout}):
        error = last_of(spark, table, (ZORDER,), "UPDATE {t} SET v = 50 WHERE id IN (2, 5000000)")
    if timeout == "1s":
        assert isinstance(error, ConflictError)
        assert "not compared within 1 s (spark.interlock.judging.timeout)" in str(error)
        assert latest_version(table) == 2
    else:
        assert error is None
        changed = spark.sql(f"SELECT id FROM {table} WHERE v = 50 AND id > 0").collect()
        assert sorted(row.id for row in changed) == [2, 5_000_000]
