"""Atomic blocks that change several tables: all of them or none."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, ClassVar, cast

import interlock
import pytest
from interlock.errors import CommitStateUnknown, ConflictError, InterlockError, UsageError
from interlock.lab.model import Rows, in_order
from pyspark import InheritableThread
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from tests.kit import block_readers
from tests.kit.commit_phases import observed
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.foreign import vacuum
from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    commit_info,
    confs,
    deltalake_rows,
    latest_version,
    make_table,
    row_tracking,
    rows,
    tags,
    unknown_files,
)

START = ((1, 10), (2, 20), (3, 30))
# What `moves` leaves of it.
LESS, MORE = ((1, 5), *START[1:]), ((1, 15), *START[1:])
# Of a statement that meets a block whose process has died: 10 s, and what it takes itself.
PATIENCE_SECONDS = 30
Make = Callable[..., Table]
# The sums of two tables in one number, by one query, and what it is without `moves` and with it.
SUMS = {
    "subqueries": "SELECT (SELECT sum(v) FROM {a}) * 1000 + (SELECT sum(v) FROM {b}) AS s",
    "union": "SELECT sum(v) AS s FROM (SELECT v * 1000 AS v FROM {a} UNION ALL SELECT v FROM {b})",
    "join": "SELECT sum(x.v * 1000 + y.v) AS s FROM {a} x JOIN {b} y ON x.id = y.id",
}
BEFORE, BEHIND = 60_060, 55_065


def make_in(
    spark: SparkSession, folder: Path, name: str, policy: str = "row_level", **more: str
) -> Table:
    """Make a table with the rows of START at version 1."""
    return make_table(
        spark,
        folder / name,
        policy=policy,
        columns="(id INT, v INT) USING delta",
        properties={"interlock.exclusive": "true", **more},
        statements=("INSERT INTO {t} VALUES (1, 10), (2, 20), (3, 30)",),
        own_id=True,
    )


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


def let_call_back(spark: SparkSession) -> None:
    start: Any = ensure_callback_server_started
    start(spark.sparkContext._gateway)


class SeveralTables:
    """The tests; a subclass for each coordinator.

    Attributes:
        STEP: the versions that each table gets by a block
        JUDGED: a phase between the block's judging and its decision, in which nobody waits for it
        FAILED: phases whose first failure ends the block, with the versions of its tables then
        KILLED: a phase and how often the block comes to it, and the versions of two tables when
            another process has written each again; whether the block is there then

    """

    STEP: ClassVar[int]
    JUDGED: ClassVar[str]
    FAILED: ClassVar[dict[str, int]]
    KILLED: ClassVar[tuple[tuple[str, int, tuple[int, int], bool], ...]]

    def test_all_tables_become_one_commit(self, spark: SparkSession, make: Make) -> None:
        a, b, c = make("a"), make("b"), make("c")
        more = (f"INSERT INTO {b} VALUES (4, 40)", f"DELETE FROM {c} WHERE id = 2")
        begin(spark, *moves(a, b), *more)
        other = spark.newSession()
        assert [rows(other, table) for table in (a, b, c)] == [START] * 3
        made = 1 + self.STEP
        assert end(spark) == [made] * 3
        check(other, a, LESS, made)
        check(other, b, (*MORE, (4, 40)), made)
        check(other, c, (START[0], START[2]), made)
        infos = [commit_info(table, made) for table in (a, b, c)]
        assert [info["operation"] for info in infos] == ["UPDATE", "ATOMIC BLOCK", "DELETE"]
        assert len({info["inCommitTimestamp"] for info in infos}) == 1
        assert len({tags(table, made)["interlock.block"] for table in (a, b, c)}) == 1
        assert row_tracking(spark, b)[4][1] == row_tracking(spark, a)[1][1] == made
        other.sql(f"UPDATE {a} SET v = 0 WHERE id = 2")
        check(spark, a, ((1, 5), (2, 0), (3, 30)), made + 1)

    def test_each_table_is_rebased_over_its_winners(self, spark: SparkSession, make: Make) -> None:
        a, b = make("a"), make("b")
        begin(spark, *moves(a, b))
        other = spark.newSession()
        other.sql(f"UPDATE {a} SET v = 0 WHERE id = 3")
        other.sql(f"INSERT INTO {a} VALUES (4, 40)")
        other.sql(f"INSERT INTO {b} VALUES (4, 40)")
        assert end(spark) == [3 + self.STEP, 2 + self.STEP]
        check(other, a, ((1, 5), (2, 20), (3, 0), (4, 40)), 3 + self.STEP)
        check(other, b, (*MORE, (4, 40)), 2 + self.STEP)

    def test_a_statement_behind_a_block(self, spark: SparkSession, make: Make) -> None:
        """What began before the block's commit is judged against it, in each table."""
        a, b = make("a"), make("b")
        second, third = spark.newSession(), spark.newSession()
        begin(spark, *moves(a, b))
        begin(second, f"UPDATE {a} SET v = 0 WHERE id = 2")
        begin(third, f"UPDATE {b} SET v = 0 WHERE id = 1")
        assert end(spark) == [1 + self.STEP] * 2
        second.sql(f"INSERT INTO {a} VALUES (4, 40)")
        assert end(second) == [2 + self.STEP]
        assert row_tracking(spark, a)[4][1] == 2 + self.STEP
        with pytest.raises(ConflictError, match=rf"version {1 + self.STEP} \(UPDATE"):
            end(third)
        check(spark, a, ((1, 5), (2, 0), (3, 30), (4, 40)), 2 + self.STEP)
        check(spark, b, MORE, 1 + self.STEP)

    @pytest.mark.parametrize("loses", ["a", "c"])
    def test_a_conflict_in_one_table_keeps_all_unchanged(
        self, spark: SparkSession, make: Make, loses: str
    ) -> None:
        made = {name: make(name) for name in "abc"}
        a, b, c = made.values()
        begin(spark, *moves(a, b), f"UPDATE {c} SET v = 0 WHERE id = 1")
        spark.newSession().sql(f"UPDATE {made[loses]} SET v = 7 WHERE id = 1")
        number, name = "abc".index(loses) + 1, made[loses].location
        with pytest.raises(ConflictError, match=rf"(?s)version 2 .*statement {number} of .*{name}"):
            end(spark)
        for table in made.values():
            if table is made[loses]:
                check(spark, table, ((1, 7), *START[1:]), 2)
            else:
                check(spark, table, START, 1)
        begin(spark, *moves(a, b))
        assert end(spark) == [1 + self.STEP + (loses == "a"), 1 + self.STEP]

    def test_in_scripts_and_in_python(self, spark: SparkSession, make: Make) -> None:
        a, b, c = make("a"), make("b"), make("c")
        inserts = f"INSERT INTO {b} SELECT id + 10, v INSERT INTO {c} SELECT id + 20, v"
        spark.sql(f"BEGIN ATOMIC FROM {a} {inserts}; UPDATE {a} SET v = 0 WHERE id = 1; END")
        once, twice = 1 + self.STEP, 1 + 2 * self.STEP
        check(spark, b, (*START, (11, 10), (12, 20), (13, 30)), once)
        check(spark, c, (*START, (21, 10), (22, 20), (23, 30)), once)
        with interlock.transaction(spark) as tx:
            spark.table(str(a)).write.format("delta").mode("append").save(b.location)
            spark.sql(f"TRUNCATE TABLE {a}")
            spark.sql(f"DELETE FROM {c} WHERE id = 99")
        assert list(tx.versions.values()) == [twice] * 2
        check(spark, a, (), twice)
        assert latest_version(c) == once
        with suppress(ZeroDivisionError), interlock.transaction(spark):
            spark.sql(f"DELETE FROM {b}")
            spark.sql(f"DELETE FROM {c}")
            _ = 1 / 0
        assert (latest_version(b), latest_version(c)) == (twice, once)

    def test_what_is_refused(self, spark: SparkSession, make: Make) -> None:
        a, open_to_all = make("a"), make("open", **{"interlock.exclusive": "false"})
        link = a.path.with_name("link")
        link.symlink_to(a.path)
        for statement, why in (
            (f"DELETE FROM {open_to_all}", "Writers without Interlock"),
            (f"DELETE FROM {Table(link)}", "by another path"),
            (f"SELECT * FROM {Table(link)}", "by another path"),
        ):
            begin(spark, f"UPDATE {a} SET v = 0 WHERE id = 1")
            with pytest.raises(UsageError, match=rf"(?s)INTERLOCK_NOT_IN_BLOCK.*{why}"):
                spark.sql(statement)
            with pytest.raises(UsageError, match="INTERLOCK_BLOCK_FAILED"):
                end(spark)
            spark.sql("ROLLBACK")
        check(spark, a, START, 1)
        check(spark, open_to_all, START, 1)

    @pytest.mark.parametrize("policy", ["serializable", "write_serializable"])
    def test_write_skew_between_two_tables(
        self, spark: SparkSession, make: Make, policy: str
    ) -> None:
        """Two blocks each read what the other changes: both commit unless reads are judged."""
        a, b = make("a", policy), make("b", policy)
        first, second = spark, spark.newSession()
        for session, read, changed in ((first, a, b), (second, b, a)):
            begin(session)
            found = session.sql(f"SELECT sum(v) FROM {read}").collect()
            session.sql(f"INSERT INTO {changed} VALUES (4, {found[0][0]})")
        assert len(end(first)) == 1
        if policy == "write_serializable":
            assert end(second) == [2]
            check(spark, a, (*START, (4, 60)), 2)
        else:
            with pytest.raises(ConflictError, match=rf"query of the block .*{b.path}"):
                end(second)
            check(spark, a, START, 1)
        assert rows(spark, b) == (*START, (4, 60))

    def test_another_process_commits_when_the_block_has_been_judged(
        self, spark: SparkSession, make: Make, settings: dict[str, str], tmp_path: Path
    ) -> None:
        """All tables are judged again: those that the block changes, and those that it reads."""
        read, a, b = make("read", "row_serializable"), make("a"), make("b")

        def block(other: DriverProcess, winner: str) -> list[int]:
            begin(spark, *moves(a, b))
            assert spark.sql(f"SELECT v FROM {read} WHERE id = 1").collect() == [(10,)]
            ends: list[Answer] = []

            def at(phase: str, _version: int) -> None:
                if phase == self.JUDGED and not ends:
                    ends.append(other.run(winner))

            with observed(spark._jvm, at):
                try:
                    return end(spark)
                finally:
                    assert [answer.error for answer in ends] == [None]

        with driver_processes(tmp_path, "interlock", settings=settings) as (other,):
            block(other, f"INSERT INTO {b} VALUES (4, 40)")
            assert rows(spark, b) == (*MORE, (4, 40))
            block(other, f"UPDATE {read} SET v = 31 WHERE id = 3")
            with pytest.raises(ConflictError, match="statement 2 of the block"):
                block(other, f"UPDATE {b} SET v = 0 WHERE id = 1")
            with pytest.raises(ConflictError, match="a query of the block has read it"):
                block(other, f"UPDATE {read} SET v = 11 WHERE id = 1")
        check(spark, a, ((1, 0), *START[1:]), latest_version(a))
        check(spark, b, ((1, 0), *START[1:], (4, 40)), latest_version(b))
        check(spark, read, ((1, 11), (2, 20), (3, 31)), 3)

    def test_readers_between_two_publications(
        self, spark: SparkSession, make: Make, settings: dict[str, str], tmp_path: Path
    ) -> None:
        """A stock reader finds one table without the other; a query with Interlock never does."""
        both, total = [make("a"), make("b")], 120
        own = spark.newSession()
        stock: list[int] = []
        wrong: list[object] = []

        def at(phase: str, _version: int) -> None:
            if phase in {"ratified", "published"}:
                stock.append(block_readers.stock_sum(both))
                start = time.monotonic()
                if (found := block_readers.sums(own, both)) != [total] * len(found):
                    wrong.append((phase, "a session of this process", found))
                if (answer := block_readers.sums_by(other, both, total)).error:
                    wrong.append((phase, "another process", answer.message))
                if time.monotonic() - start > PATIENCE_SECONDS:
                    wrong.append((phase, "waited", time.monotonic() - start))

        begin(spark, *moves(*both))
        with (
            driver_processes(tmp_path, "interlock", settings=settings) as (other,),
            observed(spark._jvm, at),
        ):
            end(spark)
        assert {each - total for each in stock} == {0, -5}
        assert not wrong, wrong
        check(spark, both[0], LESS, 1 + self.STEP)
        check(spark, both[1], MORE, 1 + self.STEP)

    def test_transfers_by_several_sessions(self, spark: SparkSession, make: Make) -> None:
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
                if commit_info(table, version)["operation"] != "PREPARE ATOMIC BLOCK":
                    block = tags(table, version)["interlock.block"]
                    blocks[block] = blocks.get(block, 0) + 1
            assert unknown_files(table) == []
            check_log(table)
        assert 6 <= len(blocks) <= 24
        assert set(blocks.values()) <= {1, 2}

    def test_what_loses_is_named(self, spark: SparkSession, make: Make) -> None:
        """Also a statement that has read nothing of what it loses by."""
        a, b = make("a"), make("b")
        begin(spark, *moves(a, b))
        spark.newSession().sql(f"INSERT OVERWRITE {b} VALUES (9, 9)")
        with pytest.raises(ConflictError, match="statement 2 of the block that loses, UPDATE"):
            end(spark)
        check(spark, a, START, 1)
        check(spark, b, ((9, 9),), 2)

    def test_a_table_that_was_read_is_another_one_now(
        self, spark: SparkSession, make: Make
    ) -> None:
        read, a = make("read", "serializable"), make("a")
        begin(spark, f"INSERT INTO {a} SELECT id + 10, v FROM {read} WHERE id = 1")
        shutil.rmtree(read.path)
        properties = "'interlock.policy' = 'serializable'"
        other = spark.newSession()
        other.sql(f"CREATE TABLE {read} (id INT, v INT) USING delta TBLPROPERTIES ({properties})")
        other.sql(f"INSERT INTO {read} VALUES (1, 0)")
        with pytest.raises(InterlockError, match="INTERLOCK_TABLE_GONE"):
            end(spark)
        check(spark, a, START, 1)

    # ---- what others read ----

    @pytest.mark.variant_cases(but=["join"])
    @pytest.mark.parametrize("form", SUMS)
    def test_a_query_between_the_publications(
        self, spark: SparkSession, make: Make, form: str
    ) -> None:
        """It sees the block in both tables, when another reader sees the half of it."""
        a, b, copy = make("a"), make("b"), make("copy")
        made = 1 + self.STEP
        other = spark.newSession()
        sums: list[int] = []

        def at(phase: str, version: int) -> None:
            if phase == "published" and version == made and not sums:
                sums.append(sum(cast("int", row[1]) for t in (a, b) for row in deltalake_rows(t)))
                query = SUMS[form].format(a=a, b=b)
                other.sql(f"INSERT OVERWRITE {copy} SELECT 1, s FROM ({query})")
                sums.append(other.sql(query).collect()[0][0])
                sums.append(other.table(str(copy)).collect()[0][1])

        begin(spark, *moves(a, b))
        with observed(spark._jvm, at):
            assert end(spark) == [made] * 2
        assert sums[0] in {115, 125}
        assert sums[1:] == [BEHIND] * 2
        check(spark, a, LESS, made)
        check(spark, b, MORE, made)

    def test_the_reads_of_a_block(self, spark: SparkSession, make: Make) -> None:
        """It sees no other block in one table that it does not see in another."""
        a, b, c = make("a"), make("b"), make("c")
        other = spark.newSession()
        for first, second in ((a, b), (b, a)):
            begin(spark)
            before = rows(spark, first), rows(spark, second)
            spark.sql("ROLLBACK")
            begin(spark)
            assert rows(spark, first) == before[0]
            other.sql(f"INSERT INTO {second} VALUES (5, 50)")
            begin(other, *moves(a, b))
            end(other)
            other.sql(f"INSERT INTO {second} VALUES (6, 60)")
            assert rows(spark, second) == in_order((*before[1], (5, 50)))
            spark.sql(f"INSERT INTO {c} VALUES (4, 40)")
            spark.sql(f"UPDATE {second} SET v = 0 WHERE id = 1")
            with pytest.raises(ConflictError, match=f"statement 2 of the block .*{second.path}"):
                end(spark)
        check(spark, c, START, 1)

    # ---- faults ----

    @pytest.mark.variant_cases(but=["staged", "ratified"])
    @pytest.mark.parametrize("phase", ["staged", "ratifying", "ratified", "published"])
    def test_an_interrupt_of_the_committing_thread(
        self, spark: SparkSession, make: Make, phase: str
    ) -> None:
        """Whatever COMMIT says then: all tables have the block with their files, or none has."""
        a, b = make("a"), make("b")
        jvm: Any = spark._jvm
        committing: list[Any] = []

        def at(found: str, _version: int) -> None:
            if found == phase:
                committing[0].interrupt()

        def run() -> None:
            committing.append(jvm.java.lang.Thread.currentThread())
            with observed(jvm, at), suppress(Exception):
                spark.sql("COMMIT").collect()

        begin(spark, *moves(a, b))
        worker = InheritableThread(target=run)
        worker.start()
        worker.join()
        version = latest_version(a)
        assert latest_version(b) == version
        is_made = version == 1 + self.STEP
        assert is_made or phase not in {"ratified", "published"}
        check(spark, a, LESS if is_made else START, version)
        check(spark, b, MORE if is_made else START, version)
        begin(spark, *moves(b, a))
        assert end(spark) == [version + self.STEP] * 2

    @pytest.mark.variant_cases(but=["ratifying", "published"])
    @pytest.mark.parametrize("phase", ["staged", "ratifying", "ratified", "published"])
    def test_a_step_that_fails(self, spark: SparkSession, make: Make, phase: str) -> None:
        """The error says whether the block is committed; all tables have it, or none."""
        a, b = make("a"), make("b")
        failed: list[str] = []

        def at(found: str, _version: int) -> None:
            if found == phase and not failed:
                failed.append(found)
                raise OSError(phase)

        version = self.FAILED.get(phase, 1 + self.STEP)
        begin(spark, *moves(a, b))
        with observed(spark._jvm, at):
            if phase in self.FAILED:
                with pytest.raises(Exception, match=r".") as raised:
                    end(spark)
                assert not isinstance(raised.value, (ConflictError, CommitStateUnknown))
            else:
                assert end(spark) == [version] * 2
        assert failed == [phase]
        check(spark, a, START if phase in self.FAILED else LESS, version)
        check(spark, b, START if phase in self.FAILED else MORE, version)
        begin(spark, *moves(b, a))
        assert end(spark) == [version + self.STEP] * 2

    def test_a_process_dies_with_an_open_block(
        self, spark: SparkSession, settings: dict[str, str], make: Make, tmp_path: Path
    ) -> None:
        """It has reserved no version, and what its statements wrote is left to VACUUM."""
        a, b = make("a"), make("b")
        with driver_processes(tmp_path, "interlock", settings=settings) as (victim,):
            for statement in ("BEGIN TRANSACTION", *moves(a, b)):
                assert victim.run(statement).error is None
            victim.run("spark.sparkContext._gateway.proc.kill()")
            assert victim.run("COMMIT").error is not None
        for table in (a, b):
            assert latest_version(table) == 1
            assert unknown_files(table) != []
            spark.sql(f"INSERT INTO {table} VALUES (4, 40)")
            assert latest_version(table) == 2
            with confs(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
                vacuum(spark, table)  # two versions
            check(spark, table, (*START, (4, 40)), 4)

    @pytest.mark.variant_cases("even-SIGKILL", "*-SIGTERM")
    @pytest.mark.parametrize("by", ["SIGKILL", "SIGTERM"])
    @pytest.mark.parametrize("first", [0, 1], ids=["even", "odd"])
    def test_a_process_that_is_killed(
        self,
        spark: SparkSession,
        settings: dict[str, str],
        make: Make,
        tmp_path: Path,
        first: int,
        by: str,
    ) -> None:
        """The next query of both tables, or writer of each, finishes the block if it is decided."""
        for n, (phase, number, versions, is_made) in enumerate(self.KILLED[first::2]):
            a, b = make(f"a{n}"), make(f"b{n}")
            with driver_processes(tmp_path, "interlock", settings=settings) as (victim,):
                die_at(victim, phase, number, by)
                victim.run("BEGIN TRANSACTION")
                for statement in moves(a, b):
                    assert victim.run(statement).error is None
                assert victim.run("COMMIT").error is not None
            (found,) = spark.sql(SUMS["union"].format(a=a, b=b)).collect()
            is_visible = is_made and phase == "published"
            assert found["s"] == (BEHIND if is_visible else BEFORE)
            for table, moved in ((a, LESS), (b, MORE)):
                start = time.monotonic()
                spark.sql(f"INSERT INTO {table} VALUES (4, 40)")
                assert time.monotonic() - start < PATIENCE_SECONDS
                left = (*(moved if is_made else START), (4, 40))
                assert rows(spark, table) == deltalake_rows(table) == in_order(left)
                check_log(table)
            assert (latest_version(a), latest_version(b)) == versions


def die_at(victim: DriverProcess, phase: str, number: int, by: str = "SIGKILL") -> None:
    """Let a signal end the process when commits come to a phase for the nth time."""
    here = f"__import__({__name__!r}, fromlist=['x'])"
    code = f"spark.conf, {here}._die_here(spark, {phase!r}, {number}, {by!r})"
    assert victim.run(code).error is None


def _die_here(spark: SparkSession, phase: str, number: int, by: str) -> None:
    let_call_back(spark)
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.proc
    left = [number]

    def at(found: str, _version: int) -> None:
        if found == phase:
            left[0] -= 1
            if left[0] == 0:
                jvm.send_signal(signal.Signals[by])
                jvm.wait()

    _kept.enter_context(observed(spark._jvm, at))


_kept = ExitStack()
