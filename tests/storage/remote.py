"""Storages of tests that are no folder of this machine, and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.kit.support import Table


@dataclass(frozen=True)
class Storage:
    """A bucket or container of a server on 127.0.0.1.

    Attributes:
        url: as Spark names it
        settings: of sessions that use it

    """

    url: str
    settings: Mapping[str, str]


@dataclass(frozen=True)
class SeenTable(Table):
    """A table on such a storage whose files, or copies of them, are in a folder of this machine.

    Attributes:
        root: the folder that stands for the storage
        url: of the storage

    """

    root: Path
    url: str

    @property
    def location(self) -> str:
        return f"{self.url}/{self.path.relative_to(self.root)}"


@dataclass(frozen=True)
class RemoteTable:
    """A table on such a storage; `str()` is its name in SQL."""

    url: str

    def __str__(self) -> str:
        return f"delta.`{self.url}`"

    def copied(self, spark: SparkSession, folder: Path) -> Table:
        """Copy it to the local disk as it is now."""
        jvm: Any = spark._jvm
        source, target = (jvm.org.apache.hadoop.fs.Path(p) for p in (self.url, f"file:{folder}"))
        conf = spark._jsc.hadoopConfiguration()
        source.getFileSystem(conf).copyToLocalFile(False, source, target, True)
        return Table(folder)
