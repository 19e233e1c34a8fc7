"""`CALL interlock.blocks`: the atomic blocks of a table, from its log."""

from __future__ import annotations

from pathlib import Path

import interlock
import pytest
from pyspark.sql import SparkSession

from tests.blocks.several_tables import Make, begin, end, moves
from tests.kit.commit_phases import observed
from tests.kit.foreign import commit_by_hand
from tests.kit.support import Table, commit_info, tags


def blocks(spark: SparkSession, table: Table, columns: str) -> list[tuple[object, ...]]:
    found = spark.sql(f"CALL interlock.blocks('{table}')").select(*columns.split())
    return [tuple(row) for row in found.collect()]


def test_blocks_are_listed_newest_first(spark: SparkSession, make: Make) -> None:
    a, b = make("a"), make("b")
    assert blocks(spark, a, "block") == []
    begin(spark, f"UPDATE {a} SET v = 0 WHERE id = 3")
    assert end(spark) == [2]
    spark.sql(f"INSERT INTO {a} VALUES (4, 40)")
    begin(spark, *moves(a, b), f"DELETE FROM {a} WHERE id = 4")
    assert end(spark) == [5, 3]
    assert blocks(spark, a, "version state statements") == [
        (5, "committed", ["UPDATE", "DELETE"]),
        (2, "committed", ["UPDATE"]),
    ]
    assert blocks(spark, b, "version state statements") == [(3, "committed", ["UPDATE"])]
    assert blocks(spark, a, "block")[0] == blocks(spark, b, "block")[0]
    newest, oldest = interlock.table(spark, str(a)).blocks()
    assert newest.block == tags(a, 5)["interlock.block"]
    assert newest.timestamp is not None
    assert newest.timestamp.timestamp() * 1000 == commit_info(a, 5)["inCommitTimestamp"]
    assert oldest.statements == ("UPDATE",)
    assert oldest.others == {}
    assert interlock.table(spark, str(a)).blocks(limit=1) == interlock.Blocks((newest,))


def test_its_id_stands_in_history_records_explanation_and_timeline(
    spark: SparkSession, make: Make, tmp_path: Path
) -> None:
    """Of a block that made a version past another job, and of one that lost."""
    made = make("t")
    table = interlock.table(spark, str(made))
    begin(spark, f"UPDATE {made} SET v = 0 WHERE id = 3", f"DELETE FROM {made} WHERE id = 2")
    spark.newSession().sql(f"UPDATE {made} SET v = 11 WHERE id = 1")
    assert end(spark) == [3]
    spark.sql("BEGIN TRANSACTION")
    spark.sql(f"UPDATE {made} SET v = v + 1")
    spark.newSession().sql(f"UPDATE {made} SET v = 12 WHERE id = 1")
    with pytest.raises(interlock.ConflictError):
        end(spark)
    committed = tags(made, 3)["interlock.block"]
    assert [record.block for record in table.history(limit=2)] == [None, committed]
    lost, rebased = table.conflicts(limit=2)
    assert (lost.outcome, rebased.outcome) == ("REJECTED", "REBASED")
    assert rebased.block == committed
    assert lost.block not in (None, committed)
    page = table.timeline(path=tmp_path / "page.html").read_text(encoding="utf-8")
    for record in (lost, rebased):
        last = f"It is the commit of the atomic block {record.block}."
        assert str(table.explain(record.txn_id)).splitlines()[-1] == last
        assert str(record.block) in page


def test_versions_of_other_tables(spark: SparkSession, make: Make) -> None:
    table = make("t")
    numbers = {"interlock/of-b": 7, "interlock/of-c": 9, "a job": 1}
    commit_by_hand(
        table,
        "ATOMIC BLOCK",
        *({"txn": {"appId": app, "version": n}} for app, n in numbers.items()),
        parameters={"block": "x", "statements": "INSERT INTO, MERGE"},
        tags={"interlock.block": "x"},
    )
    assert blocks(spark, table, "block version state statements others") == [
        ("x", 2, "committed", ["INSERT INTO", "MERGE"], {"of-b": 7, "of-c": 9})
    ]


def test_a_block_that_has_reserved_its_version_only(spark: SparkSession, make: Make) -> None:
    a, b = make("a"), make("b")

    def at(phase: str, _version: int) -> None:
        if phase == "ratifying":
            raise OSError(phase)

    begin(spark, *moves(a, b))
    with observed(spark._jvm, at), pytest.raises(Exception, match=r"."):
        end(spark)
    found = blocks(spark, a, "version state statements others")
    assert found == [(2, "undecided", None, {})]
    spark.sql(f"INSERT INTO {a} VALUES (4, 40)")
    begin(spark, *moves(a, b))
    assert end(spark) == [5, 4]
    for table, version in ((a, 5), (b, 4)):
        found = blocks(spark, table, "version state")
        assert found == [(version, "committed"), (2, "rolled back")]
