"""`interlock.*` properties: what a policy brings with it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock._session import DELTA_CATALOG
from interlock.errors import InterlockError, MetadataChangedError, ProtocolChangedError
from pyspark.sql import SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.own_policy import under
from tests.kit.properties import (
    POLICIES,
    REQUIRED,
    check_policy,
    definitions,
    latest,
    operations,
)
from tests.kit.support import Table, deltalake_rows, make_table, rows, sql_race, tags, versions

EXAMPLE = ((1, "a"), (2, "b"), (3, "c"))
BACKFILLED = ["UPGRADE PROTOCOL", "ROW TRACKING BACKFILL", "SET TBLPROPERTIES"]


class TestNewTables:
    @pytest.mark.parametrize("policy", POLICIES)
    def test_the_first_commit_has_all_that_the_policy_requires(
        self, spark: SparkSession, table_path: Path, policy: str
    ) -> None:
        table = make_table(spark, table_path, policy=policy, statements=())
        first = definitions(table)[0]
        assert (first.policy, first.is_complete) == (policy, True)
        assert ("deletionVectors" in first.features) == (policy == "maxcompute_delta")
        assert "delta.enableDeletionVectors" not in first.properties
        assert tags(table, 0)["interlock.policy"] == policy

    @pytest.mark.variant_cases(but=["maxcompute_delta-true"])
    @pytest.mark.parametrize(
        ("policy", "chosen"),
        [
            ("maxcompute_delta", "true"),
            ("maxcompute_delta", "false"),
            ("maxcompute_transactional", "true"),
        ],
    )
    def test_deletion_vectors_are_the_users_choice(
        self, spark: SparkSession, table_path: Path, policy: str, chosen: str
    ) -> None:
        wanted = {"delta.enableDeletionVectors": chosen}
        table = make_table(spark, table_path, policy=policy, properties=wanted)
        check_policy(table, policy)
        assert latest(table).properties["delta.enableDeletionVectors"] == chosen
        spark.sql(f"DELETE FROM {table} WHERE id = 1")
        assert any(table.path.glob("deletion_vector*")) == (chosen == "true")
        assert rows(spark, table) == deltalake_rows(table) == EXAMPLE[1:]

    @pytest.mark.parametrize("key", [*REQUIRED, "DELTA.ENABLEROWTRACKING"])
    def test_a_contrary_setting_is_refused(
        self, spark: SparkSession, table_path: Path, key: str
    ) -> None:
        with pytest.raises(InterlockError) as caught:
            make_table(spark, table_path, properties={key: "false"})
        assert caught.value.getCondition() == "INTERLOCK_REQUIRED_PROPERTY"
        assert key.lower() in str(caught.value).lower()
        assert not table_path.exists()

    def test_a_contrary_default_of_the_session_is_overruled(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        clause = under("serializable")
        off = {"spark.databricks.delta.properties.defaults.enableRowTracking": "false"}
        with set_for_now(spark, off):
            spark.sql(f"CREATE TABLE {Table(table_path)} (id INT) USING delta {clause}")
        check_policy(Table(table_path), "serializable")


class TestAlterTable:
    @pytest.mark.parametrize("policy", ["maxcompute_delta", "maxcompute_transactional"])
    def test_an_existing_table_gets_what_the_policy_requires_before_it(
        self, spark: SparkSession, table_path: Path, policy: str
    ) -> None:
        table = make_table(spark, table_path, policy=None)
        spark.sql(f"ALTER TABLE {table} SET {under(policy)}")
        assert operations(table, since=3) == BACKFILLED
        assert [d.policy for d in definitions(table)] == [None] * 5 + [policy]
        check_policy(table, policy)
        assert rows(spark, table) == deltalake_rows(table) == EXAMPLE

    @pytest.mark.parametrize(
        "statement",
        [
            f"ALTER TABLE other_catalog SET {under('maxcompute_delta')}",
            "CALL interlock.set_policy('other_catalog', 'maxcompute_delta')",
        ],
    )
    def test_in_a_catalog_that_is_not_interlocks(self, spark: SparkSession, statement: str) -> None:
        spark.sql("DROP TABLE IF EXISTS other_catalog")
        spark.sql("CREATE TABLE other_catalog USING delta AS SELECT 1 AS id")
        session = spark.newSession()
        session.conf.set("spark.sql.catalog.spark_catalog", DELTA_CATALOG)
        with pytest.raises(InterlockError) as caught:
            session.sql(statement.replace("maxcompute_delta", "maxcompute_detla"))
        assert caught.value.getCondition() == "INTERLOCK_UNKNOWN_POLICY"
        session.sql(statement)
        table = location(spark, "other_catalog")
        assert operations(table, since=1) == BACKFILLED
        check_policy(table, "maxcompute_delta")
        assert deltalake_rows(table) == ((1,),)

    def test_an_empty_table(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, policy=None, statements=())
        spark.sql(f"ALTER TABLE {table} SET {under('maxcompute_delta')}")
        check_policy(table, "maxcompute_delta")

    def test_a_table_with_row_tracking_needs_one_commit(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        tracked = {"delta.enableRowTracking": "true"}
        table = make_table(spark, table_path, policy=None, properties=tracked)
        spark.sql(f"ALTER TABLE {table} SET {under('maxcompute_delta')}")
        assert operations(table, since=3) == ["SET TBLPROPERTIES"]
        check_policy(table, "maxcompute_delta")

    def test_another_policy_takes_its_place_in_one_commit(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, policy="maxcompute_transactional")
        spark.sql(f"ALTER TABLE {table} SET {under('maxcompute_delta')}")
        assert versions(table) == [0, 1, 2, 3]
        check_policy(table, "maxcompute_delta")
        assert tags(table, 3) == {
            "interlock.class": "METADATA",
            "interlock.policy": "maxcompute_delta",
        }

    @pytest.mark.parametrize(
        "clause",
        [
            "SET TBLPROPERTIES ('{key}' = 'false')",
            "UNSET TBLPROPERTIES ('{key}')",
            "UNSET TBLPROPERTIES IF EXISTS ('a', '{key}')",
        ],
    )
    @pytest.mark.parametrize("key", REQUIRED)
    def test_what_a_policy_requires_cannot_be_taken_away(
        self, spark: SparkSession, table_path: Path, clause: str, key: str
    ) -> None:
        table = make_table(spark, table_path)
        statement = f"ALTER TABLE {table} {clause.format(key=key)}"
        refused(spark, table, statement, "INTERLOCK_REQUIRED_PROPERTY", key)

    @pytest.mark.parametrize(
        ("feature", "key"),
        [
            ("rowTracking", "delta.enableRowTracking"),
            ("inCommitTimestamp", "delta.enableInCommitTimestamps"),
            ("deletionVectors", "delta.feature.deletionVectors"),
        ],
    )
    def test_what_a_policy_requires_cannot_be_dropped(
        self, spark: SparkSession, table_path: Path, feature: str, key: str
    ) -> None:
        table = make_table(spark, table_path)
        statement = f"ALTER TABLE {table} DROP FEATURE {feature}"
        refused(spark, table, statement, "INTERLOCK_REQUIRED_PROPERTY", key)

    def test_unset_ends_the_policy_and_leaves_the_rest(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path)
        spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('interlock.policy')")
        left = latest(table)
        assert left.policy is None
        assert left.properties.items() >= REQUIRED.items()
        assert left.features >= {"rowTracking", "inCommitTimestamp", "deletionVectors"}
        assert tags(table, 3) == {}
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
        assert tags(table, 4) == {}
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'false')")
        assert versions(table) == [0, 1, 2, 3, 4, 5]
        assert rows(spark, table) == (*EXAMPLE, (4, "d"))


class TestJobsInFlight:
    """A change of policy ends the jobs that began before it."""

    @pytest.mark.variant_cases(but=["None*"])
    @pytest.mark.parametrize(
        ("before", "change", "after"),
        [
            ("maxcompute_delta", f"SET {under('serializable')}", "serializable"),
            ("maxcompute_delta", "UNSET TBLPROPERTIES ('interlock.policy')", None),
            (None, f"SET {under('maxcompute_delta')}", "maxcompute_delta"),
        ],
    )
    def test_a_change_of_policy_ends_them(
        self,
        spark: SparkSession,
        table_path: Path,
        before: str | None,
        change: str,
        after: str | None,
    ) -> None:
        later = "INSERT OVERWRITE {t} VALUES (4, 'd')"
        table = make_table(spark, table_path, policy=before)
        altered, lost = sql_race(spark, table, f"ALTER TABLE {{t}} {change}", later)
        assert (altered.error, lost.held, lost.version) == (None, True, None)
        assert isinstance(lost.error, MetadataChangedError | ProtocolChangedError)
        check_policy(table, after)
        assert rows(spark, table) == deltalake_rows(table) == EXAMPLE


def location(spark: SparkSession, name: str) -> Table:
    detail = spark.sql(f"DESCRIBE DETAIL {name}").first()
    assert detail is not None
    return Table(Path(detail["location"].removeprefix("file:")))


def refused(spark: SparkSession, table: Table, statement: str, condition: str, *words: str) -> None:
    """Check that a statement fails with the reason, and that nothing of it was written."""
    before = versions(table)
    with pytest.raises(InterlockError) as caught:
        spark.sql(statement)
    assert caught.value.getCondition() == condition
    assert all(word in str(caught.value) for word in words)
    assert versions(table) == before
