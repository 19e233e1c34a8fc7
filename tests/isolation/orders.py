"""Serial orders of the jobs that succeeded, and what they leave in the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from tests.histories.model import Rows
from tests.isolation.statements import Statement

Values = Counter[tuple[object, ...]]


@dataclass(frozen=True)
class Done:
    """A job that succeeded.

    Attributes:
        statement: what it was
        read: the version that it read
        made: the version that it made

    """

    statement: Statement
    read: int
    made: int


def explains(policy: str, done: Sequence[Done], start: Rows, seen: Values) -> bool:
    """Tell whether one of the orders that a policy allows leaves the rows that are seen."""
    return any(values(_replayed(order, start)) == seen for order in _orders(policy, done))


def values(rows: Rows) -> Values:
    return Counter((row.id, row.v, row.p) for row in rows)


def _orders(policy: str, done: Sequence[Done]) -> Iterator[Sequence[Done]]:
    """The order of the commits; but for serializable also those in which blind appends move.

    A job that read what a blind append had brought stays behind it.
    """
    if policy == "serializable":
        yield done
        return
    for order in permutations(range(len(done))):
        place = {index: at for at, index in enumerate(order)}
        if all(
            place[first] < place[second]
            for second in range(len(done))
            for first in range(second)
            if not _may_change_places(done[first], done[second])
        ):
            yield [done[index] for index in order]


def _may_change_places(first: Done, second: Done) -> bool:
    if first.statement.blind:
        return second.read < first.made
    return second.statement.blind


def _replayed(order: Sequence[Done], rows: Rows) -> Rows:
    for job in order:
        rows = job.statement.effect(rows).on(rows, 0)
    return rows
