"""The race driver forces commit orders and never hangs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import interlock
import pytest
from interlock.lab.example import PLAIN, Tables
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    latest_version,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
)


def test_three_jobs_commit_in_the_order_given(spark: SparkSession, tables: Tables) -> None:
    policy = {"interlock.policy": "maxcompute_transactional"}
    table = Table(tables.fresh(PLAIN, policy))
    done = sql_race(
        spark,
        table,
        "INSERT INTO {t} VALUES (4, 'd')",
        "INSERT OVERWRITE {t} VALUES (5, 'e')",
        "DELETE FROM {t} WHERE id = 1",
    )
    assert [job.version for job in done] == [3, 4, None]
    assert [job.held for job in done] == [False, True, True]
    assert isinstance(done[2].error, interlock.ConflictError)
    assert done[2].error.read_version == 2
    assert rows(spark, table) == ((5, "e"),)


def test_jobs_are_statements_functions_or_named(spark: SparkSession, example: Table) -> None:
    def append(session: SparkSession) -> None:
        session.createDataFrame([(4, "d")], "id INT, v STRING").write.format("delta").mode(
            "append"
        ).save(str(example.path))

    update = f"UPDATE {example} SET v = 'u' WHERE id = 1"
    done = interlock.race(spark, update, append, interlock.Job("count", lambda s: s.range(1)))
    assert [job.name for job in done] == [update, "append", "count"]
    assert [job.ok for job in done] == [True, False, True]
    assert [job.held for job in done] == [False, True, False]
    assert isinstance(done[1].error, interlock.ConflictError)
    assert done[1].error.rule == "D12"


def test_an_interrupt_lets_nobody_commit_out_of_order(spark: SparkSession, example: Table) -> None:
    def interrupted(session: SparkSession) -> None:
        raise KeyboardInterrupt

    inserts = (f"INSERT INTO {example} VALUES ({n}, 'x')" for n in (4, 5))
    with pytest.raises(KeyboardInterrupt):
        interlock.race(spark, interrupted, *inserts)
    assert latest_version(example) == 2
    assert rows(spark, example) == ((1, "a"), (2, "b"), (3, "c"))


def test_a_function_whose_work_has_not_begun_is_an_error(spark: SparkSession) -> None:
    def lazy(session: SparkSession) -> Iterator[object]:
        yield session.range(1)

    async def lazy_too(session: SparkSession) -> AsyncIterator[object]:
        yield session.range(1)

    for job in (lazy, lazy_too):
        (done,) = interlock.race(spark, job)
        assert isinstance(done.error, interlock.ArgumentError)
        assert "must be a function that does its work" in str(done.error)


def test_what_is_no_job_is_refused(spark: SparkSession) -> None:
    with pytest.raises(interlock.ArgumentError, match="jobs must be statements, functions or Jobs"):
        interlock.race(spark, "SELECT 1", 3)  # type: ignore[arg-type]
    with pytest.raises(interlock.ArgumentError, match="jobs must be at least one"):
        interlock.race(spark)


def test_a_job_that_fails_before_its_gate_holds_nobody_up(
    spark: SparkSession, example: Table
) -> None:
    first, second = sql_race(spark, example, "DELETE FROM {t} WHERE id = 1", "SELECT no_column")
    assert first.version == 3
    assert isinstance(second.error, AnalysisException)
    assert (second.held, second.version) == (False, None)


def test_a_first_job_that_fails_lets_the_second_go(spark: SparkSession, example: Table) -> None:
    earlier = python_job("broken", lambda spark: 1 / 0)
    later = sql_job(f"INSERT INTO {example} VALUES (4, 'd')")
    first, second = race(spark, earlier, later, latest_version=lambda: latest_version(example))
    assert isinstance(first.error, ZeroDivisionError)
    assert (first.version, second.version) == (None, 3)
