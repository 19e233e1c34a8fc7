"""Runs the schedule on one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from interlock.demo.jobs import DemoJob
from interlock.demo.replay import Replay, Totals
from interlock.demo.schedule import Round
from interlock.demo.warehouse import Table
from interlock.errors import ConflictError
from interlock.lab.race import Job, JobResult, run_in_order


@dataclass(frozen=True)
class Outcome:
    """How one job ended.

    Attributes:
        job: the job
        operation_class: its class, None where nobody said: the table has no policy, or the job
            failed in one of Delta's own checks
        started_at: the version of the table that it read
        version: the version that it made, None if it lost
        rebased_over: versions of jobs that it met and passed
        rule: the policy's cell that decided, or the exception of a job that lost

    """

    job: DemoJob
    operation_class: str | None
    started_at: int
    version: int | None
    rebased_over: str | None
    rule: str | None

    @property
    def ok(self) -> bool:
        """Tell whether the job succeeded."""
        return self.version is not None


@dataclass(frozen=True)
class RunResult:
    """What came of the schedule on one table.

    Attributes:
        policy: the policy of the table, None for stock Delta
        outcomes: all jobs, in commit order
        found: what the table holds
        expected: what the replay says

    """

    policy: str | None
    outcomes: tuple[Outcome, ...]
    found: Totals
    expected: Totals

    @property
    def title(self) -> str:
        """Return what the run is called."""
        return self.policy or "stock Delta"

    @property
    def lost(self) -> int:
        """Count the jobs that failed."""
        return sum(not outcome.ok for outcome in self.outcomes)

    @property
    def lost_without_rule(self) -> int:
        """Count the jobs that failed under a policy, but not by it."""
        failed = [outcome for outcome in self.outcomes if not outcome.ok]
        return sum(self.policy is not None and job.operation_class is None for job in failed)

    @property
    def ok(self) -> bool:
        """Tell whether the table holds what the replay says."""
        return self.found == self.expected


def run_schedule(
    spark: SparkSession,
    table: Table,
    rounds: Sequence[Round],
    replay: Replay,
    *,
    policy: str | None,
    on_round: Callable[[Round, Sequence[Outcome]], None],
) -> RunResult:
    """Run all rounds on a table and compare it with the replay of the jobs that succeeded."""
    outcomes: list[Outcome] = []
    for current in rounds:
        ended = run_round(spark, table, current)
        replay.round([outcome.job for outcome in ended if outcome.ok])
        on_round(current, ended)
        outcomes += ended
    return RunResult(policy, tuple(outcomes), table.totals(spark), replay.totals)


def run_round(spark: SparkSession, table: Table, current: Round) -> list[Outcome]:
    """Run the jobs of a round at the same time, with their commits in the round's order."""
    started_at = table.version
    results = run_in_order(
        spark,
        [_as_race_job(job, table) for job in current.jobs],
        latest_version=lambda: table.version,
    )
    return [
        outcome_of(job, result, table, started_at)
        for job, result in zip(current.jobs, results, strict=True)
    ]


def outcome_of(job: DemoJob, result: JobResult, table: Table, started_at: int) -> Outcome:
    """Read from the table's log, or from the exception, how a job ended.

    Any other failure than a lost race is raised.
    """
    error = result.error
    if isinstance(error, ConflictError):
        return _lost(job, error, started_at)
    if error is not None:
        raise error
    if result.version is None:
        raise RuntimeError(f"{job.name} succeeded without a version.")
    info = table.commit_info(result.version)
    tags = info.get("tags") or {}
    return Outcome(
        job,
        tags.get("interlock.class"),
        info["readVersion"],
        result.version,
        tags.get("interlock.rebasedOver"),
        tags.get("interlock.rule"),
    )


def _lost(job: DemoJob, error: ConflictError, started_at: int) -> Outcome:
    read = started_at if error.read_version is None else error.read_version
    exception = _exception_name(error)
    rule = f"{error.rule}, {exception.removesuffix('Exception')}" if error.rule else exception
    return Outcome(job, error.later_class, read, None, None, rule)


def _exception_name(error: ConflictError) -> str:
    """Name the exception of Delta's that the error is."""
    names = [kind.__name__ for kind in type(error).__mro__]
    return next(name for name in names if name.endswith("Exception"))


def _as_race_job(job: DemoJob, table: Table) -> Job:
    return Job(job.name, lambda spark: spark.sql(job.sql(table.sql)))
