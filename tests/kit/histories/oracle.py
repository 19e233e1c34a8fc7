"""The required result of a history: the documents' verdicts, and a replay of the successes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.kit.histories.documents import Heading, Verdict, Winner, verdict
from tests.kit.histories.generate import History
from tests.kit.histories.model import NOWHERE, Change, Job, Rows
from tests.kit.histories.physical import Version
from tests.kit.histories.run import Ended
from tests.kit.histories.templates import Start


@dataclass(frozen=True)
class Expected:
    """The required result of one job.

    Attributes:
        verdict: the documents' verdict
        change: its effect on rows, nothing if it failed
        version: the version that it must have made, if any
        by_hand: whether another writer made it

    """

    verdict: Verdict
    change: Change
    version: int | None
    by_hand: bool = False


@dataclass(frozen=True)
class Replay:
    """The required result of a whole history.

    Attributes:
        jobs: in the order of their commits
        states: the rows at every version since the start

    """

    jobs: tuple[Expected, ...]
    states: dict[int, Rows]


@dataclass(frozen=True)
class _Committed:
    """A job that has made a version.

    Attributes:
        judged_as: the job in the documents' terms
        changed: the partitions that it changed, None if nobody tells

    """

    judged_as: Winner
    changed: frozenset[int | None] | None


def replay(history: History, start: Start, ends: Sequence[Ended], log: Sequence[Version]) -> Replay:
    """Replay the jobs in the order of their commits, each judged against those it did not read.

    The documents leave open which files a compaction takes. Whether it made a version, and in which
    partitions, is therefore taken from the real run.
    """
    states, winners = {start.version: start.rows}, list[_Committed]()
    expected, latest = [], start.version
    for planned, ended in zip(history.jobs, ends, strict=True):
        job, read, now = planned.job, states[ended.read], states[latest]
        if job.refused_as is not None:
            expected.append(Expected(Verdict(), Change(), None))
            continue
        missed = [winner for winner in winners if winner.judged_as.version > ended.read]
        overlapping = [w.judged_as for w in missed if _overlaps(history, job, read, w.changed)]
        ruling = verdict(history.template.page, overlapping, job.heading)
        succeeds = ruling.lost_to is None
        change = job.change(read, now) if succeeds else Change()
        if job.heading is Heading.UPDATE and succeeds:
            _check_read_what_is_there(change, job.change(read, read))
        version = latest + 1 if succeeds and _makes_version(job, change, ended) else None
        if version is not None and version < len(log):
            states[version] = change.on(now, version)
            changed = log[version].changed if job.compacts else change.partitions
            judged_as = Winner(version, job.heading)
            winners.append(_Committed(judged_as, changed if job.tells else None))
            latest = version
        expected.append(Expected(ruling, change, version, job.by_hand is not None))
    return Replay(tuple(expected), states)


def _overlaps(
    history: History, job: Job, read: Rows, changed: frozenset[int | None] | None
) -> bool:
    """Tell whether a job writes, replaces or can select anything in partitions that changed."""
    if not history.template.partitioned:
        return bool(changed)
    written = job.change(read, read).partitions
    if changed is None:
        return job.covers is not NOWHERE or bool(written)
    return any(job.covers(p) or p in written for p in changed)


def _makes_version(job: Job, change: Change, ended: Ended) -> bool:
    if job.compacts:
        return ended.held  # it found something to compact
    return job.heading is Heading.OVERWRITE or not change.is_empty


def _check_read_what_is_there(change: Change, planned: Change) -> None:
    """Check that a MUTATE changes only rows that it read; otherwise the verdict is wrong."""

    def touched(of: Change) -> Counter[object]:
        rows = (*of.deleted, *of.inserted, *(before for before, _ in of.updated))
        return Counter(replace(row, since=None) for row in rows)

    assert touched(change) == touched(planned), "the job changes rows that it has not read"
