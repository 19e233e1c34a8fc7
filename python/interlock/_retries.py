"""`interlock.retry`: runs a whole statement again after a conflict, if that can help."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from random import uniform
from time import sleep
from typing import ParamSpec, TypeVar, overload

from interlock import _arguments, _conversion
from interlock.errors import ArgumentError, ConcurrentTransactionError, ConflictError

_P = ParamSpec("_P")
_R = TypeVar("_R")

LONGEST_DELAY = 30.0
_log = logging.getLogger("interlock")


@overload
def retry(fn: Callable[[], _R], *, attempts: int = 5, backoff: float = 0.1) -> _R: ...


@overload
def retry(
    fn: None = None, *, attempts: int = 5, backoff: float = 0.1
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...


def retry(
    fn: Callable[[], object] | None = None, *, attempts: int = 5, backoff: float = 0.1
) -> object:
    """Run `fn` until it does not lose against another job, and return what it returns.

        interlock.retry(lambda: spark.sql("UPDATE t SET v = 0"))

        @interlock.retry(attempts=3)
        def load(day): ...

    Runs `fn` again after a `ConflictError`: the failed run has left nothing in the table. So `fn`
    must be one statement with all its reads, and create its DataFrames itself. It is not run again
    after `CommitStateUnknown`, whose commit may have been made, after `ConcurrentTransactionError`,
    whose batch the other query has written, or after any other error. Each conflict is logged to
    the logger
    `interlock`.

    Args:
        fn: the work, without arguments; without it the result is a decorator
        attempts: the maximum number of runs, including the first; at least 1
        backoff: seconds; the delay before attempt n + 1 is random between 0 and
            `backoff * 2 ** (n - 1)`, and at most 30 s

    Raises:
        ArgumentError: `attempts` or `backoff` is out of its range
        ConflictError: the last attempt's, when all are used up

    """
    if _arguments.integer("attempts", attempts) < 1:
        raise ArgumentError(f"attempts must be at least 1, not {attempts}.")
    if not isinstance(backoff, int | float) or not backoff >= 0:
        raise ArgumentError(f"backoff must be a number of seconds >= 0, not {backoff!r}.")
    if fn is not None and not callable(fn):
        raise _arguments.refused("fn", "a function without arguments", fn)
    if fn is not None:
        return _run(fn, attempts, backoff)

    def decorate(decorated: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(decorated)
        def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            return _run(lambda: decorated(*args, **kwargs), attempts, backoff)

        return run

    return decorate


def _run(fn: Callable[[], _R], attempts: int, backoff: float) -> _R:
    _conversion.install()
    for attempt in range(1, attempts):
        try:
            return fn()
        except ConcurrentTransactionError:
            raise
        except ConflictError as error:
            delay = uniform(0, _longest_delay(attempt, backoff))
            first_line = str(error).partition("\n")[0]
            _log.warning(
                "Attempt %d of %d lost, again in %.2f s: %s", attempt, attempts, delay, first_line
            )
        sleep(delay)
    return fn()


def _longest_delay(attempt: int, backoff: float) -> float:
    """Return the upper end of the delay after an attempt, in seconds."""
    doublings = min(attempt - 1, 64)  # a float holds no more than 2 ** 1023
    return min(LONGEST_DELAY, backoff * 2.0**doublings)
