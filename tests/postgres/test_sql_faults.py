"""The coordinator's database after crashes, cut connections and a restored backup.

Each test makes its own connections.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg
import pytest

from tests.postgres.coordinator_sql import (
    Call,
    attach,
    commit,
    listed,
    new_table,
    outcome,
    statuses,
    tail,
    winners,
)
from tests.postgres.postgres import Connection, Server


def test_a_crash_keeps_what_was_committed_and_nothing_else(postgres: Server) -> None:
    done, lost = uuid.uuid4(), uuid.uuid4()
    connection = postgres.writer()
    path = new_table(connection)
    commit(path, "a", head=1, head_txn="c1", attempt=done)(connection)
    connection.commit()
    call = commit(path, "b", head=2, head_txn="a", attempt=lost)
    assert statuses(call(connection)) == "committed"
    postgres.restart(mode="immediate")
    with pytest.raises(psycopg.OperationalError):
        connection.commit()
    with postgres.writer() as connection:
        assert listed(outcome(path, done)(connection)) == [(2, "a", None)]
        assert statuses(outcome(path, lost)(connection)) == "abandoned"
        assert listed(tail(path)(connection)) == winners(2, "a")


@pytest.mark.parametrize("ended", ["before", "after"])
def test_a_cut_connection_leaves_an_outcome_to_ask_for(postgres: Server, ended: str) -> None:
    attempt = uuid.uuid4()
    with postgres.writer() as connection:
        path = new_table(connection)
    call = commit(path, "a", head=1, head_txn="c1", attempt=attempt)
    _cut(postgres, postgres.writer(application="cut"), call, commit=ended == "after")
    with postgres.writer() as connection:
        found = statuses(outcome(path, attempt)(connection))
        assert found == {"before": "abandoned", "after": "committed"}[ended]
        connection.commit()
        # The call arrives late, or once more.
        assert statuses(call(connection)) == {"before": "abandoned", "after": "taken"}[ended]
        assert listed(tail(path)(connection)) == winners(2, *["a"] * (ended == "after"))


def _cut(postgres: Server, connection: Connection, call: Call, *, commit: bool) -> None:
    call(connection)
    if commit:
        connection.commit()
    assert postgres.terminate("cut") == 1
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")


def test_a_restored_database_is_recognised(postgres: Server, tmp_path: Path) -> None:
    with postgres.writer() as connection:
        path = new_table(connection)
    dump = postgres.dump(tmp_path / "dump.sql")
    with postgres.writer() as connection:
        (known,) = attach(path)(connection)
        assert statuses(commit(path, "a", head=1, head_txn="c1")(connection)) == "committed"
    postgres.restore(dump)
    with postgres.writer() as connection:
        assert attach(path)(connection) == [known], "the same coordinator, epoch and sequence"
        assert statuses(commit(path, "b", head=2, head_txn="a")(connection)) == "ahead"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("TABLE interlock.commits")
