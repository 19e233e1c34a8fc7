"""A table's versions, times, files and changes, read in every way on one table of six versions."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import interlock
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.kit.support import Table, commit_info, make_table

LIFE = (
    "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",
    "INSERT INTO {t} VALUES (4, 'd', 1)",
    "UPDATE {t} SET v = 'B' WHERE id = 2",
    "ALTER TABLE {t} COMPACT MAJOR",
    "DELETE FROM {t} WHERE id = 3",
)
LATEST = 5
Rows = set[tuple[Any, ...]]


class Lived:
    """The table, and the times of its versions as its log has them."""

    def __init__(self, made: Table) -> None:
        self.made = made
        self.times = [self._time(version) for version in range(LATEST + 1)]

    def _time(self, version: int) -> datetime:
        millis = commit_info(self.made, version)["inCommitTimestamp"]
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=millis)


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    columns = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
    path = tmp_path_factory.mktemp("lived") / "table"
    return Lived(make_table(spark, path, columns=columns, statements=LIFE))


@pytest.fixture(scope="module")
def table(spark: SparkSession, lived: Lived) -> interlock.Table:
    return interlock.table(spark, str(lived.made.path))


def rows(frame: DataFrame) -> Rows:
    return {tuple(row) for row in frame.collect()}


def ids(frame: DataFrame) -> list[int]:
    assert frame.columns == ["id", "v", "p"]
    return sorted(row["id"] for row in frame.collect())


@pytest.mark.variant_cases("connect")
def test_history(table: interlock.Table, lived: Lived) -> None:
    found = table.history()
    assert [record.version for record in found] == [5, 4, 3, 2, 1, 0]
    assert [record.timestamp for record in found] == lived.times[::-1]
    assert [record.time_version is None for record in found] == [False, True, *[False] * 3, True]
    newest, compaction, update, *_ = found
    assert newest.time_version == newest.timestamp
    assert newest.operation_class == "MUTATE"
    assert (newest.rows_in, newest.rows_out) == (0, 1)
    assert (update.rows_in, update.rows_out) == (1, 1)
    assert (compaction.operation, compaction.rows_in) == ("COMPACT MAJOR", 0)
    assert compaction.policy == "maxcompute_delta"
    assert compaction.winners == ()
    assert compaction.foreign is False
    assert newest.operation_parameters is not None
    assert "predicate" in newest.operation_parameters
    assert newest.txn_id == commit_info(lived.made, LATEST)["txnId"]


@pytest.mark.variant_cases("connect")
def test_results_are_tables(table: interlock.Table) -> None:
    frame = table.history().to_pandas()
    assert frame["version"].tolist() == [5, 4, 3, 2, 1, 0]
    assert frame["time_version"].isna().sum() == 2
    assert table.versions().to_arrow()["version"].to_pylist() == [5, 4, 3, 2, 1, 0]
    assert "COMPACT MAJOR" in table.versions()._repr_html_()


def test_versions(table: interlock.Table) -> None:
    history = table.history()
    found = table.versions()
    for record, known in zip(found, history, strict=True):
        assert record.version == known.version
        assert record.time_version == known.time_version
        assert record.timestamp == known.timestamp
        assert record.operation == known.operation
    assert table.versions(limit=2) == interlock.Versions(found[:2])


@pytest.mark.variant_cases("connect")
def test_files(table: interlock.Table) -> None:
    found = {file.path: file for file in table.files()}
    (file,) = found.values()
    assert file.partition == {"p": "1"}
    assert (file.rows, file.dead_rows) == (3, 0)
    assert file.size > 0
    assert file.compacted_from is not None
    assert len(file.compacted_from) == 2
    assert all(path.startswith("p=1/") for path in file.compacted_from)
    assert table.files(partition={"p": 1}) == table.files()
    assert len(table.files(partition={"p": 2})) == 0


@pytest.mark.variant_cases("connect")
def test_the_latest(table: interlock.Table, lived: Lived) -> None:
    assert [table.latest_version(n) for n in (1, 2, 6)] == [5, 4, 0]
    assert table.latest_version() == LATEST
    found = [table.latest_timestamp(n) for n in (1, 2)]
    assert found == [lived.times[5], lived.times[3]]  # 4 is a compaction
    assert table.latest_timestamp().tzinfo is timezone.utc


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize("n", [0, -1, 7])
def test_there_is_no_such_latest(table: interlock.Table, n: int) -> None:
    with pytest.raises(interlock.UsageError):
        table.latest_version(n)
    with pytest.raises(interlock.UsageError):
        table.latest_timestamp(n)


@pytest.mark.variant_cases("connect")
def test_as_of(table: interlock.Table, lived: Lived) -> None:
    assert rows(table.as_of(version=3)) == {(1, "a", 1), (2, "B", 1), (3, "c", 2), (4, "d", 1)}
    assert ids(table.as_of(timestamp=lived.times[5])) == [1, 2, 4]
    just_before = lived.times[2] - timedelta(microseconds=1)
    assert ids(table.as_of(timestamp=just_before)) == [1, 2, 3]


@pytest.mark.variant_cases("connect")
def test_between_versions(table: interlock.Table) -> None:
    assert rows(table.between(versions=(1, 3))) == {(2, "B", 1), (4, "d", 1)}
    assert ids(table.between(versions=(-1, None))) == [1, 2, 4]
    frame = table.between(versions=(1, None)).where("id > 2").selectExpr("upper(v) AS v")
    assert rows(frame) == {("D",)}


@pytest.mark.variant_cases("connect")
def test_between_timestamps(table: interlock.Table, lived: Lived) -> None:
    times = lived.times
    assert ids(table.between(timestamps=(times[1], times[3]))) == [2, 4]
    assert ids(table.between(timestamps=(times[2], None))) == [2]


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.as_of(),
        lambda t: t.as_of(version=1, timestamp=datetime(2026, 1, 1)),
        lambda t: t.between(),
        lambda t: t.between(versions=(1, 2), timestamps=(datetime(2026, 1, 1), None)),
        lambda t: t.restore(),
    ],
)
def test_one_of_the_two_is_needed(
    table: interlock.Table, use: Callable[[interlock.Table], object]
) -> None:
    with pytest.raises(ValueError, match=r"^give either versions? or timestamps?\.$"):
        use(table)


@pytest.mark.variant_cases("connect*")
@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.between(versions=(3, 2)),
        lambda t: t.between(versions=(3, 6)),
        lambda t: t.between(versions=(-2, 3)),
        lambda t: t.diff(from_version=0, to_version=6),
    ],
    ids=["turned round", "too late", "too early", "diff"],
)
def test_a_range_that_is_none(
    table: interlock.Table, use: Callable[[interlock.Table], Any]
) -> None:
    with pytest.raises(interlock.UsageError):
        use(table).collect()


@pytest.mark.variant_cases("connect")
def test_diff(table: interlock.Table) -> None:
    """The compaction in between has moved row 1 and changed none."""
    diff = table.diff(from_version=1, to_version=5)
    frames = {"+": diff.added, "-": diff.removed, "~": diff.changed}
    added, removed, changed = (f.selectExpr(f"'{how}' AS how", "*") for how, f in frames.items())
    expected = {("+", 4, "d", 1), ("-", 3, "c", 2), ("~", 2, "B", 1)}
    assert rows(added.unionAll(removed).unionAll(changed)) == expected


@pytest.mark.variant_cases("connect")
def test_by_name(spark: SparkSession, lived: Lived, table: interlock.Table) -> None:
    spark.sql(f"CREATE TABLE default.lived USING delta LOCATION '{lived.made.path}'")
    try:
        named = interlock.table(spark, "spark_catalog.default.`lived`")
        assert named.policy == "maxcompute_delta"
        assert named.history(limit=2) == table.history(limit=2)
        assert named.versions() == table.versions()
        assert named.latest_version(2) == 4
        assert named.latest_timestamp() == lived.times[5]
        assert ids(named.between(versions=(1, None))) == [2, 4]
    finally:
        spark.sql("DROP TABLE default.lived")


def test_a_table_that_does_not_exist(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("no_such_table", str(tmp_path)):
        absent = interlock.table(spark, name)
        for use in (absent.history, absent.versions, absent.latest_version):
            with pytest.raises(PySparkException):
                use()
