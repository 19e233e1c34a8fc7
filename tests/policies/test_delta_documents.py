"""The Delta documents' sentences and worked examples, by name.

S3 is the page on concurrency control, S4 the one on concurrent reads and writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from interlock.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    MetadataChangedError,
    ProtocolChangedError,
)
from pyspark.sql import SparkSession

from tests.kit.support import (
    Job,
    Table,
    deltalake_rows,
    latest_version,
    live_files,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
    versions,
)

LEVELS = ("serializable", "write_serializable", "row_level")

APPEND = ConcurrentAppendError
DELETE_READ = ConcurrentDeleteReadError
DELETE_DELETE = ConcurrentDeleteDeleteError
DELTAS = (APPEND, DELETE_READ, DELETE_DELETE, MetadataChangedError, ProtocolChangedError)
Expected = type[Exception] | None

PLAIN = "(id INT, v STRING) USING delta"
PARTITIONED = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
EXAMPLE = ("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')", "INSERT INTO {t} VALUES (3, 'c')")
IN_TWO_PARTITIONS = (
    "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",
    "INSERT INTO {t} VALUES (4, 'd', 1), (5, 'e', 2)",
)


@dataclass(frozen=True)
class Example:
    """Two jobs that read one version, and what the later one raises at each level it is about."""

    name: str
    earlier: str
    later: str
    raises: Mapping[str, Expected]
    columns: str = PLAIN
    statements: Sequence[str] = EXAMPLE


def everywhere(expected: Expected) -> dict[str, Expected]:
    return dict.fromkeys(LEVELS, expected)


def only_serializable(expected: Expected) -> dict[str, Expected]:
    """A conflict with what a blind append brought, which the other levels do not look at."""
    return {**everywhere(None), "serializable": expected}


def by_files(expected: Expected) -> dict[str, Expected]:
    """A conflict of two that change other rows of one file."""
    return {**everywhere(expected), "row_level": None}


# S3, "Avoid conflicts using partitioning and disjoint command conditions".
DATES = "(date DATE, v STRING) USING delta"
TWO_DATES = ("INSERT INTO {t} VALUES (DATE'2009-06-01', 'a'), (DATE'2011-06-01', 'b')",)
AFTER_2010 = "UPDATE {t} SET v = 'U' WHERE date > '2010-01-01'"
BEFORE_2010 = "DELETE FROM {t} WHERE date < '2010-01-01'"
# S3, the MERGE of ConcurrentAppendException.
USERS = "(date DATE, country STRING, user_id INT, v STRING) USING delta"
BY_DATE_AND_COUNTRY = f"{USERS} PARTITIONED BY (date, country)"
TWO_COUNTRIES = (
    "INSERT INTO {t} VALUES (DATE'2024-01-01', 'DE', 1, 'a'), (DATE'2024-01-02', 'FR', 2, 'b')",
)


def merge(date: str, country: str, user: int, condition: str) -> str:
    return (
        f"MERGE INTO {{t}} t USING (SELECT DATE'{date}' AS date, '{country}' AS country, "
        f"{user} AS user_id, 'new' AS v) s ON {condition} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def by_columns(date: str, country: str, user: int) -> str:
    condition = "s.user_id = t.user_id AND s.date = t.date AND s.country = t.country"
    return merge(date, country, user, condition)


def by_literals(date: str, country: str, user: int) -> str:
    condition = f"s.user_id = t.user_id AND t.date = '{date}' AND t.country = '{country}'"
    return merge(date, country, user, condition)


DE, FR = ("2024-01-01", "DE", 1), ("2024-01-02", "FR", 2)

DELETE_2 = "DELETE FROM {t} WHERE id = 2"

EXAMPLES = (
    # "Avoid conflicts": the same two commands, with and without partitions.
    Example(
        "UPDATE and DELETE of different dates, not partitioned",
        *(AFTER_2010, BEFORE_2010),
        by_files(APPEND),  # the UPDATE writes its file anew, with the row of 2009
        DATES,
        TWO_DATES,
    ),
    Example(
        "UPDATE and DELETE of different dates, partitioned by date",
        *(AFTER_2010, BEFORE_2010),
        everywhere(None),
        f"{DATES} PARTITIONED BY (date)",
        TWO_DATES,
    ),
    # ConcurrentAppendException. (The page restricts s.date and s.country, which restricts nothing.)
    # Here no added row matches the source, but files that it scanned are gone.
    Example(
        "MERGE by columns scans other dates and countries",
        *(by_columns(*DE), by_columns(*FR)),
        by_files(DELETE_READ),
        BY_DATE_AND_COUNTRY,
        TWO_COUNTRIES,
    ),
    Example(
        "MERGE of one date and country does not",
        *(by_literals(*DE), by_literals(*FR)),
        everywhere(None),
        BY_DATE_AND_COUNTRY,
        TWO_COUNTRIES,
    ),
    Example(
        "an append to a partition that is read",
        "INSERT INTO {t} VALUES (9, 'i', 1)",
        "UPDATE {t} SET v = 'U' WHERE p = 1",
        only_serializable(APPEND),
        PARTITIONED,
        IN_TWO_PARTITIONS,
    ),
    Example(
        "an append to a partition that is not read",
        "INSERT INTO {t} VALUES (9, 'i', 2)",
        "UPDATE {t} SET v = 'U' WHERE p = 1",
        everywhere(None),
        PARTITIONED,
        IN_TWO_PARTITIONS,
    ),
    Example(
        "an append that reads is an update to all levels",
        "INSERT INTO {t} SELECT id + 20, v, p FROM {t}",
        "UPDATE {t} SET v = 'U' WHERE p = 1",
        everywhere(APPEND),
        PARTITIONED,
        IN_TWO_PARTITIONS,
    ),
    Example(
        "an update of a partition that is read",
        "UPDATE {t} SET v = 'U' WHERE p = 1 AND id = 1",
        "UPDATE {t} SET v = 'V' WHERE p = 1",
        {**everywhere(APPEND), "row_level": DELETE_READ},
        PARTITIONED,
        IN_TWO_PARTITIONS,
    ),
    # ConcurrentDeleteReadException
    Example(
        "a file deleted that was read",
        "DELETE FROM {t} WHERE id = 3",
        "UPDATE {t} SET v = 'U' WHERE id >= 2",
        everywhere(DELETE_READ),
    ),
    Example(
        "a file deleted that was not read",
        "DELETE FROM {t} WHERE id = 3",
        "UPDATE {t} SET v = 'U' WHERE id <= 2",
        everywhere(None),
    ),
    Example(
        "a row moved into the predicate of another update",
        "UPDATE {t} SET v = 'moved' WHERE id = 1",
        "UPDATE {t} SET v = 'U' WHERE v = 'moved' OR id = 2",
        everywhere(APPEND),
    ),
    # Compactions: OPTIMIZE against UPDATE, DELETE, MERGE
    Example("OPTIMIZE, DELETE", "OPTIMIZE {t}", DELETE_2, by_files(DELETE_READ)),
    Example("DELETE, OPTIMIZE", DELETE_2, "OPTIMIZE {t}", by_files(DELETE_READ)),
    # ConcurrentDeleteDeleteException
    Example("two OPTIMIZE of one file", "OPTIMIZE {t}", "OPTIMIZE {t}", everywhere(DELETE_DELETE)),
    Example(
        "two COMPACT of one file",
        "ALTER TABLE {t} COMPACT MINOR",
        "ALTER TABLE {t} COMPACT MINOR",
        everywhere(DELETE_DELETE),
    ),
    Example(
        "two OPTIMIZE of other files",
        "OPTIMIZE {t} WHERE p = 1",
        "OPTIMIZE {t} WHERE p = 2",
        everywhere(None),
        PARTITIONED,
        IN_TWO_PARTITIONS,
    ),
    Example(
        "COMPACT and OPTIMIZE of other files",
        "ALTER TABLE {t} PARTITION (p = 1) COMPACT MAJOR",
        "OPTIMIZE {t} WHERE p = 2",
        everywhere(None),
        PARTITIONED,
        IN_TWO_PARTITIONS,
    ),
    # Blind appends and reads
    Example(
        "a blind INSERT after an UPDATE",
        "UPDATE {t} SET v = 'U' WHERE id = 1",
        "INSERT INTO {t} VALUES (9, 'i')",
        everywhere(None),
    ),
    Example(
        "an INSERT that reads, after an UPDATE",
        "UPDATE {t} SET v = 'U' WHERE id = 1",
        "INSERT INTO {t} SELECT id + 20, v FROM {t}",
        everywhere(APPEND),
    ),
    Example(
        "an INSERT that reads, after a blind one",
        "INSERT INTO {t} VALUES (9, 'i')",
        "INSERT INTO {t} SELECT id + 20, v FROM {t}",
        only_serializable(APPEND),
    ),
    Example(
        "an INSERT after OPTIMIZE, though it reads",
        "OPTIMIZE {t}",
        "INSERT INTO {t} SELECT id + 20, v FROM {t}",
        everywhere(None),
    ),
    Example(
        "OPTIMIZE after an INSERT that reads",
        "INSERT INTO {t} SELECT id + 20, v FROM {t}",
        "OPTIMIZE {t}",
        everywhere(None),
    ),
)


def kind(error: Exception | None) -> Expected:
    """Return which of Delta's exceptions it is."""
    if error is None:
        return None
    return next((of for of in DELTAS if isinstance(error, of)), type(error))


@pytest.mark.variant_cases(
    but=[
        "*, not partitioned, row_level",
        "MERGE by columns scans*, serializable",
        "an append to a partition that is read, write_serializable",
        "an append that reads*, serializable",
        "a file deleted that was not read, row_level",
        "a row moved into*, serializable",
        "two COMPACT of one file, row_level",
        "an INSERT that reads, after a blind one, write_serializable",
    ]
)
@pytest.mark.parametrize(
    ("example", "level"),
    [
        pytest.param(
            example,
            level,
            id=f"{example.name}, {level}",
            # Mostly the same as under serializable.
            marks=[pytest.mark.soak]
            if level == "write_serializable" and expected is example.raises["serializable"]
            else [],
        )
        for example in EXAMPLES
        for level, expected in example.raises.items()
    ],
)
def test_example(spark: SparkSession, table_path: Path, example: Example, level: str) -> None:
    table = make_table(
        spark,
        table_path,
        policy=level,
        columns=example.columns,
        statements=tuple(example.statements),
    )
    before = latest_version(table)
    jobs = [sql_job(sql.format(t=table)) for sql in (example.earlier, example.later)]
    earlier, later = race(spark, *jobs, latest_version=lambda: latest_version(table))
    expected = example.raises[level]
    assert earlier.error is None
    assert later.held
    assert kind(later.error) is expected
    assert versions(table)[-1] == before + (1 if expected else 2)
    assert rows(spark, table) == deltalake_rows(table)


class TestUsersOneAndTwo:
    """S4: two users at versions 0 to 3."""

    @pytest.fixture(params=LEVELS)
    def table(self, spark: SparkSession, table_path: Path, request: pytest.FixtureRequest) -> Table:
        return make_table(spark, table_path, policy=request.param, statements=())

    def user(self, table: Table, number: int) -> Job:
        return sql_job(f"INSERT INTO {table} VALUES ({number}, 'user {number}')")

    @pytest.mark.variant_cases(but=["serializable"])
    def test_both_read_the_schema_and_append_at_t1(self, spark: SparkSession, table: Table) -> None:
        """One gets version 1, the other, with the same files, version 2."""

        def at_t1(session: SparkSession) -> None:
            """User 2 stands before its commit: its 3.parquet is there, and no reader sees it."""
            (staged,) = table.path.glob("*.parquet")
            session.sql(f"INSERT INTO {table} VALUES (1, 'user 1')")
            assert rows(session, table) == ((1, "user 1"),)
            assert staged.name not in live_files(table)

        user_1, user_2 = race(
            spark,
            python_job("user 1", at_t1),
            self.user(table, 2),
            latest_version=lambda: latest_version(table),
        )
        assert [user_1.error, user_2.error] == [None, None]
        assert [user_1.version, user_2.version] == [1, 2]
        assert {file.name for file in table.path.glob("*.parquet")} == live_files(table)
        assert deltalake_rows(table) == ((1, "user 1"), (2, "user 2"))

    @pytest.mark.variant_cases(but=["serializable"])
    def test_user_1_read_version_0_user_2_version_1(
        self, spark: SparkSession, table: Table
    ) -> None:
        """Both try version 2; user 2 wins it, and user 1 commits as version 3."""

        def version_1_then_user_2(session: SparkSession) -> None:
            session.sql(f"INSERT INTO {table} VALUES (0, 'version 1')")
            session.sql(f"INSERT INTO {table} VALUES (2, 'user 2')")

        _, user_1 = race(
            spark,
            python_job("version 1, then user 2", version_1_then_user_2),
            self.user(table, 1),
            latest_version=lambda: latest_version(table),
        )
        assert user_1.version == 3
        expected = ((0, "version 1"), (1, "user 1"), (2, "user 2"))
        assert rows(spark, table) == deltalake_rows(table) == expected

    @pytest.mark.variant_cases(but=["serializable"])
    def test_user_1_deletes_what_user_2_has_deleted(
        self, spark: SparkSession, table: Table
    ) -> None:
        """Two deletions of one file cannot be reconciled: one fails."""
        spark.sql(f"INSERT INTO {table} VALUES (1, 'one'), (2, 'two')")
        delete = sql_job(f"DELETE FROM {table} WHERE id = 1")
        _, lost = race(spark, delete, delete)
        assert kind(lost.error) is DELETE_READ
        assert rows(spark, table) == ((2, "two"),)


class TestMetadataChangedException:
    """ALTER TABLE during a write, and a write that updates the schema."""

    @pytest.mark.parametrize(
        "winner",
        [
            "ALTER TABLE {t} ALTER COLUMN v FIRST",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'true')",
        ],
        ids=["schema", "property"],
    )
    def test_alter_table_during_a_write(
        self, spark: SparkSession, table_path: Path, winner: str
    ) -> None:
        table = make_table(spark, table_path, policy=LEVELS[-1])
        _, *writes = sql_race(
            spark,
            table,
            winner,
            "INSERT INTO {t} VALUES (9, 'i')",
            "UPDATE {t} SET v = 'U' WHERE id = 1",
        )
        assert [kind(write.error) for write in writes] == [MetadataChangedError] * 2
        assert latest_version(table) == 3

    def test_a_write_that_updates_the_schema(self, spark: SparkSession, table_path: Path) -> None:
        table = make_table(spark, table_path, policy=LEVELS[-1])

        def replace(session: SparkSession) -> None:
            other = session.sql("SELECT 9 AS id, 1 AS w").write.format("delta")
            other.mode("overwrite").option("overwriteSchema", "true").save(str(table.path))

        _, lost = race(
            spark, python_job("replace", replace), sql_job(f"INSERT INTO {table} VALUES (10, 'k')")
        )
        assert kind(lost.error) is MetadataChangedError


def test_protocol_changed_exception(spark: SparkSession, table_path: Path) -> None:
    """A protocol upgrade meets another upgrade, and a write that must fail after one."""
    table = make_table(spark, table_path, policy=LEVELS[-1])
    upgrade = f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.feature.{{}}' = 'supported')"
    strict = spark.newSession()
    strict.conf.set(_TELLS_OF_FEATURES, "true")
    upgraded, *others, unconcerned = race(
        spark,
        upgrade.format("checkConstraints"),
        upgrade.format("generatedColumns"),
        sql_job(f"INSERT INTO {table} VALUES (9, 'i')", session=strict),
        f"INSERT INTO {table} VALUES (10, 'k')",
        latest_version=lambda: latest_version(table),
    )
    assert upgraded.error is None
    assert [kind(other.error) for other in others] == [ProtocolChangedError] * 2
    assert (unconcerned.error, unconcerned.version) == (None, 4)


_TELLS_OF_FEATURES = (
    "spark.databricks.delta.conflictChecker.enforceConcurrentFeatureEnablement.enabled"
)
