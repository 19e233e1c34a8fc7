"""A real Postgres behind the tables of a test, and what can happen to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from integration.stores import Store
from tests.kit.ports import HOST
from tests.kit.support import Table
from tests.kit.tcp_proxy import Proxy
from tests.postgres.postgres import (
    ADMIN,
    DATABASE,
    PASSWORDS,
    WRITER,
    Dump,
    Server,
    start,
)

NAME = "main"
PATIENCE_SECONDS = 60
# What a commit has in it, as bytes and as Postgres writes bytes in text.
COMMIT = (b'{"commitInfo"', b"7b22636f6d6d6974496e666f22")


@dataclass(frozen=True)
class Database:
    """A server, a proxy before it, and files with the passwords of its users."""

    server: Server
    proxy: Proxy
    folder: Path

    def store(self, name: str, *, policy: str = "maxcompute_transactional") -> Store:
        """Return the store whose sessions come to the server without the proxy."""
        properties = {"interlock.policy": policy, "interlock.coordinator": NAME}
        settings = self.settings("other", proxied=False)
        return Store(name, properties=properties, settings=settings, database=True)

    def settings(self, application: str, *, proxied: bool) -> dict[str, str]:
        """Return the settings of a session that the server knows as `application`."""
        options = {
            **self._user(WRITER, proxied=proxied, application=application),
            "statementTimeout": "4s",
            "lockTimeout": "4s",
            "unknownDeadline": "5s",
        }
        return {f"spark.interlock.coordinator.{NAME}.{key}": v for key, v in options.items()}

    def admin(self) -> dict[str, str]:
        """Return what the command line gives an administrator's command."""
        return self._user(ADMIN, proxied=False, application="admin")

    def _user(self, user: str, *, proxied: bool, application: str) -> dict[str, str]:
        file = self.folder / f"password-{user}"
        file.write_text(PASSWORDS[user], encoding="utf-8")
        file.chmod(0o600)
        port = self.proxy.port if proxied else self.server.port
        url = f"jdbc:postgresql://{HOST}:{port}/{DATABASE}?ApplicationName={application}"
        return {"url": url, "user": user, "passwordFile": str(file)}

    def dump(self) -> Dump:
        return self.server.dump(self.folder / "dump.sql")

    def shift_times(self, table: Table, hours: int) -> None:
        """Let what the database has of a table be written by a clock some hours off."""
        with self.server.superuser() as connection:
            connection.execute(
                "UPDATE interlock.commits SET created_at = created_at + make_interval(hours => %s)"
                " WHERE key = (SELECT key FROM interlock.tables WHERE log_path LIKE %s)",
                [hours, _pattern(table)],
            )

    @contextmanager
    def locked(self, table: Table) -> Iterator[Any]:
        """Lock a table's row, so that a commit that was sent waits; yield what unlocks it."""
        with self.server.superuser() as connection:
            connection.autocommit = False
            found = connection.execute(
                "SELECT 1 FROM interlock.tables WHERE log_path LIKE %s FOR UPDATE",
                [_pattern(table)],
            )
            assert found.fetchone(), f"the database does not know {table}"
            yield connection.close

    def await_waiting(self, application: str) -> bool:
        """Wait until a commit of `application` waits for a lock; tell whether one does."""
        end = time.monotonic() + PATIENCE_SECONDS
        with self.server.superuser() as connection:
            while time.monotonic() < end:
                found = connection.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
                    " AND wait_event_type = 'Lock' AND query LIKE %s",
                    [application, "%interlock.commit(%"],
                )
                if found.fetchone():
                    return True
                time.sleep(0.02)
        return False


def _pattern(table: Table) -> str:
    return f"%{table.path.parent.name}/{table.path.name}/_delta_log"


@contextmanager
def database(version: int, folder: Path) -> Iterator[Database]:
    """Start a server of a version with the coordinator's schema, and the proxy before it."""
    folder.mkdir(parents=True, exist_ok=True)
    # A folder of its own: pytest closes its folders to the server's user.
    with TemporaryDirectory() as data, start(version, Path(data) / "server") as server:
        server.migrate()
        proxy = Proxy(server.port)
        try:
            yield Database(server, proxy, folder)
        finally:
            proxy.close()
