"""Statements and writers in races that no matrix's own examples have.

CREATE OR REPLACE ... AS SELECT, the DataFrame writers, renamed and dropped columns, streams that
read a table, and a VACUUM that deletes what a job has written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from interlock.errors import ConflictError, MetadataChangedError
from interlock.lab.model import Rows, in_order
from pyspark.sql import DataFrame, SparkSession

from tests.kit.support import (
    Table,
    deltalake_rows,
    ids,
    last_of,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    sql_race,
    unknown_files,
    versions,
)

PARTITIONED = "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
THREE = (
    "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1)",
    "INSERT INTO {t} VALUES (3, 'c', 2)",
)
A, B, C, Z = (1, "a", 1), (2, "b", 1), (3, "c", 2), (9, "z", 1)
IN_1, IN_2 = (7, "n", 1), (8, "n", 2)


def make(spark: SparkSession, path: Path, policy: str, **properties: str) -> Table:
    """Make {1a, 2b} in partition 1 and {3c} in partition 2, at version 2."""
    return make_table(
        spark, path, policy=policy, columns=PARTITIONED, properties=properties, statements=THREE
    )


def check(spark: SparkSession, table: Table, expected: Rows) -> None:
    assert rows(spark, table) == deltalake_rows(table) == expected


REPLACERS: dict[str, Callable[[DataFrame, str], object]] = {
    "replaceUsing": lambda df, path: (
        df.write.format("delta").mode("overwrite").option("replaceUsing", "p").save(path)
    ),
    "replaceOn": lambda df, path: (
        df.alias("s")
        .write.format("delta")
        .mode("overwrite")
        .option("targetAlias", "t")
        .option("replaceOn", "t.p = s.p")
        .save(path)
    ),
}


class TestReplaceByRows:
    """An overwrite of the rows that match those written is a MUTATE."""

    @pytest.mark.variant_cases(but=["replaceOn"])
    @pytest.mark.parametrize("writer", REPLACERS)
    def test_behind_an_insert(self, spark: SparkSession, tmp_path: Path, writer: str) -> None:
        """Fails under maxcompute_delta; under row_level the INSERT's row counts as added later."""

        def replace(writer: str, path: str, session: SparkSession) -> None:
            REPLACERS[writer](session.sql("SELECT 9 AS id, 'z' AS v, 1 AS p"), path)

        for policy, expected in (
            ("maxcompute_delta", (A, B, C, IN_1)),
            ("row_level", (C, IN_1, Z)),
        ):
            table = make(spark, tmp_path / policy, policy)
            inserted, replaced = race(
                spark,
                sql_job(f"INSERT INTO {table} VALUES {IN_1}"),
                python_job(writer, partial(replace, writer, str(table.path))),
            )
            assert inserted.error is None
            assert replaced.held
            assert isinstance(replaced.error, ConflictError) == (policy == "maxcompute_delta")
            assert rows(spark, table) == expected
            assert unknown_files(table) == []


class TestReplace:
    """CREATE OR REPLACE ... AS SELECT: an OVERWRITE of all that changes the metadata as well."""

    REPLACE = (
        "CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (p) "
        "AS SELECT 9 AS id, 'z' AS v, 1 AS p"
    )

    def test_behind_an_insert(self, spark: SparkSession, table_path: Path) -> None:
        table = make(spark, table_path, "maxcompute_delta")
        assert last_of(spark, table, (f"INSERT INTO {{t}} VALUES {IN_2}",), self.REPLACE) is None
        check(spark, table, (Z,))


class TestSchemaEvolution:
    MERGE = (
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 1 AS id, 'm' AS v, 1 AS p, 5 AS w) s "
        "ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    MERGED = ((1, "m", 1, 5), (*B, None), (*C, None))

    @pytest.mark.variant_cases(but=["row_level"])
    @pytest.mark.parametrize("policy", ["serializable", "row_level"])
    def test_a_new_column_stands_beside_other_rows(
        self, spark: SparkSession, tmp_path: Path, policy: str
    ) -> None:
        insert = f"INSERT INTO {{t}} VALUES {IN_2}"
        for earlier, later in ((insert, self.MERGE), (self.MERGE, insert)):
            table = make(spark, tmp_path / f"{len(list(tmp_path.iterdir()))}", policy)
            first, second = sql_race(spark, table, earlier, later)
            assert (first.error, second.error) == (None, None)
            assert rows(spark, table) == in_order((*self.MERGED, (*IN_2, None)))
            assert unknown_files(table) == []
        _, second = sql_race(spark, table, self.MERGE, self.MERGE)
        assert isinstance(second.error, ConflictError)

    def test_of_a_merge_and_another_the_later_one_fails(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """The later one was planned with another schema, or would change the other's schema."""
        policy = "maxcompute_delta"
        insert = f"INSERT INTO {{t}} VALUES {IN_2}"
        for earlier, later, expected in (
            (insert, self.MERGE, (A, B, C, IN_2)),
            (self.MERGE, insert, self.MERGED),
            (self.MERGE, self.MERGE, self.MERGED),
        ):
            table = make(spark, tmp_path / f"{len(list(tmp_path.iterdir()))}", policy)
            first, second = sql_race(spark, table, earlier, later)
            assert first.ok
            assert isinstance(second.error, ConflictError)
            assert isinstance(second.error, MetadataChangedError) == (earlier == self.MERGE)
            assert rows(spark, table) == expected
            assert versions(table) == list(range(4))
            assert unknown_files(table) == []


CLASSES = {
    "APPEND": f"INSERT INTO {{t}} VALUES {Z}",
    "OVERWRITE": f"INSERT OVERWRITE {{t}} VALUES {Z}",
    "MUTATE": "UPDATE {t} SET id = 10 WHERE id = 1",
    "COMPACT_MINOR": "ALTER TABLE {t} COMPACT MINOR",
    "COMPACT_MAJOR": "ALTER TABLE {t} COMPACT MAJOR",
}


class TestColumnMapping:
    RENAME = "ALTER TABLE {t} RENAME COLUMN v TO w"
    DROP = "ALTER TABLE {t} DROP COLUMN v"

    def make(self, spark: SparkSession, path: Path) -> Table:
        table = make(spark, path, "maxcompute_delta", **{"delta.columnMapping.mode": "name"})
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd', 1)")
        return table

    @pytest.mark.variant_cases(but=["*-MUTATE"])
    @pytest.mark.parametrize(
        "name", ["APPEND", *(pytest.param(c, marks=pytest.mark.soak) for c in list(CLASSES)[1:])]
    )
    @pytest.mark.parametrize("change", [RENAME, pytest.param(DROP, marks=pytest.mark.soak)])
    def test_a_job_fails_behind_it(
        self, spark: SparkSession, table_path: Path, name: str, change: str
    ) -> None:
        table = self.make(spark, table_path)
        changed, job = sql_race(spark, table, change, CLASSES[name])
        assert changed.ok
        assert isinstance(job.error, MetadataChangedError)
        assert versions(table) == list(range(5))
        assert unknown_files(table) == []

    def test_renamed_columns_of_partitions_have_their_scopes(
        self, spark: SparkSession, table_path: Path
    ) -> None:
        """The log knows the column by its physical name."""
        table = self.make(spark, table_path)
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN p TO q")
        replace = f"INSERT INTO {{t}} REPLACE WHERE q = 1 VALUES {Z}"
        assert last_of(spark, table, (f"INSERT INTO {{t}} VALUES {IN_2}",), replace) is None
        check(spark, table, (C, IN_2, Z))
        assert last_of(spark, table, (f"INSERT INTO {{t}} VALUES {IN_1}",), replace) is None
        check(spark, table, (C, IN_2, Z))
        update = "UPDATE {t} SET v = 'U' WHERE q = 1"
        error = last_of(spark, table, (f"INSERT INTO {{t}} VALUES {IN_1}",), update)
        assert isinstance(error, ConflictError)
        assert error.rule == "D8"
        assert last_of(spark, table, (f"INSERT INTO {{t}} VALUES {IN_2}",), update) is None


NESTED = (
    "(id INT, s STRUCT<x: INT>, m MAP<STRING, INT>, a ARRAY<INT>, j VARIANT, p INT) "
    "USING delta PARTITIONED BY (p)"
)
OF_ROW_1 = (
    "s.x = 1",
    "s = named_struct('x', 1)",
    "m['k'] = 1",
    "map_contains_key(m, 'k') AND a[0] = 1",
    "array_contains(a, 1)",
    "exists(a, e -> e = 1)",
    "variant_get(j, '$.f', 'int') = 1",
)
CONDITIONS = [
    *(("row_level", condition) for condition in OF_ROW_1),
    *(
        (policy, "variant_get(j, '$.f', 'int') = 1")
        for policy in ("maxcompute_delta", "serializable")
    ),
]


@pytest.mark.parametrize(("policy", "condition"), CONDITIONS)
class TestConditionsOnNestedValues:
    """A condition on a nested field is judged by the whole partition."""

    def make(self, spark: SparkSession, path: Path, policy: str) -> Table:
        row = "SELECT {0}, named_struct('x', {0}), map('k', {0}), array({0}), to_variant_object"
        row += "(named_struct('f', {0})), {0}"
        inserts = [f"INSERT INTO {{t}} {row.format(number)}" for number in (1, 2)]
        table = make_table(
            spark, path, policy=policy, columns=NESTED, statements=(inserts[0], inserts[1])
        )
        assert ids(spark, table) == [1, 2]
        return table

    @pytest.mark.variant_cases(but=["row_level-s.x = 1"])
    def test_another_partition_is_nobodys_business(
        self, spark: SparkSession, table_path: Path, policy: str, condition: str
    ) -> None:
        table = self.make(spark, table_path, policy)
        update = f"UPDATE {{t}} SET id = 10 WHERE p = 1 AND {condition}"
        for winner, left in (
            ("INSERT INTO {t} VALUES (3, NULL, NULL, NULL, NULL, 2)", [2, 3, 10]),
            ("UPDATE {t} SET id = 20 WHERE p = 2 AND id = 2", [3, 10, 20]),
        ):
            assert last_of(spark, table, (winner,), update) is None
            assert ids(spark, table) == left
            spark.sql(f"UPDATE {table} SET id = 1 WHERE id = 10")

    @pytest.mark.variant_cases(but=["row_level-s.x = 1"])
    def test_of_two_changes_of_a_row_one_fails(
        self, spark: SparkSession, table_path: Path, policy: str, condition: str
    ) -> None:
        table = self.make(spark, table_path, policy)
        delete = f"DELETE FROM {{t}} WHERE p = 1 AND {condition}"
        error = last_of(spark, table, ("UPDATE {t} SET id = 5 WHERE p = 1 AND s.x = 1",), delete)
        assert isinstance(error, ConflictError)
        assert ids(spark, table) == [2, 5]
        assert unknown_files(table) == []


class TestStreamsThatRead:
    def append(self, spark: SparkSession, source: Path, table: Table, checkpoint: Path) -> None:
        """Append a table's new rows to another, and stop."""
        stream = spark.readStream.format("delta").option("skipChangeCommits", True)
        query = (
            stream.load(str(source))
            .writeStream.format("delta")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start(str(table.path))
        )
        query.awaitTermination()

    def test_a_reader_sees_each_row_once(self, spark: SparkSession, tmp_path: Path) -> None:
        """A stream gets nothing from compactions, and skips overwrites and RESTORE as changes."""
        source = make(spark, tmp_path / "source", "maxcompute_delta")
        copy = make_table(
            spark, tmp_path / "copy", columns=PARTITIONED, statements=(), policy="maxcompute_delta"
        )

        def follow() -> Rows:
            self.append(spark, source.path, copy, tmp_path / "checkpoint")
            return rows(spark, copy)

        assert follow() == (A, B, C)
        spark.sql(f"INSERT INTO {source} VALUES {IN_1}")
        spark.sql(f"ALTER TABLE {source} COMPACT MAJOR")
        assert follow() == (A, B, C, IN_1)
        spark.sql(f"INSERT OVERWRITE {source} VALUES {Z}")
        spark.sql(f"RESTORE TABLE {source} TO VERSION AS OF 3")
        spark.sql(f"INSERT INTO {source} VALUES {IN_2}")
        assert follow() == (A, B, C, IN_1, IN_2)
