"""Readers of two tables between which blocks move amounts: a sum that is not whole is torn.

python -m tests.kit.block_readers TABLE TABLE TOTAL STOP  # a reader without Spark
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.kit.driver_process import Answer, DriverProcess
from tests.kit.support import Table, deltalake_rows


def stock_sum(tables: Sequence[Table]) -> int:
    """Read one table after the other by deltalake."""
    return sum(int(str(row[1])) for table in tables for row in deltalake_rows(table))


def queries(tables: Sequence[Table]) -> tuple[str, ...]:
    """Return queries for the sum, each of which reads all tables."""
    parts = " UNION ALL ".join(f"SELECT v FROM {table}" for table in tables)
    return (
        f"SELECT {' + '.join(f'(SELECT sum(v) FROM {table})' for table in tables)}",
        f"SELECT sum(v) FROM ({parts})",
    )


def sums(spark: Any, tables: Sequence[Table]) -> list[int]:
    """Return what the queries find."""
    return [spark.sql(query).collect()[0][0] for query in queries(tables)]


def sums_by(process: DriverProcess, tables: Sequence[Table], total: int) -> Answer:
    """Let another process look once; its answer is an error if a sum is torn."""
    return _call(process, "look", [str(table.path) for table in tables], total)


def look(spark: Any, folders: Sequence[str], total: int) -> None:
    """Do so in the other process."""
    found = sums(spark, [Table(Path(folder)) for folder in folders])
    assert found == [total] * len(found), f"torn: {found}"


def poll_by(process: DriverProcess, tables: Sequence[Table], total: int, stop: Path) -> Answer:
    """Let another process look until there is a file; STOP.interlock has what `polled` returns."""
    return _call(process, "poll_here", [str(table.path) for table in tables], total, str(stop))


def transfers_by(process: DriverProcess, tables: Sequence[Table], rounds: int) -> Answer:
    """Let another process move amounts from each table to the next in blocks."""
    return _call(process, "transfers", [str(table.path) for table in tables], rounds)


def transfers(spark: Any, folders: Sequence[str], rounds: int) -> None:
    """Do so in the other process."""
    tables = [Table(Path(folder)) for folder in folders]
    for n in range(rounds):
        for source, target in zip(tables, [*tables[1:], tables[0]], strict=True):
            spark.sql("BEGIN TRANSACTION")
            spark.sql(f"UPDATE {source} SET v = v - {n + 1} WHERE id = 1")
            spark.sql(f"UPDATE {target} SET v = v + {n + 1} WHERE id = 1")
            spark.sql("COMMIT")


def poll_here(spark: Any, folders: Sequence[str], total: int, stop: str) -> None:
    """Do so in the other process."""
    tables = [Table(Path(folder)) for folder in folders]
    found = polled(lambda: sums(spark, tables), total, Path(stop))
    Path(f"{stop}.interlock").write_text(json.dumps(found), encoding="utf-8")


def polled(read: Callable[[], list[int]], total: int, stop: Path) -> dict[str, int]:
    """Read until there is a file; return how many sums were read, and how many were torn."""
    found: list[int] = []
    while not stop.exists():
        found += read()
    return {"reads": len(found), "torn": sum(each != total for each in found)}


def _call(process: DriverProcess, function: str, *arguments: object) -> Answer:
    here = f"__import__({__name__!r}, fromlist=['x'])"
    return process.run(f"spark.conf, {here}.{function}(spark, *{arguments!r})")


if __name__ == "__main__":
    paths = [Table(Path(folder)) for folder in sys.argv[1:-2]]
    print(json.dumps(polled(lambda: [stock_sum(paths)], int(sys.argv[-2]), Path(sys.argv[-1]))))
