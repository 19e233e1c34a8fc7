"""`VERSION BETWEEN`: the rows, the files, and where it may stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from interlock.errors import InterlockError
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from tests.kit.ranges import KINDS, LIVE, changed, files_read, found, make_history
from tests.kit.spark_version import since_4_2
from tests.kit.support import Table, make_table


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return make_history(spark, tmp_path_factory.mktemp("history") / "t", "partitioned")


@pytest.fixture(scope="module")
def named(spark: SparkSession) -> str:
    """A table by name: version 1 brings 1a and 2b, version 2 3c, version 3 makes 1z of 1a."""
    spark.sql("CREATE DATABASE ranges")
    spark.sql(
        "CREATE TABLE ranges.t (id INT, v STRING) USING delta "
        "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
    )
    spark.sql("INSERT INTO ranges.t VALUES (1, 'a'), (2, 'b')")
    spark.sql("INSERT INTO ranges.t VALUES (3, 'c')")
    spark.sql("UPDATE ranges.t SET v = 'z' WHERE id = 1")
    return "ranges.t"


class TestRows:
    @pytest.mark.variant
    @pytest.mark.parametrize("kind", KINDS)
    def test_of_every_range(self, spark: SparkSession, table_path: Path, kind: str) -> None:
        """Also after compaction, a no-op update and a RESTORE, which brings back rows."""
        table = make_history(spark, table_path, kind)
        ranges = [(-1, 9), (0, 2), (2, 4), (3, 6), (5, 7), (6, 9)]
        legs = [
            f"SELECT {a} AS a, {b} AS b, *, _metadata.row_commit_version AS since "
            f"FROM {table} VERSION BETWEEN {a} AND {b}"
            for a, b in ranges
        ]
        rows = spark.sql(" UNION ALL ".join(legs)).collect()
        for a, b in ranges:
            read = {(r.id, r.v, r.p): r.since for r in rows if (r.a, r.b) == (a, b)}
            assert tuple(sorted(read)) == changed(a, b), (a, b)
            assert all(LIVE[b][row] == since for row, since in read.items()), (a, b)
        assert len(rows) == sum(len(changed(a, b)) for a, b in ranges)

    def test_filters_and_columns_are_pushed_down(self, spark: SparkSession, history: Table) -> None:
        data = spark.sql(f"SELECT id FROM {history} VERSION BETWEEN 2 AND 6 WHERE id > 1 AND p = 2")
        assert found(data) == [(4,)]
        plan = data._jdf.queryExecution().executedPlan().toString()
        assert "GreaterThan(id,1)" in plan
        assert "v#" not in plan


class TestFilesRead:
    @pytest.fixture(scope="module")
    @classmethod
    def appended(cls, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
        """Partition p gets one file at each of the versions 1 to 13; those of 1 and 2 are gone."""
        path = tmp_path_factory.mktemp("appended") / "t"
        table = make_table(
            spark,
            path,
            columns="(id INT, p INT) USING delta PARTITIONED BY (p)",
            statements=tuple(f"INSERT INTO {{t}} VALUES ({n}, {n % 2})" for n in range(1, 14)),
        )
        old = spark.sql(f"SELECT _metadata.file_path AS f FROM {table} VERSION AS OF 2").collect()
        for row in old:
            Path(row.f.removeprefix("file:")).unlink()
        return table

    @pytest.mark.parametrize(
        ("query", "rows", "files"),
        [
            ("SELECT id FROM {t} VERSION BETWEEN 2 AND 4", [3, 4], [2]),
            ("SELECT id FROM {t} VERSION BETWEEN 2 AND 3", [3], [1]),
            ("SELECT id FROM {t} VERSION BETWEEN 2 AND 4 WHERE id = 4", [4], [1]),
            ("SELECT id FROM {t} VERSION BETWEEN 2 AND 4 WHERE p = 1", [3], [1]),
            ("SELECT id FROM {t} VERSION BETWEEN 4 AND 4", [], [0]),
            ("SELECT id FROM {t} VERSION BETWEEN 2 AND 13", [*range(3, 14)], [11]),
            ("SELECT _metadata.row_id FROM {t} VERSION BETWEEN 3 AND 4", [3], [1]),
            (
                "SELECT id FROM {t} VERSION BETWEEN 2 AND 3 "
                "UNION ALL SELECT id FROM {t} VERSION BETWEEN 3 AND 4",
                [3, 4],
                [1, 1],
            ),
        ],
    )
    def test_older_ones_are_not_opened(
        self, spark: SparkSession, appended: Table, query: str, rows: list[int], files: list[int]
    ) -> None:
        data = spark.sql(query.format(t=appended))
        assert files_read(data) == files
        assert found(data) == [(row,) for row in rows]

    def test_stock_time_travel_opens_them(self, spark: SparkSession, appended: Table) -> None:
        """The test above could not fail if these files were not needed here."""
        data = spark.sql(
            f"SELECT id FROM {appended} VERSION AS OF 4 WHERE _metadata.row_commit_version > 2"
        )
        with pytest.raises(Exception, match="FILE_NOT_EXIST"):
            data.collect()

    def test_two_ranges_of_a_table_are_two_plans(
        self, spark: SparkSession, appended: Table
    ) -> None:
        """Spark reuses no exchange or cache of one range for another."""
        both = spark.sql(
            f"SELECT a.n, b.n, c.n "
            f"FROM (SELECT count(*) AS n FROM {appended} VERSION BETWEEN 2 AND 4) a, "
            f"(SELECT count(*) AS n FROM {appended} VERSION BETWEEN 3 AND 4) b, "
            f"(SELECT count(*) AS n FROM {appended} VERSION BETWEEN 2 AND 4) c"
        )
        assert found(both) == [(2, 1, 2)]
        cached = spark.sql(f"SELECT id FROM {appended} VERSION BETWEEN 2 AND 4").cache()
        assert cached.count() == 2
        again = spark.sql(f"SELECT id FROM {appended} VERSION BETWEEN 2 AND 4")
        other = spark.sql(f"SELECT id FROM {appended} VERSION BETWEEN 3 AND 4")
        executions: list[Any] = [data._jdf.queryExecution() for data in (cached, again, other)]
        plans = [execution.withCachedData().toString() for execution in executions]
        assert ["InMemoryRelation" in plan for plan in plans] == [True, True, False]
        scans = [execution.analyzed().collectLeaves().apply(0) for execution in executions]
        files = [scan.relation().location() for scan in scans]
        assert [files[0].equals(each) for each in files] == [True, True, False]
        assert found(other) == [(4,)]
        cached.unpersist()


class TestWhereItMayStand:
    @pytest.mark.parametrize(
        ("query", "rows"),
        [
            ("SELECT * FROM {t} VERSION BETWEEN 1 AND 3", [(1, "z"), (3, "c")]),
            ("SELECT t.id FROM {t} VERSION BETWEEN 2 AND 3 WHERE ranges.t.v = 'z'", [(1,)]),
            ("SELECT x.id FROM {t} VERSION BETWEEN 2 AND 3 AS x WHERE x.v = 'z'", [(1,)]),
            ("SELECT n FROM {t} VERSION BETWEEN 2 AND 3 x (n, w)", [(1,)]),
            ("SELECT id FROM {t} FOR VERSION BETWEEN 2 AND 3", [(1,)]),
            ("SELECT id FROM {t} FOR SYSTEM_VERSION BETWEEN 2 AND 3", [(1,)]),
            ("select id from {t} version between 2 and 3", [(1,)]),
            ("SELECT id FROM {t}\nVERSION\nBETWEEN /* ä𝄞 */ 2 -- 2\nAND 3 WHERE v\n= 'z'", [(1,)]),
            ("SELECT '𝄞', id FROM {t} VERSION BETWEEN 2 AND 3;", [("𝄞", 1)]),
            ("SELECT id FROM {t} VERSION BETWEEN 1 + 1 AND CAST('3' AS INT)", [(1,)]),
            ("SELECT id FROM {t} VERSION BETWEEN abs(-2) AND (1 + 2) WHERE id < 9", [(1,)]),
            (
                "SELECT id FROM {t} VERSION BETWEEN CASE WHEN 1 < 2 AND 2 < 3 THEN 2 END AND 3",
                [(1,)],
            ),
            ("SELECT id FROM {t} VERSION BETWEEN -1 AND 1", [(1,), (2,)]),
            ("SELECT id FROM {t} VERSION BETWEEN 2 AND 3 TABLESAMPLE (9 ROWS) AS x", [(1,)]),
            ("SELECT id FROM IDENTIFIER('ranges.' || 't') VERSION BETWEEN 2 AND 3", [(1,)]),
            ("SELECT id FROM `ranges` . `t` VERSION BETWEEN 2 AND 3", [(1,)]),
            ("SELECT id FROM spark_catalog.ranges.t VERSION BETWEEN 2 AND 3", [(1,)]),
            ("SELECT id FROM table_between_versions('ranges.t', 2, 1 + 2)", [(1,)]),
            (
                "SELECT a.id, b.v FROM {t} VERSION BETWEEN 0 AND 2 a "
                "JOIN {t} VERSION BETWEEN 2 AND 3 b ON a.id = b.id",
                [(1, "z")],
            ),
            (
                "SELECT a.id, b.id FROM {t} VERSION BETWEEN 1 AND 2 a, {t} "
                "VERSION BETWEEN 2 AND 3 b",
                [(3, 1)],
            ),
            (
                "WITH c AS (SELECT * FROM {t} VERSION BETWEEN 2 AND 3) "
                "SELECT c.id FROM c LEFT JOIN {t} VERSION BETWEEN 1 AND 3 ON c.id = t.id",
                [(1,)],
            ),
            (
                "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t} VERSION BETWEEN 1 AND 2) "
                "AND EXISTS (SELECT 1 FROM {t} VERSION BETWEEN 2 AND 3)",
                [(3,)],
            ),
            (
                "SELECT id FROM {t} VERSION AS OF 1 EXCEPT "
                "SELECT id FROM {t} VERSION BETWEEN 2 AND 3",
                [(2,)],
            ),
            ("FROM {t} VERSION BETWEEN 2 AND 3 |> SELECT id", [(1,)]),
            (
                "SELECT version BETWEEN 1 AND 2, (NOT version BETWEEN 1 AND 2), x.version AS of, "
                "count(DISTINCT version BETWEEN 1 AND 2) FILTER (WHERE version BETWEEN 1 AND 2) "
                "FROM (SELECT id AS version FROM {t} VERSION BETWEEN 2 AND 3) x "
                "WHERE version BETWEEN 1 AND 2 AND (SELECT version BETWEEN 1 AND 2) GROUP BY ALL",
                [(True, False, 1, 1)],
            ),
        ],
    )
    def test_in_a_query(
        self, spark: SparkSession, named: str, query: str, rows: list[tuple[object, ...]]
    ) -> None:
        assert found(spark.sql(query.format(t=named))) == rows

    def test_parameters(self, spark: SparkSession, named: str) -> None:
        query = f"SELECT id FROM {named} VERSION BETWEEN :a AND :a + 1 WHERE id < :n"
        assert found(spark.sql(query, {"a": 2, "n": 9})) == [(1,)]
        assert found(spark.sql(f"SELECT id FROM {named} VERSION BETWEEN ? AND ?", [2, 3])) == [(1,)]

    def test_a_name_with_every_kind_of_quote(self, spark: SparkSession, tmp_path: Path) -> None:
        table = make_table(spark, tmp_path / 'it\'s \\ a "name"', statements=())
        spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
        assert found(spark.sql(f"SELECT id FROM {table} VERSION BETWEEN 0 AND 1")) == [(1,)]

    def test_statements(self, spark: SparkSession, named: str) -> None:
        """INSERT ... SELECT, CTAS, a cached table, MERGE and EXPLAIN."""
        since = f"SELECT * FROM {named} VERSION BETWEEN 1 AND 3"
        policy = "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
        spark.sql(f"CREATE TABLE ranges.copy USING delta {policy} AS {since}")
        spark.sql(f"INSERT INTO ranges.copy {since}")
        assert spark.table("ranges.copy").count() == 4
        spark.sql(
            "MERGE INTO ranges.copy t USING (SELECT id FROM ranges.copy VERSION BETWEEN 0 AND 1) s "
            "ON t.id = s.id AND s.id = 1 WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 'kept'"
        )
        assert found(spark.table("ranges.copy")) == [(3, "kept"), (3, "kept")]
        spark.sql(f"CACHE TABLE ranges_cached AS {since}")
        assert spark.table("ranges_cached").count() == 2
        spark.sql("UNCACHE TABLE ranges_cached")
        (plan,) = spark.sql(f"EXPLAIN {since}").collect()
        assert "RangeFileIndex" in plan[0]

    @since_4_2
    def test_a_view_keeps_it(self, spark: SparkSession, named: str) -> None:
        """The bounds are evaluated each time; the view's own database resolves the name."""
        spark.sql("USE ranges")
        spark.sql("CREATE VIEW v AS SELECT id FROM t VERSION BETWEEN 1 + 1 AND 3")
        spark.sql("CREATE TEMPORARY VIEW w AS SELECT id FROM t VERSION BETWEEN 2 AND 3")
        spark.sql("USE default")
        spark.sql(f"ALTER TABLE {named} SET TBLPROPERTIES ('comment' = 'none')")
        assert found(spark.table("ranges.v")) == found(spark.table("w")) == [(1,)]

    def test_metadata_is_there_and_only_where_it_is_asked_for(
        self, spark: SparkSession, named: str
    ) -> None:
        data = spark.sql(
            f"SELECT *, _metadata.row_commit_version FROM {named} VERSION BETWEEN 2 AND 3"
        )
        assert data.columns == ["id", "v", "row_commit_version"]
        assert found(data) == [(1, "z", 3)]
        assert data.where("_metadata.file_name IS NOT NULL").count() == 1

    @since_4_2
    def test_metadata_of_both_sides_of_a_join(self, spark: SparkSession, named: str) -> None:
        changed = spark.read.option("afterVersion", 2).table(named)
        joined = changed.alias("a").join(changed.alias("b"), expr("a.id = b.id"))
        sides = joined.select("a._metadata.row_commit_version", "b._metadata.row_commit_version")
        assert found(sides) == [(3, 3)]


class TestWhatSparkAccepts:
    """What Spark accepts keeps its meaning, and other text fails with Spark's own error."""

    @pytest.mark.parametrize(
        ("query", "rows"),
        [
            (
                "SELECT version FROM VALUES (1), (5) AS t(version) WHERE version BETWEEN 1 AND 2",
                [1],
            ),
            ("SELECT id FROM VALUES (1), (5) version (id) WHERE version.id BETWEEN 1 AND 2", [1]),
            ("SELECT 1 version", [1]),
            ("SELECT timestamp BETWEEN 1 AND 2 FROM VALUES (1) AS t(timestamp)", [True]),
            ("SELECT ' t VERSION BETWEEN 1 AND 2'", [" t VERSION BETWEEN 1 AND 2"]),
            ("SELECT 1 AS `t VERSION BETWEEN 1 AND 2` -- VERSION BETWEEN 1 AND 2", [1]),
            ("SELECT id FROM version VERSION BETWEEN 0 AND 1", [7]),
            ("SELECT version.id FROM version", [7]),
        ],
    )
    def test_names(self, spark: SparkSession, query: str, rows: list[object]) -> None:
        spark.sql(
            "CREATE TABLE IF NOT EXISTS version USING delta "
            "TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS SELECT 7 AS id"
        )
        assert found(spark.sql(query.replace("0 AND 1", "-1 AND 0"))) == [(row,) for row in rows]

    @pytest.mark.parametrize(
        ("query", "near"),
        [
            ("SELECT a version BETWEEN 1 AND 2 FROM t", "'BETWEEN'"),
            ("SELECT x, a version BETWEEN 1 AND 2 FROM t", "'BETWEEN'"),
            ("SELECT * FROM version BETWEEN 1 AND 2", "'1'"),
            ("SELECT * FROM t VERSION BETWEEN 1", "'BETWEEN'"),
            ("SELECT * FROM t VERSION BETWEEN 1 AND", "'BETWEEN'"),
            ("SELECT * FROM t VERSION BETWEEN 1 AND 2 WHERE v =", "'BETWEEN'"),
            ("SELECT * FROM t VERSION BETWEEN 1 AND 2 JOIN u VERSION BETWEEN 1", "'BETWEEN'"),
            ("SELECT * FROM t VERSION BETWEEN 1 OR 2", "'BETWEEN'"),
            ("SELECT * FROM t VERSION AS OF", "end of input"),
            ("SELEC * FROM t VERSION BETWEEN 1 AND 2", "'SELEC'"),
        ],
    )
    def test_errors(self, spark: SparkSession, query: str, near: str) -> None:
        with pytest.raises(ParseException) as caught:
            spark.sql(query)
        assert f"at or near {near}" in str(caught.value)


class TestErrors:
    @pytest.mark.parametrize(
        ("query", "condition", "words"),
        [
            ("{t} VERSION BETWEEN 3 AND 1", "INTERLOCK_RANGE_BACKWARDS", "version 3|version 1"),
            ("{t} VERSION BETWEEN 1 AND 12", "INTERLOCK_VERSION_NOT_THERE", "version 12|0 to "),
            ("{t} VERSION BETWEEN 12 AND 1", "INTERLOCK_VERSION_NOT_THERE", "version 12|0 to "),
            ("{t} VERSION BETWEEN -2 AND 1", "INTERLOCK_VERSION_NOT_THERE", "version -2"),
            ("{t} VERSION BETWEEN -1 AND -1", "INTERLOCK_VERSION_NOT_THERE", "version -1"),
            ("{t} VERSION BETWEEN NULL AND 1", "INTERLOCK_INVALID_ARGUMENT", "begin|NULL"),
            ("{t} VERSION BETWEEN 1 AND rand()", "INTERLOCK_INVALID_ARGUMENT", "end|rand"),
            ("{t} VERSION BETWEEN 1 AND 1.5", "INTERLOCK_INVALID_ARGUMENT", "1.5|integer"),
            ("{t} VERSION BETWEEN 0 AND (SELECT 1)", "INTERLOCK_INVALID_ARGUMENT", "integer"),
            ("table_between_versions(1, 1, 2)", "INTERLOCK_INVALID_ARGUMENT", "string"),
            ("ranges.view VERSION BETWEEN 0 AND 1", "INTERLOCK_RANGE_NEEDS_TABLE", "a view"),
            ("plain_view VERSION BETWEEN 0 AND 1", "INTERLOCK_RANGE_NEEDS_TABLE", "a view"),
            ("c VERSION BETWEEN 0 AND 1", "INTERLOCK_RANGE_NEEDS_TABLE", "`c`|common table"),
            ("ranges.parquet VERSION BETWEEN 0 AND 1", "INTERLOCK_RANGE_NEEDS_TABLE", "parquet"),
        ],
    )
    def test_ours(
        self, spark: SparkSession, named: str, query: str, condition: str, words: str
    ) -> None:
        spark.sql(f"CREATE VIEW IF NOT EXISTS ranges.view AS SELECT * FROM {named}")
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW plain_view AS SELECT * FROM {named}")
        spark.sql("CREATE TABLE IF NOT EXISTS ranges.parquet (id INT) USING parquet")
        with pytest.raises(InterlockError) as caught:
            spark.sql(f"WITH c AS (SELECT 1) SELECT * FROM {query.format(t=named)}")
        assert caught.value.getCondition() == condition
        assert all(word in str(caught.value) for word in words.split("|"))

    def test_parts_of_a_table(self, spark: SparkSession, history: Table) -> None:
        """A folder of one, and one at an earlier version, are no tables."""
        for part in (f"delta.`{history.path}@v3`", f"delta.`{history.path}/p=1`"):
            with pytest.raises(InterlockError, match=f"{history.path}.* has no versions") as caught:
                spark.sql(f"SELECT * FROM {part} VERSION BETWEEN 0 AND 1")
            assert caught.value.getCondition() == "INTERLOCK_RANGE_NEEDS_TABLE"

    @pytest.mark.parametrize(
        ("query", "condition"),
        [
            ("ranges.none VERSION BETWEEN 0 AND 1", "TABLE_OR_VIEW_NOT_FOUND"),
            ("{t} VERSION BETWEEN 0 AND id", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
            ("table_between_versions('ranges.t')", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ],
    )
    def test_sparks(self, spark: SparkSession, named: str, query: str, condition: str) -> None:
        with pytest.raises(AnalysisException) as caught:
            spark.sql(f"SELECT * FROM {query.format(t=named)}")
        assert caught.value.getCondition() == condition
