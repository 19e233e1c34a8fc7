"""Races on one file of four rows, of which the later job compares the table with a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from interlock.errors import ConflictError
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.log_replay import check_log
from tests.kit.one_file import FILE, one_file
from tests.kit.support import deltalake_rows, latest_version, rows, sql_race

# It reads a row of the table, so it does not count as committed after the later job.
NEW = "INSERT INTO {{t}} SELECT {0}, 'new', 3 FROM {{t}} WHERE id = 1"
BOTH = None
APPEND, DELETE = "ConcurrentAppendError", "ConcurrentDeleteReadError"


def ids(*values: int | str) -> str:
    """A source of ids."""
    return "SELECT col1 AS id FROM VALUES " + ", ".join(f"({value})" for value in values)


@dataclass(frozen=True)
class Case:
    """Two statements.

    Attributes:
        fails: the error of the later one, with what it says and the row of its source that it
            shows; None if both succeed
        rows: the rows in the end

    """

    id: str
    earlier: str
    later: str
    fails: tuple[str, str, str | None] | None
    rows: Rows

    def check(self, spark: SparkSession, path: Path) -> str:
        """Let both commit, assert how that ends, and return what the error says."""
        table = one_file(spark, path)
        first, second = sql_race(spark, table, self.earlier, self.later)
        assert first.error is None
        assert second.held
        if self.fails is None:
            assert second.error is None
        else:
            assert isinstance(second.error, ConflictError)
            error, why, source_row = self.fails
            assert type(second.error).__name__ == error
            assert why in str(second.error)
            assert second.error.source_rows == (() if source_row is None else (source_row,))
            assert latest_version(table) == 2
        assert rows(spark, table) == deltalake_rows(table) == in_order(self.rows)
        assert rows(spark, table, version=1) == FILE
        check_log(table)
        return str(second.error)
