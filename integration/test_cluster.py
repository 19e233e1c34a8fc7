"""A real standalone cluster: one master, two workers, and drivers that write one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from interlock.demo.flights import Landing, Year
from interlock.demo.jobs import DemoJob
from interlock.demo.replay import Replay
from interlock.demo.schedule import schedule
from interlock.demo.warehouse import creation

from integration.cluster import Cluster, standalone_cluster
from tests.demo.demo_process import deltalake_totals, jobs_of, run_demo
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.support import Table, commit_info, latest_version

pytestmark = pytest.mark.variant

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "800m",
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.files.maxPartitionBytes": "4m",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=2) as running:
        yield running


def test_two_drivers_write_one_table(cluster: Cluster, tmp_path: Path) -> None:
    """Jobs of the demo in pairs: the later is held in one driver, the earlier runs in the other."""
    year = Year.load(days=3)
    landing = Landing(tmp_path / "landing")
    loaded = landing.first_load(year.loaded)
    jobs = {job.name: job for planned in schedule(year, landing) for job in planned.jobs}
    table, replay = Table(tmp_path / "flights"), Replay(loaded.frame)

    one_core_each = {**SETTINGS, "spark.master": cluster.master, "spark.cores.max": "1"}
    with driver_processes(tmp_path, "interlock", "interlock", settings=one_core_each) as drivers:
        created = drivers[0].run(creation(str(table), "maxcompute_delta", loaded))
        assert created.error is None, created.message

        def race(earlier: str, later: str) -> Answer:
            return run_pair(drivers, table, replay, jobs[earlier], jobs[later])

        assert race("MERGE into May", "DELETE in Feb").error is None
        assert tags(table) == {"interlock.class": "MUTATE"}

        assert race("INSERT INTO Nov (late)", "INSERT OVERWRITE of Nov").error is None
        assert tags(table) == {
            "interlock.class": "OVERWRITE",
            "interlock.winners": "3",
            "interlock.rules": "D6",
        }
        drivers.reverse()
        lost = race("INSERT INTO Dec (EWR)", "INSERT INTO Dec (JFK)")
        assert (lost.error, lost.rule, lost.winner_version) == ("ConcurrentAppendError", "D7", 5)

        assert race("OPTIMIZE of Sep", "INSERT INTO Sep (late)").error is None
        assert tags(table)["interlock.rules"] == "D17"

    assert all(cluster.executors)
    assert latest_version(table) == 7
    assert list(deltalake_totals(table.path).differences(replay.totals)) == []


def run_pair(
    drivers: list[DriverProcess], table: Table, replay: Replay, earlier: DemoJob, later: DemoJob
) -> Answer:
    """Run two jobs from one version of the table; returns how the later ended."""
    first, second = drivers
    second.hold(later.sql(str(table)))
    done = first.run(earlier.sql(str(table)))
    assert done.error is None, done.message
    ended = second.open()
    replay.round([earlier, later] if ended.error is None else [earlier])
    return ended


def tags(table: Table) -> dict[str, str]:
    """Return the tags of the latest commit that say what came of it."""
    found: dict[str, str] = commit_info(table, latest_version(table))["tags"]
    return {
        key: value
        for key, value in found.items()
        if key in ("interlock.class", "interlock.winners", "interlock.rules")
    }


def test_the_demo_runs_on_it(cluster: Cluster, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    settings = [f"{key}={value}" for key, value in SETTINGS.items()]
    options = [option for setting in settings for option in ("--conf", setting)]
    done = run_demo(
        *("--master", cluster.master, *options, "--days", "2", "--keep", str(kept)),
        *("--rounds", "4", "--runs", "maxcompute_delta"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert jobs_of(done.stdout) == {
        "INSERT OVERWRITE of Oct": [["OVERWRITE", "0", "ok", "1", "-", "-"]],
        "INSERT INTO Oct (late)": [["APPEND", "0", "LOST", "-", "-", "D2, ConcurrentAppend"]],
    }
    assert done.stdout.rstrip().endswith("jobs lost: 1 of 2 on maxcompute_delta")
    assert f"{deltalake_totals(kept / 'maxcompute_delta').rows:,} rows" in done.stdout
