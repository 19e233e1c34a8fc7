"""What commit() answers, and what becomes of commits: every status."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.postgres.coordinator_sql import (
    TABLE,
    attach,
    commit,
    listed,
    outcome,
    published,
    recreated,
    repair,
    revoke,
    state,
    statuses,
    tail,
    winners,
)
from tests.postgres.postgres import Connection, Server

HASH = b"#" * 32


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


def test_contents_that_are_in_the_log_are_sent_up_to_a_size(writer: Connection, path: str) -> None:
    large = b"x" * (2 << 20)
    txns = [f"t{i}" for i in range(9)]
    commit(path, *txns, head=1, head_txn="c1", contents=[large] * 9, sizes=[len(large)] * 9,
           sha256s=[HASH] * 9)(writer)  # fmt: skip
    late = commit(path, "late", head=1)
    assert [row.content for row in late(writer)] == [large] * 9, "nobody else has them"
    published(path, 10, "t8")(writer)
    rows = late(writer)
    assert [row.txn_id for row in rows] == txns
    assert [row.content for row in rows] == [*[large] * 8, None]
    commit(path, "a", head=10)(writer)
    assert [row.content is None for row in late(writer)] == [*[False] * 8, True, False]


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
    # Own commits only, whoever came between them.
    commit(path, "a", head=1)(writer)
    rows = commit(path, "c0", "a", head=2, head_txn="a")(writer)
    assert listed(rows) == [(0, "c0", None), (2, "a", None)]


def test_a_replay_is_known_in_a_later_epoch_if_it_was_published(
    writer: Connection, admin: Connection, path: str
) -> None:
    published(path, 1, "c1")(writer)
    commit(path, "c2", head=1, head_txn="c1")(writer)
    repair(path, head=2)(admin)
    rows = commit(path, "c1", head=0)(writer)
    assert (statuses(rows), listed(rows)) == ("replayed", [(1, "c1", None)])
    assert statuses(commit(path, "c2", head=1)(writer)) == "epoch"


@pytest.mark.parametrize("stale", [{"epoch": 1}, {"sequence": 1}, {"epoch": None}])
def test_another_stamp_is_refused(writer: Connection, path: str, stale: dict[str, Any]) -> None:
    rows = commit(path, "a", head=1, head_txn="c1", **stale)(writer)
    assert (statuses(rows), state(rows)) == ("epoch", (0, 0, 1, 0))


@pytest.mark.parametrize(
    ("own", "bound"), [("0", "1min"), ("2min", "1min"), ("1min", "1min"), ("5s", "5s")]
)
def test_a_session_that_holds_a_table_may_idle_for_a_minute(
    postgres: Server, writer: Connection, path: str, own: str, bound: str
) -> None:
    shown = "SHOW idle_in_transaction_session_timeout"
    with postgres.writer() as holder:
        holder.execute(f"SET idle_in_transaction_session_timeout = '{own}'")
        holder.commit()
        attach(path)(holder)
        assert holder.execute(shown).fetchall() == [(bound,)]
        holder.commit()
        assert holder.execute(shown).fetchall() == [(own,)]
        holder.commit()
    assert statuses(commit(path, "a", head=1, head_txn="c1")(writer)) == "committed"


def test_another_table_id_is_refused(writer: Connection, path: str) -> None:
    rows = commit(path, "a", head=1, head_txn="c1", table_id="other")(writer)
    assert (statuses(rows), state(rows)) == ("table", (0, 0, 1, 1))
    call = commit(path, "a", head=1, new_table_id="other")
    assert statuses(call(writer)) == "committed"
    assert statuses(commit(path, "b", head=2, head_txn="a")(writer)) == "table"


def test_who_has_read_the_table_before_its_tail_has_lost(writer: Connection, path: str) -> None:
    replace = commit(path, "r", head=1, head_txn="c1", new_table_id="new")
    assert statuses(replace(writer)) == "committed"
    late = commit(path, "a", head=1, head_txn="c1")
    rows = late(writer)
    assert (statuses(rows), listed(rows)) == ("taken", winners(2, "r"))
    seen = attach(path)(writer)
    assert recreated(path, epoch=0, head=2, table=TABLE, log_head=1)(writer) == seen
    assert statuses(commit(path, "a", head=1, table_id="other")(writer)) == "table"
    for head, found in ((2, "foreign"), (3, "ahead")):
        call = commit(path, "a", head=head, head_txn="stock")
        assert statuses(call(writer)) == found
    published(path, 2, "r")(writer)
    assert statuses(late(writer)) == "table"


def test_a_table_that_was_created_and_waits_may_have_been_dropped(writer: Connection) -> None:
    path = f"file:/{uuid.uuid4()}"
    attach(path, table="")(writer)
    calls = [commit(path, txn, head=-1, table_id="", new_table_id=txn) for txn in "ab"]
    assert [statuses(call(writer)) for call in calls] == ["committed", "table"]
    (row,) = recreated(path, epoch=0, head=0, table="", log_head=-1)(writer)
    assert row[1:] == ("", 1, 0, -1, None, -1)


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


def test_a_revoked_attempt_is_abandoned(writer: Connection, path: str) -> None:
    commit(path, "a", head=1, head_txn="c1")(writer)
    attempt = uuid.uuid4()
    call = commit(path, "b", head=2, head_txn="a", attempt=attempt)
    assert statuses(call(writer)) == "committed"
    assert statuses(revoke(path, 3, "a")(writer)) == "unchanged"
    rows = revoke(path, 3, "b")(writer)
    assert (statuses(rows), state(rows)) == ("revoked", (0, 1, 3, 3))
    assert listed(tail(path)(writer)) == []
    assert statuses(outcome(path, attempt)(writer)) == "abandoned"
    assert attach(path)(writer)[0].head_txn is None


def test_two_waiting_versions_are_revoked_in_one_call(writer: Connection, path: str) -> None:
    published(path, 1, "c1")(writer)
    attempt = uuid.uuid4()
    commit(path, "a", "b", "c", head=1, attempt=attempt)(writer)
    rows = revoke(path, 3, "b")(writer)
    assert (statuses(rows), state(rows)) == ("revoked", (0, 1, 3, 3))
    rows = commit(path, "d", head=1, sequence=1)(writer)
    assert (statuses(rows), listed(rows)) == ("taken", winners(2, "a"))
    assert listed(outcome(path, attempt)(writer)) == [(2, "a", None)], "the others are revoked"
    rows = commit(path, "c", "b", head=3, sequence=1)(writer)
    assert listed(rows) == [(4, "c", None), (5, "b", None)]


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


def test_tail_lists_what_waits(writer: Connection, path: str) -> None:
    assert listed(tail(path)(writer)) == winners(1, "c1")
    published(path, 1, "c1")(writer)
    (row,) = tail(path)(writer)
    assert (row.status, row.version, row.head) == ("tail", None, 1)
