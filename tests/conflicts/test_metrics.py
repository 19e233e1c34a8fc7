"""The metrics source `interlock`, as Spark's own servlets show it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from interlock.errors import UsageError
from pyspark.sql import SparkSession

from tests.kit.sessions import classic_session
from tests.kit.support import commit_file, confs, log_of, make_table, race, sql_race

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
MEMORY = "spark.interlock.commit.memory"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session whose UI listens on this machine alone, and which keeps few commits."""
    with classic_session(**UI, **{MEMORY: "100k"}) as session:
        yield session


MS = r"([\d.]+) ms"
PHASES = [
    f"phases.{name}" for name in ("turn", "winners", "judge", "checksum", "store", "snapshot")
]


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
        for kind in ("counters", "histograms", "timers")
        for name, metric in found[kind].items()
        if name.startswith(start)
    }


def commit_memory(spark: SparkSession) -> int:
    gauges = json.loads(page(spark, "json"))["gauges"]
    value: int = gauges[f"{spark.sparkContext.applicationId}.driver.interlock.commitMemory"][
        "value"
    ]
    return value


@contextmanager
def memory(spark: SparkSession, size: str) -> Iterator[None]:
    """Apply another size of memory than that with which Spark was started."""
    jvm: Any = spark._jvm
    conf = jvm.org.apache.spark.SparkEnv.get().conf()
    started = conf.get(MEMORY)
    conf.set(MEMORY, size)
    try:
        jvm.io.interlock.spark.InterlockExtension.limitMemory()
        yield
    finally:
        conf.set(MEMORY, started)
        jvm.io.interlock.spark.InterlockExtension.limitMemory()


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
        **dict.fromkeys(PHASES, 4),
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


def test_a_commit_beyond_the_memory_is_not_kept(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path)
    before = commit_memory(spark)
    with confs(spark, {"spark.databricks.delta.commitInfo.userMetadata": "x" * 100 * 1024}):
        spark.sql(f"INSERT INTO {table} VALUES (10, 'i')")
    assert commit_memory(spark) == before


def test_the_memory_of_commits_is_shown(spark: SparkSession, table_path: Path) -> None:
    with memory(spark, "64k"):  # makes room: other tests of this JVM may have filled it
        pass
    table = make_table(spark, table_path)
    before = commit_memory(spark)
    spark.sql(f"INSERT INTO {table} VALUES (10, 'i')")
    size = commit_file(table, 3).stat().st_size
    assert 0.9 * size < commit_memory(spark) - before <= size


@pytest.mark.parametrize("wrong", ["64", "-1", "much"])
def test_a_wrong_memory(spark: SparkSession, wrong: str) -> None:
    with (
        pytest.raises(UsageError, match=f"{MEMORY} cannot be '{wrong}'"),
        memory(spark, wrong),
    ):
        pass


def test_a_trace_tells_where_the_time_went(spark: SparkSession, table_path: Path) -> None:
    table = make_table(spark, table_path)
    insert = f"INSERT INTO {table} VALUES (10, 'i')"
    compact = f"ALTER TABLE {table} COMPACT MINOR"
    audit = "org.apache.spark.sql.delta.interlock.commit.CommitAudit"
    with log_of(spark, audit) as lines:
        spark.sql(insert)
        assert str(lines) == ""
        with confs(spark, {"spark.interlock.trace": "true"}):
            begun = time.monotonic()
            assert all(job.ok for job in race(spark, insert, compact))
            seconds = time.monotonic() - begun
    pattern = (
        rf"Version (\d) of (\S+) by (.*): read version 3, passed (\d) commits, "
        rf"turn {MS}, winners {MS}, judge {MS}, checksum {MS}, store {MS}, snapshot {MS}"
    )
    first, second = (re.fullmatch(pattern, line) for line in str(lines).splitlines())
    assert first is not None
    assert second is not None
    assert first.group(1, 2, 3, 4) == ("4", str(table), "WRITE", "0")
    assert second.group(1, 2, 3, 4) == ("5", str(table), "COMPACT MINOR", "1")
    for told in (first, second):
        times = [float(time) for time in told.groups()[4:]]
        assert 0 < times[-2] <= sum(times) <= 1000 * seconds  # the store takes some time
    assert float(second.group(6)) > 0  # it has read a winner


def test_a_commit_is_told_before_its_compaction(spark: SparkSession, table_path: Path) -> None:
    """The commit is reported before Delta's auto compaction, whose time does not count."""
    table = make_table(spark, table_path, properties={"delta.autoOptimize.autoCompact": "true"})
    audit = "org.apache.spark.sql.delta.interlock.commit.CommitAudit"
    minimum = {"spark.databricks.delta.autoCompact.minNumFiles": "2"}
    with confs(spark, {"spark.interlock.trace": "true", **minimum}), log_of(spark, audit) as lines:
        spark.sql(f"INSERT INTO {table} VALUES (10, 'i')")
    told = [re.match(r"Version (\d) of \S+ by (\w+)", line) for line in str(lines).splitlines()]
    assert [line and line.groups() for line in told] == [("3", "WRITE"), ("4", "OPTIMIZE")]
