"""Commits of tables through the coordinator, as a session sees them.

The stores alone are tested in jvm/coordinator, tests/postgres and tests/storage.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import interlock.errors as errors
import pytest
from interlock.lab.example import sql_name
from interlock.lab.model import Rows, in_order
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from tests.kit.commit_phases import observed
from tests.kit.eventually import eventually
from tests.kit.foreign import commit_by_hand
from tests.kit.gates import end_behind, phase_gate
from tests.kit.log_replay import check_log
from tests.kit.snapshots import queue_of
from tests.kit.support import (
    Table,
    await_checkpoints,
    check_row_ids,
    commit_file,
    commit_info,
    confs,
    deltalake_rows,
    jobs_started,
    latest_version,
    log_of,
    make_table,
    put_back,
    python_job,
    race,
    rows,
    sql_job,
    threads_in,
    unknown_files,
    versions,
)

OPT_IN = {"interlock.coordinator": "filesystem"}


def stamp(table: Table, version: int) -> str | None:
    found: str | None = (commit_info(table, version).get("tags") or {}).get("interlock.coordinator")
    return found


def stamps(table: Table) -> list[str | None]:
    return [stamp(table, version) for version in versions(table)]


def ours(count: int) -> list[str]:
    return [f"filesystem/0/{version}" for version in range(count)]


class TestWhichTables:
    def test_a_policy_brings_every_commit_there(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        for statement in (
            "UPDATE {t} SET v = 'x' WHERE id = 1",
            "ALTER TABLE {t} COMPACT MAJOR",
            "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
            "RESTORE TABLE {t} TO VERSION AS OF 2",
            "TRUNCATE TABLE {t}",
        ):
            spark.sql(statement.format(t=table))
        assert stamps(table) == ours(8)

    def test_a_table_without_a_policy_may_opt_in(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy=None, properties=OPT_IN)
        spark.sql(f"DELETE FROM {table} WHERE id = 3")
        assert stamps(table) == ours(4)
        assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"))

    def test_others_are_left_to_delta(self, spark: SparkSession, table_path: Path) -> None:
        assert stamps(make_table(spark, table_path, policy=None)) == [None] * 3

    def test_an_opted_in_table_keeps_deltas_conflicts(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy=None, properties=OPT_IN)
        first, second = race(
            spark,
            sql_job(f"UPDATE {table} SET v = 'x' WHERE id = 1"),
            sql_job(f"UPDATE {table} SET v = 'y' WHERE id = 1"),
            latest_version=lambda: versions(table)[-1],
        )
        assert first.error is None
        assert isinstance(second.error, errors.ConflictError)
        assert stamps(table) == ours(4)


def test_a_commit_that_delta_cannot_convert_is_not_made(
    spark: SparkSession, table_path: Path
) -> None:
    """UniForm converts the commit of a named table first; here the jar of Iceberg is missing."""
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "false"}
    table = make_table(spark, table_path, policy="serializable", properties=properties)
    spark.sql(f"CREATE TABLE converted USING delta LOCATION '{table.path}'")
    uniform = "'delta.enableIcebergCompatV2' = 'true', "
    uniform += "'delta.universalFormat.enabledFormats' = 'iceberg'"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({uniform})")
    last, before = latest_version(table), rows(spark, table)
    with pytest.raises(Exception, match=r"(?i)iceberg"):
        spark.sql("INSERT INTO converted VALUES (9, 'z')")
    assert latest_version(table) == last
    assert rows(spark, table) == before
    spark.sql("DROP TABLE converted")


def test_what_delta_commits_is_committed_however_long_its_commit_info_is(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path)
    longest = "x" * 21_000_000
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", longest)
    try:
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    assert commit_info(table, 3)["userMetadata"] == longest
    assert stamps(table) == ours(4)
    assert deltalake_rows(table) == ((1, "a"), (2, "b"), (3, "c"), (4, "d"))


class TestBinding:
    def test_existing_tables_are_bound_and_unbound(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy=None)
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.coordinator' = 'filesystem')")
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.coordinator')")
        spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        # The commit that changes the binding goes where the table was bound before.
        assert stamps(table) == [None] * 4 + ["filesystem/0/4", "filesystem/0/5", None]

    @pytest.mark.parametrize("name", ["elsewhere", "Main-2"])
    def test_a_session_without_the_coordinator_is_refused(
        self, spark: SparkSession, table_path: Path, name: str
    ) -> None:
        table = make_table(spark, table_path)
        with pytest.raises(errors.InterlockError, match=rf"spark\.interlock\.coordinator\.{name}"):
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.coordinator' = '{name}')")
        assert len(versions(table)) == 3

    @pytest.mark.parametrize(
        "name", ["jdbc:postgresql://db/interlock?password=secret", "../x", "a b", "", "x'y"]
    )
    def test_a_name_that_is_none_is_refused_and_never_shown(
        self, spark: SparkSession, table_path: Path, name: str
    ) -> None:
        quoted = name.replace("'", "\\'")
        with pytest.raises(errors.InterlockError) as refused:
            make_table(spark, table_path, properties={"interlock.coordinator": quoted})
        assert refused.value.condition == "INTERLOCK_INVALID_PROPERTY"
        assert "secret" not in str(refused.value)
        assert not table_path.exists()


class TestLifeOfATable:
    def test_dropped_and_made_anew_at_the_same_place(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        shutil.rmtree(table_path)
        spark.sql(
            f"CREATE TABLE {table} (id INT, v STRING) USING delta"
            " TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
        )
        spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        assert stamps(table) == ours(2)
        assert rows(spark, table) == deltalake_rows(table) == ((5, "e"),)

    def test_a_replaced_table_keeps_no_queue_of_the_one_before(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        jvm: Any = spark._jvm
        table = make_table(spark, table_path, policy="row_level")
        before = jvm.java.lang.ref.WeakReference(queue_of(spark, table))
        spark.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT 1 AS id, 'a' AS v")
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.policy' = 'row_level')")
        spark.sql(f"INSERT INTO {table} VALUES (2, 'b')")
        assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"))

        def is_gone() -> bool:
            gc.collect()  # Python's reference to it
            jvm.System.gc()
            return before.get() is None

        eventually(is_gone)

    def test_made_anew_after_the_statement_has_looked(
        self, spark: SparkSession, table_path: Path, tmp_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        properties = {"delta.checkpointInterval": "7"}
        other = make_table(spark, tmp_path / "other", properties=properties)
        swapped: list[str] = []

        def swap(phase: str, version: int) -> None:
            if phase == "staging" and not swapped:
                swapped.append(phase)
                put_back(table, other.path)

        listen: Any = ensure_callback_server_started
        listen(spark.sparkContext._gateway)
        with observed(spark._jvm, swap), pytest.raises(errors.InterlockError) as gone:
            spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        assert swapped
        assert gone.value.condition == "INTERLOCK_TABLE_GONE"
        assert versions(table) == versions(other)
        assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"), (3, "c"))
        spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        assert rows(spark, table)[-1] == (5, "e")

    @pytest.mark.parametrize(
        "statement",
        [
            "RESTORE TABLE {t} TO VERSION AS OF 1",
            "ALTER TABLE {t} UNSET TBLPROPERTIES ('interlock.policy')",
            "ALTER TABLE {t} ADD COLUMN w INT",
        ],
    )
    def test_made_anew_while_a_statement_runs_that_no_policy_judges(
        self, spark: SparkSession, table_path: Path, statement: str
    ) -> None:
        table = make_table(spark, table_path)

        def make_anew(session: SparkSession) -> None:
            shutil.rmtree(table_path)
            for sql in (
                f"CREATE TABLE {table} (id INT, v STRING) USING delta "
                "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')",
                *(f"INSERT INTO {table} VALUES ({n}, 'new')" for n in (7, 8)),
            ):
                session.sql(sql)

        first, second = race(
            spark, python_job("make anew", make_anew), sql_job(statement.format(t=table))
        )
        assert first.ok
        assert isinstance(second.error, errors.InterlockError)
        assert second.error.condition == "INTERLOCK_TABLE_GONE"
        assert versions(table) == [0, 1, 2]
        assert rows(spark, table) == deltalake_rows(table) == ((7, "new"), (8, "new"))
        spark.sql(f"INSERT INTO {table} VALUES (9, 'new')")
        assert commit_info(table, 3)["tags"]["interlock.policy"] == "maxcompute_delta"

    def test_a_log_that_was_put_back_stops_the_writes(
        self, spark: SparkSession, table_path: Path, tmp_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        shutil.copytree(table_path, tmp_path / "backup")
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        put_back(table, tmp_path / "backup")
        with pytest.raises(errors.InterlockError) as stopped:
            spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        assert stopped.value.condition == "INTERLOCK_COMMIT_OVERWRITTEN"
        assert "restart this application" in str(stopped.value)
        assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"), (3, "c"))

    @pytest.mark.parametrize("has_written", [True, False])
    def test_a_statement_whose_version_was_replaced(
        self, spark: SparkSession, table_path: Path, tmp_path: Path, *, has_written: bool
    ) -> None:
        """The log was put back and went on with another commit of that version."""
        columns = "(id INT, p INT) USING delta PARTITIONED BY (p)"
        inserts = ("INSERT INTO {t} VALUES (1, 1), (2, 2)", "INSERT INTO {t} VALUES (3, 1)")
        made = make_table(spark, table_path, columns=columns, statements=inserts)
        table = Table(Path(shutil.copytree(made.path, tmp_path / "read")))
        other = Table(Path(shutil.copytree(made.path, tmp_path / "went on")))
        for name in (f"{2:020}.json", f"{2:020}.crc"):
            (other.path / "_delta_log" / name).unlink()
        spark.sql(f"INSERT INTO {other} VALUES (7, 2)")
        spark.sql(f"INSERT INTO {other} VALUES (8, 2)")

        def go_on(_: SparkSession) -> None:
            queue_of(spark, table).catchUp(2)
            shutil.rmtree(table.path / "_delta_log")
            shutil.copytree(other.path, table.path, dirs_exist_ok=True)

        update = f"UPDATE {table} SET id = id + 100 WHERE p = 1"
        lost: BaseException | None
        if has_written:
            lost = race(spark, python_job("others", go_on), sql_job(update))[1].error
        else:
            lost = end_behind(spark, lambda: spark.sql(update), lambda: go_on(spark))
        assert isinstance(lost, errors.InterlockError)
        assert lost.condition == "INTERLOCK_TABLE_GONE"
        assert "Its log was put back to another state" in str(lost)
        assert versions(table) == [0, 1, 2, 3]
        assert deltalake_rows(table) == ((1, 1), (2, 2), (7, 2), (8, 2))

    @pytest.mark.parametrize("to", [1, 2])
    def test_a_log_that_was_put_back_behind_a_later_commit_of_the_process(
        self, spark: SparkSession, table_path: Path, tmp_path: Path, to: int
    ) -> None:
        """The process still remembers the old versions 2 and 3, and has made version 4."""
        columns = "(id INT, p INT) USING delta PARTITIONED BY (p)"
        insert = "INSERT INTO {t} VALUES (1, 1), (2, 2)"
        made = make_table(spark, table_path, columns=columns, statements=(insert,))
        table, before = (
            Table(Path(shutil.copytree(made.path, tmp_path / name))) for name in ("read", "before")
        )

        def append(into: Table, count: int) -> None:
            for _ in range(count):
                spark.sql(f"INSERT INTO {into} VALUES (8, 2)")

        append(before, to - 1)
        now = Table(Path(shutil.copytree(before.path, tmp_path / "now")))
        append(before, 3 - to)
        update = "UPDATE {t} SET id = id + 100 WHERE p = 1"
        spark.sql(update.format(t=now))
        append(now, 2 - to)

        def go_on(session: SparkSession) -> None:
            shutil.copytree(before.path, table.path, dirs_exist_ok=True)
            queue = queue_of(spark, table)
            queue.catchUp(2)
            assert queue.isTaken(3)
            shutil.copytree(now.path, table.path, dirs_exist_ok=True)
            session.sql(f"INSERT INTO {table} VALUES (9, 2)")

        first, second = race(spark, python_job("others", go_on), sql_job(update.format(t=table)))
        assert first.ok
        assert isinstance(second.error, errors.ConflictError)
        assert second.error.winner_version == to + 1
        assert versions(table) == [0, 1, 2, 3, 4]
        assert rows(spark, table) == deltalake_rows(table) == ((101, 1), (2, 2), (8, 2), (9, 2))

    def test_a_winner_that_is_missing_before_a_checkpoint(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        """Delta looks for missing versions only behind the newest checkpoint."""
        table = make_table(spark, table_path, policy="row_level")
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
        read = latest_version(table)

        def go_on() -> None:
            for _ in range(4):
                spark.sql(f"INSERT INTO {table} VALUES (9, 'z')")
            await_checkpoints(spark)
            assert list((table_path / "_delta_log").glob(f"{read + 3:020}.checkpoint*.parquet"))
            for version in range(read + 1, read + 5):
                queue_of(spark, table).drop(version)
            commit_file(table, read + 2).unlink()

        update = f"UPDATE {table} SET v = 'y' WHERE id = 1"
        lost = end_behind(spark, lambda: spark.sql(update), go_on, phase_gate)
        assert f"has no version {read + 2}" in str(lost)
        assert latest_version(table) == read + 4

    def test_a_commit_overwritten_by_another_writer_stops_the_writes(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        file = table_path / "_delta_log" / f"{3:020}.json"
        lines = file.read_text(encoding="utf-8").splitlines()
        info: dict[str, Any] = json.loads(lines[0])
        ours_txn = info["commitInfo"]["txnId"]
        info["commitInfo"]["txnId"] = "theirs"
        replacement = file.with_name("replacement")
        replacement.write_text("\n".join([json.dumps(info), *lines[1:]]) + "\n", encoding="utf-8")
        os.replace(replacement, file)
        with pytest.raises(errors.InterlockError) as stopped:
            spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        assert stopped.value.condition == "INTERLOCK_COMMIT_OVERWRITTEN"
        assert ours_txn in str(stopped.value)
        assert "theirs" in str(stopped.value)
        assert len(versions(table)) == 4


def in_queue(spark: SparkSession) -> int:
    """Count the threads whose commits have been handed in and wait for their outcome."""
    return threads_in(spark, "CommitQueue.await")


@pytest.mark.parametrize(
    ("most", "condition"),
    [("1", "INTERLOCK_TOO_MANY_ATTEMPTS"), ("many", "INTERLOCK_INVALID_PROPERTY")],
)
def test_a_commit_gives_up_after_so_many_attempts(
    spark: SparkSession, table_path: Path, most: str, condition: str
) -> None:
    """Each attempt loses its version to a harmless commit of another writer."""
    table = make_table(spark, table_path)
    before = latest_version(table)

    def overtake(phase: str, version: int) -> None:
        if phase == "publishing" and version == before + 1:
            commit_by_hand(table, "WRITE")

    with (
        confs(spark, {"spark.interlock.commit.maxAttempts": most}),
        observed(spark._jvm, overtake),
        pytest.raises(errors.UsageError) as raised,
    ):
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    assert raised.value.condition == condition
    assert unknown_files(table) == []
    assert versions(table)[-1] == before + 1
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    assert rows(spark, table) == deltalake_rows(table)
    assert (4, "d") not in rows(spark, table)


def test_behind_a_commit_that_is_too_large_to_be_kept(
    spark: SparkSession, table_path: Path
) -> None:
    """The store answers "taken" without the commit, which is then read from the log."""
    table = make_table(spark, table_path)
    before = latest_version(table)

    def overtake(phase: str, version: int) -> None:
        if phase == "publishing" and version == before + 1:
            commit_by_hand(table, "WRITE", tags={"long": "x" * (1 << 20)})

    few = {"spark.interlock.commit.maxAttempts": "3"}
    with confs(spark, few), observed(spark._jvm, overtake):
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    assert versions(table)[-1] == before + 2
    assert (4, "d") in deltalake_rows(table)
    assert rows(spark, table) == deltalake_rows(table)


def test_a_create_that_fails_deletes_nothing_of_others(
    spark: SparkSession, table_path: Path
) -> None:
    """Another writer starts to create the table while the failed CREATE cleans up."""
    table = Table(table_path)
    create = f"CREATE TABLE {table} (id INT, v STRING) USING delta"

    def begin(phase: str, version: int) -> None:
        if phase == "publishing" and version == 0:
            (table.path / "_delta_log" / "of another").touch()
            raise RuntimeError(phase)

    with observed(spark._jvm, begin), pytest.raises(Exception, match="publishing"):
        spark.sql(f"{create} TBLPROPERTIES ('interlock.policy' = 'row_level')")
    kept = [file.name for file in (table.path / "_delta_log").iterdir()]
    assert kept == ["of another"]


@pytest.mark.variant_cases("serializable-pending")
@pytest.mark.parametrize(
    ("policy", "conflicting", "lost", "expected"),
    [
        ("maxcompute_delta", "pending", "INSERT", ((20, 1), (200, 2))),
        ("serializable", "pending", None, ((7, 2), (20, 1), (200, 2))),  # it has read nothing
        ("maxcompute_delta", "made", "UPDATE", ((1, 1), (7, 1), (20, 2))),
        ("serializable", "made", "UPDATE", ((1, 1), (7, 1), (20, 2))),
    ],
    ids=[
        "maxcompute_delta-pending",
        "serializable-pending",
        "maxcompute_delta-made",
        "serializable-made",
    ],
)
def test_a_commit_judged_against_one_that_was_not_made_is_judged_by_what_was(
    spark: SparkSession,
    tmp_path: Path,
    policy: str,
    conflicting: str,
    lost: str | None,
    expected: Rows,
) -> None:
    """The version of a pending commit goes to another one; one of them conflicts."""
    part = 2 if conflicting == "made" else 1
    columns = "(id INT, p INT) USING delta PARTITIONED BY (p)"
    inserts = ("INSERT INTO {t} VALUES (1, 1), (2, 2)",)
    made = make_table(spark, tmp_path / "made", policy=policy, columns=columns, statements=inserts)
    table = Table(Path(shutil.copytree(made.path, tmp_path / "table")))
    other = Table(Path(shutil.copytree(made.path, tmp_path / "of another process")))
    spark.sql(f"UPDATE {other} SET id = 20 WHERE p = {part}")
    ended: dict[str, BaseException | None] = {}

    def run(statement: str) -> None:
        try:
            spark.newSession().sql(statement)
            ended[statement[:6]] = None
        except Exception as error:
            ended[statement[:6]] = error

    behind = f"UPDATE {table} SET id = 200 WHERE p = 2"
    thread = threading.Thread(target=run, args=(behind,))

    def is_judged() -> bool:
        """Whether it is handed in, or has lost and waits for what becomes of the other one."""
        jvm: Any = spark._jvm
        dump = jvm.org.apache.spark.util.Utils.getThreadDump()
        return in_queue(spark) == 2 or any("isSettled" in str(one.stackTrace()) for one in dump)

    def overtake(phase: str, version: int) -> None:
        if phase == "publishing" and version == 2 and not thread.ident:
            thread.start()
            while not is_judged():
                assert thread.is_alive(), ended
            shutil.copytree(other.path, table.path, dirs_exist_ok=True)

    listen: Any = ensure_callback_server_started
    listen(spark.sparkContext._gateway)
    with observed(spark._jvm, overtake):
        run(f"INSERT INTO {table} VALUES (7, {3 - part})")
        thread.join()
    conflicts = {key for key, error in ended.items() if isinstance(error, errors.ConflictError)}
    assert conflicts == ({lost} if lost else set())
    assert [ended[key] for key in ended.keys() - conflicts] == [None] * (2 - len(conflicts))
    assert versions(table) == list(range(5 - len(conflicts)))
    assert rows(spark, table) == deltalake_rows(table) == in_order(expected)
    assert unknown_files(table) == []
    check_log(table)
    check_row_ids(spark, table)


class TestBehindTheCommits:
    @pytest.mark.variant_cases("0")
    @pytest.mark.parametrize("age", [0, 60])
    def test_a_later_writer_makes_up_for_a_checkpoint_that_is_missing_for_a_minute(
        self, spark: SparkSession, table_path: Path, age: int
    ) -> None:
        made = make_table(spark, table_path, properties={"delta.checkpointInterval": "2"})
        for number in (3, 4):
            spark.sql(f"INSERT INTO {made} VALUES ({number}, 'd')")
        await_checkpoints(spark)
        # A table that this process has not written yet.
        table = Table(shutil.copytree(made.path, table_path.with_name("copy")))
        log = table.path / "_delta_log"
        for file in (*log.glob("*.checkpoint*"), log / "_last_checkpoint"):
            file.unlink()
        for version in (2, 4):
            os.utime(log / f"{version:020}.json", (time.time() - (age if version == 2 else 0),) * 2)
        spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        await_checkpoints(spark)
        written = {int(file.name[:20]) for file in log.glob("0*.checkpoint*")}
        assert written == ({5} if age else set())

    def test_no_commit_waits_for_a_checkpoint(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, properties={"delta.checkpointInterval": "3"})
        started = {}
        for version in range(3, 10):
            started[version] = jobs_started(spark, f"INSERT INTO {table} VALUES ({version}, 'x')")
            await_checkpoints(spark)
        assert set(started.values()) == {started[4]}, started
        log = table_path / "_delta_log"
        written = {int(file.name[:20]) for file in log.glob("*.checkpoint*.parquet")}
        assert written == {3, 6, 9}
        assert json.loads((log / "_last_checkpoint").read_text())["version"] == 9

    @pytest.mark.parametrize("days", [29, 32])
    def test_a_log_is_cleaned_up_once_its_oldest_version_has_expired(
        self, spark: SparkSession, table_path: Path, days: int
    ) -> None:
        table = make_table(spark, table_path, properties={"delta.checkpointInterval": "4"})

        def insert(count: int) -> None:
            for _ in range(count):
                spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
                await_checkpoints(spark)

        insert(2)
        for file in (table_path / "_delta_log").glob("0*"):
            old = time.time() - days * 24 * 60 * 60 + int(file.name[:20])
            os.utime(file, (old, old))
        with log_of(spark, "org.apache.spark.sql.delta.DeltaLog", level="INFO") as written:
            insert(8)
        assert str(written).count("Starting the deletion of log files") == (days > 30)
        assert versions(table)[0] == (4 if days > 30 else 0)
        assert rows(spark, table) == deltalake_rows(table)

    def test_a_checkpoint_that_fails_is_tried_when_the_next_is_due(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        made = make_table(spark, tmp_path / "made", properties={"delta.checkpointInterval": "3"})
        table = Table(Path(shutil.copytree(made.path, tmp_path / "table")))
        log = table.path / "_delta_log"
        checksum = log / f"{2:020}.crc"
        claimed = json.loads(checksum.read_text())
        checksum.write_text(json.dumps(claimed | {"numFiles": 99}))

        def insert(count: int) -> None:
            for _ in range(count):
                spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
                await_checkpoints(spark)

        with log_of(
            spark, "org.apache.spark.sql.delta.interlock.log.BackgroundCheckpoints"
        ) as warnings:
            insert(5)
        assert warnings.toString().count("No checkpoint of version") == 1
        assert "No checkpoint of version 3 " in warnings.toString()
        fatal = "spark.databricks.delta.checksum.mismatch.fatal"
        spark.conf.set(fatal, False)
        try:
            insert(1)
            assert not list(log.glob("*.checkpoint*"))
            insert(1)
        finally:
            spark.conf.unset(fatal)
        assert [int(file.name[:20]) for file in log.glob("*.checkpoint*.parquet")] == [9]

    def test_old_leftovers_of_killed_writers_are_swept(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, properties={"delta.checkpointInterval": "3"})
        log = table_path / "_delta_log"
        old, young = log / f".{2:020}.old.tmp", log / f".{2:020}.young.tmp"
        for leftover in (old, young):
            leftover.touch()
        os.utime(old, (0, 0))
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        await_checkpoints(spark)
        assert (old.exists(), young.exists()) == (False, True)

    def test_no_commit_leaves_a_file_of_hadoops(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        found = {file.name for file in (table_path / "_delta_log").iterdir()}
        named = {f"{version:020}.{end}" for version in range(4) for end in ("json", "crc")}
        assert {name for name in found if not name.startswith("_")} == named


def test_threads_of_one_process_lose_nothing(spark: SparkSession, table_path: Path) -> None:
    """Appends judged against commits that are still on their way: versions, rows and checksums."""
    table = make_table(spark, table_path, policy="maxcompute_transactional")
    acknowledged: list[int] = []

    def append(worker: int) -> None:
        for number in range(3):
            key = 100 * worker + number
            spark.sql(f"INSERT INTO {sql_name(table_path)} VALUES ({key}, 'w')")
            acknowledged.append(key)

    workers = [threading.Thread(target=append, args=(worker,)) for worker in range(1, 7)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(acknowledged) == 18
    assert versions(table) == list(range(21))
    assert stamps(table) == ours(21)
    found = rows(spark, table)
    assert {row[0] for row in found} == {1, 2, 3, *acknowledged}
    assert len(found) == 21
    assert found == deltalake_rows(table)
    check_log(table)


def test_a_statement_that_commits_nothing_keeps_nobody_waiting(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path)
    first, nothing = race(
        spark,
        sql_job(f"ALTER TABLE {table} COMPACT MAJOR"),
        sql_job(f"UPDATE {table} SET v = 'x' WHERE id = 99"),
        latest_version=lambda: versions(table)[-1],
    )
    assert (first.error, nothing.error) == (None, None)
    other = threading.Thread(
        target=lambda: spark.sql(f"INSERT INTO {table} VALUES (4, 'd')"), daemon=True
    )
    other.start()
    other.join(timeout=60)
    assert versions(table) == list(range(5))
