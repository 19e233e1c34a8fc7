"""PostgresStore against real servers: commits, races, lost replies, foreign commits, repairs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.kit.commit_phases import observed
from tests.kit.eventually import eventually
from tests.kit.tcp_proxy import Proxy
from tests.postgres import postgres
from tests.postgres.coordinator_jvm import (
    Outcome,
    Refused,
    Store,
    admin,
    coordinator_jvm,
    log_file,
    postgres_store,
    stamp,
    transactions,
    write_foreign,
)

COMMIT = b"interlock.commit"
TAKEN = Outcome("Taken")
UNKNOWN = Outcome("Unknown")
OTHER = "00000000-0000-4000-8000-000000000002"


def committed(*versions: int) -> list[Outcome]:
    return [Outcome("Committed", version) for version in versions]


def taken(*winners: str) -> Outcome:
    return Outcome("Taken", None, winners)


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with coordinator_jvm() as found:
        yield found


@pytest.fixture(scope="module", params=[max(postgres.VERSIONS)])
def server(request: pytest.FixtureRequest) -> Iterator[postgres.Server]:
    # A folder of its own: pytest closes its folders to the server's user.
    with TemporaryDirectory() as data, postgres.start(request.param, Path(data) / "18") as found:
        found.migrate()
        yield found


@pytest.fixture
def proxy(server: postgres.Server) -> Iterator[Proxy]:
    found = Proxy(server.port)
    yield found
    found.close()


Open = Callable[..., Store]


@pytest.fixture
def open_store(jvm: Any, server: postgres.Server, tmp_path: Path) -> Iterator[Open]:
    """Make stores of the login `writer`; settings by name, `port` for a proxy."""
    stores: list[Store] = []
    password = tmp_path / "password"
    password.write_text(postgres.PASSWORDS[postgres.WRITER], encoding="utf-8")
    password.chmod(0o600)

    def make(port: int = server.port, *, parameters: str = "", **settings: str) -> Store:
        url = f"jdbc:postgresql://127.0.0.1:{port}/{postgres.DATABASE}{parameters}"
        login = {"url": url, "user": postgres.WRITER, "passwordFile": str(password)}
        stores.append(postgres_store(jvm, {**login, "unknownDeadline": "20s", **settings}))
        return stores[-1]

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "table" / "_delta_log"
    folder.mkdir(parents=True)
    return folder


def row(server: postgres.Server, log: Path) -> tuple[int, int, int, int]:
    """The table's epoch, sequence, head and published."""
    with server.superuser() as connection:
        found = connection.execute(
            "SELECT epoch, sequence, head, published FROM interlock.tables WHERE log_path = %s",
            [f"file:{log}"],
        ).fetchone()
    assert found is not None
    return found[0], found[1], found[2], found[3]


def raise_at(phase: str) -> Callable[[str, int], None]:
    """As if the process had died there."""

    def at(reached: str, version: int) -> None:
        if reached == phase:
            raise RuntimeError(f"dead at {phase}")

    return at


# Commits and races


def test_batches_get_consecutive_versions_and_are_stamped(open_store: Open, log: Path) -> None:
    store = open_store()
    assert store.commit(log, 0, "a") == committed(0)
    assert store.commit(log, 1, "b", "c") == committed(1, 2)
    assert transactions(log) == ["a", "b", "c"]
    assert stamp(log, 0) == stamp(log, 2)
    assert sorted(file.name for file in log.iterdir()) == [f"{v:020}.json" for v in range(3)]


def test_one_call_for_each_commit(open_store: Open, server: postgres.Server, log: Path) -> None:
    with server.superuser() as connection:
        connection.execute(f"ALTER ROLE {postgres.WRITER} SET track_functions = 'pl'")
        connection.execute("ALTER ROLE writer SET stats_fetch_consistency = 'none'")
        connection.execute("GRANT SET ON PARAMETER track_functions TO writer")
        connection.execute("SELECT pg_stat_reset()")
    store = open_store(poolSize="1")
    for version in range(5):
        store.commit(log, version, f"t{version}")
    store.commit(log, 5, "t5", "t6", "t7")
    store.close()
    with server.superuser() as connection:
        wait_for(connection, "SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'writer'")
        calls = connection.execute(
            "SELECT funcname, calls FROM pg_stat_user_functions WHERE funcname = ANY(%s)",
            [["attach", "commit", "outcome", "published", "tail", "revoke", "adopt", "recreated"]],
        )
        assert dict(calls.fetchall()) == {"attach": 1, "commit": 6, "published": 1}  # as it closes


def wait_for(connection: postgres.Connection, query: str) -> None:
    def is_true() -> bool:
        found = connection.execute(query.encode()).fetchone()
        return found is not None and bool(found[0])

    eventually(is_true, 20, query)


def test_a_lost_race_brings_the_winners(open_store: Open, log: Path) -> None:
    first, second = open_store(), open_store()
    first.commit(log, 0, "a")
    second.commit(log, 0, "x")
    first.commit(log, 1, "b", "c")
    assert second.commit(log, 1, "y", "z") == [taken("b", "c"), TAKEN]
    assert second.commit(log, 3, "y", "z") == committed(3, 4)
    assert transactions(log) == ["a", "b", "c", "y", "z"]


def test_two_processes_lose_and_double_nothing(open_store: Open, log: Path) -> None:
    stores = [open_store(), open_store()]
    stores[0].commit(log, 0, "start")
    barrier = threading.Barrier(2)

    def write(number: int) -> None:
        barrier.wait()
        version = 1
        for i in range(25):
            while (made := stores[number].commit(log, version, f"{number}-{i}")[0]).kind == "Taken":
                version += max(len(made.winners), 1)
            assert made.version == version

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    found = transactions(log)
    assert sorted(found[1:]) == sorted(f"{n}-{i}" for n in range(2) for i in range(25))


def test_a_replay_is_a_success_at_its_first_version(open_store: Open, log: Path) -> None:
    first, second = open_store(), open_store()
    for version, txn in enumerate("abc"):
        first.commit(log, version, txn)
    assert second.commit(log, 3, "b") == committed(1)
    assert second.commit(log, 2, "c") == committed(2)
    assert transactions(log) == ["a", "b", "c"]


# Lost replies


def test_a_replay_that_cannot_be_looked_up_is_not_called_failed(
    open_store: Open, log: Path
) -> None:
    """The commit's outcome is unknown, so the statement may not delete its files."""
    open_store().commit(log, 0, "a", "b")
    file, kept = log / f"{1:020}.json", log / "kept"
    file.rename(kept)
    file.mkdir()
    (end,) = open_store().commit(log, 1, "b")
    assert end.kind == "Unknown"
    file.rmdir()
    kept.rename(file)
    assert open_store().commit(log, 1, "b") == committed(1)


def test_a_lost_reply_makes_no_duplicate(open_store: Open, proxy: Proxy, log: Path) -> None:
    store = open_store(proxy.port)
    store.commit(log, 0, "a")
    proxy.lose_reply(COMMIT)
    assert store.commit(log, 1, "b", "c") == committed(1, 2)
    assert transactions(log) == ["a", "b", "c"]


def test_a_commit_of_another_process_behind_a_lost_reply(
    open_store: Open, proxy: Proxy, log: Path
) -> None:
    store, other = open_store(proxy.port), open_store()
    store.commit(log, 0, "a")

    def commit_behind() -> None:
        assert other.commit(log, 1, "x") == [taken("b")]
        assert other.commit(log, 2, "x") == committed(2)

    proxy.lose_reply(COMMIT, then=commit_behind)
    assert store.commit(log, 1, "b") == committed(1)
    assert store.commit(log, 3, "c") == committed(3)
    assert transactions(log) == ["a", "b", "x", "c"]


def test_a_lost_request_is_made_again(open_store: Open, proxy: Proxy, log: Path) -> None:
    store = open_store(proxy.port)
    store.commit(log, 0, "a")
    proxy.lose_request(COMMIT)
    assert store.commit(log, 1, "b") == committed(1)
    assert transactions(log) == ["a", "b"]


def test_an_exception_after_the_answer_is_a_lost_reply(
    jvm: Any, open_store: Open, log: Path
) -> None:
    store = open_store()
    store.commit(log, 0, "a")
    with observed(jvm, raise_at("ratified")):
        assert store.commit(log, 1, "b") == committed(1)
    assert transactions(log) == ["a", "b"]


def test_connections_that_are_terminated_in_calls_and_since_calls(
    open_store: Open, server: postgres.Server, tmp_path: Path
) -> None:
    logs = [tmp_path / str(i) / "_delta_log" for i in range(5)]
    for log in logs:
        log.mkdir(parents=True)
    store = open_store(lockTimeout="20s")
    blocked = (
        "SELECT count(*) = 4 FROM pg_stat_activity"
        " WHERE usename = 'writer' AND wait_event_type = 'Lock'"
    )
    with server.superuser() as admin, server.superuser() as holder, ThreadPoolExecutor(4) as pool:
        holder.execute("BEGIN")
        holder.execute("LOCK TABLE interlock.tables")
        outcomes = [pool.submit(store.commit, log, 0, "a") for log in logs[:4]]
        wait_for(admin, blocked)
        assert server.terminate("interlock") == 4
        wait_for(admin, blocked)
        holder.execute("COMMIT")
        assert [outcome.result() for outcome in outcomes] == [committed(0)] * 4
    assert server.terminate("interlock") == 4
    assert store.commit(logs[4], 0, "a") == committed(0)
    assert [transactions(log) for log in logs] == [["a"]] * 5


@pytest.mark.parametrize(
    "question", ["attach", "tail", "published", "adopt", "revoke", "recreated"]
)
def test_a_question_whose_reply_is_lost_is_asked_again(
    jvm: Any, open_store: Open, proxy: Proxy, log: Path, question: str
) -> None:
    store = open_store(proxy.port)
    proxy.lose_reply(f"interlock.{question}(".encode())
    assert store.commit(log, 0, "a") == committed(0)
    write_foreign(log, 1, "foreign-1")
    assert store.commit(log, 2, "b") == committed(2)

    def at(phase: str, version: int) -> None:
        if phase == "publishing" and version == 3:
            write_foreign(log, 3, "foreign-3")

    with observed(jvm, at):
        assert store.commit(log, 3, "c") == [taken("foreign-3")]
    assert store.commit(log, 4, "c") == committed(4)
    assert transactions(log) == ["a", "foreign-1", "b", "foreign-3", "c"]
    for file in log.iterdir():
        file.unlink()
    assert store.commit(log, 0, "new", table_id=OTHER, new_table_id=OTHER) == committed(0)
    assert transactions(log) == ["new"]
    assert proxy.has_cut.is_set()


def test_unknown_until_the_server_is_back(
    open_store: Open, server: postgres.Server, proxy: Proxy, log: Path
) -> None:
    store = open_store(proxy.port, unknownDeadline="300ms")
    store.commit(log, 0, "a")
    proxy.lose_reply(COMMIT, then=lambda: server.stop(mode="immediate"))
    try:
        assert store.commit(log, 1, "b", "c") == [UNKNOWN, UNKNOWN]
        assert transactions(log) == ["a"]
    finally:
        server.run()
    assert open_store().commit(log, 1, "x") == [taken("b", "c")]
    assert transactions(log) == ["a", "b", "c"]
    assert store.commit(log, 3, "b", "c") == committed(1, 2)


def test_a_database_that_is_not_there(open_store: Open, proxy: Proxy, log: Path) -> None:
    store = open_store(proxy.port, statementTimeout="500ms")
    proxy.refuse()
    with pytest.raises(Refused) as refused:
        store.commit(log, 0, "a")
    assert refused.value.condition == "INTERLOCK_COORDINATOR_UNAVAILABLE"
    proxy.accept()
    assert store.commit(log, 0, "a") == committed(0)


def test_an_interrupted_writer_does_not_claim_that_nothing_was_done(
    jvm: Any, open_store: Open, proxy: Proxy, log: Path
) -> None:
    store = open_store(proxy.port, unknownDeadline="1h")
    store.commit(log, 0, "a")
    writers: list[Any] = []

    def interrupt() -> None:
        proxy.refuse()
        writers[0].interrupt()

    def at(phase: str, version: int) -> None:
        if phase == "ratifying":
            writers.append(jvm.java.lang.Thread.currentThread())

    proxy.lose_reply(COMMIT, then=interrupt)
    with observed(jvm, at):
        assert store.commit(log, 1, "b") == [UNKNOWN]
    assert jvm.java.lang.Thread.interrupted()
    proxy.accept()
    assert store.commit(log, 1, "b") == committed(1)


@pytest.mark.parametrize("bad", [1, 2, 3])
def test_a_commit_that_cannot_be_staged_fails_by_itself(
    jvm: Any, open_store: Open, log: Path, bad: int
) -> None:
    store = open_store()
    store.commit(log, 0, "a")

    def at(phase: str, version: int) -> None:
        if phase == "staged" and version == bad:
            raise RuntimeError("no space")

    before = committed(*range(1, bad))
    behind = [TAKEN] * (3 - bad)
    with observed(jvm, at):
        outcomes = store.commit(log, 1, "b", "c", "d", lines=('{"add":"' + "x" * 2_000_000 + '"}',))
    assert outcomes == [*before, Outcome("Failed"), *behind]
    assert transactions(log) == ["a", "b", "c", "d"][:bad]
    assert not list(log.glob(".*.staged"))
    assert store.commit(log, bad, "e") == committed(bad)


def test_a_commit_info_that_is_longer_than_any_readers_limit(open_store: Open, log: Path) -> None:
    store = open_store()
    store.commit(log, 0, "a")
    assert store.commit(log, 1, "b", "c", operation="x" * 21_000_000) == committed(1, 2)
    assert store.commit(log, 3, "d") == committed(3)
    assert transactions(log) == ["a", "b", "c", "d"]


# Between the database and the log


@pytest.mark.parametrize("lines", [('{"add":{}}',), ('{"add":"' + "x" * 2_000_000 + '"}',)])
def test_the_next_writer_publishes_what_a_dead_one_left(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path, lines: tuple[str, ...]
) -> None:
    dead, living = open_store(), open_store()
    dead.commit(log, 0, "a")
    with observed(jvm, raise_at("publishing")):
        assert dead.commit(log, 1, "b", "c", lines=lines) == [UNKNOWN, UNKNOWN]
    assert transactions(log) == ["a"]
    assert row(server, log) == (0, 0, 2, 0)
    assert living.commit(log, 1, "x") == [taken("b", "c") if len(lines[0]) < 100 else TAKEN]
    assert transactions(log) == ["a", "b", "c"]
    assert log_file(log, 1).read_text(encoding="utf-8").splitlines()[1:] == list(lines)
    assert living.commit(log, 3, "x") == committed(3)
    assert not list(log.glob(".*"))


@pytest.mark.parametrize("is_first_foreign", [False, True])
def test_the_next_writer_publishes_a_new_table_id(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path, is_first_foreign: bool
) -> None:
    """CREATE OR REPLACE TABLE gives a table a new id."""
    late, living = open_store(), open_store()
    if is_first_foreign:
        write_foreign(log, 0, "a")
    else:
        living.commit(log, 0, "a")
    with observed(jvm, raise_at("publishing")):
        assert late.commit(log, 1, "new", new_table_id=OTHER) == [UNKNOWN]
    assert living.commit(log, 1, "x") == [taken("new")]
    assert transactions(log) == ["a", "new"]
    assert row(server, log)[::2] == (0, 1)
    assert living.commit(log, 2, "x", table_id=OTHER) == committed(2)
    assert late.commit(log, 3, "b", table_id=OTHER) == committed(3)
    assert transactions(log) == ["a", "new", "x", "b"]


def test_a_staged_file_that_was_changed_is_not_published(
    jvm: Any, open_store: Open, log: Path
) -> None:
    dead, living = open_store(), open_store()
    dead.commit(log, 0, "a")
    with observed(jvm, raise_at("publishing")):
        dead.commit(log, 1, "b", lines=('{"add":"' + "x" * 2_000_000 + '"}',))
    (staged,) = log.glob(".*.staged")
    staged.write_text(staged.read_text(encoding="utf-8").replace("xx", "yy"), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        living.commit(log, 1, "c")
    assert refused.value.condition == "INTERLOCK_COORDINATOR_CONTENT_GONE"
    assert refused.value.parameters["file"] == staged.name
    assert transactions(log) == ["a"]


def test_a_foreign_commit_before_two_ratified_versions(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path
) -> None:
    store = open_store()
    store.commit(log, 0, "a")
    foreign = iter([lambda: write_foreign(log, 1, "foreign")])

    def at(phase: str, version: int) -> None:
        if phase == "publishing":
            next(foreign)()

    with observed(jvm, at):
        assert store.commit(log, 1, "b", "c") == [taken("foreign"), TAKEN]
    assert row(server, log) == (0, 1, 1, 1)
    assert store.commit(log, 2, "b", "c") == committed(2, 3)
    assert transactions(log) == ["a", "foreign", "b", "c"]
    assert stamp(log, 3)[1:] == (0, 1)


@pytest.mark.parametrize("seen", [1, 2, 3])
def test_a_foreign_commit_before_two_versions_of_a_dead_writer(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path, seen: int
) -> None:
    dead, living = open_store(), open_store()
    dead.commit(log, 0, "a")
    with observed(jvm, raise_at("publishing")):
        assert dead.commit(log, 1, "b", "c") == [UNKNOWN, UNKNOWN]
    for version in range(1, 4):
        write_foreign(log, version, f"foreign-{version}")
    outcome = living.commit(log, seen, "d")[0]
    while outcome.kind == "Taken":
        seen += max(len(outcome.winners), 1)
        outcome = living.commit(log, seen, "d")[0]
    assert outcome.version == 4
    assert transactions(log) == ["a", "foreign-1", "foreign-2", "foreign-3", "d"]
    assert row(server, log)[2] == 4
    assert dead.commit(log, 4, "b") == [taken("d")]


def test_foreign_commits_ahead_are_adopted(
    open_store: Open, server: postgres.Server, log: Path
) -> None:
    store = open_store()
    store.commit(log, 0, "a")
    store.commit(log, 1, "b")
    write_foreign(log, 2, "foreign-2")
    write_foreign(log, 3, "foreign-3")
    assert store.commit(log, 2, "c") == [taken("foreign-2")]
    assert store.commit(log, 4, "c") == committed(4)
    assert transactions(log) == ["a", "b", "foreign-2", "foreign-3", "c"]


def overwrite(log: Path, version: int) -> None:
    log_file(log, version).unlink()
    write_foreign(log, version, "foreign")


def test_an_overwritten_commit_of_this_process_stops_writes(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path
) -> None:
    store = open_store()
    store.commit(log, 0, "a")
    store.commit(log, 1, "b")
    overwrite(log, 1)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            store.commit(log, 2, "c")
        assert refused.value.condition == "INTERLOCK_COMMIT_OVERWRITTEN"
    found = {key: refused.value.parameters[key] for key in ("version", "ours", "theirs")}
    assert found == {"version": "1", "ours": "b", "theirs": "foreign"}
    assert repair(jvm, server, log)["newEpoch"]
    assert store.commit(log, 2, "c") == committed(2)
    assert stamp(log, 2)[1:] == (1, 0)


def test_an_overwritten_commit_of_another_process_stops_writes(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path
) -> None:
    ended = open_store()
    ended.commit(log, 0, "a")
    ended.commit(log, 1, "b")
    ended.close()
    overwrite(log, 1)
    store = open_store()
    with pytest.raises(Refused, match="INTERLOCK_COMMIT_OVERWRITTEN"):
        store.commit(log, 2, "c")
    assert repair(jvm, server, log)["newEpoch"]
    assert store.commit(log, 2, "c") == committed(2)


def test_a_replay_of_an_overwritten_commit_fails_by_itself(open_store: Open, log: Path) -> None:
    ended = open_store()
    ended.commit(log, 0, "a", "b", "c")
    ended.close()
    overwrite(log, 1)
    assert open_store().commit(log, 1, "b", "c") == [Outcome("Failed"), *committed(2)]


def test_a_log_that_was_put_back_stops_writes(open_store: Open, log: Path) -> None:
    """Another process notices the missing previous version, this one its missing commit."""
    ended, store = open_store(), open_store()
    ended.commit(log, 0, "a")
    ended.commit(log, 1, "b")
    ended.close()
    second = log_file(log, 1).read_bytes()
    log_file(log, 1).unlink()
    with pytest.raises(Refused, match="INTERLOCK_LOG_GAP"):
        store.commit(log, 2, "c")
    log_file(log, 1).write_bytes(second)
    assert store.commit(log, 2, "c") == committed(2)
    log_file(log, 2).unlink()
    with pytest.raises(Refused) as refused:
        store.commit(log, 3, "d")
    assert refused.value.condition == "INTERLOCK_COMMIT_OVERWRITTEN"
    assert refused.value.parameters["theirs"] == "no commit"
    assert transactions(log) == ["a", "b"]


def test_a_commit_of_this_process_that_was_cleaned_up_is_not_missed(
    open_store: Open, log: Path
) -> None:
    store, other = open_store(), open_store()
    store.commit(log, 0, "a")
    store.commit(log, 1, "b")
    other.commit(log, 2, "c", "d")
    for version in range(2):
        log_file(log, version).unlink()
    (outcome,) = store.commit(log, 2, "e")
    assert outcome.kind == "Taken"
    assert store.commit(log, 4, "e") == committed(4)


def test_what_a_dead_writer_left_is_not_published_behind_a_gap(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path
) -> None:
    dead = open_store()
    dead.commit(log, 0, "a")
    dead.commit(log, 1, "b")
    with observed(jvm, raise_at("publishing")):
        dead.commit(log, 2, "c")
    log_file(log, 1).unlink()
    with pytest.raises(Refused, match="INTERLOCK_LOG_GAP"):
        open_store().commit(log, 3, "d")
    assert transactions(log) == ["a"]
    repaired = repair(jvm, server, log)
    assert (repaired["newEpoch"], repaired["head"]) == (True, 0)
    assert open_store().commit(log, 1, "d") == committed(1)


# An old database, another table


@pytest.mark.parametrize("stale", [False, True], ids=["up to date", "stale"])
def test_a_restored_database_is_read_only_until_repair(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path, tmp_path: Path, stale: bool
) -> None:
    open_store().commit(log, 0, "a")
    dump = server.dump(tmp_path / "dump.sql")
    later = open_store()
    later.commit(log, 1, "b")
    later.commit(log, 2, "c")
    later.close()
    server.restore(dump)
    writer = open_store()
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            writer.commit(log, 1 if stale else 3, "d")
        assert refused.value.condition == "INTERLOCK_COORDINATOR_RESTORED"
    assert transactions(log) == ["a", "b", "c"]
    repaired = repair(jvm, server, log)
    assert repaired["newEpoch"]
    assert (repaired["head"], repaired["epoch"]) == (2, 1)
    assert writer.commit(log, 3, "d") == committed(3)
    assert stamp(log, 3)[1:] == (1, 0)


def test_repair_publishes_adopts_and_sweeps(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path
) -> None:
    dead = open_store()
    dead.commit(log, 0, "a")
    with observed(jvm, raise_at("publishing")):
        dead.commit(log, 1, "b", "c")
    old, new = (log / f".{0:020}.{name}.tmp" for name in ("old", "new"))
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    repaired = repair(jvm, server, log)
    assert (repaired["published"], repaired["swept"]) == (2, [old.name])
    write_foreign(log, 3, "foreign")
    repaired = repair(jvm, server, log)
    assert (repaired["adopted"], repaired["newEpoch"], repaired["swept"]) == (1, False, [])
    assert transactions(log) == ["a", "b", "c", "foreign"]
    assert new.exists()
    assert open_store().commit(log, 4, "d") == committed(4)


@pytest.mark.parametrize(
    ("before", "nth"), [("attach", 1), ("attach", 2), ("tail", 1), ("published", 1), ("adopt", 1)]
)
def test_a_repair_beside_running_writers_begins_no_epoch(
    jvm: Any,
    open_store: Open,
    server: postgres.Server,
    proxy: Proxy,
    log: Path,
    before: str,
    nth: int,
) -> None:
    """A new epoch would let another commit take the version of a ratified one."""
    dead, living = open_store(), open_store()
    dead.commit(log, 0, "a")
    with observed(jvm, raise_at("publishing")):
        dead.commit(log, 1, "b")
    write_foreign(log, 2, "foreign")
    held, going = threading.Event(), threading.Event()

    def hold(phase: str, version: int) -> None:
        if phase == "publishing" and version == 4 and not held.is_set():
            held.set()
            going.wait(20)

    def write() -> None:
        questions.append(before)
        if len(questions) == nth:
            assert living.commit(log, 3, "c") == committed(3)
            outcome.append(pool.submit(living.commit, log, 4, "d"))
            held.wait(20)

    questions: list[str] = []
    outcome: list[Future[list[Outcome]]] = []
    asked = f"interlock.{before}(".encode()
    with ThreadPoolExecutor(1) as pool, observed(jvm, hold), proxy.before_each(asked, write):
        repaired = repair(jvm, server, log, port=proxy.port)
        going.set()
        assert outcome[0].result() == committed(4)
    assert not repaired["newEpoch"]
    assert len(questions) == (2 if before == "attach" else 1)  # it has not begun anew
    assert transactions(log) == ["a", "b", "foreign", "c", "d"]
    assert row(server, log)[:3] == (0, 0, 4)


def repair(
    jvm: Any, server: postgres.Server, log: Path, *, port: int | None = None
) -> dict[str, Any]:
    url = f"jdbc:postgresql://127.0.0.1:{port or server.port}/{postgres.DATABASE}"
    options = {"url": url, "user": postgres.ADMIN, "table": str(log.parent)}
    return admin(jvm, "repair", options, password=postgres.PASSWORDS[postgres.ADMIN])


@pytest.mark.parametrize("stale", [False, True], ids=["told", "stale"])
def test_a_table_that_is_moved_away_written_and_moved_back(
    open_store: Open, log: Path, tmp_path: Path, stale: bool
) -> None:
    """Commits ratified under another path are not lost."""
    store = open_store()
    moved = tmp_path / "moved" / "_delta_log"
    store.commit(log, 0, "a")
    log.parent.rename(moved.parent)
    assert (store if stale else open_store()).commit(moved, 1, "b") == committed(1)
    moved.parent.rename(log.parent)
    assert store.commit(log, 1, "c") == [taken("b")]
    assert store.commit(log, 2, "c") == committed(2)
    log.parent.rename(moved.parent)
    assert open_store().commit(moved, 3, "d", "e") == committed(3, 4)
    moved.parent.rename(log.parent)
    assert store.commit(log, 5, "f") == committed(5)
    assert transactions(log) == ["a", "b", "c", "d", "e", "f"]


def test_a_commit_that_was_ratified_before_the_table_was_moved_is_revoked(
    jvm: Any, open_store: Open, server: postgres.Server, log: Path, tmp_path: Path
) -> None:
    """Under the new path its version is free, and goes to another commit."""
    store = open_store()
    moved = tmp_path / "moved" / "_delta_log"
    store.commit(log, 0, "a")
    with observed(jvm, raise_at("publishing")):
        assert store.commit(log, 1, "b") == [UNKNOWN]
    log.parent.rename(moved.parent)
    assert open_store().commit(moved, 1, "c") == committed(1)
    moved.parent.rename(log.parent)
    assert open_store().commit(log, 2, "d") == committed(2)
    assert transactions(log) == ["a", "c", "d"]
    assert row(server, log)[:2] == (0, 1)


@pytest.mark.parametrize("versions", [0, 1, 2, 4])
def test_a_table_that_is_created_anew_at_the_path(
    open_store: Open, log: Path, versions: int
) -> None:
    store = open_store()
    for version, txn in enumerate("abc"):
        store.commit(log, version, txn)
    for file in log.iterdir():
        file.unlink()
    for version in range(versions):
        write_foreign(log, version, f"new-{version}")
    assert store.commit(log, versions, "d", table_id=OTHER) == committed(versions)
    assert transactions(log)[-1] == "d"


def test_a_table_that_is_created_anew_after_its_first_commit(open_store: Open, log: Path) -> None:
    first, second = open_store(), open_store()
    first.commit(log, 0, "a")
    log_file(log, 0).unlink()
    assert second.commit(log, 0, "b", table_id=OTHER) == committed(0)
    assert transactions(log) == ["b"]


def test_a_paused_writer_leaves_a_table_alone_that_was_created_anew(
    jvm: Any, open_store: Open, log: Path
) -> None:
    store = open_store()
    store.commit(log, 0, "a")

    def at(phase: str, version: int) -> None:
        if phase == "ratified":
            log_file(log, 0).unlink()
            write_foreign(log, 0, "new")
            threading.Event().wait(1.1)  # longer than a reply is acted on unseen

    with observed(jvm, at):
        assert store.commit(log, 1, "b") == [TAKEN]
    assert transactions(log) == ["new"]


def test_a_paused_writer_asks_until_there_is_an_answer(
    jvm: Any, open_store: Open, proxy: Proxy, log: Path
) -> None:
    store = open_store(proxy.port)
    store.commit(log, 0, "a")

    def at(phase: str, version: int) -> None:
        if phase == "ratified":
            proxy.lose_request(b"interlock.outcome(")
            threading.Event().wait(1.1)  # longer than a reply is acted on unseen

    with observed(jvm, at):
        assert store.commit(log, 1, "b") == committed(1)
    assert transactions(log) == ["a", "b"]
    assert proxy.has_cut.is_set()


def fail_over(server: postgres.Server, log: Path, published: tuple[str, ...]) -> None:
    """Publish what is ratified behind version 0, but for `x`, which is foreign; then let the
    database know nothing of it, as a standby to which it did not come.
    """
    with server.superuser() as connection:
        key = "(SELECT key FROM interlock.tables WHERE log_path = %s)"
        path = f"file:{log}"
        rows = connection.execute(
            f"DELETE FROM interlock.commits WHERE version > 0 AND key = {key}"
            " RETURNING version, content".encode(),
            [path],
        )
        contents = dict(rows.fetchall())
        for version, txn in enumerate(published, 1):
            if txn == "x":
                write_foreign(log, version, txn)
            elif contents[version] is None:
                (staged,) = log.glob(f".*.{txn}-*.staged")
                staged.rename(log_file(log, version))
            else:
                log_file(log, version).write_bytes(contents[version])
        connection.execute(
            "UPDATE interlock.tables SET head = 0, published = 0 WHERE log_path = %s", [path]
        )


@pytest.mark.parametrize(
    ("published", "outcomes"),
    [
        ((), [UNKNOWN, UNKNOWN]),
        (("b",), [*committed(1), UNKNOWN]),
        (("b", "c"), committed(1, 2)),
        (("b", "x"), [*committed(1), TAKEN]),
        (("x",), [TAKEN, TAKEN]),
    ],
)
def test_a_paused_writer_whose_commits_the_database_has_lost(
    jvm: Any,
    open_store: Open,
    server: postgres.Server,
    log: Path,
    published: tuple[str, ...],
    outcomes: list[Outcome],
) -> None:
    store = open_store()
    store.commit(log, 0, "a")

    def at(phase: str, version: int) -> None:
        if (phase, version) == ("ratified", 1):
            fail_over(server, log, published)
            threading.Event().wait(1.1)  # longer than a reply is acted on unseen

    with observed(jvm, at):
        assert store.commit(log, 1, "b", "c") == outcomes
    assert transactions(log) == ["a", *published]


@pytest.mark.parametrize("also", ["another commit", "a foreign commit behind it", "an error"])
def test_a_commit_that_is_published_after_the_database_has_lost_it(
    jvm: Any, open_store: Open, server: postgres.Server, proxy: Proxy, log: Path, also: str
) -> None:
    store, other = open_store(proxy.port, lockTimeout="300ms"), open_store()
    store.commit(log, 0, "a")
    calls: list[None] = []
    with server.superuser() as holder:

        def publish() -> None:
            calls.append(None)
            if len(calls) == 2:
                log_file(log, 1).write_bytes(lost[0])
                assert repair(jvm, server, log)["newEpoch"]
                if also == "an error":
                    holder.execute("BEGIN")
                    holder.execute("SELECT FROM interlock.tables FOR UPDATE")
                elif also == "another commit":
                    assert other.commit(log, 2, "y") == committed(2)
                else:
                    with observed(jvm, raise_at("publishing")):
                        assert other.commit(log, 2, "y") == [UNKNOWN]
                    write_foreign(log, 2, "x")

        def lose() -> None:
            fail_over(server, log, ("b",))
            lost.append(log_file(log, 1).read_bytes())
            log_file(log, 1).unlink()

        lost: list[bytes] = []
        proxy.lose_reply(COMMIT, then=lose)
        with proxy.before_each(COMMIT, publish):
            assert store.commit(log, 1, "b") == committed(1)
        holder.execute("ROLLBACK")
    behind = {"another commit": ["y"], "an error": []}.get(also, ["x"])
    assert transactions(log) == ["a", "b", *behind]
    assert store.commit(log, 2 + len(behind), "z") == committed(2 + len(behind))


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_a_table_that_is_dropped_while_a_batch_is_published(
    jvm: Any, open_store: Open, log: Path, is_made_anew: bool
) -> None:
    store, other = open_store(), open_store()
    store.commit(log, 0, "a")

    def drop(phase: str, version: int) -> None:
        if (phase, version) == ("published", 1):
            for file in log.iterdir():
                file.unlink()
            if is_made_anew:
                other.commit(log, 0, "new", table_id=OTHER)

    def is_same() -> bool:
        return log_file(log, 0).exists() and transactions(log)[0] == "a"

    with observed(jvm, drop):
        outcomes = store.commit(log, 1, "b", "c", "d", is_same_table=is_same)
    assert outcomes == [*committed(1), UNKNOWN, UNKNOWN]
    assert transactions(log) == (["new"] if is_made_anew else [])
    if not is_made_anew:
        assert other.commit(log, 0, "new", table_id=OTHER) == committed(0)
    assert other.commit(log, 1, "next", table_id=OTHER) == committed(1)
    assert transactions(log) == ["new", "next"]


# Bounds


def test_a_database_that_is_gone_is_waited_for_once_by_a_store_that_closes(
    open_store: Open, proxy: Proxy, tmp_path: Path
) -> None:
    store = open_store(proxy.port)
    for name in "abc":
        log = tmp_path / name / "_delta_log"
        log.mkdir(parents=True)
        store.commit(log, 0, "a")
    calls: list[None] = []
    proxy.lose_request(b"interlock.published")
    proxy.refuse()
    with proxy.before_each(b"interlock.published", lambda: calls.append(None)):
        store.close()
    assert len(calls) == 1


def test_a_closed_store_keeps_no_connection(
    open_store: Open, server: postgres.Server, log: Path
) -> None:
    store = open_store()
    store.commit(log, 0, "a")
    store.close()
    assert store.commit(log, 1, "b") == committed(1)
    with server.superuser() as connection:
        wait_for(connection, "SELECT count(*) = 0 FROM pg_stat_activity WHERE usename = 'writer'")


def test_a_connection_to_a_server_that_only_reads_is_given_up(
    open_store: Open, server: postgres.Server, log: Path
) -> None:
    """After a failover a proxy may lead to a standby."""
    store = open_store(poolSize="1")
    with server.superuser() as connection:
        connection.execute("ALTER ROLE writer SET default_transaction_read_only = on")
        try:
            with pytest.raises(Refused) as refused:
                store.commit(log, 0, "a")
        finally:
            connection.execute("ALTER ROLE writer RESET default_transaction_read_only")
    assert "25006" in refused.value.parameters["reason"]
    assert store.commit(log, 0, "a") == committed(0)


def test_commits_of_others_are_brought_up_to_a_size(open_store: Open, log: Path) -> None:
    first, second = open_store(), open_store()
    first.commit(log, 0, "a")
    txns = [f"t{i}" for i in range(30)]
    first.commit(log, 1, *txns, lines=('{"add":"' + "x" * 900_000 + '"}',))
    (outcome,) = second.commit(log, 1, "y")
    assert outcome == taken(*txns[:19])


def test_the_pool_is_bounded(open_store: Open, server: postgres.Server, tmp_path: Path) -> None:
    store = open_store(poolSize="2", lockTimeout="20s")
    logs = [tmp_path / str(i) / "_delta_log" for i in range(6)]
    for log in logs:
        log.mkdir(parents=True)
        store.commit(log, 0, "a")
    waiting = (
        "SELECT count(*) = 2 AND bool_and(wait_event_type = 'Lock')"
        " FROM pg_stat_activity WHERE usename = 'writer'"
    )
    with server.superuser() as admin, server.superuser() as holder, ThreadPoolExecutor(6) as pool:
        holder.execute("BEGIN")
        holder.execute("SELECT FROM interlock.tables FOR UPDATE")
        outcomes = [pool.submit(store.commit, log, 1, "b") for log in logs]
        wait_for(admin, waiting)
        bounded = "SELECT count(*) <= 2 FROM pg_stat_activity WHERE usename = 'writer'"
        for _ in range(200):
            assert admin.execute(bounded).fetchone() == (True,)
        holder.execute("COMMIT")
        assert [outcome.result() for outcome in outcomes] == [committed(1)] * 6


@pytest.mark.parametrize(
    ("setting", "state"), [("lockTimeout", "55P03"), ("statementTimeout", "57014")]
)
def test_a_call_that_waits_too_long_does_nothing(
    open_store: Open, server: postgres.Server, log: Path, setting: str, state: str
) -> None:
    open_store().commit(log, 0, "a")
    store = open_store(**{"lockTimeout": "20s", setting: "300ms"})
    store.commit(log, 1, "b")
    with server.superuser() as holder:
        holder.execute("BEGIN")
        holder.execute("SELECT FROM interlock.tables FOR UPDATE")
        begun = time.monotonic()
        with pytest.raises(Refused) as refused:
            store.commit(log, 2, "c")
        assert time.monotonic() - begun < 10  # and not the 20 or 30 s of the other
        holder.execute("ROLLBACK")
    assert refused.value.condition == "INTERLOCK_COORDINATOR_FAILED"
    assert state in refused.value.parameters["reason"]
    assert store.commit(log, 2, "c") == committed(2)


def test_a_path_is_one_table_however_it_is_spelt(open_store: Open, log: Path) -> None:
    open_store().commit(log, 0, "a")
    other = f"{log.parent.parent}/x/../table/./_delta_log"
    assert open_store().commit(other, 0, "b") == [taken("a")]


class TestTurns:
    """Processes that compete for a table take turns by an advisory lock."""

    @pytest.fixture
    def turn(self, open_store: Open, log: Path) -> Callable[..., Any]:
        """Make the lock of a process of its own."""

        def make(port: int | None = None) -> Any:
            store = open_store(port) if port else open_store()
            return store.java.processLock(store.log(log))

        return make

    def test_one_has_it_at_a_time_in_the_order_in_which_they_asked(
        self, turn: Callable[..., Any], server: postgres.Server
    ) -> None:
        first, second, third = turn(), turn(), turn()
        assert not first.isWanted()
        assert ask(first) == "Mine"
        with server.superuser() as connection:
            for waiting, lock in enumerate((second, third), 1):
                assert ask(lock) == "Theirs"
                wait_for(connection, f"SELECT count(*) = {waiting} FROM pg_locks WHERE NOT granted")
        assert third.isWanted()
        first.release()
        assert ask(first) == "Theirs"
        eventually(lambda: ask(second) == "Mine", 20, "it asked before the third")
        assert ask(third) == ask(first) == "Theirs"
        second.release()
        eventually(lambda: ask(third) == "Mine", 20)
        third.release()
        eventually(lambda: ask(first) == "Mine", 20)
        first.release()
        assert not second.isWanted()

    def test_who_no_longer_wants_it_loses_the_place_in_the_line(
        self, turn: Callable[..., Any], server: postgres.Server
    ) -> None:
        first, second, third = turn(), turn(), turn()
        assert ask(first) == "Mine"
        assert ask(second) == ask(third) == "Theirs"
        with server.superuser() as connection:
            wait_for(connection, "SELECT count(*) = 2 FROM pg_locks WHERE NOT granted")
        second.release()
        assert ask(second) == "Theirs"
        first.release()
        eventually(lambda: "Mine" in (ask(third), ask(second)), 20)
        assert ask(third) == "Mine"
        third.release()
        eventually(lambda: ask(second) == "Mine", 20)
        second.release()

    def test_a_session_that_has_died_has_lost_it(
        self, turn: Callable[..., Any], server: postgres.Server
    ) -> None:
        dead, other = turn(), turn()
        assert ask(dead) == "Mine"
        assert ask(other) == "Theirs"
        with server.superuser() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks "
                "WHERE locktype = 'advisory' AND granted"
            )
        eventually(lambda: ask(other) == "Mine", 20)
        dead.release()
        assert ask(dead) == "Theirs"
        other.release()
        eventually(lambda: ask(dead) == "Mine", 20)
        dead.release()

    def test_a_session_that_dies_as_it_waits_is_opened_again(
        self, turn: Callable[..., Any], server: postgres.Server
    ) -> None:
        first, other = turn(), turn()
        assert ask(first) == "Mine"
        assert ask(other) == "Theirs"
        waiting = "pg_locks WHERE locktype = 'advisory' AND NOT granted"
        with server.superuser() as connection:
            wait_for(connection, f"SELECT count(*) = 1 FROM {waiting}")
            connection.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM {waiting}")
        assert ask(other) == "Theirs"
        first.release()
        eventually(lambda: ask(other) == "Mine", 20)
        other.release()

    def test_a_process_that_is_stopped_loses_it(self, turn: Callable[..., Any]) -> None:
        stopped, other = turn(), turn()
        assert ask(stopped) == "Mine"
        eventually(lambda: ask(other) == "Mine", 20, "the server takes it back")
        other.release()
        stopped.release()

    def test_a_lock_keeps_one_session(
        self, turn: Callable[..., Any], server: postgres.Server
    ) -> None:
        lock, other = turn(), turn()
        assert ask(lock) == "Mine"
        for _ in range(20):
            assert ask(other) == "Theirs"
        with server.superuser() as connection:
            wait_for(
                connection, "SELECT count(*) = 2 FROM pg_stat_activity WHERE usename = 'writer'"
            )
        lock.release()

    def test_without_a_database_there_is_none_and_it_is_not_asked_again_at_once(
        self, turn: Callable[..., Any], proxy: Proxy
    ) -> None:
        lock = turn(proxy.port)
        proxy.refuse()
        assert ask(lock) == "Missing"
        assert not lock.isWanted()
        proxy.accept()
        assert ask(lock) == "Missing"
        lock.release()


def ask(lock: Any) -> str:
    """Ask for a lock; who asks again at once is not sent to the server."""
    time.sleep(0.01)
    name: str = lock.ask().toString()
    return name.partition("(")[0]
