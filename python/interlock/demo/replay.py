"""What a table must hold after the jobs that succeeded on it, computed in pandas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from interlock.demo.flights import KEY
from interlock.demo.jobs import DemoJob, Insert

SUMS = ("dep_delay", "arr_delay", "air_time", "distance")
"""The columns that are summed for each month."""


@dataclass(frozen=True)
class Totals:
    """The numbers that are compared between a table and its replay.

    Attributes:
        months: for each month its number of flights, and the sum of each column of `SUMS`
        twice: the number of flights that are there more than once

    """

    months: dict[int, tuple[int, ...]]
    twice: int

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return sum(month[0] for month in self.months.values())

    def differences(self, other: Totals) -> Iterator[str]:
        """Say in what another table's totals differ."""
        for month in sorted(self.months.keys() | other.months.keys()):
            mine, theirs = self.months.get(month), other.months.get(month)
            if mine != theirs:
                yield f"month {month}: {mine} and not {theirs} (rows, sums of {', '.join(SUMS)})"
        if self.twice != other.twice:
            yield f"flights that are there twice: {self.twice} and not {other.twice}"


class Replay:
    """The rows of a table, round by round.

    Args:
        loaded: what the table begins with
        appends_last: whether an INSERT that read nothing counts as committed after the jobs of its
            round, as under Delta's isolation levels; an INSERT OVERWRITE then does not replace its
            rows

    """

    def __init__(self, loaded: pd.DataFrame, *, appends_last: bool = False) -> None:
        self._live = loaded
        self._appends_last = appends_last

    def round(self, committed: list[DemoJob]) -> None:
        """Apply the jobs of a round that succeeded, in the order of their commits."""
        read = self._live
        if self._appends_last:
            committed = sorted(committed, key=lambda job: isinstance(job, Insert))
        for job in committed:
            self._live = job.replay(read, self._live)

    @property
    def totals(self) -> Totals:
        """Count what is there now."""
        grouped = self._live.groupby("month")
        counted = pd.concat([grouped.size(), grouped[list(SUMS)].sum()], axis=1)
        months = {int(row[0]): tuple(map(int, row[1:])) for row in counted.itertuples()}
        return Totals(months, int((self._live.groupby(KEY).size() > 1).sum()))
