"""Tables with a Postgres coordinator, in a Spark session: binding, moving, names, secrets."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pyarrow
import pytest
from deltalake import write_deltalake

from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.log_replay import check_log
from tests.kit.support import Table, commit_info, deltalake_rows, versions
from tests.postgres import postgres

NAME = "main"
WITH_POLICY = "'interlock.policy' = 'maxcompute_transactional'"
BOUND = f"{WITH_POLICY}, 'interlock.coordinator' = '{NAME}'"


def coordinator(
    server: postgres.Server,
    folder: Path,
    name: str,
    *,
    database: str = postgres.DATABASE,
    password: str = postgres.PASSWORDS[postgres.WRITER],
) -> dict[str, str]:
    """Return the settings of a coordinator, with the password in a file of the folder."""
    file = folder / f"password-{name}"
    file.write_text(password, encoding="utf-8")
    file.chmod(0o600)
    values = {
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/{database}",
        "user": postgres.WRITER,
        "passwordFile": str(file),
    }
    return {f"spark.interlock.coordinator.{name}.{key}": value for key, value in values.items()}


@pytest.fixture(scope="module")
def session(
    server: postgres.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverProcess]:
    """A session with the coordinators `main` and `second`, of one database, and useless ones."""
    folder = tmp_path_factory.mktemp("session")
    with server.superuser() as connection:
        connection.execute(f"CREATE DATABASE bare OWNER {postgres.ADMIN}")
    useless = {
        **coordinator(server, folder, "closed"),
        "spark.interlock.coordinator.closed.url": "jdbc:postgresql://127.0.0.1:1/interlock",
        **coordinator(server, folder, "wrong", password="hidden"),
        **coordinator(server, folder, "nowhere", database="nowhere"),
        **coordinator(server, folder, "bare", database="bare"),
        **coordinator(server, folder, "secret", database=f"{postgres.DATABASE}?password=hidden"),
    }
    useful = [coordinator(server, folder, name) for name in (NAME, "second")]
    settings = {key: value for each in (*useful, useless) for key, value in each.items()}
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
    create(session, table, WITH_POLICY)
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


def test_the_way_back_to_plain_delta(session: DriverProcess, tmp_path: Path) -> None:
    """The commit that ends the policy is the last one of the database."""
    table = Table(tmp_path / "table")
    create(session, table)
    run(session, insert(table, 1), f"CALL interlock.remove_policy('{table.path}')")
    assert coordinators(table) == ["postgres"] * 3 + ["none"] * (len(versions(table)) - 3)
    assert commit_info(table, 2)["operation"] == "UNSET TBLPROPERTIES"
    more = pyarrow.table({"id": pyarrow.array([2], pyarrow.int32()), "v": ["x"]})
    write_deltalake(str(table.path), more, mode="append")
    run(session, insert(table, 3))
    run(session, f"ALTER TABLE {table} SET TBLPROPERTIES ({BOUND})", insert(table, 4))
    assert coordinators(table)[-1] == "postgres"
    assert deltalake_rows(table) == ((1, "x"), (2, "x"), (3, "x"), (4, "x"))


def test_a_job_that_read_before_the_binding_fails(session: DriverProcess, tmp_path: Path) -> None:
    table = Table(tmp_path / "table")
    create(session, table, WITH_POLICY)
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


def test_managed_tables_change_their_names_and_change_them_back(
    session: DriverProcess, tmp_path: Path
) -> None:
    """ALTER TABLE ... RENAME moves a managed table's folder; it can be written under each name."""
    one, two = Table(tmp_path / "one"), Table(tmp_path / "two")
    run(session, f"CREATE DATABASE renamed LOCATION '{tmp_path}'")
    for number, name in enumerate(("one", "two")):
        columns = f"(id INT, v STRING) USING delta TBLPROPERTIES ({BOUND})"
        run(session, f"CREATE TABLE renamed.{name} {columns}", insert(f"renamed.{name}", number))

    def rename(old: str, new: str) -> str:
        return f"ALTER TABLE renamed.{old} RENAME TO renamed.{new}"

    run(session, rename("one", "away"), insert("renamed.away", 2), rename("away", "one"))
    run(session, insert("renamed.one", 3))
    sound(one, 0, 2, 3)
    for number in (4, 6):
        run(session, rename("one", "away"), rename("two", "one"), rename("away", "two"))
        run(session, insert("renamed.one", number), insert("renamed.two", number + 1))
    sound(one, 0, 2, 3, 5, 6)
    sound(two, 1, 4, 7)


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


# Coordinators that a table cannot be bound to, and what the session says of each.
USELESS = {
    "closed": ("INTERLOCK_COORDINATOR_UNAVAILABLE", "Start the database, or correct the url"),
    "wrong": ("INTERLOCK_COORDINATOR_UNAVAILABLE", "Correct the user, or what its password"),
    "nowhere": ("INTERLOCK_COORDINATOR_UNAVAILABLE", "Correct the database in the url"),
    "bare": ("INTERLOCK_COORDINATOR_SCHEMA", "Run 'interlock coordinator init'"),
    "secret": ("INTERLOCK_COORDINATOR_SETTING", "spark.interlock.coordinator.secret.url"),
    "unknown": ("INTERLOCK_UNKNOWN_COORDINATOR", "spark.interlock.coordinator.unknown.url"),
}


@pytest.mark.variant_cases(but=["closed", "bare"])
@pytest.mark.parametrize("name", USELESS)
def test_no_table_is_bound_to_what_cannot_order_its_commits(
    session: DriverProcess, tmp_path: Path, name: str
) -> None:
    condition, help_text = USELESS[name]
    table, new = Table(tmp_path / "table"), Table(tmp_path / "new")
    create(session, table, WITH_POLICY)
    bound = f"{WITH_POLICY}, 'interlock.coordinator' = '{name}'"
    for statement in (
        f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.coordinator' = '{name}')",
        f"CREATE TABLE {new} (id INT, v STRING) USING delta TBLPROPERTIES ({bound})",
        f"CREATE TABLE {new} USING delta TBLPROPERTIES ({bound}) AS SELECT 1 AS id, 'x' AS v",
    ):
        refused = session.run(statement)
        assert refused.error == "UsageError", refused.message
        assert condition in refused.message
        assert help_text in refused.message
        assert "hidden" not in refused.message
    run(session, insert(table, 1))
    assert versions(table) == [0, 1]
    sound(table, 1)
    create(session, new, WITH_POLICY)


@pytest.fixture(scope="module")
def without_driver(
    server: postgres.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DriverProcess]:
    """A session whose jar of the driver has no driver in it."""
    folder = tmp_path_factory.mktemp("without-driver")
    jar = folder / "postgresql-42.7.10.jar"
    with ZipFile(jar, "w") as empty:
        empty.writestr("empty", "")
    settings = {**coordinator(server, folder, NAME), "spark.jars": str(jar)}
    with driver_processes(folder, "interlock", settings=settings) as processes:
        yield processes[0]


@pytest.mark.variant
def test_what_a_session_without_the_driver_says(
    session: DriverProcess, without_driver: DriverProcess, tmp_path: Path
) -> None:
    table, new = Table(tmp_path / "table"), Table(tmp_path / "new")
    create(session, table)
    run(session, insert(table, 1))
    for statement in (
        insert(table, 2),
        f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')",
        f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.coordinator' = 'filesystem')",
        f"CREATE TABLE {new} (id INT) USING delta TBLPROPERTIES ({BOUND})",
        f"RESTORE TABLE {table} TO VERSION AS OF 0",
        f"spark.range(1).selectExpr('int(id) AS id', 'string(id) AS v').write.format('delta')"
        f".mode('append').save('{table.path}')",
    ):
        refused = without_driver.run(statement)
        assert refused.error == "UsageError", (statement, refused.message)
        assert "INTERLOCK_COORDINATOR_UNAVAILABLE" in refused.message
        assert "--packages org.postgresql:postgresql:42.7.10" in refused.message
        assert "\tat " not in refused.message
    assert coordinators(table) == ["postgres"] * 2
    run(session, insert(table, 3))
    sound(table, 1, 3)


def test_who_was_judged_against_a_withdrawn_commit_is_judged_by_what_took_its_place(
    session: DriverProcess, server: postgres.Server, tmp_path: Path
) -> None:
    """A commit is judged against one on its way as version 4; another process makes 4 and 5.

    The first is answered with both, so that the queue knows 5 while the other still has its turn:
    what that may not pass is version 4, which it was not judged against yet.
    """
    settings = coordinator(server, tmp_path, NAME)
    with driver_processes(tmp_path, "interlock", settings=settings) as (ours,):
        table = Table(tmp_path / "t")
        run(
            ours,
            f"CREATE TABLE {table} (id INT, v STRING) USING delta TBLPROPERTIES "
            f"('interlock.policy' = 'row_level', 'interlock.coordinator' = '{NAME}')",
            *(f"INSERT INTO {table} VALUES ({number}, 'a')" for number in (1, 2, 3)),
        )
        update = f"UPDATE {table} SET v = '{{v}}' WHERE id = {{id}}"
        start = [str(table.path), update.format(v="E", id=2), update.format(v="T", id=1)]
        withdrawn = "spark.version; from integration import withdrawn; from pathlib import Path; "
        run(ours, f"{withdrawn}withdrawn.start(spark, Path({start[0]!r}), *{start[1:]!r})")
        run(session, update.format(v="B", id=1), f"INSERT INTO {table} VALUES (100, 'B')")
        end = ours.run(f"{withdrawn}withdrawn.finish(spark)")
    assert end.error == "ConcurrentDeleteReadError"
    assert end.winner_version == 4
    assert deltalake_rows(table) == ((1, "B"), (100, "B"), (2, "E"), (3, "a"))
    assert versions(table) == list(range(7))
    check_log(table)
