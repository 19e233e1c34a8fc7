"""The statements of histories, each with what it means in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.histories.documents import Heading
from tests.histories.model import Change, Job, Predicate, Row, Rows, Source

EVERY_ROW = Predicate("true", lambda row: True)
_NO_PARTITION: Callable[[int | None], bool] = lambda p: False  # noqa: E731


# ---- what a statement reads or brings ----


def values(rows: Rows, *, partitioned: bool) -> tuple[str, Source]:
    """Rows that the statement brings itself, perhaps none."""
    if rows:
        return f"VALUES {_listed(rows, partitioned)}", lambda read: rows
    columns = "1, 'x', 1" if partitioned else "1, 'x'"
    return f"SELECT {columns} WHERE 1 = 0", lambda read: ()


def from_itself(
    where: Predicate, plus: int, *, partitioned: bool, moved_to: int | None = None
) -> tuple[str, Source]:
    """Copies of the table's own rows, with other ids and perhaps in another partition."""
    p = "" if not partitioned else ", p" if moved_to is None else f", {moved_to}"

    def copies(read: Rows) -> Rows:
        return tuple(
            Row(row.id + plus, row.v, row.p if moved_to is None else moved_to)
            for row in read
            if where.holds(row)
        )

    return f"SELECT id + {plus}, v{p} FROM {{t}} WHERE {where.sql}", copies


# ---- statements ----


def insert(source: tuple[str, Source]) -> Job:
    query, rows = source
    return Job(
        Heading.INSERT,
        f"INSERT INTO {{t}} {query}",
        lambda read, now: Change(inserted=rows(read)),
        _NO_PARTITION,
    )


def overwrite(source: tuple[str, Source]) -> Job:
    """INSERT OVERWRITE of the whole table."""
    query, rows = source
    return Job(
        Heading.OVERWRITE,
        f"INSERT OVERWRITE {{t}} {query}",
        lambda read, now: Change(deleted=now, inserted=rows(read)),
    )


def overwrite_partition(p: int, rows: Rows) -> Job:
    query, _ = values(rows, partitioned=False)
    return Job(
        Heading.OVERWRITE,
        f"INSERT OVERWRITE {{t}} PARTITION (p = {p}) {query}",
        lambda read, now: Change(deleted=_of({p}, now), inserted=rows),
        lambda partition: partition == p,
    )


def overwrite_dynamically(source: tuple[str, Source]) -> Job:
    """INSERT OVERWRITE of the partitions for which there are new rows."""
    query, rows = source

    def change(read: Rows, now: Rows) -> Change:
        new = rows(read)
        return Change(deleted=_of({row.p for row in new}, now), inserted=new)

    return Job(
        Heading.OVERWRITE, f"INSERT OVERWRITE {{t}} {query}", change, _NO_PARTITION, dynamic=True
    )


def truncate(p: int | None) -> Job:
    if p is None:
        return Job(Heading.OVERWRITE, "TRUNCATE TABLE {t}", lambda read, now: Change(deleted=now))
    return Job(
        Heading.OVERWRITE,
        f"TRUNCATE TABLE {{t}} PARTITION (p = {p})",
        lambda read, now: Change(deleted=_of({p}, now)),
        lambda partition: partition == p,
    )


def update(where: Predicate, *, v: str | None = None, p: int | None = None) -> Job:
    """UPDATE of the value, of the partition, or of both."""
    new = [f"v = '{v}'"] * (v is not None) + [f"p = {p}"] * (p is not None)

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
    rows: Rows, *, partition: int | None, matched: str, inserts: bool, partitioned: bool
) -> Job:
    """MERGE of `rows` by id.

    Args:
        rows: the source, no id twice
        partition: the only partition whose rows can match, None for any
        matched: "UPDATE", "DELETE", or "" to leave rows that match
        inserts: whether rows that match none are added
        partitioned: whether the table is

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

    columns = "id, v, p" if partitioned else "id, v"
    condition = "t.id = s.id" + (f" AND t.p = {partition}" if partition is not None else "")
    clauses = {"UPDATE": " WHEN MATCHED THEN UPDATE SET v = s.v", "": ""}
    clauses["DELETE"] = " WHEN MATCHED THEN DELETE"
    added = ", ".join(f"s.{column}" for column in columns.split(", "))
    source = f"SELECT * FROM VALUES {_listed(rows, partitioned)} AS x({columns})"
    return Job(
        Heading.UPDATE,
        f"MERGE INTO {{t}} t USING ({source}) s "
        f"ON {condition}{clauses[matched]}"
        + (f" WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({added})" if inserts else ""),
        change,
        lambda p: partition is None or p == partition,
    )


def compact(heading: Heading, p: int | None) -> Job:
    """ALTER TABLE ... COMPACT or MERGE SMALLFILES, of one partition or of all."""
    scope = "" if p is None else f" PARTITION (p = {p})"
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


def optimize(p: int | None) -> Job:
    """OPTIMIZE, which the documents' pages know as a minor compaction."""
    where = "" if p is None else f" WHERE p = {p}"
    return Job(
        Heading.MINOR,
        f"OPTIMIZE {{t}}{where}",
        covers=lambda partition: p is None or partition == p,
    )


def _of(partitions: set[int | None], rows: Rows) -> Rows:
    return tuple(row for row in rows if row.p in partitions)


def _listed(rows: Rows, partitioned: bool) -> str:
    def text(row: Row) -> str:
        p = "" if not partitioned else ", CAST(NULL AS INT)" if row.p is None else f", {row.p}"
        return f"({row.id}, '{row.v}'{p})"

    return ", ".join(map(text, rows))
