"""Two jobs that change one file, judged by what became of rows (policy `row_level`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from interlock.errors import ConflictError
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.log_replay import check_log
from tests.kit.one_file import COLUMNS, FILE, INSERT, X1, changed, one_file, register_is_even
from tests.kit.support import (
    commit,
    deltalake_rows,
    last_of,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
    tags,
)

BOTH = None
MERGE_2 = (
    "MERGE INTO {t} t USING (SELECT 2 AS id) s ON t.id = s.id AND t.id = 2 "
    "WHEN MATCHED THEN UPDATE SET v = 'M'"
)
# It reads row 2 and leaves it alone; were the row gone, it would insert another.
MERGE_THAT_ONLY_READS_2 = (
    "MERGE INTO {t} t USING (SELECT 2 AS id) s ON t.id = s.id AND t.id = 2 "
    "WHEN MATCHED AND t.v = 'other' THEN UPDATE SET v = 'M' "
    "WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'new', 1)"
)


@dataclass(frozen=True)
class Case:
    """Two statements on one file of four rows.

    Attributes:
        fails: the error of the later one, with what it must say; None if both succeed
        rows: the rows in the end

    """

    id: str
    earlier: str
    later: str
    fails: tuple[str, str] | None
    rows: Rows


CASES = [
    Case("other-rows", X1, "UPDATE {t} SET v = 'Y' WHERE id = 2", BOTH,
         changed((1, "X", 1), (2, "Y", 1))),
    Case("update-delete", X1, "DELETE FROM {t} WHERE v = 'b'", BOTH,
         changed((1, "X", 1), without=(2,))),
    Case("no-row-left", "DELETE FROM {t} WHERE id < 3", "DELETE FROM {t} WHERE id > 2", BOTH, ()),
    Case("same-row", X1, "UPDATE {t} SET v = 'Y' WHERE id < 3",
         ("ConcurrentDeleteReadError", "changed 1 row that it changes too"), changed((1, "X", 1))),
    Case("whole-file", X1, "DELETE FROM {t}",
         ("ConcurrentDeleteReadError", "as a whole"), changed((1, "X", 1))),
    Case("moved-in", "UPDATE {t} SET p = 9 WHERE id = 1",
         "UPDATE {t} SET v = 'Y' WHERE p = 9 OR id = 2",
         ("ConcurrentAppendError", "((p = 9) OR (id = 2)) selects"), changed((1, "a", 9))),
    Case("moved-out", "UPDATE {t} SET p = 9 WHERE id = 1", "UPDATE {t} SET v = 'Y' WHERE p = 1",
         ("ConcurrentDeleteReadError", "changed 1 row that it changes too"), changed((1, "a", 9))),
    Case("blind-insert", "INSERT INTO {t} VALUES (9, 'i', 1)",
         "UPDATE {t} SET v = 'Y' WHERE id > 1", BOTH,
         changed((2, "Y", 1), (3, "Y", 2), (4, "Y", 2), (9, "i", 1))),
    Case("insert-that-read", "INSERT INTO {t} SELECT 9, v, p FROM {t} WHERE id = 1",
         "UPDATE {t} SET v = 'Y' WHERE id > 3", ("ConcurrentAppendError", "(id > 3) selects"),
         changed((9, "a", 1))),
    Case("insert-reads-others", X1, "INSERT INTO {t} SELECT 9, v, p FROM {t} WHERE id = 2", BOTH,
         changed((1, "X", 1), (9, "b", 1))),
    Case("insert-reads-changed", X1, "INSERT INTO {t} SELECT 9, v, p FROM {t} WHERE id = 1",
         ("ConcurrentAppendError", "(id = 1) selects"),
         changed((1, "X", 1))),
    Case("insert-reads-deleted", "DELETE FROM {t} WHERE id = 1",
         "INSERT INTO {t} SELECT 9, v, p FROM {t} WHERE id = 1",
         ("ConcurrentDeleteReadError", "(id = 1) selects"),
         changed(without=(1,))),
    Case("merge", X1, MERGE_2, BOTH, changed((1, "X", 1), (2, "M", 1))),
    Case("merge-reads-deleted", "DELETE FROM {t} WHERE id = 2", MERGE_THAT_ONLY_READS_2,
         ("ConcurrentDeleteReadError", "((t.id = s.id) AND (t.id = 2)) matches"),
         changed(without=(2,))),
    Case("merge-reads-others", "DELETE FROM {t} WHERE id = 1", MERGE_THAT_ONLY_READS_2, BOTH,
         changed(without=(1,))),
    Case("not-decidable", X1, "UPDATE {t} SET v = 'Y' WHERE id = 2 AND interlock_is_even(id)",
         BOTH, changed((1, "X", 1), (2, "Y", 1))),
    Case("not-decidable-where-it-counts", "UPDATE {t} SET id = 8 WHERE id = 1",
         "UPDATE {t} SET v = 'Y' WHERE id IN (2, 8) AND interlock_is_even(id)",
         ("ConcurrentAppendError", "interlock_is_even(id) cannot be decided"), changed(
             (8, "a", 1), without=(1,))),
    Case("raises-on-a-row", "UPDATE {t} SET p = 0 WHERE id = 1",
         "UPDATE {t} SET v = 'Y' WHERE 6 / p = 3",
         ("ConcurrentAppendError", "cannot be evaluated on them"), changed((1, "a", 0))),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def functions(spark: SparkSession) -> None:
    register_is_even(spark)


@pytest.mark.variant_cases(
    but=[
        "other-rows",
        "same-row",
        "moved-in",
        "blind-insert",
        "insert-reads-others",
        "insert-reads-deleted",
        "not-decidable",
        "raises-on-a-row",
    ]
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_two_jobs_on_one_file(spark: SparkSession, table_path: Path, case: Case) -> None:
    table = one_file(spark, table_path)
    first, second = sql_race(spark, table, case.earlier, case.later)
    assert first.error is None
    assert second.held
    if case.fails is None:
        assert second.error is None
        assert latest_version(table) == (2 if case.id == "merge-reads-others" else 3)
    else:
        assert isinstance(second.error, ConflictError)
        assert type(second.error).__name__ == case.fails[0]
        assert case.fails[1] in str(second.error)
        assert (second.error.policy, second.error.winner_version) == ("row_level", 2)
        assert latest_version(table) == 2
    assert rows(spark, table) == deltalake_rows(table) == in_order(case.rows)
    assert rows(spark, table, version=1) == FILE
    check_log(table)


BOTH_CHANGED = {
    "update": ("UPDATE {t} SET v = 'Y' WHERE id < 2", ['{"id":1}'], "(id < 2)"),
    "delete": ("DELETE FROM {t} WHERE v IN ('a', 'c')", ['{"v":"a"}'], "(v IN ('a', 'c'))"),
    "merge": ("MERGE INTO {t} t USING (SELECT 1 AS n) s ON t.id = s.n WHEN MATCHED THEN DELETE",
              ['{"id":1}'], "(t.id = s.n)"),
    "function": ("UPDATE {t} SET v = 'Y' WHERE v = 'a' AND NOT interlock_is_even(id)",
                 ['{"v":"a"}'], "(v = 'a') AND (NOT interlock_is_even(id))"),
    "function-only": ("UPDATE {t} SET v = 'Y' WHERE NOT interlock_is_even(id)", [], None),
}  # fmt: skip


@pytest.mark.parametrize("name", BOTH_CHANGED)
def test_the_rows_that_both_changed_are_named(
    spark: SparkSession, table_path: Path, name: str
) -> None:
    """As they were before, with the columns of the predicate that selected them."""
    later, shown, predicate = BOTH_CHANGED[name]
    table = make_table(
        spark,
        table_path,
        policy="row_level",
        columns=COLUMNS + " PARTITIONED BY (p)",
        properties={"delta.columnMapping.mode": "name"},
        statements=(INSERT, "INSERT INTO {t} VALUES (0, 'z', 1)", "DELETE FROM {t} WHERE id = 0"),
    )
    _, second = sql_race(spark, table, X1, later)
    assert isinstance(second.error, ConflictError)
    by = f", by its condition {predicate}" if predicate else ""
    assert f"changed 1 row that it changes too{by}.\n" in str(second.error)
    assert ("on different partitions" in str(second.error)) is (predicate is None)
    assert list(second.error.rows) == shown
    assert second.error.source_rows == (('{"n":1}',) if name == "merge" else ())
    assert second.error.predicate == predicate
    assert len(second.error.files) == 1
    assert rows(spark, table) == deltalake_rows(table) == changed((1, "X", 1))


UPSERT = (
    "MERGE INTO {t} t USING (SELECT explode(array(1, 2)) AS n) s ON t.id = s.n "
    "WHEN MATCHED THEN UPDATE SET v = 'X' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (n, 'X')"
)
ONE, ALL = "UPDATE {t} SET v = 'X' WHERE id = 1", "UPDATE {t} SET v = 'X' WHERE id <= 2"
NULL = "UPDATE {t} SET v = 'X' WHERE v IS NULL OR id = 1"
WHOLE = {
    "attempt": (ONE, ALL, "changed 1 row that it changes too, by its condition (id <= 2)",
                ['{"id":1}']),
    "winner": (ALL, ONE, "changed 1 row that it changes too, by its condition (id = 1)",
               ['{"id":1}']),
    "both": (UPSERT, UPSERT, "changed 2 rows that it changes too, by its condition (t.id = s.n)",
             ['{"id":1}', '{"id":2}']),
    "null": (ONE, NULL, "its condition ((v IS NULL) OR (id = 1))", ['{"v":null,"id":1}']),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_the_rows_of_a_file_that_one_changed_as_a_whole(
    spark: SparkSession, table_path: Path, name: str
) -> None:
    winner, later, told, shown = WHOLE[name]
    table = make_table(
        spark,
        table_path,
        policy="row_level",
        columns="(id INT, v STRING) USING delta",
        statements=("INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, NULL), (2, 'b')",),
    )
    _, second = sql_race(spark, table, winner, later)
    assert isinstance(second.error, ConflictError)
    assert told in str(second.error)
    assert "on different partitions" not in str(second.error)
    assert sorted(second.error.rows) == shown
    left = ((1, "X"), (2, "X" if winner != ONE else "b"))
    assert rows(spark, table) == deltalake_rows(table) == left
    assert latest_version(table) == 2


def test_rows_that_were_only_copied_are_not_named(spark: SparkSession, table_path: Path) -> None:
    """Without new deletion vectors an UPDATE copies the other rows of its files."""
    table = one_file(spark, table_path)
    with set_for_now(spark, {"spark.databricks.delta.update.deletionVectors.persistent": "false"}):
        _, second = sql_race(spark, table, X1, "UPDATE {t} SET v = 'Y' WHERE id = 2")
    assert isinstance(second.error, ConflictError)
    assert "changed a file that it changes too, and one of them" in str(second.error)
    assert second.error.rows == ()
    assert rows(spark, table) == deltalake_rows(table) == changed((1, "X", 1))


def test_rows_that_cannot_be_read_are_not_named(spark: SparkSession, table_path: Path) -> None:
    table = one_file(spark, table_path)
    (added,) = (action["add"]["path"] for action in commit(table, 1) if "add" in action)

    def update_and_lose_it(session: SparkSession) -> None:
        session.sql(X1.format(t=table))
        (table.path / added).unlink()

    _, second = race(
        spark,
        python_job("update", update_and_lose_it),
        sql_job(f"UPDATE {table} SET v = 'Y' WHERE id = 1"),
    )
    assert isinstance(second.error, ConflictError)
    assert "changed 1 row that it changes too" in str(second.error)
    assert (second.error.rows, second.error.files) == ((), (added,))


def test_over_compactions_and_other_changes(spark: SparkSession, table_path: Path) -> None:
    """The rows of the attempt are followed through a file's new vectors and its successors."""
    more = "INSERT INTO {t} VALUES (5, 'e', 1), (6, 'f', 2)"
    table = make_table(
        spark,
        table_path,
        policy="row_level",
        columns=COLUMNS + " PARTITIONED BY (p)",
        properties={"delta.enableChangeDataFeed": "true"},
        statements=(INSERT, more),
    )
    winners = (
        X1,
        "ALTER TABLE {t} COMPACT MAJOR",
        "DELETE FROM {t} WHERE id = 5",
        "ALTER TABLE {t} COMPACT MINOR",
        "INSERT INTO {t} VALUES (2, 'again', 1)",
        "OPTIMIZE {t}",
    )
    made = last_of(spark, table, winners, "UPDATE {t} SET v = 'Y' WHERE id = 2")
    assert made is None
    last = latest_version(table)
    expected = (*changed((1, "X", 1), (2, "Y", 1), (6, "f", 2)), (2, "again", 1))
    assert rows(spark, table) == deltalake_rows(table) == in_order(expected)
    assert tags(table, last)["interlock.winners"].split(",")[0] == "3"
    feed = spark.read.option("readChangeFeed", True).option("startingVersion", last)
    found = feed.format("delta").load(str(table.path)).select("_change_type", "id", "v")
    assert sorted(map(tuple, found.collect())) == [
        ("update_postimage", 2, "Y"),
        ("update_preimage", 2, "b"),
    ]
    check_log(table)


def test_a_compaction_of_rows_that_a_united_job_changed(
    spark: SparkSession, table_path: Path
) -> None:
    table = one_file(spark, table_path, INSERT)
    winners = (X1, "DELETE FROM {t} WHERE id = 2", "UPDATE {t} SET v = 'Z' WHERE id = 3")
    assert last_of(spark, table, winners, "ALTER TABLE {t} COMPACT MAJOR") is None
    kept = ((1, "X", 1), (3, "Z", 2), (4, "d", 2))
    assert rows(spark, table) == deltalake_rows(table) == in_order(kept + kept)
    check_log(table)


def test_without_deletion_vectors_files_are_the_rows(spark: SparkSession, table_path: Path) -> None:
    """With copy on write, two jobs conflict if they rewrite the same file."""
    table = make_table(
        spark,
        table_path,
        policy="row_level",
        columns=COLUMNS,
        properties={"delta.enableDeletionVectors": "false"},
        statements=(INSERT, "INSERT INTO {t} VALUES (5, 'e', 3)"),
    )
    _, second = sql_race(spark, table, X1, "UPDATE {t} SET v = 'Y' WHERE id = 5")
    assert second.error is None
    _, third = sql_race(spark, table, X1, "UPDATE {t} SET v = 'Y' WHERE id = 2")
    assert "deletion vectors" in str(third.error)
    assert rows(spark, table) == deltalake_rows(table) == changed((1, "X", 1), (5, "Y", 3))


def test_columns_of_other_names_and_rows_keep_their_ids(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(
        spark,
        table_path,
        policy="row_level",
        columns="(id INT, `the value` STRING, s STRUCT<p: INT>) USING delta",
        properties={"delta.columnMapping.mode": "name"},
        statements=("INSERT INTO {t} SELECT id, v, struct(p) FROM VALUES (1, 'a', 1), (2, 'b', 1), "
                    "(3, 'c', 2) AS new(id, v, p)",),
    )  # fmt: skip
    ids = f"SELECT id, _metadata.row_id FROM {table}"
    before = {tuple(row) for row in spark.sql(ids).collect()}
    _, second = sql_race(
        spark,
        table,
        "UPDATE {t} SET `the value` = 'X' WHERE id = 1",
        "UPDATE {t} SET s.p = 7 WHERE `the value` = 'c' AND s.p = 2",
    )
    assert second.error is None
    assert {tuple(row) for row in spark.sql(ids).collect()} == before
    _, third = sql_race(
        spark,
        table,
        "UPDATE {t} SET `the value` = 'new' WHERE id = 1",
        "UPDATE {t} SET s.p = 8 WHERE `the value` = 'new' OR s.p = 7",
    )
    assert isinstance(third.error, ConflictError)
    assert (third.error.winner_class, third.error.operation_class) == ("MUTATE", "MUTATE")
    assert "`the value`" in str(third.error.why)


def test_a_self_reading_insert_is_judged_by_what_it_read(
    spark: SparkSession, table_path: Path
) -> None:
    """It writes another partition than it reads; both count."""
    table = make_table(
        spark,
        table_path,
        policy="serializable",
        columns=COLUMNS + " PARTITIONED BY (p)",
        statements=(INSERT,),
    )
    insert = "INSERT INTO {t} SELECT id, v, 3 FROM {t} WHERE p = 1"
    _, second = sql_race(spark, table, X1 + " AND p = 1", insert)
    assert type(second.error).__name__ == "ConcurrentAppendError"
    _, third = sql_race(spark, table, "DELETE FROM {t} WHERE p = 2", insert)
    assert third.error is None
    copies = ((1, "X", 3), (2, "b", 3))
    assert rows(spark, table) == in_order((*changed((1, "X", 1), without=(3, 4)), *copies))


def test_nothing_is_left_of_a_job_that_lost(spark: SparkSession, table_path: Path) -> None:
    """Deletion vectors that were merged before the conflict was found are deleted too."""
    table = one_file(spark, table_path)
    _, second = sql_race(
        spark,
        table,
        "UPDATE {t} SET p = 9 WHERE id = 1",
        "UPDATE {t} SET v = 'Y' WHERE p = 9 OR id = 2",
    )
    assert isinstance(second.error, ConflictError)
    found = {file.name for file in table.path.iterdir() if file.suffix in (".bin", ".parquet")}
    named = " ".join(str(action) for version in range(3) for action in commit(table, version))
    assert len(list(table.path.glob("*.bin"))) == 1
    assert all(name in named for name in found if name.endswith(".parquet"))


@pytest.mark.variant
def test_rows_that_a_restore_brings_back_are_added_rows(
    spark: SparkSession, table_path: Path
) -> None:
    """Its file stays and only its vector shrinks."""
    insert = "INSERT INTO {t} VALUES (5, 'e', 3)"
    table = one_file(spark, table_path, insert, "DELETE FROM {t} WHERE id = 1")
    restore = ("RESTORE TABLE {t} TO VERSION AS OF 2",)
    lost = last_of(spark, table, restore, "UPDATE {t} SET v = 'Y' WHERE v IN ('a', 'e')")
    assert type(lost).__name__ == "ConcurrentAppendError"
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    assert last_of(spark, table, restore, "UPDATE {t} SET v = 'Y' WHERE v IN ('e', 'z')") is None
    assert rows(spark, table) == deltalake_rows(table) == changed((5, "Y", 3))


def test_a_file_that_is_gone_does_not_count_as_empty(spark: SparkSession, table_path: Path) -> None:
    """A missing file is an error even with ignoreMissingFiles, since its rows are unknown."""
    table = one_file(spark, table_path)

    def update_and_lose_it(session: SparkSession) -> None:
        session.sql(X1.format(t=table))
        added = next(a["add"]["path"] for a in commit(table, 2) if "stats" in str(a.get("add"))
                     and a["add"].get("deletionVector") is None)  # fmt: skip
        (table.path / added).unlink()

    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        first, second = race(
            spark,
            python_job("update", update_and_lose_it),
            sql_job(f"UPDATE {table} SET v = 'Y' WHERE id = 2"),
        )
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert first.error is None
    assert "cannot be evaluated" in str(second.error)


COPY_8 = "INSERT INTO {t} SELECT id + 100, v, 7 FROM {t} WHERE id = 8"
OTHERS = {
    "copied": ((COPY_8,), "p = 1", 3),
    "copied-and-not-selected": ((COPY_8,), "id = 1", None),
    "changed": (("UPDATE {t} SET v = 'U', p = 7 WHERE id = 9",), "p = 1", 3),
    "left-alone": (("UPDATE {t} SET v = 'U' WHERE id = 3",), "p = 1", None),
    "changed-where-it-was-put": (
        ("ALTER TABLE {t} COMPACT MAJOR", "UPDATE {t} SET v = 'U', p = 7 WHERE id = 9"),
        "p = 1",
        4,
    ),
}


@pytest.mark.variant_cases(but=["copied", "changed", "left-alone"])
@pytest.mark.parametrize("name", OTHERS)
def test_an_append_that_was_read_since_is_not_passed_blindly(
    spark: SparkSession, table_path: Path, name: str
) -> None:
    """A blind append can be ordered after the UPDATE only while no other job has read its rows."""
    others, where, reader = OTHERS[name]
    table = one_file(spark, table_path)
    winners = ("INSERT INTO {t} VALUES (8, 'n', 1), (9, 'o', 1)", *others)
    error = last_of(spark, table, winners, f"UPDATE {{t}} SET v = 'Y' WHERE {where}")
    if reader is None:
        assert error is None
    else:
        assert isinstance(error, ConflictError)
        assert type(error).__name__ == "ConcurrentAppendError"
        assert (error.winner_version, error.winner_class) == (2, "APPEND")
        assert str(error.why).endswith(f"and version {reader} has read that")


@pytest.mark.variant_cases(but=["meets"])
@pytest.mark.soak
@pytest.mark.parametrize("first", [3, 2], ids=["passes", "meets"])
def test_winners_of_more_than_are_read_in_the_committing_thread(
    spark: SparkSession, table_path: Path, first: int
) -> None:
    """Files of more than 64 MB are searched by a Spark job; only one row, if any, has the id 2."""
    # A blind append counts at this level only.
    table = make_table(
        spark,
        table_path,
        policy="row_level",
        columns=COLUMNS,
        properties={"delta.isolationLevel": "Serializable"},
        statements=(INSERT,),
    )
    text = "concat(uuid(), uuid(), uuid(), uuid())"
    insert = (
        f"INSERT INTO {{t}} SELECT CAST({first} - id * 7 AS INT), {text}, 1 FROM range(1200000)"
    )
    error = last_of(spark, table, (insert,), "UPDATE {t} SET v = 'Y' WHERE id = 2")
    size = sum(action["add"]["size"] for action in commit(table, 2) if "add" in action)
    assert size > 64 * 1024 * 1024
    if first == 2:
        assert isinstance(error, ConflictError)
        assert type(error).__name__ == "ConcurrentAppendError"
        assert latest_version(table) == 2
    else:
        assert error is None
        assert latest_version(table) == 3
    updated = spark.sql(f"SELECT count(*) FROM {table} WHERE v = 'Y'").collect()[0][0]
    assert updated == (0 if first == 2 else 1)
    assert spark.sql(f"SELECT count(*) FROM {table}").collect()[0][0] == 1_200_004
