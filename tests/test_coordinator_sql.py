"""The coordinator's SQL functions, called one after the other: every status of each."""

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
    adopt,
    attach,
    commit,
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
from tests.postgres import VERSIONS, Connection, Server, start

HASH = b"#" * 32


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


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[Connection]:
    with server.admin() as connection:
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


def state(rows: list[Any]) -> tuple[int, int, int, int]:
    """Epoch, sequence, head and published of a reply."""
    (found,) = {(row.epoch, row.sequence, row.head, row.published) for row in rows}
    return found


def test_attach_registers_once_and_changes_nothing_after(writer: Connection) -> None:
    path = f"file:/{uuid.uuid4()}"
    (first,) = attach(path, head=7)(writer)
    assert first[1:] == (TABLE, 0, 0, 7, None, 7)
    assert attach(path, head=9, table="other")(writer) == [first]
    commit(path, "a", head=7)(writer)
    (later,) = attach(path, head=-1)(writer)
    assert later[1:] == (TABLE, 0, 0, 8, "a", 7)
    assert later.coordinator_id == first.coordinator_id


def test_commits_count_on_from_the_head(writer: Connection, path: str) -> None:
    rows = commit(path, "a", "b", "c", head=1, head_txn="c1")(writer)
    assert statuses(rows) == "committed"
    assert listed(rows) == [(2, "a", None), (3, "b", None), (4, "c", None)]
    assert state(rows) == (0, 0, 4, 1)


def test_losers_get_exactly_the_winners(writer: Connection, path: str) -> None:
    rows = commit(path, "late", head=0, head_txn="c0")(writer)
    assert statuses(rows) == "taken"
    assert listed(rows) == winners(1, "c1")
    commit(path, "a", "b", head=1, head_txn="c1")(writer)
    rows = commit(path, "late", head=0)(writer)
    assert listed(rows) == winners(1, "c1", "a", "b")
    assert state(rows) == (0, 0, 3, 1)


def test_staged_contents_travel_by_name(writer: Connection, path: str) -> None:
    call = commit(path, "a", head=1, head_txn="c1", contents=[None], sizes=[5 << 30],
                  staged_names=[".00000000000000000002.a.staged"], sha256s=[HASH])  # fmt: skip
    assert statuses(call(writer)) == "committed"
    (row,) = commit(path, "b", head=1)(writer)
    assert row[6:] == (2, "a", None, ".00000000000000000002.a.staged", 5 << 30, HASH)


def test_the_next_writer_publishes_the_tail_first(writer: Connection, path: str) -> None:
    rows = commit(path, "a", head=1)(writer)
    assert statuses(rows) == "tail"
    assert listed(rows) == winners(1, "c1")
    assert statuses(published(path, 1, "c1")(writer)) == "published"
    assert statuses(commit(path, "a", head=1)(writer)) == "committed"


def test_a_published_commit_is_replayed(writer: Connection, path: str) -> None:
    rows = commit(path, "new", "c0", head=0)(writer)
    assert statuses(rows) == "replayed"
    assert listed(rows) == [(0, "c0", None)]
    assert state(rows) == (0, 0, 1, 0)
    # Ratified only: it may be revoked yet, so its own commit is a winner to publish.
    assert listed(commit(path, "c1", head=0)(writer)) == winners(1, "c1")
    # Found in the log by the caller, it is published.
    rows = commit(path, "c1", head=1, head_txn="c1")(writer)
    assert (statuses(rows), state(rows)) == ("replayed", (0, 0, 1, 1))


def test_a_replay_is_known_in_a_later_epoch(
    writer: Connection, admin: Connection, path: str
) -> None:
    repair(path, head=1)(admin)
    rows = commit(path, "c1", head=0)(writer)
    assert (statuses(rows), listed(rows)) == ("replayed", [(1, "c1", None)])


@pytest.mark.parametrize("stale", [{"epoch": 1}, {"sequence": 1}, {"epoch": None}])
def test_another_stamp_is_refused(writer: Connection, path: str, stale: dict[str, Any]) -> None:
    rows = commit(path, "a", head=1, head_txn="c1", **stale)(writer)
    assert (statuses(rows), state(rows)) == ("epoch", (0, 0, 1, 0))


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


def test_another_table_id_is_refused(writer: Connection, path: str) -> None:
    rows = commit(path, "a", head=1, head_txn="c1", table_id="other")(writer)
    assert (statuses(rows), state(rows)) == ("table", (0, 0, 1, 1))
    call = commit(path, "a", head=1, new_table_id="other")
    assert statuses(call(writer)) == "committed"
    assert statuses(commit(path, "b", head=2, head_txn="a")(writer)) == "table"


def test_a_log_ahead_of_the_database_is_not_committed_to(writer: Connection, path: str) -> None:
    rows = commit(path, "a", head=2, head_txn="x")(writer)
    assert (statuses(rows), state(rows)) == ("ahead", (0, 0, 1, 0))


@pytest.mark.parametrize("found", ["stock", ""])
def test_a_foreign_commit_revokes_and_the_attempt_is_judged_again(
    writer: Connection, path: str, found: str
) -> None:
    rows = commit(path, "a", head=1, head_txn=found)(writer)
    assert (statuses(rows), listed(rows)) == ("foreign", winners(1, "c1"))
    rows = revoke(path, 1, "c1")(writer)
    assert (statuses(rows), state(rows)) == ("revoked", (0, 1, 1, 1))
    assert statuses(revoke(path, 1, "c1")(writer)) == "unchanged"
    assert statuses(commit(path, "a", head=1)(writer)) == "epoch"
    # The foreign commit may have changed the table's id.
    call = commit(path, "c1", head=1, sequence=1, head_txn=found, table_id="x", new_table_id="x")
    assert listed(call(writer)) == [(2, "c1", None)]
    assert attach(path)(writer)[0].table_id == "x"


def test_revoking_takes_every_version_after_it(writer: Connection, path: str) -> None:
    commit(path, "a", head=1, head_txn="c1")(writer)
    attempt = uuid.uuid4()
    call = commit(path, "b", head=2, head_txn="a", attempt=attempt)
    assert statuses(call(writer)) == "committed"
    # Two ratified versions wait: b, and c after it.
    rows = revoke(path, 3, "a")(writer)
    assert statuses(rows) == "unchanged"
    rows = revoke(path, 3, "b")(writer)
    assert (statuses(rows), state(rows)) == ("revoked", (0, 1, 3, 3))
    assert listed(tail(path)(writer)) == []
    assert statuses(outcome(path, attempt)(writer)) == "abandoned"
    assert attach(path)(writer)[0].head_txn is None


def test_two_waiting_versions_are_revoked_in_one_call(writer: Connection, path: str) -> None:
    published(path, 1, "c1")(writer)
    commit(path, "a", "b", "c", head=1)(writer)
    rows = revoke(path, 3, "b")(writer)
    assert (statuses(rows), state(rows)) == ("revoked", (0, 1, 3, 3))
    rows = commit(path, "d", head=1, sequence=1)(writer)
    assert (statuses(rows), listed(rows)) == ("taken", winners(2, "a"))


def test_a_published_commit_is_not_revoked(writer: Connection, path: str) -> None:
    assert statuses(commit(path, "a", head=0, head_txn="stock")(writer)) == "foreign"
    for call in (revoke(path, 0, "c0"), revoke(path, 1, "c1", epoch=1), revoke(path, 1, "c0")):
        rows = call(writer)
        assert (statuses(rows), state(rows)) == ("unchanged", (0, 0, 1, 0))


def test_the_mark_moves_forward_only(writer: Connection, path: str) -> None:
    commit(path, "a", head=1, head_txn="c1")(writer)
    wrong = (published(path, 2, "c1"), published(path, 2, "a", epoch=1), published(path, 3, "a"))
    for call in wrong:
        rows = call(writer)
        assert (statuses(rows), state(rows)) == ("unchanged", (0, 0, 2, 1))
    assert state(published(path, 2, "a")(writer)) == (0, 0, 2, 2)
    rows = published(path, 0, "c0")(writer)
    assert (statuses(rows), state(rows)) == ("published", (0, 0, 2, 2))


def test_outcome_finds_a_lost_reply(writer: Connection, path: str) -> None:
    attempt = uuid.uuid4()
    commit(path, "a", "b", head=1, head_txn="c1", attempt=attempt)(writer)
    rows = outcome(path, attempt)(writer)
    assert (statuses(rows), listed(rows)) == ("committed", [(2, "a", None), (3, "b", None)])


def test_outcome_is_final_where_there_was_none(writer: Connection, path: str) -> None:
    attempt = uuid.uuid4()
    for _ in range(2):
        (row,) = outcome(path, attempt)(writer)
        assert (row.status, row.version) == ("abandoned", None)
    call = commit(path, "a", head=1, head_txn="c1", attempt=attempt)
    assert statuses(call(writer)) == "abandoned"
    assert statuses(commit(path, "a", head=1)(writer)) == "committed"


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


def test_tail_lists_what_waits(writer: Connection, path: str) -> None:
    assert listed(tail(path)(writer)) == winners(1, "c1")
    published(path, 1, "c1")(writer)
    (row,) = tail(path)(writer)
    assert (row.status, row.version, row.head) == ("tail", None, 1)


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
        "  now() - CASE WHEN v < 3000 THEN interval '25 hours' ELSE interval '23 hours' END"
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
    for first, contents in ((3000, 4000), (3000, 6000), (3000, 8000), (3000, 10000)):
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


def test_several_tables_share_a_transaction(server: Server, path: str) -> None:
    other = f"{path}/other"
    with server.writer() as connection:
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
def test_snapshots_older_than_the_lock_are_refused(server: Server, path: str, level: str) -> None:
    with server.writer() as connection:
        connection.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="READ COMMITTED"):
            commit(path, "a", head=1, head_txn="c1")(connection)
