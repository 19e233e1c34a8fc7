"""A table without a policy is Delta's own affair, and Delta's observers go on working."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import ConcurrentAppendError
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.stock_races import observe
from tests.kit.support import (
    Table,
    commit_file,
    deltalake_rows,
    log_of,
    make_table,
    rows,
    tags,
    versions,
)

DELTA = "org.apache.spark.sql.delta"
OURS = f"{DELTA}.interlock.statement.InterlockTransaction"
WAIT_SECONDS = 60
EXAMPLE = ((1, "a"), (2, "b"), (3, "c"))


def test_same_as_in_a_session_of_plain_delta(
    spark: SparkSession, stock: DriverProcess, tmp_path: Path
) -> None:
    result = tmp_path / "result.json"
    races = "spark.version; from tests.kit import stock_races; from pathlib import Path; "
    folder = str(tmp_path / "plain")
    with ThreadPoolExecutor(max_workers=1) as thread:
        plain = thread.submit(
            stock.run, f"{races}stock_races.write(spark, Path({folder!r}), Path({str(result)!r}))"
        )
        ours = json.loads(json.dumps(observe(spark, tmp_path / "ours")))
    assert plain.result().error is None, plain.result().message
    stocks = json.loads(result.read_text(encoding="utf-8"))
    assert ours.keys() == stocks.keys()
    assert {name: found for name, found in ours.items() if found != stocks[name]} == {
        name: found for name, found in stocks.items() if found != ours[name]
    }
    assert "interlock" not in json.dumps([found["tags"] for found in ours.values()])


class TestObservers:
    """Delta's own phase-locking observer, on a thread whose transactions are ours."""

    def test_sees_every_phase_of_a_commit(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path)
        observer = phase_locking(spark)
        with observed(spark, observer, f"INSERT INTO {table} VALUES (4, 'd')") as end:
            for phase in phases(observer):
                assert not phase.hasLeft()
                pass_through(phase, end)
            assert end.result() is None
        assert versions(table) == [0, 1, 2, 3]
        assert tags(table, 3)["interlock.class"] == "APPEND"
        assert rows(spark, table) == deltalake_rows(table) == (*EXAMPLE, (4, "d"))

    def test_holds_an_attempt_until_there_is_a_winner(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        observer = phase_locking(spark)
        start, prepare, *rest = phases(observer)
        with observed(spark, observer, f"INSERT INTO {table} VALUES (4, 'd')") as end:
            pass_through(start, end)
            pass_through(prepare, end)
            spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
            for phase in rest:
                pass_through(phase, end)
            error = end.exception()
        assert isinstance(error, ConcurrentAppendError)
        assert (error.rule, error.read_version, error.winner_version) == ("D7", 2, 3)
        assert versions(table) == [0, 1, 2, 3]
        assert rows(spark, table) == deltalake_rows(table) == (*EXAMPLE, (5, "e"))

    def test_the_next_observer_gets_the_next_transaction(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        first, second = phase_locking(spark), phase_locking(spark)
        first.setNextObserver(second, True)
        statements = [f"INSERT INTO {table} VALUES ({n}, 'n')" for n in (4, 5)]
        with observed(spark, first, *statements) as end:
            *phases_before, last = phases(first)
            for phase in phases_before:
                pass_through(phase, end)
            last.entryBarrier().unblock()
            assert not phases(second)[0].hasEntered()
            last.leave()
            for phase in phases(second):
                pass_through(phase, end)
            assert end.result() is None
        assert versions(table) == [0, 1, 2, 3, 4]
        assert [tags(table, v)["interlock.policy"] for v in (3, 4)] == ["maxcompute_delta"] * 2

    def test_an_observer_that_is_set_is_the_observer_that_is_found(
        self, spark: SparkSession
    ) -> None:
        jvm = java(spark)
        gate = jvm.io.interlock.spark.PhaseGate()
        observers = scala_object(jvm, f"{DELTA}.TransactionExecutionObserver")
        gate.install()
        try:
            found = observers.getObserver()
            observers.setObserver(found)
            assert observers.getObserver().equals(found)
        finally:
            gate.uninstall()


class TestEveryThread:
    @pytest.mark.parametrize("policy", [None, "maxcompute_delta"])
    def test_a_transaction_on_a_fresh_thread_is_ours(
        self, spark: SparkSession, table_path: Path, policy: str | None
    ) -> None:
        table = make_table(spark, table_path, policy=policy)
        with ThreadPoolExecutor(max_workers=1) as fresh:
            found = fresh.submit(transaction_class, spark, table).result()
        assert found == OURS
        assert versions(table) == [0, 1, 2]


def java(spark: SparkSession) -> Any:
    assert spark._jvm is not None
    return spark._jvm


def scala_object(jvm: Any, name: str) -> Any:
    package, _, simple = name.rpartition(".")
    holder = jvm
    for part in package.split("."):
        holder = getattr(holder, part)
    return getattr(getattr(holder, f"{simple}$"), "MODULE$")


def test_what_a_transaction_does_as_it_begins_is_done_once(
    spark: SparkSession, table_path: Path
) -> None:
    """As a transaction begins, Delta publishes the commits of a former coordinator, once."""
    table = make_table(spark, table_path, policy=None)
    staged = table.path / "_delta_log/_staged_commits" / f"{2:020}.{uuid.uuid4()}.json"
    staged.parent.mkdir(exist_ok=True)
    shutil.copy(commit_file(table, 2), staged)
    jvm = java(spark)
    log = scala_object(jvm, f"{DELTA}.DeltaLog").forTable(spark._jsparkSession, str(table.path))
    file = jvm.org.apache.hadoop.fs.FileStatus(
        staged.stat().st_size, False, 1, 1, 0, jvm.org.apache.hadoop.fs.Path(str(staged))
    )
    read = log.unsafeVolatileSnapshot()
    segment = read.logSegment()
    deltas = segment.deltas().init().appended(file)
    segment = jvm.org.apache.spark.sql.delta.LogSegment(
        segment.logPath(),
        segment.version(),
        deltas,
        segment.checkpointProvider(),
        segment.lastCommitFileModificationTimestamp(),
    )
    snapshot = jvm.org.apache.spark.sql.delta.Snapshot(
        read.path(), read.version(), segment, log, read.checksumOpt()
    )
    utils = f"{DELTA}.coordinatedcommits.CoordinatedCommitsUtils"
    with log_of(spark, utils, level="INFO") as written:
        log.startTransaction(jvm.scala.Option.empty(), jvm.scala.Option.apply(snapshot))
    assert len(written.toString().splitlines()) == 1
    assert "already backfilled" in written.toString()


def transaction_class(spark: SparkSession, table: Table) -> str:
    """Start a transaction the way no statement does, and name its class."""
    jvm = java(spark)
    log = scala_object(jvm, f"{DELTA}.DeltaLog").forTable(spark._jsparkSession, str(table.path))
    nothing = jvm.scala.Option.empty()
    name: str = log.startTransaction(nothing, nothing).getClass().getName()
    return name


def phase_locking(spark: SparkSession) -> Any:
    fuzzer = getattr(java(spark).org.apache.spark.sql.delta, "fuzzer")  # noqa: B009
    return fuzzer.PhaseLockingTransactionExecutionObserver(
        fuzzer.OptimisticTransactionPhases.forName("test")
    )


def phases(observer: Any) -> list[Any]:
    """List the phases in which a transaction stops until it is let go."""
    locks = observer.phases()
    return [
        locks.initialPhase(),
        locks.preparePhase(),
        locks.commitPhase(),
        locks.backfillPhase(),
        locks.postCommitPhase(),
    ]


def pass_through(phase: Any, end: Future[None]) -> None:
    """Let a transaction into a phase, and wait until it has left it."""
    phase.entryBarrier().unblock()
    give_up = time.monotonic() + WAIT_SECONDS
    while not phase.hasLeft():
        assert not wait([end], timeout=0.02).done or phase.hasLeft(), end.exception()
        assert time.monotonic() < give_up


@contextmanager
def observed(spark: SparkSession, observer: Any, *statements: str) -> Iterator[Future[None]]:
    """Run statements on a thread that has an observer."""
    observers = scala_object(java(spark), f"{DELTA}.TransactionExecutionObserver")

    def run() -> None:
        observers.setObserver(observer)
        for statement in statements:
            spark.sql(statement)

    with ThreadPoolExecutor(max_workers=1) as thread:
        try:
            yield thread.submit(run)
        finally:
            for phase in phases(observer):  # whatever failed, the thread must end
                with suppress(Py4JJavaError):  # raised where it is open already
                    phase.entryBarrier().unblock()
