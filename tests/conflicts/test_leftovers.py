"""What a failed job leaves behind: none of its own files, and everything that was there before.

Every case lists the table's folder with sizes before the race and after it: the difference must be
what the winner wrote. Then every version is read, with Spark and without.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from interlock.errors import ConflictError, MetadataChangedError
from pyspark.sql import SparkSession

from tests.kit.support import (
    Table,
    commit,
    deltalake_rows,
    latest_version,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
    versions,
)

INSERT = "INSERT INTO {t} VALUES (10, 'i')"
DELETE = "DELETE FROM {t} WHERE id = 2"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 2"
MERGE = (
    "MERGE INTO {t} t USING (SELECT explode(array(2, 5)) AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'U' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')"
)
ADD_COLUMN = "ALTER TABLE {t} ADD COLUMNS (w INT)"
VECTORS = {"delta.enableDeletionVectors": "true"}
NO_VECTORS = {"delta.enableDeletionVectors": "false"}
CHANGE_FEED = {**NO_VECTORS, "delta.enableChangeDataFeed": "true"}
# Rows of one file with a deletion vector of two, then a file of one row.
SETUP = (
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a'), (2, 'b'), (6, 'f')",
    "DELETE FROM {t} WHERE id = 6",
    "INSERT INTO {t} VALUES (3, 'c')",
)
READ = 3


def files_of(table: Table) -> dict[str, int]:
    """Return the size of every file outside the log, checksum files included."""
    return {
        str(file.relative_to(table.path)): file.stat().st_size
        for file in table.path.rglob("*")
        if file.is_file() and "_delta_log" not in file.parts
    }


def added_by(table: Table, version: int) -> set[str]:
    """Return the files that one version added, each with Hadoop's checksum file."""
    added = {action["add"]["path"] for action in commit(table, version) if "add" in action}
    return added | {f".{path}.crc" for path in added}


def race_that_fails(
    spark: SparkSession, table: Table, winner: str, loser: str
) -> tuple[Exception | None, set[str]]:
    """Return the loser's error and the files in the table's folder that are nobody's."""
    before = files_of(table)
    first, lost = race(spark, *(sql_job(s.format(t=table)) for s in (winner, loser)))
    assert first.error is None
    assert lost.held
    after = files_of(table)
    assert before.items() <= after.items()
    assert latest_version(table) == READ + 1
    return lost.error, after.keys() - before.keys() - added_by(table, READ + 1)


def check_all_versions(spark: SparkSession, table: Table, counts: tuple[int, ...]) -> None:
    """Read every version up to the winner's, which is the last."""
    counted = " UNION ALL ".join(
        f"SELECT {version} AS version, count(*) FROM {table} VERSION AS OF {version}"
        for version in range(len(counts))
    )
    found = spark.sql(counted).collect()
    assert sorted(map(tuple, found)) == list(enumerate(counts))
    assert len(deltalake_rows(table)) == counts[-1]


@pytest.mark.variant_cases(but=["delete-with-vectors", "reorg"])
@pytest.mark.parametrize(
    ("policy", "properties", "winner", "loser"),
    [
        pytest.param("maxcompute_delta", CHANGE_FEED, INSERT, UPDATE, id="update-with-changes"),
        pytest.param("maxcompute_delta", VECTORS, INSERT, DELETE, id="delete-with-vectors"),
        pytest.param("maxcompute_delta", VECTORS, INSERT, MERGE, id="merge-with-vectors"),
        pytest.param(
            "maxcompute_transactional", VECTORS, INSERT, "REORG TABLE {t} APPLY (PURGE)", id="reorg"
        ),
        pytest.param(
            "serializable",
            VECTORS,
            "INSERT INTO {t} VALUES (2, 'i')",
            DELETE,
            id="delete-judged-by-files",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_statement_that_loses_leaves_nothing_and_takes_nothing(
    spark: SparkSession,
    table_path: Path,
    policy: str,
    properties: dict[str, str],
    winner: str,
    loser: str,
) -> None:
    table = make_table(spark, table_path, policy=policy, properties=properties, statements=SETUP)
    error, nobodys = race_that_fails(spark, table, winner, loser)
    assert isinstance(error, ConflictError)
    assert nobodys == set()
    check_all_versions(spark, table, (0, 3, 2, 3, 4))


def test_nor_does_one_of_a_table_with_a_coordinator_alone(
    spark: SparkSession, table_path: Path
) -> None:
    coordinated = {**NO_VECTORS, "interlock.coordinator": "filesystem"}
    table = make_table(spark, table_path, policy=None, properties=coordinated, statements=SETUP)
    error, nobodys = race_that_fails(spark, table, UPDATE, DELETE)
    assert isinstance(error, ConflictError)
    assert nobodys == set()


def test_nor_does_one_that_fails_by_deltas_own_checks(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, properties=NO_VECTORS, statements=SETUP)
    error, nobodys = race_that_fails(
        spark, table, ADD_COLUMN, "INSERT OVERWRITE {t} VALUES (9, 'o')"
    )
    assert isinstance(error, MetadataChangedError)
    assert nobodys == set()
    check_all_versions(spark, table, (0, 3, 2, 3, 3))


def test_dml_on_a_shallow_clone_keeps_the_files_of_its_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = make_table(spark, tmp_path / "source", policy=None, properties=VECTORS)
    source_files = files_of(source)
    clone = Table(tmp_path / "clone")
    spark.sql(
        f"CREATE TABLE {clone} SHALLOW CLONE {source} "
        "TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')"
    )
    first = latest_version(clone)
    _, lost = race(spark, *(sql_job(s.format(t=clone)) for s in (INSERT, DELETE)))
    assert isinstance(lost.error, ConflictError)
    assert versions(clone)[-1] == first + 1
    assert files_of(source) == source_files
    assert files_of(clone).keys() == added_by(clone, first + 1)
    assert rows(spark, clone) == ((1, "a"), (10, "i"), (2, "b"), (3, "c"))


@pytest.mark.parametrize("policy", ["row_level", "maxcompute_delta"])
def test_nor_does_an_optimize_that_delta_cannot_try_again(
    spark: SparkSession, table_path: Path, policy: str
) -> None:
    """Where files decide, Delta tries its OPTIMIZE again if the inputs are still in the table."""
    table = make_table(spark, table_path, policy=policy)
    before = files_of(table)

    def replace(session: SparkSession) -> None:
        new = session.sql("SELECT 7 AS id, 1 AS w").write.format("delta")
        new.mode("overwrite").option("overwriteSchema", "true").save(str(table_path))

    first, second = race(spark, python_job("replace", replace), sql_job(f"OPTIMIZE {table}"))
    assert first.ok
    assert isinstance(second.error, MetadataChangedError)
    assert set(files_of(table)) == set(before) | added_by(table, 3)
    assert versions(table) == [0, 1, 2, 3]
    assert rows(spark, table) == deltalake_rows(table) == ((7, 1),)


def test_an_optimize_that_delta_tries_again_keeps_its_files(
    spark: SparkSession, table_path: Path
) -> None:
    table = make_table(spark, table_path, policy="row_level")
    first, second = race(
        spark,
        sql_job(
            f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')"
        ),
        sql_job(f"OPTIMIZE {table}"),
    )
    assert first.ok
    assert second.ok
    assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (2, "b"), (3, "c"))


def test_nor_does_an_optimize_whose_inputs_have_other_deletion_vectors(
    spark: SparkSession, table_path: Path
) -> None:
    """Delta tries again if the same files are there with the same deletion vectors."""
    table = make_table(spark, table_path, policy="row_level", statements=SETUP)
    before = {name for name in files_of(table) if name.endswith(".parquet")}
    delete, alter, optimize = race(
        spark,
        DELETE.format(t=table),
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '1')",
        f"OPTIMIZE {table}",
    )
    assert delete.ok
    assert alter.ok
    assert isinstance(optimize.error, MetadataChangedError)
    assert {name for name in files_of(table) if name.endswith(".parquet")} == before
    assert rows(spark, table) == deltalake_rows(table) == ((1, "a"), (3, "c"))
