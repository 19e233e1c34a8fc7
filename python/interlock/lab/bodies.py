"""The statements that the lab's jobs run, each with what it does to rows."""

from __future__ import annotations

from collections.abc import Callable

from interlock.lab.model import Body, Class, Row, Rows

TRUNCATE = Body(Class.IO, "TRUNCATE TABLE {t}", effect=lambda rows: (), adds_files=False)
INSERT_FROM_SELF = Body(
    Class.II,
    "INSERT INTO {t} SELECT id + 20, v FROM {t}",
    effect=lambda rows: rows + tuple((int(str(row[0])) + 20, *row[1:]) for row in rows),
)


_COMPACTION = {
    Class.MIN: "COMPACT MINOR",
    Class.MAJ: "COMPACT MAJOR",
    Class.SFM: "MERGE SMALLFILES",
}


def overwrite(*new: Row) -> Body:
    """INSERT OVERWRITE of the whole table."""
    source = f"VALUES {_values(new)}" if new else "SELECT 1, '' WHERE 1 = 0"
    return Body(
        Class.IO,
        f"INSERT OVERWRITE {{t}} {source}",
        effect=lambda rows: new,
        adds_files=bool(new),
    )


def insert(*new: Row) -> Body:
    """INSERT INTO."""
    sql = f"INSERT INTO {{t}} VALUES {_values(new)}"
    return Body(Class.II, sql, effect=lambda rows: rows + new)


def update(identifier: int, value: str, where: str | None = None) -> Body:
    """UPDATE of the row with one id."""
    return Body(
        Class.UD,
        f"UPDATE {{t}} SET v = '{value}' WHERE {where or f'id = {identifier}'}",
        effect=lambda rows: tuple(
            (row[0], value, *row[2:]) if row[0] == identifier else row for row in rows
        ),
    )


def delete(identifier: int, where: str | None = None, *, leaves: str = "a file") -> Body:
    """DELETE of the row with one id; `leaves` is "no file" if its file had no other row."""
    return Body(
        Class.UD,
        f"DELETE FROM {{t}} WHERE {where or f'id = {identifier}'}",
        effect=_without(lambda row: row[0] == identifier),
        adds_files=leaves != "no file",
    )


def merge(identifier: int, value: str) -> Body:
    """MERGE that updates the row with one id."""
    return Body(
        Class.UD,
        f"MERGE INTO {{t}} t USING (SELECT {identifier} AS id) s ON t.id = s.id "
        f"WHEN MATCHED THEN UPDATE SET v = '{value}'",
        effect=update(identifier, value).effect,
    )


def compact(kind: Class, *, statement: str = "", partition: int | None = None) -> Body:
    """ALTER TABLE with the compaction of that kind, or with another `statement` of the kind."""
    where = "" if partition is None else f" PARTITION (p = {partition})"
    return Body(
        kind,
        f"ALTER TABLE {{t}}{where} {statement or _COMPACTION[kind]}",
        scope=_everywhere if partition is None else _in_partition(partition),
    )


def optimize(kind: Class, *, partition: int | None = None) -> Body:
    """OPTIMIZE, with the class of compaction that the table's policy gives it."""
    where = "" if partition is None else f" WHERE p = {partition}"
    return Body(
        kind,
        f"OPTIMIZE {{t}}{where}",
        scope=_everywhere if partition is None else _in_partition(partition),
    )


def overwrite_partition(p: int, *new: Row) -> Body:
    """INSERT OVERWRITE ... PARTITION (p = ...); `new` are whole rows, of that partition."""
    source = (
        f"VALUES {_values(tuple(row[:2] for row in new))}" if new else "SELECT 1, '' WHERE 1 = 0"
    )
    return Body(
        Class.IO,
        f"INSERT OVERWRITE {{t}} PARTITION (p = {p}) {source}",
        effect=lambda rows: _without(_in_partition(p))(rows) + new,
        scope=_in_partition(p),
        adds_files=bool(new),
    )


def overwrite_dynamically(*new: Row) -> Body:
    """INSERT OVERWRITE of the partitions that `new` has rows for, as Spark's dynamic mode does."""
    partitions = {row[2] for row in new}
    source = f"VALUES {_values(new)}" if new else "SELECT 1, '', 1 WHERE 1 = 0"
    return Body(
        Class.IO,
        f"INSERT OVERWRITE {{t}} {source}",
        effect=lambda rows: _without(lambda row: row[2] in partitions)(rows) + new,
        scope=lambda row: row[2] in partitions,
        settings=(("spark.sql.sources.partitionOverwriteMode", "dynamic"),),
    )


def truncate_partition(p: int) -> Body:
    """TRUNCATE TABLE ... PARTITION."""
    return Body(
        Class.IO,
        f"TRUNCATE TABLE {{t}} PARTITION (p = {p})",
        effect=_without(_in_partition(p)),
        scope=_in_partition(p),
        adds_files=False,
    )


def _everywhere(row: Row) -> bool:
    return True


def _in_partition(p: int) -> Callable[[Row], bool]:
    return lambda row: row[2] == p


def _without(gone: Callable[[Row], bool]) -> Callable[[Rows], Rows]:
    return lambda rows: tuple(row for row in rows if not gone(row))


def _values(rows: Rows) -> str:
    return ", ".join(f"({', '.join(map(repr, row))})" for row in rows)
