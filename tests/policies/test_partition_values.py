"""Which partition a file is of: values in several spellings, and values that nobody tells.

The log may spell one value in several ways, and a RemoveFile need not name its partition.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from interlock.errors import ConflictError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.kit.foreign import added, commit_by_hand, copy, remove
from tests.kit.support import (
    Table,
    confs,
    deltalake_rows,
    ids,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
    tags,
    versions,
)

LOCAL_TIMES = {"spark.databricks.delta.write.utcTimestampPartitionValues": "false"}
UNCHECKED = {"spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false"}
DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
PARTITIONED = "(id INT, p INT) USING delta PARTITIONED BY (p)"
TWO = ("INSERT INTO {t} VALUES (1, 1), (2, 2), (3, NULL)",)


class TestOneValueInTwoSpellings:
    COLUMNS = (
        "(id INT, t TIMESTAMP, n TIMESTAMP_NTZ, c CHAR(3), d DECIMAL(5, 2), x DOUBLE, b BOOLEAN, "
        "day DATE, i INT) USING delta PARTITIONED BY (t, n, c, d, x, b, day, i)"
    )
    VALUES = (
        "TIMESTAMP'2026-01-01 00:00:00', TIMESTAMP_NTZ'2026-01-01 00:00:00', 'a', 1, -0.0D, "
        "true, DATE'2026-01-01', 1"
    )
    OTHERS: ClassVar[dict[str, str | None]] = {
        "t": "2026-01-01 00:00:00",
        "n": "2026-01-01T00:00:00",
        "c": "a  ",
        "d": "1.0",
        "x": "0",
        "b": "TRUE",
        "day": "2026-1-1",
        "i": "01",
    }

    def table(self, spark: SparkSession, path: Path) -> Table:
        first = (f"INSERT INTO {{t}} VALUES (1, {self.VALUES})",)
        return make_table(spark, path, columns=self.COLUMNS, statements=first)

    def test_two_inserts_into_it_conflict(self, spark: SparkSession, table_path: Path) -> None:
        """The values are spelt as Delta does, and otherwise in each column."""
        table = self.table(spark, table_path)
        add = copy(table, added(table, 1)[0], self.OTHERS)
        winner = python_job("foreign", lambda _: commit_by_hand(table, "WRITE", add))
        insert = f"INSERT INTO {table} VALUES (3, {self.VALUES})"
        error = race(spark, winner, sql_job(insert))[1].error
        assert isinstance(error, ConflictError)
        assert (error.rule, latest_version(table)) == ("D7", 2)
        assert error.scope == (
            "b=true/c=a  /d=1.00/day=2026-01-01/i=1/n=2026-01-01 00:00:00/"
            "t=2026-01-01T00:00:00.000000Z/x=0.0"
        )

    def test_an_overwrite_replaces_both(self, spark: SparkSession, table_path: Path) -> None:
        table = self.table(spark, table_path)
        add = copy(table, added(table, 1)[0], self.OTHERS)
        winner = python_job("foreign", lambda _: commit_by_hand(table, "WRITE", add))
        overwrite = sql_job(f"INSERT OVERWRITE {table} VALUES (5, {self.VALUES})")
        with confs(spark, DYNAMIC):
            assert race(spark, winner, overwrite)[1].error is None
        assert ids(spark, table) == [5]
        assert sorted(int(str(row[0])) for row in deltalake_rows(table)) == [5]

    @pytest.mark.variant_cases(but=["t"])
    @pytest.mark.parametrize("column", ["t", "c", "d", "x"])
    def test_a_truncate_takes_both(
        self, spark: SparkSession, table_path: Path, column: str
    ) -> None:
        table = self.table(spark, table_path)
        commit_by_hand(table, "WRITE", copy(table, added(table, 1)[0], self.OTHERS))
        value = {"t": "TIMESTAMP'2026-01-01 00:00:00'", "c": "'a'", "d": "1.0", "x": "0"}[column]
        spark.sql(f"TRUNCATE TABLE {table} PARTITION ({column} = {value})")
        assert ids(spark, table) == []


class TestTimestampsAsTheSessionSpellsThem:
    COLUMNS = "(id INT, t TIMESTAMP) USING delta PARTITIONED BY (t)"
    FIRST = ("INSERT INTO {t} VALUES (1, '2026-01-01 00:00:00')",)

    def race_with_local_times(
        self, spark: SparkSession, path: Path, later: str, zone: str = "UTC"
    ) -> tuple[Table, Exception | None]:
        """Let an INSERT win that writes times as its session's zone, UTC, has them."""
        table = make_table(spark, path, columns=self.COLUMNS, statements=self.FIRST)
        local, other = spark.newSession(), spark.newSession()
        local.conf.set(*next(iter(LOCAL_TIMES.items())))
        other.conf.set("spark.sql.session.timeZone", zone)
        other.conf.set(*next(iter(DYNAMIC.items())))
        for session in (local, other):
            session.conf.set("spark.sql.shuffle.partitions", "2")
        winner = sql_job(f"INSERT INTO {table} VALUES (2, '2026-01-01 00:00:00')", session=local)
        first, second = race(spark, winner, sql_job(later.format(t=table), session=other))
        assert first.error is None
        assert added(table, 2)[0]["partitionValues"] == {"t": "2026-01-01 00:00:00"}
        return table, second.error

    def test_inserts_conflict(self, spark: SparkSession, table_path: Path) -> None:
        insert = "INSERT INTO {t} VALUES (3, '2026-01-01 00:00:00')"
        _, error = self.race_with_local_times(spark, table_path, insert)
        assert isinstance(error, ConflictError)
        assert error.rule == "D7"

    def test_a_session_reads_them_in_its_own_time_zone(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        """A timestamp partition is compared as an instant, as in Delta, so zones matter."""
        insert = "INSERT INTO {t} VALUES (3, '2026-01-01 00:00:00')"
        table, error = self.race_with_local_times(spark, table_path, insert, zone="Asia/Tokyo")
        assert isinstance(error, ConflictError)
        later = "INSERT INTO {t} VALUES (4, '2026-01-01 09:00:00')"
        table, error = self.race_with_local_times(
            spark, table_path.with_name("other"), later, zone="Asia/Tokyo"
        )
        assert error is None
        assert ids(spark, table) == [1, 2, 4]


class TestFilesOfWhichNobodyTellsThePartition:
    @pytest.mark.variant_cases("*fields1")
    @pytest.mark.parametrize("fields", [{}, {"extendedFileMetadata": True, "partitionValues": {}}])
    @pytest.mark.parametrize(
        ("policy", "rule"), [("maxcompute_delta", "D13"), ("maxcompute_transactional", "T11")]
    )
    def test_a_removal_may_be_of_any(
        self,
        spark: SparkSession,
        table_path: Path,
        policy: str,
        rule: str,
        fields: dict[str, object],
    ) -> None:
        table = make_table(spark, table_path, policy=policy, columns=PARTITIONED, statements=TWO)
        gone = next(add for add in added(table, 1) if add["partitionValues"]["p"] == "1")
        winner = python_job(
            "foreign", lambda _: commit_by_hand(table, "DELETE", remove(gone, **fields))
        )
        update = sql_job(f"UPDATE {table} SET id = 9 WHERE p = 1")
        error = race(spark, winner, update)[1].error
        assert isinstance(error, ConflictError)
        assert (error.rule, error.scope) == (rule, "the whole table")
        assert ids(spark, table) == [2, 3]
        assert sorted(int(str(row[0])) for row in deltalake_rows(table)) == [2, 3]

    @pytest.mark.variant_cases(but=["row_level"])
    @pytest.mark.parametrize("policy", ["serializable", "row_level"])
    def test_a_removal_meets_who_reads_rows(
        self, spark: SparkSession, table_path: Path, policy: str
    ) -> None:
        table = make_table(spark, table_path, policy=policy, columns=PARTITIONED, statements=TWO)
        gone = next(add for add in added(table, 1) if add["partitionValues"]["p"] == "1")
        winner = python_job("foreign", lambda _: commit_by_hand(table, "DELETE", remove(gone)))
        copying = sql_job(f"INSERT INTO {table} SELECT id + 100, 2 FROM {table} WHERE p = 1")
        error = race(spark, winner, copying)[1].error
        assert isinstance(error, ConflictError)
        assert ids(spark, table) == [2, 3]

    def test_one_that_names_its_partition_disturbs_no_other(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        gone = next(add for add in added(table, 1) if add["partitionValues"]["p"] == "1")
        named = remove(gone, partitionValues={"p": "1"}, extendedFileMetadata=True)
        winner = python_job("foreign", lambda _: commit_by_hand(table, "DELETE", named))
        update = sql_job(f"UPDATE {table} SET id = 9 WHERE p = 2")
        assert race(spark, winner, update)[1].error is None
        assert ids(spark, table) == [3, 9]

    def test_delta_leaves_out_what_is_null(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        delete = "DELETE FROM {t} WHERE p IS NULL"
        assert sql_race(spark, table, delete, "UPDATE {t} SET id = 9 WHERE p = 1")[1].error is None
        commit_by_hand(table, "WRITE", copy(table, added(table, 1)[0], {}))
        _, later = sql_race(spark, table, delete, "UPDATE {t} SET id = 8 WHERE p IS NULL")
        assert isinstance(later.error, ConflictError)
        assert later.error.scope == "p=null"

    def test_an_added_file_without_values_is_of_the_null_partition(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        null = next(add for add in added(table, 1) if add["partitionValues"]["p"] is None)
        winner = python_job(
            "foreign", lambda _: commit_by_hand(table, "WRITE", copy(table, null, {}))
        )
        with confs(spark, DYNAMIC):
            overwrite = sql_job(f"INSERT OVERWRITE {table} VALUES (5, NULL)")
            assert race(spark, winner, overwrite)[1].error is None
        assert ids(spark, table) == [1, 2, 5]

    @pytest.mark.parametrize("values", [{"P": "1"}, {"p": "one"}, {"p": ""}])
    def test_an_overwrite_replaces_no_file_that_may_be_of_another(
        self, spark: SparkSession, table_path: Path, values: dict[str, str | None]
    ) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        add = copy(table, added(table, 1)[0], values)
        winner = python_job("foreign", lambda _: commit_by_hand(table, "WRITE", add))
        overwrite = sql_job(f"INSERT INTO {table} REPLACE WHERE p = 1 VALUES (5, 1)")
        error = race(spark, winner, overwrite)[1].error
        assert isinstance(error, ConflictError)
        assert "does not tell which partition" in str(error)
        assert latest_version(table) == 2

    def test_a_table_without_partitions(self, spark: SparkSession, table_path: Path) -> None:
        """Removals of an unpartitioned table name no partition, so their rows are compared."""
        table = make_table(spark, table_path, policy="row_level")
        gone = added(table, 2)[0]
        winner = python_job("foreign", lambda _: commit_by_hand(table, "DELETE", remove(gone)))
        copying = "INSERT INTO {t} SELECT id + 100, v FROM {t} WHERE id = "
        assert race(spark, winner, sql_job((copying + "1").format(t=table)))[1].error is None
        assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (101, "a"), (2, "b"))


class TestWrittenOutsideOfWhatIsReplaced:
    """An overwrite writes rows outside of its predicate: Delta's check is off, or they are NULL."""

    WINNER = "INSERT INTO {t} VALUES (30, 2)"
    OVERWRITE = "INSERT INTO {t} REPLACE WHERE p = 1 VALUES (5, 1), (6, 2)"

    def test_it_is_an_append_there_and_fails(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        with confs(spark, UNCHECKED):
            error = sql_race(spark, table, self.WINNER, self.OVERWRITE)[1].error
        assert isinstance(error, ConflictError)
        assert (error.rule, error.operation_class, error.scope) == ("D7", "APPEND", "p=2")
        assert ids(spark, table) == [1, 2, 3, 30]

    @pytest.mark.variant_cases("*maxcompute_standard", "INSERT INTO {t} REPLACE*")
    @pytest.mark.parametrize("policy", ["maxcompute_transactional", "maxcompute_standard"])
    @pytest.mark.parametrize(
        "winner", [WINNER, "INSERT INTO {t} REPLACE WHERE p = 2 VALUES (30, 2)"]
    )
    def test_it_is_an_append_there_and_keeps_the_other_jobs_rows(
        self, spark: SparkSession, table_path: Path, policy: str, winner: str
    ) -> None:
        table = make_table(spark, table_path, policy=policy, columns=PARTITIONED, statements=TWO)
        with confs(spark, UNCHECKED):
            assert sql_race(spark, table, winner, self.OVERWRITE)[1].error is None
        kept = [2] if winner == self.WINNER else []
        assert ids(spark, table) == [*kept, 3, 5, 6, 30]
        assert sorted(int(str(row[0])) for row in deltalake_rows(table)) == [*kept, 3, 5, 6, 30]

    def test_what_it_replaces_it_replaces(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        with confs(spark, UNCHECKED):
            later = sql_race(spark, table, "INSERT INTO {t} VALUES (30, 1)", self.OVERWRITE)[1]
        assert later.error is None
        assert tags(table, 3)["interlock.rules"] == "D6"
        assert ids(spark, table) == [2, 3, 5, 6]

    def test_null_where_the_overwrite_replaces_none(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        table = make_table(
            spark,
            table_path,
            policy="maxcompute_transactional",
            columns=PARTITIONED,
            statements=TWO,
        )
        new = spark.createDataFrame([(5, None), (6, 1)], "id INT, p INT")

        def overwrite(_: SparkSession) -> None:
            writer = new.write.format("delta").mode("overwrite")
            writer = writer.option("partitionOverwriteMode", "dynamic")
            writer.option("useNullIntolerantEqualityWithDPO", "true").save(str(table.path))

        winner = sql_job(f"INSERT INTO {table} VALUES (30, NULL), (31, 1)")
        assert race(spark, winner, python_job("overwrite", overwrite))[1].error is None
        assert ids(spark, table) == [2, 3, 5, 6, 30]


class TestValuesOfAnotherType:
    """A partition value of another type is refused, with and without ANSI."""

    @pytest.mark.variant_cases("*-false")
    @pytest.mark.parametrize("ansi", ["true", "false"])
    @pytest.mark.parametrize(
        ("column", "value"),
        [("INT", "'abc'"), ("INT", "'1.5'"), ("INT", "99999999999"), ("DATE", "'2024-02-30'")],
    )
    def test_it_is_refused(
        self, spark: SparkSession, table_path: Path, column: str, value: str, ansi: str
    ) -> None:
        columns = f"(id INT, p {column}) USING delta PARTITIONED BY (p)"
        first = ("INSERT INTO {t} VALUES (1, NULL)",)
        table = make_table(spark, table_path, columns=columns, statements=first)
        where = f"PARTITION (p = {value})"
        with confs(spark, {"spark.sql.ansi.enabled": ansi}):
            for statement in (
                f"TRUNCATE TABLE {table} {where}",
                f"ALTER TABLE {table} {where} COMPACT MAJOR",
                f"SHOW HISTORY FOR TABLE {table} {where}",
                f"CALL interlock.files('{table.path}', map('p', {value}))",
            ):
                with pytest.raises(PySparkException) as caught:
                    spark.sql(statement).collect()
                assert caught.value.getCondition() in {"CAST_INVALID_INPUT", "CAST_OVERFLOW"}
        assert versions(table) == [0, 1]
        assert ids(spark, table) == [1]

    def test_spaces_around_a_number_are_none(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        with confs(spark, {"spark.sql.ansi.enabled": "false"}):
            spark.sql(f"TRUNCATE TABLE {table} PARTITION (p = ' 1 ')")
        assert ids(spark, table) == [2, 3]

    def test_a_predicate_whose_cast_fails_selects_what_spark_selects(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        """Without ANSI `p = 'abc'` is NULL, so it selects nothing."""
        table = make_table(spark, table_path, columns=PARTITIONED, statements=TWO)
        winner = sql_job(f"INSERT INTO {table} VALUES (30, NULL), (31, 1)")

        def overwrite(session: SparkSession) -> None:
            nothing = session.sql("SELECT 5 AS id, 1 AS p WHERE false")
            writer = nothing.write.format("delta").mode("overwrite")
            writer.option("replaceWhere", "p = 'abc'").save(str(table.path))

        with confs(spark, {"spark.sql.ansi.enabled": "false"}):
            _, later = race(spark, winner, python_job("overwrite", overwrite))
            assert later.error is None
        assert ids(spark, table) == [1, 2, 3, 30, 31]
