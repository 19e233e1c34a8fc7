"""Places bars: versions across, and down as many rows as jobs ran beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from interlock.timeline.jobs import Job, Lane

ROW = 30
BAR = 20
TOP = 44  # the axis above the lanes
_GAP = 18  # between lanes
_LEFT = 24
_WIDTHS = ((40, 84), (120, 56), (400, 36))  # of a version, by the most versions it is for
_NARROW = 24


@dataclass(frozen=True)
class Band:
    """The place of a lane, in pixels from the top."""

    lane: Lane
    top: int
    height: int


@dataclass(frozen=True)
class Layout:
    """Where everything stands, in pixels.

    Attributes:
        first: the first version on the axis, which may be one before all that are shown
        last: the last
        step: from one version to the next
        bands: the lanes that have a job, from the top
        rows: the middle of each job's row, by the job's key

    """

    first: int
    last: int
    step: int
    bands: tuple[Band, ...]
    rows: dict[str, int]

    @property
    def width(self) -> int:
        """Return the width of the drawing."""
        return self.x(self.last) + _LEFT + self.step // 2

    @property
    def height(self) -> int:
        """Return the height of the drawing."""
        return self.bands[-1].top + self.bands[-1].height if self.bands else TOP

    def x(self, version: int) -> int:
        """Return where a version stands; those before the first stand at the edge."""
        return _LEFT + max(0, version - self.first) * self.step


def layout(jobs: Sequence[Job], versions: Iterable[int]) -> Layout:
    """Place the jobs.

    Args:
        jobs: in the order of their ends
        versions: those that are shown

    """
    shown = sorted(versions) or [0]
    first, last = shown[0] - 1, max([shown[-1], *(job.end for job in jobs)])
    step = next((width for most, width in _WIDTHS if last - first <= most), _NARROW)
    bands: list[Band] = []
    rows: dict[str, int] = {}
    top = TOP
    for lane in Lane:
        own = [job for job in jobs if job.lane is lane]
        if own:
            numbers = _packed(own)
            rows |= {key: top + number * ROW + ROW // 2 for key, number in numbers.items()}
            bands.append(Band(lane, top, (max(numbers.values()) + 1) * ROW))
            top += bands[-1].height + _GAP
    return Layout(first, last, step, tuple(bands), rows)


def _packed(jobs: Sequence[Job]) -> dict[str, int]:
    """Give each job the uppermost row in which nothing ran beside it."""
    ends: list[int] = []
    rows: dict[str, int] = {}
    for job in sorted(jobs, key=lambda job: (job.read, job.end)):
        row = next((number for number, end in enumerate(ends) if end <= job.read), len(ends))
        ends[row : row + 1] = [job.end]
        rows[job.key] = row
    return rows
