"""Winners that were written without Interlock are classified from what their commits say.

An INSERT OVERWRITE passes over every class under `maxcompute_transactional` and records the cell of
each winner: T5 for an append, T1 overwrite, T9 change of rows, T13 compaction.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, convert_to_deltalake, write_deltalake
from deltalake.exceptions import CommitFailedError
from interlock.errors import ConflictError
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.foreign import added, commit_by_hand
from tests.kit.foreign import copy as copied
from tests.kit.support import (
    Table,
    commit,
    commit_file,
    deltalake_rows,
    latest_version,
    live_files,
    log_of,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    tags,
)

RULES = {"APPEND": "T5", "OVERWRITE": "T1", "MUTATE": "T9", "COMPACTION": "T13"}
READ_TABLE = "spark.read.format('delta').load('{path}')"


def classes_seen(spark: SparkSession, table: Table, win: Callable[[], None]) -> list[str]:
    """Run `win` while an overwrite stands at its commit; return how it classified the winners."""
    overwrite = sql_job(f"INSERT OVERWRITE {table} VALUES (200, 'y')")
    won, later = race(spark, python_job("winners", lambda _: win()), overwrite)
    assert (won.error, later.error) == (None, None)
    assert later.held
    assert rows(spark, table) == deltalake_rows(table) == ((200, "y"),)
    name_of = {rule: name for name, rule in RULES.items()}
    return [
        name_of[rule] for rule in tags(table, latest_version(table))["interlock.rules"].split(",")
    ]


@pytest.mark.variant_cases("opt*")
@pytest.mark.parametrize(
    "winners",
    [
        [
            ("APPEND", "INSERT INTO {t} VALUES (10, 'i')"),
            ("OVERWRITE", "INSERT OVERWRITE {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')"),
            ("MUTATE", "UPDATE {t} SET v = 'U' WHERE id = 1"),
        ],
        [
            ("COMPACTION", "OPTIMIZE {t}"),
            ("MUTATE", "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id "
             "WHEN MATCHED THEN DELETE"),
            ("OVERWRITE", "TRUNCATE TABLE {t}"),
            ("APPEND", "spark.sql(\"SELECT 5 AS id, 'e' AS v\").write.format('delta')"
             ".mode('append').save('{path}')"),
        ],
        [
            ("MUTATE", READ_TABLE + ".where('id = 1').write.format('delta').mode('overwrite')"
             ".option('replaceWhere', 'id = 1').save('{path}')"),
            ("COMPACTION", READ_TABLE + ".repartition(1).write.format('delta').mode('overwrite')"
             ".option('dataChange', 'false').save('{path}')"),
            ("OVERWRITE", "RESTORE TABLE {t} TO VERSION AS OF 1"),
        ],
    ],
    ids=["insert-overwrite-update", "optimize-merge-truncate-append", "options-restore"],
)  # fmt: skip
def test_a_stock_session(
    spark: SparkSession, stock: DriverProcess, table_path: Path, winners: list[tuple[str, str]]
) -> None:
    table = make_table(spark, table_path, policy="maxcompute_transactional")

    def win() -> None:
        for _, statement in winners:
            end = stock.run(statement.format(t=table, path=table.path))
            assert end.error is None, end.message
            assert tags(table, latest_version(table)).get("interlock.class") is None

    assert classes_seen(spark, table, win) == [name for name, _ in winners]


def test_the_partitions_of_a_stock_winner_are_those_of_its_files(
    spark: SparkSession, stock: DriverProcess, table_path: Path
) -> None:
    table = make_table(
        spark,
        table_path,
        policy="maxcompute_transactional",
        columns="(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)",
        statements=("INSERT INTO {t} VALUES (1, 'a', 1), (3, 'c', 2)",),
    )
    overwrite = f"INSERT OVERWRITE {table} PARTITION (p = 1) VALUES (100, 'x')"
    winner = python_job("stock", lambda _: assert_ok(stock, overwrite))
    passes = sql_job(f"UPDATE {table} SET v = 'U' WHERE p = 2")
    assert race(spark, winner, passes)[1].error is None
    fails = race(spark, winner, sql_job(f"UPDATE {table} SET v = 'V' WHERE p < 2"))[1].error
    assert isinstance(fails, ConflictError)
    assert (fails.rule, fails.scope) == ("T3", "p=1")
    assert rows(spark, table) == ((100, "x", 1), (3, "U", 2))


def assert_ok(driver: DriverProcess, statement: str) -> None:
    end = driver.run(statement)
    assert end.error is None, end.message


NEW_ROW = pa.table({"id": pa.array([10], pa.int32()), "v": ["i"]})


def test_deltalake_refuses_to_write_tables_with_a_policy(
    spark: SparkSession, table_path: Path
) -> None:
    """What a policy requires keeps out every writer that does not know row tracking."""
    table = make_table(spark, table_path, policy="maxcompute_transactional")
    with pytest.raises(CommitFailedError, match="Unsupported table features"):
        write_deltalake(str(table.path), NEW_ROW, mode="append")
    assert latest_version(table) == 2


@pytest.mark.parametrize(
    "winners",
    [
        [
            ("APPEND", lambda path: write_deltalake(path, NEW_ROW, mode="append")),
            ("COMPACTION", lambda path: DeltaTable(path).optimize.compact()),
            ("MUTATE", lambda path: DeltaTable(path).delete("id = 1")),
            ("OVERWRITE", lambda path: write_deltalake(path, NEW_ROW, mode="overwrite")),
        ],
        [
            (
                "MUTATE",
                lambda path: write_deltalake(
                    path, NEW_ROW, mode="overwrite", predicate="id = 10 OR id = 1"
                ),
            ),
            ("APPEND", lambda path: write_deltalake(path, NEW_ROW, mode="append")),
        ],
    ],
    ids=["append-compact-delete-overwrite", "replace-where-append"],
)
def test_the_commits_of_deltalake(
    spark: SparkSession,
    tmp_path: Path,
    winners: list[tuple[str, Callable[[str], object]]],
) -> None:
    """Made on a copy that deltalake can write, they are put into the log of the table."""
    table = make_table(spark, tmp_path / "table", policy="maxcompute_transactional")
    copy = Table(tmp_path / "copy")
    copy.path.mkdir()
    for file in live_files(table):
        shutil.copy(table.path / file, copy.path)
    convert_to_deltalake(str(copy.path))

    def win() -> None:
        for version, (_, write) in enumerate(winners, start=1):
            write(str(copy.path))
            transplant(copy, version, table, version + 2)

    assert classes_seen(spark, table, win) == [name for name, _ in winners]


def test_commits_that_say_little(spark: SparkSession, table_path: Path) -> None:
    """The Delta protocol does not require a commit to name its operation."""
    table = make_table(spark, table_path, policy="maxcompute_transactional")

    def win() -> None:
        commit_by_hand(table, None, copied(table, added(table, 1)[0], {}))
        new = copied(table, added(table, 2)[0], {})
        of_null = {"interlock.winners": None, "interlock.rules": None, "interlock.class": None}
        commit_by_hand(table, "WRITE", new, parameters={"mode": None}, tags=of_null)

    assert classes_seen(spark, table, win) == ["APPEND", "APPEND"]
    shown = spark.sql(f"SELECT version, winners FROM interlock_history('delta.`{table.path}`')")
    assert shown.where("size(winners) > 0").count() == 1


def transplant(source: Table, version: int, target: Table, as_version: int) -> None:
    """Copy a commit and its files, with the fields that the target's table features require."""
    actions = commit(source, version)
    actions.sort(key=lambda action: "commitInfo" not in action)  # it must come first
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["inCommitTimestamp"] = action["commitInfo"]["timestamp"] + 10**6
        if "add" in action:
            action["add"] |= {"baseRowId": 100 * as_version, "defaultRowCommitVersion": as_version}
            shutil.copy(source.path / action["add"]["path"], target.path)
    watermark = json.dumps({"rowIdHighWaterMark": 100 * as_version + 99})
    tracking = {"domain": "delta.rowTracking", "configuration": watermark, "removed": False}
    actions.append({"domainMetadata": tracking})
    text = "".join(json.dumps(action) + "\n" for action in actions)
    log = commit_file(target, as_version)
    log.write_text(text, encoding="utf-8")


@pytest.mark.variant
def test_each_run_of_foreign_commits_is_warned_of_once(
    spark: SparkSession, stock: DriverProcess, table_path: Path
) -> None:
    # A table that this process has not written yet.
    made = make_table(spark, table_path, policy="maxcompute_transactional")
    table = Table(shutil.copytree(made.path, table_path.with_name("copy")))

    def commits_warned_of(*writers: str) -> list[str]:
        with log_of(spark, "io.interlock.spark.commits.ForeignWriters") as warnings:
            for number, writer in enumerate(writers):
                insert = f"INSERT INTO {table} VALUES ({number}, 'x')"
                if writer == "stock":
                    assert_ok(stock, insert)
                else:
                    spark.sql(insert)
        return [line.split()[1] for line in warnings.toString().splitlines() if "Version" in line]

    assert commits_warned_of("stock", "ours", "ours") == ["3"]
    assert commits_warned_of("stock", "stock", "ours") == ["6"]
    assert commits_warned_of("ours", "ours") == []
    with log_of(spark, "io.interlock.spark.commits.ForeignWriters") as warnings:
        winner = python_job(
            "stock", lambda _: assert_ok(stock, f"INSERT INTO {table} VALUES (4, 'd')")
        )
        later = sql_job(f"INSERT INTO {table} VALUES (5, 'e')")
        assert [job.error for job in race(spark, winner, later)] == [None, None]
    assert warnings.toString().count("Version 11 of") == 1
    assert commits_warned_of("ours") == []
    assert rows(spark, table) == deltalake_rows(table)
