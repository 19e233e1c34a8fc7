"""Claims by hand, and of statements that run again: commits that wait for others' jobs."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import interlock
import pytest
from deltalake import DeltaTable
from interlock.errors import CommittedError, ConflictError, InterlockError, UsageError
from pyspark.sql import SparkSession

from tests.kit.eventually import eventually
from tests.kit.gates import SecondTransactionGate, end_behind
from tests.kit.properties import operations
from tests.kit.snapshots import delta_log, queue_of
from tests.kit.support import (
    Table,
    confs,
    deltalake_rows,
    latest_version,
    log_of,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
)

COLUMNS = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
INSERT = "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)"
X1 = "UPDATE {t} SET v = 'X' WHERE id = 1 AND p = 1"
HOOK = "org.apache.spark.sql.delta.hooks"
GATE = "org.apache.spark.sql.delta.interlock.commit.ClaimGate"
WAITS = "waits for the claim"
OVERTAKEN = "waits for a commit of ann in app-1, which others have overtaken"


def table_of(spark: SparkSession, path: Path, policy: str = "row_level", **more: str) -> Table:
    return make_table(
        spark, path, policy=policy, columns=COLUMNS, statements=(INSERT,), properties=more
    )


def detail_id(spark: SparkSession, table: Table) -> str:
    """Return Delta's id of a table."""
    return str(spark.sql(f"DESCRIBE DETAIL {table}").collect()[0]["id"])


@contextmanager
def running(*jobs: Callable[[], object]) -> Iterator[Any]:
    with ThreadPoolExecutor(len(jobs)) as pool:
        yield [pool.submit(job) for job in jobs]


@pytest.mark.variant_cases("*DELETE FROM*", "*INSERT OVERWRITE*")
@pytest.mark.parametrize(
    ("partition", "policy", "statement", "waits"),
    [
        (None, "row_level", X1, True),
        (None, "row_level", "DELETE FROM {t} WHERE p = 2", True),
        (None, "row_level", "INSERT OVERWRITE {t} VALUES (9, 'z', 9)", True),
        (None, "row_level", "INSERT INTO {t} VALUES (9, 'z', 9)", False),
        (None, "row_serializable", "INSERT INTO {t} VALUES (9, 'z', 9)", True),
        (None, "row_level", "INSERT INTO {t} SELECT 9, 'z', 9 FROM {t} WHERE id = 1", True),
        ({"p": 1}, "row_level", X1, True),
        ({"P": "1"}, "maxcompute_delta", X1, True),
        ({"p": 1}, "row_level", "UPDATE {t} SET v = 'Y' WHERE p = 2", False),
        ({"p": 1}, "row_level", "UPDATE {t} SET p = 1 WHERE p = 2", True),
        ({"p": 1}, "maxcompute_delta", "ALTER TABLE {t} PARTITION (p = 1) COMPACT MAJOR", True),
        ({"p": 1}, "row_level", "ALTER TABLE {t} SET TBLPROPERTIES ('user.x' = '1')", False),
    ],
)  # fmt: skip
def test_who_waits(
    spark: SparkSession,
    table_path: Path,
    partition: dict[str, object] | None,
    policy: str,
    statement: str,
    waits: bool,
) -> None:
    table = table_of(spark, table_path, policy)
    before, other = rows(spark, table), spark.newSession()
    with (
        log_of(spark, GATE) as log,
        interlock.table(spark, str(table)).claim(partition=partition, minutes=1) as claim,
        running(lambda: other.sql(statement.format(t=table))) as (job,),
    ):
        if waits:
            eventually(lambda: WAITS in str(log))
            assert not job.done()
            assert (latest_version(table), rows(spark, table)) == (1, before)
            assert claim.release()
        job.result()
        assert claim.release() != waits
    assert latest_version(table) == 2
    assert rows(spark, table) == deltalake_rows(table)
    assert str(log).count(WAITS) == waits


def auto_compacting(spark: SparkSession) -> SparkSession:
    """Return a session whose INSERTs are followed by a compaction."""
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
    session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
    return session


@pytest.mark.parametrize("behind", ["claim", "turn"])
def test_an_insert_does_not_wait_in_its_auto_compaction(
    spark: SparkSession, table_path: Path, behind: str
) -> None:
    table, other = table_of(spark, table_path), auto_compacting(spark)

    def insert() -> None:
        other.sql(f"INSERT INTO {table} VALUES (9, 'z', 1)")

    with log_of(spark, HOOK) as log:
        if behind == "claim":
            with interlock.table(spark, str(table)).claim(minutes=1):
                insert()
        else:
            put = partial(turn_of_another, spark, table)
            assert end_behind(spark, insert, put, SecondTransactionGate) is None
        assert "was skipped" in str(log)
        assert "INTERLOCK_AUTO_COMPACTION_SKIPPED" in str(log)
    assert latest_version(table) == 2
    assert rows(spark, table) == deltalake_rows(table)
    files = {file.name for file in table.path.rglob("p=*/*.parquet")}
    assert files == {Path(uri).name for uri in DeltaTable(table.path).file_uris()}
    insert()
    assert operations(table)[-2:] == ["WRITE", "OPTIMIZE"]


def test_an_insert_whose_auto_compaction_fails_is_not_run_again(
    spark: SparkSession, table_path: Path
) -> None:
    """A hook's conflict comes after the INSERT's commit: a second run would insert twice."""
    table, other = table_of(spark, table_path), auto_compacting(spark)
    other.conf.set("spark.databricks.delta.postCommitHook.throwOnError", "true")

    def insert() -> None:
        other.sql(f"INSERT INTO {table} VALUES (9, 'z', 1)")

    claim = interlock.table(spark, str(table)).claim(minutes=1)
    with claim, pytest.raises(CommittedError) as failed:
        interlock.retry(insert)
    assert "INTERLOCK_AUTO_COMPACTION_SKIPPED" in str(failed.value)
    assert latest_version(table) == 2
    assert rows(spark, table) == deltalake_rows(table)
    assert [row[0] for row in rows(spark, table)].count(9) == 1


def test_the_session_of_a_claim_does_not_wait(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path)
    claimed = interlock.table(spark, str(table))
    with claimed.claim(partition={"p": 1}, minutes=5) as claim:
        spark.sql(X1.format(t=table))
        (shown,) = claimed.claims()
    assert claimed.claims() == interlock.Claims(())
    assert not claim.release()
    assert rows(spark, table) == ((1, "X", 1), (2, "b", 1), (3, "c", 2))
    assert (shown.claim, shown.until) == (claim.id, claim.until)
    assert (shown.operation_class, shown.partitions) == (None, ({"p": "1"},))
    assert spark.sparkContext.applicationId in shown.owner
    assert timedelta(0) <= datetime.now(timezone.utc) - shown.since < timedelta(minutes=1)
    assert claim.until - shown.since < timedelta(minutes=6)


def test_streams_of_the_session_do_not_wait(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path / "t", "row_serializable")
    source = make_table(spark, table_path / "source", policy=None, columns=COLUMNS, statements=())
    spark.sql(f"INSERT INTO {source} VALUES (7, 's', 7)")
    stream = spark.readStream.format("delta").load(str(source.path)).writeStream.format("delta")
    stream = stream.option("checkpointLocation", str(table_path / "checkpoint"))
    with log_of(spark, GATE) as log, interlock.table(spark, str(table)).claim(minutes=1) as claim:
        stream.trigger(availableNow=True).start(str(table.path)).awaitTermination()
        assert claim.release()
    assert str(log) == ""
    assert (7, "s", 7) in rows(spark, table)


def test_a_table_made_anew_has_no_claims(spark: SparkSession, table_path: Path) -> None:
    spark.sql(
        f"CREATE TABLE claimed {COLUMNS} LOCATION '{table_path}' "
        "TBLPROPERTIES ('interlock.policy' = 'row_level')"
    )
    with interlock.table(spark, "claimed").claim(minutes=1):
        spark.sql("DROP TABLE claimed")
        shutil.rmtree(table_path)
        table = table_of(spark, table_path)
        assert interlock.table(spark, str(table)).claims() == interlock.Claims(())
        spark.newSession().sql(X1.format(t=table))
    assert latest_version(table) == 2


def test_a_wait_can_be_interrupted(spark: SparkSession, table_path: Path) -> None:
    """Ctrl-C in Python interrupts the waiting thread like this."""
    table = table_of(spark, table_path)
    files = set(table.path.rglob("*.parquet"))
    claims: Any = spark._jvm.io.interlock.spark.claims.Claims  # type: ignore[union-attr]
    update = X1.format(t=table)
    with (
        log_of(spark, GATE) as log,
        interlock.table(spark, str(table)).claim(minutes=1),
        running(lambda: spark.newSession().sql(update)) as (job,),
    ):
        eventually(lambda: WAITS in str(log))
        while not job.done():
            claims.interruptWaiting()
            time.sleep(0.02)
        with pytest.raises(Exception, match="Interrupted"):
            job.result()
    assert latest_version(table) == 1
    assert set(table.path.rglob("*.parquet")) == files


def test_a_stream_that_waits_is_not_interrupted(
    spark: SparkSession, table_path: Path, tmp_path: Path
) -> None:
    table = table_of(spark, table_path, "row_serializable")
    source = table_of(spark, tmp_path / "source")
    claims: Any = spark._jvm.io.interlock.spark.claims.Claims  # type: ignore[union-attr]
    writer = (
        spark.readStream.format("delta")
        .load(str(source.path))
        .writeStream.format("delta")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    with (
        log_of(spark, GATE) as log,
        interlock.table(spark.newSession(), str(table)).claim(minutes=1) as claim,
    ):
        stream = writer.start(str(table.path))
        eventually(lambda: WAITS in str(log))
        claims.interruptWaiting()
        assert not stream.awaitTermination(1)
        assert latest_version(table) == 1
        assert claim.release()
        assert stream.awaitTermination(60)
    assert latest_version(table) == 2
    assert rows(spark, table) == deltalake_rows(table)
    assert len(rows(spark, table)) == 6


def test_a_claim_ends_by_itself(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path)
    interlock.table(spark, str(table)).claim(minutes=0.02)
    spark.newSession().sql(X1.format(t=table))
    assert latest_version(table) == 2
    assert interlock.table(spark, str(table)).claims() == interlock.Claims(())


def test_a_claim_waits_for_an_earlier_one(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path)
    first, second = (
        interlock.table(session, str(table)) for session in (spark, spark.newSession())
    )
    with (
        first.claim(partition={"p": 1}, minutes=1) as claim,
        second.claim(partition={"p": 2}),
        running(second.claim) as (whole,),
    ):
        eventually(lambda: len(first.claims()) == 3)
        assert [shown.until is None for shown in first.claims()] == [False, False, True]
        assert not whole.done()
        claim.release()
        whole.result().release()


def test_of_two_jobs_with_claims_the_earlier_goes_first(
    spark: SparkSession, table_path: Path
) -> None:
    table, other = table_of(spark, table_path), spark.newSession()
    x3 = f"UPDATE {table} SET v = 'X' WHERE id = 3 AND p = 2"
    with (
        log_of(spark, GATE) as log,
        interlock.table(spark, str(table)).claim(partition={"p": 1}, minutes=1) as first,
        interlock.table(other, str(table)).claim(partition={"p": 2}, minutes=1),
        running(lambda: other.sql(X1.format(t=table))) as (later,),
    ):
        eventually(lambda: WAITS in str(log))
        spark.sql(x3)
        assert not later.done()
        first.release()
        later.result()
    assert rows(spark, table) == ((1, "X", 1), (2, "b", 1), (3, "X", 2))


def test_two_jobs_that_wait_for_each_other(spark: SparkSession, table_path: Path) -> None:
    """One job has a claim on A and waits for B; the other has one on B and waits for A."""
    a, b = (table_of(spark, table_path / name) for name in "ab")
    other = spark.newSession()
    with (
        interlock.table(spark, str(a)).claim(),
        interlock.table(other, str(b)).claim(),
        running(
            lambda: spark.sql(X1.format(t=b)), lambda: interlock.table(other, str(a)).claim()
        ) as (commit, claim),
    ):
        commit.result()
        with pytest.raises(UsageError, match="INTERLOCK_CLAIMED"):
            claim.result()
        assert len(interlock.table(spark, str(a)).claims()) == 1
    assert (latest_version(a), latest_version(b)) == (1, 2)


def test_two_sessions_that_wait_for_each_other_on_one_table(
    spark: SparkSession, table_path: Path
) -> None:
    table = table_of(spark, table_path)
    one, other = (interlock.table(session, str(table)) for session in (spark, spark.newSession()))
    with (
        one.claim(partition={"p": 1}),
        other.claim(partition={"p": 2}),
        running(
            lambda: one.claim(partition={"p": 2}), lambda: other.claim(partition={"p": 1})
        ) as both,
    ):
        for claim in both:
            with pytest.raises(UsageError, match="INTERLOCK_CLAIMED"):
                claim.result(60)
        assert len(one.claims()) == 2


def test_the_claim_of_a_process_that_is_gone(spark: SparkSession, table_path: Path) -> None:
    """A killed process does not renew its claim, which then expires."""
    table = table_of(spark, table_path)
    left = claim_of_another(spark, table)
    with log_of(spark, GATE) as log:
        start = time.monotonic()
        spark.sql(X1.format(t=table))
        assert 9 < time.monotonic() - start < 30
        spark.sql(X1.format(t=table))
    assert str(log).count("waits for the claim 0f of ann in app-1") == 1
    assert not left.exists()


def test_a_turn_holds_the_commits_of_other_processes_only(
    spark: SparkSession, table_path: Path
) -> None:
    """A commit that has lost many races gets a turn, which other processes respect."""
    table = table_of(spark, table_path)
    jvm: Any = spark._jvm
    path = delta_log(spark, table).logPath()
    log = jvm.io.interlock.coordinator.TableLog(path, spark._jsc.hadoopConfiguration())
    leases = jvm.io.interlock.coordinator.Leases(log, "claims")
    seconds = jvm.scala.concurrent.duration.Duration.apply("30 s")
    process = jvm.io.interlock.spark.claims.Claims.Process()
    leases.put("0e", turn_text(spark, table, since=1, process=process), seconds)
    spark.sql(X1.format(t=table))
    assert spark.sql(f"CALL interlock.claims('{table}')").collect() == []
    later = turn_of_another(spark, table, since=2)
    spark.sql(X1.format(t=table))
    assert leases.remove("0e"), "a statement has waited"
    later.unlink()
    left = turn_of_another(spark, table)
    start = time.monotonic()
    spark.sql(X1.format(t=table))
    assert 9 < time.monotonic() - start < 30
    assert not left.exists()
    assert latest_version(table) == 4


def test_a_commit_that_waits_for_a_turn_waits_for_a_claim_made_since(
    spark: SparkSession, table_path: Path
) -> None:
    table = table_of(spark, table_path)
    left = turn_of_another(spark, table, since=0)
    before = rows(spark, table)
    with (
        log_of(spark, GATE, level="INFO") as log,
        running(lambda: spark.sql(X1.format(t=table))) as (job,),
    ):
        eventually(lambda: OVERTAKEN in str(log))
        left.touch()  # it stays alive for ten seconds
        claim = claim_of_another(spark, table)
        left.unlink()
        eventually(lambda: WAITS in str(log))
        assert (latest_version(table), rows(spark, table)) == (1, before)
        claim.unlink()
        job.result()
    assert len(re.findall(f"UPDATE on .* {OVERTAKEN}", str(log))) == 1
    assert latest_version(table) == 2
    assert rows(spark, table) == deltalake_rows(table)


def test_another_table_at_its_path_after_the_wait(
    spark: SparkSession, table_path: Path, tmp_path: Path
) -> None:
    """After the wait the next version in the log belongs to a new table at the same path."""
    made = table_of(spark, table_path)
    table = Table(Path(shutil.copytree(made.path, tmp_path / "unknown until now")))
    other = table_of(spark, tmp_path / "other", **{"user.x": "made by itself"})
    for _ in range(2):
        spark.sql(f"INSERT INTO {other} VALUES (9, 'o', 9)")
    left = turn_of_another(spark, table)
    insert = f"INSERT INTO {table} VALUES (4, 'd', 2)"
    with log_of(spark, GATE, level="INFO") as log, running(lambda: spark.sql(insert)) as (job,):
        eventually(lambda: OVERTAKEN in str(log))
        left.touch()  # it stays alive for ten seconds
        shutil.copytree(other.path, table.path, dirs_exist_ok=True)
        left.unlink()
        lost = job.exception()
    assert isinstance(lost, InterlockError)
    assert lost.condition == "INTERLOCK_TABLE_GONE"
    assert latest_version(table) == 3
    assert rows(spark, table) == deltalake_rows(table) == rows(spark, other)


@pytest.mark.parametrize("to", [1, 2])
def test_a_log_that_was_put_back_during_the_wait(
    spark: SparkSession, table_path: Path, tmp_path: Path, to: int
) -> None:
    """The process has read versions 2 and 3; the log was put back and went on to 4."""
    table = table_of(spark, table_path)
    before = Table(Path(shutil.copytree(table.path, tmp_path / "before")))

    def write(into: Table, *statements: str) -> None:
        for statement in statements:
            spark.sql(statement.format(t=into))

    appended = "INSERT INTO {t} VALUES (9, 'o', 9)"
    write(before, *[appended] * (to - 1))
    now = Table(Path(shutil.copytree(before.path, tmp_path / "now")))
    write(before, *[appended] * (3 - to))
    write(now, X1, *[appended] * (3 - to))
    queue = queue_of(spark, table)
    left = turn_of_another(spark, table)
    update = X1.format(t=table)
    with log_of(spark, GATE, level="INFO") as log, running(lambda: spark.sql(update)) as (job,):
        eventually(lambda: OVERTAKEN in str(log))
        left.touch()  # it stays alive for ten seconds
        shutil.copytree(before.path, table.path, dirs_exist_ok=True)
        queue.catchUp(2)
        assert queue.isTaken(3)
        shutil.copytree(now.path, table.path, dirs_exist_ok=True)
        left.unlink()
        lost = job.exception()
    assert isinstance(lost, ConflictError)
    assert lost.winner_version == to + 1
    assert latest_version(table) == 4
    assert rows(spark, table) == deltalake_rows(table) == rows(spark, now)


def claim_of_another(spark: SparkSession, table: Table) -> Path:
    """Leave the claim of a process that was killed."""
    fields = {"table": detail_id(spark, table), "since": "0", "owner": "ann in app-1", "until": "1"}
    return note_of_another(table, "0f", json.dumps(fields | {"partitions": []}))


def turn_of_another(spark: SparkSession, table: Table, since: int = 0) -> Path:
    """Leave the turn of a process that was killed, whose commit had been overtaken many times."""
    return note_of_another(table, "0d", turn_text(spark, table, since))


def turn_text(spark: SparkSession, table: Table, since: int, process: str = "gone") -> str:
    fields = {"table": detail_id(spark, table), "since": str(since), "owner": "ann in app-1"}
    return json.dumps(fields | {"session": process, "until": "1"})


def note_of_another(table: Table, name: str, text: str) -> Path:
    left = table.path / "_delta_log/_interlock/claims" / name
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text(text)
    return left


@pytest.mark.parametrize(
    ("call", "condition"),
    [
        ("claim('{t}', map('q', '1'))", "NOT_A_PARTITION_COLUMN"),
        ("claim('{t}', map('p', 'x'))", "CAST_INVALID_INPUT"),
        ("claim('{t}', map('p', ''))", "CAST_INVALID_INPUT"),
        ("claim('{t}', minutes => 0)", "INTERLOCK_INVALID_ARGUMENT"),
        ("claim('{t}', minutes => CAST('NaN' AS DOUBLE))", "INTERLOCK_INVALID_ARGUMENT"),
        ("claim('{t}', minutes => NULL)", "INTERLOCK_INVALID_ARGUMENT"),
        ("claim('{plain}')", "INTERLOCK_POLICY_REQUIRED"),
        ("claims('{none}')", "INTERLOCK_NOT_A_DELTA_TABLE"),
        ("release(NULL)", "INTERLOCK_INVALID_ARGUMENT"),
    ],
)
def test_refusals(spark: SparkSession, table_path: Path, call: str, condition: str) -> None:
    table = table_of(spark, table_path / "t")
    plain = make_table(spark, table_path / "plain", policy=None)
    with pytest.raises(Exception, match=condition):
        spark.sql(f"CALL interlock.{call.format(t=table.path, plain=plain.path, none=table_path)}")
    assert interlock.table(spark, str(table)).claims() == interlock.Claims(())


def test_a_second_run_is_not_made_to_lose(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path)

    def lose_once(session: SparkSession) -> None:
        again, gate = session.newSession(), table_path / "gate"
        again.udf.register("gate", lambda v: _gate(v, str(gate)), "string")
        with confs(again, {"spark.interlock.rerun.maxRuns": "2"}):
            again.sql(f"UPDATE {table} SET v = gate(v) WHERE id = 1 AND p = 1")

    gate = table_path / "gate"
    gate.mkdir()
    later = f"UPDATE {table} SET v = concat(v, 'L') WHERE id = 1 AND p = 1"
    with (
        log_of(spark, GATE) as log,
        running(
            lambda: race(spark, sql_job(X1.format(t=table)), interlock.Job("again", lose_once))
        ) as (both,),
    ):
        try:
            eventually((gate / "2").exists)
            (shown,) = interlock.table(spark, str(table)).claims()
            with running(lambda: spark.newSession().sql(later)) as (last,):
                eventually(lambda: WAITS in str(log))
                assert latest_version(table) == 2
                (gate / "go").touch()
                with pytest.raises(ConflictError, match="version 3"):
                    last.result()
        finally:
            (gate / "go").touch()
        first, second = both.result()
    assert (first.error, second.error) == (None, None)
    assert (shown.operation_class, shown.partitions) == ("MUTATE", ({"p": "1"},))
    assert interlock.table(spark, str(table)).claims() == interlock.Claims(())
    assert rows(spark, table) == deltalake_rows(table) == ((1, "XG", 1), (2, "b", 1), (3, "c", 2))
    assert latest_version(table) == 3


def _gate(value: str, folder: str) -> str:
    """Return at once in the first run, and when `go` is there in the second."""
    from pathlib import Path
    from time import sleep

    run = len(list(Path(folder).iterdir())) + 1
    Path(folder, str(run)).touch()
    while run > 1 and not Path(folder, "go").exists():
        sleep(0.02)
    return value + "G"


@contextmanager
def second_run(
    spark: SparkSession, table: Table, signs: Path, statement: str, *, is_early: bool = False
) -> Iterator[list[object]]:
    """Hold a statement in its second run, with `gate(v)`, and let it end; X1 beats the first run.

    Yields a list that has the errors of both when they have ended.
    """
    again = spark.newSession()
    signs.mkdir()
    again.udf.register("gate", lambda v: _gate_behind_winner(v, str(signs)), "string")
    again.conf.set("spark.interlock.rerun.maxRuns", "2")

    def run(*_: object) -> None:
        again.sql(statement.format(t=table))

    def win(*_: object) -> None:
        spark.newSession().sql(X1.format(t=table))
        (signs / "won").touch()

    def compete() -> list[object]:
        if is_early:
            return [end_behind(spark, run, win)]
        return [end.error for end in race(spark, python_job("win", win), python_job("run", run))]

    errors: list[object] = []
    with running(compete) as (both,):
        try:
            eventually(lambda: (signs / "again").exists() or both.done())
            yield errors
        finally:
            (signs / "go").touch()
        errors += both.result()
    assert (signs / "first").exists() != is_early


@pytest.mark.variant_cases(
    "*AND p < 2-*", "*p = 9 WHERE*", "*min(id)*", "*WHERE p < 2 AND*", "INSERT INTO*"
)
@pytest.mark.parametrize(
    ("statement", "is_early", "partitions"),
    [
        ("UPDATE {t} SET v = gate(v) WHERE id = 1 AND p = 1", True, ["1"]),
        ("UPDATE {t} SET v = gate(v) WHERE id = 1 AND p IN (1, 9)", False, ["1", "9"]),
        ("UPDATE {t} SET v = gate(v) WHERE id = 1 AND p < 2", False, []),
        ("UPDATE {t} SET v = gate(v), p = 9 WHERE id = 1 AND p = 1", True, []),
        ("UPDATE {t} SET v = gate(v), id = (SELECT min(id) FROM {t}) WHERE id = 1 AND p = 1",
         True, []),
        ("MERGE INTO {t} USING (SELECT 1 AS id) s ON {t}.id = s.id AND p = 1 "
         "WHEN MATCHED THEN UPDATE SET v = gate(v)", True, []),
        ("INSERT OVERWRITE {t} PARTITION (p = 1) SELECT id, gate(v) FROM {t} "
         "WHERE p = 1 AND id = 1", False, ["1"]),
        ("INSERT OVERWRITE {t} PARTITION (p = 1) SELECT id, gate(v) FROM {t} "
         "WHERE p < 2 AND id = 1", False, []),
        ("INSERT INTO {t} SELECT id, gate(v), p FROM {t} WHERE p = 1 AND id = 1", False, []),
    ],
)  # fmt: skip
def test_what_a_second_run_claims(
    spark: SparkSession, table_path: Path, statement: str, is_early: bool, partitions: list[str]
) -> None:
    """The claim covers all that the second run may read and write, not what the first one wrote."""
    table = table_of(
        spark, table_path / "t", "serializable", **{"delta.enableDeletionVectors": "false"}
    )
    with second_run(spark, table, table_path / "signs", statement, is_early=is_early) as errors:
        (shown,) = interlock.table(spark, str(table)).claims()
    assert set(errors) == {None}
    assert [partition["p"] for partition in shown.partitions] == partitions
    assert shown.until is not None
    assert shown.until - shown.since > timedelta(minutes=59)
    assert rows(spark, table) == deltalake_rows(table)
    assert (1, "XG") in [row[:2] for row in rows(spark, table)]
    assert latest_version(table) == 3


def test_a_delete_that_finds_nothing_claims_too(spark: SparkSession, table_path: Path) -> None:
    table = table_of(spark, table_path / "t", "maxcompute_delta")
    statement = "DELETE FROM {t} WHERE gate(v) = 'none' AND p = 1"
    with second_run(spark, table, table_path / "signs", statement) as errors:
        (shown,) = interlock.table(spark, str(table)).claims()
    assert set(errors) == {None}
    assert shown.partitions == ({"p": "1"},)
    assert latest_version(table) == 2


def test_a_second_run_does_not_wait_for_a_claim_by_hand(
    spark: SparkSession, table_path: Path
) -> None:
    """The claim is on another partition, so neither the run nor its commit waits."""
    table, other = table_of(spark, table_path / "t"), spark.newSession()
    statement = "UPDATE {t} SET v = gate(v) WHERE id = 1 AND p < 2"
    with (
        interlock.table(other, str(table)).claim(partition={"p": 2}, minutes=5),
        second_run(spark, table, table_path / "signs", statement) as errors,
    ):
        _, shown = interlock.table(spark, str(table)).claims()
        assert shown.until is not None
        assert shown.partitions == ()
    assert set(errors) == {None}
    assert rows(spark, table) == ((1, "XG", 1), (2, "b", 1), (3, "c", 2))


def _gate_behind_winner(value: str, signs: str) -> str:
    """Return at once before the winner's commit, and after it when `go` is there."""
    from pathlib import Path
    from time import sleep

    is_first = not Path(signs, "won").exists()
    Path(signs, "first" if is_first else "again").touch()
    while not is_first and not Path(signs, "go").exists():
        sleep(0.02)
    return value + "G"


@pytest.mark.variant_cases(but=["true"])
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_nobody_runs_more_than_twice(spark: SparkSession, table_path: Path, vectors: str) -> None:
    table = table_of(spark, table_path, **{"delta.enableDeletionVectors": vectors})
    again = spark.newSession()

    def add() -> None:
        for _ in range(2):
            again.sql(f"UPDATE {table} SET v = concat(v, '+') WHERE id = 1")

    with confs(again, {"spark.interlock.rerun.maxRuns": "2"}), running(*[add] * 3) as jobs:
        for job in jobs:
            job.result()
    assert rows(spark, table) == deltalake_rows(table)
    assert rows(spark, table)[0] == (1, "a" + "+" * 6, 1)
    assert latest_version(table) == 7
