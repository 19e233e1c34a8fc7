"""What the coordinator knows of tables: attached, created anew, repaired, kept and forgotten."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from tests.postgres.coordinator_sql import (
    TABLE,
    adopt,
    attach,
    commit,
    listed,
    outcome,
    published,
    recreated,
    repair,
    revoke,
    state,
    status,
    statuses,
    tail,
    winners,
)
from tests.postgres.postgres import Connection, Server


def test_attach_registers_once_and_changes_nothing_after(writer: Connection) -> None:
    path = f"file:/{uuid.uuid4()}"
    (first,) = attach(path, head=7)(writer)
    assert first[1:] == (TABLE, 0, 0, 7, None, 7)
    assert attach(path, head=9, table="other")(writer) == [first]
    commit(path, "a", head=7)(writer)
    (later,) = attach(path, head=-1)(writer)
    assert later[1:] == (TABLE, 0, 0, 8, "a", 7)
    assert later.id == first.id


def test_a_path_that_is_not_attached(writer: Connection) -> None:
    path = f"file:/{uuid.uuid4()}"
    for call in (commit(path, "a", head=-1), tail(path)):
        (row,) = call(writer)
        assert (row.status, row.epoch, row.head) == ("epoch", None, None)
        assert row.coordinator_id is not None
    for call in (published(path, 0, "a"), revoke(path, 0, "a"), adopt(path, from_=-1, to=0)):
        assert statuses(call(writer)) == "unchanged"
    assert recreated(path, epoch=0, head=-1, table="b", log_head=-1)(writer) == []
    attempt = uuid.uuid4()
    assert statuses(outcome(path, attempt)(writer)) == "abandoned"
    attach(path)(writer)
    assert statuses(commit(path, "a", head=-1, attempt=attempt)(writer)) == "abandoned"


def test_foreign_commits_are_adopted_by_compare_and_set(writer: Connection, path: str) -> None:
    assert statuses(adopt(path, from_=1, to=3)(writer)) == "unchanged", "c1 is not compared"
    published(path, 1, "c1")(writer)
    wrong = (adopt(path, from_=0, to=3), adopt(path, from_=1, to=1))
    for call in (*wrong, adopt(path, from_=1, to=3, epoch=1)):
        rows = call(writer)
        assert (statuses(rows), state(rows)) == ("unchanged", (0, 0, 1, 1))
    rows = adopt(path, from_=1, to=3)(writer)
    assert (statuses(rows), state(rows)) == ("adopted", (0, 0, 3, 3))
    rows = commit(path, "a", head=1)(writer)
    assert (statuses(rows), listed(rows)) == ("taken", [])
    assert listed(commit(path, "a", head=3, head_txn="stock")(writer)) == [(4, "a", None)]
    rows = commit(path, "b", head=1)(writer)
    assert listed(rows) == winners(4, "a"), "the gap before it is foreign"


def test_a_table_created_anew_starts_anew(writer: Connection, path: str) -> None:
    commit(path, "a", head=1, head_txn="c1")(writer)
    (row,) = recreated(path, epoch=0, head=2, table="new", log_head=-1)(writer)
    assert row[1:] == ("new", 1, 0, -1, None, -1)
    assert statuses(commit(path, "b", head=2)(writer)) == "epoch"
    call = commit(path, "c0", head=-1, epoch=1, table_id="new", new_table_id="new")
    assert statuses(call(writer)) == "committed", "the old table's transactions are gone"


@pytest.mark.parametrize(
    "unproven",
    [
        {"epoch": 1, "head": 1, "table": "new", "log_head": -1},
        {"epoch": 0, "head": 0, "table": "new", "log_head": -1},
        {"epoch": 0, "head": 1, "table": TABLE, "log_head": 0},
    ],
)
def test_a_table_is_not_taken_for_new_without_proof(
    writer: Connection, path: str, unproven: dict[str, Any]
) -> None:
    before = attach(path)(writer)
    assert recreated(path, **unproven)(writer) == before
    assert listed(tail(path)(writer)) == winners(1, "c1")


def test_repair_believes_the_log(writer: Connection, admin: Connection, path: str) -> None:
    (row,) = repair(path, head=0)(admin)
    assert row[1:] == (TABLE, 1, 0, 0, None, 0)
    # Version 0 need not be c0's any more.
    call = commit(path, "c1", head=0, head_txn="restored", epoch=1)
    assert listed(call(writer)) == [(1, "c1", None)]
    (row,) = repair(path, head=9, table="other")(admin)
    assert row[1:] == ("other", 2, 0, 9, None, 9)
    (row,) = repair(f"{path}/unknown", head=4)(admin)
    assert row[1:] == (TABLE, 1, 0, 4, None, 4)


def test_status_shows_each_table(writer: Connection, path: str) -> None:
    (row,) = [row for row in status()(writer) if row.log_path == path]
    assert (row.table_id, row.epoch, row.sequence, row.head, row.published) == (TABLE, 0, 0, 1, 0)


def test_old_commits_are_forgotten(writer: Connection, admin: Connection) -> None:
    path = f"file:/{uuid.uuid4()}"
    attach(path)(writer)
    admin.execute(
        "INSERT INTO interlock.commits"
        " (key, version, txn_id, attempt, epoch, sequence, content, size, created_at)"
        " SELECT key, v, 'old' || v, gen_random_uuid(), 0, 0, 'x', 1,"
        "  now() - CASE WHEN v < 4120 THEN interval '25 hours' ELSE interval '23 hours' END"
        " FROM interlock.tables, generate_series(0, 13998) v WHERE log_path = %s",
        [path],
    )
    admin.execute(
        "UPDATE interlock.tables SET head = 13998, published = 13998 WHERE log_path = %s", [path]
    )
    admin.execute(
        "INSERT INTO interlock.abandoned VALUES (gen_random_uuid(), now() - interval '31 d')"
    )

    def kept() -> tuple[int, int, int]:
        """The first version, the first with contents, those with contents."""
        found = admin.execute(
            "SELECT min(version), min(version) FILTER (WHERE content IS NOT NULL), count(content)"
            " FROM interlock.commits JOIN interlock.tables USING (key) WHERE log_path = %s",
            [path],
        ).fetchone()
        assert found is not None
        return found  # type: ignore[no-any-return]

    def next_commit() -> None:
        head = attach(path)(writer)[0].head
        call = commit(path, f"n{head}", head=head)
        assert statuses(call(writer)) == "committed"
        published(path, head + 1, f"n{head}")(writer)

    # From 13998 to 13999 nothing, from 13999 to 14000 up to 2,000 rows of each kind.
    next_commit()
    assert kept() == (0, 0, 14000)
    next_commit()
    assert kept() == (2000, 2000, 12001)
    for first, contents in ((4000, 4000), (4101, 6000), (4120, 8000), (4120, 10000)):
        admin.execute("UPDATE interlock.tables SET head = head + 49, published = head + 49"
                      " WHERE log_path = %s", [path])  # fmt: skip
        next_commit()
        assert kept()[:2] == (first, contents)
    old = "SELECT FROM interlock.abandoned WHERE created_at < now() - interval '30 days'"
    assert admin.execute(old).fetchall() == []


def test_recent_contents_are_kept(writer: Connection) -> None:
    path = f"file:/{uuid.uuid4()}"
    attach(path)(writer)
    txns = [f"t{i}" for i in range(300)]
    commit(path, *txns, head=-1)(writer)
    assert listed(tail(path)(writer)) == winners(0, *txns), "unpublished contents are kept"
    commit(path, *(f"u{i}" for i in range(50)), head=299, head_txn="t299")(writer)
    rows = listed(commit(path, "late", head=0)(writer))
    assert [v for v, _, content in rows if content is None] == list(range(1, 200))
    assert rows[199:] == winners(200, *txns[200:], *(f"u{i}" for i in range(50)))


def test_several_tables_share_a_transaction(postgres: Server, path: str) -> None:
    other = f"{path}/other"
    with postgres.writer() as connection:
        attach(other)(connection)
        commit(path, "a", head=1, head_txn="c1")(connection)
        assert statuses(commit(other, "a", head=-1)(connection)) == "committed"
        connection.rollback()
        assert listed(tail(path)(connection)) == winners(1, "c1")
        attach(other)(connection)
        commit(path, "a", head=1, head_txn="c1")(connection)
        commit(path, "b", head=2, head_txn="a")(connection)
        commit(other, "a", head=-1)(connection)
        connection.commit()
        assert listed(tail(path)(connection)) == winners(3, "b")
        assert listed(tail(other)(connection)) == winners(0, "a")


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_snapshots_older_than_the_lock_are_refused(postgres: Server, path: str, level: str) -> None:
    with postgres.writer() as connection:
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="READ COMMITTED"):
            commit(path, "a", head=1, head_txn="c1")(connection)
