"""Compares ranges of versions of a table with the oracle's rows."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from tests.kit.histories.generate import History
from tests.kit.histories.model import Row, Rows
from tests.kit.histories.oracle import Replay
from tests.kit.histories.templates import Start
from tests.kit.support import Table, commit_info

SAMPLES = 2
EVERY = 6  # one history in so many is continued with an UPDATE that changes nothing and a RESTORE


@dataclass(frozen=True)
class Range:
    """The versions after `after` up to `until`, or their times."""

    after: int
    until: int
    by_time: bool

    def clause(self, table: Table) -> str:
        if not self.by_time:
            return f"VERSION BETWEEN {self.after} AND {self.until}"
        begin = _millis(table, self.after) if self.after >= 0 else _millis(table, 0) - 1
        end = _millis(table, self.until)
        return f"TIMESTAMP BETWEEN timestamp_millis({begin}) AND timestamp_millis({end})"


def check_ranges(
    spark: SparkSession, history: History, table: Table, start: Start, expected: Replay
) -> None:
    """A range gives the rows live at its end that were last written in it, by version and time."""
    chance = random.Random(history.seed)
    _check(spark, history, table, start, expected.states, chance)
    if history.seed % EVERY == 0:
        copy = Table(table.path.with_name(f"{table.path.name}-restored"))
        shutil.copytree(table.path, copy.path)
        states = _gone_on_with(spark, copy, expected.states, chance)
        _check(spark, history, copy, start, states, chance)
        shutil.rmtree(copy.path)


def _gone_on_with(
    spark: SparkSession, table: Table, states: dict[int, Rows], chance: random.Random
) -> dict[int, Rows]:
    """Rewrite all rows unchanged, and restore a version: its rows keep their versions.

    Delta's RESTORE of the newest version makes no commit.
    """
    latest, back_to = max(states), chance.choice(sorted(states))
    found = dict(states)
    if found[latest]:
        spark.sql(f"UPDATE {table} SET v = v")
        found[latest + 1] = tuple(replace(row, since=latest + 1) for row in found[latest])
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {back_to}")
    if back_to < max(found):
        found[max(found) + 1] = found[back_to]
    return found


def _check(
    spark: SparkSession,
    history: History,
    table: Table,
    start: Start,
    states: dict[int, Rows],
    chance: random.Random,
) -> None:
    ranges = [Range(-1, max(states), by_time=False)]
    for number in range(SAMPLES):
        until = chance.choice(sorted(states))
        ranges.append(Range(chance.randint(-1, until), until, by_time=number == 0))
    p = history.template.columns.number
    legs = [
        f"SELECT {number}, id, v, {p}, _metadata.row_id, _metadata.row_commit_version "
        f"FROM {table} {wanted.clause(table)}"
        for number, wanted in enumerate(ranges)
    ]
    read = spark.sql(" UNION ALL ".join(legs)).collect()
    for number, wanted in enumerate(ranges):
        rows = [row for row in states[wanted.until] if _since(row) > wanted.after]
        got = [Row(*row[1:]) for row in read if row[0] == number]
        assert _known(got, start) == _known(rows, start), f"rows of {wanted}"


def _known(rows: Sequence[Row], start: Start) -> Counter[Row]:
    """Forget the ids of rows that were added during the history: the oracle cannot know them."""
    numbers = {row.number for row in start.rows}
    return Counter(r if r.number in numbers else replace(r, number=None) for r in rows)


def _since(row: Row) -> int:
    assert row.since is not None
    return row.since


def _millis(table: Table, version: int) -> int:
    millis: int = commit_info(table, version)["inCommitTimestamp"]
    return millis
