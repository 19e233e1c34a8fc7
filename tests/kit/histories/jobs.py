"""The statements of histories, each with its effect in plain Python."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from tests.kit.histories.columns import Columns
from tests.kit.histories.documents import Heading
from tests.kit.histories.model import NOWHERE, Change, Job, Predicate, Row, Rows, Source

EVERY_ROW = Predicate("true", lambda row: True)
OF_NO_PARTITION = (
    "TRUNCATE TABLE {t} PARTITION (p = 'none')",
    "ALTER TABLE {t} PARTITION (p = 'none') COMPACT MAJOR",
)
AnyJob = TypeVar("AnyJob", bound=Job)
DYNAMIC = ("spark.sql.sources.partitionOverwriteMode", "dynamic")


# ---- what a statement reads or brings ----


def values(rows: Rows, columns: Columns) -> tuple[str, Source]:
    """Rows that the statement brings itself, perhaps none."""
    if rows:
        return f"VALUES {_listed(rows, columns)}", lambda read: rows
    return f"SELECT {columns.fields(Row(1, 'x', 1))} WHERE 1 = 0", lambda read: ()


def from_itself(
    where: Predicate, plus: int, columns: Columns, *, moved_to: int | None = None
) -> tuple[str, Source]:
    """Copies of the table's own rows, with other ids and perhaps in another partition."""
    new = {"id": f"id + {plus}"} | ({"p": columns.value(moved_to)} if moved_to is not None else {})
    selected = ", ".join(new.get(name, name) for name in columns.names)

    def copies(read: Rows) -> Rows:
        return tuple(
            Row(row.id + plus, row.v, row.p if moved_to is None else moved_to)
            for row in read
            if where.holds(row)
        )

    return f"SELECT {selected} FROM {{t}} WHERE {where.sql}", copies


# ---- statements ----


def insert(source: tuple[str, Source]) -> Job:
    query, rows = source
    return Job(
        Heading.INSERT,
        f"INSERT INTO {{t}} {query}",
        lambda read, now: Change(inserted=rows(read)),
        NOWHERE,
    )


def overwrite(source: tuple[str, Source]) -> Job:
    """INSERT OVERWRITE of the whole table."""
    query, rows = source
    return Job(
        Heading.OVERWRITE,
        f"INSERT OVERWRITE {{t}} {query}",
        lambda read, now: Change(deleted=now, inserted=rows(read)),
    )


def overwrite_partition(p: int, rows: Rows, columns: Columns) -> Job:
    query, _ = values(rows, replace(columns, p=None))
    return Job(
        Heading.OVERWRITE,
        f"INSERT OVERWRITE {{t}} PARTITION (p = {columns.value(p)}) {query}",
        lambda read, now: Change(deleted=_of({p}, now), inserted=rows),
        lambda partition: partition == p,
    )


def overwrite_dynamically(source: tuple[str, Source]) -> Job:
    """INSERT OVERWRITE of the partitions for which there are new rows."""
    query, rows = source

    def change(read: Rows, now: Rows) -> Change:
        new = rows(read)
        return Change(deleted=_of({row.p for row in new}, now), inserted=new)

    sql = f"INSERT OVERWRITE {{t}} {query}"
    return Job(Heading.OVERWRITE, sql, change, NOWHERE, settings=(DYNAMIC,))


def replace_where(p: int | None, field: int | None, rows: Rows, columns: Columns) -> Job:
    """INSERT INTO ... REPLACE WHERE a partition, a field of the nested column, or both.

    By a partition alone it is an overwrite; otherwise it deletes rows and adds some.

    Args:
        p: the partition
        field: what `s.p` is in the rows
        rows: what it adds, to all of which the condition applies
        columns: of the table

    """

    def selects(partition: int | None) -> bool:
        return p is None or partition == p

    def gone(now: Rows) -> Rows:
        return tuple(row for row in now if selects(row.p) and field in (None, row.s[0]))

    condition = [f"p = {columns.value(p)}"] * (p is not None)
    condition += [f"s.p = {field}"] * (field is not None)
    return Job(
        Heading.OVERWRITE if field is None else Heading.UPDATE,
        f"INSERT INTO {{t}} REPLACE WHERE {' AND '.join(condition)} {values(rows, columns)[0]}",
        lambda read, now: Change(deleted=gone(now), inserted=rows),
        selects,
    )


def truncate(p: int | None, columns: Columns) -> Job:
    if p is None:
        return Job(Heading.OVERWRITE, "TRUNCATE TABLE {t}", lambda read, now: Change(deleted=now))
    return Job(
        Heading.OVERWRITE,
        f"TRUNCATE TABLE {{t}} PARTITION (p = {columns.value(p)})",
        lambda read, now: Change(deleted=_of({p}, now)),
        lambda partition: partition == p,
    )


def of_no_partition(statement: str) -> Job:
    """TRUNCATE or a compaction of a partition whose value is none of its column's type."""
    return Job(Heading.OVERWRITE, statement, refused_as="CAST_INVALID_INPUT")


def update(
    where: Predicate, columns: Columns, *, v: str | None = None, p: int | None = None
) -> Job:
    """UPDATE of the value, of the partition, or of both."""
    new = [f"v = '{v}'"] * (v is not None) + [f"p = {columns.value(p)}"] * (p is not None)

    def changed(row: Row) -> Row:
        return replace(row, v=v or row.v, p=row.p if p is None else p)

    return Job(
        Heading.UPDATE,
        f"UPDATE {{t}} SET {', '.join(new)} WHERE {where.sql}",
        lambda read, now: Change(
            updated=tuple((row, changed(row)) for row in now if where.holds(row))
        ),
        where.selects,
    )


def delete(where: Predicate) -> Job:
    return Job(
        Heading.UPDATE,
        f"DELETE FROM {{t}} WHERE {where.sql}",
        lambda read, now: Change(deleted=tuple(filter(where.holds, now))),
        where.selects,
    )


def merge(
    rows: Rows, columns: Columns, *, partition: int | None, matched: str, inserts: bool
) -> Job:
    """MERGE of `rows` by id.

    Args:
        rows: the source, no id twice
        columns: of the table
        partition: the only partition whose rows can match, None for any
        matched: "UPDATE", "DELETE", or "" to leave rows that match
        inserts: whether rows that match none are added

    """
    by_id = {row.id: row for row in rows}

    def matches(row: Row) -> bool:
        return row.id in by_id and (partition is None or row.p == partition)

    def change(read: Rows, now: Rows) -> Change:
        found = tuple(filter(matches, now))
        known = {row.id for row in found}
        return Change(
            deleted=found if matched == "DELETE" else (),
            updated=tuple((row, replace(row, v=by_id[row.id].v)) for row in found)
            if matched == "UPDATE"
            else (),
            inserted=tuple(row for row in rows if row.id not in known) if inserts else (),
        )

    names = ", ".join(columns.names)
    condition = "t.id = s.id"
    condition += f" AND t.p = {columns.value(partition)}" if partition is not None else ""
    clauses = {"UPDATE": " WHEN MATCHED THEN UPDATE SET v = s.v", "": ""}
    clauses["DELETE"] = " WHEN MATCHED THEN DELETE"
    added = ", ".join(f"s.{name}" for name in columns.names)
    source = f"SELECT * FROM VALUES {_listed(rows, columns)} AS x({names})"
    return Job(
        Heading.UPDATE,
        f"MERGE INTO {{t}} t USING ({source}) s "
        f"ON {condition}{clauses[matched]}"
        + (f" WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({added})" if inserts else ""),
        change,
        lambda p: partition is None or p == partition,
    )


def compact(heading: Heading, p: int | None, columns: Columns) -> Job:
    """ALTER TABLE ... COMPACT or MERGE SMALLFILES, of one partition or of all."""
    scope = "" if p is None else f" PARTITION (p = {columns.value(p)})"
    what = {
        Heading.MINOR: "COMPACT MINOR",
        Heading.MAJOR: "COMPACT MAJOR",
        Heading.SMALL_FILES: "MERGE SMALLFILES",
    }
    return Job(
        heading,
        f"ALTER TABLE {{t}}{scope} {what[heading]}",
        covers=lambda partition: p is None or partition == p,
    )


def optimize(p: int | None, columns: Columns) -> Job:
    """OPTIMIZE, which counts as the documents' minor compaction."""
    where = "" if p is None else f" WHERE p = {columns.value(p)}"
    return Job(
        Heading.MINOR,
        f"OPTIMIZE {{t}}{where}",
        covers=lambda partition: p is None or partition == p,
    )


# ---- how a statement is written, and where it runs ----


def in_capitals(job: AnyJob) -> AnyJob:
    """The same with the names of all columns written in another case than the table's."""
    return replace(job, sql=_NAMES.sub(lambda name: name[0].upper(), job.sql))


def under(job: Job, *settings: tuple[str, str]) -> Job:
    """The same in a session with these settings too."""
    return replace(job, settings=(*job.settings, *settings))


_NAMES = re.compile(r"(?<!')\b(id|v|s|p)\b(?!')")


def _of(partitions: set[int | None], rows: Rows) -> Rows:
    return tuple(row for row in rows if row.p in partitions)


def _listed(rows: Rows, columns: Columns) -> str:
    return ", ".join(f"({columns.fields(row)})" for row in rows)
