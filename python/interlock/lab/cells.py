"""The cases of the documents' cells.

A cell that says "can conflict" has two cases: jobs that overlap, of which the later one fails, and
jobs that touch different partitions or rows and both succeed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from interlock.lab import bodies
from interlock.lab.cases import Case
from interlock.lab.documents import MATRICES, Cell
from interlock.lab.example import PARTITIONED, PLAIN, SCATTERED, Example
from interlock.lab.model import COMPACTIONS, Body, Class, Outcome

II, UD, MIN = Class.II, Class.UD, Class.MIN
Pair = tuple[Class, Class]

_COMPACT = {kind: bodies.compact(kind) for kind in COMPACTIONS}
_EARLIER = {
    Class.IO: bodies.overwrite((100, "x")),
    II: bodies.insert((10, "i")),
    UD: bodies.update(1, "U"),
    **_COMPACT,
}
_LATER = {
    Class.IO: bodies.overwrite((200, "y")),
    II: bodies.insert((20, "j")),
    UD: bodies.delete(2),
    **_COMPACT,
}


@dataclass(frozen=True)
class _Jobs:
    """Two jobs of a cell of the Delta document."""

    earlier: Body
    later: Body
    example: Example = PLAIN


_INSERT, _UPDATE, _OPTIMIZE = _EARLIER[II], _EARLIER[UD], bodies.optimize(MIN)
_UPDATE_P1 = bodies.update(1, "U", "p = 1 AND id = 1")
_OPTIMIZE_P1, _OPTIMIZE_P2 = (bodies.optimize(MIN, partition=p) for p in (1, 2))

_MEET: dict[Pair, _Jobs] = {
    (II, II): _Jobs(_INSERT, _LATER[II]),
    (II, UD): _Jobs(_INSERT, bodies.delete(2, "id = 2 OR id = 10")),
    (II, MIN): _Jobs(_INSERT, _OPTIMIZE),
    (UD, II): _Jobs(_UPDATE, bodies.INSERT_FROM_SELF),
    (UD, UD): _Jobs(_UPDATE, bodies.delete(2, "id <= 2")),
    (UD, MIN): _Jobs(_UPDATE, _OPTIMIZE),
    (MIN, II): _Jobs(_OPTIMIZE, _LATER[II]),
    (MIN, UD): _Jobs(_OPTIMIZE, bodies.delete(2)),
    (MIN, MIN): _Jobs(_OPTIMIZE, _OPTIMIZE),
}
_APART: dict[Pair, _Jobs] = {
    (II, UD): _Jobs(_INSERT, bodies.delete(2)),
    (UD, II): _Jobs(_UPDATE, _LATER[II]),
    (UD, UD): _Jobs(_UPDATE_P1, bodies.update(3, "V", "p = 2 AND id = 3"), PARTITIONED),
    (UD, MIN): _Jobs(_UPDATE_P1, _OPTIMIZE_P2, SCATTERED),
    (MIN, UD): _Jobs(_OPTIMIZE_P2, _UPDATE_P1, SCATTERED),
    (MIN, MIN): _Jobs(_OPTIMIZE_P1, _OPTIMIZE_P2, SCATTERED),
}
# The document's INSERT is a blind one; an INSERT that reads can conflict, but is not here.
_BOTH = _MEET | {(UD, II): _APART[UD, II]}
_SAME_ROW = _Jobs(_UPDATE, bodies.update(1, "V"))
_OTHER_ROWS_OF_A_FILE = _Jobs(_UPDATE, bodies.delete(2))


def cases_of(policy: str, cell: Cell) -> tuple[Case, ...]:
    """Return the documents' own examples of a cell: one, or two where it says "can conflict"."""
    pair = (cell.earlier, cell.later)
    if not policy.startswith(("serializable", "write_serializable", "row_level")):
        return (Case(cell.id, policy, _EARLIER[pair[0]], _LATER[pair[1]], cell.outcome),)
    if cell.outcome is Outcome.BOTH:
        return (_case(policy, cell.id, _BOTH[pair], Outcome.BOTH),)
    meet, apart = _MEET[pair], _APART[pair]
    error = ""
    if policy == "row_level" and pair == (UD, UD):
        meet, apart, error = _SAME_ROW, _OTHER_ROWS_OF_A_FILE, "ConcurrentDeleteReadError"
    return (
        replace(_case(policy, f"{cell.id}-meet", meet, Outcome.FAIL), raises=error),
        _case(policy, f"{cell.id}-apart", apart, Outcome.BOTH),
    )


def _case(policy: str, identifier: str, jobs: _Jobs, outcome: Outcome) -> Case:
    return Case(identifier, policy, jobs.earlier, jobs.later, outcome, jobs.example)


def case(cell_id: str, policy: str = "") -> Case:
    """Return the only case of a cell by its id, such as D7.

    Args:
        cell_id: a cell that does not say "can conflict"
        policy: chooses among two cells with one id

    """
    for matrix in MATRICES.values():
        if policy in ("", matrix.policy):
            for cell in matrix.cells:
                if cell.id == cell_id:
                    (found,) = cases_of(matrix.policy, cell)
                    return found
    raise KeyError(cell_id)
