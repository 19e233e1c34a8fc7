"""The drawing: axis, bars and arrows as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from html import escape

from interlock.timeline.jobs import Job, Lane
from interlock.timeline.layout import BAR, TOP, Layout

_MOST_ARROWS = 8  # into one bar; its record names all versions that it passed
_CHARACTER = 6.6  # the width of one, in pixels
_TICK = 64  # the least distance between labels of the axis
_CLASSES = {"APPEND": "append", "MUTATE": "mutate", "OVERWRITE": "overwrite"}
_MARKERS = "".join(
    f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    f'orient="auto"><path d="M0 0L8 4L0 8z" class="{name}"/></marker>'
    for name in ("pass", "lost")
)


def svg(jobs: Sequence[Job], placed: Layout, times: Mapping[int, datetime | None]) -> str:
    """Draw the jobs.

    Args:
        jobs: in the order in which the keyboard goes through them
        placed: where they stand
        times: when versions were committed

    """
    known = {job.key: job for job in jobs}
    parts = [
        f'<svg width="{placed.width}" height="{placed.height}" role="group" '
        f'aria-label="Jobs by version"><defs>{_MARKERS}</defs>',
        *_bands(placed),
        *_axis(placed, times),
        *(arrow for job in jobs for arrow in _arrows(job, known, placed)),
        *(_bar(job, placed) for job in jobs),
        "</svg>",
    ]
    return "\n".join(parts)


def met(job: Job) -> list[str]:
    """List the keys of the versions that a job passed, or of the one it lost against."""
    versions = (job.end,) if job.rejected else job.passed
    return [f"v{version}" for version in versions]


def _bands(placed: Layout) -> Iterator[str]:
    for band in placed.bands:
        yield (
            f'<rect class="band" x="0" y="{band.top}" width="{placed.width}" '
            f'height="{band.height}"/>'
        )


def _axis(placed: Layout, times: Mapping[int, datetime | None]) -> Iterator[str]:
    every = -(-_TICK // placed.step)
    for version in range(placed.first + 1, placed.last + 1):
        x = placed.x(version)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP - 6}" y2="{placed.height}"/>'
        if (placed.last - version) % every == 0:
            yield f'<text class="tick" x="{x}" y="16">{version}</text>'
            if time := times.get(version):
                yield f'<text class="time" x="{x}" y="31">{time:%H:%M:%S}</text>'


def _bar(job: Job, placed: Layout) -> str:
    left, right = placed.x(job.read) + 4, placed.x(job.end) - (7 if job.rejected else 0)
    width = max(right - left, 4)
    middle = placed.rows[job.key]
    top = middle - BAR // 2
    names = ["job", _colour(job)]
    names += ["rejected"] if job.rejected else []
    names += ["passed"] if job.passed else []
    names += ["unsure"] if job.reads_unknown else []
    parts = [
        f'<g class="{" ".join(names)}" id="{escape(job.key)}" tabindex="0" role="button" '
        f'aria-label="{escape(_spoken(job))}">',
        f'<rect x="{left}" y="{top}" width="{width}" height="{BAR}" rx="4"/>',
    ]
    if label := _fitting(job.label, width):
        parts.append(f'<text x="{left + 6}" y="{middle + 4}">{escape(label)}</text>')
    if job.rejected:
        x = placed.x(job.end)
        cross = f"M{x - 5} {middle - 5}l10 10m0 -10l-10 10"
        parts.append(f'<path class="cross" d="{cross}"/>')
    return "".join([*parts, "</g>"])


def _arrows(job: Job, known: Mapping[str, Job], placed: Layout) -> Iterator[str]:
    """Draw an arrow from each winner to the job, where the winner stands on the axis."""
    kind = "lost" if job.rejected else "pass"
    for key in met(job)[-_MOST_ARROWS:]:
        winner = known.get(key)
        if winner is None:
            continue
        x, start, end = placed.x(winner.end), placed.rows[key], placed.rows[job.key]
        down = 1 if end > start else -1
        start += down * BAR // 2
        end -= down * (BAR // 2 if kind == "pass" else 7)
        bow = x - min(10, abs(end - start) // 3)
        path = f"M{x} {start}Q{bow} {(start + end) // 2} {x} {end}"
        yield (
            f'<path class="arrow {kind}" data-of="{escape(job.key)}" d="{path}" '
            f'marker-end="url(#{kind})"/>'
        )


def _colour(job: Job) -> str:
    if job.lane is Lane.COMPACTIONS:
        return "compaction"
    return _CLASSES.get(job.operation_class, "other")


def _spoken(job: Job) -> str:
    """Say in one line what a bar shows."""
    end = f"lost against version {job.end}" if job.rejected else f"made version {job.end}"
    passed = f", passed {', '.join(map(str, job.passed))}" if job.passed else ""
    return f"{job.label} read version {job.read}, {end}{passed}"


def _fitting(label: str, width: int) -> str:
    """Cut a label to the width of its bar; to nothing where little would be left."""
    room = int((width - 10) / _CHARACTER)
    if len(label) <= room:
        return label
    return f"{label[: room - 1]}…" if room >= 4 else ""
