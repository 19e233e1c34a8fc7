"""Ranges by options of readers, and the change data feed beside them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from interlock.errors import InterlockError
from pyspark.sql import SparkSession

from tests.kit.ranges import changed, committed, files_read, found, make_history
from tests.kit.support import Table


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    table = make_history(spark, tmp_path_factory.mktemp("history") / "t", "copied on write")
    spark.sql(f"CREATE TABLE by_name USING delta LOCATION '{table.path}'")
    return table


class TestOptions:
    @pytest.mark.variant_cases(but=["options0-2-4", "options5--1-9"])
    @pytest.mark.parametrize(
        ("options", "after", "until"),
        [
            ({"afterVersion": 2, "untilVersion": 4}, 2, 4),
            ({"AFTERVERSION": "6"}, 6, 9),
            ({"afterVersion": -1, "untilVersion": 6}, -1, 6),
            ({"afterTimestamp": "{6}"}, 6, 9),
            ({"afterTimestamp": "{2}", "untilTimestamp": "{4}"}, 2, 4),
            ({"afterTimestamp": "1999-01-01", "untilTimestamp": "2999-01-01"}, -1, 9),
        ],
    )
    def test_by_name_and_by_path(
        self,
        spark: SparkSession,
        history: Table,
        tmp_path: Path,
        options: dict[str, object],
        after: int,
        until: int,
    ) -> None:
        given = {key: self._time(spark, history, value) for key, value in options.items()}
        reader = spark.read.options(**given)  # type: ignore[arg-type]
        path = str(history.path)
        for data in (
            reader.table("by_name"),
            reader.format("delta").load(path),
            reader.format("delta").option("path", path).load(),
        ):
            assert found(data) == list(changed(after, until))
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        for name in ("by_name", str(history)):
            data = spark.sql(f"SELECT x.* FROM {name} WITH ({listed}) AS x WHERE x.id > 0")
            assert found(data) == list(changed(after, until))

    def _time(self, spark: SparkSession, table: Table, value: object) -> object:
        """Put the time of a version in the place of its number."""
        if not (isinstance(value, str) and value.startswith("{")):
            return value
        first = spark.sql(f"SELECT CAST({committed(table, int(value[1]))} AS STRING)").first()
        assert first is not None
        return first[0]

    def test_it_skips_files_too(self, spark: SparkSession, history: Table) -> None:
        reader = spark.read.format("delta").option("afterVersion", 6).option("untilVersion", 7)
        assert files_read(reader.load(str(history.path)).select("id")) == [1]

    @pytest.mark.parametrize(
        ("options", "condition"),
        [
            ({"untilVersion": 4}, "INTERLOCK_RANGE_OPTIONS"),
            ({"untilTimestamp": "2020-01-01"}, "INTERLOCK_RANGE_OPTIONS"),
            ({"afterVersion": 1, "untilTimestamp": "2020-01-01"}, "INTERLOCK_RANGE_OPTIONS"),
            ({"afterVersion": 1, "afterTimestamp": "2020-01-01"}, "INTERLOCK_RANGE_OPTIONS"),
            ({"afterVersion": 1, "versionAsOf": 2}, "INTERLOCK_RANGE_OPTIONS"),
            ({"afterVersion": 1, "timestampAsOf": "2020-01-01"}, "INTERLOCK_RANGE_OPTIONS"),
            ({"afterVersion": 1, "readChangeFeed": True}, "INTERLOCK_RANGE_OPTIONS"),
            ({"afterVersion": "one"}, "INTERLOCK_INVALID_ARGUMENT"),
            ({"afterTimestamp": "yesterday's"}, "INTERLOCK_INVALID_ARGUMENT"),
            ({"afterVersion": 10}, "INTERLOCK_VERSION_NOT_THERE"),
            ({"afterVersion": 3, "untilVersion": 2}, "INTERLOCK_RANGE_BACKWARDS"),
        ],
    )
    def test_errors(
        self, spark: SparkSession, history: Table, options: dict[str, object], condition: str
    ) -> None:
        reader = spark.read.options(**options)  # type: ignore[arg-type]
        with pytest.raises(InterlockError) as caught:
            reader.table("by_name")
        assert caught.value.getCondition() == condition
        with pytest.raises(InterlockError) as caught:
            reader.format("delta").load(str(history.path))
        assert caught.value.getCondition() == condition

    def test_streams_have_none(self, spark: SparkSession, history: Table) -> None:
        reader = spark.readStream.option("afterVersion", 2)
        with pytest.raises(InterlockError, match="afterVersion, readStream"):
            reader.table("by_name")
        with pytest.raises(InterlockError, match="afterVersion, readStream"):
            reader.format("delta").load(str(history.path))

    def test_other_formats_are_left_alone(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.range(3).write.parquet(str(tmp_path / "p"))
        reader = spark.read.option("afterVersion", 2).option("timestampAsOf", "2999-01-01")
        assert reader.parquet(str(tmp_path / "p")).count() == 3


class TestChangeDataFeed:
    """A range returns the rows whose last change is in the change data feed of the range."""

    RANGES = ((0, 2), (2, 4), (2, 7), (5, 7), (6, 9))

    def test_table_changes_agree(self, spark: SparkSession, history: Table) -> None:
        for after, until in self.RANGES:
            feed = spark.sql(
                f"SELECT id, v, p, _commit_version FROM "
                f"table_changes('by_name', {after} + 1, {until}) "
                "WHERE _change_type IN ('insert', 'update_postimage')"
            )
            live = spark.sql(
                f"SELECT *, _metadata.row_commit_version FROM {history} "
                f"VERSION BETWEEN {after} AND {until}"
            )
            brought = Counter(found(feed))
            assert all(brought[row] for row in found(live)), (after, until)
