"""A table of four rows in one file, for the races that are judged by rows."""

from __future__ import annotations

from pathlib import Path

from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.support import Table, make_table

COLUMNS = "(id INT, v STRING, p INT) USING delta"
FILE = ((1, "a", 1), (2, "b", 1), (3, "c", 2), (4, "d", 2))
INSERT = "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2), (4, 'd', 2)"
X1 = "UPDATE {t} SET v = 'X' WHERE id = 1"


def one_file(spark: SparkSession, path: Path, *more: str, policy: str = "row_level") -> Table:
    """Make a table of that file, and run more statements on it."""
    return make_table(spark, path, policy=policy, columns=COLUMNS, statements=(INSERT, *more))


def changed(*new: tuple[int | None, str, int], without: tuple[int, ...] = ()) -> Rows:
    """Return the rows of the file with some replaced, added or left out, by their id."""
    by_id = {row[0]: row for row in FILE} | {row[0]: row for row in new}
    return in_order(tuple(row for key, row in by_id.items() if key not in without))


def register_is_even(spark: SparkSession) -> None:
    """Register `interlock_is_even`, a function that no commit evaluates again."""
    spark.udf.register("interlock_is_even", lambda number: number % 2 == 0, "boolean")
