"""The documents' example table, and copies of it to run jobs on."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.lab.model import Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Example:
    """A small table as both jobs find it at version 2.

    Attributes:
        name: names its copies
        columns: the text of CREATE TABLE after the table's name
        setup: the statements that make versions 1 and 2; `{t}` stands for the table
        history: the rows at versions 1 and 2

    """

    name: str
    columns: str
    setup: tuple[str, str]
    history: tuple[Rows, Rows]

    @property
    def rows(self) -> Rows:
        """Return the rows at version 2, which both jobs read."""
        return self.history[-1]


PLAIN = Example(
    "t",
    "(id INT, v STRING) USING delta",
    ("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')", "INSERT INTO {t} VALUES (3, 'c')"),
    (((1, "a"), (2, "b")), ((1, "a"), (2, "b"), (3, "c"))),
)
PARTITIONED = Example(
    "tp",
    "(id INT, v STRING, p INT) USING delta PARTITIONED BY (p)",
    ("INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1)", "INSERT INTO {t} VALUES (3, 'c', 2)"),
    (((1, "a", 1), (2, "b", 1)), ((1, "a", 1), (2, "b", 1), (3, "c", 2))),
)
SCATTERED = Example(
    "ts",
    PARTITIONED.columns,
    (
        "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)",
        "INSERT INTO {t} VALUES (4, 'd', 1), (5, 'e', 2)",
    ),
    (
        ((1, "a", 1), (2, "b", 1), (3, "c", 2)),
        ((1, "a", 1), (2, "b", 1), (3, "c", 2), (4, "d", 1), (5, "e", 2)),
    ),
)
EMPTY = Example(
    "te",
    "(id INT, v STRING) USING delta",
    ("INSERT INTO {t} VALUES (1, 'a')", "DELETE FROM {t}"),
    (((1, "a"),), ()),
)


class Tables:
    """Makes tables under a folder: each example once, then copies of its files.

    Args:
        spark: the session that creates the examples
        folder: a folder on this machine

    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._numbers = itertools.count(1)
        self._originals: dict[tuple[str, frozenset[tuple[str, str]]], Path] = {}

    def fresh(self, example: Example, properties: dict[str, str]) -> Path:
        """Return the path of a new copy, at version 2."""
        key = (example.name, frozenset(properties.items()))
        if key not in self._originals:
            path = self._new_path(f"{example.name}-original")
            self._create(example, properties, path)
            self._originals[key] = path
        copy = self._new_path(example.name)
        shutil.copytree(self._originals[key], copy)
        return copy

    def _new_path(self, name: str) -> Path:
        return self._folder / f"{name}-{next(self._numbers)}"

    def _create(self, example: Example, properties: dict[str, str], path: Path) -> None:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        table = sql_name(path)
        self._spark.sql(f"CREATE TABLE {table} {example.columns} TBLPROPERTIES ({listed})")
        for statement in example.setup:
            self._spark.sql(statement.format(t=table))


def sql_name(path: Path) -> str:
    """Return what SQL calls the table at `path`."""
    return f"delta.`{path}`"


def latest_version(path: Path) -> int:
    """Return the latest version of the table at `path`, as its log's files say."""
    return max(versions(path))


def versions(path: Path) -> list[int]:
    """List the versions of the table at `path`, as its log's files say."""
    stems = (file.stem for file in (path / "_delta_log").glob("*.json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())
