"""Which jobs run together, and in which order they commit.

All jobs of a round start from one version of the table and write their data at the same time; they
commit one after the other, in the order below.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from typing import Literal

from interlock.demo.flights import Landing, Year
from interlock.demo.jobs import (
    Compact,
    Delete,
    DemoJob,
    Insert,
    Merge,
    Optimize,
    Overwrite,
    Update,
    Where,
)

_AIRPORTS = ("EWR", "JFK", "LGA")
_MONTHS = calendar.month_abbr


@dataclass(frozen=True)
class Round:
    """Jobs that run at the same time, the first commits first."""

    title: str
    jobs: tuple[DemoJob, ...]

    def on_stock(self) -> Round:
        """Return the round for a table without a policy, which only OPTIMIZE compacts."""
        jobs = (_optimize(job.month) if isinstance(job, Compact) else job for job in self.jobs)
        return Round(self.title, tuple(jobs))


def schedule(year: Year, landing: Landing) -> tuple[Round, ...]:
    """Return the rounds, with the files of their jobs written."""
    bring = _Deliveries(year, landing)
    return (
        Round(
            "every job in a month of its own",
            (
                Insert("INSERT INTO Dec (18:00 h)", landing.batch("hour-18", year.first_hour())),
                bring.reload(1),
                Delete("DELETE in Feb", Where(2, "tailnum", None)),
                Update("UPDATE in Mar", Where(3, "carrier", "UA"), -5),
                bring.corrections(5),
            ),
        ),
        Round("three airports feed December", tuple(bring.airport(origin) for origin in _AIRPORTS)),
        Round(
            "late flights of November, a re-load that has them too, a correction",
            (
                bring.late(11),
                bring.reload(11),
                Update("UPDATE in Nov", Where(11, "carrier", "UA"), -5),
            ),
        ),
        Round(
            "a re-load of October, then late flights that it has already",
            (bring.reload(10), bring.late(10)),
        ),
        Round(
            "OPTIMIZE beside other jobs, in two months",
            (bring.late(4), _optimize(4), _optimize(6), bring.reload(6)),
        ),
        Round(
            "a re-load of September behind two others",
            (
                _optimize(9),
                bring.late(9),
                bring.reload(9),
                Update("UPDATE in Sep", Where(9, "carrier", "UA"), -5),
            ),
        ),
        Round(
            "COMPACT beside other jobs, in four months",
            (
                _compact("MAJOR", 2),
                Update("UPDATE in Feb", Where(2, "carrier", "UA"), -5),
                _compact("MAJOR", 3),
                bring.late(3),
                Update("UPDATE in May", Where(5, "carrier", "AA"), -5),
                _compact("MINOR", 5),
                _compact("MINOR", 12),
                _compact("MAJOR", 12),
                Update("UPDATE in Dec", Where(12, "carrier", "UA"), -5),
            ),
        ),
        Round(
            "two carriers are corrected in August, beside OPTIMIZE",
            (
                Update("UPDATE in Aug (UA)", Where(8, "carrier", "UA"), -5),
                _optimize(8),
                Update("UPDATE in Aug (AA)", Where(8, "carrier", "AA"), -5),
            ),
        ),
    )


class _Deliveries:
    """Makes the jobs that bring flights."""

    def __init__(self, year: Year, landing: Landing) -> None:
        self._year = year
        self._landing = landing

    def late(self, month: int) -> DemoJob:
        batch = self._landing.batch(f"late-{month}", self._year.late(month))
        return Insert(f"INSERT INTO {_MONTHS[month]} (late)", batch)

    def airport(self, origin: str) -> DemoJob:
        batch = self._landing.batch(f"feed-{origin}", self._year.next_hours(origin))
        return Insert(f"INSERT INTO Dec ({origin})", batch)

    def reload(self, month: int) -> DemoJob:
        batch = self._landing.batch(f"reload-{month}", self._year.month(month))
        return Overwrite(f"INSERT OVERWRITE of {_MONTHS[month]}", month, batch)

    def corrections(self, month: int) -> DemoJob:
        frame = self._year.corrections(month, "UA", 7)
        batch = self._landing.batch(f"corrections-{month}", frame)
        return Merge(f"MERGE into {_MONTHS[month]}", month, batch)


def _compact(kind: Literal["MINOR", "MAJOR"], month: int) -> DemoJob:
    return Compact(f"COMPACT {kind} of {_MONTHS[month]}", month, kind)


def _optimize(month: int) -> DemoJob:
    return Optimize(f"OPTIMIZE of {_MONTHS[month]}", month)
