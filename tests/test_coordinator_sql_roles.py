"""What the coordinator's roles may do, and what hostile input does: nothing."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from tests.coordinator_sql import (
    TABLE,
    Call,
    adopt,
    attach,
    commit,
    content_of,
    listed,
    outcome,
    published,
    recreated,
    repair,
    revoke,
    status,
    statuses,
    tail,
    winners,
)
from tests.postgres import SUPERUSER, VERSIONS, Connection, Server, migrations, start

TABLES = ("coordinator", "tables", "commits", "abandoned")
WRITERS = (
    {"attach", "recreated", "commit", "outcome", "published"}
    | {"tail", "revoke", "adopt", "status"}
)  # fmt: skip
HOSTILE = (
    "'; DROP TABLE interlock.commits; --",
    "$$; DROP TABLE interlock.commits; $$",
    "\\'; SELECT pg_sleep(60); --",
    "file:/a/../../etc/passwd",
    "file:/a/%2e%2e/_delta_log",
    "file:/a\nb\tc\x01",
    "s3a://b/\u202e\U0001f600",
    "%s {0} ${table} %(p)s",
    "NULL",
)


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with TemporaryDirectory() as folder, start(request.param, Path(folder, "server")) as server:
        server.migrate()
        yield server


@pytest.fixture(scope="module")
def writer(server: Server) -> Iterator[Connection]:
    with server.writer() as connection:
        connection.autocommit = True
        connection.execute("SET synchronous_commit = off")
        yield connection


@pytest.fixture
def path(writer: Connection) -> str:
    """An attached table: c0 published, c1 ratified only."""
    path = f"file:/{uuid.uuid4()}/_delta_log"
    attach(path)(writer)
    for call in (commit(path, "c0", head=-1), commit(path, "c1", head=0, head_txn="c0")):
        assert statuses(call(writer)) == "committed"
    return path


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT FROM interlock.{}",
        "SELECT FROM interlock.{} FOR UPDATE",
        "INSERT INTO interlock.{} DEFAULT VALUES",
        "DELETE FROM interlock.{}",
        "TRUNCATE interlock.{}",
        "COPY interlock.{} TO STDOUT",
        "LOCK TABLE interlock.{}",
        "CREATE TABLE pg_temp.copy AS TABLE interlock.{}",
    ],
)
def test_a_writer_does_not_reach_the_tables(writer: Connection, table: str, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege), writer.transaction():
        writer.execute(statement.format(table))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE interlock.tables SET head = 0",
        "UPDATE interlock.coordinator SET id = gen_random_uuid()",
        "ALTER TABLE interlock.tables DISABLE TRIGGER ALL",
        "DROP TABLE interlock.commits",
        "CREATE TABLE interlock.mine (a int)",
        "CREATE TABLE public.mine (a int)",
        "CREATE INDEX ON interlock.commits (size)",
        "CREATE FUNCTION interlock.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE OR REPLACE FUNCTION interlock.tail(p_log_path text) RETURNS SETOF interlock.reply"
        " LANGUAGE sql AS 'SELECT NULL::interlock.reply'",
        "ALTER FUNCTION interlock.tail SET search_path = pg_temp",
        "DROP FUNCTION interlock.tail",
        "DROP SCHEMA interlock CASCADE",
        "GRANT EXECUTE ON FUNCTION interlock.repair TO writer",
        "SET ROLE interlock_admin",
        "SET ROLE admin",
        "CREATE ROLE mine",
        "SELECT nextval('interlock.tables_key_seq')",
        "SELECT interlock.locked('x')",
        "SELECT interlock.forget(NULL)",
        "SELECT interlock.attached(NULL, 'x')",
        "SELECT interlock.replies(NULL, 'x')",
        "SELECT interlock.check_table('x', 'x', 0)",
        "SELECT interlock.check_batch(NULL, NULL, NULL, NULL, NULL, NULL)",
    ],
)
def test_a_writer_changes_nothing_else(writer: Connection, statement: str) -> None:
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName)):
        writer.execute(statement)


def test_a_writer_has_the_functions_of_writers_and_no_others(
    server: Server, writer: Connection, path: str
) -> None:
    found = writer.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace"
        " AND has_function_privilege(oid, 'EXECUTE')"
    )
    assert {name for (name,) in found} == WRITERS
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        repair(path, head=0)(writer)
    assert listed(tail(path)(writer)) == winners(1, "c1")
    with server.admin() as admin:
        assert repair(path, head=0)(admin)[0].epoch == 1


def test_the_public_has_nothing(server: Server, path: str) -> None:
    with server.superuser() as connection:
        connection.execute("DROP ROLE IF EXISTS passer_by")
        connection.execute("CREATE ROLE passer_by")
        (schema,) = connection.execute(
            "SELECT has_schema_privilege('passer_by', 'interlock', 'USAGE, CREATE')"
        )
        functions = connection.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace"
            " AND has_function_privilege('passer_by', oid, 'EXECUTE')"
        ).fetchall()
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'interlock'::regnamespace"
            " AND relkind = 'r' AND has_table_privilege('passer_by', oid,"
            " 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')"
        ).fetchall()
        types = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'interlock'::regnamespace"
            " AND relkind = 'c' AND has_type_privilege('passer_by', reltype, 'USAGE')"
        ).fetchall()
        assert (schema, functions, tables, types) == ((False,), [], [], [])


def test_every_function_of_a_writer_is_closed(server: Server) -> None:
    """Runs as its owner, finds its names in our schemas only, and builds no SQL."""
    with server.superuser() as connection:
        rows = connection.execute(
            "SELECT proname, prosecdef, proconfig, prosrc, pg_get_userbyid(proowner)"
            " FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace"
        ).fetchall()
    assert {name for name, *_ in rows} > WRITERS
    for name, definer, config, source, owner in rows:
        assert definer == (name in WRITERS | {"repair"}), name
        assert config == ["search_path=pg_catalog, interlock, pg_temp"], name
        assert "execute" not in source.lower(), name
        assert owner == "interlock_admin"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_names(server: Server, writer: Connection, hostile: str) -> None:
    path, txn, table = f"{uuid.uuid4()}{hostile}", hostile, hostile
    assert attach(path, table=table)(writer)[0].table_id == table
    ids: dict[str, Any] = {"table_id": table, "new_table_id": table}
    assert listed(commit(path, txn, head=-1, **ids)(writer)) == [(0, txn, None)]
    assert listed(commit(path, "b", head=-1, **ids)(writer)) == winners(0, txn)
    assert statuses(commit(path, "b", head=0, head_txn=hostile * 2, **ids)(writer)) == "foreign"
    assert statuses(revoke(path, 0, hostile * 2)(writer)) == "unchanged"
    assert statuses(published(path, 0, txn)(writer)) == "published"
    assert [row.log_path for row in status()(writer) if row.log_path == path] == [path]
    staged: dict[str, Any] = {
        "contents": [None],
        "staged_names": [hostile],
        "sizes": [1],
        "sha256s": [b"#" * 32],
    }
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        commit(path, "c", head=0, **ids, **staged)(writer)
    assert hostile not in str(refused.value)


def test_objects_of_a_writers_own_are_not_mistaken_for_ours(server: Server, path: str) -> None:
    """Temporary tables, functions, operators and types by our names, first on its search path."""
    with server.superuser() as superuser:
        superuser.execute("CREATE SCHEMA IF NOT EXISTS theirs AUTHORIZATION writer")
    with server.writer() as connection:
        for place in ("pg_temp", "theirs"):
            for table in TABLES:
                connection.execute(f"CREATE TABLE {place}.{table} (key int, log_path text)")
            for name in ("locked(text)", "least(bigint, bigint)", "clock_timestamp()"):
                connection.execute(
                    f"CREATE FUNCTION {place}.{name} RETURNS int LANGUAGE plpgsql"
                    " AS $$ BEGIN RAISE 'theirs, as %', current_user; END $$"
                )
            connection.execute(
                f"CREATE FUNCTION {place}.same(text, text) RETURNS boolean LANGUAGE plpgsql"
                " AS $$ BEGIN RAISE 'theirs, as %', current_user; END $$"
            )
            connection.execute(
                f"CREATE OPERATOR {place}.= "
                f"(FUNCTION = {place}.same, LEFTARG = text, RIGHTARG = text)"
            )
        connection.execute("SET search_path = pg_temp, theirs, pg_catalog, interlock")
        with (
            pytest.raises(psycopg.errors.RaiseException, match="as writer"),
            connection.transaction(),
        ):
            connection.execute("SELECT 'a'::text = 'b'::text")
        attempt = uuid.uuid4()
        call = commit(path, "a", head=1, head_txn="c1", attempt=attempt)
        assert listed(call(connection)) == [(2, "a", None)]
        assert statuses(outcome(path, attempt)(connection)) == "committed"
        assert statuses(published(path, 2, "a")(connection)) == "published"
        assert statuses(adopt(path, from_=2, to=3)(connection)) == "adopted"
        assert statuses(tail(path)(connection)) == "tail"
        assert statuses(revoke(path, 3, "a")(connection)) == "unchanged"
        (row,) = recreated(path, epoch=0, head=3, table=TABLE, log_head=-1)(connection)
        assert row.epoch == 1
        assert attach(path)(connection)[0].epoch == 1
        assert [row.head for row in status()(connection) if row.log_path == path] == [-1]
        connection.rollback()


def test_migrations_by_a_superuser_over_roles_that_exist(server: Server) -> None:
    with server.superuser() as connection:
        connection.execute("CREATE DATABASE second")
    with server.connect(SUPERUSER, database="second") as second:
        second.execute("CREATE SCHEMA interlock")  # the migration runner's, for its history
        for migration in migrations():
            second.execute(migration)
        assert second.execute("SELECT current_user").fetchone() == (SUPERUSER,)
        second.commit()
    with server.connect("writer", database="second") as second:
        attach("a")(second)
        assert statuses(commit("a", "t", head=-1)(second)) == "committed"
        (second_id,) = {row.coordinator_id for row in status()(second)}
    with server.writer() as first:
        attach("a")(first)
        assert second_id not in {row.coordinator_id for row in status()(first)}
    with server.superuser() as connection:
        connection.execute("DROP DATABASE second")


BAD: list[dict[str, Any]] = [
    {"txn_ids": []},
    {"txn_ids": None},
    {"txn_ids": ["a", "a"]},
    {"txn_ids": ["a", None]},
    {"txn_ids": ["a", ""]},
    {"txn_ids": ["a", "x" * 201]},
    {"attempt": None},
    {"contents": [b"SECRET"]},
    {"contents": [b"SECRET", None]},
    {"contents": [b"SECRET", b"longer than said"]},
    {"contents": [b"SECRET", bytes(2097153)], "sizes": [6, 2097153]},
    {"staged_names": [".0.a.staged", None]},
    {"sizes": [0, None]},
    {"sizes": [-1, -1]},
    {"sha256s": [None, b"short"]},
    {"head": -2},
    {"head": None},
    {"log_path": ""},
    {"log_path": "p" * 2001},
    {"table_id": None},
    {"new_table_id": "t" * 201},
    *(
        {"contents": [b"SECRET", None], "sizes": [6, 1], "staged_names": [None, name]}
        for name in ("../a.staged", ".0.a/b.staged", ".0.a.staged\n", "0.json", ".0.." + "staged")
    ),
    {"contents": [b"SECRET", None], "sizes": [6, 1], "staged_names": [None, ".1.b.staged"],
     "sha256s": [None, None]},
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_what_no_correct_caller_sends_is_refused_without_showing_it(
    writer: Connection, path: str, bad: dict[str, Any]
) -> None:
    good = commit(path, "a", "b", head=1, head_txn="c1")
    arguments = good.arguments | {f"p_{name}": value for name, value in bad.items()}
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        Call("commit", arguments)(writer)
    shown = f"{refused.value} {refused.value.diag.message_detail} {refused.value.diag.context}"
    for secret in ("SECRET", content_of("a").decode(), path, "longer than said"):
        assert secret not in shown
    assert statuses(good(writer)) == "committed", "the call without the fault passes"


# The last one: it ends all connections.
def test_a_restored_database_is_recognised(server: Server, path: str, tmp_path: Path) -> None:
    dump = server.dump(tmp_path / "dump.sql")
    with server.writer() as before:
        (known,) = attach(path)(before)
        assert statuses(commit(path, "a", head=1, head_txn="c1")(before)) == "committed"
    server.restore(dump)
    with server.writer() as after:
        assert attach(path)(after) == [known], "the same coordinator, epoch and sequence"
        assert statuses(commit(path, "b", head=2, head_txn="a")(after)) == "ahead"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            after.execute("TABLE interlock.commits")
