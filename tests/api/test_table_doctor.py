"""`interlock doctor TABLE`: what is well and what is worth a look, on classic and on Connect."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from interlock._cli import main
from interlock._diagnosis import Check, store
from interlock._table_diagnosis import _checkpoints, of_table
from pyspark.sql import Row, SparkSession

from tests.kit.support import Table, await_checkpoints, commit_file, make_table

NAMES = ["Policy", "Table features", "Foreign commits", "Coordinator", "Checkpoint", "Files"]
NAMES += ["Dead rows"]


def checked(spark: SparkSession, table: Table | str) -> dict[str, Check]:
    return {check.name: check for check in of_table(spark, str(table))}


def to_look_at(checks: dict[str, Check]) -> list[str]:
    assert all(check.mark == "LOOK" and check.fix for check in checks.values() if not check.ok)
    return [name for name, check in checks.items() if not check.ok]


def test_a_table_that_is_well(spark: SparkSession, mode: str, example: Table) -> None:
    checks = checked(spark, example)
    assert list(checks) == NAMES
    assert to_look_at(checks) == []
    assert checks["Policy"].found.startswith("maxcompute_delta, digest ")
    assert "rowTracking" in checks["Table features"].found
    answers = "answers" if mode == "classic" else "not asked over Spark Connect"
    assert checks["Coordinator"].found.endswith(answers)
    assert checks["Checkpoint"].found == "none in 2 versions"
    assert checks["Dead rows"].found == "0 beside 3 live ones"


@pytest.mark.variant_cases("connect")
def test_a_log_that_the_session_cannot_list(spark: SparkSession, example: Table) -> None:
    elsewhere = Row(location="nowhere://bucket/t", properties={})
    check = _checkpoints(spark, str(example), elsewhere)
    assert not check.ok
    assert check.found.startswith("the log is not listed: ")
    assert "nowhere" in check.found
    assert "\n" not in check.found


def test_a_storage_that_hadoop_cannot_open(spark: SparkSession, mode: str) -> None:
    """Hadoop's S3 client is not there."""
    check = store(spark, "s3a://bucket/trips")
    assert not check.ok
    found, fix = {
        "classic": ("Hadoop cannot open it", "set up Spark for this storage, and name a folder"),
        "connect": ("not run over Spark Connect", "run it without spark.remote"),
    }[mode]
    assert check.found.startswith(found)
    assert check.fix.startswith(fix)


@pytest.mark.variant_cases("connect")
def test_files_that_a_compaction_would_merge(
    spark: SparkSession, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One small file per partition counts as none; the table's path contains glob characters."""
    monkeypatch.setattr("interlock._table_diagnosis._MANY_FILES", 1)
    table = make_table(
        spark,
        tmp_path / "d[1]{a}",
        columns="(id INT, p INT) USING delta PARTITIONED BY (p)",
        properties={"delta.checkpointInterval": "1"},
        statements=("INSERT INTO {t} SELECT id, id FROM range(4)",),
    )
    if mode == "classic":  # a client of Spark Connect cannot wait for checkpoints
        await_checkpoints(spark)
        assert checked(spark, table)["Checkpoint"].found == "version 1, 0 behind"
    assert to_look_at(checked(spark, table)) == []
    spark.sql(f"INSERT INTO {table} SELECT id, id FROM range(3)")
    assert to_look_at(checked(spark, table)) == ["Files"]


@pytest.mark.variant_cases("connect")
def test_no_policy(spark: SparkSession, table_path: Path) -> None:
    checks = checked(spark, make_table(spark, table_path, policy=None))
    assert to_look_at(checks) == ["Policy"]
    assert "CALL interlock.set_policy" in checks["Policy"].fix
    assert checks["Coordinator"].found == "none: Delta's own commits"


@pytest.mark.variant_cases("connect")
def test_what_is_worth_a_look(spark: SparkSession, table_path: Path) -> None:
    """A table with dead rows, checkpoints overdue, and a commit of a foreign writer."""
    made = make_table(
        spark,
        table_path,
        properties={"delta.checkpointInterval": "100", "delta.enableDeletionVectors": "true"},
        statements=(
            "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "DELETE FROM {t} WHERE id < 3",
            "INSERT INTO {t} VALUES (4, 'd')",
        ),
    )
    interval = r'("delta.checkpointInterval":")100'
    table = changed(made, table_path.with_name("copy"), interval, r"\g<1>1")
    last = commit_file(table, 3)
    info, *rest = last.read_text().splitlines()
    told = json.loads(info)
    del told["commitInfo"]["tags"]
    last.write_text("\n".join([json.dumps(told), *rest]) + "\n")
    checks = checked(spark, table)
    assert to_look_at(checks) == ["Foreign commits", "Checkpoint", "Dead rows"]
    assert checks["Foreign commits"].found == "1 of the last 100: version 3"
    assert checks["Dead rows"].found == "2 beside 2 live ones"


def changed(table: Table, path: Path, before: str, after: str) -> Table:
    """Copy a table as if its log had said something else from the beginning."""
    shutil.copytree(table.path, path, ignore=shutil.ignore_patterns("*.crc"))
    for commit in (path / "_delta_log").glob("*.json"):
        commit.write_text(re.sub(before, after, commit.read_text()))
    return Table(path)


@pytest.mark.variant_cases("connect")
def test_another_policy_by_the_same_name(
    spark: SparkSession, example: Table, tmp_path: Path
) -> None:
    digest = r'("interlock.policy.digest":")\w+'
    other = checked(spark, changed(example, tmp_path / "digest", digest, r"\1feed"))
    assert to_look_at(other) == ["Policy"]
    assert re.fullmatch(r"maxcompute_delta, digest feed, here \w+", other["Policy"].found)
    policy = r'("interlock.policy":")\w+'
    unknown = checked(spark, changed(example, tmp_path / "policy", policy, r"\1my_own"))
    assert unknown["Policy"].found == "my_own, which this session does not have"
    assert "spark.interlock.policies.my_own" in unknown["Policy"].fix


@pytest.mark.variant_cases("connect")
def test_what_a_policy_needs(spark: SparkSession, example: Table, tmp_path: Path) -> None:
    tracking = r'("delta.enableRowTracking":")true'
    table = changed(example, tmp_path / "t", tracking, r"\1false")
    checks = checked(spark, table)
    assert to_look_at(checks) == ["Table features"]
    assert checks["Table features"].found == "rowTracking off"
    statement, _, _ = checks["Table features"].fix.partition(", as")
    spark.sql(statement)
    assert to_look_at(checked(spark, table)) == []


@pytest.mark.variant_cases("connect")
def test_a_coordinator_that_does_not_answer(
    spark: SparkSession, mode: str, example: Table, tmp_path: Path
) -> None:
    """The coordinator `closed` is configured at an address where nothing listens."""
    digest = r'("interlock.policy.digest":"\w+")'
    bound = changed(example, tmp_path / "t", digest, r'\1,"interlock.coordinator":"closed"')
    checks = checked(spark, bound)
    assert to_look_at(checks) == (["Coordinator"] if mode == "classic" else [])
    assert checks["Coordinator"].found.startswith("closed")


@pytest.fixture
def doctor(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def session(_: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("interlock._commands.doctor.user_session", session)


@pytest.mark.variant_cases("connect")
@pytest.mark.usefixtures("doctor")
def test_a_folder_is_a_folder_and_all_else_a_table(
    mode: str,
    example: Table,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def names(target: str) -> list[str]:
        status = main(["doctor", target, "--json"])
        checks = json.loads(capsys.readouterr().out)
        assert status == (0 if all(check["ok"] for check in checks) else 1)
        return [check["name"] for check in checks]

    links = [f"Hard links in {tmp_path}"] if mode == "classic" else []
    assert [name for name in names(str(tmp_path)) if name.startswith("Hard")] == links
    monkeypatch.chdir(example.path.parent)
    for target in (str(example.path), str(example), example.path.name):
        assert names(target)[-len(NAMES) :] == NAMES
    for missing in ("no.such", "/no/such", "a b/"):
        assert names(missing)[-1] == "Table"
