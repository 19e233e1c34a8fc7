"""The lab's results as one HTML file that needs no other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from interlock.lab.documents import Cell
from interlock.lab.report import MatrixReport
from interlock.lab.runner import CaseResult, show

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Interlock lab</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2em; color: #222; }}
table {{ border-collapse: collapse; margin: 1em 0 2em; }}
th, td {{ border: 1px solid #bbb; padding: .5em .7em; text-align: left; vertical-align: top; }}
th {{ background: #f3f3f3; }}
td.ok {{ background: #e5f4e5; }}
td.WRONG {{ background: #fbdcdc; }}
details {{ font-size: 13px; max-width: 26em; }}
code {{ font-size: 12px; }}
</style>
</head>
<body>
<h1>Interlock lab</h1>
<p>{versions}. Rows: the job that commits earlier; columns: the later one. Both read one version.
Each cell: expected / seen, mark.</p>
{matrices}
</body>
</html>
"""


def as_html(reports: Sequence[MatrixReport], versions: str) -> str:
    """Return the page."""
    return _PAGE.format(versions=escape(versions), matrices="\n".join(map(_matrix, reports)))


def _matrix(report: MatrixReport) -> str:
    matrix = report.matrix
    head = "".join(f"<th>{escape(matrix.headings[kind])}</th>" for kind in matrix.classes)
    rows = "\n".join(
        f"<tr><th>{escape(matrix.headings[earlier])}</th>"
        + "".join(_cell(report, matrix.cell(earlier, later)) for later in matrix.classes)
        + "</tr>"
        for earlier in matrix.classes
    )
    title = escape(f"{matrix.title} on {report.tables}")
    return f"<h2>{title}</h2>\n<table>\n<tr><th>earlier \\ later</th>{head}</tr>\n{rows}\n</table>"


def _cell(report: MatrixReport, cell: Cell) -> str:
    mark = report.mark(cell).value
    text = f"<b>{cell.id}</b> {cell.outcome.value} / {report.seen(cell)} <b>{mark}</b>"
    details = "".join(map(_details, report.of(cell)))
    return f'<td class="{mark}">{text}{details}</td>'


def _details(result: CaseResult) -> str:
    lines = [
        f"<code>{escape(result.case.earlier.sql.format(t='t'))}</code>",
        f"<code>{escape(result.case.later.sql.format(t='t'))}</code>",
        escape(f"rows {show(result.rows)}"),
        *([escape(result.error)] if result.error else []),
        *map(escape, result.problems),
    ]
    summary = f"{result.case.id}: {result.seen.value}, {result.seconds:.1f} s"
    return f"<details><summary>{summary}</summary>{'<br>'.join(lines)}</details>"
