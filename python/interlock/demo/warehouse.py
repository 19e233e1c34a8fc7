"""The session of the demo, its tables, and what their logs say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import interlock
from interlock._small_session import SHORT_JVM_OPTIONS
from interlock.demo.flights import KEY, Batch
from interlock.demo.replay import SUMS, Totals

_SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": SHORT_JVM_OPTIONS,
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    # Every small file is read by a task of its own.
    "spark.sql.files.maxPartitionBytes": "4m",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def start_session(master: str, settings: Mapping[str, str]) -> SparkSession:
    """Start a session with Interlock.

    Args:
        master: Spark's master
        settings: Spark settings of the user's, which go before those of the demo

    """
    builder = SparkSession.builder.master(master).appName("interlock demo")
    builder = builder.config(map={**_SETTINGS, **settings})
    return interlock.configure(builder).getOrCreate()


def creation(
    table: str, policy: str | None, flights: Batch, more: Mapping[str, str] | None = None
) -> str:
    """Return the statement that creates a table from flights.

    Without a policy it is like any table of stock Delta. With deletion vectors UPDATE, DELETE and
    MERGE write only the rows that they change.

    Args:
        table: its name in SQL
        policy: its policy, None for none
        flights: its first rows
        more: further properties

    """
    properties = {"delta.enableDeletionVectors": "true", **(more or {})}
    if policy:
        properties["interlock.policy"] = policy
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    return (
        f"CREATE TABLE {table} USING delta PARTITIONED BY (month) "
        f"TBLPROPERTIES ({listed}) AS SELECT * FROM {flights.sql}"
    )


@dataclass(frozen=True)
class Table:
    """A table of flights, partitioned by month.

    Attributes:
        spark: the session that writes it
        location: its folder, or its URL

    """

    spark: SparkSession
    location: str

    @property
    def sql(self) -> str:
        """Return what SQL calls it."""
        return f"delta.`{self.location}`"

    @property
    def version(self) -> int:
        """Return its latest version, as its log's files say."""
        files, log = self._log()
        stems = (file.getPath().getName().removesuffix(".json") for file in files.listStatus(log))
        return max(int(stem) for stem in stems if stem.isdigit())

    def commit_info(self, version: int) -> dict[str, Any]:
        """Return what the log says about the job that made a version."""
        files, log = self._log()
        jvm: Any = self.spark._jvm
        opened = files.open(jvm.org.apache.hadoop.fs.Path(log, f"{version:020}.json"))
        try:
            text = jvm.org.apache.commons.io.IOUtils.toString(opened, "UTF-8")
        finally:
            opened.close()
        actions = map(json.loads, text.splitlines())
        info: dict[str, Any] = next(a["commitInfo"] for a in actions if "commitInfo" in a)
        return info

    def draw(self, page: Path) -> None:
        """Write the page of its jobs."""
        interlock.table(self.spark, self.location).timeline(path=page)

    def totals(self) -> Totals:
        """Return what Spark counts in it."""
        return totals_from(lambda sql: self.spark.sql(sql).collect(), self.sql)

    def _log(self) -> tuple[Any, Any]:
        """Return Hadoop's file system of the log, and the log's folder there."""
        jvm: Any = self.spark._jvm
        session: Any = self.spark._jsparkSession
        log = jvm.org.apache.hadoop.fs.Path(self.location, "_delta_log")
        return log.getFileSystem(session.sessionState().newHadoopConf()), log


def totals_from(rows: Callable[[str], Iterable[Sequence[Any]]], table: str) -> Totals:
    """Return what a reader counts in a table.

    Args:
        rows: runs a query
        table: the table's name in queries

    """
    sums = ", ".join(f"CAST(sum({column}) AS BIGINT)" for column in SUMS)
    months = rows(f"SELECT month, count(*), {sums} FROM {table} GROUP BY month")
    twice = rows(f"SELECT 1 FROM {table} GROUP BY {', '.join(KEY)} HAVING count(*) > 1")
    return Totals({row[0]: tuple(row[1:]) for row in months}, len(list(twice)))
