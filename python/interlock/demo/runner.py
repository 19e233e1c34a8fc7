"""Runs the schedule on one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from interlock._races import Job, JobResult, race
from interlock.demo.jobs import DemoJob
from interlock.demo.replay import Replay, Totals
from interlock.demo.schedule import Round
from interlock.demo.warehouse import Table
from interlock.errors import ConflictError


@dataclass(frozen=True)
class Outcome:
    """How one job ended.

    Attributes:
        job: the job
        operation_class: its class, None if it is not known: the table has no policy, or the job
            failed in one of Delta's own checks
        started_at: the version of the table that it read
        version: the version that it made, None if it lost
        winners: versions of jobs that it passed, or that it lost against
        rule: the cells of the policy by which it passed, or their verdicts if they have no
            numbers; the cell, if it has one, and the exception of a job that lost

    """

    job: DemoJob
    operation_class: str | None
    started_at: int
    version: int | None
    winners: str | None
    rule: str | None

    @property
    def ok(self) -> bool:
        """Tell whether the job succeeded."""
        return self.version is not None


class Progress(Protocol):
    """Receives the progress of a run."""

    def begin(self, run: Run, number: int) -> None:
        """Take note that a round begins; the first is 1."""

    def end(self, outcomes: Sequence[Outcome]) -> None:
        """Take note of the outcomes of the round's jobs."""


class Run:
    """The schedule on one table: the plan, and the outcomes so far.

    Attributes:
        policy: the policy of the table, None for stock Delta
        rounds: the rounds to run
        outcomes: the jobs of all rounds that have ended, in commit order
        found: the table's totals at the end, None before
        expected: the replay's totals, None before

    """

    def __init__(self, policy: str | None, rounds: Sequence[Round]) -> None:
        self.policy = policy
        self.rounds = [current if policy else current.on_stock() for current in rounds]
        self.outcomes: list[Outcome] = []
        self.found: Totals | None = None
        self.expected: Totals | None = None

    def go(self, table: Table, replay: Replay, progress: Progress) -> None:
        """Run all rounds on a table and compare it with the replay of the jobs that succeeded."""
        for number, current in enumerate(self.rounds, 1):
            progress.begin(self, number)
            ended = run_round(table, current)
            replay.round([outcome.job for outcome in ended if outcome.ok])
            self.outcomes += ended
            progress.end(ended)
        self.found, self.expected = table.totals(), replay.totals

    @property
    def title(self) -> str:
        """Return what the run is called."""
        return self.policy or "stock Delta"

    @property
    def jobs(self) -> int:
        """Count the jobs that are planned."""
        return sum(len(current.jobs) for current in self.rounds)

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
        return self.found is not None and self.found == self.expected


def run_round(table: Table, current: Round) -> list[Outcome]:
    """Run the jobs of a round at the same time, with their commits in the round's order."""
    started_at = table.version
    jobs = (_as_race_job(job, table) for job in current.jobs)
    results = race(table.spark, *jobs, latest_version=lambda: table.version)
    return [
        outcome_of(job, result, table, started_at)
        for job, result in zip(current.jobs, results, strict=True)
    ]


def outcome_of(job: DemoJob, result: JobResult, table: Table, started_at: int) -> Outcome:
    """Read from the table's log, or from the exception, how a job ended.

    A failure that is not a lost race is raised again.
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
    rules = tags.get("interlock.rules")
    return Outcome(
        job,
        tags.get("interlock.class"),
        info["readVersion"],
        result.version,
        tags.get("interlock.winners"),
        rules if _is_numbered(rules) else tags.get("interlock.verdicts"),
    )


def _lost(job: DemoJob, error: ConflictError, started_at: int) -> Outcome:
    read = started_at if error.read_version is None else error.read_version
    exception = _exception_name(error)
    short = exception.removesuffix("Exception")
    rule = f"{error.rule}, {short}" if _is_numbered(error.rule) else exception
    winner = None if error.winner_version is None else str(error.winner_version)
    return Outcome(job, error.operation_class, read, None, winner, rule)


def _is_numbered(rules: str | None) -> bool:
    """Tell whether cells have numbers, as those of the documents; the others name two classes."""
    return rules is not None and "->" not in rules


def _exception_name(error: ConflictError) -> str:
    """Name the exception of Delta's that the error is."""
    names = [kind.__name__ for kind in type(error).__mro__]
    return next(name for name in names if name.endswith("Exception"))


def _as_race_job(job: DemoJob, table: Table) -> Job:
    return Job(job.name, lambda spark: spark.sql(job.sql(table.sql)))
