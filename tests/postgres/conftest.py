"""For the tests of the coordinator's SQL: one server of each version for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.postgres.coordinator_sql import new_table, quick
from tests.postgres.postgres import VERSIONS, Connection, Server, start


@pytest.fixture(scope="session")
def started() -> Iterator[dict[int, Server]]:
    """A server of each version with all migrations run."""
    servers = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for version in VERSIONS:
            servers[version] = stack.enter_context(start(version, folder / str(version)))
            servers[version].migrate()
        yield servers


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of the newest version for one module."""
    # A folder of its own: pytest closes its folders to the server's user.
    with TemporaryDirectory() as data, start(max(VERSIONS), Path(data) / "18") as found:
        found.migrate()
        yield found


@pytest.fixture(scope="module", params=VERSIONS)
def postgres(request: pytest.FixtureRequest, started: dict[int, Server]) -> Server:
    return started[request.param]


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
