"""Time travel: `TIMESTAMP BETWEEN`, times after the last commit, and computed versions."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from interlock.errors import InterlockError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.kit.entry_points import set_for_now
from tests.kit.ranges import LIVE, changed, committed, found, make_history
from tests.kit.snapshots import forget_logs
from tests.kit.support import Table, make_table, versions

FAR = "TIMESTAMP '2999-01-01'"
LONG_AGO = "TIMESTAMP '1999-01-01'"


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return make_history(spark, tmp_path_factory.mktemp("history") / "t", "copied on write")


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table without a policy, whose versions 0, 1 and 2 are of 2001, 2002 and 2003."""
    path = tmp_path_factory.mktemp("plain") / "t"
    properties = {
        "delta.enableRowTracking": "true",
        "delta.deletedFileRetentionDuration": "interval 36500 days",
        "delta.logRetentionDuration": "interval 36500 days",
    }
    table = make_table(spark, path, policy=None, properties=properties)
    for version in versions(table):
        at = datetime(2001 + version, 1, 1, tzinfo=timezone.utc).timestamp()
        os.utime(path / "_delta_log" / f"{version:020}.json", (at, at))
    forget_logs(spark)
    return table


class TestTimestampBetween:
    def test_between_two_commits(self, spark: SparkSession, plain: Table) -> None:
        """Strings and dates are taken in the session's time zone; SYSTEM_TIME is the same."""
        for begin, end, rows in [
            ("'2001-06-01'", "'2002-06-01'", [(1, "a"), (2, "b")]),
            ("DATE '2002-06-01'", "TIMESTAMP_NTZ '2003-01-01 00:00:00'", [(3, "c")]),
            ("'2003-01-01 00:00:00'", "'2003-01-01'", []),
            ("'2002-12-31 23:59:59.999'", "'2003-01-01'", [(3, "c")]),
            ("TIMESTAMP '2003-01-01' - INTERVAL 1 YEAR", "'2003-01-01'", [(3, "c")]),
            ("'1999-01-01'", "'2002-01-01'", [(1, "a"), (2, "b")]),
        ]:
            with set_for_now(spark, {"spark.sql.session.timeZone": "UTC"}):
                query = f"SELECT * FROM {plain} FOR SYSTEM_TIME BETWEEN {begin} AND {end} AS x"
                assert found(spark.sql(query)) == rows, (begin, end)
        with set_for_now(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
            ends = "'2003-01-01 08:59' AND '2003-01-01 09:00'"
            query = f"SELECT id FROM {plain} TIMESTAMP BETWEEN {ends}"
            assert found(spark.sql(query)) == [(3,)]

    def test_the_function(self, spark: SparkSession, history: Table) -> None:
        call = f"table_between_timestamps('{history}', {LONG_AGO}, current_timestamp())"
        assert found(spark.sql(f"SELECT * FROM {call}")) == list(changed(-1, 9))

    @pytest.mark.parametrize(
        ("ends", "condition"),
        [
            (f"{FAR} AND {LONG_AGO}", "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
            (f"{FAR} AND '2020-13-01'", "INTERLOCK_INVALID_ARGUMENT"),
            ("NULL AND current_timestamp()", "INTERLOCK_INVALID_ARGUMENT"),
            ("1 AND 2", "INTERLOCK_INVALID_ARGUMENT"),
        ],
    )
    def test_errors(self, spark: SparkSession, history: Table, ends: str, condition: str) -> None:
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"SELECT * FROM {history} TIMESTAMP BETWEEN {ends}")
        assert caught.value.getCondition() == condition

    def test_backwards(self, spark: SparkSession, history: Table) -> None:
        ends = f"{committed(history, 3)} AND {committed(history, 2)}"
        with pytest.raises(InterlockError, match="after version 3 and ends with version 2"):
            spark.sql(f"SELECT * FROM {history} TIMESTAMP BETWEEN {ends}")


class TestBehindTheLastCommit:
    """A time after the last commit is the latest version; without a policy it is Delta's error."""

    LATEST = sorted(LIVE[9])

    def test_in_sql(self, spark: SparkSession, history: Table) -> None:
        for time in (FAR, "current_timestamp()"):
            query = f"SELECT * FROM {history} TIMESTAMP AS OF {time}"
            assert found(spark.sql(query)) == self.LATEST
            query = f"SELECT * FROM {history} TIMESTAMP BETWEEN {committed(history, 6)} AND {time}"
            assert found(spark.sql(query)) == list(changed(6, 9))
            query = f"SELECT * FROM {history} TIMESTAMP BETWEEN {time} AND {time}"
            assert found(spark.sql(query)) == []

    def test_readers(self, spark: SparkSession, history: Table) -> None:
        spark.sql(f"CREATE TABLE by_name USING delta LOCATION '{history.path}'")
        reader = spark.read.option("timestampAsOf", "2999-01-01")
        assert found(reader.table("by_name")) == self.LATEST
        assert found(reader.format("delta").load(str(history.path))) == self.LATEST
        assert found(reader.format("delta").option("path", str(history.path)).load()) == self.LATEST
        assert found(spark.sql(f"SELECT * FROM by_name TIMESTAMP AS OF {FAR}")) == self.LATEST

    def test_an_earlier_time_is_stocks_business(self, spark: SparkSession, history: Table) -> None:
        for version in (2, 4, 6):
            at = committed(history, version)
            query = f"SELECT * FROM {history} TIMESTAMP AS OF {at}"
            assert found(spark.sql(query)) == sorted(LIVE[version])
        with pytest.raises(AnalysisException, match="EARLIER_THAN_COMMIT_RETENTION"):
            spark.sql(f"SELECT * FROM {history} TIMESTAMP AS OF {LONG_AGO}").collect()

    def test_without_a_policy(self, spark: SparkSession, plain: Table) -> None:
        def by_path() -> DataFrame:
            reader = spark.read.format("delta").option("timestampAsOf", "2999-01-01")
            return reader.load(str(plain.path))

        queries = (
            f"TIMESTAMP AS OF {FAR}",
            f"TIMESTAMP BETWEEN {LONG_AGO} AND {FAR}",
            f"TIMESTAMP BETWEEN {FAR} AND {FAR}",
        )
        reads: list[Callable[[], DataFrame]] = [by_path]
        reads += [partial(spark.sql, f"SELECT * FROM {plain} {clause}") for clause in queries]
        for read in reads:
            with pytest.raises(AnalysisException) as caught:
                read().collect()
            assert caught.value.getCondition() == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


class TestComputedVersions:
    @pytest.mark.variant_cases("CAST*", "(2)")
    @pytest.mark.parametrize("version", ["1 + 1", "abs(-2)", "CAST('2' AS BIGINT)", "(2)", "1 +1"])
    def test_as_of(self, spark: SparkSession, history: Table, version: str) -> None:
        expected = sorted(LIVE[2])
        for clause in (f"VERSION AS OF {version}", f"FOR SYSTEM_VERSION AS OF {version} AS t"):
            assert found(spark.sql(f"SELECT * FROM {history} {clause}")) == expected

    def test_beside_literals_and_ranges(self, spark: SparkSession, history: Table) -> None:
        query = (
            f"SELECT a.id, b.id, c.id FROM {history} VERSION AS OF 2 a "
            f"JOIN {history} VERSION AS OF 2 + 2 AS b ON a.id = b.id "
            f"JOIN {history} VERSION BETWEEN 2 AND 4 AS c ON a.id = c.id"
        )
        assert found(spark.sql(query)) == [(1, 1, 1)]
        assert found(spark.sql(f"SELECT id FROM table_at_version('{history}', 1)")) == [(1,), (2,)]

    def test_latest_versions(self, spark: SparkSession, history: Table) -> None:
        """The functions take a table by its path; the last change of data is the RESTORE."""
        latest = f"get_latest_version('{history}')"
        for clause, rows in [
            (f"VERSION AS OF {latest}", sorted(LIVE[9])),
            (f"VERSION AS OF {latest[:-1]}, 3)", sorted(LIVE[7])),
            (f"VERSION BETWEEN {latest} - 3 AND {latest}", list(changed(6, 9))),
            (f"TIMESTAMP AS OF get_latest_timestamp('{history}', 4)", sorted(LIVE[6])),
            (f"TIMESTAMP BETWEEN get_latest_timestamp('{history}', 4) AND {FAR}", [*changed(6, 9)]),
        ]:
            assert found(spark.sql(f"SELECT * FROM {history} {clause}")) == rows, clause

    @pytest.mark.parametrize(
        ("version", "condition"),
        [
            ("9 + 1", "DELTA_VERSION_NOT_FOUND"),
            ("-1", "DELTA_VERSION_NOT_FOUND"),
            ("rand()", "INTERLOCK_INVALID_ARGUMENT"),
            ("1.5", "INTERLOCK_INVALID_ARGUMENT"),
            ("id", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"),
        ],
    )
    def test_errors(
        self, spark: SparkSession, history: Table, version: str, condition: str
    ) -> None:
        with pytest.raises(PySparkException) as caught:
            spark.sql(f"SELECT * FROM {history} VERSION AS OF {version}").collect()
        assert caught.value.getCondition() == condition


class TestRowTracking:
    def test_without_it(self, spark: SparkSession, table_path: Path) -> None:
        """The statement in the error turns row tracking on; older rows get that version."""
        table = make_table(spark, table_path, policy=None)
        with pytest.raises(InterlockError) as caught:
            spark.sql(f"SELECT * FROM {table} VERSION BETWEEN 0 AND 2")
        assert caught.value.getCondition() == "INTERLOCK_ROW_TRACKING_REQUIRED"
        message = str(caught.value)
        statement = message[message.index("ALTER TABLE") : message.index(". SQLSTATE")]
        spark.sql(statement)
        first = max(versions(table))
        spark.sql(f"UPDATE {table} SET v = 'z' WHERE id = 1")
        for after in (0, 2, first - 1):
            with pytest.raises(InterlockError) as caught:
                spark.sql(f"SELECT * FROM {table} VERSION BETWEEN {after} AND {first + 1}")
            assert caught.value.getCondition() == "INTERLOCK_ROW_TRACKING_TOO_LATE"
            assert f"at version {first} or a later one" in str(caught.value)
        since = f"SELECT * FROM {table} VERSION BETWEEN {first} AND {first + 1}"
        assert found(spark.sql(since)) == [(1, "z")]
        everything = f"SELECT * FROM {table} VERSION BETWEEN -1 AND {first + 1}"
        assert found(spark.sql(everything)) == [(1, "z"), (2, "b"), (3, "c")]

    def test_before_the_policy(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, policy=None)
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('interlock.policy' = 'serializable')")
        first = max(versions(table))
        with pytest.raises(InterlockError, match=f"off before version {first}"):
            spark.sql(f"SELECT * FROM {table} VERSION BETWEEN 2 AND {first}")


class TestRetention:
    def test_versions_that_are_gone(self, spark: SparkSession, table_path: Path) -> None:
        """Versions 0 to 2 have no log any more, and no files are left that only they had."""
        table = make_history(spark, table_path, "copied on write")
        jvm: Any = spark._jvm
        logs, none = jvm.org.apache.spark.sql.delta.DeltaLog, jvm.scala.Option.empty()
        log = logs.forTable(spark._jsparkSession, str(table.path))
        log.checkpoint(log.getSnapshotAt(3, none, none, False), none)
        for version in (0, 1, 2):
            for file in (table.path / "_delta_log").glob(f"{version:020}.*"):
                file.unlink()
        forget_logs(spark)
        for ends in ("VERSION BETWEEN 2 AND 6", "VERSION BETWEEN 0 AND 2"):
            with pytest.raises(InterlockError) as caught:
                spark.sql(f"SELECT * FROM {table} {ends}")
            assert caught.value.getCondition() == "INTERLOCK_VERSION_NOT_THERE"
            assert "has versions 3 to 9" in str(caught.value)
        with pytest.raises(AnalysisException, match="EARLIER_THAN_COMMIT_RETENTION"):
            spark.sql(f"SELECT * FROM {table} TIMESTAMP BETWEEN {LONG_AGO} AND {FAR}")
        assert found(spark.sql(f"SELECT * FROM {table} VERSION BETWEEN 3 AND 6")) == list(
            changed(3, 6)
        )
        assert found(spark.sql(f"SELECT * FROM {table} VERSION BETWEEN -1 AND 6")) == list(
            changed(-1, 6)
        )
