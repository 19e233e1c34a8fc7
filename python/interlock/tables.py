"""`interlock.table`: a table's policy, and its compaction.

Everything here is a SQL statement, so it works in the same way on Spark Connect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATH = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_PART = r"(?:`(?:[^`]|``)+`|[^`.]+)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_POLICY = "interlock.policy"


@dataclass(frozen=True)
class CompactionResult:
    """What a compaction did.

    Attributes:
        version: the version of the table that it made; None if there was nothing to compact
        operation_class: its class under the table's policy: COMPACT_MINOR, COMPACT_MAJOR or
            MERGE_SMALLFILES
        files_in: how many files it compacted
        files_out: how many files it made of them
        bytes_in: the size of the former, in bytes
        bytes_out: the size of the latter, in bytes
        rows: how many live rows it wrote
        rows_purged: how many rows it left behind that deletion vectors had marked dead
        rebased_over: the versions of other jobs that it met and passed, oldest first

    """

    version: int | None
    operation_class: str
    files_in: int
    files_out: int
    bytes_in: int
    bytes_out: int
    rows: int
    rows_purged: int
    rebased_over: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """A Delta table; made by `interlock.table`.

    Attributes:
        spark: the session that its statements run in
        sql_name: what SQL calls it, safely quoted

    """

    spark: SparkSession
    sql_name: str

    @property
    def policy(self) -> str | None:
        """Read the name of the conflict policy in force, None if the table has none."""
        found = self.spark.sql(f"SHOW TBLPROPERTIES {self.sql_name}").collect()
        return next((str(row["value"]) for row in found if row["key"] == _POLICY), None)

    def compact(
        self, kind: Literal["minor", "major"], *, partition: Mapping[str, object] | None = None
    ) -> CompactionResult:
        """Run `ALTER TABLE ... COMPACT` as one transaction (docs/compaction.md).

        Args:
            kind: "minor" packs small files; "major" rewrites the whole scope and drops dead rows
                for good
            partition: values of partition columns, None being NULL; compacts what has them, the
                whole table by default. A value is a str, bool, int, float, Decimal, date or
                datetime; a datetime without time zone is in the session's

        Raises:
            ValueError: another kind, or an empty `partition`
            TypeError: a partition value that SQL has no literal for
            interlock.ConflictError: lost against another job; nothing of it is visible
            interlock.InterlockError: the table has no policy (INTERLOCK_POLICY_REQUIRED)

        """
        if kind not in ("minor", "major"):
            raise ValueError(f"kind must be 'minor' or 'major', not {kind!r}.")
        return self._alter(f"COMPACT {kind.upper()}", partition)

    def merge_small_files(
        self, *, partition: Mapping[str, object] | None = None
    ) -> CompactionResult:
        """Run `ALTER TABLE ... MERGE SMALLFILES`; arguments and errors are those of `compact`."""
        return self._alter("MERGE SMALLFILES", partition)

    def _alter(self, action: str, partition: Mapping[str, object] | None) -> CompactionResult:
        statement = f"ALTER TABLE {self.sql_name}{_partition_sql(partition)} {action}"
        (row,) = self.spark.sql(statement).collect()
        values: dict[str, Any] = row.asDict()
        values["operation_class"] = values.pop("class")
        values["rebased_over"] = tuple(values["rebased_over"])
        return CompactionResult(**values)


def table(spark: SparkSession, name: str) -> Table:
    """Name a Delta table; nothing is read until it is used.

    Args:
        spark: the session for its statements, classic or Connect
        name: a name such as "flights", "db.flights" or "delta.`/data/flights`", whose parts may be
            quoted as in SQL; or a path, that is anything that starts with "/" or a scheme as in
            "s3://"

    Raises:
        ValueError: `name` is neither

    """
    if _PATH.match(name):
        return Table(spark, f"delta.{_quoted(name)}")
    if not _NAME.fullmatch(name):
        raise ValueError(f"not a table's name or path: {name!r}")
    return Table(spark, ".".join(_quoted(_unquoted(part)) for part in re.findall(_PART, name)))


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _quoted(identifier: str) -> str:
    return f"`{identifier.replace('`', '``')}`"


def _partition_sql(partition: Mapping[str, object] | None) -> str:
    if partition is None:
        return ""
    if not partition:
        raise ValueError("partition names no column; leave it out to compact the whole table.")
    pairs = (f"{_quoted(column)} = {_literal(value)}" for column, value in partition.items())
    return f" PARTITION ({', '.join(pairs)})"


def _literal(value: object) -> str:
    """Write a value as SQL does."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str | float | Decimal):  # SQL has no literals for NaN and infinity
        return f"'{_escaped(str(value))}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    raise TypeError(f"a partition value must not be of type {type(value).__name__}: {value!r}")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
