"""The metrics source `interlock`, as Spark's own servlets show it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from pyspark.sql import SparkSession

from tests.kit.sessions import classic_session
from tests.kit.support import make_table, sql_race

UI = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.metrics.conf.*.sink.prometheusServlet.class": (
        "org.apache.spark.metrics.sink.PrometheusServlet"
    ),
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session whose UI listens on this machine alone."""
    with classic_session(**UI) as session:
        yield session


def page(spark: SparkSession, path: str) -> str:
    address = spark.sparkContext.uiWebUrl
    assert address is not None
    with urlopen(f"{address}/metrics/{path}/", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def counts(spark: SparkSession) -> dict[str, int]:
    """Read the counters, and how often the histograms were updated, from the JSON servlet."""
    found = json.loads(page(spark, "json"))
    start = f"{spark.sparkContext.applicationId}.driver.interlock."
    return {
        name.removeprefix(start): metric["count"]
        for kind in ("counters", "histograms")
        for name, metric in found[kind].items()
        if name.startswith(start)
    }


def test_commits_rebases_and_conflicts_are_counted(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path)
    before = counts(spark)
    assert {"commits", "attempts", "commitMillis", "judgeMillis"} <= set(before)
    insert = "INSERT INTO {t} VALUES (10, 'i')"
    races = [
        (insert, insert),  # D7 fails
        (insert, "ALTER TABLE {t} COMPACT MINOR"),  # D9 passes as it is
        ("ALTER TABLE {t} ADD COLUMN w INT", insert),
    ]
    for earlier, later in races:
        assert sql_race(spark, table, earlier, later)[0].ok
    spark.sql("CREATE TABLE stock (id INT) USING delta")  # no policy, not counted
    after = counts(spark)
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert {name: value for name, value in grown.items() if value} == {
        "commits": 4,
        "commitMillis": 4,
        "attempts": 4,  # each is judged before it is written
        "judgeMillis": 3,
        "rebases.AS_IS": 1,
        "conflicts.D7": 1,
        "conflicts.MetadataChanged": 1,
    }
    prometheus = page(spark, "prometheus")
    for name, value in (("commits", after["commits"]), ("conflicts_D7", after["conflicts.D7"])):
        (line,) = (line for line in prometheus.splitlines() if f"_interlock_{name}_Count" in line)
        assert line.endswith(f" {value}")
    (judged,) = (line for line in prometheus.splitlines() if "_interlock_judgeMillis_Count" in line)
    assert judged.endswith(f" {after['judgeMillis']}")
