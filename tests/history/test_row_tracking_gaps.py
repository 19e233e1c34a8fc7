"""Ranges over versions in which rows did not keep the version of their last change.

They are refused with the first version that a range may begin with, and that one works.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import interlock
import pytest
from interlock.errors import UsageError
from pyspark.sql import SparkSession

from tests.kit.ranges import found
from tests.kit.support import Table, commit_info, latest_version, make_table, sql_race

COPYING = {"delta.enableDeletionVectors": "false"}
TRACKED = {**COPYING, "delta.enableRowTracking": "true"}
ON, OFF = (
    f"ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.enableRowTracking' = '{to}')"
    for to in ("true", "false")
)
INSERT = "INSERT INTO {t} VALUES (1, 'a'), (2, 'b')"
UPDATE = "UPDATE {t} SET v = 'z' WHERE id = 1"
LATER = "INSERT INTO {t} VALUES (3, 'c')"


def make(spark: SparkSession, path: Path, *statements: str, tracked: bool = True) -> Table:
    return make_table(
        spark,
        path,
        policy=None,
        properties=TRACKED if tracked else COPYING,
        statements=statements,
    )


@pytest.fixture(scope="module")
def gap(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Row tracking is off in versions 2 and 3; version 3 copies the row 2b."""
    path = tmp_path_factory.mktemp("gap") / "t"
    return make(spark, path, INSERT, OFF, UPDATE, ON, LATER)


def refusal(
    read: Callable[..., object], *args: object, condition: str = "ROW_TRACKING_TOO_LATE"
) -> str:
    with pytest.raises(UsageError) as caught:
        read(*args)
    assert caught.value.getCondition() == f"INTERLOCK_{condition}"
    return str(caught.value)


def check_begins(spark: SparkSession, table: Table, first: int, after: list[int]) -> None:
    """Check that ranges to the latest version begin with `first`, and not with one of `after`."""
    last = latest_version(table)
    asked = f"SELECT * FROM {table} VERSION BETWEEN {{}} AND {last}"
    for version in after:
        message = refusal(spark.sql, asked.format(version))
        assert f"at version {first} or a later one" in message, version
    for version in (first, -1):
        spark.sql(asked.format(version))


class TestOffAndOn:
    def test_every_way_to_ask_refuses(self, spark: SparkSession, gap: Table) -> None:
        times = [commit_info(gap, version)["timestamp"] for version in (1, 5)]
        first, last = (f"timestamp_millis({time})" for time in times)
        ways: list[Callable[[], object]] = [
            lambda: spark.sql(f"SELECT * FROM {gap} VERSION BETWEEN 1 AND 5"),
            lambda: spark.sql(f"SELECT * FROM {gap} TIMESTAMP BETWEEN {first} AND {last}"),
            lambda: spark.sql(f"SELECT * FROM table_between_versions('{gap}', 1, 5)"),
            lambda: spark.read.option("afterVersion", 1).format("delta").load(str(gap.path)),
            lambda: interlock.table(spark, str(gap)).between(versions=(1, 5)),
            lambda: interlock.table(spark, str(gap)).diff(from_version=1, to_version=5),
            lambda: interlock.table(spark, str(gap)).diff(from_version=5, to_version=1),
        ]
        for ask in ways:
            message = refusal(ask)
            assert "Row tracking was off before version 4" in message
            assert "at version 4 or a later one" in message

    def test_behind_it_ranges_are_right(self, spark: SparkSession, gap: Table) -> None:
        check_begins(spark, gap, first=4, after=[0, 1, 2, 3])
        assert found(spark.sql(f"SELECT * FROM {gap} VERSION BETWEEN 4 AND 5")) == [(3, "c")]
        everything = [(1, "z"), (2, "b"), (3, "c")]
        assert found(spark.sql(f"SELECT * FROM {gap} VERSION BETWEEN -1 AND 5")) == everything

    def test_before_it_they_are_as_well(self, spark: SparkSession, gap: Table) -> None:
        rows = spark.sql(f"SELECT * FROM {gap} VERSION BETWEEN 0 AND 1")
        assert found(rows) == [(1, "a"), (2, "b")]

    def test_an_end_inside_it_is_told_where_to_begin(self, spark: SparkSession, gap: Table) -> None:
        message = refusal(
            spark.sql,
            f"SELECT * FROM {gap} VERSION BETWEEN 1 AND 3",
            condition="ROW_TRACKING_REQUIRED",
        )
        assert "It is on by now: ask for ranges that begin with version 4" in message
        assert "ALTER TABLE" not in message


class TestOtherGaps:
    def test_before_a_backfill(self, spark: SparkSession, table_path: Path) -> None:
        """Turning row tracking on takes versions 3 to 5."""
        table = make(spark, table_path, INSERT, LATER, ON, tracked=False)
        message = refusal(
            spark.sql,
            f"SELECT * FROM {table} VERSION BETWEEN 1 AND 2",
            condition="ROW_TRACKING_REQUIRED",
        )
        assert "It is on by now: ask for ranges that begin with version 5" in message
        check_begins(spark, table, first=5, after=[1, 4])

    @pytest.mark.variant
    def test_a_restore_to_a_version_without_it(self, spark: SparkSession, table_path: Path) -> None:
        """Its files get the version of the RESTORE, although the policy keeps row tracking on."""
        policy = "ALTER TABLE {t} SET TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
        table = make(spark, table_path, INSERT, policy, UPDATE, tracked=False)
        before = latest_version(table)
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
        spark.sql(f"INSERT INTO {table} VALUES (3, 'c')")
        check_begins(spark, table, first=before + 1, after=[before - 1, before])
        rows = spark.sql(f"SELECT * FROM {table} VERSION BETWEEN {before + 1} AND {before + 2}")
        assert found(rows) == [(3, "c")]

    @pytest.mark.variant
    def test_a_restore_inside_row_tracking_is_none(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make(spark, table_path, INSERT, UPDATE, "RESTORE TABLE {t} TO VERSION AS OF 1")
        assert found(spark.sql(f"SELECT * FROM {table} VERSION BETWEEN 1 AND 3")) == []
        assert found(spark.sql(f"SELECT * FROM {table} VERSION BETWEEN 0 AND 3")) == [
            (1, "a"),
            (2, "b"),
        ]

    def test_an_update_that_began_without_it(self, spark: SparkSession, table_path: Path) -> None:
        """Delta lets it commit after the ALTER TABLE, but it has kept no row versions."""
        supported = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.rowTracking' = 'supported')"
        table = make(spark, table_path, supported, INSERT, tracked=False)
        turned_on, updated = sql_race(spark, table, ON, UPDATE)
        assert turned_on.ok
        assert updated.ok
        assert updated.version is not None
        check_begins(spark, table, first=updated.version, after=[updated.version - 1])
