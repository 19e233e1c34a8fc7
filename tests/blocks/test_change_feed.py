"""Atomic blocks on tables with a change feed: it has each row's net change, once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from interlock.errors import ConflictError
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.blocks.several_tables import begin, make_in
from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    commit,
    confs,
    deltalake_rows,
    jobs_started,
    latest_version,
    make_table,
    rows,
    unknown_files,
)

START = ((1, 10), (2, 20), (3, 30), (4, 40), (5, 50))
COLUMNS = "(id INT, v INT) USING delta"
SHAPES: dict[str, tuple[str, dict[str, str]]] = {
    "files": (COLUMNS, {"enableDeletionVectors": "false"}),
    "vectors": (COLUMNS, {"enableDeletionVectors": "true"}),
    "partitioned": (f"{COLUMNS} PARTITIONED BY (v)", {"enableDeletionVectors": "false"}),
    "mapped": (
        COLUMNS.replace("v INT", "`v.w` INT"),
        {"enableDeletionVectors": "false", "columnMapping.mode": "name"},
    ),
    "mapped and partitioned, vectors": (
        f"{COLUMNS} PARTITIONED BY (v)",
        {"enableDeletionVectors": "true", "columnMapping.mode": "name"},
    ),
}


def updated(row: int, before: int, after: int) -> Rows:
    return in_order(((row, before, "update_preimage"), (row, after, "update_postimage")))


MERGE = (
    "MERGE INTO {t} USING (SELECT * FROM VALUES (3, 33), (8, 88) AS s(id, n)) s ON {t}.id = s.id "
    "WHEN MATCHED THEN UPDATE SET {v} = n WHEN NOT MATCHED THEN INSERT (id, {v}) VALUES (s.id, n)"
)
ADD_1 = "UPDATE {t} SET {v} = {v} + 1 WHERE id IN (1, 6)"
INSERT = "INSERT INTO {t} VALUES (6, 60), (7, 70)"
CASES: dict[str, tuple[tuple[str, ...], Rows]] = {
    "inserted and updated": (
        (INSERT, ADD_1),
        (*updated(1, 10, 11), (6, 61, "insert"), (7, 70, "insert")),
    ),
    "updated twice": (
        (ADD_1, "UPDATE {t} SET {v} = {v} + 1 WHERE id < 3"),
        (*updated(1, 10, 12), *updated(2, 20, 21)),
    ),
    "merged and deleted": (
        (MERGE, "DELETE FROM {t} WHERE id IN (3, 5)"),
        ((3, 30, "delete"), (5, 50, "delete"), (8, 88, "insert")),
    ),
    "deleted, then merged and updated": (
        ("DELETE FROM {t} WHERE id = 3", MERGE, ADD_1),
        (*updated(1, 10, 11), (3, 30, "delete"), (3, 33, "insert"), (8, 88, "insert")),
    ),
    "deleted and inserted": (
        ("DELETE FROM {t} WHERE id = 4", "INSERT INTO {t} VALUES (4, 40)"),
        ((4, 40, "delete"), (4, 40, "insert")),
    ),
    "inserted and gone again": (
        (INSERT, ADD_1, "DELETE FROM {t} WHERE id = 6"),
        (*updated(1, 10, 11), (7, 70, "insert")),
    ),
    "changed and changed back": (
        (ADD_1, "UPDATE {t} SET {v} = 10 WHERE id = 1"),
        updated(1, 10, 10),
    ),
    "replaced": (
        ("INSERT INTO {t} REPLACE WHERE id = 1 VALUES (1, 1)", INSERT, ADD_1),
        ((1, 10, "delete"), (1, 2, "insert"), (6, 61, "insert"), (7, 70, "insert")),
    ),
    "all gone": (
        (ADD_1, "DELETE FROM {t}", "INSERT INTO {t} VALUES (1, 1)"),
        (*((i, v, "delete") for i, v in START), (1, 1, "insert")),
    ),
}
IN_ALL_SHAPES = ("merged and deleted", "inserted and gone again")


def make(spark: SparkSession, path: Path, shape: str) -> Table:
    """Make a table with the rows of START, of which some have been moved or marked before."""
    columns, properties = SHAPES[shape]
    return make_table(
        spark,
        path,
        policy="row_level",
        columns=columns,
        properties={"delta.enableChangeDataFeed": "true"}
        | {f"delta.{key}": value for key, value in properties.items()},
        statements=(
            "INSERT INTO {t} VALUES (1, 10), (2, 2), (3, 30), (9, 90)",
            "INSERT INTO {t} VALUES (4, 40), (5, 50)",
            f"UPDATE {{t}} SET {value(shape)} = 20 WHERE id = 2",
            "DELETE FROM {t} WHERE id = 9",
        ),
    )


def value(shape: str) -> str:
    return "`v.w`" if shape == "mapped" else "v"


def feed(spark: SparkSession, table: Table, version: int) -> Rows:
    """Return the feed of a version by the reader of Spark, and check it by that of delta-rs."""
    found = spark.sql(f"SELECT * FROM table_changes('{table}', {version}, {version})").collect()
    assert {row["_commit_version"] for row in found} <= {version}
    changes = in_order(tuple((row[0], row[1], row["_change_type"]) for row in found))
    in_files = any("cdc" in action for action in commit(table, version))
    if in_files and "columnMapping" not in str(commit(table, 0)):
        frame = DeltaTable(str(table.path)).load_cdf(version, version).read_all()
        columns = (frame.column(name).to_pylist() for name in ("id", "v", "_change_type"))
        assert in_order(tuple(zip(*columns, strict=True))) == changes
    return changes


def check_feed(spark: SparkSession, table: Table, version: int) -> Rows:
    """Check the feed of a version: with row ids, and that it makes the new rows of the old ones."""
    changes = feed(spark, table, version)
    before, after = (tracked(spark, table, at) for at in (version - 1, version))
    wanted: list[tuple[object, ...]] = []
    for row_id in before.keys() | after.keys():
        old, new = before.get(row_id), after.get(row_id)
        if old is None or new is None:
            row, kind = (new, "insert") if old is None else (old, "delete")
            assert row is not None
            wanted.append((*row[:2], kind))
        elif old[2] != new[2]:
            assert new[2] == version
            wanted += [(*old[:2], "update_preimage"), (*new[:2], "update_postimage")]
        else:
            assert old == new
    assert changes == in_order(tuple(wanted))
    live = Counter(row[:2] for row in before.values())
    live.subtract(row[:2] for row in changes if row[2] in {"delete", "update_preimage"})
    assert min(live.values(), default=0) >= 0
    live.update(row[:2] for row in changes if row[2] in {"insert", "update_postimage"})
    assert in_order(tuple(live.elements())) == rows(spark, table, version=version)
    return changes


def tracked(spark: SparkSession, table: Table, version: int) -> dict[int, tuple[object, ...]]:
    """Return each row of a version and its commit version, by its row id."""
    meta = "_metadata.row_commit_version, _metadata.row_id"
    found = spark.sql(f"SELECT *, {meta} FROM {table} VERSION AS OF {version}").collect()
    by_id = {row[3]: tuple(row)[:3] for row in found}
    assert len(by_id) == len(found)
    return by_id


def end(spark: SparkSession) -> int | None:
    found = spark.sql("COMMIT").collect()
    return found[0]["version"] if found else None


@pytest.mark.variant_cases(
    but=[
        "files-merged and deleted",
        "files-replaced",
        "vectors-inserted and updated",
        "vectors-inserted and gone again",
        "vectors-changed and changed back",
        "mapped and partitioned, vectors-merged and deleted",
    ]
)
@pytest.mark.parametrize(
    ("shape", "case"),
    [(s, c) for s in SHAPES for c in CASES if s in ("files", "vectors") or c in IN_ALL_SHAPES],
)
def test_each_net_change_is_there_once(
    spark: SparkSession, tmp_path: Path, shape: str, case: str
) -> None:
    table = make(spark, tmp_path / "t", shape)
    assert rows(spark, table) == START
    before = latest_version(table)
    statements, changes = CASES[case]
    begin(spark, *(statement.format(t=table, v=value(shape)) for statement in statements))
    seen = rows(spark, table)
    assert end(spark) == before + 1
    assert rows(spark, table) == deltalake_rows(table) == seen
    assert check_feed(spark, table, before + 1) == in_order(changes)
    assert unknown_files(table) == []
    check_log(table)


@pytest.mark.parametrize("vectors", ["files", "vectors"])
def test_blocks_that_need_no_new_feed(spark: SparkSession, tmp_path: Path, vectors: str) -> None:
    """They start no job at their commit, as without a feed."""
    table = make(spark, tmp_path / "t", vectors)
    version = latest_version(table)
    begin(spark, *(f"INSERT INTO {table} VALUES ({row}, 0)" for row in (6, 7)))
    assert jobs_started(spark, "COMMIT") == 0
    assert check_feed(spark, table, version + 1) == ((6, 0, "insert"), (7, 0, "insert"))
    begin(spark, f"UPDATE {table} SET v = 1 WHERE id = 6", f"DELETE FROM {table} WHERE id = 99")
    assert jobs_started(spark, "COMMIT") == 0
    assert check_feed(spark, table, version + 2) == updated(6, 0, 1)
    begin(spark, f"INSERT INTO {table} VALUES (8, 8)", f"UPDATE {table} SET v = 9 WHERE id = 8")
    spark.sql(f"DELETE FROM {table} WHERE v = 9")
    assert end(spark) is None
    assert unknown_files(table) == []


def test_beside_a_winner_in_the_same_file(spark: SparkSession, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "t", "vectors")
    other = spark.newSession()
    first = latest_version(table)
    begin(spark, *(text.format(t=table, v="v") for text in (INSERT, ADD_1, MERGE)))
    other.sql(f"UPDATE {table} SET v = -2 WHERE id = 2")
    other.sql(f"INSERT INTO {table} VALUES (12, 12)")
    other.sql(f"DELETE FROM {table} WHERE id = 4")
    assert end(spark) == first + 4
    assert check_feed(spark, table, first + 4) == in_order(
        (
            *updated(1, 10, 11),
            *updated(3, 30, 33),
            (6, 61, "insert"),
            (7, 70, "insert"),
            (8, 88, "insert"),
        )
    )
    assert check_feed(spark, table, first + 1) == updated(2, 20, -2)
    assert unknown_files(table) == []
    check_log(table)


@pytest.mark.parametrize("shape", ["files", "vectors"])
def test_a_block_that_loses_leaves_nothing(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    table = make(spark, tmp_path / "t", shape)
    other = spark.newSession()
    version = latest_version(table)
    begin(spark, *(text.format(t=table, v="v") for text in (INSERT, ADD_1)))
    assert any("_change_data" in str(file) for file in unknown_files(table))
    other.sql(f"UPDATE {table} SET v = -1 WHERE id = 1")
    with pytest.raises(ConflictError):
        spark.sql("COMMIT")
    assert unknown_files(table) == []
    assert latest_version(table) == version + 1
    assert check_feed(spark, table, version + 1) == updated(1, 10, -1)
    check_log(table)


@pytest.mark.parametrize("loses", ["neither", "a", "b"])
def test_several_tables(spark: SparkSession, tmp_path: Path, loses: str) -> None:
    feeds = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}
    a, b = tables = [make_in(spark, tmp_path, name, **feeds) for name in "ab"]
    updates = [f"UPDATE {table} SET v = v + 1 WHERE id = 1" for table in (*tables, *tables)]
    begin(spark, *updates, f"INSERT INTO {a} VALUES (4, 40)")
    if loses != "neither":
        spark.newSession().sql(f"DELETE FROM {a if loses == 'a' else b} WHERE id = 1")
        with pytest.raises(ConflictError):
            spark.sql("COMMIT")
    else:
        spark.sql("COMMIT")
        assert check_feed(spark, b, latest_version(b)) == updated(1, 10, 12)
        changes = (*updated(1, 10, 12), (4, 40, "insert"))
        assert check_feed(spark, a, latest_version(a)) == changes
    assert unknown_files(a) == unknown_files(b) == []


def test_columns_that_delta_fills(spark: SparkSession, tmp_path: Path) -> None:
    """And values that are NULL, constraints, and a session that skips missing files."""
    table = make_table(
        spark,
        tmp_path / "t",
        policy="row_level",
        columns="(id INT, twice INT GENERATED ALWAYS AS (id * 2), "
        "n BIGINT GENERATED ALWAYS AS IDENTITY, s STRUCT<a: INT, b: ARRAY<STRING>>, "
        "c CHAR(3) NOT NULL) USING delta",
        properties={"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"},
        statements=(
            "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
            "INSERT INTO {t} (id, s, c) VALUES (1, NULL, 'a'), "
            "(2, struct(1, array('x', NULL)), 'b')",
        ),
    )
    with confs(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        begin(spark, f"INSERT INTO {table} (id, s, c) VALUES (3, NULL, 'c')")
        spark.sql(f"UPDATE {table} SET id = id + 10 WHERE id > 1")
        version = end(spark)
    query = f"SELECT * FROM table_changes('{table}', {version}, {version})"
    found = spark.sql(query).drop("_commit_version", "_commit_timestamp").collect()
    (two,) = spark.sql(f"SELECT * FROM {table} VERSION AS OF {version} WHERE id = 12").collect()
    (three,) = spark.sql(f"SELECT * FROM {table} WHERE id = 13").collect()
    changes = {row["_change_type"]: tuple(row)[:-1] for row in found}
    assert changes == {
        "update_preimage": (2, 4, *two[2:]),
        "update_postimage": tuple(two),
        "insert": tuple(three),
    }
    assert len(found) == 3
    assert tuple(two)[3:] == ((1, ["x", None]), "b  ")
    assert unknown_files(table) == []
