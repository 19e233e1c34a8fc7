"""The errors that Interlock raises in Python.

    InterlockError                      also a PySparkException
    ├── UsageError                      refused, whoever else writes
    │   ├── ArgumentError               also a ValueError and a TypeError
    │   ├── ConfigurationError
    │   └── VersionMismatchError
    ├── ConflictError                   lost against an earlier commit
    │   ├── ConcurrentAppendError
    │   ├── ConcurrentDeleteReadError
    │   ├── ConcurrentDeleteDeleteError
    │   ├── ConcurrentWriteError
    │   ├── ConcurrentTransactionError
    │   ├── MetadataChangedError
    │   └── ProtocolChangedError
    ├── CommitStateUnknown              nobody could say whether the commit was made
    ├── CommittedError                  committed, and something failed after that
    └── StorageError                    the storage failed at the commit; nothing of it is left

Each subclass of `ConflictError` is also Delta's own class of the same kind, so that `except
delta.exceptions.ConcurrentAppendException` keeps catching it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock import _stand_ins as _delta
    from interlock._stand_ins import PySparkException
else:
    # PySpark and Delta's Python package are an extra of the distribution.
    try:
        from pyspark.errors import PySparkException
    except ImportError:
        from interlock._stand_ins import PySparkException
    try:
        from delta import exceptions as _delta
    except ImportError:
        from interlock import _stand_ins as _delta


NO_INTERLOCK = (
    "This session has no Interlock: start it with interlock.configure(builder), or its Spark "
    "Connect server with Interlock's plugin."
)


class InterlockError(PySparkException):
    """An error with a condition of the catalogue, its SQLSTATE and its message."""

    message: str = ""
    condition: str | None = None
    sqlstate: str | None = None

    def __init__(
        self, message: str, *, condition: str | None = None, sqlstate: str | None = None
    ) -> None:
        super().__init__(message=message, errorClass=condition, messageParameters={})
        self.message = message
        self.condition = condition
        self.sqlstate = sqlstate

    def getCondition(self) -> str | None:  # noqa: N802 - PySpark's own name
        return self.condition

    def getSqlState(self) -> str | None:  # noqa: N802
        return self.sqlstate

    def getMessage(self) -> str:  # noqa: N802
        return self.message

    def __str__(self) -> str:
        return self.message


class UsageError(InterlockError):
    """A statement, property or call that Interlock refuses, whether or not others are writing."""


class ArgumentError(UsageError, ValueError, TypeError):
    """A call of this package was given an argument of a wrong type, or a value it cannot take."""


class ConfigurationError(UsageError):
    """The session or the installation is not set up in a way that protects tables."""


class VersionMismatchError(UsageError):
    """The versions of the wheel, the jar, Spark or Delta do not fit together."""


class ConfigurationWarning(UserWarning):
    """`interlock.configure` has kept a setting of the user that differs from the one it needs."""


class CommitStateUnknown(InterlockError):  # noqa: N818 - neither success nor failure
    """It is not known whether a commit was made; the message says how to find out.

    The statement's files are kept. Running it again may do its work twice.
    """


class StorageError(InterlockError):
    """The storage failed before a statement was committed; it can be run again."""


class CommittedError(InterlockError):
    """A statement was committed, but a later step failed: do not run it again."""


class ConflictError(InterlockError):
    """A job lost against one that committed earlier; nothing of it is visible.

    Attributes are None if the error comes from one of Delta's own checks, which know less.

    Attributes:
        condition: the condition in the error catalogue
        sqlstate: 2D521
        policy: the table's conflict policy
        rule: the cell of the policy that decided
        winner_class: operation class of the winner
        operation_class: operation class of the job that lost
        winner_operation: the winner's operation as SHOW HISTORY names it
        operation: the operation of the job that lost
        read_version: the version that the losing job had read
        winner_version: the version that the winner had made
        scope: the partitions in which the two overlap
        table: the table
        why: what the winner did that made the job fail, as a clause
        txn_id: the id of the losing job's transaction, which `Table.explain` takes
        files: files in which the two overlap, at most 5
        rows: rows in which they overlap, as JSON objects, at most 3
        source_rows: rows of the source that match them, likewise
        predicate: the losing job's predicate that selected the rows or could not be decided, as SQL
        phase: "before writing" if the job was stopped before it wrote; None at its commit

    """

    policy: str | None = None
    rule: str | None = None
    winner_class: str | None = None
    operation_class: str | None = None
    winner_operation: str | None = None
    operation: str | None = None
    read_version: int | None = None
    winner_version: int | None = None
    scope: str | None = None
    table: str | None = None
    why: str | None = None
    txn_id: str | None = None
    files: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    source_rows: tuple[str, ...] = ()
    predicate: str | None = None
    phase: str | None = None


def conflict_facts(facts: Mapping[str, object]) -> dict[str, object]:
    """Return a conflict's attributes from the JVM's names and values; missing ones are None.

    The JVM's names are those of the attributes in camel case.
    """
    known = {"condition": facts.get("condition"), "sqlstate": facts.get("sqlState")}
    for attribute, kind in ConflictError.__annotations__.items():
        first, *others = attribute.split("_")
        value = facts.get(first + "".join(map(str.capitalize, others)))
        known[attribute] = _texts(value) if kind.startswith("tuple") else _fact(kind, value)
    return known


def _fact(kind: str, value: object) -> object:
    return int(str(value)) if kind.startswith("int") and value is not None else value


def _texts(value: object) -> tuple[str, ...]:
    """Read a list, which Spark Connect sends as JSON text."""
    items = json.loads(value) if isinstance(value, str) else value
    if not isinstance(items, list):
        return ()
    return tuple(item if isinstance(item, str) else json.dumps(item) for item in items)


class ConcurrentAppendError(ConflictError, _delta.ConcurrentAppendException):
    """The winner added data that the job should have seen."""


class ConcurrentDeleteReadError(ConflictError, _delta.ConcurrentDeleteReadException):
    """The winner removed data that the job had read."""


class ConcurrentDeleteDeleteError(ConflictError, _delta.ConcurrentDeleteDeleteException):
    """The winner removed data that the job removes as well, as two compactions do."""


class ConcurrentWriteError(ConflictError, _delta.ConcurrentWriteException):
    """Another job committed during a RESTORE, CLONE or CONVERT, which do not permit that."""


class ConcurrentTransactionError(ConflictError, _delta.ConcurrentTransactionException):
    """Two streaming queries wrote with the same checkpoint."""


class MetadataChangedError(ConflictError, _delta.MetadataChangedException):
    """The winner changed the schema, the properties or the policy of the table."""


class ProtocolChangedError(ConflictError, _delta.ProtocolChangedException):
    """The winner upgraded the table, or created it at the same place."""
