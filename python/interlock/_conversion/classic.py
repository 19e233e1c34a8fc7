"""The conversion on classic PySpark, which converts every exception of the JVM in one function."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock import errors
from interlock._conversion import kinds

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_LONGEST_CHAIN = 20
_PYTHON_NAME = "interlock.errors."


class _Seen(NamedTuple):
    """An error as it was converted, without the traceback that would keep frames alive."""

    kind: type[errors.InterlockError]
    facts: dict[str, Any]


_recent: deque[_Seen] = deque(maxlen=50)


def install() -> None:
    """Install the conversion in this Python process; calling it again changes nothing."""
    from pyspark.errors.exceptions import captured

    previous = captured.convert_exception
    if getattr(previous, "is_interlock", False):
        return

    def convert_exception(e: Any) -> Any:
        if not _is_of_spark(e):  # each conversion before this one would look it up in Spark's JVM
            return captured.UnknownException(desc=str(e), stackTrace="", cause=None)
        return _converted(e, previous(e))

    convert_exception.is_interlock = True  # type: ignore[attr-defined]
    captured.convert_exception = convert_exception
    _install_for_streams()


def _is_of_spark(throwable: Any) -> bool:
    """Tell an exception of Spark's JVM from one of another JVM that this process uses by py4j."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    return gateway is None or throwable._gateway_client is gateway._gateway_client


def _install_for_streams() -> None:
    """Convert the result of `StreamingQuery.exception()` too, which PySpark converts by itself."""
    from pyspark.sql.streaming.query import StreamingQuery

    previous = StreamingQuery.exception

    def exception(self: StreamingQuery) -> Any:
        stock = previous(self)
        return None if stock is None else _converted(self._jsq.exception().get(), stock)

    exception.__doc__ = previous.__doc__
    StreamingQuery.exception = exception  # type: ignore[method-assign]


def _converted(throwable: Any, stock: Any) -> Any:
    """Return `stock`, or an error that is both `stock` and the one that `throwable` means."""
    for cause in _chain(throwable):
        names = _class_names(cause)
        kind = kinds.by_class(names)
        if kind is None:
            continue
        facts = {"message": cause.getMessage() or "", **_facts(cause, names)}
        if kind is errors.UsageError:
            kind = kinds.by_condition(facts["condition"])
        _recent.append(_Seen(kind, facts))
        return _both(kind, stock, facts, cause)
    return _from_python(throwable, stock)


def _facts(throwable: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Read the attributes of one of Interlock's conflicts, or those that any Spark error has."""
    if kinds.is_judged(names):
        return errors.conflict_facts(json.loads(throwable.conflictJson()))
    return {"condition": throwable.getCondition(), "sqlstate": throwable.getSqlState()}


def _from_python(throwable: Any, stock: Any) -> Any:
    """Recognise an error of Interlock that a Python callback, such as foreachBatch's, raised.

    The JVM keeps only its text, but this process has converted the error itself before.
    """
    text = str(stock)
    if _PYTHON_NAME in text:
        for seen in reversed(_recent):
            if seen.facts["message"] in text:
                return _both(seen.kind, stock, seen.facts, throwable)
    return stock


def _chain(throwable: Any) -> Iterator[Any]:
    """Yield the exception and its causes, the outermost first."""
    for _ in range(_LONGEST_CHAIN):
        if throwable is None:
            return
        yield throwable
        throwable = throwable.getCause()


def _class_names(throwable: Any) -> tuple[str, ...]:
    """Name its class and all superclasses, even if this thread cannot load them."""
    names = []
    java_class = throwable.getClass()
    while java_class is not None:
        names.append(java_class.getName())
        java_class = java_class.getSuperclass()
    return tuple(names)


def _both(
    kind: type[errors.InterlockError], stock: Any, facts: dict[str, Any], cause: Any
) -> errors.InterlockError:
    from pyspark.errors.exceptions.captured import CapturedException, UnknownException

    if isinstance(stock, UnknownException):  # PySpark would show the Java exception instead
        stock = CapturedException(origin=cause)
    # Shows the JVM's stack trace if the user has asked for it.
    return kinds.both(kind, stock, facts, text=type(stock).__str__)
