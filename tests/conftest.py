"""One JVM for the whole run, one Spark session per module, a new folder per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import interlock
import pytest
from interlock.lab.session import SMALL_SESSION
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small session with Interlock and a warehouse of its own."""
    builder = (
        SparkSession.builder.appName("interlock tests")
        .config(map=dict(SMALL_SESSION))
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    )
    session = interlock.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def table_path(tmp_path: Path) -> Path:
    """Where a test may create its table."""
    return tmp_path / "table"
