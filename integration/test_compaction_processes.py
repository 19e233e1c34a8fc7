"""Compactions where the jobs they meet, or the executors they run on, are other processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.cluster import standalone_cluster
from integration.test_cluster import SETTINGS
from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.log_replay import check_log
from tests.kit.support import Table, commit_info, deltalake_rows, latest_version, tags, versions

pytestmark = pytest.mark.variant

MINOR = "ALTER TABLE {t} COMPACT MINOR"
MAJOR = "ALTER TABLE {t} COMPACT MAJOR"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 4"
INSERT = "INSERT INTO {t} VALUES (10, 'i')"
CREATE = (
    "CREATE TABLE {t} (id INT, v STRING) USING delta "
    "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta', "
    "'delta.enableDeletionVectors' = 'true', 'interlock.compaction.targetFileSize' = '1mb')"
)
SETUP = (
    CREATE,
    "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO {t} VALUES (4, 'd'), (5, 'e')",
    "DELETE FROM {t} WHERE id = 2",
)
START = {1: "a", 3: "c", 4: "d", 5: "e"}
BEFORE = len(SETUP) - 1


@dataclass(frozen=True)
class Case:
    """Statements in one process while `last` stands at its commit in another.

    Attributes:
        rules: the cells by which `last` passed the winners, or failed
        error: how it failed
        changes: what its success does to the rows of `START`; None for a row that is gone

    """

    winners: tuple[str, ...]
    last: str
    rules: str
    changes: dict[int, str | None]
    error: str | None = None


CASES = [
    Case((MAJOR,), UPDATE, "D23", {1: "U"}),
    Case((UPDATE,), MINOR, "D14", {1: "U"}),
    Case((MINOR, MAJOR), DELETE, "D18,D23", {4: None}),
    Case((MINOR,), MAJOR, "D20", {}),
    Case((UPDATE,), MAJOR, "D15", {1: "U"}, error="ConcurrentDeleteReadError"),
    Case((INSERT,), MAJOR, "D10", {10: "i"}, error="ConcurrentAppendError"),
]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[DriverProcess]]:
    with driver_processes(tmp_path_factory.mktemp("drivers"), "interlock", "interlock") as both:
        yield both


@pytest.fixture(scope="module")
def original(drivers: list[DriverProcess], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files, one with a dead row, for tests to copy."""
    table = Table(tmp_path_factory.mktemp("original") / "table")
    run_all(drivers[0], table, SETUP)
    return table.path


@pytest.fixture
def table(original: Path, tmp_path: Path) -> Table:
    shutil.copytree(original, tmp_path / "table")
    return Table(tmp_path / "table")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rules.replace(",", "-"))
def test_the_cells_are_those_of_one_process(
    drivers: list[DriverProcess], table: Table, case: Case
) -> None:
    one, other = drivers
    other.hold(case.last.format(t=table))
    run_all(one, table, case.winners)
    ended = other.open()

    assert ended.error == case.error, ended.message
    last = BEFORE + len(case.winners) + (case.error is None)
    assert latest_version(table) == last
    if case.error is None:
        assert tags(table, last)["interlock.rules"] == case.rules
    else:
        assert ended.rule == case.rules
    expected = {id_: v for id_, v in {**START, **case.changes}.items() if v is not None}
    assert rows_by_id(table) == expected
    check_log(table)


def test_a_process_killed_before_a_compactions_commit_changes_nothing(
    drivers: list[DriverProcess], table: Table, tmp_path: Path
) -> None:
    """Its outputs are written, and nobody ever reads them."""
    with driver_processes(tmp_path, "interlock") as (killed,):
        killed.hold(MAJOR.format(t=table))
        written = data_files(table)
        killed.process.kill()
        killed.process.wait()
    assert len(written) == 3
    assert data_files(table) == written
    assert versions(table) == list(range(BEFORE + 1))
    assert rows_by_id(table) == START

    run_all(drivers[0], table, (UPDATE, MAJOR))
    assert rows_by_id(table) == {**START, 1: "U"}
    live = check_log(table)
    assert len(live) == 1
    assert not live.keys() & written


class TestOnExecutors:
    """COMPACT MAJOR with several outputs, on two executors that are processes of their own."""

    FILES, ROWS = 12, 1000

    def test_rows_are_followed(self, tmp_path: Path) -> None:
        table = Table(tmp_path / "table")
        with standalone_cluster(tmp_path / "cluster", workers=2) as cluster:
            settings = {**SETTINGS, "spark.master": cluster.master}
            with driver_processes(tmp_path, "interlock", settings=settings) as (driver,):
                run_all(driver, table, self.setup())
                before = latest_version(table)
                files = check_log(table)
                driver.hold(f"DELETE FROM {table} WHERE id % 7 = 3")
                run_all(driver, table, (MAJOR,))
                deleted = driver.open()
            assert all(cluster.executors)

        assert deleted.error is None, deleted.message
        assert [commit_info(table, before + n)["operation"] for n in (1, 2)] == [
            "COMPACT MAJOR",
            "DELETE",
        ]
        assert tags(table, before + 2)["interlock.rules"] == "D23"
        live = check_log(table)
        assert len(files) == self.FILES
        assert 2 < len(live) < self.FILES
        assert all(add["deletionVector"] for add in live.values())
        left = [n for n in range(self.FILES * self.ROWS) if n % 5 != 0]
        assert sorted(rows_by_id(table, version=before + 1)) == left
        assert sorted(rows_by_id(table)) == [n for n in left if n % 7 != 3]

    def setup(self) -> Iterator[str]:
        """Make a table of twelve files, all with dead rows; four of them fit into an output."""
        yield CREATE.replace("1mb", "150kb")
        yield (
            f"INSERT INTO {{t}} SELECT /*+ REPARTITION_BY_RANGE({self.FILES}, id) */ "
            f"CAST(id AS INT), md5(CAST(id AS STRING)) FROM range({self.FILES * self.ROWS})"
        )
        yield "DELETE FROM {t} WHERE id % 5 = 0"


def run_all(driver: DriverProcess, table: Table, statements: Iterable[str]) -> None:
    for statement in statements:
        done = driver.run(statement.format(t=table))
        assert done.error is None, done.message


def rows_by_id(table: Table, *, version: int | None = None) -> dict[int, str]:
    return {int(str(id_)): str(v) for id_, v in deltalake_rows(table, version=version)}


def data_files(table: Table) -> set[str]:
    return {file.name for file in table.path.glob("*.parquet")}
