"""Tables on a real HDFS: statements, races, two processes, and servers that die.

What a test leaves is copied to the local disk, where the log is looked at; `deltalake` reads it on
HDFS.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import interlock
import pytest
from interlock.errors import ConflictError, InterlockError
from pyspark.sql import SparkSession

from integration import writers
from integration.kill_cells import Fault, cell
from integration.kill_points import assert_all_hold
from integration.stores import FILE_SYSTEM, ON_HDFS
from integration.writers import Writer, acknowledged, answers
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.eventually import eventually
from tests.kit.gates import end_behind, phase_gate
from tests.kit.sessions import classic_session
from tests.kit.snapshots import begin, log_at
from tests.kit.support import (
    Job,
    Table,
    await_none_running,
    await_running,
    commit_file,
    deltalake_rows,
    make_table,
    race,
    unknown_files,
    versions,
)
from tests.storage import hdfs
from tests.storage.large_commits import SIZE, large_append
from tests.storage.remote import RemoteTable

START = ((1, "a"), (2, "b"), (3, "c"))
# Clients wait for a NameNode that is started again.
SETTINGS = {
    "spark.hadoop.dfs.client.retry.policy.enabled": "true",
    "spark.hadoop.dfs.client.retry.policy.spec": "500,100",  # milliseconds, times
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hdfs.Cluster]:
    with hdfs.start(tmp_path_factory.mktemp("hdfs")) as found:
        yield found


@pytest.fixture(scope="module")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[DriverProcess]]:
    kinds = ("interlock", "interlock")
    with driver_processes(tmp_path_factory.mktemp("drivers"), *kinds, settings=SETTINGS) as both:
        yield both


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with classic_session(**SETTINGS) as session:
        yield session


@pytest.fixture
def table(cluster: hdfs.Cluster, spark: SparkSession, tmp_path: Path) -> RemoteTable:
    """{1a, 2b, 3c} in one file at version 1 under `row_level`."""
    made = RemoteTable(f"{cluster.url}/{tmp_path.name}")
    spark.sql(
        f"CREATE TABLE {made} (id INT, v STRING) USING delta "
        "TBLPROPERTIES ('interlock.policy' = 'row_level')"
    )
    values = ", ".join(map(str, START))
    spark.sql(f"INSERT INTO {made} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
    return made


def check(spark: SparkSession, table: RemoteTable, folder: Path, *rows: tuple[int, str]) -> Table:
    """Check the rows by Spark and without, and that the log has no gap and knows all files."""
    copy = table.copied(spark, folder)
    assert sorted(map(tuple, spark.table(str(table)).collect())) == sorted(rows)
    assert deltalake_rows(copy) == tuple(sorted(rows))
    assert versions(copy) == list(range(len(versions(copy))))
    assert unknown_files(copy) == []
    return copy


def test_faults_at_points_of_a_commit(tmp_path: Path) -> None:
    """Two of the pairs that integration/test_kill_points.py has on other stores.

    It comes first, since it starts an HDFS of its own.
    """
    store = FILE_SYSTEM.name + ON_HDFS
    assert_all_hold(
        store, [(store, cell("K6", Fault.BEFORE)), (store, cell("K7", Fault.KILL))], tmp_path
    )


def test_statements(spark: SparkSession, table: RemoteTable, tmp_path: Path) -> None:
    for statement in (
        "UPDATE {t} SET v = 'x' WHERE id = 2",
        "DELETE FROM {t} WHERE id = 3",
        "MERGE INTO {t} t USING (SELECT 2 AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm'",
        "ALTER TABLE {t} COMPACT MAJOR",
        "INSERT INTO {t} VALUES (4, 'd')",
        "VACUUM {t}",
    ):
        spark.sql(statement.format(t=table))
    check(spark, table, tmp_path / "copy", (1, "a"), (2, "m"), (4, "d"))
    before = spark.sql(f"SELECT * FROM {table} VERSION AS OF 1 ORDER BY id").collect()
    assert tuple(map(tuple, before)) == START
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
    assert sorted(map(tuple, spark.table(str(table)).collect())) == list(START)


def test_a_block_over_two_tables(
    cluster: hdfs.Cluster, spark: SparkSession, table: RemoteTable, tmp_path: Path
) -> None:
    other = RemoteTable(f"{cluster.url}/{tmp_path.name}-other")
    spark.sql(f"CREATE TABLE {other} LIKE {table}")
    for changed in (table, other):
        spark.sql(f"ALTER TABLE {changed} SET TBLPROPERTIES ('interlock.exclusive' = 'true')")
    with interlock.transaction(spark):
        spark.sql(f"INSERT INTO {other} SELECT * FROM {table} WHERE id = 3")
        spark.sql(f"DELETE FROM {table} WHERE id = 3")
        spark.newSession().sql(f"INSERT INTO {table} VALUES (4, 'd')")
    check(spark, table, tmp_path / "copy", (1, "a"), (2, "b"), (4, "d"))
    check(spark, other, tmp_path / "other", (3, "c"))
    with suppress(ConflictError), interlock.transaction(spark):
        spark.sql(f"DELETE FROM {table} WHERE id = 1")
        spark.sql(f"DELETE FROM {other}")
        spark.newSession().sql(f"UPDATE {other} SET v = 'x'")
    check(spark, table, tmp_path / "again", (1, "a"), (2, "b"), (4, "d"))
    check(spark, other, tmp_path / "other-again", (3, "x"))


def hadoop(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return a path, and the file system that has it."""
    jvm: Any = spark._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    return found, found.getFileSystem(spark._jsc.hadoopConfiguration())


def test_a_log_that_is_put_back_during_a_statement(spark: SparkSession, table: RemoteTable) -> None:
    """The statement does not commit behind the gap."""

    def put_back() -> None:
        for kind in ("json", "crc"):
            file, fs = hadoop(spark, f"{table.url}/_delta_log/{1:020}.{kind}")
            assert fs.delete(file, False)

    update = f"UPDATE {table} SET v = 'x'"
    error = end_behind(spark, lambda: spark.sql(update), put_back, phase_gate)
    assert isinstance(error, InterlockError)
    assert error.condition == "INTERLOCK_COMMIT_OVERWRITTEN"
    log, fs = hadoop(spark, f"{table.url}/_delta_log")
    names = [status.getPath().getName() for status in fs.listStatus(log)]
    assert [name for name in names if name.endswith((".json", ".tmp"))] == [f"{0:020}.json"]


def test_a_log_without_room_for_a_commit(
    spark: SparkSession, table: RemoteTable, tmp_path: Path
) -> None:
    log, fs = hadoop(spark, f"{table.url}/_delta_log")
    jvm: Any = spark._jvm
    keep = jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.QUOTA_DONT_SET
    fs.setQuota(log, fs.getContentSummary(log).getFileAndDirectoryCount(), keep)
    with pytest.raises(InterlockError) as refused:
        spark.sql(f"UPDATE {table} SET v = 'x' WHERE id = 1")
    assert refused.value.condition == "INTERLOCK_STORAGE_FAILED"
    assert "The NameSpace quota" in str(refused.value)
    assert "\tat org.apache" not in str(refused.value)
    fs.setQuota(log, -1, keep)
    check(spark, table, tmp_path / "copy", *START)


def test_a_commit_that_is_staged_in_a_file(
    spark: SparkSession,
    cluster: hdfs.Cluster,
    drivers: list[DriverProcess],
    table: RemoteTable,
    tmp_path: Path,
) -> None:
    """Commits alone, after it has lost its version to another, and before one that loses to it."""
    happened = events(spark, cluster)
    small = f"INSERT INTO {table} VALUES (%d, 's')"
    assert drivers[0].run(large_append(table.url, 4)) == Answer()
    for first, second in (
        (small % 5, large_append(table.url, 6)),
        (large_append(table.url, 7), small % 8),
    ):
        drivers[0].hold(first)
        drivers[1].hold(second)
        assert [driver.open() for driver in drivers] == [Answer(), Answer()]

    new = ((4, "large"), (5, "s"), (6, "large"), (7, "large"), (8, "s"))
    copy = check(spark, table, tmp_path / "copy", *START, *new)
    sizes = {version: commit_file(copy, version).stat().st_size for version in range(2, 7)}
    assert [version for version in sizes if sizes[version] > SIZE] == [2, 4, 5]
    staged = re.compile(rf"{urlsplit(table.url).path}/_delta_log/\.0*(\d+)\.[^.]+\.tmp")
    found = [(what, staged.fullmatch(path)) for what, path in happened()]
    steps = [(what, int(file[1])) for what, file in found if file]
    assert steps == [(what, version) for version in range(2, 6) for what in ("CREATE", "UNLINK")]
    log, fs = hadoop(spark, f"{table.url}/_delta_log")
    names = [status.getPath().getName() for status in fs.listStatus(log)]
    assert [name for name in names if name.startswith(".")] == []


def events(spark: SparkSession, cluster: hdfs.Cluster) -> Callable[[], Iterator[tuple[str, str]]]:
    """Return a way to read what happens to the files of HDFS from now on, and to which."""
    jvm: Any = spark._jvm
    conf = spark._jsc.hadoopConfiguration()
    admin = jvm.org.apache.hadoop.hdfs.client.HdfsAdmin(jvm.java.net.URI(cluster.url), conf)
    stream = admin.getInotifyEventStream()

    def happened() -> Iterator[tuple[str, str]]:
        while batch := stream.poll():
            for event in batch.getEvents():
                kind = event.getEventType().toString()
                if kind in ("CREATE", "UNLINK"):
                    yield kind, event.getPath()

    return happened


@pytest.mark.parametrize("row", [1, 2], ids=["same row", "another row"])
def test_two_updates(spark: SparkSession, table: RemoteTable, tmp_path: Path, row: int) -> None:
    update = f"UPDATE {table} SET v = '{{}}' WHERE id = {{}}"
    first, second = race(spark, update.format("x", 1), update.format("y", row))
    assert first.error is None
    if row == 1:
        assert isinstance(second.error, ConflictError)
        check(spark, table, tmp_path / "copy", (1, "x"), (2, "b"), (3, "c"))
    else:
        assert second.error is None
        check(spark, table, tmp_path / "copy", (1, "x"), (2, "y"), (3, "c"))


def test_two_processes_lose_and_double_nothing(
    cluster: hdfs.Cluster, drivers: list[DriverProcess], spark: SparkSession, tmp_path: Path
) -> None:
    table = RemoteTable(f"{cluster.url}/{tmp_path.name}")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT) USING delta "
        "TBLPROPERTIES ('interlock.policy' = 'row_level')"
    )
    planned = [
        Writer(table.url, n * 5, 5, "insert", str(tmp_path / f"writer-{n}")) for n in range(4)
    ]
    writers.run(drivers, planned, patience=200)
    told = answers(planned)
    assert sorted(acknowledged(told)) == list(range(20)), told
    for driver in drivers:  # A copy is not taken at once: it would miss a checkpoint named later.
        wait = "from tests.kit.support import await_checkpoints; await_checkpoints(spark)"
        writers.order(driver, wait)
    copy = table.copied(spark, tmp_path / "copy")
    assert versions(copy) == list(range(21))
    assert sorted(deltalake_rows(copy)) == [(i,) for i in range(20)]


def test_a_transaction_finds_commits_of_others_without_a_listing(
    drivers: list[DriverProcess], spark: SparkSession, table: RemoteTable
) -> None:
    log = log_at(spark, table.url)
    assert drivers[0].run(f"ALTER TABLE {table} ADD COLUMNS (w INT)") == Answer()
    for _ in range(2):
        snapshot, has_looked = begin(spark, log)
        assert not has_looked
        assert (snapshot.version(), snapshot.schema().fieldNames()[2]) == (2, "w")


def test_a_commit_is_synced(spark: SparkSession, cluster: hdfs.Cluster, table: RemoteTable) -> None:
    before = cluster.syncs()
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    assert cluster.syncs() > before


def test_a_note_is_renewed_without_its_content(spark: SparkSession, table: RemoteTable) -> None:
    """Renewing touches the note's time: a rewritten file would be empty until a DataNode has it."""
    begun = log_at(spark, table.url).startTransaction()
    folder, fs = hadoop(spark, f"{table.url}/_delta_log/_interlock/running")

    def notes() -> list[Any]:
        found = fs.listStatus(folder) if fs.exists(folder) else []
        return [note for note in found if not note.getPath().getName().startswith(".")]  # drafts

    eventually(notes)
    (first,) = notes()
    eventually(lambda: notes()[0].getModificationTime() > first.getModificationTime())
    (renewed,) = notes()
    assert renewed.getFileId() == first.getFileId()
    assert renewed.getLen() == first.getLen() > 0
    assert begun.readVersion() == 1


def test_a_datanode_dies(
    spark: SparkSession,
    cluster: hdfs.Cluster,
    drivers: list[DriverProcess],
    table: RemoteTable,
    tmp_path: Path,
) -> None:
    drivers[0].hold(f"UPDATE {table} SET v = 'x' WHERE id = 1")
    cluster.kill_datanode(1)
    try:
        assert drivers[0].open().error is None
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        check(spark, table, tmp_path / "copy", (1, "x"), *START[1:], (4, "d"))
    finally:
        cluster.start_datanode(1)
        cluster.await_datanodes()


def test_a_statement_waits_for_the_namenode(
    spark: SparkSession,
    cluster: hdfs.Cluster,
    drivers: list[DriverProcess],
    table: RemoteTable,
    tmp_path: Path,
) -> None:
    drivers[0].hold(f"UPDATE {table} SET v = 'x' WHERE id = 1")
    cluster.kill_namenode()
    again = threading.Timer(3, cluster.start_namenode)
    again.start()
    assert drivers[0].open().error is None
    again.join()
    cluster.await_datanodes()
    check(spark, table, tmp_path / "copy", (1, "x"), *START[1:])


def test_a_statement_that_does_not_wait_for_the_namenode(
    spark: SparkSession, cluster: hdfs.Cluster, table: RemoteTable, tmp_path: Path
) -> None:
    """The error says that the NameNode does not answer, and not that the table is gone."""
    impatient = spark.newSession()
    impatient.conf.set("fs.hdfs.impl.disable.cache", "true")
    impatient.conf.set("dfs.client.retry.policy.enabled", "false")
    impatient.conf.set("ipc.client.connect.max.retries", "0")
    update = f"UPDATE {table} SET v = 'x' WHERE id = 1"
    error = end_behind(impatient, lambda: impatient.sql(update), cluster.kill_namenode, phase_gate)
    cluster.start_namenode()
    cluster.await_datanodes()
    assert isinstance(error, InterlockError)
    assert error.condition == "INTERLOCK_STORAGE_FAILED"
    assert "Connection refused" in str(error)
    assert "of the statement's files could not be deleted and are left to VACUUM" in str(error)
    copy = table.copied(spark, tmp_path / "copy")
    assert deltalake_rows(copy) == START
    assert versions(copy) == [0, 1]
    assert len(unknown_files(copy)) == 1


def test_a_statement_waits_for_the_end_of_safe_mode(
    spark: SparkSession, table: RemoteTable, tmp_path: Path
) -> None:
    jvm: Any = spark._jvm
    actions = jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
    path = jvm.org.apache.hadoop.fs.Path(table.url)
    fs = path.getFileSystem(spark._jsc.hadoopConfiguration())
    leaving = threading.Timer(3, fs.setSafeMode, [actions.SAFEMODE_LEAVE])

    def enter(_: SparkSession) -> None:
        fs.setSafeMode(actions.SAFEMODE_ENTER)
        leaving.start()

    update = f"UPDATE {table} SET v = 'x' WHERE id = 1"
    _, ended = race(spark, Job("enter safe mode", enter), update)
    leaving.join()
    assert ended.error is None
    check(spark, table, tmp_path / "copy", (1, "x"), *START[1:])


def test_a_namenode_that_does_not_answer_holds_no_note_of_another_table(
    spark: SparkSession, cluster: hdfs.Cluster, table: RemoteTable, tmp_path: Path
) -> None:
    near = [make_table(spark, tmp_path / name) for name in ("first", "second")]
    jvm: Any = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table.url)

    def insert_while(job: Callable[[], object], into: Table) -> None:
        insert = f"INSERT INTO {into} VALUES (9, 'z')"
        for ended in race(spark, Job("meanwhile", lambda _: job()), insert):
            assert ended.error is None

    def begin_there() -> None:
        begun = log.startTransaction()
        with cluster.silent_namenode():
            await_running(near[0])
            # Its own note is due now, and this one a round later.
            insert_while(lambda: await_running(near[1]), near[1])
        assert begun.readVersion() == 1

    insert_while(begin_there, near[0])
    await_none_running(near[1])
