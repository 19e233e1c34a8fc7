"""Three jobs: the last is judged against every commit in between; its rewrites compose."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from interlock.errors import ConcurrentAppendError, ConcurrentDeleteReadError, ConflictError
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    tags,
    versions,
)

INSERT = "INSERT INTO {t} VALUES (10, 'i')"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id <= 2"
OVERWRITE = "INSERT OVERWRITE {t} VALUES (100, 'x')"
LAST_OVERWRITE = "INSERT OVERWRITE {t} VALUES (200, 'y')"
OPTIMIZE = "OPTIMIZE {t}"
START = ((1, "a"), (2, "b"), (3, "c"))


@pytest.mark.variant_cases(but=["optimize-update-insert"])
@pytest.mark.parametrize(
    ("vectors", "winners", "rules"),
    [
        pytest.param("true", (UPDATE, INSERT), "D11,D6", id="update-insert"),
        pytest.param(
            "true",
            (OPTIMIZE, UPDATE, DELETE),
            "D16,D11,D11",
            id="optimize-update-delete",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            "false", (OPTIMIZE, UPDATE, INSERT), "D16,D11,D6", id="optimize-update-insert"
        ),
        pytest.param(
            "true",
            (OVERWRITE, "TRUNCATE TABLE {t}"),
            "D1,D1",
            id="overwrite-truncate",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_an_overwrite_replaces_what_all_of_them_left(
    spark: SparkSession, table_path: Path, vectors: str, winners: tuple[str, ...], rules: str
) -> None:
    properties = {"delta.enableDeletionVectors": vectors}
    table = make_table(spark, table_path, properties=properties)
    assert last_of(spark, table, winners, LAST_OVERWRITE) is None
    passed = [str(3 + n) for n in range(len(winners))]
    assert latest_version(table) == 3 + len(winners)
    assert rows(spark, table) == deltalake_rows(table) == ((200, "y"),)
    expected = {
        "interlock.class": "OVERWRITE",
        "interlock.policy": "maxcompute_delta",
        "interlock.winners": ",".join(passed),
        "interlock.rules": rules,
        "interlock.verdicts": ",".join(["REPLACE_LIVE"] * len(winners)),
    }
    assert tags(table, latest_version(table)).items() >= expected.items()
    assert rows(spark, table, version=2) == START


@pytest.mark.variant_cases("self*")
@pytest.mark.parametrize(
    ("policy", "winners", "last", "rules", "expected"),
    [
        (
            "maxcompute_transactional",
            (OPTIMIZE, INSERT),
            "INSERT INTO {t} VALUES (20, 'j')",
            "T14,T6",
            (*START, (10, "i"), (20, "j")),
        ),
        (
            "maxcompute_transactional",
            (UPDATE, OVERWRITE),
            "INSERT INTO {t} SELECT id + 20, v FROM {t} WHERE id = 3",
            "T10,T2",
            ((100, "x"), (23, "c")),
        ),
    ],
    ids=["insert-T14-T6", "self-reading-insert-T10-T2"],
)
def test_the_others_commit_as_they_are(
    spark: SparkSession,
    table_path: Path,
    policy: str,
    winners: tuple[str, ...],
    last: str,
    rules: str,
    expected: tuple[tuple[object, ...], ...],
) -> None:
    table = make_table(spark, table_path, policy=policy)
    assert last_of(spark, table, winners, last) is None
    assert rows(spark, table) == deltalake_rows(table) == tuple(sorted(expected, key=repr))
    assert tags(table, 5)["interlock.winners"] == "3,4"
    assert tags(table, 5)["interlock.rules"] == rules


@pytest.mark.variant_cases("both*")
@pytest.mark.parametrize(
    ("policy", "winners", "last", "rule", "winner", "error"),
    [
        pytest.param(
            "maxcompute_delta",
            (OPTIMIZE, INSERT),
            "INSERT INTO {t} VALUES (20, 'j')",
            "D7",
            4,
            ConcurrentAppendError,
            id="the-second-fails-it",
        ),
        pytest.param(
            "maxcompute_transactional",
            (INSERT, OPTIMIZE),
            "DELETE FROM {t} WHERE id = 2",
            "T7",
            3,
            ConcurrentAppendError,
            id="both-would-and-the-first-is-named",
        ),
        pytest.param(
            "maxcompute_delta",
            (INSERT, "TRUNCATE TABLE {t}"),
            OPTIMIZE,
            "D4",
            4,
            ConcurrentDeleteReadError,
            id="a-compaction-passes-one-and-fails-the-other",
        ),
    ],
)
def test_one_fail_fails_the_job(
    spark: SparkSession,
    table_path: Path,
    policy: str,
    winners: tuple[str, ...],
    last: str,
    rule: str,
    winner: int,
    error: type[ConflictError],
) -> None:
    table = make_table(spark, table_path, policy=policy)
    lost = last_of(spark, table, winners, last)
    assert isinstance(lost, error)
    assert (lost.rule, lost.read_version, lost.winner_version) == (rule, 2, winner)
    assert versions(table) == [0, 1, 2, 3, 4]


def test_winners_of_other_partitions_leave_no_trace(spark: SparkSession, table_path: Path) -> None:
    """Only the winner that changed the job's partition is named."""
    table = make_table(
        spark,
        table_path,
        columns="(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)",
        statements=("INSERT INTO {t} VALUES (1, 'a', 1)", "INSERT INTO {t} VALUES (2, 'b', 2)"),
    )
    winners = ("INSERT INTO {t} VALUES (3, 'c', 2)", "INSERT INTO {t} VALUES (4, 'd', 1)")
    last = "INSERT OVERWRITE {t} PARTITION (p = 1) VALUES (200, 'y')"
    assert last_of(spark, table, winners, last) is None
    assert tags(table, 5)["interlock.winners"] == "4"
    assert tags(table, 5)["interlock.rules"] == "D6"
    expected = ((2, "b", 2), (200, "y", 1), (3, "c", 2))
    assert rows(spark, table) == deltalake_rows(table) == expected


def test_of_many_versions_passed_the_newest_hundred_are_named(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path)

    def insert_often(session: SparkSession) -> None:
        session.sql(INSERT.format(t=table))
        for version in range(4, 113):
            _insert_again(table, version)

    first, held = race(
        spark, python_job("winners", insert_often), sql_job(LAST_OVERWRITE.format(t=table))
    )
    assert (first.error, held.error) == (None, None)
    assert latest_version(table) == 113
    assert rows(spark, table) == deltalake_rows(table) == ((200, "y"),)
    found = tags(table, 113)
    assert found["interlock.winners"] == ",".join(str(version) for version in range(13, 113))
    assert found["interlock.verdicts"] == ",".join(["REPLACE_LIVE"] * 100)
    assert found["interlock.rules"] == ",".join(["D6"] * 100)


def _insert_again(table: Table, version: int) -> None:
    """Make a version like the one before it, with a file and a row of its own."""
    log = table.path / "_delta_log"
    lines = (log / f"{version - 1:020}.json").read_text(encoding="utf-8").splitlines()
    actions = [json.loads(line) for line in lines]
    for action in actions:
        if info := action.get("commitInfo"):
            info["txnId"] = f"again-{version}"
            if "inCommitTimestamp" in info:
                info["inCommitTimestamp"] += 1
        if add := action.get("add"):
            copy = f"again-{version}.parquet"
            shutil.copy(table.path / add["path"], table.path / copy)
            add |= {"path": copy, "baseRowId": add["baseRowId"] + 1}
            add["defaultRowCommitVersion"] = version
        if domain := action.get("domainMetadata"):
            mark = json.loads(domain["configuration"])["rowIdHighWaterMark"]
            domain["configuration"] = json.dumps({"rowIdHighWaterMark": mark + 1})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{version:020}.json").write_text(text, encoding="utf-8")
