"""What the demo prints, as it goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from interlock.demo.archive import Archived
from interlock.demo.runner import Outcome, Run

_COLUMNS = {
    "job": 26,
    "class": 16,
    "started": 7,
    "outcome": 7,
    "version": 7,
    "winners": 12,
    "rule": 31,
}
_SUMMARY = {"run": 32, "jobs": 8, "lost": 5, "rows": 9, "flights twice": 13, "pandas replay": 13}

NOT_RUN = "not run"
_SECONDS_PER_JOB = 1.7
"""What a job takes on two free cores, its part of all else included."""

_WHY_TWICE = """
flights twice: a late INSERT INTO committed after an INSERT OVERWRITE that had brought the same
flights. The INSERT does what it says; rule D2 of maxcompute_delta is there to fail it."""

_DELTAS_OWN = (
    "LOST without a class: one of Delta's own checks failed the job, not a rule of the policy."
)


class Report:
    """Writes progress, tables and the summary to standard output."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def step(self, text: str) -> None:
        """Say what happens next, and how long everything took so far."""
        _print(f"[{time.monotonic() - self._start:5.1f} s] {text}")

    def plan(self, runs: Sequence[Run]) -> None:
        """Say how much there is to do, and how long it takes."""
        jobs = sum(run.jobs for run in runs)
        minutes = ceil(jobs * _SECONDS_PER_JOB / 60)
        rounds = sum(len(run.rounds) for run in runs)
        self.step(
            f"{jobs} jobs in {rounds} rounds: about {minutes} min on two free cores, "
            "longer on busy ones; Ctrl-C ends it early"
        )

    def head(self, title: str) -> None:
        """Begin the table of a run."""
        _print("")
        self.step(title)
        _print(_row(_COLUMNS, list(_COLUMNS)))
        _print(_row(_COLUMNS, ["-" * width for width in _COLUMNS.values()]))

    def begin(self, run: Run, number: int) -> None:
        """Say which round runs now."""
        current = run.rounds[number - 1]
        done = len(run.outcomes)
        jobs = f"jobs {done + 1} to {done + len(current.jobs)} of {run.jobs}"
        _print(f"-- round {number} of {len(run.rounds)}, {jobs}: {current.title}")

    def end(self, outcomes: Sequence[Outcome]) -> None:
        """Show the jobs of the round."""
        for outcome in outcomes:
            _print(_row(_COLUMNS, _cells(outcome)))

    def check(self, run: Run) -> None:
        """Say whether the table holds what the replay says, and if not, where they differ."""
        assert run.found is not None
        assert run.expected is not None
        if run.lost_without_rule:
            _print(_DELTAS_OWN)
        if run.ok:
            self.step(
                f"the table holds {run.found.rows:,} rows: "
                "each month's rows and sums are those of the pandas replay"
            )
        for difference in run.found.differences(run.expected):
            _print(f"WRONG in {run.title}: the table has {difference}")

    def drawn(self, run: Run, page: Path) -> None:
        """Say where the page with the jobs of a run is."""
        _print("")
        self.step(f"the jobs of {run.title} on a page: {page}")

    def archived(self, moved: Archived) -> None:
        """Say what became of the block of two tables."""
        _print("")
        self.step("an atomic block of two tables: January moves to an archive, beside an INSERT")
        there = "{:,} and {:,} rows".format
        found = f"its versions {' and '.join(map(str, moved.versions))} hold {there(*moved.rows)}"
        _print(found if moved.ok else f"WRONG: {found}, and not {there(*moved.expected)}")

    def summary(self, runs: Sequence[Run]) -> None:
        """Compare the runs; the last line tells how many jobs each lost."""
        _print("")
        _print(_row(_SUMMARY, list(_SUMMARY)))
        _print(_row(_SUMMARY, ["-" * width for width in _SUMMARY.values()]))
        for run in runs:
            _print(_row(_SUMMARY, _summary_cells(run)))
        if any(run.found.twice for run in runs if run.found):
            _print(_WHY_TWICE)
        _print("")
        lost = [f"{run.title} {run.lost} of {len(run.outcomes)}" for run in runs if run.outcomes]
        self.step(f"jobs lost: {', '.join(lost) or NOT_RUN}")
        left = sum(run.jobs - len(run.outcomes) for run in runs)
        if left:
            _print(f"{left} of {sum(run.jobs for run in runs)} jobs were {NOT_RUN}")


def _cells(outcome: Outcome) -> list[str]:
    return [
        outcome.job.name,
        outcome.operation_class or "-",
        str(outcome.started_at),
        "ok" if outcome.ok else "LOST",
        "-" if outcome.version is None else str(outcome.version),
        outcome.winners or "-",
        outcome.rule or "-",
    ]


def _summary_cells(run: Run) -> list[str]:
    jobs = len(run.outcomes)
    if run.found is None:
        ended = f"{jobs} of {run.jobs}" if jobs else NOT_RUN
        return [run.title, ended, str(run.lost) if jobs else "-", "-", "-", NOT_RUN]
    return [
        run.title,
        str(jobs),
        str(run.lost),
        f"{run.found.rows:,}",
        str(run.found.twice),
        "the same" if run.ok else "DIFFERS",
    ]


def _row(columns: dict[str, int], cells: list[str]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, columns.values(), strict=True))
    return "  ".join(padded).rstrip()


def _print(text: str) -> None:
    print(text, flush=True)
