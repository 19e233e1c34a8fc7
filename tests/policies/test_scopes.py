"""Which partitions a statement can select: dates, nulls, two columns, renamed columns, subqueries.

Cells of `maxcompute_delta` on the table of the Delta document's MERGE example, partitioned by date
and country. The winner inserts into one partition; D8 fails what can select that partition.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock.errors import ConflictError
from pyspark.sql import SparkSession

from tests.kit.support import Table, deltalake_rows, latest_version, make_table, rows, sql_race

COLUMNS = (
    "(user_id INT, v STRING, `date` DATE, country STRING) USING delta "
    "PARTITIONED BY (`date`, country)"
)
START = (
    "INSERT INTO {t} VALUES (1, 'a', DATE'2010-01-01', 'DE'), (2, 'b', DATE'2010-01-02', 'DE'), "
    "(3, 'c', DATE'2010-01-01', 'FR'), (4, 'd', NULL, 'DE')",
)
WINNER = "INSERT INTO {t} VALUES (9, 'w', DATE'2010-01-01', 'DE')"
NULL_WINNER = "INSERT INTO {t} VALUES (9, 'w', NULL, 'DE')"
UPDATE = "UPDATE {t} SET v = 'U' WHERE "
MERGE = (
    "MERGE INTO {t} t USING (SELECT 2 AS user_id, DATE'2010-01-02' AS `date`, 'DE' AS country) s "
    "ON s.user_id = t.user_id AND s.`date` = t.`date` AND s.country = t.country%s "
    "WHEN MATCHED THEN UPDATE SET v = 'U'"
)
PASSES, FAILS = True, False


@pytest.mark.parametrize(
    ("winner", "statement", "passes"),
    [
        pytest.param(WINNER, UPDATE + "`date` > '2010-01-01'", PASSES, id="dates-after"),
        pytest.param(
            WINNER, UPDATE + "country = 'FR'", PASSES, id="another-country", marks=pytest.mark.soak
        ),
        pytest.param(
            WINNER,
            UPDATE + "country = 'DE' AND user_id = 2",
            FAILS,
            id="one-column-of-two",
            marks=pytest.mark.soak,
        ),
        pytest.param(NULL_WINNER, UPDATE + "`date` IS NULL", FAILS, id="both-the-null-partition"),
        pytest.param(
            NULL_WINNER,
            UPDATE + "`date` <= '2010-01-01'",
            PASSES,
            id="null-is-no-date",
            marks=pytest.mark.soak,
        ),
        pytest.param(WINNER, MERGE % "", FAILS, id="merge-on-columns"),
        pytest.param(
            WINNER,
            MERGE % " AND t.`date` = '2010-01-02' AND t.country = 'DE'",
            PASSES,
            id="merge-with-literals",
        ),
    ],
)
def test_update_after_insert(
    spark: SparkSession, table_path: Path, winner: str, statement: str, passes: bool
) -> None:
    table = make_table(spark, table_path, columns=COLUMNS, statements=START)
    check(spark, table, winner, statement, passes=passes)
    assert rows(spark, table) == deltalake_rows(table)


@pytest.mark.parametrize(
    ("condition", "passes"), [("`date` > '2010-01-01'", PASSES), ("`date` >= '2010-01-01'", FAILS)]
)
def test_columns_have_other_names_in_the_files(
    spark: SparkSession, table_path: Path, condition: str, passes: bool
) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    table = make_table(spark, table_path, columns=COLUMNS, properties=properties, statements=START)
    check(spark, table, WINNER, UPDATE + condition, passes=passes)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OVERWRITE {t} PARTITION (`date` = '2010-01-01') SELECT 8, 'o', 'DE'",
        "TRUNCATE TABLE {t} PARTITION (`date` = '2010-01-01', country = 'DE')",
    ],
)
def test_an_overwrite_replaces_its_partition_only(
    spark: SparkSession, table_path: Path, statement: str
) -> None:
    """Cell D6, with winners inside and outside of the overwritten partition."""
    properties = {"delta.columnMapping.mode": "name"}
    table = make_table(spark, table_path, columns=COLUMNS, properties=properties, statements=START)
    winner = (
        "INSERT INTO {t} VALUES (9, 'w', DATE'2010-01-01', 'DE'), (10, 'x', NULL, 'DE'), "
        "(11, 'y', DATE'2010-01-02', 'DE')"
    )
    _, later = sql_race(spark, table, winner, statement)
    assert later.error is None
    found = {row[0] for row in rows(spark, table)}
    replaced = {1, 3, 9} if "OVERWRITE" in statement else {1, 9}
    added = {8} if "OVERWRITE" in statement else set()
    assert found == {1, 2, 3, 4, 9, 10, 11} - replaced | added


def check(spark: SparkSession, table: Table, winner: str, statement: str, *, passes: bool) -> None:
    _, later = sql_race(spark, table, winner, statement)
    assert later.held
    if passes:
        assert later.error is None
        assert latest_version(table) == 3
    else:
        assert isinstance(later.error, ConflictError)
        assert later.error.rule == "D8"
        assert latest_version(table) == 2


BY_SOURCE = (
    "MERGE INTO {t} t USING (SELECT %s AS class, %s1 AS id) s ON t.class = %s AND t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'M' WHEN NOT MATCHED THEN INSERT (class, id, v) "
    "VALUES (s.class, s.id, 'new') WHEN NOT MATCHED BY SOURCE%s THEN DELETE"
)


@pytest.mark.variant_cases("the-clause-names-none", "the-clause-names-a-data-column")
@pytest.mark.parametrize(
    ("later", "passes"),
    [
        pytest.param((2, 2, 2, " AND t.class = 2"), PASSES, id="both-name-a-partition"),
        pytest.param((2, 2, "s.class", " AND t.class = 2"), FAILS, id="on-names-none"),
        pytest.param((2, 2, 2, ""), FAILS, id="the-clause-names-none"),
        pytest.param((2, 2, 2, " AND t.class >= 1"), FAILS, id="the-clause-selects-both"),
        pytest.param((2, 2, 2, " AND t.id > 20"), FAILS, id="the-clause-names-a-data-column"),
    ],
)
def test_rows_that_the_source_does_not_have(
    spark: SparkSession, table_path: Path, later: tuple[object, ...], passes: bool
) -> None:
    """WHEN NOT MATCHED BY SOURCE reads the partitions that ON and the clause select."""
    table = make_table(
        spark,
        table_path,
        columns="(class INT, id INT, v STRING) USING delta PARTITIONED BY (class)",
        statements=(
            "INSERT INTO {t} VALUES (1, 11, 'a'), (1, 12, 'b'), (2, 21, 'c'), (2, 22, 'd')",
        ),
    )
    first, second = sql_race(
        spark, table, BY_SOURCE % (1, 1, 1, " AND t.class = 1"), BY_SOURCE % later
    )
    assert first.ok
    assert second.ok == passes
    assert second.ok or isinstance(second.error, ConflictError)
    after = ((2, 21, "M"),) if passes else ((2, 21, "c"), (2, 22, "d"))
    assert rows(spark, table) == deltalake_rows(table) == ((1, 11, "M"), *after)
