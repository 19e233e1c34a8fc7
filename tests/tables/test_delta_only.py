"""`interlock.*` on what is no Delta table is refused; names that nearly are ours are warned of."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from interlock.errors import InterlockError
from pyspark.sql import SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.spark_version import since_4_2
from tests.kit.support import Table, log_of, make_table

PROPERTY = "'interlock.policy' = 'maxcompute_delta'"
OTHERS = (
    "CREATE TABLE {new} (id INT) USING parquet TBLPROPERTIES ({p})",
    "CREATE TABLE {new} USING parquet TBLPROPERTIES ({p}) AS SELECT 1 AS id",
    "CREATE TABLE {new} (id INT) TBLPROPERTIES ({p})",
    "CREATE TABLE {new} (id INT) USING csv OPTIONS ({p})",
    "CREATE TABLE {new} LIKE parquet_table TBLPROPERTIES ({p})",
    pytest.param(
        "CREATE TABLE {new} LIKE delta_table USING parquet TBLPROPERTIES ({p})", marks=since_4_2
    ),
    "ALTER TABLE parquet_table SET TBLPROPERTIES ({p})",
    "CREATE VIEW {new} TBLPROPERTIES ({p}) AS SELECT 1 AS id",
    "ALTER VIEW a_view SET TBLPROPERTIES ({p})",
    "CREATE OR REPLACE VIEW a_view TBLPROPERTIES ({p}) AS SELECT 1 AS id",
    "CREATE DATABASE {new} WITH DBPROPERTIES ({p})",
    "ALTER DATABASE default SET DBPROPERTIES ({p})",
)
WRITERS = (
    "df.writeTo(new).using('parquet').tableProperty(*p).create()",
    "df.write.format('parquet').option(*p).saveAsTable(new)",
    "spark.catalog.createTable(new, source='parquet', schema=df.schema, **dict([p]))",
)
numbers = itertools.count()


@pytest.fixture(scope="module")
def others(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE parquet_table (id INT) USING parquet")
    spark.sql("CREATE TABLE delta_table (id INT) USING delta")
    spark.sql("CREATE VIEW a_view AS SELECT 1 AS id")


@pytest.mark.usefixtures("others")
class TestRefused:
    def check_nothing_new(self, spark: SparkSession, new: str) -> None:
        assert not spark.catalog.tableExists(new)
        assert not spark.catalog.databaseExists(new)
        for name in ("parquet_table", "a_view"):
            shown = spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
            assert not [row for row in shown if row["key"].startswith("interlock")]

    @pytest.mark.variant_cases(but=["CREATE TABLE*"])
    @pytest.mark.parametrize("statement", OTHERS)
    def test_statements(self, spark: SparkSession, statement: str) -> None:
        new = f"other_{next(numbers)}"
        with pytest.raises(InterlockError) as caught:
            spark.sql(statement.format(new=new, p=PROPERTY))
        assert caught.value.getCondition() == "INTERLOCK_PROPERTY_NEEDS_DELTA"
        assert "interlock.policy" in str(caught.value)
        self.check_nothing_new(spark, new)
        spark.sql(statement.format(new=new, p="'mine' = 'yes'"))

    @pytest.mark.parametrize("code", WRITERS)
    def test_data_frames(self, spark: SparkSession, code: str) -> None:
        new = f"other_{next(numbers)}"
        known = {"spark": spark, "df": spark.range(1), "new": new}
        with pytest.raises(InterlockError) as caught:
            exec(code, {**known, "p": ("interlock.policy", "maxcompute_delta")})
        assert caught.value.getCondition() == "INTERLOCK_PROPERTY_NEEDS_DELTA"
        self.check_nothing_new(spark, new)
        exec(code, {**known, "p": ("mine", "yes")})

    def test_options_of_a_path(self, spark: SparkSession, tmp_path: Path) -> None:
        writer = spark.range(1).write.format("parquet").option("interlock.policy", "x")
        with pytest.raises(InterlockError) as caught:
            writer.save(str(tmp_path / "files"))
        assert caught.value.getCondition() == "INTERLOCK_PROPERTY_AS_OPTION"
        assert not (tmp_path / "files").exists()

    def test_what_is_there_can_be_taken_away(self, spark: SparkSession) -> None:
        spark.sql("ALTER TABLE parquet_table UNSET TBLPROPERTIES IF EXISTS ('interlock.policy')")

    def test_a_delta_table_like_another_gets_it(self, spark: SparkSession) -> None:
        for source, using in (("delta_table", ""), ("parquet_table", "USING delta ")):
            new = f"other_{next(numbers)}"
            spark.sql(f"CREATE TABLE {new} LIKE {source} {using}TBLPROPERTIES ({PROPERTY})")
            shown = spark.sql(f"SHOW TBLPROPERTIES {new} ('interlock.policy')").first()
            assert shown is not None
            assert shown["value"] == "maxcompute_delta"


class TestWarnings:
    """A name is warned of once per process, so each test uses its own names."""

    @pytest.mark.parametrize(
        ("key", "meant"),
        [
            ("interlok.policy", "interlock.policy"),
            ("inter_lock.polcy", "interlock.policy"),
            ("interlok.compaction.TargetFileSize", "interlock.compaction.targetFileSize"),
        ],
    )
    def test_properties(self, spark: SparkSession, table_path: Path, key: str, meant: str) -> None:
        with log_of(spark, "io.interlock.spark.properties.Misspelt") as log:
            table = make_table(spark, table_path, policy=None, properties={key: "1", "mine": "yes"})
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{key}' = '2')")
        assert log.toString().splitlines() == [
            f"Nothing reads the table property {key}: did you mean {meant}?"
        ]

    def test_other_names_are_left_alone(self, spark: SparkSession, table_path: Path) -> None:
        others = {"policy": "1", "owner.policy": "1", "interval.policy.days": "1"}
        settings = {
            "spark.interlock.policies.mine": "x",
            "spark.sql.shuffle.partitions": "2",
        }
        with (
            log_of(spark, "io.interlock.spark.properties.Misspelt") as log,
            set_for_now(spark, settings),
        ):
            make_table(spark, table_path, policy=None, properties=others)
            spark.sql("SET spark.interlock.coordinator.main.url = jdbc:postgresql://h/d")
            spark.sql("RESET spark.interlock.coordinator.main.url")
        assert log.toString() == ""

    @pytest.mark.parametrize(
        ("key", "meant"),
        [
            ("spark.interlock.defaultPolcy", "spark.interlock.defaultPolicy"),
            ("spark.interlock.policy.mine", "spark.interlock.policies.<name>"),
        ],
    )
    def test_set(self, spark: SparkSession, key: str, meant: str) -> None:
        with log_of(spark, "io.interlock.spark.properties.Misspelt") as log:
            for _ in range(2):
                spark.sql(f"SET {key} = maxcompute_delta")
            spark.sql(f"RESET {key}")
        assert log.toString().splitlines() == [
            f"Nothing reads the configuration {key}: did you mean {meant}?"
        ]

    def test_a_setting_of_the_session(self, spark: SparkSession, table_path: Path) -> None:
        """`spark.conf.set` is no statement: it is seen when a table is made."""
        wrong = {"spark.interlock.defaultPolicies": "maxcompute_delta"}
        with (
            log_of(spark, "io.interlock.spark.properties.Misspelt") as log,
            set_for_now(spark, wrong),
        ):
            spark.sql(f"CREATE TABLE {Table(table_path)} (id INT) USING delta")
        assert "did you mean spark.interlock.defaultPolicy?" in log.toString()
