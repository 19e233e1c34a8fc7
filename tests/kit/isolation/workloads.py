"""The jobs of a history, and the condition on the rows that must hold in every order.

All begin with the same rows. p is what a partitioned table is partitioned by.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.kit.early_sources import SOURCES, VERSIONS
from tests.kit.histories.documents import Heading
from tests.kit.histories.model import Predicate, Row, Rows
from tests.kit.isolation import early, statements
from tests.kit.isolation.statements import Statement

START: Rows = tuple(
    Row(identifier, str(identifier * 10), p)
    for identifier, p in enumerate((1, 1, 2, None, 1, 2, 2), start=1)
)
_IDS = tuple(row.id for row in START)
_CALLED = 1

Draw = Callable[[random.Random, int], Statement]


@dataclass(frozen=True)
class Workload:
    """A kind of history.

    Attributes:
        draw: makes a job, by chance and by its number in the history, from 1 to 9
        holds: whether rows are right in which these jobs have succeeded
        clustered: whether the table is clustered by id, and never partitioned

    """

    draw: Draw
    holds: Callable[[Rows, Sequence[Statement]], bool] = lambda rows, done: True
    clustered: bool = False


def _changes(chance: random.Random, number: int) -> Statement:
    """UPDATE, DELETE, MERGE, INSERT and compactions with all kinds of predicates."""
    p, where = chance.randint(1, 3), _predicate(chance)
    makers: dict[Callable[[], Statement], int] = {
        lambda: statements.append(where, number): 6,
        lambda: statements.move(where, p): 5,
        lambda: statements.delete(where): 3,
        lambda: statements.insert(Row(chance.randint(8, 9), str(number), p)): 4,
        lambda: statements.insert_count(100 * number, p, where): 2,
        lambda: statements.insert_copies(where, 100 * number, p): 2,
        lambda: statements.merge((chance.choice((*_IDS, 8, 9)),), number, p): 1,
        lambda: _compaction(chance): 3,
    }
    (make,) = chance.choices(list(makers), list(makers.values()))
    return make()


def _bank(chance: random.Random, number: int) -> Statement:
    """Transfers between accounts; compactions in between."""
    if chance.random() < 0.15:
        return _compaction(chance)
    payer, payee = chance.sample(_IDS[:4], 2)
    return statements.transfer(payer, payee, number)


def _lists(chance: random.Random, number: int) -> Statement:
    """Appends to lists, one digit for each job, and now and then a look at all of them."""
    draw = chance.random()
    if draw < 0.15:
        return _compaction(chance)
    if draw < 0.3:
        return statements.insert_count(100 * number, 1, _like(chance.randint(1, number)))
    identifier = chance.choice(_IDS[:3])
    return statements.append(_id(identifier), number)


def _skew(chance: random.Random, number: int) -> Statement:
    """Each job can move rows into or out of what another one has selected or counted."""
    draw, p, identifier = chance.random(), chance.randint(1, 2), chance.choice(_IDS)
    if draw < 0.2:
        return statements.leave(chance.choice((1, 2, 5)), _CALLED)
    if draw < 0.3:
        return statements.insert_count(100 * number, 3 - p, _p(p))
    if draw < 0.6:
        return statements.move(_id(chance.choice((3, 4, 6, 7))), p)
    return statements.append(_or(_p(p), _id(identifier)), number)


def _own_reads(chance: random.Random, number: int) -> Statement:
    """Jobs that read what they do not change, among those that move and remove it."""
    p, where, counted = chance.randint(1, 3), _predicate(chance), _predicate(chance)
    makers: dict[Callable[[], Statement], int] = {
        lambda: statements.insert_count(100 * number, p, counted): 2,
        lambda: statements.insert_copies(where, 100 * number, p): 3,
        lambda: statements.append_count(where, counted): 3,
        lambda: statements.merge_count(chance.choice((*_IDS, 8)), counted, p): 2,
        lambda: _compaction(chance): 6,
        lambda: statements.truncate(): 1,
        lambda: statements.overwrite(Row(100 * number + 1, str(number), p)): 2,
        lambda: statements.delete(where): 3,
        lambda: statements.insert(Row(8, str(number), p)): 1,
    }
    (make,) = chance.choices(list(makers), list(makers.values()))
    return make()


def _keys(chance: random.Random, number: int) -> Statement:
    """Upserts and inserts of missing keys, among jobs that delete, move and compact rows."""
    p, ids = chance.randint(1, 3), chance.sample((*_IDS[:3], 8, 9, 10), 2)
    makers: dict[Callable[[], Statement], int] = {
        lambda: statements.merge(ids, number, p): 6,
        lambda: statements.merge(ids, number, p, updates=False): 4,
        lambda: statements.insert_absent(ids, number, p, exists=chance.random() < 0.5): 6,
        lambda: statements.delete(_id(ids[0])): 2,
        lambda: statements.move(_id(ids[0]), p): 2,
        lambda: _compaction(chance): 2,
    }
    (make,) = chance.choices(list(makers), list(makers.values()))
    return make()


def _early(chance: random.Random, number: int) -> Statement:
    """Sources that have read the table before their write begins, among what changes it."""
    p, where = chance.randint(1, 3), _predicate(chance)
    row = Row(chance.choice((*_IDS, 8, 100 * number)), "", p)
    how = {"by_name": chance.random() < 0.5, "again": chance.random() < 0.3}
    kinds = [kind for kind in early.WRITES if kind != "overwrite"]
    makers: dict[Callable[[], Statement], int] = {
        lambda: early.frame(
            chance.choice(list(SOURCES)),
            chance.choice([*kinds, *kinds, "overwrite"]),
            where,
            row,
            **how,
        ): 6,
        lambda: early.frame(
            "kept", chance.choice(("replaceUsing", "replaceOn")), where, row, **how
        ): 3,
        lambda: early.statement(
            chance.choice(list(VERSIONS)), chance.choice(list(early.STATEMENTS)), where, row, **how
        ): 5,
        lambda: statements.append(where, number): 4,
        lambda: statements.move(where, p): 3,
        lambda: statements.delete(where): 2,
        lambda: statements.insert(Row(8, str(number), p)): 2,
        lambda: _compaction(chance): 2,
    }
    (make,) = chance.choices(list(makers), list(makers.values()))
    drawn = make()
    return replace(drawn, delay=chance.choice((0, 1, 1, 2))) if drawn.steps else drawn


_DESCRIPTIONS = (
    "COMMENT ON TABLE {t} IS 'of a history'",
    "ALTER TABLE {t} ALTER COLUMN v COMMENT 'digits'",
    "ALTER TABLE {t} ALTER COLUMN p COMMENT 'a part'",
    "ALTER TABLE {t} SET TBLPROPERTIES ('team' = 'us')",
)


def _layouts(*compactions: str) -> Draw:
    """Changes of rows among compactions that put them into another order, and among DDL."""

    def draw(chance: random.Random, number: int) -> Statement:
        p, where = chance.randint(1, 3), _predicate(chance)
        makers: dict[Callable[[], Statement], int] = {
            lambda: statements.by_values(chance.choice(compactions)): 5,
            lambda: statements.by_values(chance.choice(compactions), by_stock=True): 3,
            lambda: statements.describe(chance.choice(_DESCRIPTIONS)): 4,
            lambda: statements.append(where, number): 5,
            lambda: statements.move(where, p): 3,
            lambda: statements.delete(where): 3,
            lambda: statements.merge((chance.choice((*_IDS, 8)),), number, p): 3,
            lambda: statements.replace_where(p, Row(100 * number, str(number), p)): 4,
            lambda: statements.insert(Row(8, str(number), p)): 2,
            lambda: _compaction(chance): 2,
        }
        (make,) = chance.choices(list(makers), list(makers.values()))
        return make()

    return draw


def _columns(chance: random.Random, number: int) -> Statement:
    """Changes of rows among jobs that add columns, the same or others."""
    p, where, added = chance.randint(1, 3), _predicate(chance), chance.choice("xyz")
    makers: dict[Callable[[], Statement], int] = {
        lambda: statements.describe(f"ALTER TABLE {{t}} ADD COLUMNS ({added} INT)"): 8,
        lambda: statements.describe(chance.choice(_DESCRIPTIONS)): 2,
        lambda: statements.append(where, number): 5,
        lambda: statements.move(where, p): 3,
        lambda: statements.delete(where): 3,
        lambda: statements.merge((chance.choice((*_IDS, 8)),), number, p): 3,
        lambda: statements.insert(Row(8, str(number), p)): 3,
        lambda: _compaction(chance): 3,
    }
    (make,) = chance.choices(list(makers), list(makers.values()))
    return make()


def _no_key_twice(rows: Rows, done: Sequence[Statement]) -> bool:
    return len({row.id for row in rows}) == len(rows)


def _sum_is_kept(rows: Rows, done: Sequence[Statement]) -> bool:
    return sum(int(row.v) for row in rows) == sum(int(row.v) for row in START)


def _somebody_is_on_call(rows: Rows, done: Sequence[Statement]) -> bool:
    return any(row.p == _CALLED for row in rows)


def _nothing_is_lost(rows: Rows, done: Sequence[Statement]) -> bool:
    """Each list has what was appended to it, in the order of the commits."""
    for row in rows:
        appended = "".join(
            s.sql.partition("'")[2][0]
            for s in done
            if s.where is not None and s.where.holds(Row(row.id, ""))
        )
        if row.id in _IDS and row.v != f"{row.id * 10}{appended}":
            return False
    return True


WORKLOADS = {
    "changes": Workload(_changes),
    "bank": Workload(_bank, _sum_is_kept),
    "lists": Workload(_lists, _nothing_is_lost),
    "skew": Workload(_skew, _somebody_is_on_call),
    "own reads": Workload(_own_reads),
    "keys": Workload(_keys, _no_key_twice),
    "early": Workload(_early),
    "z-order": Workload(_layouts("ZORDER BY (id)", "ZORDER BY (v, id)")),
    "clustering": Workload(_layouts("", "FULL"), clustered=True),
    "columns": Workload(_columns),
}


def _compaction(chance: random.Random) -> Statement:
    return statements.compaction(chance.choice((None, Heading.MINOR, Heading.MAJOR)), None)


# ---- predicates; one that is neither true nor false selects nothing ----


def _id(identifier: int) -> Predicate:
    return Predicate(f"id = {identifier}", lambda row: row.id == identifier)


def _p(p: int) -> Predicate:
    return Predicate(f"p = {p}", lambda row: row.p == p)


def _like(digit: int) -> Predicate:
    return Predicate(f"v LIKE '%{digit}%'", lambda row: str(digit) in row.v)


def _and(one: Predicate, other: Predicate) -> Predicate:
    return Predicate(f"{one.sql} AND {other.sql}", lambda row: one.holds(row) and other.holds(row))


def _or(one: Predicate, other: Predicate) -> Predicate:
    return Predicate(f"({one.sql} OR {other.sql})", lambda row: one.holds(row) or other.holds(row))


def _predicate(chance: random.Random) -> Predicate:
    simple = [_simple(chance) for _ in range(2)]
    draw = chance.random()
    if draw < 0.25:
        return _and(*simple)
    return _or(*simple) if draw < 0.45 else simple[0]


def _simple(chance: random.Random) -> Predicate:
    identifier, p, digit = chance.choice(_IDS), chance.randint(1, 3), chance.randint(1, 9)
    rest = chance.randint(0, 1)
    return chance.choice(
        (
            _id(identifier),
            _p(p),
            _like(digit),
            Predicate(f"id <= {identifier}", lambda row: row.id <= identifier),
            Predicate(f"id % 2 = {rest}", lambda row: row.id % 2 == rest),
            Predicate(f"p <> {p}", lambda row: row.p is not None and row.p != p),
            Predicate(f"s.p = {p}", lambda row: row.s[0] == p),
            Predicate("p IS NULL", lambda row: row.p is None),
            Predicate("length(v) > 2", lambda row: len(row.v) > 2),
        )
    )
