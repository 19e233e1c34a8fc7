"""The lab's results in the documents' form: each row is the earlier job, each column the later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

from interlock._tabular import grid
from interlock.lab.documents import Cell, Matrix
from interlock.lab.runner import CaseResult, show


class Mark(Enum):
    """The lab's judgement of a cell."""

    OK = "ok"
    WRONG = "WRONG"
    NOT_RUN = "-"


@dataclass(frozen=True)
class MatrixReport:
    """A document's matrix, with the lab's results.

    Attributes:
        matrix: the document's matrix
        tables: the policy of the tables it ran on, or "stock Delta"
        results: what was run, by the cell's id: one case or two

    """

    matrix: Matrix
    tables: str
    results: dict[str, list[CaseResult]] = field(default_factory=dict)

    def add(self, cell: Cell, result: CaseResult) -> None:
        """Add the result of a case of a cell."""
        self.results.setdefault(cell.id, []).append(result)

    def of(self, cell: Cell) -> Sequence[CaseResult]:
        """Return the results of the cell's cases, none if it was not run."""
        return self.results.get(cell.id, ())

    def mark(self, cell: Cell) -> Mark:
        """Judge one cell."""
        if results := self.of(cell):
            return Mark.OK if all(result.ok for result in results) else Mark.WRONG
        return Mark.NOT_RUN

    def seen(self, cell: Cell) -> str:
        """Return the outcome of each of the cell's cases, or - if it was not run."""
        return ", ".join(result.seen.value for result in self.of(cell)) or "-"

    def count(self, mark: Mark) -> int:
        """Count the cells with one mark."""
        return sum(self.mark(cell) is mark for cell in self.matrix.cells)


def as_text(report: MatrixReport) -> str:
    """Draw the matrix, and below it what is wrong with each wrong cell."""
    matrix = report.matrix
    header = ["earlier \\ later", *(matrix.headings[kind] for kind in matrix.classes)]
    rows = [
        [
            matrix.headings[earlier],
            *(_cell_text(report, matrix.cell(earlier, c)) for c in matrix.classes),
        ]
        for earlier in matrix.classes
    ]
    title = f"{matrix.title} on {report.tables}; each cell: expected/seen mark"
    counts = ", ".join(f"{report.count(m)} {m.value}" for m in (Mark.OK, Mark.WRONG))
    return "\n".join([title, "", *grid([header, *rows]), "", counts, *_wrong_lines(report)])


def as_json(report: MatrixReport) -> dict[str, object]:
    """Return the same for machines."""
    return {
        "policy": report.matrix.policy,
        "tables": report.tables,
        "ok": report.count(Mark.OK),
        "wrong": report.count(Mark.WRONG),
        "cells": [_cell_json(report, cell) for cell in report.matrix.cells],
    }


def _cell_text(report: MatrixReport, cell: Cell) -> str:
    return f"{cell.id} {cell.outcome.value}/{report.seen(cell)} {report.mark(cell).value}"


def _wrong_lines(report: MatrixReport) -> Iterable[str]:
    for result in chain.from_iterable(report.results.values()):
        if not result.ok:
            case = result.case
            yield f"\n{case.id} WRONG"
            yield f"  earlier: {case.earlier.sql.format(t='t')}"
            yield f"  later:   {case.later.sql.format(t='t')}"
            yield from (f"  {problem}" for problem in result.problems)


def _cell_json(report: MatrixReport, cell: Cell) -> dict[str, object]:
    return {
        "id": cell.id,
        "earlier": report.matrix.headings[cell.earlier],
        "later": report.matrix.headings[cell.later],
        "expected": cell.outcome.value,
        "mark": report.mark(cell).value,
        "cases": [_case_json(result) for result in report.of(cell)],
    }


def _case_json(result: CaseResult) -> dict[str, object]:
    return {
        "id": result.case.id,
        "earlierStatement": result.case.earlier.sql.format(t="t"),
        "laterStatement": result.case.later.sql.format(t="t"),
        "expected": result.case.outcome.value,
        "seen": result.seen.value,
        "expectedRows": show(result.case.rows),
        "rows": show(result.rows),
        "expectedError": result.case.error,
        "error": result.error,
        "problems": list(result.problems),
        "seconds": round(result.seconds, 2),
    }
