"""The traps of the documents' cells, each by its number, with all that can be seen of it.

What is only two statements on the documents' example runs as a case of the lab, which compares
outcome, error, rows, every earlier version, live files and versions with its model, and reads with
Spark and with `deltalake`. Traps 7, 15 and 16 are in test_cell_traps_of_rows.py.
"""

from __future__ import annotations

from dataclasses import replace

import interlock
import pytest
from interlock.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    MetadataChangedError,
)
from interlock.lab.bodies import merge, update
from interlock.lab.cases import Case
from interlock.lab.cells import case
from interlock.lab.example import Tables
from interlock.lab.log import read_log
from interlock.lab.model import Body, Class, Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.support import (
    commit,
    commit_info,
    deltalake_rows,
    last_of,
    rows,
    sql_race,
    unknown_files,
    versions,
)
from tests.kit.traps import (
    DELETE,
    INSERT,
    MAJOR,
    MINOR,
    OVERWRITE,
    START,
    UPDATE,
    VARIANTS,
    check_history,
    example,
    paths,
    run,
)

DELETE_ALL = Body(
    Class.UD, "DELETE FROM {t} WHERE id < 9", effect=lambda rows: (), adds_files=False
)


@pytest.mark.variant_cases("D6-no-rows-empty")
@pytest.mark.parametrize("variant", ["D6-truncate-empty", "D6-no-rows-empty"])
def test_trap_01_an_overwrite_of_an_empty_snapshot_removes_what_came_meanwhile(
    spark: SparkSession, tables: Tables, variant: str
) -> None:
    table = run(spark, tables, VARIANTS[variant])
    assert commit_info(table, 4)["tags"]["interlock.winners"] == "3"


@pytest.mark.variant_cases("D8-update")
@pytest.mark.parametrize(
    ("cell", "later"),
    [("D8", update(99, "U")), ("D13", merge(99, "M"))],
    ids=["D8-update", "D13-merge"],
)
def test_trap_02_a_change_that_matches_no_rows_still_fails(
    spark: SparkSession, tables: Tables, cell: str, later: Body
) -> None:
    run(spark, tables, replace(case(cell), later=later))


def test_trap_02_a_change_that_matches_no_rows_and_passes_makes_no_version(
    spark: SparkSession, tables: Tables
) -> None:
    run(spark, tables, VARIANTS["P2-matches-nothing"])


@pytest.mark.variant_cases("D20-optimize")
@pytest.mark.parametrize("variant", ["D16-truncate", "D20-optimize", "D21-no-deletion-vectors"])
def test_trap_03_what_a_compaction_made_is_removed_and_not_what_it_was_made_of(
    spark: SparkSession, tables: Tables, variant: str
) -> None:
    table = run(spark, tables, VARIANTS[variant])
    compacted = paths(table, 3, "add")
    assert len(compacted) == 1
    assert paths(table, 4, "remove") == compacted


@pytest.mark.variant_cases("D14-optimize")
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
    assert commit_info(table, 4)["tags"]["interlock.winners"] == "3"


def test_trap_06_a_compaction_that_plans_nothing_makes_no_version(
    spark: SparkSession, tables: Tables
) -> None:
    table = example(tables)
    compactor = interlock.table(spark, str(table.path))
    assert compactor.compact("minor").version == 3
    assert compactor.compact("minor").version is None
    check_history(spark, table, {2: START, 3: START})


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


@pytest.mark.variant_cases("MIN-MAJ*")
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
        assert commit_info(table, 5)["tags"]["interlock.winners"] == "3,4"
    else:
        kinds = {"D8": ConcurrentAppendError, "D19": ConcurrentDeleteDeleteError}
        assert isinstance(lost, kinds[error])
        assert lost.rule == error
        check_history(spark, table, {2: START, 3: third, 4: after})


@pytest.mark.parametrize("cell", ["D7", "D12"])
def test_trap_10_an_insert_that_loses_leaves_no_row_no_version_and_no_file(
    spark: SparkSession, tables: Tables, cell: str
) -> None:
    table = run(spark, tables, replace(case(cell), sessions=2))
    assert unknown_files(table) == []


def test_trap_11_a_change_of_metadata_fails_every_class(
    spark: SparkSession, tables: Tables
) -> None:
    table = example(tables)
    added, *others = sql_race(
        spark,
        table,
        "ALTER TABLE {t} ADD COLUMNS (w INT)",
        *(OVERWRITE, "TRUNCATE TABLE {t}", INSERT, UPDATE, MINOR, MAJOR, "OPTIMIZE {t}"),
    )
    assert added.error is None
    wrong = [end for end in others if not isinstance(end.error, MetadataChangedError)]
    assert wrong == []
    assert all(end.held for end in others)
    assert versions(table) == [0, 1, 2, 3]
    assert rows(spark, table) == tuple((*row, None) for row in START)
    assert deltalake_rows(table, version=2) == rows(spark, table, version=2) == START
    assert unknown_files(table) == []


# Trap 12, a foreign writer, is not run here. test_foreign_writers.py shows that the class of a
# foreign winner is inferred, and tests/coordinator that its commit is detected. Nothing can stop a
# stock writer of files.

# Trap 13, catalog-managed tables, is in tests/tables/test_other_coordinators.py: they can have no
# policy.


@pytest.mark.parametrize("variant", ["D7-two-sessions", "D18-two-sessions"])
def test_trap_14_two_sessions_give_the_cell_that_one_session_gives(
    spark: SparkSession, tables: Tables, variant: str
) -> None:
    """test_lab.py has one session, integration/test_compaction_processes.py two JVMs."""
    run(spark, tables, VARIANTS[variant])
