"""What `interlock.table` changes: a table's policy, its files, its version."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import interlock
import pytest
from interlock._sql_text import literal
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    commit_info,
    deltalake_rows,
    latest_version,
    live_files,
    make_table,
    rows,
)

VALUES = {
    "s": "it's a \\ `x`",
    "n": -3,
    "d": date(2013, 1, 31),
    "t": datetime(2013, 1, 31, 5, 15),
    "m": Decimal("1.50"),
    "x": 0.1,
    "b": True,
    "z": None,
}
COLUMNS = "s STRING, n INT, d DATE, t TIMESTAMP, m DECIMAL(5, 2), x DOUBLE, b BOOLEAN, z STRING"
OTHER = {**VALUES, "z": "other"}


@pytest.mark.variant_cases("classic")
def test_the_policy(spark: SparkSession, example: Table) -> None:
    table = interlock.table(spark, str(example.path))
    assert table.policy == "maxcompute_delta"
    table.set_policy("serializable")
    assert table.policy == "serializable"
    table.set_policy(None)
    assert table.policy is None
    table.set_policy(None)
    with pytest.raises(interlock.UsageError, match="serializable") as caught:
        table.set_policy("it's \\ serialisable")
    assert caught.value.condition == "INTERLOCK_UNKNOWN_POLICY"
    assert table.policy is None


def test_a_notebook_shows_a_few_facts(spark: SparkSession, example: Table) -> None:
    shown = interlock.table(spark, str(example.path))._repr_html_()
    titles = ("table", "policy", "version", "partitioned by", "files", "bytes")
    assert "".join(f"<th>{title}</th>" for title in titles) in shown
    assert "<td>maxcompute_delta</td><td>2</td><td></td><td>2</td>" in shown
    missing = interlock.table(spark, "no.such")._repr_html_()
    assert "<td>no.such</td><td>TABLE_OR_VIEW_NOT_FOUND</td>" in missing


def test_it_prints_its_name() -> None:
    assert repr(interlock.Table(None, "`db`.`t`")) == "Table(`db`.`t`)"  # type: ignore[arg-type]


def test_a_relative_path(
    spark: SparkSession, mode: str, example: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark Connect's server has other folders, so there it is a name like others."""
    monkeypatch.chdir(example.path.parent)
    named = interlock.table(spark, example.path.name)
    expected = (
        f"a path must be absolute: {example.path}."
        if mode == "classic"
        else "TABLE_OR_VIEW_NOT_FOUND"
    )
    by_path = interlock.table(spark, f"delta.`{example.path.name}`")
    for use in (named.conflicts, lambda: named.policy, by_path.history, lambda: by_path.policy):
        with pytest.raises(PySparkException, match=expected) as caught:
            use()
        assert isinstance(caught.value, interlock.ArgumentError) == (mode == "classic")


def test_a_path_with_nothing_there(spark: SparkSession, mode: str, tmp_path: Path) -> None:
    """Spark and Delta say that it is no Delta table, or fail in the storage."""
    if mode == "connect":
        pytest.skip("only the server knows its folders")
    named = interlock.table(spark, f"{tmp_path}/no such")
    by_sql_name = interlock.table(spark, f"delta.`{tmp_path}/no such`")
    for use in (
        named.history,
        by_sql_name.history,
        named.conflicts,
        lambda: named.policy,
        lambda: named.set_policy("row_level"),
        lambda: named.compact("minor"),
        lambda: named.as_of(version=0),
        lambda: named.restore(version=0),
    ):
        with pytest.raises(interlock.UsageError, match=f"There is nothing at {tmp_path}/no such"):
            use()
    (tmp_path / "no such").mkdir()
    with pytest.raises(PySparkException, match="is not a Delta table"):
        named.history()


@pytest.mark.variant_cases("classic")
def test_the_way_back(spark: SparkSession, example: Table) -> None:
    table = interlock.table(spark, str(example.path))
    with pytest.raises(interlock.UsageError, match="INTERLOCK_INVALID_ARGUMENT"):
        table.remove_policy(keep=["it's"])
    removed = table.remove_policy(keep=["inCommitTimestamp"])
    assert removed[0] == interlock.RemovalRecord("interlock.policy", "removed", "maxcompute_delta")
    assert {record.what: (record.outcome, record.why) for record in removed[2:]} == {
        "rowTracking": ("dropped", None),
        "inCommitTimestamp": ("kept", "asked for"),
        "domainMetadata": ("dropped", None),
        "deletionVectors": ("kept", "files and older versions may have some"),
    }
    assert (table.policy, len(removed.to_dicts())) == (None, 6)


@pytest.mark.variant
def test_compaction_and_restore(spark: SparkSession, table_path: Path) -> None:
    """Two files have three rows, of which one is marked as deleted."""
    made = make_table(spark, table_path, properties={"delta.enableDeletionVectors": "true"})
    spark.sql(f"DELETE FROM {made} WHERE id = 2")
    table = interlock.table(spark, str(table_path))
    minor = table.compact("minor")
    assert minor.bytes_in > 0
    assert minor.bytes_out > 0
    expected = interlock.CompactionResult(
        4, "COMPACT_MINOR", 2, 1, minor.bytes_in, minor.bytes_out, 2, 1, ()
    )
    assert minor == expected
    nothing = table.compact("minor")
    assert (nothing.version, nothing.files_in, nothing.files_out) == (None, 0, 0)
    assert latest_version(made) == 4
    assert commit_info(made, 4)["operation"] == "COMPACT MINOR"
    assert rows(spark, made) == deltalake_rows(made) == ((1, "a"), (3, "c"))
    merged = table.merge_small_files()
    assert (merged.version, merged.operation_class) == (None, "COMPACT_MINOR")
    back = table.restore(timestamp=table.history()[-3].timestamp)
    assert (back.files, back.files_restored, back.files_removed) == (2, 2, 1)
    assert back.bytes == back.bytes_restored == minor.bytes_in
    assert commit_info(made, 5)["operation"] == "RESTORE"
    assert deltalake_rows(made) == ((1, "a"), (2, "b"), (3, "c"))


@pytest.mark.variant_cases("classic")
def test_a_partition_is_found_by_its_values(spark: SparkSession, table_path: Path) -> None:
    made = make_table(
        spark,
        table_path,
        columns=f"(id INT, {COLUMNS}) USING delta PARTITIONED BY ({', '.join(VALUES)})",
        statements=(),
    )
    for number in range(2):
        both = (", ".join(map(literal, values.values())) for values in (VALUES, OTHER))
        spark.sql(f"INSERT INTO {made} VALUES {', '.join(f'({number}, {row})' for row in both)}")
    before = live_files(made)
    table = interlock.table(spark, str(table_path))
    result = table.compact("minor", partition=VALUES)
    assert (result.version, result.files_in, result.files_out, result.rows) == (3, 2, 1, 2)
    assert len(live_files(made) & before) == 2
    assert {row[1:] for row in rows(spark, made)} == {
        tuple(VALUES.values()),
        tuple(OTHER.values()),
    }
    (file,) = table.files(partition=VALUES)
    assert file.rows == 2
    assert [record.version for record in table.history(partition=VALUES)] == [3, 2, 1]
    assert [record.version for record in table.history(partition=OTHER)] == [2, 1]


TEXTS = ["${spark.master}", "$${spark.master}", "${env:HOME}", "\\${spark.master}", "it's", '"', ""]
ALPHABET = "$${}{}:\\'\"`%_?; \0\n\r\t\u0085\u2028u0024nxé漢😀-/*"


def test_any_text_is_the_value_that_it_was(spark: SparkSession) -> None:
    draw = random.Random(14)
    drawn = ["".join(draw.choices(ALPHABET, k=draw.randrange(12))) for _ in range(500)]
    texts = TEXTS + drawn
    (row,) = spark.sql(f"SELECT array({', '.join(map(literal, texts))})").collect()
    assert row[0] == texts


@pytest.mark.variant_cases("classic")
def test_nothing_is_put_in_place_of_what_looks_like_a_variable(
    spark: SparkSession, table_path: Path
) -> None:
    """Text like `${spark.master}` is taken literally in a value, and refused in a name."""
    made = make_table(
        spark,
        table_path,
        columns="(id INT, p STRING) USING delta PARTITIONED BY (p)",
        statements=(),
    )
    table = interlock.table(spark, str(table_path))
    (master,) = spark.sql("SELECT '${spark.master}'").collect()[0]
    for _ in range(2):
        values = ", ".join(f"(1, {literal(text)})" for text in (master, "${spark.master}"))
        spark.sql(f"INSERT INTO {made} VALUES {values}")
    compacted = table.compact("minor", partition={"p": "${spark.master}"})
    assert (compacted.files_in, compacted.files_out) == (2, 1)
    assert [file.partition for file in table.files(partition={"p": "${spark.master}"})] == [
        {"p": "${spark.master}"}
    ]
    assert [record.version for record in table.history(partition={"p": master})] == [2, 1]
    with pytest.raises(interlock.ArgumentError, match="would replace a part of the name"):
        interlock.table(spark, str(table_path.with_name("${spark.master}")))
    with pytest.raises(interlock.ArgumentError, match="would replace a part of the name"):
        table.compact("minor", partition={"${spark.master}": 1})
    assert deltalake_rows(made) == tuple(sorted([(1, master), (1, "${spark.master}")] * 2, key=str))


@pytest.mark.variant_cases("classic")
def test_a_session_that_reads_no_escapes(spark: SparkSession, tmp_path: Path) -> None:
    """A value that needs an escape would name another partition: it is refused."""
    key = "spark.sql.parser.escapedStringLiterals"
    table = interlock.table(spark, str(make_table(spark, tmp_path / "table").path))
    spark.conf.set(key, "true")
    try:
        assert table.history(limit=1)
        with pytest.raises(interlock.ConfigurationError, match=key):
            table.compact("major", partition={"p": "a\\b"})
        with pytest.raises(interlock.ConfigurationError, match=key):
            table.history(partition={"p": "it's"})
    finally:
        spark.conf.unset(key)
