"""Tables with a Postgres coordinator, in a Spark session: binding, moving, names, secrets."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import postgres
from tests.driver_process import DriverProcess, driver_processes
from tests.log_replay import check_log
from tests.support import Table, commit_info, deltalake_rows, versions

NAME = "main"
POLICED = "'interlock.policy' = 'maxcompute_transactional'"
BOUND = f"{POLICED}, 'interlock.coordinator' = '{NAME}'"


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    # Not below pytest's folders, which it closes to the server's user.
    with (
        TemporaryDirectory() as data,
        postgres.start(max(postgres.VERSIONS), Path(data) / "18") as found,
    ):
        found.migrate()
        yield found


@pytest.fixture(scope="module")
def session(
    server: postgres.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverProcess]:
    """A session that knows the coordinators `main` and `second`, of one database, by one user."""
    folder = tmp_path_factory.mktemp("session")
    password = folder / "password"
    password.write_text(postgres.PASSWORDS[postgres.WRITER], encoding="utf-8")
    password.chmod(0o600)
    settings = {
        f"spark.interlock.coordinator.{name}.{key}": value
        for name in (NAME, "second")
        for key, value in {
            "url": f"jdbc:postgresql://127.0.0.1:{server.port}/{postgres.DATABASE}",
            "user": postgres.WRITER,
            "passwordFile": str(password),
        }.items()
    }
    with driver_processes(folder, "interlock", settings=settings) as processes:
        yield processes[0]


def run(session: DriverProcess, *statements: str) -> None:
    for statement in statements:
        end = session.run(statement)
        assert end.error is None, end.message


def create(session: DriverProcess, table: Table, properties: str = BOUND) -> None:
    run(
        session, f"CREATE TABLE {table} (id INT, v STRING) USING delta TBLPROPERTIES ({properties})"
    )


def coordinators(table: Table) -> list[str]:
    """Name the coordinator of each version: `filesystem`, `postgres` or `none`."""
    found = []
    for version in versions(table):
        stamp = (commit_info(table, version).get("tags") or {}).get("interlock.coordinator")
        first = (stamp or "none").split("/")[0]
        found.append("postgres" if "-" in first else first)
    return found


def sound(table: Table, *ids: int) -> None:
    assert deltalake_rows(table) == tuple((number, "x") for number in ids)
    check_log(table)


def insert(table: Table | str, number: int) -> str:
    return f"INSERT INTO {table} VALUES ({number}, 'x')"


def test_every_statement_commits_there(session: DriverProcess, tmp_path: Path) -> None:
    table = Table(tmp_path / "table")
    create(session, table)
    run(
        session,
        insert(table, 1),
        insert(table, 2),
        f"DELETE FROM {table} WHERE id = 1",
        f"ALTER TABLE {table} MERGE SMALLFILES",
        f"RESTORE TABLE {table} TO VERSION AS OF 2",
        f"DELETE FROM {table} WHERE id = 1",
    )
    assert coordinators(table) == ["postgres"] * len(versions(table))
    sound(table, 2)


def test_bound_moved_and_unbound(session: DriverProcess, tmp_path: Path) -> None:
    """A change of the binding commits where the table was bound before."""
    table = Table(tmp_path / "table")
    create(session, table, POLICED)
    expected = ["filesystem"]
    for statement, where in (
        (insert(table, 1), "filesystem"),
        (f"ALTER TABLE {table} SET TBLPROPERTIES ({BOUND})", "filesystem"),
        (insert(table, 2), "postgres"),
        (f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.coordinator' = 'second')", "postgres"),
        (insert(table, 3), "postgres"),
        (f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.coordinator')", "postgres"),
        (insert(table, 4), "filesystem"),
        (f"ALTER TABLE {table} SET TBLPROPERTIES ({BOUND})", "filesystem"),
        (insert(table, 5), "postgres"),
    ):
        run(session, statement)
        expected.append(where)
    assert coordinators(table) == expected
    sound(table, 1, 2, 3, 4, 5)


def test_a_job_that_read_before_the_binding_fails(session: DriverProcess, tmp_path: Path) -> None:
    table = Table(tmp_path / "table")
    create(session, table, POLICED)
    session.hold(insert(table, 1))
    run(session, f"ALTER TABLE {table} SET TBLPROPERTIES ({BOUND})")
    assert session.open().error == "MetadataChangedError"
    run(session, insert(table, 2))
    sound(table, 2)


def test_dropped_and_made_anew_moved_and_cloned(session: DriverProcess, tmp_path: Path) -> None:
    table, moved, clone = (Table(tmp_path / name) for name in ("table", "moved", "clone"))
    create(session, table)
    run(session, insert(table, 1))
    shutil.rmtree(table.path)
    create(session, table)
    run(session, insert(table, 2))
    sound(table, 2)
    table.path.rename(moved.path)
    run(session, insert(moved, 3), f"CREATE TABLE {clone} SHALLOW CLONE {moved}", insert(moved, 4))
    sound(moved, 2, 3, 4)
    run(session, insert(clone, 5))
    assert coordinators(clone) == ["postgres", "postgres"]


def test_one_table_by_two_ways(session: DriverProcess, tmp_path: Path) -> None:
    table, link = Table(tmp_path / "table"), Table(tmp_path / "link")
    create(session, table)
    link.path.symlink_to(table.path)
    run(session, insert(link, 1), insert(table, 2), insert(link, 3))
    assert coordinators(table) == ["postgres"] * 4
    sound(table, 1, 2, 3)


def test_no_sql_sends_a_password_elsewhere(session: DriverProcess, tmp_path: Path) -> None:
    table = Table(tmp_path / "table")
    create(session, table)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"jdbc:postgresql://127.0.0.1:{listener.getsockname()[1]}/{postgres.DATABASE}"
        for setting in (
            f"{NAME}.url = {url}",
            f"{NAME}.user = postgres",
            f"{NAME}.passwordFile = /etc/hostname",
            f"{NAME}.passwordVariable = HOME",
            f"elsewhere.url = {url}",
        ):
            key = f"spark.interlock.coordinator.{setting.split(' ')[0]}"
            run(session, f"SET spark.interlock.coordinator.{setting}")
            if setting.startswith(NAME):
                statement = insert(table, 1)
            else:
                statement = (
                    f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.coordinator' = 'elsewhere')"
                )
            refused = session.run(statement)
            assert refused.error == "UsageError"
            assert "INTERLOCK_COORDINATOR_SETTING" in str(refused.message)
            assert key in str(refused.message)
            assert url not in str(refused.message)
            run(session, f"RESET {key}")
        with pytest.raises(BlockingIOError):
            listener.accept()
    run(session, insert(table, 1))
    sound(table, 1)


def test_no_address_or_secret_is_in_the_log_or_shown(
    session: DriverProcess, server: postgres.Server, tmp_path: Path
) -> None:
    table = Table(tmp_path / "table")
    create(session, table)
    run(session, insert(table, 1))
    shown = tmp_path / "shown.json"
    run(
        session,
        f"spark.sql('SHOW TBLPROPERTIES {table}').coalesce(1).write.json('{shown}')",
        f"spark.sql('DESCRIBE HISTORY {table}').selectExpr('cast(struct(*) as string)')"
        f".coalesce(1).write.mode('append').text('{shown}')",
        f"spark.sql('EXPLAIN EXTENDED INSERT INTO {table} VALUES (1, 1)')"
        f".coalesce(1).write.mode('append').json('{shown}')",
    )
    texts = [file.read_text(encoding="utf-8") for file in shown.iterdir() if file.suffix != ".crc"]
    texts += [file.read_text(encoding="utf-8") for file in table.path.glob("_delta_log/*.json")]
    assert json.dumps(NAME) in "".join(texts)
    for secret in ("jdbc:", str(server.port), *postgres.PASSWORDS.values()):
        assert secret not in "".join(texts)
