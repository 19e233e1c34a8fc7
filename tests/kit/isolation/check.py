"""Compares what histories leave with the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from interlock.errors import ConflictError

from tests.kit.histories.columns import plain
from tests.kit.histories.model import Row, Rows
from tests.kit.histories.run import Ended
from tests.kit.isolation.generate import History
from tests.kit.isolation.orders import explains, values
from tests.kit.isolation.statements import COLUMNS, Statement
from tests.kit.isolation.workloads import START
from tests.kit.log_replay import check_log
from tests.kit.support import Table, deltalake_rows, latest_version

_FIRST = 1


def check(history: History, table: Table, ends: Sequence[Ended]) -> Counter[str]:
    """Raise AssertionError for the first difference from the oracle.

    Returns:
        the number of jobs that lost, and of those that passed a version that they had not read

    """
    check_log(table)
    states = {
        version: _rows(table, version) for version in range(_FIRST, latest_version(table) + 1)
    }
    done: list[Statement] = []
    count: Counter[str] = Counter()
    for turn, (planned, ended) in enumerate(zip(history.planned, ends, strict=True)):
        statement, _ = history.jobs[turn]
        if ended.error is not None:
            assert isinstance(ended.error, ConflictError), f"{statement.sql}: {ended.error!r}"
            count["lost"] += 1
            # A compaction that ended before its transaction began has moved what its source read.
            for (earlier, _), end in zip(history.jobs[: planned.begins], ends, strict=False):
                if earlier.compacts and end.version is not None:
                    assert end.version != ended.error.winner_version, f"for nothing: {ended.error}"
            before = list(zip(history.jobs[:turn], ends, strict=False))
            lost_to = ended.error.winner_version
            winner = next(job for (job, _), end in before if end.version == lost_to)
            harmless = statement.harmless or winner.harmless
            assert not harmless, f"lost for nothing: {ended.error}"
            by_rows = history.policy.startswith("row_") and history.vectors
            # Overwrites of partitions are compared with compactions by files.
            compacts = {statement.compacts, winner.compacts} == {True, False}
            replaces = statement.replaces_p or winner.replaces_p
            if history.partitioned and compacts and replaces:
                continue
            if by_rows and statement.compacts and winner.where is not None:
                raise AssertionError(f"a compaction lost for nothing: {ended.error}")
            if by_rows and statement.where is not None:
                strict = history.policy == "row_serializable"
                touched = _touched(before, states, lost_to, blind=strict)
                overlap = any(map(statement.where.holds, touched))
                assert overlap, f"lost for nothing: {ended.error}"
            continue
        if ended.version is None:  # its place in the order is the version that it read
            latest = max((e.version for e in ends[:turn] if e.version), default=ended.read)
            last = ended.read if statement.steps is None else max(latest, ended.read)
            read = (states[version] for version in range(ended.read, last + 1))
            assert any(statement.effect(s).is_empty for s in read), f"no effect: {statement.sql}"
            continue
        done.append(statement)
        count["passed"] += ended.version > ended.read + 1
        seen = states[ended.version]
        told = f"version {ended.version}: {sorted(values(seen).elements(), key=repr)}"
        assert history.workload.holds(seen, done), f"not kept: {history.name}; {told}"
        assert explains(history.policy, done, START, values(seen)), f"no order gives {told}"
    return count


def _touched(
    before: Sequence[tuple[tuple[Statement, int], Ended]],
    states: dict[int, Rows],
    version: int | None,
    *,
    blind: bool,
) -> list[Row]:
    """Return the rows, old and new, that the job which made a version has changed.

    Rows that it has added blindly count if `blind`, or if a job that is not blind may have read
    them.
    """
    (statement, _), winner = next(job for job in before if job[1].version == version)
    assert winner.version is not None
    if (
        statement.blind
        and not blind
        and not any(
            ended.read >= winner.version and ended.version and not (reader.blind or reader.compacts)
            for (reader, _), ended in before
        )
    ):
        return []
    change = statement.effect(states[winner.read])
    changed = [row for pair in change.updated for row in pair]
    return [*change.deleted, *change.inserted, *changed]


def _rows(table: Table, version: int) -> Rows:
    found = [plain(row) for row in deltalake_rows(table, version=version)]
    width = len(COLUMNS.names)
    rows = tuple(Row(row[0], row[1], row[width - 1]) for row in found)  # type: ignore[arg-type]
    assert list(map(COLUMNS.of, rows)) == [row[:width] for row in found], "the nested column"
    assert {value for row in found for value in row[width:]} <= {None}, "columns that were added"
    return rows
