"""Compares what the blocks of a history have read, and what is in the tables, with isolation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from tests.kit.block_histories.cycles import Edge, anomalies
from tests.kit.block_histories.generate import TABLES, TOTAL, Block
from tests.kit.block_histories.run import Ended
from tests.kit.log_replay import check_log
from tests.kit.support import Table, deltalake_rows, unknown_files

Row = tuple[int, int]
Lists = dict[Row, list[str]]


def check_tables(tables: Sequence[Table]) -> None:
    """Check the logs, and that no file is left over."""
    for table in tables:
        check_log(table)
        assert unknown_files(table) == []


def lists_of(tables: Sequence[Table]) -> Lists:
    """Read what is in the tables at the end."""
    return {
        (number, int(str(row[0]))): str(row[1]).split()
        for number in range(TABLES)
        for row in deltalake_rows(tables[number])
    }


def check_lists(policy: str, ends: Sequence[Ended], lists: Lists) -> Counter[str]:
    """Raise AssertionError for the first anomaly that the policy forbids.

    A policy without `serializable` judges what a block has read of the tables that it changes. No
    policy judges the queries of a block without changes.

    Returns:
        the number of blocks by outcome, and 1 for each kind of anomaly that the policy lets pass

    """
    committed = [ended.block for ended in ends if ended.outcome == "committed"]
    _nothing_lost_or_doubled(committed, lists)
    for ended in ends:
        _reads_are_of_whole_blocks(ended, lists)
    edges = set(_edges(policy, ends, lists))
    circles = anomalies([edge for edge in edges if edge.is_judged])
    for name, circle in circles.items():
        raise AssertionError(f"{name}: {', '.join(map(str, circle))}")
    return Counter(ended.outcome for ended in ends) + Counter(anomalies(edges).keys())


def check_bank(ends: Sequence[Ended], tables: Sequence[Table]) -> Counter[str]:
    """Raise AssertionError unless all have seen the same sum, and it is there at the end."""
    for ended in ends:
        for _, total in ended.found:
            assert total == TOTAL, f"{total} instead of {TOTAL} in {ended}"
    found = sum(int(str(row[1])) for table in tables for row in deltalake_rows(table))
    assert found == TOTAL
    return Counter(ended.outcome for ended in ends)


def _row(block: Block, number: int) -> Row:
    """Name the row that a step is on: by its table and its key."""
    return block.steps[number].table, block.steps[number].key


def _values(block: Block, row: Row, steps: int | None = None) -> list[str]:
    """What the block's first statements append to a row's list."""
    return [
        str(step.value)
        for step in block.steps[:steps]
        if step.value is not None and (step.table, step.key) == row
    ]


def _writer(value: str) -> int:
    return int(value.split(".")[0])


def _nothing_lost_or_doubled(committed: Sequence[Block], lists: Lists) -> None:
    for row, found in lists.items():
        wanted = [_values(block, row) for block in committed]
        appended = [value for values in wanted for value in values]
        assert Counter(found) == Counter(appended), f"lost or doubled: {row}: {found}, {appended}"
        in_order = {_writer(values[0]): values for values in wanted if values}
        for writer, values in groupby(found, _writer):
            assert list(values) == in_order[writer], f"G0: block {writer} amid others in {found}"


def _before(ended: Ended, row: Row, number: int, answer: str) -> list[str]:
    """Return what others have appended to a list that a block has read."""
    read, own = answer.split(), _values(ended.block, row, number)
    assert read[len(read) - len(own) :] == own, f"own changes: {own} are not in {answer}: {ended}"
    return read[: len(read) - len(own)]


def _reads_are_of_whole_blocks(ended: Ended, lists: Lists) -> None:
    first: Lists = {}
    for number, answer in ended.found:
        row = _row(ended.block, number)
        read, there = _before(ended, row, number, answer), lists[row]
        assert first.setdefault(row, read) == read, f"unrepeatable: {row} of {ended}"
        assert read == there[: len(read)], f"G1a: {read} is no beginning of {there}: {ended}"
        rest = there[len(read) :]
        if read and rest:
            assert _writer(read[-1]) != _writer(rest[0]), f"G1b: {read} of {there}: {ended}"


def _edges(policy: str, ends: Sequence[Ended], lists: Lists) -> Iterator[Edge]:
    writers = {row: [w for w, _ in groupby(values, _writer)] for row, values in lists.items()}
    for row, order in writers.items():
        for before, after in pairwise(order):
            yield Edge(before, after, "ww", f"row {row}")
    for ended in ends:
        if ended.outcome != "committed":
            continue
        block, reader = ended.block, ended.block.number
        changes = any(step.value is not None for step in block.steps)
        for number, answer in ended.found:
            row = _row(block, number)
            what = f"row {row}"
            read = [w for w, _ in groupby(_before(ended, row, number, answer), _writer)]
            if read:
                yield Edge(read[-1], reader, "wr", what)
            later = [writer for writer in writers[row][len(read) :] if writer != reader]
            if later:
                is_judged = changes and (policy == "row_serializable" or block.changes(row[0]))
                yield Edge(reader, later[0], "rw", what, is_judged)
