"""The stream of docs/recipes.md, whose MERGE waits to commit until another job has committed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.beside import Beside
from tests.kit.doc_examples import Reader, examples
from tests.kit.recipes import PAGE
from tests.kit.support import Table, commit_info, latest_version, rows, tags

SECTION = re.compile(r"\n## foreachBatch\n(.*?)\n## ", re.DOTALL)


def run_stream(spark: SparkSession, beside: Beside) -> Table:
    """Run the page's tables and its stream, and return the table that it merges into."""
    (section,) = SECTION.findall(PAGE.read_text(encoding="utf-8"))
    tables, stream, *_ = examples(section)
    reader = Reader(spark)
    reader.output(tables)
    with beside.installed():
        reader.output(stream)
    assert beside.all_met()
    location = spark.sql("DESCRIBE DETAIL trips").collect()[0]["location"]
    return Table(Path(location.removeprefix("file:")))


@pytest.fixture(autouse=True)
def no_tables(spark: SparkSession) -> None:
    for table in ("trips", "arrivals", "seen"):
        spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.mark.variant
def test_an_update_of_another_row_and_the_merge_both_commit(spark: SparkSession) -> None:
    beside = Beside()
    beside.let_win("merge into", "UPDATE trips SET city = 'Siena' WHERE id = 2")
    table = run_stream(spark, beside)
    assert latest_version(table) == 3
    assert commit_info(table, 3)["operation"] == "MERGE"
    assert tags(table, 3)["interlock.winners"] == "2"
    assert rows(spark, table) == ((1, "Bergen"), (2, "Siena"), (3, "Pisa"))


def test_a_merge_that_loses_twice_commits_in_its_third_run(spark: SparkSession) -> None:
    beside = Beside()
    for city in ("Lucca", "Siena"):
        beside.let_win("merge into", f"UPDATE trips SET city = '{city}' WHERE id = 1")
    table = run_stream(spark, beside)
    operations = [commit_info(table, version)["operation"] for version in (2, 3, 4)]
    assert operations == ["UPDATE", "UPDATE", "MERGE"]
    assert latest_version(table) == 4
    assert "interlock.winners" not in tags(table, 4)
    assert rows(spark, table) == ((1, "Bergen"), (2, "Rome"), (3, "Pisa"))
