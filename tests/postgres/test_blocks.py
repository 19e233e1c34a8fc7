"""Atomic blocks that change several tables of a Postgres coordinator."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from interlock.errors import CommitStateUnknown, UsageError
from pyspark.sql import SparkSession

from tests.blocks.several_tables import (
    BEFORE,
    BEHIND,
    LESS,
    MORE,
    PATIENCE_SECONDS,
    START,
    SUMS,
    Make,
    SeveralTables,
    begin,
    check,
    end,
    let_call_back,
    make_in,
    moves,
)
from tests.kit import block_readers, command
from tests.kit.commit_phases import observed
from tests.kit.driver_process import driver_processes
from tests.kit.log_replay import check_log
from tests.kit.sessions import classic_session
from tests.kit.support import Table, commit_info, deltalake_rows, latest_version, rows, versions
from tests.kit.tcp_proxy import Proxy
from tests.postgres import postgres
from tests.postgres.database import Database
from tests.postgres.test_sessions import coordinator

# Each has connections of its own, which send the text of a call a few times, then a number for it.
PROXIED = ("proxied_1", "proxied_2", "proxied_3")


@pytest.fixture(scope="module")
def proxy(server: postgres.Server) -> Proxy:
    return Proxy(server.port)


@pytest.fixture(scope="module")
def settings(
    server: postgres.Server, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The coordinators `main`, `second`, and those that reach the database by the proxy."""
    folder = tmp_path_factory.mktemp("settings")
    found: dict[str, str] = {}
    for name in ("main", "second", "hasty", *PROXIED):
        found |= coordinator(server, folder, name)
    url = f"jdbc:postgresql://127.0.0.1:{proxy.port}/{postgres.DATABASE}"
    found["spark.interlock.coordinator.hasty.statementTimeout"] = "1s"
    return found | {f"spark.interlock.coordinator.{name}.url": url for name in PROXIED}


@pytest.fixture(scope="module")
def spark(settings: dict[str, str]) -> Iterator[SparkSession]:
    with classic_session(**settings) as session:
        let_call_back(session)
        yield session


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Make]:
    def make(
        name: str, policy: str = "row_level", coordinator: str | None = "main", **more: str
    ) -> Table:
        bound = {} if coordinator is None else {"interlock.coordinator": coordinator}
        return make_in(spark, tmp_path, name, policy, **bound, **more)

    yield make
    spark.sql("ROLLBACK")


class TestWithPostgres(SeveralTables):
    STEP = 1
    JUDGED = "ratifying"
    FAILED = {"staged": 1, "ratifying": 1}  # noqa: RUF012
    KILLED = (
        ("ratifying", 2, (2, 2), False),
        ("ratified", 1, (3, 3), True),
        ("published", 1, (3, 3), True),
    )


def test_tables_of_different_coordinators(spark: SparkSession, make: Make) -> None:
    a, elsewhere, default = make("a"), make("b", coordinator="second"), make("c", coordinator=None)
    for second in (elsewhere, default):
        begin(spark, f"UPDATE {a} SET v = 0 WHERE id = 1")
        with pytest.raises(UsageError, match=r"(?s)INTERLOCK_NOT_IN_BLOCK.*the same coordinator"):
            spark.sql(f"DELETE FROM {second}")
        spark.sql("ROLLBACK")
        check(spark, second, START, 1)
    check(spark, a, START, 1)


@pytest.mark.parametrize(
    ("proxied", "call", "what"),
    [
        ("proxied_1", "COMMIT", "reply"),
        ("proxied_2", "interlock.commit(", "reply"),
        ("proxied_3", "interlock.commit(", "request"),
    ],
)
def test_a_connection_is_cut(
    spark: SparkSession, make: Make, proxy: Proxy, proxied: str, call: str, what: str
) -> None:
    """The database tells what became of the transaction: rolled back, or committed."""
    a, b = make("a", coordinator=proxied), make("b", coordinator=proxied)
    begin(spark, *moves(a, b))
    (proxy.lose_reply if what == "reply" else proxy.lose_request)(call.encode())
    assert end(spark) == [2, 2]
    assert proxy.has_cut.is_set()
    check(spark, a, LESS, 2)
    check(spark, b, MORE, 2)


def test_a_client_dies_in_the_ratifying_call(
    spark: SparkSession,
    make: Make,
    settings: dict[str, str],
    server: postgres.Server,
    proxy: Proxy,
    tmp_path: Path,
) -> None:
    """The server, which has done the call for one table and holds its row, rolls back."""
    a, b = make("a"), make("b")
    database, pid = Database(server, proxy, tmp_path), tmp_path / "pid"
    tell = f"open({str(pid)!r}, 'w').write(str(spark.sparkContext._gateway.proc.pid))"
    with (
        driver_processes(tmp_path, "interlock", settings=settings) as (victim,),
        ThreadPoolExecutor(1) as thread,
    ):
        # Who knows the tables waits in the call, and not with a question before it.
        known = (f"INSERT INTO {table} VALUES (4, 40)" for table in (a, b))
        for code in (f"spark.conf, {tell}", *known, "BEGIN TRANSACTION", *moves(a, b)):
            assert victim.run(code).error is None
        with database.locked(b) as unlock:
            committing = thread.submit(victim.run, "COMMIT")
            assert database.await_waiting("interlock")
            os.kill(int(pid.read_text(encoding="utf-8")), signal.SIGKILL)
            assert committing.result().error is not None
            assert database.await_waiting("interlock")
            unlock()
    for table in (a, b):
        start = time.monotonic()
        spark.sql(f"INSERT INTO {table} VALUES (5, 50)")
        assert time.monotonic() - start < PATIENCE_SECONDS
        assert rows(spark, table) == deltalake_rows(table) == (*START, (4, 40), (5, 50))
        made = [commit_info(table, version)["operation"] for version in versions(table)]
        assert made == ["CREATE TABLE", *["WRITE"] * 3]
        check_log(table)


def test_a_restored_database_lacks_a_block(
    spark: SparkSession, make: Make, server: postgres.Server, proxy: Proxy, tmp_path: Path
) -> None:
    """Each of its tables is refused until its own repair, and no block commits to one alone."""
    a, b = make("a"), make("b")
    for table in (a, b):
        spark.sql(f"INSERT INTO {table} VALUES (4, 40)")
    dump = server.dump(tmp_path / "dump.sql")
    begin(spark, *moves(a, b))
    assert end(spark) == [3, 3]
    server.restore(dump)
    restored = "(?s)INTERLOCK_COORDINATOR_RESTORED.* log of file:{}/_delta_log"

    def are_refused(*tables: Table) -> None:
        for table in tables:
            with pytest.raises(UsageError, match=restored.format(table.path)):
                spark.sql(f"INSERT INTO {table} VALUES (5, 50)")
        begin(spark, *moves(a, b))
        with pytest.raises(UsageError, match=restored.format(tables[0].path)):
            end(spark)

    def repair(table: Table) -> None:
        done = command.repair(Database(server, proxy, tmp_path).admin(), table.location)
        assert done.returncode == 0, done.stderr
        spark.sql(f"INSERT INTO {table} VALUES (5, 50)")

    are_refused(a, b)
    check(spark, a, (*LESS, (4, 40)), 3)
    repair(a)
    are_refused(b)
    check(spark, a, (*LESS, (4, 40), (5, 50)), 4)
    check(spark, b, (*MORE, (4, 40)), 3)
    repair(b)
    check(spark, b, (*MORE, (4, 40), (5, 50)), 4)
    begin(spark, *moves(b, a))
    assert end(spark) == [5, 5]
    check(spark, a, (*START, (4, 40), (5, 50)), 5)
    check(spark, b, (*START, (4, 40), (5, 50)), 5)


def test_the_database_stops_after_it_has_ratified(
    spark: SparkSession, make: Make, server: postgres.Server
) -> None:
    """Both tables have the block, at the latest when it runs again and they are written."""
    a, b = make("a"), make("b")

    def at(phase: str, _version: int) -> None:
        if phase == "ratified" and server.running():
            server.stop(mode="immediate")

    begin(spark, *moves(a, b))
    try:
        with observed(spark._jvm, at), suppress(CommitStateUnknown):
            assert end(spark) == [2, 2]
        assert not server.running()
    finally:
        if not server.running():
            server.run()
    both_go_on(spark, a, b)


def both_go_on(spark: SparkSession, a: Table, b: Table) -> None:
    """Check that both have the block, and that the next writer of each commits."""
    for table, moved in ((a, LESS), (b, MORE)):
        start = time.monotonic()
        spark.sql(f"INSERT INTO {table} VALUES (4, 40)")
        assert time.monotonic() - start < PATIENCE_SECONDS
        check(spark, table, (*moved, (4, 40)), 3)


def test_the_database_is_down_between_two_publications(
    spark: SparkSession, make: Make, server: postgres.Server
) -> None:
    """A query of both tables sees the block in none of them; when it runs again, in both."""
    a, b = make("a", coordinator="hasty"), make("b", coordinator="hasty")

    def at(phase: str, _version: int) -> None:
        if phase == "published" and server.running():
            server.stop(mode="immediate")
        elif phase == "publishing" and not server.running():
            raise OSError(phase)

    def sees(wanted: int) -> None:
        start = time.monotonic()
        assert spark.sql(SUMS["union"].format(a=a, b=b)).collect() == [(wanted,)]
        assert time.monotonic() - start < PATIENCE_SECONDS

    begin(spark, *moves(a, b))
    try:
        with observed(spark._jvm, at), pytest.raises(CommitStateUnknown):
            end(spark)
        assert not server.running()
        sees(BEFORE)
        assert block_readers.stock_sum((a, b)) == 115
        assert (latest_version(a), latest_version(b)) == (2, 1)
    finally:
        if not server.running():
            server.run()
    sees(BEHIND)
    check(spark, a, LESS, 2)
    check(spark, b, MORE, 2)
    both_go_on(spark, a, b)
