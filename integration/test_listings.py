"""A log to which others commit while it is listed: the listing may show a version without the one
before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from integration.compiled import compiled
from integration.writers import begin, end, make_files
from tests.kit.foreign import commit_by_hand
from tests.kit.sessions import classic_session
from tests.kit.snapshots import forget_logs
from tests.kit.support import Table, commit_file, deltalake_rows, latest_version, make_table, rows

START = ((1, "a"), (2, "b"), (3, "c"))


def insert(spark: SparkSession, table: Table) -> None:
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")


def append(spark: SparkSession, table: Table) -> None:
    row = spark.createDataFrame([(4, "d")], "id INT, v STRING")
    row.write.format("delta").mode("append").save(str(table.path))


def select(spark: SparkSession, table: Table) -> None:
    assert rows(spark, table) == START


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with classic_session() as session:
        compiled(session, "Gaps")
        session.conf.set("fs.file.impl", "integration.Gaps")
        session.conf.set("fs.file.impl.disable.cache", "true")
        yield session


def hide(spark: SparkSession, table: Table, version: int, listings: int = 1) -> Any:
    gaps = compiled(spark, "Gaps")
    gaps.hide(str(commit_file(table, version)), listings)
    return gaps


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(("statement", "listings"), [(insert, 3), (select, 3), (append, 1)])
def test_a_statement_lists_again(
    spark: SparkSession,
    tmp_path: Path,
    statement: Callable[[SparkSession, Table], None],
    listings: int,
    version: int,
) -> None:
    """Delta's writer of DataFrames to a path lists the log before Interlock sees it."""
    table = make_table(spark, tmp_path / "table")
    forget_logs(spark)
    gaps = hide(spark, table, version, listings)
    statement(spark, table)
    assert gaps.left() == 0
    after = START if statement is select else (*START, (4, "d"))
    assert rows(spark, table) == deltalake_rows(table) == after
    assert rows(spark, table, version=2) == START
    assert latest_version(table) == (2 if statement is select else 3)


def test_a_commit_lists_the_versions_that_it_missed_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A commit too large for memory is read from the log, so the missed versions are listed."""
    table = make_table(spark, tmp_path / "table")
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    make_files(table, [9])
    begin(spark, str(table.path))
    commit_by_hand(table, "WRITE")
    large = commit_file(table, 3)
    large.write_text(f"{large.read_text().rstrip()}{' ' * 2**20}\n")
    commit_by_hand(table, "WRITE")
    gaps = hide(spark, table, 3)
    end(spark, 9)
    assert gaps.left() == 0
    assert latest_version(table) == 5


def test_a_version_that_is_gone_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(spark, tmp_path / "table")
    forget_logs(spark)
    commit_file(table, 1).unlink()
    with pytest.raises(Py4JJavaError, match="DELTA_VERSIONS_NOT_CONTIGUOUS"):
        insert(spark, table)
    assert latest_version(table) == 2
