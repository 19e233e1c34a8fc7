"""The class in `interlock.errors` for an error of the JVM, and an instance with its attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from interlock import errors

_CONFLICTS: dict[str, type[errors.ConflictError]] = {
    "io.delta.exceptions.ConcurrentAppendException": errors.ConcurrentAppendError,
    "io.delta.exceptions.ConcurrentDeleteReadException": errors.ConcurrentDeleteReadError,
    "io.delta.exceptions.ConcurrentDeleteDeleteException": errors.ConcurrentDeleteDeleteError,
    "io.delta.exceptions.ConcurrentWriteException": errors.ConcurrentWriteError,
    "io.delta.exceptions.ConcurrentTransactionException": errors.ConcurrentTransactionError,
    "io.delta.exceptions.MetadataChangedException": errors.MetadataChangedError,
    "io.delta.exceptions.ProtocolChangedException": errors.ProtocolChangedError,
}
_USAGE = "io.interlock.spark.errors.InterlockException"
_UNKNOWN = "io.interlock.spark.errors.CommitStateUnknownException"
_OURS = "io.interlock."
_BY_CONDITION: dict[str | None, type[errors.InterlockError]] = {
    "INTERLOCK_BINDING_INCOMPLETE": errors.StorageError,
    "INTERLOCK_COMMIT_STATE_UNKNOWN": errors.CommitStateUnknown,
    "INTERLOCK_CONCURRENT_APPEND": errors.ConcurrentAppendError,
    "INTERLOCK_CONCURRENT_DELETE_DELETE": errors.ConcurrentDeleteDeleteError,
    "INTERLOCK_CONCURRENT_DELETE_READ": errors.ConcurrentDeleteReadError,
    "INTERLOCK_CONCURRENT_WRITE": errors.ConcurrentWriteError,
    "INTERLOCK_FAILED_AFTER_COMMIT": errors.CommittedError,
    "INTERLOCK_METADATA_CHANGED": errors.MetadataChangedError,
    "INTERLOCK_STORAGE_FAILED": errors.StorageError,
    "INTERLOCK_VERSION_MISMATCH": errors.VersionMismatchError,
}


def by_class(names: Collection[str]) -> type[errors.InterlockError] | None:
    """Return the class for an exception of the JVM, None if it is not Interlock's or Delta's.

    Args:
        names: its class and its superclasses

    """
    if _USAGE in names:
        return errors.UsageError
    if _UNKNOWN in names:
        return errors.CommitStateUnknown
    return next((_CONFLICTS[name] for name in names if name in _CONFLICTS), None)


def by_condition(condition: str | None) -> type[errors.InterlockError]:
    """Return the class for a condition of Interlock's catalogue."""
    return _BY_CONDITION.get(condition, errors.UsageError)


def is_judged(names: Collection[str]) -> bool:
    """Tell whether an exception is a conflict raised by Interlock, which has all attributes."""
    return next(iter(names)).startswith(_OURS) and not {_USAGE, _UNKNOWN} & set(names)


def both(
    kind: type[errors.InterlockError],
    stock: Any,
    facts: Mapping[str, Any],
    *,
    text: Callable[..., str],
) -> errors.InterlockError:
    """Make an instance of `kind` that also has the class and the attributes of `stock`.

    Args:
        kind: the class in `interlock.errors`
        stock: the error as PySpark has made it
        facts: further attributes
        text: the result of `str`

    """
    body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__str__": text}
    mixed: type[errors.InterlockError] = type(kind.__name__, (kind, type(stock)), body)
    error = mixed.__new__(mixed)
    error.__dict__.update(stock.__dict__, **facts)
    return error
