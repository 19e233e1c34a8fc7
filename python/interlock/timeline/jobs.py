"""Records of a table as bars: each from the version that a job read to the one that ended it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from interlock import tabular
from interlock.audit import ConflictRecord, Conflicts
from interlock.results import History, HistoryRecord

_COMPACTIONS = frozenset({"COMPACT_MINOR", "COMPACT_MAJOR", "MERGE_SMALLFILES"})
_COMPACTING = ("OPTIMIZE", "COMPACT", "MERGE SMALLFILES", "REORG")
_REJECTED = "REJECTED"
_REPEATS = frozenset({"time", "outcome", "txn_id", "winners"})  # the history says it otherwise


class Lane(Enum):
    """A part of the page, by its title."""

    COMMITTED = "Committed"
    COMPACTIONS = "Compactions"
    REJECTED = "Rejected"


@dataclass(frozen=True)
class Job:
    """A bar.

    Attributes:
        key: names it on the page, and in the page's address behind `#`
        lane: where it stands
        label: its operation
        operation_class: its class under the table's policy
        rejected: whether it lost
        read: the version that it had read, which is at most `end - 1`
        reads_unknown: whether nobody said so, and `read` is the version before
        end: the version that it made, or the one that it lost against
        passed: versions of other jobs that it met and passed
        record: what is known of it, as titles and texts

    """

    key: str
    lane: Lane
    label: str
    operation_class: str
    rejected: bool
    read: int
    reads_unknown: bool
    end: int
    passed: tuple[int, ...]
    record: tuple[tuple[str, str], ...]


def jobs(history: History, conflicts: Conflicts) -> list[Job]:
    """Make the bars of versions and of rejected jobs, in the order of their ends.

    Rejected jobs that ended outside these versions are left out.
    """
    rebased = {record.txn_id: record for record in conflicts if record.outcome != _REJECTED}
    committed = [_committed(record, rebased.get(record.txn_id or "")) for record in history]
    ends = [job.end for job in committed] or [0]
    rejected = (record for record in conflicts if record.outcome == _REJECTED)
    lost = {job.key: job for job in map(_rejected, rejected)}
    shown = (job for job in lost.values() if min(ends) <= job.end <= max(ends))
    return sorted([*committed, *shown], key=lambda job: (job.end, job.rejected, job.read))


def _committed(record: HistoryRecord, rebase: ConflictRecord | None) -> Job:
    end = record.version
    said = dict(_texts(record))
    more = () if rebase is None else _texts(rebase)
    details = said | {t: text for t, text in more if t not in said.keys() | _REPEATS}
    label = record.operation or "unknown operation"
    return Job(
        key=f"v{end}",
        lane=_lane(record.operation_class, label, rejected=False),
        label=label,
        operation_class=record.operation_class or "",
        rejected=False,
        read=end - 1 if record.read_version is None else min(record.read_version, end - 1),
        reads_unknown=record.read_version is None and end > 0,
        end=end,
        passed=record.winners or (),
        record=tuple(details.items()),
    )


def _rejected(record: ConflictRecord) -> Job:
    label = record.operation or "unknown operation"
    read = record.read_version
    end = max(record.winners, default=0 if read is None else read + 1)
    return Job(
        key=f"a-{record.txn_id}",
        lane=_lane(record.operation_class, label, rejected=True),
        label=label,
        operation_class=record.operation_class or "",
        rejected=True,
        read=end - 1 if read is None else min(read, end - 1),
        reads_unknown=read is None,
        end=end,
        passed=(),
        record=tuple(_texts(record)),
    )


def _lane(operation_class: str | None, operation: str, *, rejected: bool) -> Lane:
    if operation_class in _COMPACTIONS or (
        operation_class is None and operation.startswith(_COMPACTING)
    ):
        return Lane.COMPACTIONS
    return Lane.REJECTED if rejected else Lane.COMMITTED


def _texts(record: HistoryRecord | ConflictRecord) -> Iterator[tuple[str, str]]:
    """Write what is known of a record, by the names that SQL has."""
    for field, column in tabular.columns(type(record)).items():
        if text := tabular.text(getattr(record, field)):
            yield column.replace("_", " "), text
