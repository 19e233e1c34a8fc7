"""What the coordinator's roles may do."""

from __future__ import annotations

import psycopg
import pytest

from tests.postgres.coordinator_sql import (
    RELATIONS,
    attach,
    commit,
    listed,
    repair,
    status,
    statuses,
    tail,
    winners,
)
from tests.postgres.postgres import SUPERUSER, Connection, Server, migrations

WRITERS = (
    {"attach", "recreated", "commit", "outcome", "published"}
    | {"tail", "revoke", "adopt", "status"}
)  # fmt: skip


@pytest.mark.parametrize("table", RELATIONS)
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
    postgres: Server, writer: Connection, path: str
) -> None:
    found = writer.execute(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'interlock'::regnamespace"
        " AND has_function_privilege(oid, 'EXECUTE')"
    )
    assert {name for (name,) in found} == WRITERS
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        repair(path, head=0)(writer)
    assert listed(tail(path)(writer)) == winners(1, "c1")
    with postgres.admin() as admin:
        assert repair(path, head=0)(admin)[0].epoch == 1


def test_the_public_has_nothing(postgres: Server, path: str) -> None:
    with postgres.superuser() as connection:
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


def test_every_function_of_a_writer_is_closed(postgres: Server) -> None:
    """Each runs as its owner, resolves names in our schemas only, and builds no SQL."""
    with postgres.superuser() as connection:
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


def test_migrations_by_a_superuser_over_roles_that_exist(postgres: Server) -> None:
    with postgres.superuser() as connection:
        connection.execute("CREATE DATABASE second")
    with postgres.connect(SUPERUSER, database="second") as second:
        second.execute("CREATE SCHEMA interlock")  # the migration runner's, for its history
        for migration in migrations():
            second.execute(migration)
        assert second.execute("SELECT current_user").fetchone() == (SUPERUSER,)
        second.commit()
    with postgres.connect("writer", database="second") as second:
        attach("a")(second)
        assert statuses(commit("a", "t", head=-1)(second)) == "committed"
        (second_id,) = {row.coordinator_id for row in status()(second)}
    with postgres.writer() as first:
        attach("a")(first)
        assert second_id not in {row.coordinator_id for row in status()(first)}
    with postgres.superuser() as connection:
        connection.execute("DROP DATABASE second")
