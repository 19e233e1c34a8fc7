"""Tables whose commits something else orders get no policy, and no commit goes past it.

The catalog is the session's, with the coordinator that Delta has for its tests of catalog-managed
tables: it leaves commits in `_staged_commits`, and what it knows of a path is in its memory. How
Unity Catalog was tried is in docs/recipes.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.driver_process import Answer, DriverProcess, driver_processes

DONE = Answer()
# Other than for Unity Catalog, Delta creates such tables in tests only.
BEGIN = """spark._jvm.System.setProperty("spark.testing", "true")
commits = spark._jvm.org.apache.spark.sql.delta.coordinatedcommits
catalog = commits.InMemoryCommitCoordinatorBuilder(10)
commits.CatalogOwnedCommitCoordinatorProvider.registerBuilder("spark_catalog", catalog)
"""
MANAGED = "'delta.feature.catalogManaged' = 'supported'"
POLICY = "'interlock.policy' = 'row_level'"
PREVIEW = (
    "'delta.coordinatedCommits.commitCoordinator-preview' = 'dynamodb', "
    "'delta.coordinatedCommits.commitCoordinatorConf-preview' = '{}'"
)
KEYS = "'interlock.policy', 'interlock.coordinator'"  # as the error advises
# In a session that began without Interlock, as another library may begin one.
LOAD = "spark._jvm.org.apache.spark.sql.delta.interlock.block.TransactionHook.install()"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("managed")


@pytest.fixture(scope="module")
def driver(folder: Path) -> Iterator[DriverProcess]:
    settings = {"spark.sql.warehouse.dir": str(folder / "interlock")}
    with driver_processes(folder, "interlock", settings=settings) as (process,):
        assert process.run(BEGIN) == DONE
        yield process


def create(driver: DriverProcess, name: str, *properties: str) -> None:
    """Make a table with one row, at version 1."""
    given = ", ".join([MANAGED, *properties])
    assert driver.run(f"CREATE TABLE {name} (id INT) USING delta TBLPROPERTIES ({given})") == DONE
    assert driver.run(f"INSERT INTO {name} VALUES (1)") == DONE


def holds(driver: DriverProcess, table: str, *ids: int) -> bool:
    """Tell whether a table, or a version of it, has these rows."""
    found = f"sorted(row.id for row in spark.sql('SELECT id FROM {table}').collect())"
    return driver.run(f"spark.conf\nassert {found} == {list(ids)}, {found}") == DONE


def looked_at(found: str, *, ok: bool) -> str:
    """Code that checks what the doctor says of the policy of `t`."""
    return (
        "spark.conf\nfrom interlock._table_diagnosis import of_table\n"
        "check = next(of_table(spark, 't'))\n"
        f"assert check.ok is {ok} and check.found.startswith({found!r}), check"
    )


def files(table: Path) -> set[str]:
    """The files of a table, without notes of running jobs."""
    found = {str(file.relative_to(table)) for file in table.rglob("*")}
    return {name for name in found if "_interlock" not in name and "/." not in f"/{name}"}


def published(table: Path) -> list[str]:
    """The versions that are in the log, and not only in the catalog."""
    return [file.name for file in (table / "_delta_log").glob("*.json")]


def is_refused(told: Answer) -> bool:
    return told.message.count("[INTERLOCK_OTHER_COORDINATOR]") == 1 and (
        "its catalog (table feature catalogManaged)" in told.message
    )


def test_a_policy_is_refused(driver: DriverProcess, folder: Path) -> None:
    create(driver, "t")
    path = folder / "interlock" / "t"
    before = files(path)
    for statement in (
        f"ALTER TABLE t SET TBLPROPERTIES ({POLICY})",
        "ALTER TABLE t SET TBLPROPERTIES ('interlock.coordinator' = 'filesystem')",
        "CALL interlock.set_policy('t', 'row_level')",
    ):
        told = driver.run(statement)
        assert told.error == "UsageError", statement
        assert is_refused(told), statement
        assert files(path) == before
    assert driver.run(looked_at("none: the table's catalog orders", ok=True)) == DONE
    assert driver.run("INSERT INTO t VALUES (2)") == DONE
    assert driver.run("UPDATE t SET id = 3 WHERE id = 1") == DONE
    assert holds(driver, "t", 2, 3)
    assert holds(driver, "t VERSION AS OF 1", 1)
    assert holds(driver, "t VERSION BETWEEN 1 AND 2", 2)
    assert published(path) == [f"{0:020}.json"]


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE TABLE new (id INT) USING delta TBLPROPERTIES ({MANAGED}, {POLICY})",
        f"CREATE TABLE new USING delta TBLPROPERTIES ({MANAGED}, {POLICY}) AS SELECT 1 AS id",
        f"CREATE TABLE new (id INT) USING delta TBLPROPERTIES ({MANAGED.upper()}, {POLICY})",
    ],
)
def test_a_new_table_is_refused(driver: DriverProcess, folder: Path, statement: str) -> None:
    assert is_refused(driver.run(statement))
    assert files(folder / "interlock" / "new") <= {"_delta_log"}
    assert driver.run("spark.catalog.tableExists('new') and 1 / 0") == DONE


def test_a_table_with_a_policy_gets_no_coordinator_of_deltas(driver: DriverProcess) -> None:
    made = f"CREATE TABLE ours (id INT) USING delta TBLPROPERTIES ({POLICY})"
    assert driver.run(made) == DONE
    told = driver.run(f"ALTER TABLE ours SET TBLPROPERTIES ({PREVIEW})")
    assert told.message.count("[INTERLOCK_OTHER_COORDINATOR]") == 1
    assert "the commit coordinator 'dynamodb'" in told.message
    assert driver.run("INSERT INTO ours VALUES (1)") == DONE
    assert holds(driver, "ours", 1)


def test_the_default_policy_is_not_for_them(driver: DriverProcess, folder: Path) -> None:
    assert driver.run("SET spark.interlock.defaultPolicy = row_level") == DONE
    create(driver, "new")
    assert driver.run("RESET spark.interlock.defaultPolicy") == DONE
    assert holds(driver, "new", 1)
    assert published(folder / "interlock" / "new") == [f"{0:020}.json"]


def test_a_policy_that_a_writer_without_interlock_has_set(folder: Path) -> None:
    settings = {"spark.sql.warehouse.dir": str(folder / "stock")}
    with driver_processes(folder, "stock", settings=settings) as (driver,):
        assert driver.run(BEGIN) == DONE
        create(driver, "t")
        create(driver, "u", "'delta.enableRowTracking' = 'false'")
        for table in ("t", "u"):
            assert driver.run(f"ALTER TABLE {table} SET TBLPROPERTIES ({POLICY})") == DONE
        assert driver.run(LOAD) == DONE
        path = folder / "stock" / "t"
        before = files(path)
        for statement in (
            "INSERT INTO t VALUES (2)",
            "INSERT OVERWRITE t VALUES (2)",
            "UPDATE t SET id = 2",
            "DELETE FROM t",
            "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            "ALTER TABLE t ADD COLUMNS (v INT)",
            "RESTORE TABLE t TO VERSION AS OF 0",
        ):
            assert is_refused(driver.run(statement)), statement
        assert files(path) == before
        assert driver.run(looked_at("row_level: the table's catalog orders", ok=False)) == DONE
        for table in ("t", "u"):
            assert holds(driver, table, 1)
            assert driver.run(f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({KEYS})") == DONE
            assert driver.run(f"INSERT INTO {table} VALUES (2)") == DONE
            assert holds(driver, table, 1, 2)
            assert published(folder / "stock" / table) == [f"{0:020}.json"]
        assert driver.run("RESTORE TABLE t TO VERSION AS OF 2") == DONE  # which had the policy
        assert driver.run("INSERT INTO t VALUES (3)") == DONE
        assert holds(driver, "t", 1, 3)
        assert holds(driver, "t VERSION AS OF 3", 1)
        assert is_refused(driver.run(f"ALTER TABLE t SET TBLPROPERTIES ({POLICY})"))
