"""The DAG of docs/recipes.md, run by `airflow dags test`: which failures are tried again."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit.recipes import python, spark_environment, write
from tests.kit.support import Table, commit_info, deltalake_rows, latest_version

pytestmark = pytest.mark.variant

BEFORE = (
    "CREATE SCHEMA db",
    "CREATE TABLE db.trips (id INT, city STRING) USING delta "
    "TBLPROPERTIES ('interlock.policy' = 'row_level')",
    "INSERT INTO db.trips VALUES (1, 'Oslo'), (2, 'Rome')",
)
THE_UPDATE = "UPDATE db.trips SET city = 'Bergen'"
WINNER = "UPDATE db.trips SET city = 'Siena' WHERE id = 1"
_ACTION = re.compile(r"Retry policy decision.*?action=(\w+)")
_STATE = re.compile(r"new_state=(\w+)")


@dataclass(frozen=True)
class Airflow:
    """An Airflow with the DAG, whose Spark keeps its tables in the same folder."""

    folder: Path
    interpreter: Path
    environment: dict[str, str]

    @property
    def table(self) -> Table:
        return Table(self.folder / "warehouse" / "db.db" / "trips")

    def __call__(self, *arguments: str) -> str:
        """Run a command of Airflow's and return what it says."""
        return self._run("airflow", *arguments)

    def test(self, *, beside: Sequence[tuple[str, str]] = (), **order: str) -> tuple[str, ...]:
        """Run the DAG once; return each decision on a retry, and the task's last state."""
        given = json.dumps({"before": BEFORE, "beside": beside, **order})
        said = self._run("tests.recipes.airflow_runs", given, "dags", "test", "corrections")
        return (*_ACTION.findall(said), _STATE.findall(said)[-1])

    def _run(self, module: str, *arguments: str) -> str:
        ended = subprocess.run(
            [str(self.interpreter), "-m", module, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return ended.stdout


@pytest.fixture
def airflow(tmp_path: Path) -> Airflow:
    write(tmp_path / "dags", "corrections.py")
    environment = {
        **spark_environment(tmp_path),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
    }
    made = Airflow(tmp_path, python("airflow", "apache-airflow-core"), environment)
    assert "Database migration" in made("db", "migrate")
    return made


def test_an_update_that_loses_twice_is_tried_again(airflow: Airflow) -> None:
    """Two runs of `interlock.retry` lose, and Airflow's second try commits."""
    assert airflow.test(beside=[(THE_UPDATE, WINNER)] * 2) == ("retry", "success")
    operations = [commit_info(airflow.table, version)["operation"] for version in (2, 3, 4)]
    assert operations == ["UPDATE"] * 3
    assert latest_version(airflow.table) == 4
    assert deltalake_rows(airflow.table) == ((1, "Bergen"), (2, "Rome"))


def test_a_commit_whose_state_is_unknown_fails_at_once(airflow: Airflow) -> None:
    assert airflow.test(unknown=THE_UPDATE) == ("fail", "failed")
    assert latest_version(airflow.table) == 2
    assert deltalake_rows(airflow.table) == ((1, "Bergen"), (2, "Rome"))
