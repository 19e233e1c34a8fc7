"""The conversion on Spark Connect.

The server names the classes of an exception and of its causes, the condition of each, its SQLSTATE
and its message parameters; the client makes an error of them in one function.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from interlock import errors
from interlock._conversion import kinds, texts

if TYPE_CHECKING:
    from pyspark.sql.connect.streaming.query import StreamingQuery

_PYTHON = "org.apache.spark.api.python.PythonException"


class _Throwable(NamedTuple):
    """One exception, as the server describes it."""

    names: list[str]
    message: str
    condition: str | None
    sqlstate: str | None
    parameters: dict[str, str]


def install() -> None:
    """Install the conversion in this Python process; calling it again changes nothing."""
    core: Any = import_module("pyspark.sql.connect.client.core")
    previous = core.convert_exception
    if getattr(previous, "is_interlock", False):
        return

    def convert_exception(info: Any, message: str, response: Any, *others: Any) -> Any:
        chain = list(_chain(info, message, response))
        return _converted(chain, previous(info, message, response, *others))

    convert_exception.is_interlock = True  # type: ignore[attr-defined]
    core.convert_exception = convert_exception
    _install_for_streams()


def _install_for_streams() -> None:
    """Let `StreamingQuery.exception()` return the error that `awaitTermination()` raises.

    Without this it returns only the text that the server sends.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.streaming.query import StreamingQuery

    previous = StreamingQuery.exception

    def exception(self: StreamingQuery) -> Any:
        stock = previous(self)
        if stock is None:
            return None
        try:
            self.awaitTermination()
        except PySparkException as error:
            return error if isinstance(error, errors.InterlockError) else stock
        return stock

    exception.__doc__ = previous.__doc__
    StreamingQuery.exception = exception  # type: ignore[method-assign]


def _converted(chain: list[_Throwable], stock: Any) -> Any:
    """Return `stock`, or an error that is both `stock` and the one that the chain means."""
    for cause in chain:
        kind = kinds.by_class(cause.names)
        if kind is not None:
            if kind is errors.UsageError:
                kind = kinds.by_condition(cause.condition)
            return _both(kind, stock, {"message": cause.message, **_facts(cause)})
    if any(_PYTHON in cause.names for cause in chain):
        found = texts.find(chain[-1].message)
        if found is not None:
            return _both(found.kind, stock, found.facts)
    return stock


def _facts(cause: _Throwable) -> dict[str, Any]:
    known = {"condition": cause.condition, "sqlState": cause.sqlstate}
    if kinds.is_judged(cause.names):
        return errors.conflict_facts({**cause.parameters, **known})
    return {"condition": cause.condition, "sqlstate": cause.sqlstate}


def _both(
    kind: type[errors.InterlockError], stock: Any, facts: dict[str, Any]
) -> errors.InterlockError:
    """Show Interlock's message alone; the stack trace is still in `getStackTrace()`."""
    return kinds.both(kind, stock, facts, text=errors.InterlockError.__str__)


def _chain(info: Any, message: str, response: Any) -> Iterator[_Throwable]:
    """Yield the exception and its causes, the outermost first."""
    if response is None or not response.HasField("root_error_idx"):
        yield _from_header(info.metadata, message)
        return
    index: int | None = response.root_error_idx
    while index is not None:
        error = response.errors[index]
        known = error.spark_throwable
        yield _Throwable(
            list(error.error_type_hierarchy),
            error.message,
            known.error_class if known.HasField("error_class") else None,
            known.sql_state if known.HasField("sql_state") else None,
            dict(known.message_parameters),
        )
        index = error.cause_idx if error.HasField("cause_idx") else None


def _from_header(header: Any, message: str) -> _Throwable:
    """Read the facts in the failed call's own header, if the server sends no error details."""
    return _Throwable(
        json.loads(header.get("classes", "[]")) or [""],
        message,
        header.get("errorClass"),
        header.get("sqlState"),
        json.loads(header.get("messageParameters", "{}")),
    )
