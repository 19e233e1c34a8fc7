"""A pytest plugin of the tests of the coordinator's SQL: one server of each version per session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.coordinator_sql import new_table
from tests.postgres import VERSIONS, Connection, Server, start


@pytest.fixture(scope="session", params=VERSIONS)
def postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with all migrations run."""
    with TemporaryDirectory() as folder, start(request.param, Path(folder, "server")) as server:
        server.migrate()
        yield server


@pytest.fixture(scope="module")
def writer(postgres: Server) -> Iterator[Connection]:
    with postgres.writer() as connection:
        yield quick(connection)


@pytest.fixture(scope="module")
def admin(postgres: Server) -> Iterator[Connection]:
    with postgres.admin() as connection:
        yield quick(connection)


@pytest.fixture
def path(writer: Connection) -> str:
    return new_table(writer)


def quick(connection: Connection) -> Connection:
    """The same with autocommit and without waiting for the disk."""
    connection.autocommit = True
    connection.execute("SET synchronous_commit = off")
    return connection
