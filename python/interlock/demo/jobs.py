"""The kinds of jobs: the statement that runs in Spark, and its effect in pandas.

In pandas, rows are identified by their index. A job is computed from the rows that it *read* and
changes
the rows that are *live* when it commits: what an INSERT brings is added to them, an UPDATE or a
DELETE changes those that it read, an OVERWRITE replaces all that are live in its month.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import pandas as pd

from interlock.demo.flights import KEY, Batch


class DemoJob(Protocol):
    """A job of the pipeline."""

    @property
    def name(self) -> str:
        """Return what the report calls it."""

    def sql(self, table: str) -> str:
        """Return its statement."""

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Return the live rows after its commit; changes neither frame."""


@dataclass(frozen=True)
class Where:
    """The rows of one month in which a column has one value, NULL if that is None."""

    month: int
    column: str
    value: str | None

    @property
    def sql(self) -> str:
        """Return the condition of a statement."""
        is_value = "IS NULL" if self.value is None else f"= '{self.value}'"
        return f"month = {self.month} AND {self.column} {is_value}"

    def ids(self, frame: pd.DataFrame) -> pd.Index:
        """Return the index of the rows in a frame."""
        column = frame[self.column]
        matches = column.isna() if self.value is None else column == self.value
        return frame.index[matches & (frame["month"] == self.month)]


@dataclass(frozen=True)
class Insert:
    """Adds a batch."""

    name: str
    batch: Batch

    def sql(self, table: str) -> str:
        """Return the statement."""
        return f"INSERT INTO {table} BY NAME SELECT * FROM {self.batch.sql}"

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Add the batch."""
        return _with_new(self.batch.frame, read, live)


@dataclass(frozen=True)
class Overwrite:
    """Replaces a month by a batch."""

    name: str
    month: int
    batch: Batch

    def sql(self, table: str) -> str:
        """Return the statement."""
        return (
            f"INSERT OVERWRITE {table} PARTITION (month = {self.month}) BY NAME "
            f"SELECT * EXCEPT (month) FROM {self.batch.sql}"
        )

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Remove the month's live rows, even those that were not read, and add the batch."""
        return _with_new(self.batch.frame, read, live[live["month"] != self.month])


@dataclass(frozen=True)
class Update:
    """Moves the delay on arrival of some flights."""

    name: str
    where: Where
    minutes: int

    def sql(self, table: str) -> str:
        """Return the statement."""
        return f"UPDATE {table} SET arr_delay = arr_delay + {self.minutes} WHERE {self.where.sql}"

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Change the rows that it read."""
        ids = self.where.ids(read)
        return _with_delays(read.loc[ids, "arr_delay"] + self.minutes, live)


@dataclass(frozen=True)
class Delete:
    """Removes some flights."""

    name: str
    where: Where

    def sql(self, table: str) -> str:
        """Return the statement."""
        return f"DELETE FROM {table} WHERE {self.where.sql}"

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Remove the rows that it read."""
        return live.drop(self.where.ids(read), errors="ignore")


@dataclass(frozen=True)
class Merge:
    """Takes the delays on arrival of a month from a batch, and adds the flights that are new."""

    name: str
    month: int
    batch: Batch

    def sql(self, table: str) -> str:
        """Return the statement; the month in its condition keeps it to one partition."""
        same = " AND ".join(f"t.{column} = s.{column}" for column in KEY)
        return (
            f"MERGE INTO {table} t USING {self.batch.sql} s ON t.month = {self.month} AND {same} "
            "WHEN MATCHED THEN UPDATE SET arr_delay = s.arr_delay WHEN NOT MATCHED THEN INSERT *"
        )

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Change the rows that it read, and add the flights that it did not find."""
        month = read[read["month"] == self.month]
        found = month[KEY].reset_index().merge(self.batch.frame[[*KEY, "arr_delay"]], on=KEY)
        changed = _with_delays(found.set_index("index")["arr_delay"], live)
        known = pd.MultiIndex.from_frame(month[KEY])
        is_new = ~pd.MultiIndex.from_frame(self.batch.frame[KEY]).isin(known)
        return _with_new(self.batch.frame[is_new], read, changed)


@dataclass(frozen=True)
class Optimize:
    """Compacts the small files of a month."""

    name: str
    month: int

    def sql(self, table: str) -> str:
        """Return the statement."""
        return f"OPTIMIZE {table} WHERE month = {self.month}"

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Change nothing."""
        return live


@dataclass(frozen=True)
class Compact:
    """Compacts a month: its small files, or all of it."""

    name: str
    month: int
    kind: Literal["MINOR", "MAJOR"]

    def sql(self, table: str) -> str:
        """Return the statement, which needs a table with a policy."""
        return f"ALTER TABLE {table} PARTITION (month = {self.month}) COMPACT {self.kind}"

    def replay(self, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
        """Change nothing."""
        return live


def _with_new(rows: pd.DataFrame, read: pd.DataFrame, live: pd.DataFrame) -> pd.DataFrame:
    """Add rows, under an index that no row has which this or a concurrent job read."""
    first = max(read.index.max(), live.index.max()) + 1
    return pd.concat([live, rows.set_axis(range(first, first + len(rows)))])


def _with_delays(delays: pd.Series, live: pd.DataFrame) -> pd.DataFrame:
    """Set the delay on arrival of those rows that are still live."""
    here = delays[delays.index.isin(live.index)]
    changed = live.copy()
    changed.loc[here.index, "arr_delay"] = here
    return changed
