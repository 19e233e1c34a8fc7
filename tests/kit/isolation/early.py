"""Statements whose source has read the table, or fixed its version, before they begin.

Each writes the sum of what it has read, to which each row adds, in a way of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.kit.early_sources import CHANGES, RANGES, SOURCES, VERSIONS, Target
from tests.kit.histories.columns import nested_value
from tests.kit.histories.documents import Heading
from tests.kit.histories.model import Change, Predicate, Row, Rows
from tests.kit.isolation.statements import Statement
from tests.kit.support import Table

_SIZE = "id + length(v)"
RERUN = ("spark.interlock.rerun.maxRuns", "3")


def name_of(table: Table) -> str:
    """Return the name in the catalog of a history's table."""
    return f"of_history_{table.path.name}"


def _sum(where: Predicate, rows: Rows) -> int:
    return sum(row.id + len(row.v) for row in rows if where.holds(row))


def _added(row: Row, rows: Rows) -> Change:
    return Change(inserted=(row,))


def _replaced(row: Row, rows: Rows) -> Change:
    return Change(deleted=tuple(r for r in rows if r.id == row.id), inserted=(row,))


def _merged(row: Row, rows: Rows) -> Change:
    found = [r for r in rows if r.id == row.id]
    return Change(
        updated=tuple((r, replace(r, v=row.v)) for r in found), inserted=() if found else (row,)
    )


def _merge(target: Target, data: DataFrame) -> None:
    merged = target.handle().alias("t").merge(data.alias("s"), "t.id = s.id")
    merged.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll().execute()


def _by_view(statement: str) -> Callable[[Target, DataFrame], None]:
    def write(target: Target, data: DataFrame) -> None:
        data.createOrReplaceTempView(f"source_of_{id(data)}")
        target.spark.sql(statement.format(t=target, s=f"source_of_{id(data)}"))

    return write


_WHERE = "id % 2 = 0"


def _even(rows: Rows) -> Rows:
    return tuple(row for row in rows if row.id % 2 == 0)


Write = Callable[[Target, DataFrame], None]
WRITES: dict[str, tuple[Write, Callable[[Row, Rows], Change]]] = {
    "append": (lambda target, data: target.write(data, "append"), _added),
    "insertInto": (lambda target, data: data.write.insertInto(str(target)), _added),
    "INSERT": (_by_view("INSERT INTO {t} SELECT * FROM {s}"), _added),
    "overwrite": (
        lambda target, data: target.write(data, "overwrite"),
        lambda row, rows: Change(deleted=rows, inserted=(row,)),
    ),
    "replaceUsing": (Target.replace_using, _replaced),
    "replaceOn": (Target.replace_on, _replaced),
    "merge": (_merge, _merged),
    "MERGE": (
        _by_view(
            "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT *"
        ),
        _merged,
    ),
    "UPDATE": (
        _by_view(f"UPDATE {{t}} SET v = (SELECT max(v) FROM {{s}}) WHERE {_WHERE}"),
        lambda row, rows: Change(updated=tuple((r, replace(r, v=row.v)) for r in _even(rows))),
    ),
}


def frame(
    source: str, write: str, where: Predicate, row: Row, *, by_name: bool, again: bool
) -> Statement:
    """A DataFrame of the sum, written later.

    Args:
        source: one of `SOURCES`
        write: one of `WRITES`
        where: which rows it sums
        row: what it writes, with the sum as its value
        by_name: whether the table is called by its name or by its path
        again: whether it is run again if it loses

    """
    if source == "changes":  # Spark makes no view of them
        write = {"INSERT": "append", "MERGE": "merge", "UPDATE": "append"}.get(write, write)
    if source in RANGES and write == "UPDATE":
        write = "append"
    read, (run, effect) = SOURCES[source], WRITES[write]

    def query(rows: DataFrame) -> DataFrame:
        sign = "sign" if "sign" in rows.columns else "1"
        size = f.expr(f"CAST(coalesce(sum({sign} * ({_SIZE})), 0) AS STRING)")
        return rows.where(where.sql).agg(size.alias("v")).selectExpr(*_columns(row))

    def steps(spark: SparkSession, table: Table, pause: Callable[[], None]) -> None:
        target = Target(spark, table, name_of(table) if by_name else None)
        data = read.read(target, query)
        if source != "kept":
            pause()
        run(target, data)

    told = f"{write} of {source}, {'by name' if by_name else 'by path'}, WHERE {where.sql}"
    return _statement(told, where, row, effect, steps, read.settings, again=again)


def statement(
    version: str, kind: str, where: Predicate, row: Row, *, by_name: bool, again: bool
) -> Statement:
    """SQL that reads a version which a function names.

    Args:
        version: one of `VERSIONS`
        kind: INSERT, MERGE or UPDATE
        where: which rows it sums
        row: what it writes
        by_name: whether the table is called by its name or by its path
        again: whether it is run again if it loses

    """
    if version in RANGES and kind == "UPDATE":
        kind = "INSERT"
    sign = "IF(_change_type IN ('insert', 'update_postimage'), 1, -1)"
    size = f"{sign} * ({_SIZE})" if "CHANGES" in VERSIONS[version] else _SIZE
    rows = f"SELECT CAST(coalesce(sum({size}), 0) AS STRING) AS v FROM {{t}} {VERSIONS[version]}"
    source = f"(SELECT {', '.join(_columns(row))} FROM ({rows} WHERE {where.sql}))"
    sql = STATEMENTS[kind].replace("{s}", source)

    def steps(spark: SparkSession, table: Table, pause: Callable[[], None]) -> None:
        spark.sql(sql.format(t=name_of(table) if by_name else table)).collect()

    told = f"{sql}, {'by name' if by_name else 'by path'}"
    effect = WRITES[kind][1]
    settings = CHANGES if version == "changes" else ()
    return _statement(told, where, row, effect, steps, settings, again=again)


STATEMENTS = {
    "INSERT": "INSERT INTO {t} SELECT * FROM {s}",
    "MERGE": "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT *",
    "UPDATE": f"UPDATE {{t}} SET v = (SELECT max(v) FROM {{s}}) WHERE {_WHERE}",
}


def _columns(row: Row) -> tuple[str, ...]:
    return (f"{row.id} AS id", "v", f"{nested_value(row.id)} AS s", f"{row.p} AS p")


def _statement(
    told: str,
    where: Predicate,
    row: Row,
    effect: Callable[[Row, Rows], Change],
    steps: Callable[[SparkSession, Table, Callable[[], None]], None],
    settings: tuple[tuple[str, str], ...],
    *,
    again: bool,
) -> Statement:
    def change(read: Rows, now: Rows) -> Change:
        return effect(replace(row, v=str(_sum(where, read))), now)

    return Statement(
        Heading.UPDATE,
        told + (", run again" if again else ""),
        change,
        settings=(*settings, *((RERUN,) if again else ())),
        steps=steps,
    )
