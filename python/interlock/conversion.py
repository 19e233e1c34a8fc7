"""Turns exceptions of the JVM into `interlock.errors` on classic PySpark.

PySpark turns every exception of the JVM into a Python one in a single function. `install` puts ours
before it: what was there decides first what the error is, and where the exception or one of its
causes is a conflict (or one of Interlock's usage errors), the result is that *and* our class, so
code which catches what it caught before goes on working.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

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
_UNKNOWN = "io.interlock.spark.errors.CommitStateUnknownException"
_OURS = "io.interlock."
_USAGE_CLASSES: dict[str | None, type[errors.InterlockError]] = {
    "INTERLOCK_VERSION_MISMATCH": errors.VersionMismatchError,
}
_LONGEST_CHAIN = 20
_PYTHON_NAME = "interlock.errors."


class _Seen(NamedTuple):
    """An error as it was converted, without the traceback that would keep frames alive."""

    kind: type[errors._Error]
    facts: dict[str, Any]


_recent: deque[_Seen] = deque(maxlen=50)


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
        facts = {"message": cause.getMessage() or "", **_facts(cause, names)}
        _recent.append(_Seen(kind, facts))
        return _both(kind, stock, facts, cause)
    return _from_python(throwable, stock)


def _facts(throwable: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Read the attributes of a conflict of ours, or what any error of Spark's can tell."""
    if names[0].startswith(_OURS) and not {_USAGE, _UNKNOWN} & set(names):
        return errors.conflict_facts(throwable.conflictJson())
    return {"condition": throwable.getCondition(), "sqlstate": throwable.getSqlState()}


def _from_python(throwable: Any, stock: CapturedException) -> Any:
    """Recognise an error of ours that a Python callback, as in foreachBatch, let through.

    The JVM keeps only its text. The error itself went through here before, in this process.
    """
    text = str(stock)
    if _PYTHON_NAME in text:
        for seen in reversed(_recent):
            if seen.facts["message"] in text:
                return _both(seen.kind, stock, seen.facts, throwable)
    return stock


def _kind(throwable: Any, names: tuple[str, ...]) -> type[errors._Error] | None:
    if _USAGE in names:
        return _USAGE_CLASSES.get(throwable.getCondition(), errors.InterlockError)
    if _UNKNOWN in names:
        return errors.CommitStateUnknown
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


def _both(
    kind: type[errors._Error], stock: CapturedException, facts: dict[str, Any], cause: Any
) -> errors._Error:
    """Make an instance of `kind` that is also what `stock` is and knows what `stock` knows."""
    from pyspark.errors.exceptions.captured import CapturedException, UnknownException

    if isinstance(stock, UnknownException):  # PySpark would show the Java exception instead
        stock = CapturedException(origin=cause)
    body = {
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
        "__str__": type(stock).__str__,  # shows the JVM's stack trace to those who ask for it
    }
    both: type[errors._Error] = type(kind.__name__, (kind, type(stock)), body)
    error = both.__new__(both)
    error.__dict__.update(stock.__dict__, **facts)
    return error
