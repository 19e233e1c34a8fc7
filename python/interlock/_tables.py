"""`interlock.table`: a table's policy, versions, changes and maintenance.

Everything here is a SQL statement, so it works in the same way on Spark Connect.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from interlock import _arguments, _changes, _conversion, _records, _tabular
from interlock._sql_text import (
    literal,
    partition_clause,
    partition_map,
    require_interlock,
    run,
    table_name,
)
from interlock.errors import ArgumentError, ConflictError, UsageError
from interlock.results import (
    Blocks,
    Claims,
    CompactionResult,
    Conflicts,
    Explanation,
    Files,
    History,
    Removal,
    RestoreResult,
    Versions,
)

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

_POLICY = "interlock.policy"


@dataclass(frozen=True)
class Claim:
    """A claim of this session, made by `Table.claim`; as a context manager it ends with the block.

    Attributes:
        table: the table
        id: its id
        until: when it ends by itself, in UTC

    """

    table: Table
    id: str
    until: datetime

    def release(self) -> bool:
        """End the claim; return False if it had ended."""
        statement = f"CALL interlock.release({literal(self.id)})"
        released: bool = run(self.table.spark, statement).collect()[0][0]
        return released

    def __enter__(self) -> Claim:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


@dataclass(frozen=True)
class Table:
    """A Delta table, made by `interlock.table`. Only compactions need it to have a policy.

    DataFrames are lazy: they read when they are used, but always the version for which they were
    made.

    Attributes:
        spark: the session that its statements run in
        sql_name: what SQL calls it, safely quoted

    """

    spark: SparkSession
    sql_name: str

    def __repr__(self) -> str:
        return f"Table({self.sql_name})"

    def _repr_html_(self) -> str:
        """Draw what one DESCRIBE DETAIL tells, which reads no data file."""
        name = self.sql_name.replace("`", "")
        try:
            detail = run(self.spark, f"DESCRIBE DETAIL {self.sql_name}").collect()[0]
            facts = {
                "table": name,
                "policy": detail["properties"].get(_POLICY),
                "version": self.latest_version(),
                "partitioned by": tuple(detail["partitionColumns"]),
                "files": detail["numFiles"],
                "bytes": detail["sizeInBytes"],
            }
        except Exception as error:  # the table, its storage or the session need not be there
            condition = getattr(error, "getCondition", lambda: None)()
            facts = {"table": name, "error": condition or type(error).__name__}
        return _tabular.html(list(facts), [facts])

    @property
    def policy(self) -> str | None:
        """Read the name of the table's conflict policy, None if it has none."""
        found = run(self.spark, f"SHOW TBLPROPERTIES {self.sql_name}").collect()
        return next((str(row["value"]) for row in found if row["key"] == _POLICY), None)

    def set_policy(self, name: str | None) -> None:
        """Give the table another conflict policy, or remove it with None.

        Raises:
            interlock.ConfigurationError: the session has no Interlock, which would check the name
            interlock.UsageError: there is no such policy, or the table cannot have it
            interlock.ConflictError: lost against another job

        """
        if name is None:
            change = f"UNSET TBLPROPERTIES IF EXISTS ({literal(_POLICY)})"
        else:
            value = literal(_arguments.text("name", name))
            require_interlock(self.spark)
            change = f"SET TBLPROPERTIES ({literal(_POLICY)} = {value})"
        run(self.spark, f"ALTER TABLE {self.sql_name} {change}")

    def remove_policy(self, *, keep: Collection[str] = ()) -> Removal:
        """Run `CALL interlock.remove_policy`: make a plain Delta table of it.

        Calling it again continues where an earlier call ended.

        Args:
            keep: those of the table features "rowTracking" and "inCommitTimestamp" that are kept

        Raises:
            interlock.UsageError: `keep` names another feature
            interlock.ConflictError: lost against another job; what was done until then stays done

        """
        named = ", ".join(map(literal, _arguments.texts("keep", keep)))
        kept = f", keep => array({named})" if named else ""
        statement = f"CALL interlock.remove_policy(table => {literal(self.sql_name)}{kept})"
        return _records.read(Removal, run(self.spark, statement))

    def history(
        self, *, partition: Mapping[str, object] | None = None, limit: int | None = None
    ) -> History:
        """Run `SHOW HISTORY`: the versions and what is known of each, newest first.

        Args:
            partition: values of partition columns, as for `compact`; only versions that changed
                files of these partitions, and only their rows and files
            limit: the newest so many

        """
        statement = f"SHOW HISTORY FOR TABLE {self.sql_name}{partition_clause(partition)}"
        if limit is not None:
            statement += f" LIMIT {_arguments.integer('limit', limit)}"
        return _records.read(History, run(self.spark, statement))

    def versions(self, *, limit: int | None = None) -> Versions:
        """Run `CALL interlock.versions`: the versions and their times, newest first.

        Args:
            limit: the newest so many

        """
        return _records.read(Versions, self._call("versions", limit=limit))

    def files(self, *, partition: Mapping[str, object] | None = None) -> Files:
        """Run `CALL interlock.files`: the live files, with what they were compacted from.

        Args:
            partition: values of partition columns, as for `compact`; only files that have them

        """
        return _records.read(Files, self._call("files", partition=partition))

    def conflicts(self, *, limit: int | None = None) -> Conflicts:
        """Run `CALL interlock.conflicts`: rejected and rebased commits, newest first.

        Args:
            limit: the newest so many

        """
        return _records.read(Conflicts, self._call("conflicts", limit=limit))

    def blocks(self, *, limit: int | None = None) -> Blocks:
        """Run `CALL interlock.blocks`: the atomic blocks of the table, newest first.

        Args:
            limit: the newest so many

        """
        return _records.read(Blocks, self._call("blocks", limit=limit))

    def claim(self, *, partition: Mapping[str, object] | None = None, minutes: float = 60) -> Claim:
        """Run `CALL interlock.claim`: let other sessions' commits wait for this one's jobs.

        Waits itself for earlier claims of other sessions.

        Args:
            partition: values of partition columns, as for `compact`; only commits to these
                partitions wait
            minutes: after this time the claim ends by itself

        Raises:
            interlock.UsageError: the table has no policy (INTERLOCK_POLICY_REQUIRED), or another
                session has a claim on it and this session has another one (INTERLOCK_CLAIMED)

        """
        (made,) = _records.rows(self._call("claim", partition=partition, minutes=minutes))
        return Claim(self, made["claim"], made["until"])

    def claims(self) -> Claims:
        """Run `CALL interlock.claims`: the claims on the table, oldest first."""
        return _records.read(Claims, self._call("claims"))

    def timeline(self, *, path: str | os.PathLike[str] = "timeline.html", limit: int = 200) -> Path:
        """Draw the table's jobs as a web page that needs no network, and return its path.

        Args:
            path: the file to write
            limit: the newest so many versions, and as many records of conflicts

        """
        from interlock import _timeline

        written = Path(_arguments.path("path", path))
        name = self.sql_name.replace("`", "")
        title = name.removeprefix("delta.") if "/" in name else name
        text = _timeline.page(title, self.history(limit=limit), self.conflicts(limit=limit))
        written.write_text(text, encoding="utf-8")
        return written

    def explain(self, conflict: ConflictError | str) -> Explanation:
        """Run `CALL interlock.explain_conflict`: why a job lost, or how it passed others.

        Args:
            conflict: an error, or the id of a transaction. Errors of Delta's own checks have no id:
                the newest record with the same message is taken

        Raises:
            interlock.UsageError: the table has no record of it (INTERLOCK_UNKNOWN_TRANSACTION), as
                without a policy

        """
        if not isinstance(conflict, str | ConflictError):
            raise _arguments.refused("conflict", "a ConflictError or a transaction's id", conflict)
        txn_id = conflict if isinstance(conflict, str) else self._txn_id_of(conflict)
        given = f"table => {literal(self.sql_name)}, txn_id => {literal(txn_id)}"
        (told,) = _records.rows(run(self.spark, f"CALL interlock.explain_conflict({given})"))
        return Explanation(**told)

    def _txn_id_of(self, error: ConflictError) -> str:
        if error.txn_id is not None:
            return error.txn_id
        found = (r.txn_id for r in self.conflicts() if r.message == error.message)
        txn_id = next(found, None)
        if txn_id is not None:
            return txn_id
        if self.policy is not None:
            why = "It was on another table, or is older than the table's log."
        else:
            why = (
                "The table has no policy, and conflicts are recorded only under one: ALTER TABLE "
                f"{self.sql_name} SET TBLPROPERTIES ('{_POLICY}' = 'row_level')."
            )
        raise UsageError(
            f"There is no record of this conflict on {self.sql_name}.\n{why}",
            condition="INTERLOCK_UNKNOWN_TRANSACTION",
            sqlstate="42704",
        )

    def latest_version(self, n: int = 1) -> int:
        """Return the n-th newest version.

        Raises:
            interlock.UsageError: n is not positive, or there are fewer versions

        """
        version: int = self._function("get_latest_version", n)
        return version

    def latest_timestamp(self, n: int = 1) -> datetime:
        """Return the n-th newest time version, in UTC; compactions have none.

        Raises:
            interlock.UsageError: n is not positive, or there are fewer time versions

        """
        return _records.utc(self._function("get_latest_timestamp", n, as_micros="unix_micros"))

    def as_of(self, *, version: int | None = None, timestamp: datetime | None = None) -> DataFrame:
        """Read the table as it was at a version, or at a time.

        Args:
            version: an ID version
            timestamp: the last version that was committed at or before it; without time zone it is
                in the session's

        Raises:
            interlock.ArgumentError: none of the two, or both

        """
        return run(self.spark, f"SELECT * FROM {self.sql_name} {_point(version, timestamp)}")

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
            interlock.ArgumentError: none of the two, or both
            interlock.UsageError: the table has no row tracking, or there is no such range

        """
        return _changes.between(self.spark, self.sql_name, versions, timestamps)

    def diff(self, *, from_version: int, to_version: int) -> _changes.Diff:
        """Compare two versions row by row, by the rows' identity.

        Args:
            from_version: an ID version
            to_version: another, older or newer

        Raises:
            interlock.UsageError: the table had no row tracking at one of them, or there is no
                such version

        """
        return _changes.diff(self.spark, self.sql_name, from_version, to_version)

    def restore(
        self, *, version: int | None = None, timestamp: datetime | None = None
    ) -> RestoreResult:
        """Run `RESTORE TABLE`, which makes a new version with the rows of an earlier one.

        Arguments and errors are those of `as_of`; a concurrent commit is an
        `interlock.ConflictError`.
        """
        point = _point(version, timestamp, as_text=True)
        (row,) = run(self.spark, f"RESTORE TABLE {self.sql_name} TO {point}").collect()
        return RestoreResult(
            bytes=row["table_size_after_restore"],
            files=row["num_of_files_after_restore"],
            files_removed=row["num_removed_files"],
            files_restored=row["num_restored_files"],
            bytes_removed=row["removed_files_size"],
            bytes_restored=row["restored_files_size"],
        )

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
            interlock.ArgumentError: another kind, an empty `partition`, or a value of one that SQL
                has no literal for
            interlock.ConflictError: lost against another job; nothing of it is visible
            interlock.UsageError: the table has no policy (INTERLOCK_POLICY_REQUIRED)

        """
        if kind not in ("minor", "major"):
            raise ArgumentError(f"kind must be 'minor' or 'major', not {kind!r}.")
        return self._alter(f"COMPACT {kind.upper()}", partition)

    def merge_small_files(
        self, *, partition: Mapping[str, object] | None = None
    ) -> CompactionResult:
        """Run `ALTER TABLE ... MERGE SMALLFILES`; arguments and errors are those of `compact`."""
        return self._alter("MERGE SMALLFILES", partition)

    def _alter(self, action: str, partition: Mapping[str, object] | None) -> CompactionResult:
        statement = f"ALTER TABLE {self.sql_name}{partition_clause(partition)} {action}"
        (done,) = _records.rows(run(self.spark, statement))
        return CompactionResult(**done)

    def _call(
        self,
        procedure: str,
        *,
        partition: Mapping[str, object] | None = None,
        limit: int | None = None,
        minutes: float | None = None,
    ) -> DataFrame:
        given = [f"table => {literal(self.sql_name)}"]
        if partition is not None:
            given.append(f"partition => {partition_map(partition)}")
        if limit is not None:
            given.append(f"limit => {_arguments.integer('limit', limit)}")
        if minutes is not None:
            given.append(f"minutes => CAST('{_arguments.number('minutes', minutes)}' AS DOUBLE)")
        return run(self.spark, f"CALL interlock.{procedure}({', '.join(given)})")

    def _function(self, name: str, n: int, *, as_micros: str = "") -> Any:
        n = _arguments.integer("n", n)
        call = f"{as_micros}({name}({literal(self.sql_name)}, {n}))"
        return run(self.spark, f"SELECT {call}").collect()[0][0]


def _point(version: int | None, timestamp: datetime | None, *, as_text: bool = False) -> str:
    """Write a version or a time; some statements take the time as a text only."""
    _arguments.one_of(version=version, timestamp=timestamp)
    if version is not None:
        return f"VERSION AS OF {_arguments.integer('version', version)}"
    time = _arguments.moment("timestamp", timestamp)
    return f"TIMESTAMP AS OF {literal(time.isoformat(sep=' ') if as_text else time)}"


def table(spark: SparkSession, name: str) -> Table:
    """Name a Delta table; nothing is read until it is used.

    Conflicts in this session's statements are `interlock.errors` from now on.

    Args:
        spark: the session for its statements, classic or Connect
        name: a name such as "flights", "db.flights" or "delta.`/data/flights`", whose parts may be
            quoted as in SQL; or an absolute path, that is anything that starts with "/" or a scheme
            as in "s3://"

    Raises:
        interlock.ArgumentError: `name` is neither

    """
    if not hasattr(spark, "sql"):
        raise _arguments.refused("spark", "a SparkSession", spark)
    _conversion.install()
    return Table(spark, table_name(name))
