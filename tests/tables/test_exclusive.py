"""`interlock.exclusive`: writers without Interlock are refused, and readers are not.

The others are stock Delta, in a process of its own, and `deltalake`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from interlock._diagnosis import Check
from interlock._table_diagnosis import of_table
from interlock.errors import InterlockError, MetadataChangedError
from interlock.lab.example import PLAIN, Tables
from interlock.lab.model import Rows
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.entry_points import set_for_now
from tests.kit.foreign import vacuum
from tests.kit.log_replay import check_log
from tests.kit.properties import definitions, latest, operations
from tests.kit.spark_version import since_4_2
from tests.kit.support import (
    Table,
    await_checkpoints,
    commit,
    commit_file,
    deltalake_rows,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
    versions,
)

FEATURE = "interlock"
REFUSED = re.compile(rf"DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*Delta Lake \"4.4.0\": {FEATURE}\.")
KEY = "interlock.exclusive"
SET = {KEY: "true"}
EXAMPLE: Rows = ((1, "a"), (2, "b"), (3, "c"))


@pytest.fixture
def exclusive(tables: Tables) -> Table:
    """A copy of the example, {1a, 2b, 3c}, under row_level."""
    return Table(tables.fresh(PLAIN, {"interlock.policy": "row_level", **SET}))


def is_exclusive(table: Table) -> bool:
    """Tell whether the table has property and feature, in this and all earlier versions alike."""
    found = definitions(table)
    assert [(FEATURE in d.features) for d in found] == [
        d.properties.get(KEY) == "true" for d in found
    ]
    return FEATURE in found[-1].features


STOCK = (
    "INSERT INTO {t} VALUES (9, 'x')",
    "UPDATE {t} SET v = 'x' WHERE id = 1",
    "DELETE FROM {t} WHERE id = 1",
    "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "OPTIMIZE {t}",
    "VACUUM {t}",
    "RESTORE TABLE {t} TO VERSION AS OF 1",
    "ALTER TABLE {t} ADD COLUMN w INT",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('interlock.exclusive')",
    "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id",
)


def test_stock_spark_is_refused(
    spark: SparkSession, stock: DriverProcess, exclusive: Table
) -> None:
    log = files_of_log(exclusive)
    for statement in STOCK:
        end = stock.run(statement.format(t=exclusive))
        assert REFUSED.search(end.message), (statement, end)
        assert files_of_log(exclusive) == log, statement
    check_reads(spark, stock, exclusive)
    assert rows(spark, exclusive) == EXAMPLE


def files_of_log(table: Table) -> set[Path]:
    return set((table.path / "_delta_log").iterdir())


def check_reads(
    spark: SparkSession, stock: DriverProcess, table: Table, chosen: Sequence[int] | None = None
) -> None:
    """Check that the others read what we read, at every version or at some."""
    read = {n: rows(spark, table, version=n) for n in chosen or versions(table)}
    assert {n: deltalake_rows(table, version=n) for n in read} == read
    query = f"SELECT * FROM {table} VERSION AS OF %d"
    found = f"sorted(tuple(row) for row in spark.sql('{query}' % n).collect())"
    check = f"assert found == {[sorted(found) for found in read.values()]}, found"
    end = stock.run(f"spark.version; found = [{found} for n in {list(read)}]; {check}")
    assert end.error is None, end.message


NEW_ROW = pa.table({"id": pa.array([9], pa.int32()), "v": ["x"]})
DELTALAKE: tuple[Callable[[str], object], ...] = (
    lambda path: write_deltalake(path, NEW_ROW, mode="append"),
    lambda path: write_deltalake(path, NEW_ROW, mode="overwrite"),
    lambda path: DeltaTable(path).delete("id = 1"),
    lambda path: DeltaTable(path).update(updates={"v": "'x'"}, predicate="id = 1"),
    lambda path: (
        DeltaTable(path)
        .merge(NEW_ROW, "s.id = t.id", source_alias="s", target_alias="t")
        .when_not_matched_insert_all()
        .execute()
    ),
)


def test_deltalake_is_refused(spark: SparkSession, exclusive: Table, tmp_path: Path) -> None:
    """The second table has no other unknown feature, so this one is the reason."""
    plain = Table(tmp_path / "plain")
    write_deltalake(str(plain.path), pa.table({"id": pa.array([1], pa.int32()), "v": ["a"]}))
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [FEATURE]}
    commit_file(plain, 1).write_text(json.dumps({"protocol": protocol}))
    for table in (exclusive, plain):
        log, read = files_of_log(table), deltalake_rows(table)
        for write in DELTALAKE:
            with pytest.raises(DeltaError, match=f'(?i)unsupported.*"?{FEATURE}"?'):
                write(str(table.path))
            assert files_of_log(table) == log
        assert rows(spark, table) == deltalake_rows(table) == read


OURS = (
    "INSERT INTO {t} VALUES (4, 'd'), (5, 'e')",
    "UPDATE {t} SET v = 'A' WHERE id = 1",
    "DELETE FROM {t} WHERE id = 2",
    "MERGE INTO {t} t USING (SELECT 5 AS id, 'E' AS v UNION ALL SELECT 6, 'f') s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} COMPACT MAJOR",
    "VACUUM {t}",
    "INSERT OVERWRITE {t} VALUES (7, 'g')",
    "RESTORE TABLE {t} TO VERSION AS OF 2",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 100)",
    "ALTER TABLE {t} DROP CONSTRAINT low",
    "ALTER TABLE {t} DROP FEATURE checkConstraints",
    "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 8 AS id, 'h' AS v",
    "spark.sql('SELECT 9 AS id, \"i\" AS v').write.format('delta').mode('append').save('{path}')",
    "spark.readStream.format('delta').option('ignoreChanges', True).load('{path}').writeStream"
    ".format('delta').option('checkpointLocation', '{path}-checkpoint')"
    ".trigger(availableNow=True).start('{path}').awaitTermination()",
)


def test_our_sessions_do_everything(
    spark: SparkSession, stock: DriverProcess, exclusive: Table
) -> None:
    """The feature is in the protocol of each version, checksum and checkpoint."""
    spark.sql(f"ALTER TABLE {exclusive} SET TBLPROPERTIES ('delta.checkpointInterval' = '4')")
    for statement in OURS:
        text = statement.format(t=exclusive, path=exclusive.path)
        if text.startswith("spark."):
            exec(text, {"spark": spark})
        else:
            spark.sql(text)
        assert is_exclusive(exclusive), text
    await_checkpoints(spark)
    check_log(exclusive)
    check_reads(spark, stock, exclusive, versions(exclusive)[3::6])
    with set_for_now(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        vacuum(spark, exclusive)  # as a session without the extension does it in this process
    assert set(rows(spark, exclusive)) == {(8, "h"), (9, "i")}
    log = exclusive.path / "_delta_log"
    checksums = [json.loads(file.read_text()) for file in log.glob("0*.crc")]
    checkpoints = [pq.read_table(file).to_pylist() for file in log.glob("*.checkpoint*.parquet")]
    assert min(len(checksums), len(checkpoints)) > 1
    written = [checksum["protocol"] for checksum in checksums]
    written += [row["protocol"] for file in checkpoints for row in file if row["protocol"]]
    assert all(FEATURE in protocol["writerFeatures"] for protocol in written)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    spark.sql(f"UPDATE {exclusive} SET v = 'U'")
    detail = spark.sql(f"DESCRIBE DETAIL {exclusive}").first()
    assert detail is not None
    assert FEATURE in detail["tableFeatures"]
    assert REFUSED.search(stock.run(f"DELETE FROM {exclusive}").message)


def test_a_protocol_that_code_commits_has_it(spark: SparkSession, exclusive: Table) -> None:
    jvm: Any = spark._jvm
    session: Any = spark
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        session._jsparkSession, str(exclusive.path)
    )
    snapshot = log.unsafeVolatileSnapshot()
    without = snapshot.protocol().normalized()
    assert FEATURE not in without.toString()
    log.upgradeProtocol(jvm.scala.Option.empty(), snapshot, without)
    assert operations(exclusive, since=3) == ["UPGRADE PROTOCOL"]
    assert is_exclusive(exclusive)


def test_one_commit_lets_the_others_in(
    spark: SparkSession, stock: DriverProcess, exclusive: Table
) -> None:
    protocol = next(action["protocol"] for action in commit(exclusive, 0) if "protocol" in action)
    protocol["writerFeatures"].remove(FEATURE)
    for number, end in enumerate(
        (
            f"UNSET TBLPROPERTIES ('{KEY}')",
            f"SET TBLPROPERTIES ('{KEY}' = 'false')",
            f"DROP FEATURE {FEATURE}",
            "UNSET TBLPROPERTIES ('interlock.policy')",
        )
    ):
        before = latest_version(exclusive)
        assert is_exclusive(exclusive)
        spark.sql(f"ALTER TABLE {exclusive} {end}")
        assert latest_version(exclusive) == before + 1
        assert not is_exclusive(exclusive)
        assert {"protocol": protocol} in commit(exclusive, before + 1)
        written = stock.run(f"INSERT INTO {exclusive} VALUES ({10 + number}, 'x')")
        assert written.error is None, written.message
        if number < 3:
            spark.sql(f"ALTER TABLE {exclusive} SET TBLPROPERTIES ('{KEY}' = 'true')")
    check_reads(spark, stock, exclusive, [2, latest_version(exclusive)])


def test_it_ends_with_the_policy(spark: SparkSession, exclusive: Table) -> None:
    removed = spark.sql(f"CALL interlock.remove_policy('{exclusive.path}')").collect()
    assert (KEY, "removed", "true") in [tuple(row) for row in removed]
    assert not is_exclusive(exclusive)
    write_deltalake(str(exclusive.path), NEW_ROW, mode="append")
    assert rows(spark, exclusive) == (*EXAMPLE, (9, "x"))


def test_an_old_table_keeps_its_readers(
    spark: SparkSession, stock: DriverProcess, table_path: Path
) -> None:
    table = make_table(spark, table_path, policy=None)
    both = f"'interlock.policy' = 'write_serializable', '{KEY}' = 'true'"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({both})")
    protocol = [a["protocol"] for v in versions(table) for a in commit(table, v) if "protocol" in a]
    assert [each["minReaderVersion"] for each in protocol] == [1] * len(protocol)
    known = {"appendOnly", "domainMetadata", "inCommitTimestamp", "invariants", "rowTracking"}
    assert set(protocol[-1]["writerFeatures"]) == known | {FEATURE}
    assert is_exclusive(table)
    assert REFUSED.search(stock.run(f"DELETE FROM {table}").message)
    check_reads(spark, stock, table, [2, latest_version(table)])


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        (SET, "a policy: set 'interlock.policy' as well"),
        ({"interlock.policy": "row_level", KEY: "yes"}, "true or false"),
        ({"interlock.policy": "row_level", "interlock.exclusiv": "true"}, f"'{KEY}'"),
    ],
)
def test_what_is_refused(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], said: str
) -> None:
    new, old = tmp_path / "new", make_table(spark, tmp_path / "old", policy=None)
    with pytest.raises(InterlockError, match=said):
        make_table(spark, new, policy=None, properties=properties)
    assert not new.exists()
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    with pytest.raises(InterlockError, match=said):
        spark.sql(f"ALTER TABLE {old} SET TBLPROPERTIES ({listed})")
    assert latest(old).policy is None


def test_a_property_that_another_writer_has_set(
    spark: SparkSession, stock: DriverProcess, table_path: Path
) -> None:
    """It keeps nobody out of a table without a policy, and no statement of ours fails for it."""
    table = make_table(spark, table_path, policy=None)
    assert stock.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('{KEY}' = 'true')").error is None
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    assert stock.run(f"INSERT INTO {table} VALUES (9, 'x')").error is None
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{KEY}')")
    assert all(FEATURE not in definition.features for definition in definitions(table))
    assert KEY not in latest(table).properties
    assert rows(spark, table) == deltalake_rows(table) == (*EXAMPLE, (9, "x"))


def test_the_default_of_new_tables(spark: SparkSession, tmp_path: Path, example: Table) -> None:
    new = [Table(tmp_path / str(number)) for number in range(3)]
    policy = "'interlock.policy' = 'serializable'"
    with set_for_now(spark, {"spark.interlock.exclusive": "true"}):
        for table, properties in zip(
            new, (policy, f"{policy}, '{KEY}' = 'false'", "'a' = 'b'"), strict=True
        ):
            spark.sql(f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ({properties})")
        spark.sql(f"CREATE OR REPLACE TABLE {example} USING delta AS SELECT 1 AS id")
    assert [is_exclusive(table) for table in (*new, example)] == [True, False, False, False]


@pytest.mark.parametrize(
    "copy",
    [
        "CREATE TABLE {new} SHALLOW CLONE {old}",
        pytest.param("CREATE TABLE {name} LIKE {old} LOCATION '{new.path}'", marks=since_4_2),
    ],
)
def test_a_copy_has_it_too(
    spark: SparkSession, stock: DriverProcess, exclusive: Table, tmp_path: Path, copy: str
) -> None:
    new = Table(tmp_path / "new")
    spark.sql(copy.format(old=exclusive, new=new, name=f"n_{abs(hash(new.path))}"))
    assert is_exclusive(new)
    assert REFUSED.search(stock.run(f"INSERT INTO {new} VALUES (9, 'x')").message)
    spark.sql(f"INSERT INTO {new} VALUES (4, 'd')")
    assert (4, "d") in deltalake_rows(new)


def test_a_restore_of_the_table_keeps_it(spark: SparkSession, tmp_path: Path) -> None:
    table = make_table(spark, tmp_path / "table", policy="row_level")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{KEY}' = 'true')")
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
    assert is_exclusive(table)


@pytest.mark.parametrize("properties", [{}, {KEY: "false"}], ids=["unset", "false"])
def test_a_clone_into_the_table_keeps_it(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    """The target stays exclusive, whatever the source's property is."""
    source = make_table(spark, tmp_path / "source", policy=None, properties=properties)
    empty = make_table(spark, tmp_path / "empty", policy="row_level", properties=SET, statements=())
    spark.sql(f"CREATE OR REPLACE TABLE {empty} SHALLOW CLONE {source}")
    assert is_exclusive(empty)
    assert rows(spark, empty) == EXAMPLE


def test_jobs_that_run_when_it_is_set(
    spark: SparkSession, stock: DriverProcess, example: Table
) -> None:
    """A foreign job that read the table before is refused and makes no version."""
    fence = f"ALTER TABLE {example} SET TBLPROPERTIES ('{KEY}' = 'true')"
    stock.hold(f"INSERT INTO {example} VALUES (8, 'x')")
    done, ours = sql_race(spark, example, fence, f"INSERT INTO {example} VALUES (9, 'y')")
    assert done.error is None
    assert isinstance(ours.error, MetadataChangedError)
    refused = stock.open()
    assert REFUSED.search(refused.message), refused
    assert operations(example, since=3) == ["SET TBLPROPERTIES"]
    inserted = sql_job(f"INSERT INTO {example} VALUES (4, 'd')")
    opened = python_job(
        "unset",
        lambda session: session.sql(f"ALTER TABLE {example} UNSET TBLPROPERTIES ('{KEY}')"),
    )
    assert [job.error for job in race(spark, inserted, opened)] == [None, None]
    assert not is_exclusive(example)
    assert rows(spark, example) == deltalake_rows(example) == (*EXAMPLE, (4, "d"))


def test_the_doctor_tells_of_a_copy_that_is_not(
    spark: SparkSession, stock: DriverProcess, exclusive: Table, tmp_path: Path
) -> None:
    """A copy by stock Delta has the property without the feature."""
    copy = Table(tmp_path / "copy")
    assert stock.run(f"CREATE TABLE {copy} SHALLOW CLONE {exclusive}").error is None
    assert not found_by_doctor(spark, copy).ok
    spark.sql(found_by_doctor(spark, copy).fix.partition(", from")[0])
    for table in (copy, exclusive):
        assert found_by_doctor(spark, table).ok
        assert REFUSED.search(stock.run(f"INSERT INTO {table} VALUES (9, 'x')").message)
        assert rows(spark, table) == EXAMPLE


def test_the_doctor_takes_each_spelling_of_true(spark: SparkSession, table_path: Path) -> None:
    properties = {KEY: "True", "delta.enableRowTracking": "TRUE"}
    table = make_table(spark, table_path, policy="row_level", properties=properties)
    assert found_by_doctor(spark, table).found == "other writers are kept out"
    checks = {check.name: check.ok for check in of_table(spark, str(table))}
    assert checks["Table features"]


def found_by_doctor(spark: SparkSession, table: Table) -> Check:
    return next(check for check in of_table(spark, str(table)) if check.name == "Exclusive")
