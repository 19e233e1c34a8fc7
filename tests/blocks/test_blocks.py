"""Atomic blocks: several statements on a table become one version of it, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import interlock
import pytest
from delta.tables import DeltaTable
from interlock.errors import ConflictError, UsageError
from interlock.lab.model import Rows, in_order
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from tests.kit.gates import end_behind, phase_gate
from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    all_files,
    commit_info,
    confs,
    deltalake_rows,
    latest_version,
    make_table,
    rows,
    tags,
    unknown_files,
)

START = ((1, 10), (2, 20), (3, 30), (4, 40), (5, 50))
INSERT = "INSERT INTO {t} VALUES (1, 10), (2, 20), (3, 30), (4, 40), (5, 50)"
# Each statement of a block, with what the block sees after it.
STEPS: tuple[tuple[str, Rows], ...] = (
    ("INSERT INTO {t} VALUES (6, 60), (7, 70), (8, 80)", (*START, (6, 60), (7, 70), (8, 80))),
    (
        "UPDATE {t} SET v = v + 1 WHERE id IN (1, 6)",
        ((1, 11), *START[1:], (6, 61), (7, 70), (8, 80)),
    ),
    (
        "DELETE FROM {t} WHERE id IN (2, 7)",
        ((1, 11), *START[2:], (6, 61), (8, 80)),
    ),
    (
        "INSERT INTO {t} SELECT id + 100, v FROM {t} WHERE id = 8",
        ((1, 11), *START[2:], (6, 61), (8, 80), (108, 80)),
    ),
    (
        "MERGE INTO {t} USING (SELECT * FROM VALUES (3, 33), (8, 88), (9, 99) AS s(id, v)) s "
        "ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        ((1, 11), (3, 33), *START[3:], (6, 61), (8, 88), (9, 99), (108, 80)),
    ),
)
VECTORS = ("true", "false")
PARTITIONED = "(id INT, v INT) USING delta PARTITIONED BY (v)"
Make = Callable[..., Table]


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Make]:
    """Makes a table with the rows of START at version 1."""

    def make(
        policy: str | None = "row_level",
        columns: str = "(id INT, v INT) USING delta",
        name: str = "t",
        **properties: str,
    ) -> Table:
        statements = (INSERT,) if columns.startswith("(id INT, v INT)") else ()
        keys = {f"delta.{key}": value for key, value in properties.items()}
        return make_table(
            spark,
            tmp_path / name,
            policy=policy,
            columns=columns,
            properties=keys,
            statements=statements,
        )

    yield make
    spark.sql("ROLLBACK")


def begin(spark: SparkSession, table: Table, *statements: str) -> None:
    spark.sql("BEGIN TRANSACTION")
    for statement in statements:
        spark.sql(statement.format(t=table))


def end(spark: SparkSession) -> int | None:
    """Commit; return the version."""
    found = spark.sql("COMMIT").collect()
    return found[0]["version"] if found else None


def failed(spark: SparkSession, why: str) -> None:
    """Check that the block takes nothing more, and roll it back."""
    for statement in ("SELECT 1", "BEGIN TRANSACTION", "COMMIT"):
        with pytest.raises(UsageError, match=f"(?s)INTERLOCK_BLOCK_FAILED.*{why}") as raised:
            spark.sql(statement)
        assert raised.value.getSqlState() == "25P02"
    spark.sql("ROLLBACK")


def atomic(*statements: str) -> str:
    return f"BEGIN ATOMIC {'; '.join(statements)}; END"


def check(spark: SparkSession, table: Table, wanted: Rows, version: int) -> None:
    """Check the rows, also by another reader, the version, and that no file is left over."""
    assert rows(spark, table) == in_order(wanted)
    assert deltalake_rows(table) == in_order(wanted)
    assert latest_version(table) == version
    assert rows(spark, table, version=1) == START
    assert unknown_files(table) == []
    check_log(table)


def row_ids(spark: SparkSession, table: Table) -> dict[int, tuple[int, int]]:
    """Each row's id and commit version, by the column id."""
    meta = "_metadata.row_id, _metadata.row_commit_version"
    found = spark.sql(f"SELECT id, {meta} FROM {table}").collect()
    assert len({row[1] for row in found}) == len(found), "row ids are not unique"
    return {row[0]: (row[1], row[2]) for row in found}


@pytest.mark.variant_cases("false")
@pytest.mark.parametrize("vectors", VECTORS)
def test_a_block_sees_its_own_changes_and_nobody_else_does(
    spark: SparkSession, make: Make, vectors: str
) -> None:
    table = make(enableDeletionVectors=vectors)
    before = row_ids(spark, table)
    other = spark.newSession()
    other.table(str(table)).cache().count()
    spark.sql("BEGIN TRANSACTION")
    for statement, seen in STEPS:
        spark.sql(statement.format(t=table))
        assert rows(spark, table) == in_order(seen)
        assert spark.sql(f"SELECT count(*), max(v) FROM {table}").collect()[0][0] == len(seen)
        assert rows(other, table) == START
        assert latest_version(table) == 1
        assert deltalake_rows(table) == START
    block = spark.sql("COMMIT").collect()
    assert [tuple(row) for row in block] == [(str(table), 2)]
    assert rows(other, table) == in_order(STEPS[-1][1])
    check(spark, table, STEPS[-1][1], 2)
    after = row_ids(spark, table)
    assert {i: after[i] for i in (4, 5)} == {i: before[i] for i in (4, 5)}
    assert {i: after[i] for i in (1, 3)} == {i: (before[i][0], 2) for i in (1, 3)}
    assert {after[i][1] for i in (6, 8, 9, 108)} == {2}
    info = commit_info(table, 2)
    assert info["operation"] == "ATOMIC BLOCK"
    assert info["operationParameters"]["statements"] == (
        "INSERT INTO, UPDATE, DELETE, INSERT INTO, MERGE"
    )
    assert tags(table, 2)["interlock.block"] == info["operationParameters"]["block"]
    assert tags(table, 2)["interlock.class"] == "MUTATE"


@pytest.mark.variant_cases("false")
@pytest.mark.parametrize("vectors", VECTORS)
def test_it_passes_others_that_touch_other_rows(
    spark: SparkSession, make: Make, vectors: str
) -> None:
    table = make(enableDeletionVectors=vectors)
    spark.sql(f"INSERT INTO {table} VALUES (301, 1)")  # in a file of its own
    other = spark.newSession()
    begin(spark, table, *(statement for statement, _ in STEPS))
    other.sql(f"INSERT INTO {table} VALUES (201, 1), (202, 2), (203, 3), (204, 4)")
    negated: dict[object, object] = {4: -40} if vectors == "true" else {301: -1}
    other.sql(f"UPDATE {table} SET v = -v WHERE id = {next(iter(negated))}")
    theirs = row_ids(other, table)
    assert end(spark) == 5
    added = ((201, 1), (202, 2), (203, 3), (204, 4), (301, 1))
    wanted = tuple((i, negated.get(i, v)) for i, v in (*STEPS[-1][1], *added))
    check(spark, table, wanted, 5)
    after = row_ids(spark, table)
    assert {i: after[i] for i in (4, 201, 204, 301)} == {i: theirs[i] for i in (4, 201, 204, 301)}
    assert {after[i][1] for i in (6, 8, 9, 108)} == {5}
    assert tags(table, 5)["interlock.winners"] == "3,4"


DELETE_1 = "DELETE FROM {t} WHERE id = 1"
SECOND = "statement 2 of the block that loses, "
QUERY = "a query of the block has read it"
LOST = {
    "update": ((STEPS[0][0], "UPDATE {t} SET v = 0 WHERE id = 4"), SECOND + "UPDATE"),
    "query": ((STEPS[0][0], DELETE_1, "SELECT * FROM {t} WHERE id > 3"), QUERY),
    "count": ((STEPS[0][0], DELETE_1, "SELECT count(*) FROM {t}"), QUERY),
    "insert": (
        (STEPS[0][0], "INSERT INTO {t} SELECT id + 100, v FROM {t} WHERE id = 4"),
        SECOND + "INSERT INTO",
    ),
    "truncate": (("TRUNCATE TABLE {t}", STEPS[0][0]), "statement 1 of the block that loses"),
}


@pytest.mark.variant_cases(but=["update", "query"])
@pytest.mark.parametrize("case", LOST)
def test_it_loses_as_a_whole(spark: SparkSession, make: Make, case: str) -> None:
    table = make()
    statements, lost = LOST[case]
    spark.sql("BEGIN TRANSACTION")
    for statement in statements:
        spark.sql(statement.format(t=table)).collect()
    spark.newSession().sql(f"UPDATE {table} SET v = -4 WHERE id = 4")
    with pytest.raises(ConflictError, match=lost) as raised:
        spark.sql("COMMIT")
    assert raised.value.winner_version == 2
    assert raised.value.policy == "row_level"
    check(spark, table, (*START[:3], (4, -4), START[4]), 2)
    spark.sql(f"DELETE FROM {table} WHERE id = 5")  # the block is over
    assert latest_version(table) == 3


def test_a_rollback_leaves_nothing(spark: SparkSession, make: Make) -> None:
    table = make()
    files = all_files(table)
    begin(spark, table, *(statement for statement, _ in STEPS[:3]))
    spark.sql("ROLLBACK")
    assert all_files(table) == files
    check(spark, table, START, 1)
    with pytest.raises(UsageError, match="INTERLOCK_NO_BLOCK"):
        spark.sql("COMMIT")
    spark.sql("ROLLBACK WORK")  # without a block it is none


def test_a_block_that_changes_nothing_makes_no_version(spark: SparkSession, make: Make) -> None:
    table = make()
    begin(spark, table, "UPDATE {t} SET v = 0 WHERE id = 9", "DELETE FROM {t} WHERE id = 9")
    assert end(spark) is None
    begin(spark, table, "INSERT INTO {t} VALUES (9, 9)", "DELETE FROM {t} WHERE id = 9")
    assert end(spark) is None
    check(spark, table, START, 1)


# ---- BEGIN ATOMIC ----


def test_delete_and_insert_in_one_version(spark: SparkSession, make: Make) -> None:
    table = make()
    result = spark.sql(
        atomic(
            f"DELETE FROM {table} WHERE id > 3",
            f"INSERT INTO {table} VALUES (4, 41), (5, 51)",
            f"SELECT max(v) AS most FROM {table}",
        )
    )
    assert [tuple(row) for row in result.collect()] == [(51,)]
    assert result.columns == ["most"]
    check(spark, table, (*START[:3], (4, 41), (5, 51)), 2)


def test_a_script_with_variables_and_branches(spark: SparkSession, make: Make) -> None:
    table = make()
    spark.sql(
        atomic(
            "DECLARE most INT",
            f"SET most = (SELECT max(v) FROM {table})",
            f"IF most = 50 THEN UPDATE {table} SET v = most + 1 WHERE id = 1; "
            f"ELSE DELETE FROM {table}; END IF",
            f"INSERT INTO {table} VALUES (6, most)",
        )
    )
    check(spark, table, ((1, 51), *START[1:], (6, 50)), 2)


def test_an_error_takes_all_back(spark: SparkSession, make: Make) -> None:
    table = make()
    files = all_files(table)
    fails = "SELECT raise_error('no')"
    with pytest.raises(PySparkException, match="no"):
        spark.sql(atomic(STEPS[0][0].format(t=table), fails, f"DELETE FROM {table}"))
    assert all_files(table) == files
    check(spark, table, START, 1)


def test_one_statement_needs_no_block(spark: SparkSession, make: Make) -> None:
    table = make()
    spark.sql(f"BEGIN ATOMIC UPDATE {table} SET v = 0 WHERE id = 1; END")
    check(spark, table, ((1, 0), *START[1:]), 2)
    assert commit_info(table, 2)["operation"] == "UPDATE"
    assert "interlock.block" not in tags(table, 2)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("OPTIMIZE {t}", "OPTIMIZE"),
        ("VACUUM {t}", "VACUUM"),
        ("RESTORE TABLE {t} TO VERSION AS OF 1", "RESTORE"),
        ("ALTER TABLE {t} ADD COLUMN w INT", "ADD COLUMNS"),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", "SET TABLE PROPERTIES"),
        ("COMMENT ON TABLE {t} IS 'c'", "COMMENT ON TABLE"),
        ("CREATE TABLE other USING delta AS SELECT 1 AS id", "CREATE TABLE AS SELECT"),
        ("DROP TABLE {t}", "DROP TABLE"),
        ("CACHE TABLE {t}", "CACHE TABLE"),
        ("CALL interlock.claims('{t}')", "CALL"),
    ],
)
def test_what_a_block_does_not_take_is_refused_before_it_runs(
    spark: SparkSession, make: Make, statement: str, name: str
) -> None:
    table = make()
    files = all_files(table)
    with pytest.raises(UsageError, match=f"INTERLOCK_NOT_IN_BLOCK. {name} ") as raised:
        spark.sql(atomic(STEPS[0][0], statement).format(t=table))
    assert raised.value.getSqlState() == "25001"
    assert all_files(table) == files
    begin(spark, table, STEPS[0][0])
    with pytest.raises(UsageError, match=f"INTERLOCK_NOT_IN_BLOCK. {name} "):
        spark.sql(statement.format(t=table)).collect()
    failed(spark, name)
    assert all_files(table) == files
    check(spark, table, START, 1)


def test_a_script_is_one_block(spark: SparkSession, make: Make) -> None:
    """Several INSERTs of one source are several statements, and none of a script's ends it."""
    table = make()
    source = "FROM (SELECT 6 AS id, 6 AS v)"
    inserts = "INSERT INTO {t} SELECT id, v INSERT INTO {t} SELECT id + 1, v"
    spark.sql(f"BEGIN ATOMIC {source} {inserts}; END".format(t=table))
    assert latest_version(table) == 2
    ends = "EXECUTE IMMEDIATE 'COMMIT'"
    with pytest.raises(UsageError, match=r"INTERLOCK_NOT_IN_BLOCK. COMMIT "):
        spark.sql(atomic(f"INSERT INTO {table} VALUES (8, 8)", ends, f"DELETE FROM {table}"))
    check(spark, table, (*START, (6, 6), (7, 6)), 2)


def test_other_tables_than_delta_are_not_changed(spark: SparkSession, make: Make) -> None:
    table = make()
    spark.sql("CREATE OR REPLACE TEMP VIEW one AS SELECT 1 AS id")
    spark.sql("CREATE TABLE plain_parquet (id INT) USING parquet")
    try:
        spark.sql("INSERT INTO plain_parquet VALUES (1)")
        for change in (
            lambda: spark.sql("INSERT INTO plain_parquet VALUES (2)"),
            lambda: spark.sql("TRUNCATE TABLE plain_parquet"),
            lambda: spark.table("one").write.insertInto("plain_parquet"),
        ):
            begin(spark, table, STEPS[0][0])
            with pytest.raises(UsageError, match="INTERLOCK_NOT_IN_BLOCK"):
                change()
            failed(spark, "INTERLOCK_NOT_IN_BLOCK")
        assert [tuple(row) for row in spark.table("plain_parquet").collect()] == [(1,)]
    finally:
        spark.sql("DROP TABLE plain_parquet")
    check(spark, table, START, 1)


# ---- what a block changes ----


def test_a_table_is_read_at_one_version(spark: SparkSession, make: Make) -> None:
    table, source = make(), make(policy=None, name="source")
    other = spark.newSession()
    begin(spark, table)
    assert rows(spark, source) == START
    other.sql(f"DELETE FROM {source}")
    other.sql(f"INSERT INTO {table} VALUES (6, 60)")
    assert rows(spark, source) == START
    spark.sql(f"INSERT INTO {table} SELECT id + 10, v FROM {source} WHERE id = 1")
    assert rows(spark, table) == in_order((*START, (6, 60), (11, 10)))
    other.sql(f"INSERT INTO {table} VALUES (7, 70)")
    assert rows(spark, table) == in_order((*START, (6, 60), (11, 10)))
    assert end(spark) == 4
    check(spark, table, (*START, (6, 60), (7, 70), (11, 10)), 4)


@pytest.mark.parametrize("what", ["another table", "no policy", "other columns", "schema"])
def test_changes_that_are_refused(spark: SparkSession, make: Make, what: str) -> None:
    table = make()
    changed = make(policy=None, name="plain") if what == "no policy" else table
    begin(spark, table, *([] if what == "no policy" else [STEPS[0][0]]))
    if what == "another table":
        changed = make(name="second")
    if what == "other columns":
        spark.newSession().sql(f"ALTER TABLE {table} ADD COLUMN w INT")
        statement = f"SELECT * FROM {table}"
    else:
        statement = f"INSERT INTO {changed} SELECT id, v FROM {table}"
    frame = spark.sql("SELECT 9 AS id, 9 AS v, 9 AS w").write.format("delta").mode("append")

    def run() -> None:
        if what == "schema":
            frame.option("mergeSchema", "true").save(table.location)
        else:
            spark.sql(statement).collect()

    with pytest.raises(UsageError, match="INTERLOCK_NOT_IN_BLOCK"):
        run()
    spark.sql("ROLLBACK")
    assert unknown_files(table) == unknown_files(changed) == []
    assert rows(spark, changed)[0][:2] == START[0]


def test_overwrites(spark: SparkSession, make: Make) -> None:
    table = make(
        policy="write_serializable", columns="(id INT, v INT) USING delta PARTITIONED BY (v)"
    )
    begin(spark, table, "TRUNCATE TABLE {t}", "INSERT INTO {t} VALUES (1, 1), (2, 2)")
    other = spark.newSession()
    other.sql(f"INSERT INTO {table} VALUES (3, 3)")
    assert end(spark) == 3
    assert tags(table, 3)["interlock.class"] == "OVERWRITE"
    check(spark, table, ((1, 1), (2, 2), (3, 3)), 3)
    begin(
        spark,
        table,
        "INSERT INTO {t} REPLACE WHERE v = 1 VALUES (4, 1)",
        "DELETE FROM {t} WHERE v = 2",
    )
    assert rows(spark, table) == ((3, 3), (4, 1))
    assert end(spark) == 4
    begin(spark, table, "INSERT OVERWRITE {t} VALUES (5, 5)", "UPDATE {t} SET id = 6")
    assert end(spark) == 5
    check(spark, table, ((6, 5),), 5)


@pytest.mark.variant_cases("maxcompute_delta")
@pytest.mark.parametrize("policy", ["maxcompute_delta", "maxcompute_transactional", "serializable"])
def test_other_policies(spark: SparkSession, make: Make, policy: str) -> None:
    table = make(policy, PARTITIONED)
    begin(spark, table, "DELETE FROM {t} WHERE v = 10", "INSERT INTO {t} VALUES (9, 10)")
    other = spark.newSession()
    other.sql(f"UPDATE {table} SET id = -2 WHERE v = 20")
    assert end(spark) == 3
    check(spark, table, ((-2, 20), *START[2:], (9, 10)), 3)
    begin(spark, table, "DELETE FROM {t} WHERE v = 10", "INSERT INTO {t} VALUES (1, 10)")
    other.sql(f"UPDATE {table} SET id = 8 WHERE v = 10")
    with pytest.raises(ConflictError):
        spark.sql("COMMIT")
    check(spark, table, ((-2, 20), *START[2:], (8, 10)), 4)


def test_numbered_batches(spark: SparkSession, make: Make) -> None:
    """Both writes of a batch count, and a second run of the block does nothing."""
    table = make()
    numbered = {
        "spark.databricks.delta.write.txnAppId": "job",
        "spark.databricks.delta.write.txnVersion": "1",
    }
    for version in (2, None):
        with confs(spark, numbered):
            begin(spark, table, "INSERT INTO {t} VALUES (6, 6)", "INSERT INTO {t} VALUES (7, 7)")
            assert end(spark) == version
    check(spark, table, (*START, (6, 6), (7, 7)), 2)


def test_constraints_and_columns_that_delta_fills(spark: SparkSession, make: Make) -> None:
    columns = (
        "(n BIGINT GENERATED ALWAYS AS IDENTITY, id INT, twice INT GENERATED ALWAYS AS (id * 2)) "
        "USING delta"
    )
    table = make(columns=columns)
    spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT positive CHECK (id > 0)")
    inserts = ("INSERT INTO {t} (id) VALUES (1), (2)", "INSERT INTO {t} (id) VALUES (3)")
    begin(spark, table, *inserts)
    with pytest.raises(Exception, match="positive"):
        spark.sql(f"INSERT INTO {table} (id) VALUES (-1)")
    failed(spark, "")
    assert rows(spark, table) == ()
    begin(spark, table, *inserts, "UPDATE {t} SET id = 4 WHERE id = 3")
    version = end(spark)
    found = rows(spark, table)
    assert [row[1:] for row in found] == [(1, 2), (2, 4), (4, 8)]
    assert len({row[0] for row in found}) == 3
    assert version == latest_version(table)
    spark.sql(f"INSERT INTO {table} (id) VALUES (5)")
    assert len({row[0] for row in rows(spark, table)}) == 4
    check_log(table)


# ---- Python ----


def test_a_transaction_in_python(spark: SparkSession, make: Make) -> None:
    table = make()
    with interlock.transaction(spark) as tx:
        frame = spark.sql("SELECT 6 AS id, 6 AS v")
        frame.write.format("delta").mode("append").save(table.location)
        handle = DeltaTable.forPath(spark, table.location)
        handle.update("id = 6", {"v": "60"})
        source = spark.sql("SELECT * FROM VALUES (1, 0), (7, 70) AS s(id, v)").alias("s")
        merge = handle.alias("t").merge(source, "t.id = s.id")
        merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
        assert rows(spark, table) == (*START[1:], (6, 60), (7, 70))
        with pytest.raises(UsageError, match="INTERLOCK_BLOCK_OPEN"), interlock.transaction(spark):
            pass
        assert tx.versions == {}
    assert tx.versions == {str(table): 2}
    assert tags(table, 2)["interlock.block"] == tx.id
    check(spark, table, (*START[1:], (6, 60), (7, 70)), 2)


def test_an_exception_rolls_back(spark: SparkSession, make: Make) -> None:
    table = make()
    files = all_files(table)

    def fail() -> None:
        with interlock.transaction(spark):
            spark.sql(f"DELETE FROM {table}")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert all_files(table) == files
    check(spark, table, START, 1)


def test_frames_from_before_the_block_read_it(spark: SparkSession, make: Make) -> None:
    table = make()
    frame = spark.table(str(table)).where("v > 0")
    frame.createOrReplaceTempView("seen_before")
    begin(spark, table, "DELETE FROM {t} WHERE id = 1")
    assert frame.count() == 4
    assert spark.sql("SELECT count(*) FROM seen_before").collect()[0][0] == 4
    spark.sql("ROLLBACK")
    assert frame.count() == 5


def test_a_global_view_of_the_block_shows_others_the_table(spark: SparkSession, make: Make) -> None:
    table = make()
    begin(spark, table, "DELETE FROM {t} WHERE id = 1")
    spark.table(str(table)).createOrReplaceGlobalTempView("of_block")
    assert rows(spark, "global_temp.of_block") == START[1:]
    assert rows(spark.newSession(), "global_temp.of_block") == START
    spark.sql("ROLLBACK")
    spark.catalog.dropGlobalTempView("of_block")


FAILING = {
    "insert": ("INSERT INTO {t} SELECT id, CAST(raise_error('no') AS INT) FROM {t}", "no SQLSTATE"),
    "update": ("UPDATE {t} SET v = raise_error('no') WHERE id = 1", "no SQLSTATE"),
    "delete": ("DELETE FROM {t} WHERE raise_error('no') IS NULL", "no SQLSTATE"),
    "merge": (
        "MERGE INTO {t} USING (SELECT explode(array(1, 1)) AS id) s ON {t}.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 0",
        "DELTA_MULTIPLE_SOURCE_ROW",
    ),
    "text": ("SELEC 1", "PARSE_SYNTAX_ERROR"),
    "text of Delta": ("VACUUM {t} RETAIN a lot", "PARSE_SYNTAX_ERROR"),
}


@pytest.mark.variant_cases("update", "delete", "text of Delta")
@pytest.mark.parametrize("case", FAILING)
def test_a_statement_that_fails_ends_the_block(spark: SparkSession, make: Make, case: str) -> None:
    """For a whole session; another one goes on."""
    table = make()
    files = all_files(table)
    statement, why = FAILING[case]
    begin(spark, table, STEPS[0][0])
    with pytest.raises(Exception, match=why.split()[0]):
        spark.sql(statement.format(t=table))
    failed(spark, why)
    is_written = case in {"insert", "update"}  # then Delta leaves the file of the task that failed
    assert is_written or all_files(table) == files
    check_log(table)
    begin(spark, table, STEPS[0][0])
    with pytest.raises(Exception, match=why.split()[0]):
        spark.newSession().sql(statement.format(t=table))
    assert end(spark) == 2
    assert rows(spark, table) == deltalake_rows(table) == in_order(STEPS[0][1])
    assert is_written or unknown_files(table) == []


def test_a_caught_error_in_python(spark: SparkSession, make: Make) -> None:
    table = make()
    files = all_files(table)

    def fail() -> None:
        with interlock.transaction(spark):
            spark.sql(f"DELETE FROM {table} WHERE id = 1")
            with suppress(AnalysisException):
                other = spark.sql("SELECT 9 AS other").write.format("delta").mode("append")
                other.save(table.location)

    with pytest.raises(UsageError, match=r"(?s)INTERLOCK_BLOCK_FAILED.*DELTA_"):
        fail()
    assert all_files(table) == files
    spark.sql(f"DELETE FROM {table} WHERE id = 5")  # the block is over
    check(spark, table, START[:4], 2)


def test_what_a_block_does_not_get_to_know(spark: SparkSession, make: Make) -> None:
    """Queries that fail, and names that are not found, leave it as it was."""
    table = make()
    begin(spark, table, STEPS[0][0])
    for statement in ("SELECT raise_error('no')", "SELECT nothing", "DELETE FROM no_such_table"):
        with pytest.raises(PySparkException):
            spark.sql(statement).collect()
    assert end(spark) == 2
    check(spark, table, STEPS[0][1], 2)


@pytest.mark.parametrize("verb", ["COMMIT", "ROLLBACK"])
def test_a_statement_that_ends_behind_its_block_is_refused(
    spark: SparkSession, make: Make, verb: str
) -> None:
    """Its rows would be in no version."""
    table = make()
    begin(spark, table, STEPS[0][0])
    error = end_behind(
        spark,
        lambda: spark.sql(f"INSERT INTO {table} VALUES (9, 9)"),
        lambda: spark.sql(verb),
        phase_gate,
    )
    assert isinstance(error, UsageError)
    assert "ended while it ran" in str(error)
    committed = verb == "COMMIT"
    check(spark, table, STEPS[0][1] if committed else START, 2 if committed else 1)


def test_what_is_cached_in_a_block_is_not_found_by_others(spark: SparkSession, make: Make) -> None:
    table = make()
    other = spark.newSession()
    begin(spark, table, "DELETE FROM {t} WHERE id = 1")
    spark.table(str(table)).cache().count()
    assert rows(spark, table) == START[1:]
    assert rows(other, table) == START
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    assert rows(spark, table) == START[2:]
    spark.sql("ROLLBACK")
    assert rows(spark, table) == START
    begin(spark, table, "DELETE FROM {t} WHERE id = 5")
    assert rows(spark, table) == START[:4]
    spark.sql("ROLLBACK")
    with suppress(PySparkException):
        spark.catalog.clearCache()
