"""What loaders run on one table at once, on threads: dbt in eight runs, dlt in five workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from interlock.lab.model import in_order
from pyspark.sql import SparkSession

from tests.kit.support import rows

WITH = "TBLPROPERTIES ('interlock.policy' = 'row_level')"


def at_once(spark: SparkSession, workers: int, work: Callable[[int], Iterator[str]]) -> None:
    """Run the statements of each worker in its own session; the first error is raised."""
    barrier = threading.Barrier(workers)
    errors: list[Exception] = []

    def run(worker: int) -> None:
        session = spark.newSession()
        barrier.wait()
        try:
            for statement in work(worker):
                session.sql(statement)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database for the tables of a test."""
    spark.sql(f"CREATE DATABASE loaders LOCATION '{tmp_path}/loaders'")
    yield "loaders"
    spark.sql("DROP DATABASE loaders CASCADE")


@pytest.mark.variant_cases(but=["clustered"])
@pytest.mark.parametrize("strategy", ["replace_where", "clustered", "merge"])
def test_dbt(spark: SparkSession, database: str, strategy: str) -> None:
    """Each run loads its own day, documents the table, and sets properties at its end."""
    table = f"{database}.fct"
    by = "PARTITIONED BY (day)" if strategy == "replace_where" else "CLUSTER BY (day)"
    spark.sql(f"CREATE TABLE {table} (id INT, v STRING, day INT) USING delta {by} {WITH}")
    # A file for each day, or for each row.
    files = 1 if strategy == "replace_where" else 16
    spark.sql(f"INSERT INTO {table} SELECT id, 'old', id % 8 FROM range(0, 16, 1, {files})")

    def work(run: int) -> Iterator[str]:
        ids = f"range({run}, 16, 8, 1)"
        batch = f"SELECT CAST(id AS INT) AS id, 'new' AS v, {run} AS day FROM {ids}"
        yield f"ALTER TABLE {table} ALTER COLUMN v COMMENT 'the value'"
        yield f"COMMENT ON TABLE {table} IS 'facts'"
        if strategy == "merge":
            yield (
                f"MERGE INTO {table} t USING ({batch}) s ON t.id = s.id AND t.day = s.day "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        else:
            yield f"INSERT INTO {table} REPLACE WHERE day = {run} {batch}"
        if strategy == "replace_where":
            yield f"OPTIMIZE {table}"
        else:
            yield f"ALTER TABLE {table} CLUSTER BY (day)"
        yield f"ALTER TABLE {table} SET TBLPROPERTIES ('dbt' = 'yes', 'run{run}' = 'done')"

    at_once(spark, 8, work)
    assert rows(spark, table) == in_order(tuple((i, "new", i % 8) for i in range(16)))
    detail = spark.sql(f"DESCRIBE DETAIL {table}").first()
    assert detail is not None
    assert detail["description"] == "facts"
    done = {f"run{run}": "done" for run in range(8)} | {"dbt": "yes"}
    assert detail["properties"].items() >= done.items()
    assert spark.table(table).schema["v"].metadata["comment"] == "the value"


def test_dlt(spark: SparkSession, database: str) -> None:
    """Each worker makes sure that the table is there and has its columns, and loads."""
    table = f"{database}.loads"

    def work(worker: int) -> Iterator[str]:
        yield f"CREATE TABLE IF NOT EXISTS {table} (id INT) USING delta {WITH}"
        yield f"COMMENT ON TABLE {table} IS 'by dlt'"
        yield f"INSERT INTO {table} (id) VALUES ({worker})"

    at_once(spark, 5, work)
    assert rows(spark, table) == tuple((worker,) for worker in range(5))

    def evolve(worker: int) -> Iterator[str]:
        yield f"ALTER TABLE {table} ADD COLUMN w{worker} STRING COMMENT 'new'"
        yield f"INSERT INTO {table} (id, w{worker}) VALUES ({worker}, 'x')"

    at_once(spark, 5, evolve)
    names = sorted(field.name for field in spark.table(table).schema)
    assert names == ["id", *(f"w{worker}" for worker in range(5))]
    assert spark.table(table).count() == 10
