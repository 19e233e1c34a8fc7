"""Delta Kernel beside Interlock: it reads every table, and appends where no feature forbids it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import ConcurrentAppendError
from interlock.lab.example import PLAIN, Tables
from pyspark.sql import SparkSession

from tests.kit import delta_kernel
from tests.kit.delta_kernel import DeltaKernel, Refused
from tests.kit.log_replay import check_log
from tests.kit.snapshots import begin, check_anew, delta_log, forget_logs
from tests.kit.support import (
    Table,
    all_files,
    await_checkpoints,
    check_row_ids,
    checkpoint_file,
    commit_info,
    deltalake_rows,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    tags,
    versions,
)

UNSUPPORTED = Refused(
    "UnsupportedTableFeatureException",
    'Unsupported Delta table feature: table requires feature "interlock" which is unsupported by '
    "this version of Delta Kernel.",
)
EXCLUSIVE = "'interlock.exclusive' = 'true'"
NEW = (9, "x")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeltaKernel]:
    with delta_kernel.start(tmp_path_factory.mktemp("kernel") / "log") as started:
        yield started


def example(tables: Tables, policy: str, **more: str) -> Table:
    """A copy of the example, {1a, 2b, 3c}, at version 2."""
    return Table(tables.fresh(PLAIN, {"interlock.policy": policy, **more}))


def set_property(spark: SparkSession, table: Table, setting: str) -> None:
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({setting})")


def test_an_exclusive_table_is_read_and_not_written(
    spark: SparkSession, tables: Tables, kernel: DeltaKernel
) -> None:
    table = example(tables, "row_level")
    set_property(spark, table, EXCLUSIVE)
    for statement in (
        "UPDATE {t} SET v = 'B' WHERE id = 2",
        "DELETE FROM {t} WHERE id = 1",
        "ALTER TABLE {t} COMPACT MAJOR",
    ):
        spark.sql(statement.format(t=table))
    before = all_files(table)
    assert kernel.begin(table) == UNSUPPORTED
    assert all_files(table) == before
    assert latest_version(table) == 6
    read = {version: kernel.rows(table, version=version) for version in versions(table)}
    assert read == {version: deltalake_rows(table, version=version) for version in read}
    assert read[2] == read[3] == ((1, "a"), (2, "b"), (3, "c"))
    assert read[5] == read[6] == rows(spark, table) == ((2, "B"), (3, "c"))
    spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.exclusive')")
    assert (kernel.begin(table), kernel.append(*NEW)) == (7, 8)
    assert rows(spark, table) == ((2, "B"), (3, "c"), NEW)


def test_a_transaction_that_began_before(
    spark: SparkSession, tables: Tables, kernel: DeltaKernel
) -> None:
    """It is refused at its commit if the table became exclusive, but not after an INSERT."""
    table = example(tables, "row_level")
    assert kernel.begin(table) == 2
    set_property(spark, table, EXCLUSIVE)
    refused = kernel.append(*NEW)
    assert isinstance(refused, Refused)
    assert refused.error == "ProtocolChangedException"
    assert latest_version(table) == 3
    assert rows(spark, table) == ((1, "a"), (2, "b"), (3, "c"))
    other = example(tables, "row_level")
    assert kernel.begin(other) == 2
    spark.sql(f"INSERT INTO {other} VALUES (4, 'd')")
    assert kernel.append(*NEW) == 4
    assert rows(spark, other) == ((1, "a"), (2, "b"), (3, "c"), (4, "d"), NEW)


@pytest.mark.parametrize(
    ("policy", "rule"), [("row_level", "APPEND -> APPEND"), ("maxcompute_delta", None)]
)
def test_on_other_tables_it_appends_and_no_policy_judges_it(
    spark: SparkSession, tables: Tables, kernel: DeltaKernel, policy: str, rule: str | None
) -> None:
    """Jobs of ours are judged against its commit, as against an INSERT."""
    table = example(tables, policy)

    def append(_: SparkSession) -> None:
        assert (kernel.begin(table), kernel.append(*NEW)) == (2, 3)

    ours = sql_job(f"INSERT INTO {table} VALUES (4, 'd')")
    theirs, later = race(spark, python_job("kernel", append), ours)
    assert (theirs.error, later.held) == (None, True)
    assert commit_info(table, 3)["engineInfo"].startswith("Kernel-4.4.0")
    expected = [(1, "a"), (2, "b"), (3, "c"), NEW]
    if rule is None:
        assert isinstance(later.error, ConcurrentAppendError)
        assert (later.error.rule, later.error.winner_version) == ("D7", 3)
    else:
        assert later.error is None
        assert tags(table, 4)["interlock.rules"] == rule
        expected.append((4, "d"))
    assert rows(spark, table) == deltalake_rows(table) == tuple(sorted(expected))
    check_row_ids(spark, table)
    check_log(table)


def check_files(snapshot: Any, checkpoint: int, begins: tuple[object, ...]) -> None:
    """Check what a snapshot is made of; a pair of versions is a log compaction file."""
    deltas = snapshot.logSegment().deltas()
    names = [deltas.apply(n).getPath().getName().split(".") for n in range(deltas.size())]
    found = [(int(v), int(more[0])) if len(more) > 1 else int(v) for v, *more in names]
    assert snapshot.checkpointProvider().version() == checkpoint
    assert tuple(found[: len(begins)]) == begins, found


def write(spark: SparkSession, table: Table, numbers: range) -> None:
    for n in numbers:
        spark.sql(f"INSERT INTO {table} VALUES ({n + 10}, 'n'), ({n + 20}, 'n')")
        spark.sql(f"DELETE FROM {table} WHERE id = {n + 10}")
        spark.sql(f"UPDATE {table} SET v = concat(v, '{n}')")


def test_log_compaction_files(spark: SparkSession, table_path: Path, kernel: DeltaKernel) -> None:
    """The checkpoint of a version in the middle of such a file comes later than the file."""
    properties = {"delta.checkpointInterval": "6"}
    table = make_table(spark, table_path, policy="row_level", properties=properties)
    write(spark, table, range(2))
    await_checkpoints(spark)
    late = [checkpoint_file(table, 6), table.path / "_delta_log/_last_checkpoint"]
    hidden = [file.rename(table_path.with_name(file.name)) for file in late]
    kernel.compact_log(table, 3, 8)
    forget_logs(spark)
    log = delta_log(spark, table)
    check_files(log.unsafeVolatileSnapshot(), checkpoint=-1, begins=(0, 1, 2, (3, 8)))
    write(spark, table, range(2, 3))
    for file, here in zip(late, hidden, strict=True):
        here.rename(file)
    snapshot, _ = begin(spark, log)
    check_files(snapshot, checkpoint=6, begins=((3, 8), 9))
    check_anew(spark, table, snapshot)
    write(spark, table, range(3, 5))
    await_checkpoints(spark)
    assert checkpoint_file(table, 12).exists()
    check_log(table)
    assert rows(spark, table) == deltalake_rows(table)
