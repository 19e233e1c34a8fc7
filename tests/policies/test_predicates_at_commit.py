"""Predicates on partitions say at a commit what Spark's own evaluation says of the rows in them.

In sessions of several time zones, and without ANSI.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from tests.kit.support import make_table

PARTITIONS = (
    "(id INT, day DATE, t TIMESTAMP, n TIMESTAMP_NTZ, d DECIMAL(5, 2), s STRING, b BINARY, "
    "c CHAR(3), x DOUBLE) USING delta PARTITIONED BY (day, t, n, d, s, b, c, x)"
)
IN_PARTITIONS = (
    "INSERT INTO {t} VALUES "
    "(1, DATE'2026-01-01', TIMESTAMP'2026-01-01 03:00:00Z', TIMESTAMP_NTZ'2026-01-01 03:00:00', "
    "1.5, 'a%b', X'61', 'a', double('NaN')), "
    "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
)
ON_PARTITIONS = (
    "day = '2026-01-01'",
    "day < DATE'2026-01-01'",
    "day >= '2025-12-31' AND day <= '2026-01-01'",
    "day BETWEEN '2025-12-31' AND '2026-01-01'",
    "NOT (year(day) BETWEEN 2025 AND month(day))",
    "year(day) = 2026 AND month(day) = 2",
    "date_format(t, 'yyyy-MM-dd HH') = '2026-01-01 03'",
    "t < TIMESTAMP'2026-01-01 03:00:00'",
    "hour(t) = 3",
    "CAST(t AS DATE) = DATE'2025-12-31'",
    "CAST(t AS STRING) = '2026-01-01 03:00:00'",
    "n = TIMESTAMP_NTZ'2026-01-01 03:00:00'",
    "n < t",
    "hour(n) = 4",
    "d = 1.5",
    "d > 1.49 AND d < 1.51",
    "d * 2 = 3.01",
    "s LIKE 'a%'",
    r"s LIKE 'a\%b'",
    r"s LIKE 'a\%'",
    "s RLIKE '^a.b$'",
    "s IN ('x', 'a%b')",
    "NOT (s = 'x')",
    "s IS NULL",
    "s <=> NULL AND d > 0",
    "b = X'61'",
    "length(b) = 2",
    "c = 'a'",
    "c = 'a  '",
    "length(c) = 3",
    "x = double('NaN')",
    "x > 1e300",
    "coalesce(d, 0) = 0",
    "(day = '2026-01-01' AND d = 2) OR s = 'a%b'",
)
SESSIONS = {
    "utc": {},
    "tokyo-without-ansi": {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.ansi.enabled": "false",
    },
    "sao-paulo": {"spark.sql.session.timeZone": "America/Sao_Paulo"},
}


@pytest.mark.variant_cases(but=["sao-paulo"])
@pytest.mark.parametrize("conf", SESSIONS.values(), ids=SESSIONS)
def test_on_partition_columns(spark: SparkSession, table_path: Path, conf: dict[str, str]) -> None:
    table = make_table(spark, table_path, columns=PARTITIONS, statements=(IN_PARTITIONS,))
    session = spark.newSession()
    for key, value in conf.items():
        session.conf.set(key, value)
    columns = ", ".join(f"coalesce({p}, false) AS p{i}" for i, p in enumerate(ON_PARTITIONS))
    found = session.sql(f"SELECT {columns} FROM {table} ORDER BY id").collect()
    by_spark = {p: [row[i] for row in found] for i, p in enumerate(ON_PARTITIONS)}
    with active(session):
        evaluated = at_commit(session, table_path)
        assert {p: evaluated(p) for p in ON_PARTITIONS} == by_spark


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Make a session that of the thread, as it is while a statement runs."""
    sessions: Any = cast(Any, session._jvm).org.apache.spark.sql.classic.SparkSession
    before = sessions.active()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        sessions.setActiveSession(before)


def at_commit(session: SparkSession, path: Path) -> Any:
    """Return a function from a predicate to what it says of each file, NULL partitions last."""
    jvm: Any = session._jvm
    ours, jsession = jvm.org.apache.spark.sql.delta.interlock.judging, session._jsparkSession
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(jsession, str(path))
    metadata = log.unsafeVolatileSnapshot().metadata()
    values = ours.PartitionValues(jsession, metadata.partitionSchema())
    predicates = ours.PartitionPredicates(jsession, metadata, values)
    nothing = jvm.scala.Option.apply(None)
    files = log.unsafeVolatileSnapshot().allFiles().collect()
    partitions = [values.of(file, nothing).get() for file in files]
    partitions.sort(key=lambda partition: "d=null" in partition.toString())

    def evaluate(predicate: str) -> list[bool]:
        selects = predicates.ofSql(predicate)
        return [selects.apply(partition) for partition in partitions]

    return evaluate
