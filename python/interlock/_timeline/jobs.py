"""Makes jobs of a table's records; each goes from the version it read to the one that ended it.

Nothing else reads records of conflicts for the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from interlock import _tabular
from interlock.results import ConflictRecord, Conflicts, History, HistoryRecord

_REJECTED = "REJECTED"
_KINDS = {
    "APPEND": "append",
    "OVERWRITE": "overwrite",
    "MUTATE": "mutate",
    "COMPACT_MINOR": "minor",
    "COMPACT_MAJOR": "major",
    "MERGE_SMALLFILES": "small-files",
}
_KINDS_WITHOUT_CLASS = {  # by how the operation begins; the first that fits
    "INSERT INTO": "append",
    "STREAMING UPDATE": "append",
    "INSERT OVERWRITE": "overwrite",
    "TRUNCATE": "overwrite",
    "COMPACT MINOR": "minor",
    "COMPACT MAJOR": "major",
    "MERGE SMALLFILES": "small-files",
    "OPTIMIZE": "small-files",
    "REORG": "small-files",
    "UPDATE": "mutate",
    "DELETE": "mutate",
    "MERGE": "mutate",
}
_COMPACTIONS = ("minor", "major", "small-files")
_TOLD = frozenset({"message"})  # stands in the story
_REPEATS = frozenset(
    {"time", "outcome", "txn_id", "winners", "rules", "verdicts"}
)  # the history says it otherwise

Value = str | tuple[str, ...]


class Lane(str, Enum):
    """A part of the page, by its title."""

    COMMITTED = "Committed"
    COMPACTIONS = "Compactions"
    REJECTED = "Rejected"


@dataclass(frozen=True)
class Job:
    """A bar of the page, and the texts about it.

    Attributes:
        key: its name on the page, and in the page's address after `#`
        label: its operation
        kind: how it is drawn: append, overwrite, mutate, minor, major, small-files or other
        lane: the lane it is in
        rejected: whether it lost
        read: the version that it had read, which is at most `end - 1`
        reads_unknown: whether that version is not known, and `read` is the version before `end`
        end: the version that it made, or the one that it lost against
        passed: versions of other jobs that it passed
        time: when it ended, in milliseconds since 1970
        user: who ran it
        application: Spark's id of the application
        partitions: the partitions in which it overlaps with others
        story: what happened, in sentences
        fields: all other facts about it, as titles and values

    """

    key: str
    label: str
    kind: str
    lane: Lane
    rejected: bool
    read: int
    reads_unknown: bool
    end: int
    passed: tuple[int, ...]
    time: int | None
    user: str | None
    application: str | None
    partitions: tuple[str, ...]
    story: tuple[str, ...]
    fields: tuple[tuple[str, Value], ...]


def jobs(history: History, conflicts: Conflicts) -> list[Job]:
    """Make jobs of versions and of rejected commits, in the order of their ends.

    Rejected commits that ended outside these versions are left out.
    """
    rebased = {record.txn_id: record for record in conflicts if record.outcome != _REJECTED}
    versions = {record.version: record for record in history}
    overlaps = _overlaps(conflicts)
    committed = [
        _committed(record, rebased.get(record.txn_id or ""), versions, overlaps)
        for record in history
    ]
    rejected = (record for record in conflicts if record.outcome == _REJECTED)
    lost = {job.key: job for job in map(_rejected, rejected)}
    first, last = min(versions, default=0), max(versions, default=0)
    shown = (job for job in lost.values() if first <= job.end <= last)
    return sorted([*committed, *shown], key=lambda job: (job.end, job.rejected, job.read))


def _committed(
    record: HistoryRecord,
    rebase: ConflictRecord | None,
    versions: Mapping[int, HistoryRecord],
    overlaps: Mapping[int, set[str]],
) -> Job:
    end, read = record.version, record.read_version
    label = record.operation or "unknown operation"
    kind = _kind(record.operation_class, label)
    known = dict(_values(record))
    more = {} if rebase is None else dict(_values(rebase))
    known |= {title: more[title] for title in more.keys() - known.keys() - _REPEATS}
    return Job(
        key=f"v{end}",
        label=label,
        kind=kind,
        lane=Lane.COMPACTIONS if kind in _COMPACTIONS else Lane.COMMITTED,
        rejected=False,
        read=end - 1 if read is None else min(read, end - 1),
        reads_unknown=read is None and end > 0,
        end=end,
        passed=record.winners or (),
        time=_millis(record.timestamp),
        user=record.user,
        application=None,
        partitions=tuple(sorted(overlaps.get(end, set()).union(_partitions(rebase)))),
        story=tuple(_made(record, versions)),
        fields=_shown(known),
    )


def _rejected(record: ConflictRecord) -> Job:
    read = record.read_version
    end = max(record.winners, default=0 if read is None else read + 1)
    label = record.operation or "unknown operation"
    kind = _kind(record.operation_class, label)
    return Job(
        key=f"a-{record.txn_id}",
        label=label,
        kind=kind,
        lane=Lane.COMPACTIONS if kind in _COMPACTIONS else Lane.REJECTED,
        rejected=True,
        read=end - 1 if read is None else min(read, end - 1),
        reads_unknown=read is None,
        end=end,
        passed=(),
        time=_millis(record.time),
        user=record.user,
        application=record.application,
        partitions=_partitions(record),
        story=tuple(_lost(record)),
        fields=_shown(dict(_values(record))),
    )


def _made(record: HistoryRecord, versions: Mapping[int, HistoryRecord]) -> Iterator[str]:
    """Describe a commit in the words of `Table.explain`."""
    read = record.read_version
    had_read = "" if read is None else f" It had read version {read}."
    made = f"{_job(record.operation, record.operation_class)} made version {record.version}."
    if not record.winners:
        yield f"{made}{had_read}"
        return
    yield f"{made}{had_read} There were other commits, and it passed them:"
    rulings = zip(record.winners, record.rules or (), record.verdicts or (), strict=True)
    for version, rule, verdict in rulings:
        other = versions.get(version)
        known = (other.operation, other.operation_class) if other else (None, None)
        ruling = f"{verdict or 'unknown'}, rule {rule or 'unknown'}"
        yield f"over {_version(version, *known)}: {ruling}"


def _lost(record: ConflictRecord) -> Iterator[str]:
    """Describe a rejected commit in the words of its error."""
    winner = next((f"version {version}" for version in record.winners), "another commit")
    yield f"{record.operation or 'A job'} lost against {winner}."
    yield from (record.message or "").splitlines()


def _job(operation: str | None, operation_class: str | None) -> str:
    return (operation or "A job") + (f" ({operation_class})" if operation_class else "")


def _version(version: int, operation: str | None, operation_class: str | None) -> str:
    known = ", ".join(filter(None, (operation, operation_class)))
    return f"version {version} ({known})" if known else f"version {version}"


def _kind(operation_class: str | None, operation: str) -> str:
    if operation_class is not None:
        return _KINDS.get(operation_class, "other")
    kinds = _KINDS_WITHOUT_CLASS.items()
    return next((kind for begin, kind in kinds if operation.startswith(begin)), "other")


def _overlaps(conflicts: Conflicts) -> dict[int, set[str]]:
    """Find the partitions in which versions overlap with later jobs, if the records tell them."""
    found: dict[int, set[str]] = {}
    for record in conflicts:
        winners, partitions = record.winners, _partitions(record)
        if len(winners) == 1 or len(partitions) == 1:
            for version in winners:
                found.setdefault(version, set()).update(partitions)
    return found


def _partitions(record: ConflictRecord | None) -> tuple[str, ...]:
    scope = ((record and record.scope) or "").replace("; ", ", ")
    return tuple(name for name in scope.split(", ") if name not in ("", "..."))


def _millis(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


def _values(record: HistoryRecord | ConflictRecord) -> Iterator[tuple[str, Value]]:
    """Give what is known of a record, by the names that SQL has."""
    for field, column in _tabular.columns(type(record)).items():
        value = getattr(record, field)
        if isinstance(value, Mapping):
            value = tuple(f"{key}={_tabular.text(item)}" for key, item in value.items())
        if isinstance(value, tuple):
            value = tuple(map(_tabular.text, value))
        if shown := value if isinstance(value, tuple) else _tabular.text(value):
            yield column, shown


def _shown(known: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(
        (column.replace("_", " "), value) for column, value in known.items() if column not in _TOLD
    )
