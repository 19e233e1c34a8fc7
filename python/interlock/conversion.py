"""Turns exceptions of the JVM into `interlock.errors` on classic PySpark.

PySpark turns every exception of the JVM into a Python one in a single function. `install` puts ours
before it: what was there decides first what the error is, and where the exception or one of its
causes is a conflict (or one of Interlock's usage errors), the result is that *and* our class, so
code which catches what it caught before goes on working.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from interlock import errors

if TYPE_CHECKING:
    from pyspark.errors.exceptions.captured import CapturedException

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
_OURS = "io.interlock."
_USAGE_CLASSES: dict[str | None, type[errors.InterlockError]] = {
    "INTERLOCK_VERSION_MISMATCH": errors.VersionMismatchError,
}
_LONGEST_CHAIN = 20


def install() -> None:
    """Install the conversion in this Python process; calling it again changes nothing."""
    from pyspark.errors.exceptions import captured

    previous = captured.convert_exception
    if getattr(previous, "is_interlock", False):
        return

    def convert_exception(e: Any) -> Any:
        return _converted(e, previous(e))

    convert_exception.is_interlock = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception


def _converted(throwable: Any, stock: CapturedException) -> Any:
    """Return `stock`, or what is both `stock` and the error of ours that `throwable` means."""
    for cause in _chain(throwable):
        names = _class_names(cause)
        kind = _kind(cause, names)
        if kind is None:
            continue
        error = _both(kind, stock, cause)
        error.message = cause.getMessage() or ""
        if isinstance(error, errors.ConflictError) and names[0].startswith(_OURS):
            error.tell(cause.conflictJson())
        else:
            error.condition, error.sqlstate = cause.getCondition(), cause.getSqlState()
        return error
    return stock


def _kind(throwable: Any, names: tuple[str, ...]) -> type[errors._Error] | None:
    if _USAGE in names:
        return _USAGE_CLASSES.get(throwable.getCondition(), errors.InterlockError)
    return next((_CONFLICTS[name] for name in names if name in _CONFLICTS), None)


def _chain(throwable: Any) -> Iterator[Any]:
    """Yield the exception and its causes, the outermost first."""
    for _ in range(_LONGEST_CHAIN):
        if throwable is None:
            return
        yield throwable
        throwable = throwable.getCause()


def _class_names(throwable: Any) -> tuple[str, ...]:
    """Name its class and all superclasses; none of them need be loadable on this thread."""
    names = []
    java_class = throwable.getClass()
    while java_class is not None:
        names.append(java_class.getName())
        java_class = java_class.getSuperclass()
    return tuple(names)


def _both(kind: type[errors._Error], stock: CapturedException, cause: Any) -> errors._Error:
    """Make an instance of `kind` that is also what `stock` is and knows what `stock` knows."""
    from pyspark.errors.exceptions.captured import CapturedException, UnknownException

    if isinstance(stock, UnknownException):  # PySpark would show the Java exception instead
        stock = CapturedException(origin=cause)
    names = {"__module__": kind.__module__, "__doc__": kind.__doc__}
    both: type[errors._Error] = type(kind.__name__, (kind, type(stock)), names)
    error = both.__new__(both)
    error.__dict__.update(stock.__dict__)
    return error
