"""Backup and restore of docs/production.md: a table, the database that orders its commits, or both.

The backup is taken while a writer goes on: the log is copied first, then one more version is
committed, then everything else is copied. Writers are stopped before something is restored.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kit import command
from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.support import Table, commit_file, deltalake_rows, latest_version, put_back
from tests.postgres.database import NAME, Database, database
from tests.postgres.postgres import Dump

pytestmark = pytest.mark.variant


@dataclass(frozen=True)
class Backup:
    """Copies of a table's folder, of version 2, and of the database, which is at version 3."""

    folder: Path
    dump: Dump


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Database]:
    with database(18, tmp_path / "database") as found:
        yield found


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path / "table")


@pytest.fixture
def writer(behind: Database, tmp_path: Path) -> Iterator[DriverProcess]:
    """The application that writes until the backup is needed."""
    with driver(behind, tmp_path) as found:
        yield found


@pytest.fixture
def backup(behind: Database, table: Table, writer: DriverProcess, tmp_path: Path) -> Backup:
    """Take a backup between versions, and commit version 4 after it."""
    folder = tmp_path / "backup"
    for statement in (
        f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES "
        f"('interlock.policy' = 'row_level', 'interlock.coordinator' = '{NAME}')",
        f"INSERT INTO {table} VALUES (1)",
        f"INSERT INTO {table} VALUES (2)",
    ):
        assert writer.run(statement).error is None
    shutil.copytree(table.path / "_delta_log", folder / "_delta_log")
    assert writer.run(f"INSERT INTO {table} VALUES (3)").error is None
    dump = behind.dump()
    rest = shutil.ignore_patterns("_delta_log")
    shutil.copytree(table.path, folder, ignore=rest, dirs_exist_ok=True)
    assert writer.run(f"INSERT INTO {table} VALUES (4)").error is None
    return Backup(folder, dump)


@contextmanager
def driver(behind: Database, folder: Path) -> Iterator[DriverProcess]:
    settings = behind.settings("writer", proxied=False)
    with driver_processes(folder, "interlock", settings=settings) as (found,):
        yield found


def restore(table: Table, backup: Backup) -> None:
    put_back(table, backup.folder)


def repair(behind: Database, table: Table) -> None:
    done = command.repair(behind.admin(), table.location)
    assert done.returncode == 0, done.stderr


def test_both_go_on_with_the_version_that_the_database_has(
    behind: Database, table: Table, writer: DriverProcess, backup: Backup, tmp_path: Path
) -> None:
    """The database knows version 3, and its data files were copied after it was dumped."""
    writer.stop()
    restore(table, backup)
    behind.server.restore(backup.dump)
    assert deltalake_rows(table) == ((1,), (2,))
    with driver(behind, tmp_path) as after:
        assert after.run(f"INSERT INTO {table} VALUES (5)").error is None
    assert latest_version(table) == 4
    assert deltalake_rows(table) == ((1,), (2,), (3,), (5,))


def test_a_database_alone_needs_a_repair(
    behind: Database, table: Table, writer: DriverProcess, backup: Backup, tmp_path: Path
) -> None:
    writer.stop()
    behind.server.restore(backup.dump)
    with driver(behind, tmp_path) as after:
        refused = after.run(f"INSERT INTO {table} VALUES (5)")
        assert "INTERLOCK_COORDINATOR_RESTORED" in refused.message
        assert latest_version(table) == 4
        repair(behind, table)
        assert after.run(f"INSERT INTO {table} VALUES (6)").error is None
    assert latest_version(table) == 5
    assert deltalake_rows(table) == ((1,), (2,), (3,), (4,), (6,))


def test_a_table_alone_goes_on_from_its_own_log(
    behind: Database, table: Table, writer: DriverProcess, backup: Backup, tmp_path: Path
) -> None:
    writer.stop()
    restore(table, backup)
    with driver(behind, tmp_path) as after:
        assert after.run(f"INSERT INTO {table} VALUES (5)").error is None
    assert latest_version(table) == 3
    assert deltalake_rows(table) == ((1,), (2,), (5,))


@pytest.mark.parametrize("repaired", [False, True], ids=["at once", "after a repair"])
def test_a_table_alone_after_a_driver_was_killed(
    behind: Database,
    table: Table,
    writer: DriverProcess,
    backup: Backup,
    tmp_path: Path,
    repaired: bool,
) -> None:
    """The database holds version 4 as not published, and the backup is of version 3.

    The next writer publishes version 4, whose data file the backup lacks, unless a repair has told
    the database before that it is in the log.
    """
    version_3 = commit_file(table, 3).read_bytes()
    writer.stop()
    with behind.server.superuser() as connection:
        connection.execute("UPDATE interlock.tables SET published = 3")
    if repaired:
        repair(behind, table)
    restore(table, backup)
    commit_file(table, 3).write_bytes(version_3)
    with driver(behind, tmp_path) as after:
        assert after.run(f"INSERT INTO {table} VALUES (5)").error is None
        read = after.run(f"spark.sql('SELECT * FROM {table}').collect()")
    assert latest_version(table) == (4 if repaired else 5)
    if repaired:
        assert deltalake_rows(table) == ((1,), (2,), (3,), (5,))
    else:
        assert "FILE_NOT_EXIST" in read.message
