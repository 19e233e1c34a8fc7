"""One Spark for all tests of a worker, a session per module, a new folder per test."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from interlock.lab.example import PLAIN, Tables
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.sessions import classic_session
from tests.kit.support import Table

# Python functions in queries run on the interpreter that runs the tests.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

# The user whom the documents' examples show.
os.environ.setdefault("SPARK_USER", "ann")

# The width of what they print; pytest sets another one for its workers.
os.environ["COLUMNS"] = "120"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A small session with Interlock."""
    with classic_session() as session:
        yield session


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverProcess]:
    """A session of plain Delta in a process of its own."""
    two_cores = {"spark.master": "local[2]"}
    folder = tmp_path_factory.mktemp("stock")
    with driver_processes(folder, "stock", settings=two_cores) as processes:
        yield processes[0]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Where a module gets copies of the documents' example from, each at version 2."""
    return Tables(spark, tmp_path_factory.mktemp("tables"))


@pytest.fixture
def example(tables: Tables) -> Table:
    """A copy of the example, {1a, 2b, 3c}, under maxcompute_delta: much quicker than making one."""
    return Table(tables.fresh(PLAIN, {"interlock.policy": "maxcompute_delta"}))


@pytest.fixture
def table_path(tmp_path: Path) -> Path:
    """Where a test may create its table."""
    return tmp_path / "table"
