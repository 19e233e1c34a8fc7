"""A real standalone cluster: one master, two workers, and drivers that write one table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cluster import Cluster, standalone_cluster
from tests.demo.demo_process import deltalake_totals, jobs_of, run_demo

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
        "INSERT INTO Oct (late)": [["APPEND", "0", "LOST", "-", "1", "D2, ConcurrentAppend"]],
    }
    assert done.stdout.rstrip().endswith("jobs lost: maxcompute_delta 1 of 2")
    assert f"{deltalake_totals(kept / 'maxcompute_delta').rows:,} rows" in done.stdout
