"""What the demo prints, as it goes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from interlock.demo.runner import Outcome, RunResult
from interlock.demo.schedule import Round

_COLUMNS = {
    "job": 26,
    "class": 16,
    "started": 7,
    "outcome": 7,
    "version": 7,
    "rebased over": 12,
    "rule": 31,
}
_SUMMARY = {"run": 32, "jobs": 5, "lost": 5, "rows": 9, "flights twice": 13, "pandas replay": 13}

_WHY_TWICE = """
flights twice: a late INSERT INTO committed behind an INSERT OVERWRITE that had brought the same
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

    def head(self, title: str) -> None:
        """Begin the table of a run."""
        _print("")
        self.step(title)
        _print(_row(_COLUMNS, list(_COLUMNS)))
        _print(_row(_COLUMNS, ["-" * width for width in _COLUMNS.values()]))

    def round(self, current: Round, outcomes: Sequence[Outcome]) -> None:
        """Show the jobs of a round."""
        _print(f"-- {current.title}")
        for outcome in outcomes:
            _print(_row(_COLUMNS, _cells(outcome)))

    def check(self, run: RunResult) -> None:
        """Say whether the table holds what the replay says, and if not, where they differ."""
        if run.lost_without_rule:
            _print(_DELTAS_OWN)
        if run.ok:
            self.step(
                f"the table holds {run.found.rows:,} rows: "
                "each month's rows and sums are those of the pandas replay"
            )
        for difference in run.found.differences(run.expected):
            _print(f"WRONG in {run.title}: the table has {difference}")

    def summary(self, runs: Sequence[RunResult]) -> None:
        """Compare the runs; the last line tells how many jobs each lost."""
        _print("")
        _print(_row(_SUMMARY, list(_SUMMARY)))
        _print(_row(_SUMMARY, ["-" * width for width in _SUMMARY.values()]))
        for run in runs:
            _print(_row(_SUMMARY, _summary_cells(run)))
        if any(run.found.twice for run in runs):
            _print(_WHY_TWICE)
        _print("")
        lost = ", ".join(f"{run.lost} of {len(run.outcomes)} on {run.title}" for run in runs)
        self.step(f"jobs lost: {lost}")


def _cells(outcome: Outcome) -> list[str]:
    return [
        outcome.job.name,
        outcome.operation_class or "-",
        str(outcome.started_at),
        "ok" if outcome.ok else "LOST",
        "-" if outcome.version is None else str(outcome.version),
        outcome.rebased_over or "-",
        outcome.rule or "-",
    ]


def _summary_cells(run: RunResult) -> list[str]:
    return [
        run.title,
        str(len(run.outcomes)),
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
