"""What a compaction keeps: the order of rows, their ids and values, and where each came from."""

from __future__ import annotations

import json
import shutil
import struct
from base64 import b85encode
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from interlock.lab.model import in_order
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    commit,
    commit_file,
    deltalake_rows,
    latest_version,
    live_files,
    make_table,
    row_tracking,
    rows,
    tags,
    versions,
)

# The same digits in ZeroMQ's order.
Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)
VECTORS = {"delta.enableDeletionVectors": "true"}
THREE_FILES = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(10 - id AS INT), 'a' FROM range(10)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(20 - id AS INT), 'b' FROM range(10)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(30 - id AS INT), 'c' FROM range(10)",
)
ORDER = [*range(10, 0, -1), *range(20, 10, -1), *range(30, 20, -1)]
STATEMENTS = ("ALTER TABLE {t} COMPACT MINOR", "ALTER TABLE {t} COMPACT MAJOR", "OPTIMIZE {t}")


def actions(table: Table, kind: str, version: int | None = None) -> list[dict[str, Any]]:
    found = commit(table, latest_version(table) if version is None else version)
    return [action[kind] for action in found if kind in action]


def added(table: Table, version: int | None = None) -> list[dict[str, Any]]:
    return actions(table, "add", version)


def inputs(table: Table, file: dict[str, Any]) -> list[list[Any]]:
    """List `source, vector, start, rows, target` for the rows of a file of the last version."""
    found = []
    for remove in actions(table, "remove"):
        vector, *outputs = json.loads(remove["tags"]["interlock.moved"])
        found += [
            [remove["path"], vector, *numbers] for path, *numbers in outputs if path == file["path"]
        ]
    return sorted(found, key=lambda segment: segment[-1])


def stored(table: Table, file: dict[str, Any], column: str = "id") -> list[Any]:
    """Read a column of a data file, in the order of its rows, without Spark."""
    found: list[Any] = parquet.ParquetFile(table.path / file["path"]).read()[column].to_pylist()
    return found


@pytest.mark.variant_cases(but=["ALTER TABLE {t} COMPACT MAJOR"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_order_lineage_and_row_ids(spark: SparkSession, table_path: Path, statement: str) -> None:
    table = make_table(spark, table_path, properties=VECTORS, statements=THREE_FILES)
    paths = [added(table, version)[0]["path"] for version in (1, 2, 3)]
    spark.sql(f"DELETE FROM {table} WHERE id IN (10, 7, 1, 15)")
    left = [n for n in ORDER if n not in (10, 7, 1, 15)]
    tracked = row_tracking(spark, table)
    expected = rows(spark, table)

    spark.sql(statement.format(t=table))
    (file,) = added(table)
    vectors = {remove["path"]: remove.get("deletionVector") for remove in actions(table, "remove")}
    segments = inputs(table, file)
    assert [[path, *numbers] for path, _, *numbers in segments] == [
        [paths[0], 0, 7, 0],
        [paths[1], 0, 9, 7],
        [paths[2], 0, 10, 16],
    ]
    assert [bool(token) for _, token, *_ in segments] == [True, True, False]
    assert [bool(vectors[path]) for path in paths] == [True, True, False]
    assert len({token for _, token, *_ in segments}) == 3
    assert stored(table, file) == left
    assert json.loads(file["stats"])["numRecords"] == 26
    assert json.loads(file["stats"])["minValues"]["id"] == 2
    assert file["baseRowId"] >= 30
    assert row_tracking(spark, table) == tracked
    assert rows(spark, table) == deltalake_rows(table) == expected


def test_major_purges_dead_rows_and_forgets_dead_files(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, properties=VECTORS, statements=THREE_FILES)
    spark.sql(f"ALTER TABLE {table} COMPACT MINOR")
    spark.sql(f"DELETE FROM {table} WHERE id % 2 = 0")
    tracked = row_tracking(spark, table)
    row = spark.sql(f"ALTER TABLE {table} COMPACT MAJOR").collect()[0]
    assert (row["files_in"], row["files_out"], row["rows"], row["rows_purged"]) == (1, 1, 15, 15)
    (file,) = added(table)
    assert stored(table, file) == [n for n in ORDER if n % 2]
    assert inputs(table, file)[0][2:] == [0, 15, 0]
    assert row_tracking(spark, table) == tracked
    again = spark.sql(f"ALTER TABLE {table} COMPACT MAJOR").collect()[0]
    assert (again["files_in"], again["files_out"], again["rows_purged"]) == (1, 1, 0)


def test_files_without_live_rows(spark: SparkSession, table_path: Path) -> None:
    """All rows of one partition's file are marked as deleted, and half of another file's."""
    columns = "(id INT, p INT) USING delta PARTITIONED BY (p)"
    statements = ("INSERT INTO {t} VALUES (1, 1), (2, 1), (3, 2), (4, 2)",)
    table = make_table(
        spark, table_path, columns=columns, properties=VECTORS, statements=statements
    )
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    table = Table(shutil.copytree(table.path, table_path.with_name("edited")))
    kill_all_rows(table)
    assert rows(spark, table) == ((3, 2), (4, 2))
    row = spark.sql(f"ALTER TABLE {table} COMPACT MAJOR").collect()[0]
    assert (row["files_in"], row["files_out"], row["rows"], row["rows_purged"]) == (2, 1, 2, 2)
    assert [file["partitionValues"] for file in added(table)] == [{"p": "2"}]
    assert rows(spark, table) == deltalake_rows(table) == ((3, 2), (4, 2))


def kill_all_rows(table: Table) -> None:
    """Make the vector of the last DELETE one over rows 0 and 1; Delta would remove the file."""
    found = commit(table, latest_version(table))
    (file,) = (action["add"] for action in found if "add" in action)
    bitmap = struct.pack("<IQIIIHHIHH", 1681511377, 1, 0, 12346, 1, 0, 1, 16, 0, 1)
    file["deletionVector"] = {
        "storageType": "i",
        "pathOrInlineDv": b85encode(bitmap).translate(Z85).decode(),
        "sizeInBytes": len(bitmap),
        "cardinality": 2,
    }
    rewrite_log(table, "\n".join(json.dumps(action) for action in found))


def rewrite_log(table: Table, text: str) -> None:
    """Put another text in the place of the last version, before any session has read it."""
    log = commit_file(table, latest_version(table))
    for checksum in (log.with_suffix(".crc"), log.with_name(f".{log.name}.crc")):
        checksum.unlink(missing_ok=True)
    log.write_text(text + "\n", encoding="utf-8")


@pytest.mark.variant
@pytest.mark.parametrize("mode", ["name", pytest.param("id", marks=pytest.mark.soak)])
def test_mapped_columns_and_special_partitions(
    spark: SparkSession, table_path: Path, mode: str
) -> None:
    columns = "(id INT, `a b` STRING, p STRING, ts TIMESTAMP) USING delta PARTITIONED BY (p, ts)"
    values = ("(1, 'x', 'a/b: %c', TIMESTAMP'2026-01-01 10:00:00')", "(2, 'y', NULL, NULL)")
    statements = tuple(
        f"INSERT INTO {{t}} VALUES {', '.join(v.replace('(', f'({n}', 1) for v in values)}"
        for n in (1, 2, 3)
    )
    table = make_table(
        spark,
        table_path,
        columns=columns,
        properties={"delta.columnMapping.mode": mode, **VECTORS},
        statements=statements,
    )
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN `a b` TO `c d`")
    expected = rows(spark, table)
    tracked = row_tracking(spark, table)
    row = spark.sql(f"ALTER TABLE {table} PARTITION (p = 'a/b: %c') COMPACT MINOR").collect()[0]
    assert (row["files_in"], row["files_out"], row["rows"]) == (3, 1, 3)
    row = spark.sql(f"ALTER TABLE {table} COMPACT MAJOR").collect()[0]
    assert (row["files_in"], row["files_out"], row["rows"]) == (4, 2, 6)
    assert sorted(len(inputs(table, file)) for file in added(table)) == [1, 3]
    assert rows(spark, table) == expected
    assert row_tracking(spark, table) == tracked
    assert spark.sql(f"SELECT `c d` FROM {table} WHERE p IS NULL").count() == 3


@pytest.mark.variant
def test_generated_identity_and_checked_columns(spark: SparkSession, table_path: Path) -> None:
    """Values are copied: nothing is generated anew, and no high-water mark moves."""
    columns = (
        "(id INT, n BIGINT GENERATED BY DEFAULT AS IDENTITY, m BIGINT GENERATED ALWAYS AS IDENTITY,"
        " g INT GENERATED ALWAYS AS (id * 2), c CHAR(5), w VARCHAR(5),"
        " CONSTRAINT positive CHECK (id > 0)) USING delta"
    ).replace(", CONSTRAINT positive CHECK (id > 0)", "")
    statements = (
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
        "INSERT INTO {t} (id, c, w) VALUES (1, 'a', 'b '), (2, 'c', NULL)",
        "INSERT INTO {t} (id, n, c, w) VALUES (3, 77, 'e', '')",
    )
    table = make_table(spark, table_path, columns=columns, statements=statements)
    expected = rows(spark, table)
    spark.sql(f"ALTER TABLE {table} COMPACT MAJOR")
    assert actions(table, "metaData") == []
    assert stored(table, added(table)[0], "n") == [row[1] for row in expected]
    assert stored(table, added(table)[0], "c") == ["a    ", "c    ", "e    "]
    assert rows(spark, table) == deltalake_rows(table) == expected


def test_the_users_confs_do_not_matter(spark: SparkSession, table_path: Path) -> None:
    """Confs that split, sort, limit or skip change nothing in the result, and stay as they were."""
    columns = "(id INT, p INT) USING delta PARTITIONED BY (p)"
    statements = tuple(
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ CAST(id AS INT), CAST(id % 2 AS INT)"
        f" FROM range({n}, {n + 40})"
        for n in (0, 40, 80)
    )
    table = make_table(spark, table_path, columns=columns, statements=statements)
    session = spark.newSession()
    confs = {
        "spark.sql.files.maxPartitionBytes": "64b",
        "spark.sql.files.maxPartitionNum": "2",
        "spark.sql.files.maxRecordsPerFile": "7",
        "spark.sql.maxConcurrentOutputFileWriters": "0",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.databricks.delta.stats.collect": "false",
        "spark.databricks.delta.optimizeWrite.enabled": "true",
    }
    for key, value in confs.items():
        session.conf.set(key, value)
    session.sql(f"ALTER TABLE {table} COMPACT MAJOR")
    files = {file["partitionValues"]["p"]: file for file in added(table)}
    assert stored(table, files["0"]) == list(range(0, 120, 2))
    assert stored(table, files["1"]) == list(range(1, 120, 2))
    assert {key: session.conf.get(key) for key in confs} == confs
    assert rows(spark, table) == in_order(tuple((n, n % 2) for n in range(120)))


class TestOptimize:
    def test_its_bins_are_tagged_one_by_one(self, spark: SparkSession, table_path: Path) -> None:
        """Each bin is written by a thread of its own."""
        columns = "(id INT, p INT) USING delta PARTITIONED BY (p)"
        statements = tuple(
            "INSERT INTO {t} SELECT CAST(id AS INT), CAST(id % 8 AS INT) FROM"
            f" range({n}, {n + 16})"
            for n in (0, 16, 32)
        )
        table = make_table(spark, table_path, columns=columns, statements=statements)
        spark.sql(f"OPTIMIZE {table}")
        files = added(table)
        assert len(files) == 8
        for file in files:
            found = [numbers for _, _, *numbers in inputs(table, file)]
            assert found == [[0, 2, 0], [0, 2, 2], [0, 2, 4]]
            first = int(file["partitionValues"]["p"])
            assert stored(table, file) == list(range(first, 48, 8))

    @pytest.mark.variant
    def test_purge_and_auto_compaction_are_tagged(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, properties=VECTORS, statements=THREE_FILES)
        spark.sql(f"DELETE FROM {table} WHERE id = 5")
        spark.sql(f"REORG TABLE {table} APPLY (PURGE)")
        assert [segment[2:] for segment in inputs(table, added(table)[0])] == [[0, 9, 0]]
        session = spark.newSession()
        session.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
        session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
        session.sql(f"INSERT INTO {table} VALUES (40, 'd')")
        assert len(inputs(table, added(table)[0])) == 4
        assert len(live_files(table)) == 1
        assert rows(spark, table) == deltalake_rows(table)

    def test_a_table_without_a_policy_is_deltas_own(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy=None)
        spark.sql(f"OPTIMIZE {table}")
        assert [file.get("tags") for file in added(table)] == [None]
        assert tags(table, latest_version(table)).get("interlock.class") is None


def test_counts_that_do_not_add_up_stop_it(spark: SparkSession, example: Table) -> None:
    """The log states a wrong number of rows for a file: nothing is committed."""
    text = commit_file(example, 2).read_text(encoding="utf-8")
    assert '\\"numRecords\\":1,' in text
    rewrite_log(example, text.replace('\\"numRecords\\":1,', '\\"numRecords\\":2,'))
    for statement in ("ALTER TABLE {t} COMPACT MINOR", "OPTIMIZE {t}"):
        with pytest.raises(Exception, match=r"INTERLOCK_COMPACTION_MISMATCH.*1 rows were read"):
            spark.sql(statement.format(t=example))
    assert versions(example) == [0, 1, 2]


def test_files_without_counts_are_counted(spark: SparkSession, example: Table) -> None:
    text = commit_file(example, 2).read_text(encoding="utf-8")
    rewrite_log(example, text.replace('\\"numRecords\\":1,', ""))
    row = spark.sql(f"ALTER TABLE {example} COMPACT MINOR").collect()[0]
    assert (row["files_in"], row["files_out"], row["rows"]) == (2, 1, 3)
    found = [numbers for _, _, *numbers in inputs(example, added(example)[0])]
    assert found == [[0, 2, 0], [0, 1, 2]]
