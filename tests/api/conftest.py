"""`spark` is a classic session first, then one of a Spark Connect server, once for each module."""

from __future__ import annotations

from collections.abc import Iterator

import interlock
import pytest
from pyspark.sql import SparkSession

from tests.kit.sessions import classic_session, connect_server, connect_session

_SETTINGS = {
    # Jobs that stand at a barrier keep a slot each, and there are more of them than cores.
    "spark.master": "local[12]",
    # Nobody listens there.
    "spark.interlock.coordinator.closed.url": "jdbc:postgresql://127.0.0.1:1/interlock",
    "spark.interlock.coordinator.closed.user": "etl",
    "spark.interlock.coordinator.closed.passwordVariable": "HOME",
}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server."""
    with connect_server(tmp_path_factory.mktemp("connect"), **_SETTINGS) as address:
        yield address


@pytest.fixture(scope="module", params=["classic", "connect"])
def mode(request: pytest.FixtureRequest) -> str:
    """Which of the two runs this is."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def spark(mode: str, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A small session with Interlock."""
    if mode == "connect":
        with connect_session(request.getfixturevalue("server")) as session:
            interlock.table(session, "any")  # from here on errors are converted
            yield session
    else:
        with classic_session(**_SETTINGS) as session:
            yield session
