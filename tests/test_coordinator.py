"""Commits of tables through the coordinator, as a session sees them.

What the stores do by themselves is tested beside them (jvm/coordinator, tests/test_coordinator_*).
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import interlock.errors as errors
import pytest
from interlock.lab.example import sql_name
from pyspark.sql import SparkSession

from tests.log_replay import check_log
from tests.support import (
    Table,
    await_checkpoints,
    commit_info,
    deltalake_rows,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
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

    def test_a_log_that_was_put_back_stops_the_writes(
        self, spark: SparkSession, table_path: Path, tmp_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        shutil.copytree(table_path, tmp_path / "backup")
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        shutil.rmtree(table_path)
        shutil.copytree(tmp_path / "backup", table_path)
        with pytest.raises(errors.InterlockError) as stopped:
            spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        assert stopped.value.condition == "INTERLOCK_COMMIT_OVERWRITTEN"
        assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"), (3, "c"))

    def test_renamed(self, spark: SparkSession) -> None:
        spark.sql(
            "CREATE TABLE before (id INT) USING delta"
            " TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
        )
        spark.sql("INSERT INTO before VALUES (1)")
        spark.sql("ALTER TABLE before RENAME TO after")
        spark.sql("INSERT INTO after VALUES (2)")
        assert rows(spark, "after") == ((1,), (2,))
        spark.sql("DROP TABLE after")

    def test_a_shallow_clone_has_commits_of_its_own(
        self, spark: SparkSession, table_path: Path, tmp_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        clone = Table(tmp_path / "clone")
        spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE {table}")
        spark.sql(f"INSERT INTO {clone} VALUES (4, 'd')")
        assert stamps(clone) == ours(2)
        assert len(versions(table)) == 3

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


class TestBehindTheCommits:
    def test_checkpoints_are_written_behind(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, properties={"delta.checkpointInterval": "2"})
        for number in range(4, 8):
            spark.sql(f"INSERT INTO {table} VALUES ({number}, 'x')")
        await_checkpoints(spark)
        log = table_path / "_delta_log"
        assert json.loads((log / "_last_checkpoint").read_text())["version"] == 6
        assert rows(spark, table) == deltalake_rows(table)

    def test_the_next_writer_makes_up_for_a_checkpoint_that_is_missing(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, properties={"delta.checkpointInterval": "3"})
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        await_checkpoints(spark)
        log = table_path / "_delta_log"
        for file in (*log.glob("*.checkpoint*"), log / "_last_checkpoint"):
            file.unlink()
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
        await_checkpoints(spark)
        assert json.loads((log / "_last_checkpoint").read_text())["version"] == 4

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


def test_a_commit_that_missed_many_versions(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path, policy="maxcompute_transactional")

    def winners(session: SparkSession) -> None:
        for number in range(10, 22):
            session.sql(f"INSERT INTO {table} VALUES ({number}, 'w')")

    first, late = race(
        spark,
        python_job("winners", winners),
        sql_job(f"INSERT INTO {table} VALUES (30, 'late')"),
        latest_version=lambda: versions(table)[-1],
    )
    assert (first.error, late.error) == (None, None)
    assert versions(table) == list(range(16))
    assert (30, "late") in rows(spark, table)
    assert rows(spark, table) == deltalake_rows(table)
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
