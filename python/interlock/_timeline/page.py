"""The page: one HTML file that needs no other file and no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from importlib import resources
from string import Template

from interlock import _tabular
from interlock._timeline.jobs import Job, jobs
from interlock.results import Conflicts, History

_SCRIPTS = ("layout.js", "drawing.js", "page.js")


def page(table: str, history: History, conflicts: Conflicts) -> str:
    """Write the page.

    Args:
        table: what the title calls the table
        history: the versions that are shown
        conflicts: records of rejected jobs, and of what is known besides of versions that passed
            others

    """
    shown = jobs(history, conflicts)
    versions = [record.version for record in history] or [0]
    data = {
        "first": min(versions) - 1,  # where jobs begin that read what is not shown
        "last": max(versions),
        "jobs": [asdict(job) for job in shown],
    }
    return Template(_resource("page.html")).substitute(
        title=escape(f"Timeline of {table}"),
        summary=escape(_summary(shown, history)),
        style=_resource("page.css"),
        data=_json(data),
        script="\n".join(map(_resource, _SCRIPTS)),
    )


def _summary(shown: Sequence[Job], history: History) -> str:
    if not history:
        return "No versions."
    newest, oldest = history[0], history[-1]
    rejected = sum(job.rejected for job in shown)
    passed = sum(bool(job.passed) for job in shown)
    return (
        f"Versions {oldest.version} to {newest.version}"
        f" ({_tabular.text(oldest.timestamp)[:19]} to {_tabular.text(newest.timestamp)[:19]} UTC): "
        f"{len(shown) - rejected} committed, {passed} of them past other jobs; {rejected} rejected."
    )


def _json(value: object) -> str:
    """Write JSON that ends no script element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _resource(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
