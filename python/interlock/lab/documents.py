"""The matrices of the source documents, copied cell by cell: rows earlier, columns later.

The cells say `both` (both jobs succeed) or `fail` (the later one fails); their ids count them row
by row, as D1 to D25 and T1 to T16. `refused` marks what a kind of table does not offer at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from interlock.lab.model import Class, Outcome

IO, II, UD, MIN, MAJ, SFM = Class

_DELTA = """
        IO    II    UD    MIN   MAJ
IO      both  fail  fail  fail  fail
II      both  fail  fail  both  fail
UD      both  fail  fail  both  fail
MIN     both  both  both  fail  both
MAJ     both  both  both  fail  fail
"""

_TRANSACTIONAL = """
        IO    II    UD    SFM
IO      both  both  fail  fail
II      both  both  fail  fail
UD      both  both  fail  fail
SFM     both  both  fail  fail
"""

_STANDARD = """
        IO       II       UD       SFM
IO      both     both     refused  fail
II      both     both     refused  fail
UD      refused  refused  refused  refused
SFM     both     both     refused  fail
"""


@dataclass(frozen=True)
class Cell:
    """One cell of a document's matrix.

    Attributes:
        id: D1 to D25, T1 to T16
        earlier: the job that commits first
        later: the job that would commit second
        outcome: what the document says

    """

    id: str
    earlier: Class
    later: Class
    outcome: Outcome


@dataclass(frozen=True)
class Matrix:
    """A document's matrix and the policy that stands for it."""

    policy: str
    title: str
    classes: tuple[Class, ...]
    cells: tuple[Cell, ...]

    def cell(self, earlier: Class, later: Class) -> Cell:
        """Return the cell of a pair."""
        return next(c for c in self.cells if (c.earlier, c.later) == (earlier, later))


def _matrix(policy: str, title: str, letter: str, text: str) -> Matrix:
    header, *lines = (line.split() for line in text.strip().splitlines())
    classes = tuple(Class[name] for name in header)
    cells: list[Cell] = []
    for name, *outcomes in lines:
        for later, outcome in zip(classes, outcomes, strict=True):
            identifier = f"{letter}{len(cells) + 1}"
            cells.append(Cell(identifier, Class[name], later, Outcome(outcome)))
    return Matrix(policy, title, classes, tuple(cells))


MATRICES: dict[str, Matrix] = {
    matrix.policy: matrix
    for matrix in (
        _matrix("maxcompute_delta", "MaxCompute Delta tables", "D", _DELTA),
        _matrix("maxcompute_transactional", "MaxCompute transactional tables", "T", _TRANSACTIONAL),
        _matrix("maxcompute_standard", "MaxCompute standard tables", "T", _STANDARD),
    )
}
