"""`interlock coordinator`, and that no password leaves the process that was given it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest
from interlock import _cli
from interlock._artifacts import delta_coordinates
from interlock._commands import coordinator

from tests.kit import command
from tests.kit.command import INTERLOCK
from tests.kit.commit_phases import observed
from tests.postgres import postgres
from tests.postgres.coordinator_jvm import (
    Refused,
    coordinator_jvm,
    postgres_store,
    read_settings,
    write_foreign,
)

WRONG = "wr0ng-pass/word"

SHELL = [*INTERLOCK, "coordinator"]
VARIABLE = ["--password-variable", "SECRET"]

LOG4J = """
rootLogger.level = trace
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %c %m%n%throwable
"""

# Spark passes this on to the other.
JUL = "org.postgresql.level = FINEST\n"
LOG = "all.log"


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def jvm(logs: Path) -> Iterator[Any]:
    """One that logs all that there is to log."""
    options = []
    for name, text in (("log4j2.configurationFile", LOG4J), ("java.util.logging.config.file", JUL)):
        conf = logs / f"{name}.properties"
        conf.write_text(text.format(file=logs / LOG), encoding="utf-8")
        options.append(f"-D{name}={conf}")
    with coordinator_jvm(java_options=" ".join(options)) as found:
        yield found


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    # A folder of its own: pytest closes its folders to the server's user.
    with TemporaryDirectory() as data, postgres.start(16, Path(data) / "16") as found:
        yield found


@pytest.fixture
def run(
    jvm: Any,
    server: postgres.Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run an action as a login of the server, in the module's JVM."""

    @contextmanager
    def shared(_: object) -> Iterator[Any]:
        yield jvm

    def repaired_without_session(_: object, options: dict[str, str]) -> str:
        conf = jvm.org.apache.hadoop.conf.Configuration()
        text: str = jvm.io.interlock.coordinator.postgres.Admin.repair(options, conf, None)
        return text

    monkeypatch.setattr(coordinator, "bare_jvm", shared)
    monkeypatch.setattr(coordinator, "repair_text", repaired_without_session)

    def command(action: str, *more: str, user: str = postgres.ADMIN, url: str = "") -> Done:
        options = ["--url", url or server.jdbc_url, "--user", user]
        if not any(option.startswith("--password") for option in more):
            name = password_file(server, user, postgres.PASSWORDS[user])
            options += ["--password-file", str(name)]
        status = _cli.main(["coordinator", action, *options, *more])
        return Done(status, *capsys.readouterr())

    return command


def password_file(server: postgres.Server, name: str, password: str, *, mode: int = 0o600) -> Path:
    file = server.folder / f"{name}.password"
    file.write_text(f"{password}\n", encoding="utf-8")
    file.chmod(mode)
    return file


def test_init_from_the_command_line_makes_the_schema_once(
    run: Run, server: postgres.Server
) -> None:
    for action in ("status", "upgrade"):
        without = run(action)
        assert without.status == 1
        assert "interlock coordinator init" in without.out + without.err
    submitted = f"--packages {delta_coordinates()} pyspark-shell"  # as a notebook may set it
    shell = subprocess.run(
        [*SHELL, "init", "--url", server.jdbc_url, "--user", postgres.ADMIN, *VARIABLE],
        env={
            **os.environ,
            "SECRET": postgres.PASSWORDS[postgres.ADMIN],
            "PYSPARK_SUBMIT_ARGS": submitted,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (shell.returncode, shell.stderr) == (0, "")
    assert "Ran V1__schema. The schema has version 1." in shell.stdout
    assert "GRANT interlock_writer TO <login>;" in shell.stdout
    for action in ("init", "upgrade"):
        again = run(action)
        assert again.status == 0
        assert "nothing to do" in again.out
    server.let_write()


def test_the_jar_knows_all_migrations(run: Run) -> None:
    names = sorted(file.stem for file in postgres.MIGRATIONS.glob("V*.sql"))
    found = json.loads(run("status", "--json").out)
    assert found["version"] == found["newest"] == len(names)


def test_status_shows_the_tables(
    run: Run, jvm: Any, server: postgres.Server, tmp_path: Path
) -> None:
    log = commit_one(jvm, server, tmp_path)
    found = json.loads(run("status", "--json").out)
    table = next(t for t in found["tables"] if t["path"] == f"file:{log}")
    assert (table["head"], table["epoch"]) == (0, 0)
    shown = run("status")
    assert shown.status == 0
    assert "schema version 1" in shown.out
    assert f"file:{log}" in shown.out
    by_writer = run("status", user=postgres.WRITER)
    assert by_writer.status == 0
    assert f"file:{log}" in by_writer.out


def test_status_looks_into_the_log(
    run: Run, jvm: Any, server: postgres.Server, tmp_path: Path
) -> None:
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    store = postgres_store(jvm, writer(server))
    for version in range(3):
        store.commit(log, version, str(version))
    # The process is killed: nobody marks the last commit as published.
    assert published(run, log) == ("2", 1)
    last = log / f"{2:020}.json"
    last.rename(log / "2.away")
    assert published(run, log) == ("1", 1)
    log.rename(tmp_path / "unmounted")
    assert published(run, log) == ("1 or later", 1)
    (tmp_path / "unmounted").rename(log)
    (log / "2.away").rename(last)
    store.close()
    assert published(run, log) == ("2", 2)


def published(run: Run, log: Path) -> tuple[str, int]:
    """Return what status shows as published, and the database's own mark."""
    (line,) = (line for line in run("status").out.splitlines() if f"file:{log} " in line)
    tables = json.loads(run("status", "--json").out)["tables"]
    mark = next(t["published"] for t in tables if t["path"] == f"file:{log}")
    return line.split("|")[2].strip(), mark


def commit_one(jvm: Any, server: postgres.Server, folder: Path) -> Path:
    log = folder / "table" / "_delta_log"
    log.mkdir(parents=True)
    store = postgres_store(jvm, writer(server))
    store.commit(log, 0, "a")
    store.close()
    return log


def writer(server: postgres.Server, *, password: str = "") -> dict[str, str]:
    text = password or postgres.PASSWORDS[postgres.WRITER]
    file = password_file(server, f"store-{len(text)}", text)
    return {"url": server.jdbc_url, "user": postgres.WRITER, "passwordFile": str(file)}


def test_repair_says_what_it_did(
    run: Run, jvm: Any, server: postgres.Server, tmp_path: Path
) -> None:
    log = commit_one(jvm, server, tmp_path)
    write_foreign(log, 1, "foreign")
    table = str(log.parent)
    repaired = run("repair", "--table", table)
    assert repaired.status == 0
    assert f"{table} is at version 1, epoch 0.\n1 commits adopted." in repaired.out
    refused = run("repair", "--table", table, user=postgres.WRITER)
    assert refused.status == 0  # there is nothing that only an administrator may do
    unknown = run("repair", "--table", str(tmp_path))
    assert unknown.status == 1
    assert "there is no table" in unknown.err


def test_repair_of_a_storage_without_its_client(server: postgres.Server) -> None:
    file = password_file(server, postgres.ADMIN, postgres.PASSWORDS[postgres.ADMIN])
    login = {"url": server.jdbc_url, "user": postgres.ADMIN, "passwordFile": str(file)}
    done = command.repair(login, "s3a://bucket/t")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "interlock coordinator: [INTERLOCK_COORDINATOR_REPAIR] The repair of the table at "
        "s3a://bucket/t did not finish. The storage or its Hadoop client failed: "
        "java.lang.RuntimeException: java.lang.ClassNotFoundException: Class "
        "org.apache.hadoop.fs.s3a.S3AFileSystem not found. "
        "What was repaired before stays repaired. "
        "Give the command the settings by which the table's jobs reach the storage, with --conf or "
        "in spark-defaults.conf: spark.jars.packages for the client, spark.hadoop.* for address "
        "and credentials. Then run it again.\n"
    )


@pytest.mark.parametrize("action", ["init", "status"])
def test_a_wrong_password(run: Run, server: postgres.Server, action: str) -> None:
    file = password_file(server, "wrong", WRONG)
    done = run(action, "--password-file", str(file))
    assert done.status == 1
    assert "INTERLOCK_COORDINATOR_UNAVAILABLE" in done.err
    assert "28P01" in done.err
    assert " The coordinator at 127.0.0.1:" in done.err
    assert WRONG not in done.out + done.err


def test_a_password_file_that_others_may_read(run: Run, server: postgres.Server) -> None:
    file = password_file(server, "open", WRONG, mode=0o644)
    done = run("status", "--password-file", str(file))
    assert done.status == 1
    assert "chmod 600" in done.err


def test_a_writer_cannot_migrate(run: Run, server: postgres.Server) -> None:
    done = run("upgrade", user=postgres.WRITER)
    assert done.status == 1
    assert "permission denied" in done.err


@pytest.mark.parametrize(
    "parameter", ["socketFactory=x.Y", "loggerFile=x.log", f"password={WRONG}", "options=-cx=y"]
)
def test_parameters_of_the_url_are_chosen(
    run: Run, server: postgres.Server, parameter: str
) -> None:
    done = run("status", url=f"{server.jdbc_url}?{parameter}")
    assert done.status == 1
    assert "--url" in done.err
    assert "sslmode" in done.err
    assert parameter.partition("=")[2] not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["coordinator"],
        ["coordinator", "mend"],
        ["coordinator", "status"],
        ["coordinator", "status", "--url", "x", "--user", "y"],
        ["coordinator", "status", "--url", "x", "--user", "y", "--password", "z"],
        ["coordinator", "repair", "--url", "x", "--user", "y", "--password-file", "z"],
    ],
)
def test_wrong_arguments_end_with_status_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _cli.main(arguments)
    assert ended.value.code == 2


def test_no_password_is_logged_or_thrown(
    jvm: Any, logs: Path, server: postgres.Server, tmp_path: Path
) -> None:
    store = postgres_store(jvm, {**writer(server), "poolSize": "1"})
    log = tmp_path / "other" / "_delta_log"
    log.mkdir(parents=True)
    store.commit(log, 0, "a")

    def stop(phase: str, version: int) -> None:
        if phase == "ratified":
            server.restart(mode="immediate")
            raise RuntimeError(phase)

    with observed(jvm, stop):
        store.commit(log, 1, "b")
    store.commit(log, 2, "c")
    store.close()
    wrong = {**writer(server, password=WRONG), "statementTimeout": "500ms"}
    with pytest.raises(Refused) as refused:
        postgres_store(jvm, wrong).commit(log, 3, "d")
    shown = [str(refused.value), str(refused.value.parameters)]
    shown.append(read_settings(jvm, writer(server)).toString())
    written = (logs / LOG).read_text(encoding="utf-8", errors="replace")
    assert "password authentication failed" in shown[0]
    for logged in ("password authentication failed", "FE=> SASL"):
        assert logged in written
    for password in (*postgres.PASSWORDS.values(), WRONG):
        forms = (password, quote(password, safe=""), base64.b64encode(password.encode()).decode())
        for form in forms:
            assert not any(form in text for text in (written, *shown)), form
