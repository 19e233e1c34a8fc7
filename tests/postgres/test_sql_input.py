"""Hostile and wrong input of the coordinator's functions: it does nothing and is not shown."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from tests.postgres.coordinator_sql import (
    RELATIONS,
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
    revoke,
    status,
    statuses,
    tail,
    winners,
)
from tests.postgres.postgres import Connection, Server

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


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_names(postgres: Server, writer: Connection, hostile: str) -> None:
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


def test_objects_of_a_writers_own_are_not_mistaken_for_ours(postgres: Server, path: str) -> None:
    """A writer's temporary tables, functions, operators and types have our names and come first."""
    with postgres.superuser() as superuser:
        superuser.execute("CREATE SCHEMA IF NOT EXISTS theirs AUTHORIZATION writer")
    with postgres.writer() as connection:
        for place in ("pg_temp", "theirs"):
            for table in RELATIONS:
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
