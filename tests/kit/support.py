"""Shared by the tests: making and reading tables, and races.

Tables are made by `make_table`, read by `rows` (Spark) and `deltalake_rows` (a reader that shares
no code with Spark), and their logs by `latest_version`, `commit` and `tags`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from interlock._races import Job as Job
from interlock._races import JobResult as JobResult
from interlock._races import race as race
from interlock.lab.example import latest_version as _latest_version
from interlock.lab.example import versions as _versions
from interlock.lab.model import Rows, in_order
from interlock.lab.reader import independent_reader
from pyspark.sql import SparkSession

from tests.kit.eventually import eventually

_PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Table:
    """A Delta table by path; `str(table)` is its name in SQL."""

    path: Path

    @property
    def location(self) -> str:
        """What Spark calls the table's folder."""
        return str(self.path)

    def __str__(self) -> str:
        return f"delta.`{self.location}`"


def make_table(
    spark: SparkSession,
    path: Path,
    *,
    policy: str | None = "maxcompute_delta",
    columns: str = "(id INT, v STRING) USING delta",
    properties: dict[str, str] | None = None,
    statements: tuple[str, ...] = (
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO {t} VALUES (3, 'c')",
    ),
    own_id: bool = False,
) -> Table:
    """Create a table at `path`: by default the documents' example, {1a, 2b, 3c} at version 2.

    It may be a copy of one that was made before, with another id only if `own_id` says so.
    """
    wanted = dict(properties or {})
    if policy is not None:
        wanted["interlock.policy"] = policy
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in wanted.items())
    create = f"CREATE TABLE {{t}} {columns}" + (f" TBLPROPERTIES ({listed})" if wanted else "")
    is_copy = _make(spark, Table(path), (create, *statements))
    if is_copy and own_id:
        _give_new_id(Table(path))
    return Table(path)


def _make(spark: SparkSession, table: Table, statements: tuple[str, ...]) -> bool:
    """Run `statements`, or copy the table that they made before in this run; tell whether."""
    if statements in _MADE:
        shutil.copytree(_MADE[statements], table.path, dirs_exist_ok=True)
        return True
    for statement in statements:
        spark.sql(statement.format(t=table))
    copy = Path(mkdtemp(dir=_FOLDER.name), "t")
    # A checkpoint in the background has drafts, which may vanish while they are copied.
    shutil.copytree(table.path, copy, ignore=shutil.ignore_patterns("_interlock", ".*.tmp*"))
    _MADE[statements] = copy
    return False


def _give_new_id(table: Table) -> None:
    log = table.path / "_delta_log"
    (old,) = re.findall(r'"metaData":{"id":"([^"]+)"', (log / f"{0:020}.json").read_text())
    new = str(uuid.uuid4())
    for file in (*log.glob("*.json"), *log.glob("*.crc")):
        made = file.stat().st_mtime_ns
        file.write_text(file.read_text().replace(old, new))
        os.utime(file, ns=(made, made))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


_FOLDER = TemporaryDirectory(prefix="interlock-tests-")
_MADE: dict[tuple[str, ...], Path] = {}


def rows(spark: SparkSession, table: Table | str, *, version: int | None = None) -> Rows:
    """Read all rows with Spark, in order; at an earlier version if one is given."""
    at = "" if version is None else f" VERSION AS OF {version}"
    found = spark.sql(f"SELECT * FROM {table}{at}").collect()
    return in_order(tuple(tuple(row) for row in found))


def ids(spark: SparkSession, table: Table) -> list[int]:
    """Read the column id with Spark, in order."""
    return [row["id"] for row in spark.sql(f"SELECT id FROM {table} ORDER BY id").collect()]


def ids_in(found: Rows) -> list[int]:
    """Return the first column of rows, in order."""
    return sorted(int(str(row[0])) for row in found)


def deltalake_rows(table: Table, *, version: int | None = None) -> Rows:
    """Read all rows with `deltalake`, in order; at an earlier version if one is given."""
    reader = independent_reader()
    assert reader is not None
    return in_order(reader(table.path, latest_version(table) if version is None else version))


def versions(table: Table) -> list[int]:
    """List the versions in the table's log."""
    return _versions(table.path)


def latest_version(table: Table) -> int:
    return _latest_version(table.path)


def commit_file(table: Table, version: int) -> Path:
    """Name the file of one version in the table's log."""
    return table.path / "_delta_log" / f"{version:020}.json"


def checkpoint_file(table: Table, version: int) -> Path:
    """Name the checkpoint of one version, if it is a single file."""
    return commit_file(table, version).with_suffix(".checkpoint.parquet")


def commit(table: Table, version: int) -> list[dict[str, Any]]:
    """Read the actions of one version."""
    text = commit_file(table, version).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def commit_info(table: Table, version: int) -> dict[str, Any]:
    info: dict[str, Any] = next(
        a["commitInfo"] for a in commit(table, version) if "commitInfo" in a
    )
    return info


def tags(table: Table, version: int) -> dict[str, str]:
    """Return the tags of one version's commitInfo that Interlock has written.

    The coordinator's stamp and the user, which nearly every commit has, are left out.
    """
    found = commit_info(table, version).get("tags") or {}
    stamps = ("interlock.coordinator", "interlock.user")
    return {key: value for key, value in found.items() if key not in stamps}


def live_files(table: Table) -> set[str]:
    """Replay the whole log and return the paths of the files that are live in the end."""
    live: set[str] = set()
    for version in versions(table):
        actions = commit(table, version)
        live -= {action["remove"]["path"] for action in actions if "remove" in action}
        live |= {action["add"]["path"] for action in actions if "add" in action}
    return live


def all_files(table: Table) -> set[Path]:
    """Return every file beside the notes of running jobs, which come and go by themselves."""
    found = (file for file in table.path.rglob("*") if file.is_file())
    return {file for file in found if file.parts[-3:-1] != ("_interlock", "running")}


def unknown_files(table: Table) -> list[str]:
    """Return the data files and files of change feeds that no version has added."""
    log = (action for version in versions(table) for action in commit(table, version))
    added = {action[of]["path"] for action in log for of in ("add", "cdc") if of in action}
    found = (str(file.relative_to(table.path)) for file in table.path.rglob("*.parquet"))
    return [file for file in found if file not in added and not file.startswith("_delta_log")]


@contextmanager
def confs(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set confs of a session for a while."""
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in values:
            spark.conf.unset(key)


def sql_job(statement: str, *, session: SparkSession | None = None, name: str = "") -> Job:
    """Make a job of one SQL statement."""
    return Job(name or statement, lambda spark: spark.sql(statement), session)


def sql_race(spark: SparkSession, table: Table, *statements: str) -> tuple[JobResult, ...]:
    """Race statements, `{t}` in them being the table; they commit in the order given."""
    jobs = (statement.format(t=table) for statement in statements)
    return race(spark, *jobs, latest_version=lambda: latest_version(table))


def python_job(name: str, run: Callable[[SparkSession], object]) -> Job:
    """Make a job of Python code."""
    return Job(name, run)


@contextmanager
def in_a_micro_batch(spark: SparkSession) -> Iterator[None]:
    """Make this thread look like a streaming query's, in which no statement is run again."""
    spark.sparkContext.setLocalProperty("sql.streaming.queryId", "a query")
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty("sql.streaming.queryId", None)  # type: ignore[arg-type]


def last_of(
    spark: SparkSession, table: Table, winners: tuple[str, ...], last: str
) -> Exception | None:
    """Run `winners` in turn while `last` waits before its commit; return the error of `last`."""

    def run_winners(session: SparkSession) -> None:
        for winner in winners:
            session.sql(winner.format(t=table))

    first, held = race(spark, python_job("winners", run_winners), sql_job(last.format(t=table)))
    assert first.error is None, first.error
    assert held.held
    return held.error


@contextmanager
def log_of(spark: SparkSession, name: str, *, level: str = "WARN") -> Iterator[Any]:
    """Collect, in a Java writer, what one class logs from a level on: a line each."""
    log4j: Any = spark._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    log4j.core.config.Configurator.setLevel(name, log4j.Level.toLevel(level))
    logger = log4j.LogManager.getLogger(name)
    written = spark._jvm.java.io.StringWriter()  # type: ignore[union-attr]
    appender = log4j.core.appender.WriterAppender.createAppender(
        None, None, written, name, False, False
    )
    appender.start()
    logger.addAppender(appender)
    try:
        yield written
    finally:
        logger.removeAppender(appender)


@contextmanager
def unlistable(table: Table) -> Iterator[None]:
    """Let Delta fail where it lists the log: there are versions missing before its last one."""
    file = commit_file(table, 10**6)
    file.touch()
    try:
        yield
    finally:
        file.unlink()


def running_notes(table: Table) -> list[Path]:
    """Return the notes of processes that run jobs on the table."""
    return list((table.path / "_delta_log/_interlock/running").glob("[!.]*"))


def await_running(table: Table) -> dict[str, Any]:
    """Wait for a note, and return what it tells."""

    def told() -> str | None:
        return next((note.read_text() for note in running_notes(table)), None)

    parsed: dict[str, Any] = json.loads(eventually(told, _PATIENCE_SECONDS, "a job is noted"))
    return parsed


def await_none_running(table: Table) -> None:
    eventually(lambda: not running_notes(table), _PATIENCE_SECONDS, "no job is noted")


def check_row_ids(spark: SparkSession, table: Table) -> None:
    """Check that no two rows of the latest version have the same row id."""
    found = [row[0] for row in spark.sql(f"SELECT _metadata.row_id FROM {table}").collect()]
    assert len(set(found)) == len(found), sorted(found)


def row_tracking(spark: SparkSession, table: Table) -> dict[int, tuple[int, int]]:
    """Return row id and commit version of each row, by the column id."""
    found = spark.sql(
        f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {table}"
    ).collect()
    return {row[0]: (row[1], row[2]) for row in found}


def jobs_started(spark: SparkSession, statement: str) -> int:
    """Run a statement; count the Spark jobs that its thread started."""
    context = spark.sparkContext
    group = str(uuid.uuid4())
    context.setJobGroup(group, statement)
    try:
        spark.sql(statement)
    finally:
        context._jsc.clearJobGroup()
    return len(context.statusTracker().getJobIdsForGroup(group))


def put_back(table: Table, backup: Path) -> None:
    """Put a table's folder back from a copy."""
    shutil.rmtree(table.path)
    shutil.copytree(backup, table.path)


def await_checkpoints(spark: SparkSession) -> None:
    """Wait for the background checkpoints of tables with a coordinator."""
    jvm: Any = spark._jvm
    assert jvm.org.apache.spark.sql.delta.interlock.log.BackgroundCheckpoints.awaitIdle(60_000)


def threads_in(spark: SparkSession, name: str) -> int:
    """Count the threads of the session's JVM that are in a class or a method."""
    jvm: Any = spark._jvm
    beans = jvm.java.lang.management.ManagementFactory
    threads = beans.getThreadMXBean().dumpAllThreads(False, False)
    return sum(
        any(name in frame.toString() for frame in thread.getStackTrace()) for thread in threads
    )
