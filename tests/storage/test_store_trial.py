"""`interlock doctor URL`: writers race for files on two real servers, of which one fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.command import doctor
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.spark_version import s3_without_database
from tests.storage import hasty_s3, s3

pytestmark = s3_without_database

DONE = Answer()
ONE_WINNER = "each of 100 races of 32 writers had one winner"
TABLE = "delta.`s3a://bucket/tables/t`"
CREATE = (
    f"CREATE TABLE {TABLE} (id INT) USING delta TBLPROPERTIES ('interlock.policy' = 'row_level')"
)

TOLD_OF_THE_TABLE = f"""spark.conf
from interlock._table_diagnosis import of_table
told = {{check.name: check for check in of_table(spark, "{TABLE}")}}
assert told["Races"].ok, told
assert told["Races"].found.startswith("{ONE_WINNER} ("), told
"""
TRIAL = """spark.conf
from interlock._diagnosis import store
told = store(spark, "s3a://bucket/tables")
assert not told.ok, told
assert told.found.endswith("of 100 races of 32 writers had more than one winner"), told
assert "Postgres" in told.fix, told
missing = store(spark, "s3a://missing/tables")
assert missing.found.startswith("org.apache.hadoop.fs.s3a.UnknownStoreException"), missing
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.Server]:
    with s3.start(tmp_path_factory.mktemp("s3")) as found:
        yield found


def test_a_server_that_passes(server: s3.Server, tmp_path: Path) -> None:
    settings = server.settings()
    found = doctor(settings, f"{server.url}/tables")
    assert "Policy" not in found
    assert found["Races in s3a://bucket/tables"]["found"] == ONE_WINNER
    assert [file.name for file in server.bucket.rglob("*") if file.is_file()] == [
        "_interlock_store.properties"
    ]
    with driver_processes(tmp_path, "interlock", settings=settings) as (driver,):
        assert driver.run(CREATE) == DONE
        assert driver.run(TOLD_OF_THE_TABLE) == DONE


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverProcess]:
    """A process whose S3 is a server that looks first and writes later."""
    folder = tmp_path_factory.mktemp("hasty")
    with hasty_s3.start(folder / "server.log") as port:
        settings = s3.settings(port)
        with driver_processes(folder, "interlock", settings=settings) as (driver,):
            yield driver


def test_a_server_that_looks_first_and_writes_later(hasty: DriverProcess) -> None:
    assert hasty.run(TRIAL) == DONE
    refused = hasty.run(CREATE)
    assert "[INTERLOCK_NO_PUT_IF_ABSENT]" in refused.message
    assert "races of 32 writers had more than one winner" in refused.message
