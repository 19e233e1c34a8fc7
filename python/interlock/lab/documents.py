"""The matrices of the source documents, copied cell by cell; each row is the earlier job.

The cells say `both` (both jobs succeed) or `fail` (the later one fails); their ids count them row
by row, as D1 to D25 and T1 to T16. `refused` marks an operation that a kind of table does not have,
and `can` is the Delta document's "can conflict": whether the later job fails depends on what the
jobs touch. That document names pairs without an order; here each pair has a cell for both orders.
"""

from __future__ import annotations

from collections.abc import Mapping
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

_SERIALIZABLE = """
        II    UD    MIN
II      both  can   both
UD      can   can   can
MIN     both  can   can
"""

_WRITE_SERIALIZABLE = """
        II    UD    MIN
II      both  both  both
UD      both  can   can
MIN     both  can   can
"""

# The matrix of WriteSerializable by rows: a compaction and an UPDATE do not conflict.
_ROW_LEVEL = """
        II    UD    MIN
II      both  both  both
UD      both  can   both
MIN     both  both  can
"""

_HEADINGS: Mapping[Class, str] = {kind: kind.value for kind in Class}
_DELTA_HEADINGS = {II: "INSERT", UD: "UPDATE, DELETE, MERGE INTO", MIN: "OPTIMIZE"}


@dataclass(frozen=True)
class Cell:
    """One cell of a document's matrix.

    Attributes:
        id: D1 to D25, T1 to T16, S1 to S9, W1 to W9, R1 to R9
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
    """A document's matrix and the policy that stands for it.

    Attributes:
        policy: the policy's name
        title: what the document is about
        classes: the kinds of jobs, in the document's order
        cells: row by row
        headings: what the document calls its kinds

    """

    policy: str
    title: str
    classes: tuple[Class, ...]
    cells: tuple[Cell, ...]
    headings: Mapping[Class, str]

    def cell(self, earlier: Class, later: Class) -> Cell:
        """Return the cell of a pair."""
        return next(c for c in self.cells if (c.earlier, c.later) == (earlier, later))


def _matrix(
    policy: str, title: str, letter: str, text: str, headings: Mapping[Class, str] = _HEADINGS
) -> Matrix:
    header, *lines = (line.split() for line in text.strip().splitlines())
    classes = tuple(Class[name] for name in header)
    cells: list[Cell] = []
    for name, *outcomes in lines:
        for later, outcome in zip(classes, outcomes, strict=True):
            identifier = f"{letter}{len(cells) + 1}"
            cells.append(Cell(identifier, Class[name], later, Outcome(outcome)))
    return Matrix(policy, title, classes, tuple(cells), headings)


MATRICES: dict[str, Matrix] = {
    matrix.policy: matrix
    for matrix in (
        _matrix("maxcompute_delta", "MaxCompute Delta tables", "D", _DELTA),
        _matrix("maxcompute_transactional", "MaxCompute transactional tables", "T", _TRANSACTIONAL),
        _matrix("maxcompute_standard", "MaxCompute standard tables", "T", _STANDARD),
        _matrix("serializable", "Delta, Serializable", "S", _SERIALIZABLE, _DELTA_HEADINGS),
        _matrix(
            "write_serializable",
            "Delta, WriteSerializable",
            "W",
            _WRITE_SERIALIZABLE,
            _DELTA_HEADINGS,
        ),
        _matrix("row_level", "Delta, by rows", "R", _ROW_LEVEL, _DELTA_HEADINGS),
    )
}
