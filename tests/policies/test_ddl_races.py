"""Statements that change one table's metadata at once: equal ones are one, different ones both
stand, and of two that contradict each other the later one fails and says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from interlock import MetadataChangedError
from interlock.lab.model import Rows
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    commit,
    deltalake_rows,
    ids,
    last_of,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
)

ALTER = "ALTER TABLE {t} "
SET = ALTER + "SET TBLPROPERTIES "
ADD = ALTER + "ADD COLUMN "
COMMENT = "COMMENT ON TABLE {t} IS 'of events'"
INSERT = "INSERT INTO {t} (id, v) VALUES (1, 'a'), (2, 'b')"
FIRST: Rows = ((1, "a"), (2, "b"))
MAPPED = "delta.columnMapping.mode"
Job = Callable[[SparkSession, Table], object]


def table_of(
    spark: SparkSession,
    path: Path,
    *,
    policy: str = "row_level",
    mapping: str = "none",
    columns: str = "(id INT NOT NULL, v STRING) USING delta",
) -> Table:
    """Make a table that has its two rows since version 1."""
    properties = {} if mapping == "none" else {MAPPED: mapping}
    return make_table(
        spark, path, policy=policy, columns=columns, properties=properties, statements=(INSERT,)
    )


def fields(spark: SparkSession, table: Table) -> dict[str, str]:
    """Return the columns' types and comments, in order."""
    found = spark.sql(f"SELECT * FROM {table}").schema
    return {
        it.name: f"{it.dataType.simpleString()} {it.metadata.get('comment', '')}".strip()
        for it in found
    }


def last(table: Table) -> dict[str, Any]:
    """Return the metadata in the newest commit that has one."""
    versions = range(latest_version(table), -1, -1)
    found = (
        action["metaData"] for v in versions for action in commit(table, v) if "metaData" in action
    )
    metadata: dict[str, Any] = next(found)
    return metadata


def told(spark: SparkSession, table: Table, *statements: str) -> list[str | None]:
    """Race statements and return their errors."""
    ended = sql_race(spark, table, *statements)
    assert all(job.held for job in ended[1:])
    return [str(job.error) if job.error else None for job in ended]


EQUAL = {
    "comment": COMMENT,
    "comment of a column": ALTER + "ALTER COLUMN v COMMENT 'value'",
    "own property": SET + "('team' = 'x')",
    "property of Delta": SET + "('delta.appendOnly' = 'true')",
    "property with a feature": SET + "('delta.enableChangeDataFeed' = 'true')",
    "unset": ALTER + "UNSET TBLPROPERTIES IF EXISTS ('delta.enableDeletionVectors')",
    "new column": ADD + "w VARCHAR(9) FIRST",
    "nullable": ALTER + "ALTER COLUMN id DROP NOT NULL",
    "constraint": ALTER + "ADD CONSTRAINT positive CHECK (id > 0)",
    "name": ALTER + "RENAME COLUMN v TO w",
    "dropped column": ALTER + "DROP COLUMN v",
    "clustering": ALTER + "CLUSTER BY (v)",
}


@pytest.mark.variant_cases(but=["property of*", "new column", "constraint", "name", "clustering"])
@pytest.mark.parametrize("change", EQUAL)
def test_two_equal_changes_are_one(spark: SparkSession, table_path: Path, change: str) -> None:
    mapping = "name" if change in ("name", "dropped column") else "none"
    table = table_of(spark, table_path, mapping=mapping)
    ended = sql_race(spark, table, *[EQUAL[change]] * 3)
    assert [job.error for job in ended] == [None] * 3
    assert latest_version(table) == 4
    kinds = {"metaData", "domainMetadata", "protocol"}
    made = [
        {kind: action[kind] for action in commit(table, version) for kind in kinds & set(action)}
        for version in (2, 3, 4)
    ]
    first = {**commit(table, 0)[1], **made[0]}
    assert all(again["metaData"] == made[0]["metaData"] for again in made[1:])
    assert not any("protocol" in again for again in made[1:])
    assert {"metaData", "protocol"} & set(first)
    expected = {
        "new column": ((None, 1, "a"), (None, 2, "b")),
        "dropped column": ((1,), (2,)),
    }.get(change, FIRST)
    assert rows(spark, table) == expected
    assert rows(spark, table, version=1) == FIRST
    if mapping == "none":
        assert deltalake_rows(table) == expected
    check_log(table)


def test_different_changes_both_stand(spark: SparkSession, table_path: Path) -> None:
    """Each in its place, as if one had been made after the other."""
    table = table_of(spark, table_path)
    found = told(
        spark,
        table,
        ADD + "a INT COMMENT 'new'",
        ADD + "b STRUCT<x: INT>",
        ADD + "c INT FIRST",
        ADD + "d INT FIRST",
        ADD + "e INT AFTER id",
        ADD + "f INT AFTER id",
        ALTER + "ALTER COLUMN id COMMENT 'key'",
        ALTER + "ALTER COLUMN v COMMENT 'value'",
        SET + "('team' = 'x', 'delta.logRetentionDuration' = 'interval 60 days')",
        INSERT,
        COMMENT,
    )
    assert found == [None] * 11
    assert latest_version(table) == 12
    assert fields(spark, table) == {
        "d": "int",
        "c": "int",
        "id": "int key",
        "f": "int",
        "e": "int",
        "v": "string value",
        "a": "int new",
        "b": "struct<x:int>",
    }
    assert last(table)["description"] == "of events"
    assert last(table)["configuration"]["team"] == "x"
    row = (None, None, 1, None, None, "a", None, None)
    expected = (row, row, (*row[:2], 2, *row[3:5], "b", None, None)) * 1
    assert rows(spark, table) == deltalake_rows(table) == (*expected, expected[2])
    assert rows(spark, table, version=1) == FIRST
    check_log(table)


def test_nested_columns_and_column_mapping(spark: SparkSession, table_path: Path) -> None:
    """Ids and names in files are those of the first, and no id is given twice."""
    nested = (
        "(id INT, v STRING, s STRUCT<p: INT, o: INT>, l ARRAY<STRUCT<k: INT>>, "
        "m MAP<STRING, STRUCT<k: INT>>) USING delta"
    )
    table = table_of(spark, table_path, mapping="name", columns=nested)
    found = told(
        spark,
        table,
        ADD + "s.x INT",
        ADD + "s.y INT AFTER p",
        ADD + "l.element.q INT",
        ADD + "m.value.r INT FIRST",
        ADD + "S.X INT",
        ADD + "w STRUCT<a: INT>",
        ALTER + "ALTER COLUMN s.p COMMENT 'part'",
        "INSERT INTO {t} SELECT 3, 'c', named_struct('p', 1, 'o', 2), "
        "array(named_struct('k', 1)), map('a', named_struct('k', 1))",
    )
    assert found == [None] * 8
    found_fields = fields(spark, table)
    assert found_fields["s"] == "struct<p:int,y:int,o:int,x:int>"
    assert found_fields["l"] == "array<struct<k:int,q:int>>"
    assert found_fields["m"] == "map<string,struct<r:int,k:int>>"
    assert found_fields["w"] == "struct<a:int>"
    mapped = re.findall(r'columnMapping.id":(\d+)', last(table)["schemaString"])
    assert len(mapped) == len(set(mapped)) == 15
    assert last(table)["configuration"]["delta.columnMapping.maxColumnId"] == max(mapped, key=int)
    third = spark.sql(f"SELECT s, l[0], m['a'], w FROM {table} WHERE id = 3").first()
    assert third is not None
    assert [tuple(it) if it else it for it in third] == [
        (1, None, 2, None),
        (1, None),
        (None, 1),
        None,
    ]
    check_log(table)


def appended(select: str) -> Job:
    """Make a job that appends with `mergeSchema`."""
    return lambda spark, table: (
        spark.sql(select)
        .write.format("delta")
        .mode("append")
        .option("mergeSchema", "true")
        .save(str(table.path))
    )


def merged(select: str) -> Job:
    """Make a job that merges by id, with schema evolution."""
    return lambda spark, table: spark.sql(
        f"MERGE WITH SCHEMA EVOLUTION INTO {table} t USING ({select}) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def evolving(spark: SparkSession, table: Table, *jobs: Job | str) -> list[Exception | None]:
    def named(job: Job | str) -> Any:
        if isinstance(job, str):
            return sql_job(job.format(t=table))
        return python_job("evolves", lambda session: job(session, table))

    return [job.error for job in race(spark, *map(named, jobs))]


@pytest.mark.variant_cases("id-*")
@pytest.mark.parametrize(
    ("mapping", "policy"),
    [
        ("none", "row_level"),
        ("name", "row_level"),
        ("id", "row_level"),
        ("none", "write_serializable"),
    ],
)
def test_jobs_that_evolve_the_schema_alike(
    spark: SparkSession, table_path: Path, mapping: str, policy: str
) -> None:
    table = table_of(spark, table_path, mapping=mapping, policy=policy)
    ended = evolving(
        spark,
        table,
        appended("SELECT 3 AS id, 'c' AS v, 30 AS w"),
        ADD + "w INT",
        appended("SELECT 4 AS id, 'd' AS v, 40 AS w"),
        merged("SELECT 5 AS id, 'e' AS v, 50 AS w"),
        "INSERT INTO {t} VALUES (6, 'f')",
    )
    assert ended == [None] * 5
    assert list(fields(spark, table)) == ["id", "v", "w"]
    expected = tuple(
        (i, v, i * 10 if 3 <= i <= 5 else None) for i, v in enumerate("abcdef", start=1)
    )
    assert rows(spark, table) == expected
    if mapping == "none":
        assert deltalake_rows(table) == expected
    assert rows(spark, table, version=2) == ((*FIRST[0], None), (*FIRST[1], None), (3, "c", 30))
    check_log(table)


def test_jobs_that_evolve_the_schema_in_different_ways(
    spark: SparkSession, table_path: Path
) -> None:
    table = table_of(spark, table_path)
    ended = evolving(
        spark,
        table,
        appended("SELECT 3 AS id, 'c' AS v, 30 AS w"),
        ADD + "x INT AFTER id",
        appended("SELECT 4 AS id, 'd' AS v, 40L AS y"),
        merged("SELECT 2 AS id, 'M' AS v, 'z' AS z"),
        "DELETE FROM {t} WHERE id = 1",
    )
    assert ended == [None] * 5
    assert list(fields(spark, table)) == ["id", "x", "v", "w", "y", "z"]
    expected = (
        (2, None, "M", None, None, "z"),
        (3, None, "c", 30, None, None),
        (4, None, "d", None, 40, None),
    )
    assert rows(spark, table) == deltalake_rows(table) == expected
    assert rows(spark, table, version=1) == FIRST
    check_log(table)


RENAMED = (ADD + "w INT", ALTER + "RENAME COLUMN w TO x")
DROPPED = (ADD + "w INT", "INSERT INTO {t} VALUES (4, 'd', 5)", ALTER + "DROP COLUMN w")


@pytest.mark.parametrize(
    ("mapping", "winners"),
    [
        ("id", (ADD + "x INT",)),
        ("none", (ADD + "W INT",)),
        ("name", RENAMED),
        ("name", DROPPED),
    ],
    ids=["other id", "other case", "renamed", "dropped"],
)
def test_files_with_other_names_of_columns(
    spark: SparkSession, table_path: Path, mapping: str, winners: tuple[str, ...]
) -> None:
    """Without column mapping they have columns by name, which some readers compare by case."""
    table = table_of(spark, table_path, mapping=mapping, columns="(id INT, v STRING) USING delta")
    merge = (
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 3 AS id, 'c' AS v, 30 AS w) s "
        "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    lost = last_of(spark, table, winners, merge)
    assert isinstance(lost, MetadataChangedError)
    assert "its own new columns under other names or ids." in str(lost)
    assert 30 not in [row[-1] for row in rows(spark, table)]


def test_files_with_other_new_columns_of_a_mapped_table(
    spark: SparkSession, table_path: Path
) -> None:
    """Readers of the mode `name` find them by the names that the files have."""
    table = table_of(spark, table_path, mapping="name")
    ended = evolving(
        spark,
        table,
        ADD + "x STRUCT<k: INT>",
        appended("SELECT 3 AS id, 'c' AS v, 30 AS w, named_struct('k', 3) AS y"),
        merged("SELECT 2 AS id, 'M' AS v, 20 AS w, 'z' AS z"),
        ADD + "w INT",
        "UPDATE {t} SET v = 'U' WHERE id = 1",
    )
    assert ended == [None] * 5
    assert list(fields(spark, table)) == ["id", "v", "x", "w", "y", "z"]
    found = [tuple(row) for row in spark.sql(f"SELECT * FROM {table} ORDER BY id").collect()]
    assert found == [
        (1, "U", None, None, None, None),
        (2, "M", None, 20, None, "z"),
        (3, "c", None, 30, (3,), None),
    ]
    mapped = re.findall(r'columnMapping.id":(\d+)', last(table)["schemaString"])
    assert len(mapped) == len(set(mapped)) == 8
    assert last(table)["configuration"]["delta.columnMapping.maxColumnId"] == max(mapped, key=int)
    spark.sql(f"ALTER TABLE {table} DROP COLUMN w")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN w INT")
    assert {row.w for row in spark.sql(f"SELECT w FROM {table}").collect()} == {None}
    check_log(table)


REPLACE = "CREATE OR REPLACE TABLE {{t}} USING delta AS {0}"
CONTRADICTIONS = {
    "changed the column w to INT AFTER v, and this job to STRING AFTER v": (
        ADD + "w INT",
        ADD + "w STRING",
    ),
    "changed the column w to INT AFTER v, and this job to INT FIRST": (
        ADD + "w INT",
        ADD + "W INT FIRST",
    ),
    "changed the column w, and this job changes it in another way": (
        ADD + "w VARCHAR(5)",
        ADD + "w VARCHAR(6)",
    ),
    "changed the column v": (
        ALTER + "RENAME COLUMN v TO x",
        "INSERT INTO {t} VALUES (0, 'c')",
    ),
    "changed the table's partitioning, format or id, and this job changes it in another way": (
        REPLACE.format("SELECT * FROM VALUES (1), (2) AS s(id)"),
        REPLACE.format("SELECT 3 AS id"),
    ),
    "changed the table's comment to of events, and this job to other": (
        COMMENT,
        COMMENT.replace("of events", "other"),
    ),
    "changed the comment of the column v to a, and this job to b": (
        ALTER + "ALTER COLUMN v COMMENT 'a'",
        ALTER + "ALTER COLUMN v COMMENT 'b'",
    ),
    "changed the property team to nothing, and this job to y": (
        ALTER + "UNSET TBLPROPERTIES ('team')",
        SET + "('team' = 'y')",
    ),
    "changed the property delta.constraints.c to id > 0, and this job to id >= 0": (
        ALTER + "ADD CONSTRAINT c CHECK (id > 0)",
        ALTER + "ADD CONSTRAINT c CHECK (id >= 0)",
    ),
    "changed the property delta.constraints.c": (
        ALTER + "ADD CONSTRAINT c CHECK (id > 0)",
        "INSERT INTO {t} VALUES (0, 'c')",
    ),
    "changed the property delta.appendOnly": (SET + "('delta.appendOnly' = 'true')", COMMENT),
    "changed the column w, and this job changes the property delta.appendOnly": (
        ADD + "w INT",
        SET + "('delta.appendOnly' = 'true')",
    ),
    "changed the column w": (ALTER + "RENAME COLUMN v TO w", ALTER + "RENAME COLUMN v TO x"),
    "changed the column id": (
        ALTER + "ALTER COLUMN v FIRST",
        "UPDATE {t} SET v = 'U' WHERE id = 1",
    ),
    "changed delta.clustering, and this job in another way": (
        ALTER + "CLUSTER BY (v)",
        ALTER + "CLUSTER BY (id, v)",
    ),
}


@pytest.mark.variant_cases("*appendOnly", "*comment*", "*constraints.c to*")
@pytest.mark.parametrize("why", CONTRADICTIONS)
def test_contradictions(spark: SparkSession, table_path: Path, why: str) -> None:
    earlier, later = CONTRADICTIONS[why]
    table = table_of(
        spark,
        table_path,
        mapping="name" if "RENAME" in earlier else "none",
        columns="(id INT, v STRING) USING delta"
        + (" CLUSTER BY (id)" if "CLUSTER" in earlier else ""),
    )
    spark.sql((SET + "('team' = 'x')").format(t=table))
    first, second = sql_race(spark, table, earlier, later)
    assert first.error is None
    assert second.held
    assert isinstance(second.error, MetadataChangedError)
    assert second.error.getCondition() == "INTERLOCK_METADATA_CHANGED"
    assert (second.error.read_version, second.error.winner_version) == (2, 3)
    assert second.error.why is not None
    assert second.error.why.endswith(f") {why}")
    assert latest_version(table) == 3
    assert ids(spark, table) == [1, 2]


def drop(spark: SparkSession, table: Table) -> None:
    spark.sql(f"ALTER TABLE {table} DROP COLUMN v")


def overwrite_without(spark: SparkSession, table: Table) -> None:
    new = spark.sql("SELECT 7 AS id").write.format("delta").mode("overwrite")
    new.option("overwriteSchema", "true").save(str(table.path))


def overwrite_partitioned(spark: SparkSession, table: Table) -> None:
    new = spark.sql("SELECT 7 AS id, 'r' AS v").write.format("delta").mode("overwrite")
    new.option("overwriteSchema", "true").partitionBy("id").save(str(table.path))


@pytest.mark.variant_cases("serializable-*", "*-overwrite_without")
@pytest.mark.parametrize(
    ("policy", "later"),
    [
        ("maxcompute_delta", drop),
        ("serializable", drop),
        ("row_level", overwrite_without),
        ("row_level", overwrite_partitioned),
    ],
)
def test_a_clustering_that_the_later_job_has_not_seen(
    spark: SparkSession, table_path: Path, policy: str, later: Job
) -> None:
    """A table that is clustered by no column of its own could not be optimized any more."""
    layout = " CLUSTER BY (id)" if later is drop else ""
    table = table_of(
        spark,
        table_path,
        policy=policy,
        mapping="name",
        columns=f"(id INT NOT NULL, v STRING) USING delta{layout}",
    )
    cluster = sql_job((ALTER + "CLUSTER BY (v)").format(t=table))
    first, second = race(spark, cluster, python_job("later", lambda session: later(session, table)))
    assert first.error is None
    assert second.held
    assert isinstance(second.error, MetadataChangedError)
    assert second.error.why is not None
    assert ") clustered the table" in second.error.why
    assert latest_version(table) == 2
    assert rows(spark, table) == FIRST
    spark.sql(f"OPTIMIZE {table}")
    detail = spark.sql(f"DESCRIBE DETAIL {table}").first()
    assert detail is not None
    assert (detail["clusteringColumns"], detail["partitionColumns"]) == (["v"], [])


def test_the_columns_by_which_it_is_clustered_already(
    spark: SparkSession, table_path: Path
) -> None:
    table = table_of(spark, table_path, columns="(id INT, v STRING) USING delta CLUSTER BY (v)")
    again = ALTER + "CLUSTER BY (v)"
    spark.sql(again.format(t=table))
    assert latest_version(table) == 1
    updated, clustered = sql_race(spark, table, "UPDATE {t} SET v = 'U' WHERE id = 1", again)
    assert (updated.error, clustered.error) == (None, None)
    assert latest_version(table) == 2
    spark.sql((ALTER + "CLUSTER BY (id)").format(t=table))
    assert latest_version(table) == 3


NEW = ADD + "w INT"
WINNERS = {
    "a comment": (ALTER + "ALTER COLUMN v COMMENT 'x'",),
    "a column that is dropped": (
        NEW,
        "INSERT INTO {t} VALUES (3, 'c', 5)",
        ALTER + "DROP COLUMN w",
    ),
}


@pytest.mark.parametrize("mapping", ["name", "id"])
@pytest.mark.parametrize("winners", WINNERS)
def test_a_new_column_never_has_the_data_of_a_dropped_one(
    spark: SparkSession, table_path: Path, winners: str, mapping: str
) -> None:
    table = table_of(spark, table_path, mapping=mapping, columns="(id INT, v STRING) USING delta")
    assert last_of(spark, table, WINNERS[winners], NEW) is None
    if winners == "a comment":
        spark.sql(f"INSERT INTO {table} VALUES (3, 'c', 5)")
        spark.sql(f"ALTER TABLE {table} DROP COLUMN w")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN w INT")
    assert rows(spark, table) == ((1, "a", None), (2, "b", None), (3, "c", None))
    columns = json.loads(last(table)["schemaString"])["fields"]
    highest = max(column["metadata"]["delta.columnMapping.id"] for column in columns)
    assert int(last(table)["configuration"]["delta.columnMapping.maxColumnId"]) >= highest


def test_a_change_is_not_lost_because_part_of_it_was_made(
    spark: SparkSession, table_path: Path
) -> None:
    """Both add w, and the later one also widens id."""
    table = table_of(spark, table_path, columns="(id INT, v STRING) USING delta")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")

    def append(session: SparkSession) -> None:
        wide = session.sql("SELECT 3000000000 AS id, 'c' AS v, 30 AS w").write.format("delta")
        wide.mode("append").option("mergeSchema", "true").save(str(table.path))

    added = sql_job(NEW.format(t=table))
    won, lost = race(spark, added, python_job("append", append))
    assert won.ok
    assert "changed the table's schema, and this job changes it as well" in str(lost.error)
    assert fields(spark, table) == {"id": "int", "v": "string", "w": "int"}
    append(spark)
    assert rows(spark, table)[2:] == ((3000000000, "c", 30),)


def test_a_table_that_is_replaced_keeps_its_clustering(
    spark: SparkSession, table_path: Path
) -> None:
    table = table_of(spark, table_path)
    replace = "CREATE OR REPLACE TABLE {t} USING delta CLUSTER BY (v) AS SELECT 7 AS id, 'r' AS v"
    _, error = told(spark, table, ALTER + "CLUSTER BY (v)", replace)
    assert error is None or "INTERLOCK_METADATA_CHANGED" in error
    detail = spark.sql(f"DESCRIBE DETAIL {table}").first()
    assert detail is not None
    assert detail["clusteringColumns"] == ["v"]
    assert rows(spark, table) == (FIRST if error else ((7, "r"),))
