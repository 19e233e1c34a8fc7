"""The job of docs/recipes.md on a Hive metastore, and a second driver that finds its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.driver_process import driver_processes
from tests.kit.recipes import spark_environment, spark_settings, write
from tests.kit.support import Table, commit_info, deltalake_rows, latest_version, tags


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the job has run."""
    folder = tmp_path_factory.mktemp("hive")
    write(folder, "hive.py")
    ran = subprocess.run(
        [sys.executable, "hive.py"],
        cwd=folder,
        env=spark_environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[:2] for line in ran.stdout.splitlines()] == [
        ["True", "OPTIMIZE"],
        ["True", "UPDATE"],
        ["True", "DELETE"],
    ]
    return folder


def test_jobs_on_other_rows_all_commit(folder: Path) -> None:
    table = Table(folder / "warehouse" / "db.db" / "trips")
    operations = [commit_info(table, version)["operation"] for version in (1, 2, 3)]
    assert operations == ["WRITE", "UPDATE", "DELETE"]
    assert deltalake_rows(table) == ((1, "Bergen"), (3, "Pisa"))


def test_another_driver_finds_the_policy_by_name_by_a_second_name_and_by_path(
    folder: Path,
) -> None:
    table = Table(folder / "warehouse" / "db.db" / "trips")
    version = latest_version(table)
    settings = {**spark_settings(folder), "spark.sql.catalogImplementation": "hive"}
    with driver_processes(folder, "interlock", settings=settings) as (driver,):
        assert driver.run(f"CREATE TABLE db.twin USING delta LOCATION '{table.path}'").error is None
        driver.hold("UPDATE db.twin SET city = 'Siena' WHERE id = 3")
        assert driver.run(f"UPDATE {table} SET city = 'Oslo' WHERE id = 1").error is None
        assert driver.open().error is None
        assert tags(table, version + 2)["interlock.winners"] == str(version + 1)

        driver.hold("DELETE FROM db.trips WHERE id = 3")
        assert driver.run("UPDATE db.twin SET city = 'Lucca' WHERE id = 3").error is None
        lost = driver.open()
        assert lost.error == "ConcurrentDeleteReadError"
        assert lost.winner_version == version + 3
    assert latest_version(table) == version + 3
    assert deltalake_rows(table) == ((1, "Oslo"), (3, "Lucca"))
