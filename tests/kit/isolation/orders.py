"""Serial orders of the jobs that succeeded, and the rows that they leave in the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations

from tests.kit.histories.model import Rows
from tests.kit.isolation.statements import Statement

Values = Counter[tuple[object, ...]]


def explains(policy: str, done: Sequence[Statement], start: Rows, seen: Values) -> bool:
    """Tell whether one of the orders that a policy allows leaves the rows that are seen."""
    return any(values(_replayed(order, start)) == seen for order in _orders(policy, done))


def values(rows: Rows) -> Values:
    return Counter((row.id, row.v, row.p) for row in rows)


def _orders(policy: str, done: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
    """The order of the commits; at WriteSerializable also those with blind appends moved."""
    if policy in ("serializable", "row_serializable"):
        yield done
        return
    commits = [index for index, statement in enumerate(done) if not statement.blind]
    for order in permutations(range(len(done))):
        if [index for index in order if not done[index].blind] == commits:
            yield [done[index] for index in order]


def _replayed(order: Sequence[Statement], rows: Rows) -> Rows:
    for statement in order:
        rows = statement.effect(rows).on(rows, 0)
    return rows
