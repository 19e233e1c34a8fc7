"""Sources of writes that have read their table, or fixed the version, before the write begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from tests.kit.spark_version import SPARK
from tests.kit.support import Table


@dataclass(frozen=True)
class Target:
    """A table as a session calls it: by a name in the catalog, or by its path."""

    spark: SparkSession
    table: Table
    name: str | None

    def __str__(self) -> str:
        return self.name or str(self.table)

    def frame(self, reader: Any = None) -> DataFrame:
        reader = self.spark.read.format("delta") if reader is None else reader
        found: DataFrame = reader.table(self.name) if self.name else reader.load(self._path)
        return found

    def write(self, data: DataFrame, mode: str, **options: str) -> None:
        writer = data.write.format("delta").mode(mode).options(**options)
        if self.name:
            writer.saveAsTable(self.name)
        else:
            writer.save(self._path)

    def replace_using(self, data: DataFrame) -> None:
        self.write(data, "overwrite", replaceUsing="id")

    def replace_on(self, data: DataFrame) -> None:
        on = {"targetAlias": "old", "replaceOn": "old.id = new.id"}
        self.write(data.alias("new"), "overwrite", **on)

    def handle(self) -> DeltaTable:
        if self.name:
            return DeltaTable.forName(self.spark, self.name)
        return DeltaTable.forPath(self.spark, self._path)

    @property
    def _path(self) -> str:
        return self.table.location


@dataclass(frozen=True)
class Source:
    """A way to read a table early.

    Attributes:
        relation: the rows of the table. Of changes, `sign` is -1 in those that were there before
        then: what makes a query of them a source
        settings: what the session must have

    """

    relation: Callable[[Target], DataFrame] = lambda target: target.frame()
    then: Callable[[Target, DataFrame], DataFrame] = lambda target, frame: frame
    settings: tuple[tuple[str, str], ...] = ()

    def read(self, target: Target, query: Callable[[DataFrame], DataFrame]) -> DataFrame:
        return self.then(target, query(self.relation(target)))


def _checkpoint(target: Target, frame: DataFrame) -> DataFrame:
    context = target.spark.sparkContext
    if context.getCheckpointDir() is None:
        context.setCheckpointDir(str(target.table.path.parent / "checkpoints"))
    return frame.checkpoint()


def _checkpoint_lazily(target: Target, frame: DataFrame) -> DataFrame:
    local = frame.localCheckpoint(eager=False)
    local.count()
    return local


def _cache(target: Target, frame: DataFrame) -> DataFrame:
    frame.persist().count()
    return frame


def _after_version(target: Target) -> DataFrame:
    return target.frame(target.spark.read.format("delta").option("afterVersion", 0))


def _of(version: str) -> Callable[[Target], DataFrame]:
    return lambda target: target.spark.sql(f"SELECT * FROM {target} {version.format(t=target)}")


def _changes(target: Target) -> DataFrame:
    if SPARK < (4, 2):
        return _of(VERSIONS["changes"])(target)
    return target.spark.sql(
        "SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS sign "
        f"FROM {target} {VERSIONS['changes']}"
    )


_LATEST = "get_latest_version('{t}')"
# Each with all rows of the table, if version 0 has none.
VERSIONS = {
    "latest version": f"VERSION AS OF {_LATEST}",
    "current time": "TIMESTAMP AS OF current_timestamp()",
    "between": f"VERSION BETWEEN 0 AND {_LATEST}",
    # The versions of Spark without the clause have the range in its place.
    "changes": "CHANGES FROM VERSION 1" if SPARK >= (4, 2) else f"VERSION BETWEEN 0 AND {_LATEST}",
}
# They read `_metadata`. With row tracking Delta fails an UPDATE whose subqueries do.
RANGES = ("between", "afterVersion") + (() if SPARK >= (4, 2) else ("changes",))
CHANGES = (
    ("spark.databricks.delta.changelogV2.enabled", "true"),
    ("spark.databricks.delta.v2.enableMode", "AUTO"),
)
SOURCES = {
    "localCheckpoint": Source(then=lambda target, frame: frame.localCheckpoint()),
    "checkpoint": Source(then=_checkpoint),
    "cache": Source(then=_cache),
    "lazy checkpoint": Source(then=_checkpoint_lazily),
    **{name: Source(_of(version)) for name, version in VERSIONS.items() if name != "changes"},
    "afterVersion": Source(_after_version),
    "changes": Source(_changes, settings=CHANGES),
    # It has read nothing yet.
    "kept": Source(),
}
