"""Runs statements of somebody else's code beside others that commit first.

    beside = Beside()
    with beside.installed():
        beside.let_win("merge into", "UPDATE t SET v = 1 WHERE id = 1")
        ...  # code that runs a MERGE

The MERGE is held before its commit until the UPDATE has committed (`interlock.race`). Needs nothing
but Interlock, so that it runs in the environments of recipes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import interlock
from interlock._races import Job
from pyspark.sql import DataFrame, SparkSession

_sql: Callable[..., DataFrame] = SparkSession.sql


class Beside:
    """Stands in the place of `SparkSession.sql`."""

    def __init__(self, *, before: tuple[str, ...] = ()) -> None:
        self._before = list(before)
        self._winners: list[tuple[str, str]] = []
        self._unanswered: str | None = None

    def let_win(self, part: str, winner: str) -> None:
        """Let `winner` commit while the next statement with `part` in it waits to commit."""
        self._winners.append((part.lower(), winner))

    def lose_reply(self, part: str) -> None:
        """Let statements with `part` in them commit, and then raise CommitStateUnknown."""
        self._unanswered = part.lower()

    def all_met(self) -> bool:
        """Tell whether each winner has met its statement."""
        return not self._winners

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Look at each statement meanwhile."""

        def sql(session: SparkSession, query: str, *args: Any, **kwargs: Any) -> DataFrame:
            while self._before:
                _sql(session, self._before.pop(0))
            winner = self._winner_of(query)
            frame = (
                _after(session, winner, query) if winner else _sql(session, query, *args, **kwargs)
            )
            if self._unanswered and self._unanswered in query.lower():
                raise interlock.CommitStateUnknown("The reply to the commit was lost.")
            return frame

        SparkSession.sql = sql  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            SparkSession.sql = _sql  # type: ignore[method-assign]

    def _winner_of(self, query: str) -> str | None:
        for pair in self._winners:
            if pair[0] in query.lower():
                self._winners.remove(pair)
                return pair[1]
        return None


def _after(session: SparkSession, winner: str, query: str) -> DataFrame:
    frames: list[DataFrame] = []
    later = Job(query, lambda spark: frames.append(_sql(spark, query)))
    won, held = interlock.race(session, Job(winner, lambda spark: _sql(spark, winner)), later)
    assert won.ok, won.error
    assert held.held, f"{query} never came to its commit"
    if held.error:
        raise held.error
    return frames[0]
