"""The lab's results as the documents draw them: rows earlier, columns later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from interlock.lab.documents import Cell, Matrix
from interlock.lab.runner import CaseResult, show


class Mark(Enum):
    """The lab's judgement of a cell."""

    OK = "ok"
    WRONG = "WRONG"
    NOT_RUN = "-"


@dataclass(frozen=True)
class MatrixReport:
    """A document's matrix beside what was seen.

    Attributes:
        matrix: the document's matrix
        tables: the policy of the tables it ran on, or "stock Delta"
        results: what was run, by the cell's id

    """

    matrix: Matrix
    tables: str
    results: dict[str, CaseResult] = field(default_factory=dict)

    def mark(self, cell: Cell) -> Mark:
        """Judge one cell."""
        if cell.id in self.results:
            return Mark.OK if self.results[cell.id].ok else Mark.WRONG
        return Mark.NOT_RUN

    def seen(self, cell: Cell) -> str:
        """Say what came of the cell's two jobs, - if it was not run."""
        return self.results[cell.id].seen.value if cell.id in self.results else "-"

    def count(self, mark: Mark) -> int:
        """Count the cells with one mark."""
        return sum(self.mark(cell) is mark for cell in self.matrix.cells)


def as_text(report: MatrixReport) -> str:
    """Draw the matrix, and below it what is wrong with each wrong cell."""
    matrix = report.matrix
    header = ["earlier \\ later", *(kind.value for kind in matrix.classes)]
    rows = [
        [earlier.value, *(_cell_text(report, matrix.cell(earlier, c)) for c in matrix.classes)]
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


def grid(table: list[list[str]]) -> list[str]:
    """Draw a table whose first row is its header."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return [lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]


def _wrong_lines(report: MatrixReport) -> Iterable[str]:
    for result in report.results.values():
        if not result.ok:
            case = result.case
            yield f"\n{case.id} WRONG"
            yield f"  earlier: {case.earlier.sql.format(t='t')}"
            yield f"  later:   {case.later.sql.format(t='t')}"
            yield from (f"  {problem}" for problem in result.problems)


def _cell_json(report: MatrixReport, cell: Cell) -> dict[str, object]:
    described: dict[str, object] = {
        "id": cell.id,
        "earlier": cell.earlier.value,
        "later": cell.later.value,
        "expected": cell.outcome.value,
        "seen": report.seen(cell),
        "mark": report.mark(cell).value,
    }
    result = report.results.get(cell.id)
    if result is not None:
        described |= {
            "earlierStatement": result.case.earlier.sql.format(t="t"),
            "laterStatement": result.case.later.sql.format(t="t"),
            "expectedRows": show(result.case.rows),
            "rows": show(result.rows),
            "expectedError": result.case.error,
            "error": result.error,
            "problems": list(result.problems),
            "seconds": round(result.seconds, 2),
        }
    return described
