"""An atomic block over two tables, beside a job that commits in the middle of it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

import interlock
from interlock.demo.flights import Batch
from interlock.demo.warehouse import Table, creation

_MONTH = 1
_PROPERTIES = {"interlock.exclusive": "true"}


@dataclass(frozen=True)
class Archived:
    """What became of a month that a block has moved to another table.

    Attributes:
        versions: those that the block has made, of the archive and of the table
        rows: how many the archive and the table have then
        expected: the same, as they should be

    """

    versions: tuple[int, ...]
    rows: tuple[int, int]
    expected: tuple[int, int]

    @property
    def ok(self) -> bool:
        """Tell whether no flight is missing or there twice."""
        return self.rows == self.expected


def archive(spark: SparkSession, tables: str, loaded: Batch, late: Batch) -> Archived:
    """Move the flights of January to an archive, while another job adds late ones to other months.

    Args:
        spark: a session with Interlock
        tables: the folder or URL in which the tables are made
        loaded: the flights of the table at first
        late: those that the other job adds

    """
    flights, archived = (Table(spark, f"{tables}/{name}") for name in ("flights", "archive"))
    spark.sql(creation(flights.sql, "row_level", loaded, _PROPERTIES))
    spark.sql(f"{creation(archived.sql, 'row_level', loaded, _PROPERTIES)} WHERE false")
    month = f"month = {_MONTH}"
    with interlock.transaction(spark) as block:
        spark.sql(f"INSERT INTO {archived.sql} SELECT * FROM {flights.sql} WHERE {month}")
        spark.newSession().sql(f"INSERT INTO {flights.sql} SELECT * FROM {late.sql}")
        spark.sql(f"DELETE FROM {flights.sql} WHERE {month}")
    moved = int((loaded.frame["month"] == _MONTH).sum())
    rows = (spark.table(table.sql).count() for table in (archived, flights))
    kept = len(loaded.frame) - moved + len(late.frame)
    return Archived(tuple(block.versions.values()), (next(rows), next(rows)), (moved, kept))
