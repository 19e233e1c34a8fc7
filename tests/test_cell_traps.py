"""The traps of the documents' cells, each by its number, with all that can be seen of it.

What is only two statements on the documents' example runs as a case of the lab, which compares
outcome, error, rows, every earlier version, live files and versions with its model, and reads with
Spark and with `deltalake`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import interlock
import pytest
from interlock.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    MetadataChangedError,
)
from interlock.lab import variants
from interlock.lab.bodies import delete, merge, update
from interlock.lab.cases import Case, case
from interlock.lab.example import PLAIN, Tables
from interlock.lab.log import read_log
from interlock.lab.model import Body, Class, Rows, in_order
from interlock.lab.reader import independent_reader
from interlock.lab.runner import run_case
from pyspark.sql import SparkSession

from tests.support import (
    Table,
    commit,
    commit_info,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    rows,
    sql_race,
    sql_run_in_order,
    unknown_files,
    versions,
)

MINOR = "ALTER TABLE {t} COMPACT MINOR"
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
INSERT = "INSERT INTO {t} VALUES (10, 'i')"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
OVERWRITE = "INSERT OVERWRITE {t} VALUES (200, 'y')"
START = ((1, "a"), (2, "b"), (3, "c"))
VARIANTS = {variant.id: variant for variant in variants.ALL}
DELETE_ALL = Body(
    Class.UD, "DELETE FROM {t} WHERE id < 9", effect=lambda rows: (), adds_files=False
)


def run(spark: SparkSession, tables: Tables, case: Case) -> Table:
    result = run_case(spark, tables, case, reader=independent_reader())
    assert result.problems == ()
    return Table(result.table)


def example(tables: Tables, **properties: str) -> Table:
    """Make a copy of the documents' example, {1a, 2b, 3c} at version 2."""
    wanted = {f"delta.{name}": value for name, value in properties.items()}
    return Table(tables.fresh(PLAIN, {"interlock.policy": "maxcompute_delta", **wanted}))


def check_history(spark: SparkSession, table: Table, history: dict[int, Rows]) -> None:
    """Compare the last versions, read with Spark and with `deltalake`."""
    assert latest_version(table) == max(history)
    for version, expected in history.items():
        assert rows(spark, table, version=version) == in_order(expected)
        assert deltalake_rows(table, version=version) == in_order(expected)
    assert rows(spark, table) == in_order(history[max(history)])


def paths(table: Table, version: int, action: str) -> set[str]:
    return {found[action]["path"] for found in commit(table, version) if action in found}


@pytest.mark.parametrize("variant", ["D6-truncate-empty", "D6-no-rows-empty"])
def test_trap_01_an_overwrite_of_an_empty_snapshot_removes_what_came_meanwhile(
    spark: SparkSession, tables: Tables, variant: str
) -> None:
    table = run(spark, tables, VARIANTS[variant])
    assert commit_info(table, 4)["tags"]["interlock.rebasedOver"] == "3"


@pytest.mark.parametrize(
    ("cell", "later"),
    [("D3", delete(99)), ("D8", update(99, "U")), ("D13", merge(99, "M"))],
    ids=["D3-delete", "D8-update", "D13-merge"],
)
def test_trap_02_a_change_that_matches_no_rows_still_fails(
    spark: SparkSession, tables: Tables, cell: str, later: Body
) -> None:
    run(spark, tables, replace(case(cell), later=later))


def test_trap_02_a_change_that_matches_no_rows_and_passes_makes_no_version(
    spark: SparkSession, tables: Tables
) -> None:
    run(spark, tables, VARIANTS["P2-matches-nothing"])


@pytest.mark.parametrize("variant", ["D16-truncate", "D20-optimize", "D21-no-deletion-vectors"])
def test_trap_03_what_a_compaction_made_is_removed_and_not_what_it_was_made_of(
    spark: SparkSession, tables: Tables, variant: str
) -> None:
    table = run(spark, tables, VARIANTS[variant])
    compacted = paths(table, 3, "add")
    assert len(compacted) == 1
    assert paths(table, 4, "remove") == compacted


@pytest.mark.parametrize("variant", ["D14-optimize", "D14-merge", "D14-no-deletion-vectors"])
def test_trap_04_a_compaction_does_not_bring_back_what_was_updated(
    spark: SparkSession, tables: Tables, variant: str
) -> None:
    table = run(spark, tables, VARIANTS[variant])
    (add,) = (action["add"] for action in commit(table, 4) if "add" in action)
    dead = 2 if variant == "D14-no-deletion-vectors" else 1
    assert add["deletionVector"]["cardinality"] == dead
    assert not add["dataChange"]


def test_trap_05_no_isolation_level_leaves_unread_rows_behind(
    spark: SparkSession, tables: Tables
) -> None:
    table = run(spark, tables, VARIANTS["D6-no-deletion-vectors"])
    assert commit_info(table, 4)["isolationLevel"] == "Serializable"
    assert paths(table, 4, "remove") == {
        path for version in (1, 2, 3) for path in paths(table, version, "add")
    }


@pytest.mark.parametrize(
    "case",
    [
        VARIANTS["D1-truncate"],
        replace(case("D14"), id="D14-all-bins-dropped", earlier=DELETE_ALL),
    ],
    ids=lambda case: case.id,
)
def test_trap_06_jobs_that_are_left_with_nothing_to_do_make_a_version(
    spark: SparkSession, tables: Tables, case: Case
) -> None:
    table = run(spark, tables, case)
    assert paths(table, 4, "add") | paths(table, 4, "remove") == set()
    assert commit_info(table, 4)["tags"]["interlock.rebasedOver"] == "3"


def test_trap_06_a_compaction_that_plans_nothing_makes_no_version(
    spark: SparkSession, tables: Tables
) -> None:
    table = example(tables)
    compactor = interlock.table(spark, str(table.path))
    assert compactor.compact("minor").version == 3
    assert compactor.compact("minor").version is None
    check_history(spark, table, {2: START, 3: START})


@pytest.mark.parametrize(
    ("vectors", "earlier", "later", "changes", "newer"),
    [
        pytest.param("true", INSERT, MINOR, {(3, "insert", 10, "i")}, {(10, "i")}, id="D9"),
        pytest.param(
            "true",
            UPDATE,
            MINOR,
            {(3, "update_preimage", 1, "a"), (3, "update_postimage", 1, "U")},
            {(1, "U")},
            id="D14",
        ),
        pytest.param("true", MINOR, DELETE, {(4, "delete", 2, "b")}, set(), id="D18"),
        pytest.param("false", MINOR, DELETE, {(4, "delete", 2, "b")}, set(), id="D18-copied"),
        pytest.param("true", MINOR, MAJOR, set(), set(), id="D20"),
        pytest.param(
            "true",
            MAJOR,
            UPDATE,
            {(4, "update_preimage", 1, "a"), (4, "update_postimage", 1, "U")},
            {(1, "U")},
            id="D23",
        ),
    ],
)
def test_trap_07_incremental_queries_show_each_change_once_and_no_compaction(
    spark: SparkSession,
    tables: Tables,
    vectors: str,
    earlier: str,
    later: str,
    changes: set[tuple[int, str, int, str]],
    newer: set[tuple[int, str]],
) -> None:
    table = example(tables, enableDeletionVectors=vectors, enableChangeDataFeed="true")
    ends = sql_race(spark, table, earlier, later)
    assert [end.error for end in ends] == [None, None]
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    feed = reader.option("startingVersion", 3).load(str(table.path))
    found = feed.select("_commit_version", "_change_type", "id", "v").collect()
    assert sorted(map(tuple, found)) == sorted(changes)
    since = f"SELECT * FROM {table} WHERE _metadata.row_commit_version > 2"
    assert sorted(map(tuple, spark.sql(since).collect())) == sorted(newer)


def test_trap_08_the_time_of_a_compaction_shows_what_the_time_before_it_shows(
    spark: SparkSession, tables: Tables
) -> None:
    table = run(spark, tables, case("D9"))
    history = spark.sql(f"DESCRIBE HISTORY {table}").collect()
    times = {row["version"]: row["timestamp"] for row in history}
    assert max(times) == 4
    assert max(read_log(table.path).changes) == 3
    assert times[3] < times[4]
    for version in (3, 4):
        at = spark.sql(f"SELECT * FROM {table} TIMESTAMP AS OF '{times[version]}'").collect()
        assert in_order(tuple(map(tuple, at))) == in_order((*START, (10, "i")))


@pytest.mark.parametrize(
    ("winners", "last", "after", "error"),
    [
        pytest.param((MINOR, INSERT), DELETE, (*START, (10, "i")), "D8", id="MIN-II-UD"),
        pytest.param((MINOR, MAJOR), DELETE, ((1, "a"), (3, "c")), None, id="MIN-MAJ-UD"),
        pytest.param((INSERT, OVERWRITE), OVERWRITE, ((200, "y"),), None, id="II-IO-IO"),
        pytest.param((MINOR, MAJOR), MINOR, START, "D19", id="MIN-MAJ-MIN"),
    ],
)
def test_trap_09_each_version_in_between_is_judged(
    spark: SparkSession,
    tables: Tables,
    winners: tuple[str, str],
    last: str,
    after: Rows,
    error: str | None,
) -> None:
    table = example(tables)
    lost = last_of(spark, table, winners, last)
    third = (*START, (10, "i")) if winners[0] == INSERT else START
    if error is None:
        assert lost is None
        fourth = ((200, "y"),) if winners[1] == OVERWRITE else START
        check_history(spark, table, {2: START, 3: third, 4: fourth, 5: after})
        assert commit_info(table, 5)["tags"]["interlock.rebasedOver"] == "3,4"
    else:
        kinds = {"D8": ConcurrentAppendError, "D19": ConcurrentDeleteDeleteError}
        assert isinstance(lost, kinds[error])
        assert lost.rule == error
        check_history(spark, table, {2: START, 3: third, 4: after})


@pytest.mark.parametrize("cell", ["D2", "D7", "D12"])
def test_trap_10_an_insert_that_loses_leaves_no_row_no_version_and_no_file(
    spark: SparkSession, tables: Tables, cell: str
) -> None:
    table = run(spark, tables, replace(case(cell), sessions=2))
    assert unknown_files(table) == []


def test_trap_11_a_change_of_metadata_fails_every_class(
    spark: SparkSession, tables: Tables
) -> None:
    table = example(tables)
    added, *others = sql_run_in_order(
        spark,
        table,
        "ALTER TABLE {t} ADD COLUMNS (w INT)",
        *(OVERWRITE, "TRUNCATE TABLE {t}", INSERT, UPDATE, MINOR, MAJOR, "OPTIMIZE {t}"),
    )
    assert added.error is None
    assert all(isinstance(end.error, MetadataChangedError) for end in others)
    assert all(end.held for end in others)
    assert versions(table) == [0, 1, 2, 3]
    assert rows(spark, table) == tuple((*row, None) for row in START)
    assert deltalake_rows(table, version=2) == rows(spark, table, version=2) == START
    assert unknown_files(table) == []


@pytest.mark.skip(
    reason="test_foreign_writers.py shows that a foreign winner's class is inferred; what stops a "
    "foreign writer is a commit coordinator, and there is none yet"
)
def test_trap_12_a_foreign_writer() -> None: ...


@pytest.mark.skip(
    reason="Delta gates catalogManaged to Unity Catalog; COMPACT never calls OPTIMIZE's command"
)
def test_trap_13_catalog_managed_tables() -> None: ...


@pytest.mark.parametrize("variant", ["D7-two-sessions", "D18-two-sessions"])
def test_trap_14_two_sessions_give_the_cell_that_one_session_gives(
    spark: SparkSession, tables: Tables, variant: str
) -> None:
    """One session is in test_lab.py, two JVMs are in integration/test_processes.py."""
    run(spark, tables, VARIANTS[variant])


SEVERAL_INPUTS = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 1), (2, 'b', 1), (7, 'g', 1),"
    " (4, 'd', 2), (8, 'h', 2)",
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (3, 'c', 1), (9, 'i', 1), (5, 'e', 2)",
    "DELETE FROM {t} WHERE id IN (7, 9)",
)
COPY_ON_WRITE = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
UPDATE_SEVERAL = "UPDATE {t} SET v = 'U' WHERE id IN (2, 3, 4)"


@pytest.mark.parametrize("partitions", ["", " PARTITIONED BY (p)"], ids=["plain", "partitioned"])
@pytest.mark.parametrize("dml", ["vectors", "copies"])
@pytest.mark.parametrize(
    ("earlier", "later"),
    [(UPDATE_SEVERAL, MINOR), (MINOR, UPDATE_SEVERAL), (MAJOR, UPDATE_SEVERAL)],
    ids=["D14", "D18", "D23"],
)
def test_trap_15_deletion_vectors_and_copies_and_several_inputs_that_carry_vectors(
    spark: SparkSession, table_path: Path, earlier: str, later: str, dml: str, partitions: str
) -> None:
    table = make_table(
        spark,
        table_path,
        columns=f"(id INT, v STRING, p INT) USING delta{partitions}",
        properties={"delta.enableDeletionVectors": "true"},
        statements=(*SEVERAL_INPUTS, *([COPY_ON_WRITE] if dml == "copies" else [])),
    )
    read = latest_version(table)
    ends = sql_race(spark, table, earlier, later)
    assert [end.error for end in ends] == [None, None]
    before = ((1, "a", 1), (2, "b", 1), (3, "c", 1), (4, "d", 2), (5, "e", 2), (8, "h", 2))
    after = tuple((i, "U" if i in (2, 3, 4) else v, p) for i, v, p in before)
    between = after if later == MINOR else before
    check_history(spark, table, {read: before, read + 1: between, read + 2: after})
    assert unknown_files(table) == []


@pytest.mark.parametrize("dml", ["true", "false"], ids=["vectors", "copies"])
@pytest.mark.parametrize(
    ("earlier", "later"), [(UPDATE, MINOR), (MINOR, UPDATE)], ids=["D14", "D18"]
)
def test_trap_16_row_ids_and_commit_versions_outlive_compaction(
    spark: SparkSession, tables: Tables, earlier: str, later: str, dml: str
) -> None:
    table = example(tables, enableDeletionVectors=dml)
    before = tracked(spark, table)
    ends = sql_race(spark, table, earlier, later)
    assert [end.error for end in ends] == [None, None]
    updated = 3 if earlier == UPDATE else 4
    assert tracked(spark, table) == {**before, 1: (before[1][0], updated)}
    if later == UPDATE:  # the compacted file keeps what it got
        (compacted,) = (action["add"] for action in commit(table, 3) if "add" in action)
        adds = [action["add"] for action in commit(table, 4) if "add" in action]
        (again,) = (add for add in adds if add["path"] == compacted["path"])
        for key in ("baseRowId", "defaultRowCommitVersion"):
            assert again[key] == compacted[key]


def tracked(spark: SparkSession, table: Table) -> dict[int, tuple[int, int]]:
    """Return row id and commit version of each row, by the column id."""
    found = spark.sql(
        f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table}"
    ).collect()
    return {row[0]: (row[1], row[2]) for row in found}
