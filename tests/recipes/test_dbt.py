"""The dbt project of docs/recipes.md, run by dbt: what becomes of a model's MERGE beside a job.

All runs share one process and one Spark. The MERGE is held before its commit until the job has
committed.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests.kit.recipes import files, python, spark_environment, write
from tests.kit.support import Table, commit_info, deltalake_rows, latest_version, tags

FILES = ("dbt_project.yml", "profiles.yml", "models/trips.sql")
BEFORE = (
    "CREATE SCHEMA db",
    "CREATE TABLE db.arrivals (id INT, day DATE, city STRING) USING delta",
    "INSERT INTO db.arrivals VALUES (1, DATE'2026-11-01', 'Oslo'), (2, DATE'2026-11-02', 'Rome')",
)
SECOND = ("run", "--vars", "day: 2026-11-02")


@dataclass(frozen=True)
class Dbt:
    """A dbt project, its process and the table that its model makes."""

    project: Path
    process: subprocess.Popen[str]
    table: Table

    def __call__(self, *arguments: str, beside: str | None = None) -> dict[str, Any]:
        """Run dbt; if `beside` is given, that commits while dbt's MERGE waits to commit."""
        order = {
            "arguments": [*arguments, "--project-dir", str(self.project)],
            "beside": [["merge into", beside]] if beside else [],
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert answer["met"], answer
        return answer

    def cities(self) -> dict[int, str]:
        """Return the city of each row of the model's table."""
        return {row[0]: row[2] for row in cast(Any, deltalake_rows(self.table))}


@pytest.fixture(scope="module")
def dbt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dbt]:
    """The project after its first run, which makes the table."""
    folder = tmp_path_factory.mktemp("dbt")
    write(folder, *FILES)
    environment = {
        **spark_environment(folder),
        "DBT_PROFILES_DIR": str(folder),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    interpreter = python("dbt", "dbt-core", "dbt-spark")
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            [str(interpreter), "-m", "tests.recipes.dbt_runs", *BEFORE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=folder,
            env=environment,
            text=True,
        )
    with process:
        run = Dbt(folder, process, Table(folder / "warehouse" / "db.db" / "trips"))
        first = run("run")
        assert first["ok"], first
        yield run


def test_the_model_has_the_policy(dbt: Dbt) -> None:
    info = commit_info(dbt.table, 0)
    assert info["operation"] == "CREATE OR REPLACE TABLE AS SELECT"
    assert info["tags"]["interlock.policy"] == "row_level"


def test_an_update_of_another_row_and_the_merge_both_commit(dbt: Dbt) -> None:
    version = latest_version(dbt.table)
    ran = dbt(*SECOND, beside="UPDATE db.trips SET city = 'Bergen' WHERE id = 1")
    assert ran["ok"], ran
    assert latest_version(dbt.table) == version + 2
    operations = [commit_info(dbt.table, version + n)["operation"] for n in (1, 2)]
    assert operations == ["UPDATE", "MERGE"]
    assert tags(dbt.table, version + 2)["interlock.winners"] == str(version + 1)
    assert dbt.cities() == {1: "Bergen", 2: "Rome"}


@pytest.mark.variant
def test_a_merge_that_loses_fails_the_model_and_dbt_retry_runs_it_again(dbt: Dbt) -> None:
    version = latest_version(dbt.table)
    lost = dbt(*SECOND, beside="UPDATE db.trips SET city = 'Siena' WHERE id = 2")
    assert not lost["ok"]
    (message,) = lost["messages"]
    assert "INTERLOCK_CONCURRENT_DELETE_READ" in message
    assert latest_version(dbt.table) == version + 1
    assert dbt.cities()[2] == "Siena"

    assert dbt("retry")["ok"]
    assert latest_version(dbt.table) == version + 2
    assert dbt.cities()[2] == "Rome"


@pytest.mark.variant
def test_interlock_runs_the_merge_again_if_the_profile_says_so(dbt: Dbt) -> None:
    profile = dbt.project / "profiles.yml"
    given = profile.read_text(encoding="utf-8")
    profile.write_text(f"{given}{files()['rerun.yml']}", encoding="utf-8")
    version = latest_version(dbt.table)
    ran = dbt(*SECOND, beside="UPDATE db.trips SET city = 'Lucca' WHERE id = 2")
    assert ran["ok"], ran
    assert latest_version(dbt.table) == version + 2
    assert dbt.cities()[2] == "Rome"
