"""Scripts that lose and are run again as a whole: `rerun.maxRuns` for `BEGIN ATOMIC`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import interlock
import pytest
from interlock.errors import ConflictError
from pyspark.sql import SparkSession

from tests.blocks.several_tables import START, Make, begin, check, make_in
from tests.kit.foreign import added, commit_by_hand, copy, remove
from tests.kit.gates import _Gate
from tests.kit.support import (
    Table,
    confs,
    in_a_micro_batch,
    latest_version,
    log_of,
    rows,
    tags,
    unknown_files,
)

RERUN = "io.interlock.spark.statements.Rerun"
MAX_RUNS = "spark.interlock.rerun.maxRuns"
Act = Callable[[], object]


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Make]:
    def make(name: str, policy: str = "row_level", **more: str) -> Table:
        return make_in(spark, tmp_path, name, policy, **more)

    with confs(spark, {MAX_RUNS: "2"}):
        yield make
    spark.sql("ROLLBACK")


class _Steps(_Gate):
    """Acts before the nth statement of the thread is staged, or its block commits."""

    def __init__(self, spark: SparkSession, acts: dict[int, Act]) -> None:
        super().__init__(spark)
        self._acts = acts
        self.count = 0

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        self.count += 1
        with ThreadPoolExecutor(1) as thread:  # here it would be a part of the block's statement
            thread.submit(self._acts.get(self.count, lambda: None)).result()
        return super().preparingCommit(prepare)

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)


@contextmanager
def acting(spark: SparkSession, acts: dict[int, Act]) -> Iterator[_Steps]:
    steps = _Steps(spark, acts)
    steps.install()
    try:
        yield steps
    finally:
        steps.uninstall()


def update(spark: SparkSession, table: Table) -> Act:
    """A winner against whoever changes row 1."""
    return lambda: spark.newSession().sql(f"UPDATE {table} SET v = 100 WHERE id = 1")


def rewrite(table: Table, version: int) -> Act:
    """Another writer, who waits for no claim and moves the rows of a version to another file."""

    def act() -> None:
        (add,) = added(table, version)
        commit_by_hand(table, "UPDATE", remove(add), copy(table, add, {}))

    return act


def claims(spark: SparkSession, *tables: Table) -> list[int]:
    other = spark.newSession()
    return [other.sql(f"CALL interlock.claims('{table}')").count() for table in tables]


def atomic(*statements: str) -> str:
    return f"BEGIN ATOMIC {'; '.join(statements)}; END"


def test_the_second_run_reads_what_the_winner_wrote(spark: SparkSession, make: Make) -> None:
    """Also what the script has in variables."""
    table = make("t")
    script = atomic(
        "DECLARE total BIGINT",
        f"SET total = (SELECT sum(v) FROM {table})",
        f"INSERT INTO {table} SELECT id + 10, v FROM {table} WHERE id = 1",
        f"INSERT INTO {table} VALUES (4, total)",
        f"UPDATE {table} SET v = v + 1 WHERE id = 1",
        "SELECT total",
    )
    with log_of(spark, RERUN) as told, acting(spark, {1: update(spark, table)}) as steps:
        assert [tuple(row) for row in spark.sql(script).collect()] == [(150,)]
    assert steps.count == 8
    check(spark, table, ((1, 101), *START[1:], (4, 150), (11, 100)), 3)
    assert "interlock.block" in tags(table, 3)
    assert str(told).count("\n") == 1
    assert "lost against version 2 and runs again (run 2 of at most 2)" in str(told)


def test_the_change_feed_is_that_of_the_second_run(spark: SparkSession, make: Make) -> None:
    table = make("t", **{"delta.enableChangeDataFeed": "true"})
    script = atomic(
        f"INSERT INTO {table} VALUES (4, 40)",
        f"UPDATE {table} SET v = v + 1 WHERE id IN (1, 4)",
    )
    with acting(spark, {1: update(spark, table)}):
        spark.sql(script)
    check(spark, table, ((1, 101), *START[1:], (4, 41)), 3)
    changes = f"SELECT id, v, _change_type FROM table_changes('{table}', 3) ORDER BY id, v"
    assert [tuple(row) for row in spark.sql(changes).collect()] == [
        (1, 100, "update_preimage"),
        (1, 101, "update_postimage"),
        (4, 41, "insert"),
    ]


def test_the_last_error_names_the_winners_of_all_runs(spark: SparkSession, make: Make) -> None:
    table = make("t", **{"delta.enableDeletionVectors": "false"})
    held: list[int] = []
    acts = {
        1: update(spark, table),
        4: lambda: held.extend(claims(spark, table)),
        5: rewrite(table, 2),
    }
    script = atomic(
        f"UPDATE {table} SET v = v + 1 WHERE id = 1",
        f"INSERT INTO {table} VALUES (4, 40)",
    )
    with (
        acting(spark, acts) as steps,
        pytest.raises(ConflictError, match=r"this was run 2, .* lost against version 2") as lost,
    ):
        spark.sql(script)
    assert (steps.count, held) == (6, [1])
    assert lost.value.winner_version == 3
    assert rows(spark, table) == ((1, 100), *START[1:])
    assert latest_version(table) == 3
    assert unknown_files(table) == []
    assert claims(spark, table) == [0]


def test_a_block_over_two_tables(spark: SparkSession, make: Make) -> None:
    """From the second run on it claims both. It loses in one and then in the other, each time as it
    first reads it; the second time it has reserved a version of the first table.
    """
    a, b = make("a"), make("b", **{"delta.enableDeletionVectors": "false"})
    held: list[list[int]] = []

    def claimed() -> None:
        held.append(claims(spark, a, b))

    acts = {1: update(spark, a), 5: claimed, 6: rewrite(b, 1), 9: claimed}
    script = atomic(*(f"UPDATE {table} SET v = v + 1 WHERE id = 1" for table in (a, b)))
    with confs(spark, {MAX_RUNS: "3"}), acting(spark, acts) as steps:
        spark.sql(script)
    assert steps.count == 12
    assert held == [[1, 1]] * 2
    check(spark, a, ((1, 101), *START[1:]), 5)
    assert rows(spark, b) == ((1, 11), *START[1:])
    assert latest_version(b) == 4
    assert tags(a, 5)["interlock.block"] == tags(b, 4)["interlock.block"]
    assert claims(spark, a, b) == [0, 0]
    found = spark.sql(f"CALL interlock.blocks('{a}')").select("version", "state").collect()
    assert [tuple(row) for row in found] == [(5, "committed"), (3, "rolled back")]


@pytest.mark.parametrize(("runs", "again"), [("2", True), ("1", False)])
def test_each_table_must_permit_it(spark: SparkSession, make: Make, runs: str, again: bool) -> None:
    a, b = make("a"), make("b", **{"interlock.rerun.maxRuns": runs})
    script = atomic(f"UPDATE {a} SET v = v + 1 WHERE id = 1", f"INSERT INTO {b} VALUES (4, 40)")
    with (
        acting(spark, {1: update(spark, a)}),
        nullcontext() if again else pytest.raises(ConflictError),
    ):
        spark.sql(script)
    check(spark, a, ((1, 100 + again), *START[1:]), 2 + 2 * again)
    check(spark, b, (*START, (4, 40)) if again else START, 1 + 2 * again)


CHANGES = {
    "view": "CREATE OR REPLACE TEMPORARY VIEW of_script AS SELECT 1 AS one",
    "use": "USE default",
    "setting": "EXECUTE IMMEDIATE 'SET spark.sql.session.timeZone = UTC'",
}


@pytest.mark.variant_cases(but=["rand", "numbered", "python", "view"])
@pytest.mark.parametrize(
    "case", ["rand", "variable", "stream", "numbered", "session", "python", *CHANGES]
)
def test_what_is_not_run_again(spark: SparkSession, make: Make, case: str) -> None:
    table = make("t")
    spark.sql("DECLARE OR REPLACE VARIABLE runs INT DEFAULT 0")
    statements = [
        f"UPDATE {table} SET v = v + 1 WHERE id = 1",
        f"INSERT INTO {table} VALUES (9, 9)",
    ]
    if case == "rand":
        statements.append(f"INSERT INTO {table} SELECT id, v FROM {table} WHERE rand() >= 0")
    statements += [CHANGES[case]] if case in CHANGES else []
    if case == "variable":
        statements.append("SET session.runs = runs + 1")

    def run() -> None:
        if case == "session":
            begin(spark, *statements)
            spark.sql("COMMIT")
        elif case == "python":
            with interlock.transaction(spark):
                for statement in statements:
                    spark.sql(statement)
        else:
            spark.sql(atomic(*statements))

    reset = {"spark.databricks.delta.write.txnVersion.autoReset.enabled": "true"}
    with (
        acting(spark, {1: update(spark, table)}),
        in_a_micro_batch(spark) if case == "stream" else nullcontext(),
        confs(spark, reset if case == "numbered" else {}),
        pytest.raises(ConflictError) as lost,
    ):
        run()
    assert "this was run" not in str(lost.value)
    check(spark, table, ((1, 100), *START[1:]), 2)
    done = spark.sql("SELECT runs").collect()[0][0]
    assert done == (case == "variable")
    spark.sql("DROP TEMPORARY VARIABLE runs")
