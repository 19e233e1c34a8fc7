"""Tables on Azure and Google Cloud Storage, on emulators, by the ways in which Delta commits there.

Each test copies what is in the storage to the local disk, where it looks at the log.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from integration import writers
from integration.writers import Writer, acknowledged, answers
from tests.kit.command import doctor
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.support import Table, deltalake_rows, unknown_files, versions
from tests.storage import azure, gcs
from tests.storage.remote import RemoteTable, Storage

pytestmark = pytest.mark.variant

DONE = Answer()
ONE_WINNER = "each of 100 races of 32 writers had one winner"
LEFT_OPEN = "races of 32 writers had more than one winner"

Start = Callable[[Path], AbstractContextManager[Storage]]
SERVERS: dict[str, Start] = {
    "azure": azure.start,
    "gcs": gcs.start,
    "newer gcs": gcs.start_newer,
}


@pytest.fixture(scope="module", params=SERVERS)
def storage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Storage]:
    start = SERVERS[request.param]
    if start is gcs.start_newer and shutil.which("go") is None:
        pytest.skip("the machine has no Go to compile the server with")
    with start(tmp_path_factory.mktemp("storage")) as found:
        yield found


@pytest.fixture(scope="module")
def drivers(
    storage: Storage, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[DriverProcess]]:
    """Two processes with Interlock, and one of stock Spark and Delta."""
    kinds = ("interlock", "interlock", "stock")
    folder = tmp_path_factory.mktemp("drivers")
    with driver_processes(folder, *kinds, settings=storage.settings) as found:
        yield found


def make(driver: DriverProcess, table: RemoteTable, columns: str) -> None:
    created = driver.run(
        f"CREATE TABLE {table} ({columns}) USING delta "
        "TBLPROPERTIES ('interlock.policy' = 'row_level')"
    )
    assert created == DONE


def copied(drivers: list[DriverProcess], table: RemoteTable, folder: Path) -> Table:
    """Copy the table to the local disk, and check that its log has no gap and knows all files."""
    for driver in drivers[:2]:  # A copy taken at once would miss a checkpoint named later.
        writers.order(driver, "from tests.kit.support import await_checkpoints as f; f(spark)")
    copy = f"from pathlib import Path; {table!r}.copied(spark, Path({str(folder)!r}))"
    writers.order(drivers[0], f"from tests.storage.remote import RemoteTable; {copy}")
    found = Table(folder)
    assert versions(found) == list(range(len(versions(found))))
    assert unknown_files(found) == []
    assert list(folder.glob("_delta_log/.*")) == []
    return found


def test_two_jobs_at_once(storage: Storage, drivers: list[DriverProcess], tmp_path: Path) -> None:
    first, second, stock = drivers
    table = RemoteTable(f"{storage.url}/tables/jobs")
    make(first, table, "id INT, v STRING")
    values = "SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    assert first.run(f"INSERT INTO {table} {values}") == DONE

    def race(*updates: str) -> tuple[Answer, ...]:
        for driver, update in zip(drivers, updates, strict=False):
            driver.hold(f"UPDATE {table} SET {update}")
        return first.open(), second.open()

    assert race("v = 'x' WHERE id = 1", "v = 'y' WHERE id = 2") == (DONE, DONE)
    won, lost = race("v = 'X' WHERE id = 1", "v = 'Y' WHERE id = 1")
    assert won == DONE
    assert (lost.error, lost.winner_version) == ("ConcurrentDeleteReadError", 4)

    rows = ((1, "X"), (2, "y"), (3, "c"))
    copy = copied(drivers, table, tmp_path / "copy")
    assert versions(copy) == [0, 1, 2, 3, 4]
    assert deltalake_rows(copy) == rows
    read = f"tuple(sorted(map(tuple, spark.table({str(table)!r}).collect())))"
    writers.order(stock, f"found = {read}; assert found == {rows!r}, found")


def test_two_processes_lose_and_double_nothing(
    storage: Storage, drivers: list[DriverProcess], tmp_path: Path
) -> None:
    table = RemoteTable(f"{storage.url}/tables/appends")
    make(drivers[0], table, "id BIGINT")
    planned = [
        Writer(table.url, n * 5, 5, "insert", str(tmp_path / f"writer-{n}")) for n in range(4)
    ]
    writers.run(drivers[:2], planned, patience=600)
    told = answers(planned)
    assert sorted(acknowledged(told)) == list(range(20)), told
    copy = copied(drivers, table, tmp_path / "copy")
    assert versions(copy) == list(range(21))
    assert sorted(deltalake_rows(copy)) == [(i,) for i in range(20)]


def test_the_server_passes_the_races(storage: Storage) -> None:
    found = doctor(storage.settings, f"{storage.url}/races")
    assert found[f"Races in {storage.url}/races"]["found"] == ONE_WINNER


def test_a_server_that_looks_when_an_upload_begins_is_refused(tmp_path: Path) -> None:
    with gcs.start(tmp_path, in_one_request=False) as storage:
        found = doctor(storage.settings, f"{storage.url}/tables")[f"Races in {storage.url}/tables"]
        assert not found["ok"]
        assert found["found"].endswith(LEFT_OPEN)
        assert "Postgres" in found["fix"]
        with driver_processes(tmp_path, "interlock", settings=storage.settings) as (driver,):
            refused = driver.run(
                f"CREATE TABLE delta.`{storage.url}/tables/t` (id INT) USING delta "
                "TBLPROPERTIES ('interlock.policy' = 'row_level')"
            )
    assert "[INTERLOCK_NO_PUT_IF_ABSENT]" in refused.message
    assert LEFT_OPEN in refused.message
