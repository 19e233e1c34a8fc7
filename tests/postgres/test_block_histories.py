"""Random histories of blocks over three tables of a Postgres coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.blocks.block_histories import history
from tests.kit.sessions import classic_session
from tests.postgres import postgres
from tests.postgres.test_sessions import NAME, coordinator


@pytest.fixture(scope="module")
def spark(
    server: postgres.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("settings")
    with classic_session(**coordinator(server, folder, NAME)) as session:
        yield session


@pytest.mark.parametrize(
    ("kind", "policy", "seed"), [("lists", "row_serializable", 3), ("bank", "row_level", 4)]
)
def test_clients_at_once(
    spark: SparkSession, tmp_path: Path, kind: str, policy: str, seed: int
) -> None:
    bound = {"interlock.coordinator": NAME}
    history(spark, tmp_path, kind, policy, seed, threads=True, properties=bound)
