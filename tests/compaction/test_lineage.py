"""What the log keeps of where a compaction's rows came from: enough to follow them, at no cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    commit,
    commit_file,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
)
from tests.kit.tiny_files import of_tiny_files

MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
VECTORS = {"delta.enableDeletionVectors": "true"}


def size_of_commit(table: Table) -> int:
    return commit_file(table, latest_version(table)).stat().st_size


def file_tags(table: Table, kind: str, version: int) -> list[dict[str, str]]:
    found = [action[kind] for action in commit(table, version) if kind in action]
    return [action.get("tags") or {} for action in found]


def check_followed(spark: SparkSession, table: Table, inputs: int) -> None:
    """A DELETE follows its row out of a compaction, and costs what it costs in any file."""
    assert last_of(spark, table, (MAJOR,), "DELETE FROM {t} WHERE id = 2") is None
    expected = ((0,),) * (inputs + 1) + ((1,),)
    assert rows(spark, table) == deltalake_rows(table) == expected
    assert len(check_log(table)) == 1
    assert size_of_commit(table) < 10_000
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert size_of_commit(table) < 10_000
    assert rows(spark, table) == deltalake_rows(table) == expected[:-1]


@pytest.mark.soak
def test_more_inputs_than_one_text_can_name(spark: SparkSession, table_path: Path) -> None:
    """The input paths together exceed the longest string that JSON readers accept."""
    folder = "/".join("d" * 250 for _ in range(15))
    names = [f"{folder}/part-{n:05}.parquet" for n in range(5_400)]
    assert sum(map(len, names)) > 20_000_000
    check_followed(spark, of_tiny_files(spark, table_path, names), inputs=5_400)


@pytest.mark.soak
def test_three_hundred_thousand_inputs(spark: SparkSession, table_path: Path) -> None:
    """Stock Delta, in a process of its own, reads the table too."""
    names = (f"{n % 300}/part-{n:06}.parquet" for n in range(300_000))
    table = of_tiny_files(spark, table_path, names)
    check_followed(spark, table, inputs=300_000)
    reader = [sys.executable, "-m", "tests.kit.stock_reader", str(table.path)]
    counted = subprocess.run(reader, check=True, capture_output=True, text=True, timeout=600)
    assert json.loads(counted.stdout.splitlines()[-1]) == [[0, 300_001]]


def test_only_a_compactions_own_commit_has_the_lineage(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, properties=VECTORS)
    spark.sql(MAJOR.format(t=table))
    assert file_tags(table, "add", 3) == [{"interlock.compacted": "2"}]
    (path,) = check_log(table)
    moved = [json.loads(tags["interlock.moved"]) for tags in file_tags(table, "remove", 3)]
    assert sorted(moved) == [["", [path, 0, 1, 2]], ["", [path, 0, 2, 0]]]
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"UPDATE {table} SET v = 'U' WHERE id = 2")
    spark.sql(MAJOR.format(t=table))
    for version in (4, 5):
        assert "interlock.moved" not in str(commit(table, version))
    assert sorted(map(sorted, file_tags(table, "remove", 6))) == [
        ["interlock.compacted", "interlock.moved"],
        ["interlock.moved"],
    ]
    assert rows(spark, table) == deltalake_rows(table) == ((2, "U"), (3, "c"))


def test_a_compaction_that_was_rebased_is_followed_too(
    spark: SparkSession, table_path: Path
) -> None:
    """It removes a file with the vector of the DELETE that it passed, and tells of its rows."""
    table = make_table(spark, table_path, policy="row_level", properties=VECTORS)

    def others(session: SparkSession) -> None:
        delete, minor = "DELETE FROM {t} WHERE id = 1", "ALTER TABLE {t} COMPACT MINOR"
        first, held = race(session, sql_job(delete.format(t=table)), sql_job(minor.format(t=table)))
        assert (first.error, held.error, held.held) == (None, None, True)

    update = sql_job(f"UPDATE {table} SET v = 'U' WHERE id = 2")
    first, held = race(spark, python_job("others", others), update)
    assert (first.error, held.error, held.held) == (None, None, True)
    assert len(check_log(table)) == 2
    assert rows(spark, table) == deltalake_rows(table) == ((2, "U"), (3, "c"))


def test_a_text_that_readers_may_refuse_is_left_out(spark: SparkSession) -> None:
    """One input has so many segments that its tag would exceed a million characters."""
    jvm: Any = spark._jvm
    delta = jvm.org.apache.spark.sql.delta
    to_scala = jvm.scala.jdk.javaapi.CollectionConverters

    def removed(pieces: int) -> str:
        segments = [["A", "", 2 * n, 1, n] for n in range(pieces)]
        tags = {"interlock.inputs": json.dumps(segments)}
        file = {"path": "M", "partitionValues": {}, "size": 1, "modificationTime": 1}
        add = {**file, "dataChange": False, "tags": tags}
        remove = {"path": "A", "dataChange": False, "tags": {"mine": "kept"}}
        actions = jvm.java.util.ArrayList()
        for action in ({"add": add}, {"remove": remove}):
            actions.add(delta.actions.Action.fromJson(json.dumps(action)))
        seq = to_scala.asScala(actions).toSeq()
        return str(jvm.io.interlock.spark.compaction.Lineage.committed(seq).apply(1).json())

    assert json.loads(removed(2))["remove"]["tags"] == {
        "mine": "kept",
        "interlock.moved": '["",["M",0,1,0,2,1,1]]',
    }
    assert json.loads(removed(100_000))["remove"]["tags"] == {"mine": "kept"}
