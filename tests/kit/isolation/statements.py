"""The statements of histories, each with its effect on rows when it runs alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.kit.histories import jobs
from tests.kit.histories.columns import Columns, nested_value
from tests.kit.histories.documents import Heading
from tests.kit.histories.model import Change, Job, Predicate, Row, Rows

COLUMNS = Columns("INT", nested=True)


@dataclass(frozen=True)
class Statement(Job):
    """A job whose effect is a function of the rows it finds.

    Attributes:
        where: the rows that an UPDATE, DELETE or MERGE selects, which do not depend on other rows
        blind: whether it adds rows and reads none
        harmless: whether it changes no rows and contradicts no job, so that nobody may lose by it
        replaces_p: whether it replaces the rows that have a value of p
        by_stock: whether a session of plain Delta runs it, all at its turn
        delay: how many of the other jobs end between its read and its transaction's begin, if it
            has steps

    """

    where: Predicate | None = None
    blind: bool = False
    harmless: bool = False
    replaces_p: bool = False
    by_stock: bool = False
    delay: int = 0

    def effect(self, rows: Rows) -> Change:
        """Return what it does to a table that has these rows."""
        return self.change(rows, rows)


def insert(row: Row) -> Statement:
    """INSERT that names its columns, since a table may have got others."""
    job = jobs.insert(jobs.values((row,), COLUMNS))
    named = job.sql.replace("{t}", f"{{t}} ({', '.join(COLUMNS.names)})")
    return _of(replace(job, sql=named), blind=True)


def insert_count(identifier: int, p: int, where: Predicate) -> Statement:
    """INSERT of the number of rows, so that every added or removed row changes the result."""
    return Statement(
        Heading.INSERT,
        f"INSERT INTO {{t}} SELECT {identifier}, CAST(count(*) AS STRING), "
        f"{nested_value(identifier)}, {p} FROM {{t}} WHERE {where.sql}",
        lambda read, now: Change(inserted=(Row(identifier, str(sum(map(where.holds, read))), p),)),
    )


def insert_copies(where: Predicate, plus: int, p: int) -> Statement:
    return _of(jobs.insert(jobs.from_itself(where, plus, COLUMNS, moved_to=p)))


def append(where: Predicate, digit: int) -> Statement:
    """UPDATE that appends a digit to values, so that the order of two of them can be seen."""
    return _update(
        f"v = concat(v, '{digit}')", where, lambda row: replace(row, v=f"{row.v}{digit}")
    )


def append_count(where: Predicate, counted: Predicate) -> Statement:
    """UPDATE that adds to values how many rows there are of another kind."""

    def change(read: Rows, now: Rows) -> Change:
        count = sum(map(counted.holds, now))
        return Change(
            updated=tuple((r, replace(r, v=f"{r.v}{count}")) for r in now if where.holds(r))
        )

    return Statement(
        Heading.UPDATE,
        f"UPDATE {{t}} SET v = concat(v, {_count(counted)}) WHERE {where.sql}",
        change,
    )


def merge_count(identifier: int, counted: Predicate, p: int) -> Statement:
    """MERGE by partition and id: how many rows there are of a kind, as a value or in a new row."""

    def change(read: Rows, now: Rows) -> Change:
        count = str(sum(map(counted.holds, now)))
        found = [row for row in now if row.p == p and row.id == identifier]
        return Change(
            updated=tuple((row, replace(row, v=count)) for row in found),
            inserted=() if found else (Row(identifier, count, p),),
        )

    return Statement(
        Heading.UPDATE,
        f"MERGE INTO {{t}} t USING (SELECT {identifier} AS id, {nested_value(identifier)} AS s, "
        f"{p} AS p) s ON t.p = {p} AND t.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET v = {_count(counted)} "
        f"WHEN NOT MATCHED THEN INSERT (id, v, s, p) VALUES (s.id, {_count(counted)}, s.s, s.p)",
        change,
    )


def _count(where: Predicate) -> str:
    return f"(SELECT CAST(count(*) AS STRING) FROM {{t}} WHERE {where.sql})"


def truncate() -> Statement:
    return _of(jobs.truncate(None, COLUMNS))


def overwrite(row: Row) -> Statement:
    return _of(jobs.overwrite(jobs.values((row,), COLUMNS)))


def move(where: Predicate, p: int) -> Statement:
    """UPDATE of the partition, or of what else p is to predicates."""
    return _update(f"p = {p}", where, lambda row: replace(row, p=p))


def transfer(payer: int, payee: int, amount: int) -> Statement:
    def booked(row: Row) -> Row:
        return replace(row, v=str(int(row.v) + (-amount if row.id == payer else amount)))

    where = Predicate(f"id IN ({payer}, {payee})", lambda row: row.id in (payer, payee))
    by = f"CASE id WHEN {payer} THEN -{amount} ELSE {amount} END"
    return _update(f"v = CAST(CAST(v AS INT) + {by} AS STRING)", where, booked)


def delete(where: Predicate) -> Statement:
    return _of(jobs.delete(where), where=where)


def merge(ids: Sequence[int], digit: int, p: int, *, updates: bool = True) -> Statement:
    """MERGE by id: a digit more unless it only inserts, or a new row."""
    found = Predicate("", lambda row: row.id in ids)

    def change(read: Rows, now: Rows) -> Change:
        matched = [row for row in now if found.holds(row)] if updates else []
        there = {row.id for row in now}
        return Change(
            updated=tuple((row, replace(row, v=f"{row.v}{digit}")) for row in matched),
            inserted=tuple(Row(i, str(digit), p) for i in ids if i not in there),
        )

    source = _keyed(ids, digit, p)
    update = "WHEN MATCHED THEN UPDATE SET v = concat(t.v, s.v) " if updates else ""
    return Statement(
        Heading.UPDATE,
        f"MERGE INTO {{t}} t USING ({source}) s ON t.id = s.id {update}"
        "WHEN NOT MATCHED THEN INSERT (id, v, s, p) VALUES (s.id, s.v, s.s, s.p)",
        change,
        where=found,
    )


def insert_absent(ids: Sequence[int], digit: int, p: int, *, exists: bool) -> Statement:
    """INSERT of the ids that the table does not have yet, by NOT EXISTS or an anti-join."""

    def change(read: Rows, now: Rows) -> Change:
        there = {row.id for row in read}
        return Change(inserted=tuple(Row(i, str(digit), p) for i in ids if i not in there))

    absent = (
        "WHERE NOT EXISTS (SELECT 1 FROM {t} t WHERE t.id = new.id)"
        if exists
        else "LEFT ANTI JOIN {t} t ON t.id = new.id"
    )
    return Statement(
        Heading.INSERT,
        f"INSERT INTO {{t}} SELECT * FROM ({_keyed(ids, digit, p)}) new {absent}",
        change,
        where=Predicate("", lambda row: row.id in ids),
    )


def _keyed(ids: Sequence[int], digit: int, p: int) -> str:
    """Return a query of rows with these ids."""
    return " UNION ALL ".join(
        f"SELECT {i} AS id, '{digit}' AS v, {nested_value(i)} AS s, {p} AS p" for i in ids
    )


def leave(identifier: int, p: int) -> Statement:
    """MERGE that takes a row out of p if another one stays: it reads what it does not change."""

    def change(read: Rows, now: Rows) -> Change:
        leaving = [row for row in now if row.id == identifier and row.p == p]
        others = sum(row.p == p for row in now) > 1
        return Change(updated=tuple((row, replace(row, p=0)) for row in leaving if others))

    return Statement(
        Heading.UPDATE,
        f"MERGE INTO {{t}} t USING (SELECT count(*) AS c FROM {{t}} WHERE p = {p}) s "
        f"ON t.id = {identifier} AND t.p = {p} AND s.c > 1 WHEN MATCHED THEN UPDATE SET p = 0",
        change,
    )


def compaction(heading: Heading | None, p: int | None) -> Statement:
    """COMPACT of that heading, or OPTIMIZE."""
    return _of(jobs.optimize(p, COLUMNS) if heading is None else jobs.compact(heading, p, COLUMNS))


def by_values(how: str, *, by_stock: bool = False) -> Statement:
    """OPTIMIZE that puts rows into another order: ZORDER, or by the columns of clustering."""
    return replace(_of(Job(Heading.MINOR, f"OPTIMIZE {{t}} {how}")), by_stock=by_stock)


def replace_where(p: int, row: Row) -> Statement:
    """REPLACE WHERE of a value of p by one row, which has that value."""
    where = Predicate(f"p = {p}", lambda row: row.p == p)
    return Statement(
        Heading.UPDATE,
        f"INSERT INTO {{t}} REPLACE WHERE {where.sql} VALUES ({COLUMNS.fields(row)})",
        lambda read, now: Change(deleted=tuple(filter(where.holds, now)), inserted=(row,)),
        where=where,
        replaces_p=True,
    )


def describe(what: str) -> Statement:
    """Change of the metadata alone, always the same change of the same thing."""
    return Statement(Heading.UPDATE, what, lambda read, now: Change(), harmless=True)


def _update(what: str, where: Predicate, after: Callable[[Row], Row]) -> Statement:
    return Statement(
        Heading.UPDATE,
        f"UPDATE {{t}} SET {what} WHERE {where.sql}",
        lambda read, now: Change(
            updated=tuple((row, after(row)) for row in now if where.holds(row))
        ),
        where=where,
    )


def _of(job: Job, *, where: Predicate | None = None, blind: bool = False) -> Statement:
    return Statement(job.heading, job.sql, job.change, where=where, blind=blind)
