"""The page: one HTML file that needs no other and asks no network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from interlock import tabular
from interlock.audit import Conflicts
from interlock.results import History
from interlock.timeline import drawing
from interlock.timeline.jobs import Job, jobs
from interlock.timeline.layout import Layout, layout

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{summary}</p>
<ul class="legend">{legend}</ul>
</header>
<div class="chart">
<div class="lanes" style="height:{height}px" aria-hidden="true">{lanes}</div>
<div class="scroll" id="scroll">{svg}</div>
</div>
<section id="record" aria-live="polite">
<h2>No job chosen</h2>
<p>Point at a bar, or go through them with Tab and the arrow keys. A click keeps one, Escape
lets it go.</p>
</section>
<script type="application/json" id="records">{records}</script>
<script>
{script}</script>
</body>
</html>
"""

_CLASSES = {
    "append": "APPEND",
    "mutate": "MUTATE",
    "overwrite": "OVERWRITE",
    "compaction": "compaction",
    "other": "other",
}


def page(table: str, history: History, conflicts: Conflicts) -> str:
    """Write the page.

    Args:
        table: what the title calls the table
        history: the versions that are shown
        conflicts: records of rejected jobs, and of what is known besides of versions that passed
            others

    """
    bars = jobs(history, conflicts)
    placed = layout(bars, [record.version for record in history])
    times = {record.version: record.timestamp for record in history}
    return _PAGE.format(
        title=escape(f"Timeline of {table}"),
        style=_resource("page.css"),
        summary=escape(_summary(bars, history)),
        legend="".join(_legend()),
        height=placed.height,
        lanes="".join(_lane_titles(placed)),
        svg=drawing.svg(bars, placed, times),
        records=_json({job.key: _record(job) for job in bars}),
        script=_resource("page.js"),
    )


def _summary(bars: Sequence[Job], history: History) -> str:
    if not history:
        return "No versions."
    newest, oldest = history[0], history[-1]
    rejected = sum(job.rejected for job in bars)
    passed = sum(bool(job.passed) for job in bars)
    return (
        f"Versions {oldest.version} to {newest.version}"
        f" ({tabular.text(oldest.timestamp)[:19]} to {tabular.text(newest.timestamp)[:19]} UTC): "
        f"{len(bars) - rejected} committed, {passed} of them past other jobs; {rejected} rejected."
    )


def _legend() -> Iterator[str]:
    for name, title in _CLASSES.items():
        yield f'<li><i class="swatch {name}"></i>{title}</li>'
    yield '<li><i class="swatch rejected"></i>rejected</li>'
    yield '<li><b class="pass">↓</b>passed by a rebase</li>'
    yield '<li><b class="lost">↓</b>lost against</li>'
    yield "<li>A bar goes from the version that a job read to the one that it made or lost to.</li>"


def _lane_titles(placed: Layout) -> Iterator[str]:
    for band in placed.bands:
        yield f'<span style="top:{band.top}px">{band.lane.value}</span>'


def _record(job: Job) -> dict[str, object]:
    end = f"lost against version {job.end}" if job.rejected else f"version {job.end}"
    passed = f", past {', '.join(map(str, job.passed))}" if job.passed else ""
    return {
        "title": f"{job.label}: {end}{passed}",
        "fields": job.record,
        "near": drawing.met(job),
    }


def _json(value: object) -> str:
    """Write JSON that ends no script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
