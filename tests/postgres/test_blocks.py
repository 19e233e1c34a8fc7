"""Atomic blocks that change several tables of one Postgres coordinator: all of them or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import interlock
import pytest
from interlock.errors import CommitStateUnknown, ConflictError, UsageError
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.commit_phases import observed
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.log_replay import check_log
from tests.kit.sessions import classic_session
from tests.kit.support import (
    Table,
    commit_info,
    deltalake_rows,
    latest_version,
    rows,
    tags,
    unknown_files,
)
from tests.kit.tcp_proxy import Proxy
from tests.postgres import postgres
from tests.postgres.test_sessions import coordinator

START = ((1, 10), (2, 20), (3, 30))


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    with (
        TemporaryDirectory() as data,
        postgres.start(max(postgres.VERSIONS), Path(data) / "18") as found,
    ):
        found.migrate()
        yield found


@pytest.fixture(scope="module")
def proxy(server: postgres.Server) -> Proxy:
    return Proxy(server.port)


@pytest.fixture(scope="module")
def settings(
    server: postgres.Server, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The coordinators `main`, `second`, and `proxied`, which reaches the database by the proxy."""
    folder = tmp_path_factory.mktemp("settings")
    found: dict[str, str] = {}
    for name in ("main", "second", "proxied"):
        found |= coordinator(server, folder, name)
    url = f"jdbc:postgresql://127.0.0.1:{proxy.port}/{postgres.DATABASE}"
    return found | {"spark.interlock.coordinator.proxied.url": url}


@pytest.fixture(scope="module")
def spark(settings: dict[str, str]) -> Iterator[SparkSession]:
    with classic_session(**settings) as session:
        _let_call_back(session)
        yield session


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Table]]:
    """Makes a table with the rows of START at version 1."""

    def make(
        name: str, policy: str = "row_level", coordinator: str | None = "main", **other: str
    ) -> Table:
        table = Table(tmp_path / name)
        bound = {} if coordinator is None else {"interlock.coordinator": coordinator}
        keys = {"interlock.policy": policy, "interlock.exclusive": "true", **bound, **other}
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in keys.items())
        spark.sql(f"CREATE TABLE {table} (id INT, v INT) USING delta TBLPROPERTIES ({properties})")
        spark.sql(f"INSERT INTO {table} VALUES (1, 10), (2, 20), (3, 30)")
        return table

    yield make
    spark.sql("ROLLBACK")


Make = Callable[..., Table]


def begin(spark: SparkSession, *statements: str) -> None:
    spark.sql("BEGIN TRANSACTION")
    for statement in statements:
        spark.sql(statement)


def end(spark: SparkSession) -> list[int]:
    """Commit; return the versions in the order in which the tables were changed."""
    return [row["version"] for row in spark.sql("COMMIT").collect()]


def check(spark: SparkSession, table: Table, wanted: Rows, version: int) -> None:
    """Check the rows, also by another reader, the version, and that no file is left over."""
    assert rows(spark, table) == deltalake_rows(table) == in_order(wanted)
    assert latest_version(table) == version
    assert rows(spark, table, version=1) == START
    assert unknown_files(table) == []
    check_log(table)


def moves(source: Table, target: Table) -> tuple[str, str]:
    """The statements that take 5 from row 1 of one table, and give it to that of the other."""
    return (
        f"UPDATE {source} SET v = v - 5 WHERE id = 1",
        f"UPDATE {target} SET v = v + 5 WHERE id = 1",
    )


LESS, MORE = ((1, 5), *START[1:]), ((1, 15), *START[1:])


def test_all_tables_become_one_commit(spark: SparkSession, make: Make) -> None:
    a, b, c = make("a"), make("b"), make("c")
    begin(spark, *moves(a, b), f"INSERT INTO {b} VALUES (4, 40)", f"DELETE FROM {c} WHERE id = 2")
    other = spark.newSession()
    assert [rows(other, table) for table in (a, b, c)] == [START] * 3
    assert end(spark) == [2, 2, 2]
    check(other, a, LESS, 2)
    check(other, b, (*MORE, (4, 40)), 2)
    check(other, c, (START[0], START[2]), 2)
    infos = [commit_info(table, 2) for table in (a, b, c)]
    assert [info["operation"] for info in infos] == ["UPDATE", "ATOMIC BLOCK", "DELETE"]
    assert len({info["inCommitTimestamp"] for info in infos}) == 1
    assert len({tags(table, 2)["interlock.block"] for table in (a, b, c)}) == 1


def test_each_table_is_rebased_over_its_winners(spark: SparkSession, make: Make) -> None:
    a, b = make("a"), make("b")
    begin(spark, *moves(a, b))
    other = spark.newSession()
    other.sql(f"UPDATE {a} SET v = 0 WHERE id = 3")
    other.sql(f"INSERT INTO {a} VALUES (4, 40)")
    other.sql(f"INSERT INTO {b} VALUES (4, 40)")
    assert end(spark) == [4, 3]
    check(other, a, ((1, 5), (2, 20), (3, 0), (4, 40)), 4)
    check(other, b, (*MORE, (4, 40)), 3)


@pytest.mark.parametrize("loses", ["a", "b", "c"])
def test_a_conflict_in_one_table_keeps_all_unchanged(
    spark: SparkSession, make: Make, loses: str
) -> None:
    made = {name: make(name) for name in "abc"}
    a, b, c = made.values()
    begin(spark, *moves(a, b), f"UPDATE {c} SET v = 0 WHERE id = 1")
    spark.newSession().sql(f"UPDATE {made[loses]} SET v = 7 WHERE id = 1")
    number = "abc".index(loses) + 1
    name = made[loses].location
    with pytest.raises(ConflictError, match=rf"(?s)version 2 \(.*statement {number} of .*{name}"):
        end(spark)
    for table in made.values():
        if table is made[loses]:
            check(spark, table, ((1, 7), *START[1:]), 2)
        else:
            check(spark, table, START, 1)
    begin(spark, *moves(a, b))
    assert end(spark) == [2 + (loses == "a"), 2 + (loses == "b")]


def test_in_scripts_and_in_python(spark: SparkSession, make: Make) -> None:
    a, b, c = make("a"), make("b"), make("c")
    inserts = f"INSERT INTO {b} SELECT id + 10, v INSERT INTO {c} SELECT id + 20, v"
    spark.sql(f"BEGIN ATOMIC FROM {a} {inserts}; UPDATE {a} SET v = 0 WHERE id = 1; END")
    check(spark, b, (*START, (11, 10), (12, 20), (13, 30)), 2)
    check(spark, c, (*START, (21, 10), (22, 20), (23, 30)), 2)
    with interlock.transaction(spark) as tx:
        spark.table(str(a)).write.format("delta").mode("append").save(b.location)
        spark.sql(f"TRUNCATE TABLE {a}")
        spark.sql(f"DELETE FROM {c} WHERE id = 99")
    assert list(tx.versions.values()) == [3, 3]
    check(spark, a, (), 3)
    assert latest_version(c) == 2
    with suppress(ZeroDivisionError), interlock.transaction(spark):
        spark.sql(f"DELETE FROM {b}")
        spark.sql(f"DELETE FROM {c}")
        _ = 1 / 0
    assert (latest_version(b), latest_version(c)) == (3, 2)


def test_what_is_refused(spark: SparkSession, make: Make) -> None:
    a, other_key = make("a"), {"interlock.exclusive": "false"}
    elsewhere, default = make("elsewhere", coordinator="second"), make("default", coordinator=None)
    open_to_all = make("open", **other_key)
    link = a.path.with_name("link")
    link.symlink_to(a.path)
    begin(spark, f"UPDATE {a} SET v = 0 WHERE id = 1")
    for second, why in (
        (elsewhere, "the same Postgres coordinator"),
        (default, "the same Postgres coordinator"),
        (open_to_all, "Writers without Interlock"),
        (Table(link), "one table under two paths"),
    ):
        with pytest.raises(UsageError, match=rf"(?s)INTERLOCK_NOT_IN_BLOCK.*{why}"):
            spark.sql(f"DELETE FROM {second}")
    assert end(spark) == [2]
    check(spark, a, ((1, 0), *START[1:]), 2)
    for table in (elsewhere, default, open_to_all):
        check(spark, table, START, 1)


@pytest.mark.parametrize("policy", ["serializable", "write_serializable"])
def test_write_skew_between_two_tables(spark: SparkSession, make: Make, policy: str) -> None:
    """Two blocks each read what the other changes: both commit unless reads are judged."""
    a, b = make("a", policy), make("b", policy)
    first, second = spark, spark.newSession()
    for session, read, changed in ((first, a, b), (second, b, a)):
        begin(session)
        found = session.sql(f"SELECT sum(v) FROM {read}").collect()
        session.sql(f"INSERT INTO {changed} VALUES (4, {found[0][0]})")
    assert end(first) == [2]
    if policy == "write_serializable":
        assert end(second) == [2]
        check(spark, a, (*START, (4, 60)), 2)
    else:
        with pytest.raises(ConflictError, match=rf"a query of the block has read it in .*{b.path}"):
            end(second)
        check(spark, a, START, 1)
    check(spark, b, (*START, (4, 60)), 2)


def test_another_process_commits_when_the_block_has_been_judged(
    spark: SparkSession, make: Make, settings: dict[str, str], tmp_path: Path
) -> None:
    """All tables are judged again: those that the block changes, and those that it only reads."""
    read, a, b = make("read", "row_serializable"), make("a"), make("b")

    def block(other: DriverProcess, winner: str) -> list[int]:
        begin(spark, *moves(a, b))
        assert spark.sql(f"SELECT v FROM {read} WHERE id = 1").collect() == [(10,)]
        ends: list[Answer] = []

        def at(phase: str, _version: int) -> None:
            if phase == "ratifying" and not ends:
                ends.append(other.run(winner))

        with observed(spark._jvm, at):
            try:
                return end(spark)
            finally:
                assert [answer.error for answer in ends] == [None]

    with driver_processes(tmp_path, "interlock", settings=settings) as (other,):
        assert block(other, f"INSERT INTO {b} VALUES (4, 40)") == [2, 3]
        assert block(other, f"UPDATE {read} SET v = 31 WHERE id = 3") == [3, 4]
        with pytest.raises(ConflictError, match="statement 2 of the block"):
            block(other, f"UPDATE {b} SET v = 0 WHERE id = 1")
        with pytest.raises(ConflictError, match="a query of the block has read it"):
            block(other, f"UPDATE {read} SET v = 11 WHERE id = 1")
    check(spark, a, ((1, 0), *START[1:]), 3)
    check(spark, b, ((1, 0), *START[1:], (4, 40)), 5)
    check(spark, read, ((1, 11), (2, 20), (3, 31)), 3)


def test_transfers_by_several_sessions(spark: SparkSession, make: Make) -> None:
    """The sum over three tables stays the same, whatever is rejected."""
    made = [make(name) for name in "abc"]
    done: list[int] = []

    def work(seed: int) -> None:
        session = spark.newSession()
        for n in range(6):
            source, target = made[(seed + n) % 3], made[(seed + 2 * n + 1) % 3]
            with suppress(ConflictError), interlock.transaction(session):
                for statement in moves(source, target):
                    session.sql(statement.replace("id = 1", f"id = {1 + n % 3}"))
                done.append(n)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(done) == 24
    left = [spark.sql(f"SELECT sum(v) FROM {table}").collect()[0][0] for table in made]
    assert sum(left) == 180
    blocks: dict[str, int] = {}
    for table in made:
        for version in range(2, latest_version(table) + 1):
            block = tags(table, version)["interlock.block"]
            blocks[block] = blocks.get(block, 0) + 1
        assert unknown_files(table) == []
        check_log(table)
    assert 6 <= len(blocks) <= 24
    assert set(blocks.values()) <= {1, 2}


# ---- faults ----


@pytest.mark.parametrize(
    ("phase", "is_made"),
    [("staged", False), ("ratifying", False), ("ratified", True), ("published", True)],
)
def test_a_step_that_fails(spark: SparkSession, make: Make, phase: str, is_made: bool) -> None:
    """The error says whether the block is committed; all tables have it, or none."""
    a, b = make("a"), make("b")
    failed: list[str] = []

    def at(found: str, _version: int) -> None:
        if found == phase and not failed:
            failed.append(found)
            raise OSError(phase)

    begin(spark, *moves(a, b))
    with observed(spark._jvm, at):
        if is_made:
            assert end(spark) == [2, 2]
        else:
            with pytest.raises(Exception, match=r".") as raised:
                end(spark)
            assert not isinstance(raised.value, (ConflictError, CommitStateUnknown))
    assert failed == [phase]
    check(spark, a, LESS if is_made else START, 2 if is_made else 1)
    check(spark, b, MORE if is_made else START, 2 if is_made else 1)
    begin(spark, *moves(b, a))
    assert end(spark) == [3, 3] if is_made else [2, 2]


@pytest.mark.parametrize("call", ["interlock.commit(", "COMMIT"])
def test_a_lost_reply(spark: SparkSession, make: Make, proxy: Proxy, call: str) -> None:
    """The database tells what became of the transaction: rolled back, or committed."""
    a, b = make("a", coordinator="proxied"), make("b", coordinator="proxied")
    begin(spark, *moves(a, b))
    proxy.lose_reply(call.encode())
    assert end(spark) == [2, 2]
    assert proxy.has_cut.is_set()
    check(spark, a, LESS, 2)
    check(spark, b, MORE, 2)


@pytest.mark.parametrize(
    ("phase", "number", "is_made"),
    [
        ("ratifying", 2, False),
        ("ratified", 1, True),
        ("published", 1, True),
    ],
)
def test_a_process_that_is_killed(
    spark: SparkSession,
    settings: dict[str, str],
    make: Make,
    tmp_path: Path,
    phase: str,
    number: int,
    is_made: bool,
) -> None:
    """The next writer of each table finishes the block, or finds nothing of it."""
    a, b = make("a"), make("b")
    with driver_processes(tmp_path, "interlock", settings=settings) as (victim,):
        die_at(victim, phase, number)
        victim.run("BEGIN TRANSACTION")
        for statement in moves(a, b):
            assert victim.run(statement).error is None
        assert victim.run("COMMIT").error is not None
    for table, wanted in ((a, LESS), (b, MORE)):
        spark.sql(f"INSERT INTO {table} VALUES (4, 40)")
        version = 3 if is_made else 2
        found = (*(wanted if is_made else START), (4, 40))
        assert rows(spark, table) == deltalake_rows(table) == in_order(found)
        assert latest_version(table) == version
        check_log(table)


def _let_call_back(spark: SparkSession) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    start: Any = ensure_callback_server_started
    start(spark.sparkContext._gateway)


def die_at(victim: DriverProcess, phase: str, number: int) -> None:
    """Let the process die when commits come to a phase for the nth time."""
    here = f"__import__({__name__!r}, fromlist=['x'])"
    code = f"spark.conf, {here}._die_at(spark, {phase!r}, {number})"
    assert victim.run(code).error is None


def _die_at(spark: SparkSession, phase: str, number: int) -> None:
    _let_call_back(spark)
    left = [number]

    def at(found: str, _version: int) -> None:
        if found == phase:
            left[0] -= 1
            if left[0] == 0:
                jvm: Any = spark._jvm
                jvm.java.lang.Runtime.getRuntime().halt(9)

    _kept.enter_context(observed(spark._jvm, at))


_kept = ExitStack()
