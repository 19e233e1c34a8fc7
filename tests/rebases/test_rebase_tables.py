"""Rebases over compactions on every kind of table, and vectors that other writers left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from interlock.lab.model import in_order
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    commit,
    commit_file,
    deltalake_rows,
    latest_version,
    make_table,
    rows,
    sql_race,
)

MINOR = "ALTER TABLE {t} COMPACT MINOR"
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
VECTORS = {"delta.enableDeletionVectors": "true"}

KINDS: dict[str, tuple[str, dict[str, str]]] = {
    "generated": (
        "(id BIGINT, v STRING, twice BIGINT GENERATED ALWAYS AS (id * 2)) USING delta",
        {},
    ),
    "identity": ("(id BIGINT, v STRING, n BIGINT GENERATED ALWAYS AS IDENTITY) USING delta", {}),
    "column-mapping": ("(id BIGINT, v STRING) USING delta", {"delta.columnMapping.mode": "name"}),
    "clustered": ("(id BIGINT, v STRING) USING delta CLUSTER BY (id)", {}),
    "checkpoints": (
        "(id BIGINT, v STRING) USING delta",
        {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "4"},
    ),
    "partitioned": ("(id BIGINT, v STRING) USING delta PARTITIONED BY (v)", {}),
}
FILES = (
    "INSERT INTO {t} (id, v) SELECT /*+ COALESCE(1) */ id, 'a' FROM range(0, 10)",
    "INSERT INTO {t} (id, v) SELECT /*+ COALESCE(1) */ id, 'b' FROM range(10, 20)",
    "DELETE FROM {t} WHERE id IN (1, 12)",
    "INSERT INTO {t} (id, v) SELECT /*+ COALESCE(1) */ id, 'a' FROM range(20, 30)",
)
LIVE = {i: "aba"[i // 10] for i in range(30) if i not in (1, 12)}


@pytest.mark.variant_cases(but=["column-mapping", "partitioned"])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_followed_on_every_kind_of_table(
    spark: SparkSession, table_path: Path, kind: str
) -> None:
    columns, properties = KINDS[kind]
    table = make_table(
        spark, table_path, columns=columns, properties=VECTORS | properties, statements=FILES
    )
    others = columns.count(",") - 1
    before = {row[0]: row[2:] for row in rows(spark, table)} if others else {}
    delete = "DELETE FROM {t} WHERE id IN (0, 13, 29)"
    results = sql_race(spark, table, MAJOR, "UPDATE {t} SET v = 'U' WHERE id IN (5, 15)")
    assert [result.error for result in results] == [None, None]
    results = sql_race(spark, table, delete, MINOR)
    assert [result.error for result in results] == [None, None]
    expected = {i: "U" if i in (5, 15) else v for i, v in LIVE.items() if i not in (0, 13, 29)}
    found = rows(spark, table)
    assert {row[0]: row[1] for row in found} == expected
    assert len(found) == len(expected)
    assert all(row[2:] == before[row[0]] for row in found if others)
    assert kind == "column-mapping" or deltalake_rows(table) == found
    check_log(table)


def test_vectors_inside_the_log_are_mapped(spark: SparkSession, table_path: Path) -> None:
    """Writers may put small vectors into the log itself; Delta's own never does."""
    table = make_table(
        spark,
        table_path,
        columns="(id BIGINT, v STRING) USING delta",
        properties=VECTORS,
        statements=FILES,
    )
    inline_vectors(spark, table)
    results = sql_race(spark, table, MAJOR, "DELETE FROM {t} WHERE id IN (0, 13, 29)")
    assert [result.error for result in results] == [None, None]
    expected = in_order(tuple((i, v) for i, v in LIVE.items() if i not in (0, 13, 29)))
    assert rows(spark, table) == deltalake_rows(table) == expected
    check_log(table)


def inline_vectors(spark: SparkSession, table: Table) -> None:
    """Commit, as another writer, every vector on disk as one in the log."""
    jvm: Any = spark._jvm
    descriptors = jvm.org.apache.spark.sql.delta.actions.DeletionVectorDescriptor
    version = latest_version(table) + 1
    info = commit(table, version - 1)[0]["commitInfo"] | {
        "operation": "MOVE VECTORS",
        "operationParameters": {},
        "operationMetrics": {},
        "txnId": "inline",
    }
    info["inCommitTimestamp"] += 1
    info.pop("tags", None)
    actions: list[dict[str, Any]] = [{"commitInfo": info}]
    for add in check_log(table).values():
        if "deletionVector" not in add:
            continue
        vector = add["deletionVector"]
        on_disk = descriptors.apply(
            vector["storageType"],
            vector["pathOrInlineDv"],
            jvm.scala.Option.apply(vector["offset"]),
            vector["sizeInBytes"],
            vector["cardinality"],
            jvm.scala.Option.empty(),
        )
        folder = jvm.org.apache.hadoop.fs.Path(str(table.path))
        stored = Path(on_disk.absolutePath(folder).toUri().getPath()).read_bytes()
        start = vector["offset"] + 4  # behind the length
        stored = stored[start : start + vector["sizeInBytes"]]
        inline = descriptors.inlineInLog(bytearray(stored), vector["cardinality"])
        described = {
            "storageType": "i",
            "pathOrInlineDv": inline.pathOrInlineDv(),
            "sizeInBytes": inline.sizeInBytes(),
            "cardinality": inline.cardinality(),
        }
        moved = add | {"deletionTimestamp": 0, "extendedFileMetadata": True}
        actions.append({"remove": moved})
        actions.append({"add": add | {"deletionVector": described}})
    log = commit_file(table, version)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
