"""`interlock.table`: a table's policy, versions, changes and upkeep.

Everything here is a SQL statement, so it works in the same way on Spark Connect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from interlock import changes, conversion, records
from interlock.audit import Conflicts, Explanation
from interlock.errors import ConflictError
from interlock.results import CompactionResult, Files, History, RestoreResult, Versions
from interlock.sql_text import literal, partition_clause, partition_map, reference, table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_POLICY = "interlock.policy"


@dataclass(frozen=True)
class Table:
    """A Delta table; made by `interlock.table`. It needs no policy, but for compactions.

    DataFrames are lazy: they read when they are used, and always the version they were made for.

    Attributes:
        spark: the session that its statements run in
        sql_name: what SQL calls it, safely quoted

    """

    spark: SparkSession
    sql_name: str

    @property
    def _reference(self) -> str:
        return reference(self.sql_name)

    @property
    def policy(self) -> str | None:
        """Read the name of the conflict policy in force, None if the table has none."""
        found = self.spark.sql(f"SHOW TBLPROPERTIES {self._reference}").collect()
        return next((str(row["value"]) for row in found if row["key"] == _POLICY), None)

    def set_policy(self, name: str | None) -> None:
        """Put the table under another conflict policy, under none with None.

        Raises:
            interlock.UsageError: there is no such policy, or the table cannot have it
            interlock.ConflictError: lost against another job

        """
        if name is None:
            change = f"UNSET TBLPROPERTIES IF EXISTS ({literal(_POLICY)})"
        else:
            change = f"SET TBLPROPERTIES ({literal(_POLICY)} = {literal(name)})"
        self.spark.sql(f"ALTER TABLE {self._reference} {change}")

    def history(
        self, *, partition: Mapping[str, object] | None = None, limit: int | None = None
    ) -> History:
        """Run `SHOW HISTORY`: the versions and what is known of each, newest first.

        Args:
            partition: values of partition columns, as for `compact`; only versions that changed
                files of these partitions, and only their rows and files
            limit: the newest so many

        """
        statement = f"SHOW HISTORY FOR TABLE {self._reference}{partition_clause(partition)}"
        if limit is not None:
            statement += f" LIMIT {limit:d}"
        return records.history(self.spark.sql(statement))

    def versions(self, *, limit: int | None = None) -> Versions:
        """Run `CALL interlock.versions`: the versions and their times, newest first.

        Args:
            limit: the newest so many

        """
        return records.versions(self._call("versions", limit=limit))

    def files(self, *, partition: Mapping[str, object] | None = None) -> Files:
        """Run `CALL interlock.files`: the live files, with what they were compacted from.

        Args:
            partition: values of partition columns, as for `compact`; only files that have them

        """
        return records.files(self._call("files", partition=partition))

    def conflicts(self, *, limit: int | None = None) -> Conflicts:
        """Run `CALL interlock.conflicts`: rejected and rebased commits, newest first.

        Args:
            limit: the newest so many

        """
        return records.conflicts(self._call("conflicts", limit=limit))

    def timeline(self, *, path: str | os.PathLike[str] = "timeline.html", limit: int = 200) -> Path:
        """Draw the table's jobs as a web page that needs no network, and return its path.

        Args:
            path: the file to write
            limit: the newest so many versions, and as many records of conflicts

        """
        from interlock import timeline

        name = self.sql_name.replace("`", "")
        title = name.removeprefix("delta.") if "/" in name else name
        text = timeline.page(title, self.history(limit=limit), self.conflicts(limit=limit))
        written = Path(path)
        written.write_text(text, encoding="utf-8")
        return written

    def explain(self, attempt: ConflictError | str) -> Explanation:
        """Run `CALL interlock.explain_conflict`: why a job lost, or how it passed others.

        Args:
            attempt: an error, or the id of a transaction. Errors of Delta's own checks name none:
                the newest record with such a message is taken

        Raises:
            interlock.UsageError: the table has no record of it (INTERLOCK_UNKNOWN_ATTEMPT)

        """
        name = attempt if isinstance(attempt, str) else self._attempt_of(attempt)
        arguments = f"table => {literal(self.sql_name)}, attempt => {literal(name)}"
        return records.explanation(self.spark.sql(f"CALL interlock.explain_conflict({arguments})"))

    def _attempt_of(self, error: ConflictError) -> str:
        if error.attempt is not None:
            return error.attempt
        found = (r.attempt for r in self.conflicts() if r.message == error.message)
        return next(found, "")

    def latest_version(self, n: int = 1) -> int:
        """Return the n-th newest version.

        Raises:
            interlock.UsageError: n is not positive, or there are fewer versions

        """
        version: int = self._function("get_latest_version", n)
        return version

    def latest_timestamp(self, n: int = 1) -> datetime:
        """Return the n-th newest time version, in UTC: compactions and the like have none.

        Raises:
            interlock.UsageError: n is not positive, or there are fewer time versions

        """
        return records.utc(self._function("get_latest_timestamp", n, as_micros="unix_micros"))

    def as_of(self, *, version: int | None = None, timestamp: datetime | None = None) -> DataFrame:
        """Read the table as it was at a version, or at a time.

        Args:
            version: an ID version
            timestamp: the last version that was committed at or before it; without time zone it is
                in the session's

        Raises:
            ValueError: none of the two, or both

        """
        return self.spark.sql(f"SELECT * FROM {self._reference} {_point(version, timestamp)}")

    def between(
        self,
        *,
        versions: tuple[int, int | None] | None = None,
        timestamps: tuple[datetime, datetime | None] | None = None,
    ) -> DataFrame:
        """Read the rows live at the end of a range that were last written inside it.

        The first end is outside the range, the second inside; None as the second is the latest.

        Args:
            versions: two ID versions; -1 as the first begins before version 0
            timestamps: two times, as in `as_of`

        Raises:
            ValueError: none of the two, or both
            interlock.UsageError: the table has no row tracking, or there is no such range

        """
        return changes.between(self.spark, self.sql_name, versions, timestamps)

    def diff(self, a: int, b: int) -> changes.Diff:
        """Compare two versions row by row, by the rows' identity.

        Raises:
            interlock.UsageError: the table had no row tracking at one of them, or there is no
                such version

        """
        return changes.diff(self.spark, self.sql_name, a, b)

    def restore(
        self, *, version: int | None = None, timestamp: datetime | None = None
    ) -> RestoreResult:
        """Run `RESTORE TABLE`, which makes a new version with the rows of an earlier one.

        Arguments and errors are those of `as_of`; a concurrent commit is an
        `interlock.ConflictError`.
        """
        point = _point(version, timestamp and timestamp.isoformat(sep=" "))
        if "${" in self.sql_name:
            raise ValueError(f"Spark would replace a part of the table's name: {self.sql_name}")
        (row,) = self.spark.sql(f"RESTORE TABLE {self.sql_name} TO {point}").collect()
        return records.restored(row)

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
            interlock.UsageError: the table has no policy (INTERLOCK_POLICY_REQUIRED)

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
        statement = f"ALTER TABLE {self._reference}{partition_clause(partition)} {action}"
        (row,) = self.spark.sql(statement).collect()
        return records.compacted(row)

    def _call(
        self,
        procedure: str,
        *,
        partition: Mapping[str, object] | None = None,
        limit: int | None = None,
    ) -> DataFrame:
        arguments = [f"table => {literal(self.sql_name)}"]
        if partition is not None:
            arguments.append(f"partition => {partition_map(partition)}")
        if limit is not None:
            arguments.append(f"limit => {limit:d}")
        return self.spark.sql(f"CALL interlock.{procedure}({', '.join(arguments)})")

    def _function(self, name: str, n: int, *, as_micros: str = "") -> Any:
        call = f"{as_micros}({name}({literal(self.sql_name)}, {n:d}))"
        return self.spark.sql(f"SELECT {call}").collect()[0][0]


def _point(version: int | None, timestamp: datetime | str | None) -> str:
    if (version is None) == (timestamp is None):
        raise ValueError("give either version or timestamp.")
    if timestamp is None:
        return f"VERSION AS OF {version:d}"
    return f"TIMESTAMP AS OF {literal(timestamp)}"


def table(spark: SparkSession, name: str) -> Table:
    """Name a Delta table; nothing is read until it is used.

    Conflicts in this session's statements are `interlock.errors` from now on.

    Args:
        spark: the session for its statements, classic or Connect
        name: a name such as "flights", "db.flights" or "delta.`/data/flights`", whose parts may be
            quoted as in SQL; or a path, that is anything that starts with "/" or a scheme as in
            "s3://"

    Raises:
        ValueError: `name` is neither

    """
    conversion.install()
    return Table(spark, table_name(name))
