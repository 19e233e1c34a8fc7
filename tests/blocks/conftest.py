"""Tables for blocks that change several of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.blocks.several_tables import Make, let_call_back, make_in
from tests.kit.support import Table


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Make]:
    def make(name: str, policy: str = "row_level", **more: str) -> Table:
        return make_in(spark, tmp_path, name, policy, **more)

    let_call_back(spark)
    yield make
    spark.sql("ROLLBACK")
