"""A pytest plugin of the tests of the coordinator's SQL: one server of each version per session."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.coordinator_sql import attach, commit, statuses
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
    """An attached table: c0 published, c1 ratified only."""
    path = f"file:/{uuid.uuid4()}/_delta_log"
    attach(path)(writer)
    for call in (commit(path, "c0", head=-1), commit(path, "c1", head=0, head_txn="c0")):
        assert statuses(call(writer)) == "committed"
    return path


def quick(connection: Connection) -> Connection:
    """The same with autocommit and without waiting for the disk."""
    connection.autocommit = True
    connection.execute("SET synchronous_commit = off")
    return connection
