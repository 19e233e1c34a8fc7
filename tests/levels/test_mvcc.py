"""A reader keeps the snapshot it began with, whatever others commit meanwhile.

The reader has begun, and has files that it has not opened yet, when the others commit.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock.lab.model import Rows, in_order
from pyspark.sql import DataFrame, SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.support import Table, deltalake_rows, make_table, rows, versions

BEFORE: Rows = ((1, "a"), (2, "b"), (3, "c"))
OTHERS: dict[str, Rows] = {
    "UPDATE {t} SET v = 'x'": ((1, "x"), (2, "x"), (3, "x")),
    "ALTER TABLE {t} COMPACT MAJOR": ((1, "x"), (2, "x"), (3, "x")),
    "INSERT OVERWRITE {t} VALUES (9, 'z')": ((9, "z"),),
    "TRUNCATE TABLE {t}": (),
}
"""What others do while somebody reads, and the rows after it."""


@pytest.fixture
def table(spark: SparkSession, table_path: Path) -> Table:
    """{1a, 2b, 3c} in three files."""
    inserts = tuple(f"INSERT INTO {{t}} VALUES ({i}, '{v}')" for i, v in BEFORE)
    return make_table(spark, table_path, statements=inserts)


def others_commit(spark: SparkSession, table: Table) -> None:
    """Run all of `OTHERS` in a session of its own; each makes one version."""
    session = spark.newSession()
    for number, (statement, after) in enumerate(OTHERS.items(), start=len(BEFORE) + 1):
        session.sql(statement.format(t=table))
        assert versions(table) == list(range(number + 1))
        assert rows(session, table) == deltalake_rows(table) == after


def found(frame: DataFrame) -> Rows:
    return in_order(tuple(tuple(row) for row in frame.collect()))


def test_a_batch_reads_to_its_end_what_was_there_when_it_began(
    spark: SparkSession, table: Table
) -> None:
    """Each partition has one file, which is opened when its first row is asked for."""
    with set_for_now(spark, {"spark.sql.files.maxPartitionBytes": "4096"}):
        frame = spark.table(str(table))
        assert frame.rdd.getNumPartitions() == len(BEFORE)
        reading = frame.toLocalIterator()
        read = [tuple(next(reading))]
        others_commit(spark, table)
        read += [tuple(row) for row in reading]
    assert in_order(tuple(read)) == BEFORE
    assert rows(spark, table) == ()
    assert rows(spark, table, version=3) == deltalake_rows(table, version=3) == BEFORE
