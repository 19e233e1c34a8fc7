"""Atomic blocks that change several tables of the default coordinator, on a local disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.blocks.several_tables import Make, SeveralTables, let_call_back, make_in
from tests.kit.support import Table


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Make]:
    def make(name: str, policy: str = "row_level", **more: str) -> Table:
        return make_in(spark, tmp_path, name, policy, **more)

    let_call_back(spark)
    yield make
    spark.sql("ROLLBACK")


@pytest.fixture
def settings() -> dict[str, str]:
    return {}


class TestOnDisk(SeveralTables):
    STEP = 2
    JUDGED = "staged"
    FAILED = {"staged": 1, "ratifying": 2}  # noqa: RUF012
    KILLED = (
        ("published", 1, (3, 2), False),
        ("ratifying", 1, (3, 3), False),
        ("ratified", 1, (4, 4), True),
        ("published", 3, (4, 4), True),
    )
