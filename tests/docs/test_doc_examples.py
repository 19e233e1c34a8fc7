"""The examples of the pages in docs/ are run, and their outputs are what the pages say.

INTERLOCK_WRITE_DOCS=1 pytest tests/docs/test_doc_examples.py    # writes the outputs anew
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.kit.doc_examples import checked, examples
from tests.kit.spark_version import since_4_2
from tests.kit.tree import ROOT

DOCS = ROOT / "docs"
PAGES = [page.name for page in sorted(DOCS.glob("*.md")) if any(examples(page.read_text("utf-8")))]


@pytest.fixture
def database(spark: SparkSession) -> Iterator[SparkSession]:
    """A session without tables, as a reader has it who follows a page from its beginning."""
    yield spark.newSession()
    spark.sql("DROP SCHEMA IF EXISTS db CASCADE")
    for table in spark.sql("SHOW TABLES IN default").collect():
        spark.sql(f"DROP TABLE {table['tableName']}")


@pytest.mark.parametrize(
    "name",
    [pytest.param(p, marks=since_4_2) if p == "time-travel.md" else p for p in PAGES],
)
def test_examples_give_what_the_page_says(database: SparkSession, name: str) -> None:
    page = DOCS / name
    found = checked(page, database)
    if os.environ.get("INTERLOCK_WRITE_DOCS"):
        page.write_text(found, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == found


def test_another_output_is_noticed(database: SparkSession, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sql\nSELECT 1 AS n;\n```\n\n```text\nn\n-\n2\n```\n", encoding="utf-8")
    assert "\n1\n" in checked(page, database)
