"""The tables that histories begin with: made once in a run, then copied."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pyspark.sql import SparkSession

from tests.kit.histories.columns import Columns, plain
from tests.kit.histories.documents import PAGES, Page
from tests.kit.histories.model import Row, Rows
from tests.kit.support import Table, deltalake_rows, latest_version

POLICIES = ("maxcompute_delta", "maxcompute_delta", "maxcompute_transactional")
VECTORS = ("on", "off", "left over")  # files have some, but no new ones are written
LAYOUTS = 2
COUNT = len(POLICIES) * len(VECTORS) * 2 * LAYOUTS
SHAPES = (
    Columns("INT", nested=True),
    Columns("TIMESTAMP"),
    Columns("INT"),
    Columns("TIMESTAMP", nested=True),
)
PARTITIONS: tuple[int | None, ...] = (1, 2, 3, None)


@dataclass(frozen=True)
class Template:
    """How a table is made.

    Attributes:
        policy: its conflict policy
        columns: its columns
        vectors: its use of deletion vectors, one of `VECTORS`
        changes: whether it records a change data feed
        statements: what makes it; `{t}` stands for the table
        ids: the ids that its rows ever had

    """

    policy: str
    columns: Columns
    vectors: str
    changes: bool
    statements: tuple[str, ...]
    ids: tuple[int, ...]

    @property
    def page(self) -> Page:
        return PAGES[self.policy]

    @property
    def partitioned(self) -> bool:
        return self.columns.p is not None


@cache
def template(index: int) -> Template:
    """Return one of `COUNT` templates."""
    rest, policy = divmod(index, len(POLICIES))
    rest, partitioned = divmod(rest, 2)
    layout, vectors = divmod(rest, len(VECTORS))
    chance = random.Random(index)
    shape = SHAPES[(policy + vectors + 2 * layout) % len(SHAPES)]
    columns = shape if partitioned else replace(shape, p=None)
    changes = (index + layout) % 4 == 1
    properties = {
        "interlock.policy": POLICIES[policy],
        "delta.enableDeletionVectors": str(VECTORS[vectors] != "off").lower(),
    }
    if changes:
        properties["delta.enableChangeDataFeed"] = "true"
    if layout == 1:
        properties |= _SEVERAL_OUTPUTS
    ids = iter(range(1, 100))
    files = [
        [_row(next(ids), chance, columns) for _ in range(chance.randint(2, 6))]
        for _ in range(chance.randint(2, 3 if partitioned else 4))
    ]
    statements = [_create(properties, columns)]
    statements += [f"INSERT INTO {{t}} VALUES {', '.join(file)}" for file in files]
    if VECTORS[vectors] != "off":
        statements.append(f"DELETE FROM {{t}} WHERE id % {chance.randint(3, 4)} = 1")
    if VECTORS[vectors] == "left over":
        statements.append(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"
        )
    return Template(
        POLICIES[policy],
        columns,
        VECTORS[vectors],
        changes,
        tuple(statements),
        tuple(range(1, next(ids))),
    )


# Files of some rows are about 800 bytes: an output takes two or three of them.
_SEVERAL_OUTPUTS = {"interlock.compaction.targetFileSize": "2000"}


def _row(identifier: int, chance: random.Random, columns: Columns) -> str:
    p = chance.choices(PARTITIONS, (4, 4, 2, 1))[0] if columns.p else None
    return f"({columns.fields(Row(identifier, f'a{identifier}', p))})"


def _create(properties: dict[str, str], columns: Columns) -> str:
    by = " PARTITIONED BY (p)" if columns.p else ""
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    return f"CREATE TABLE {{t}} ({columns.declared}) USING delta{by} TBLPROPERTIES ({listed})"


@dataclass(frozen=True)
class Start:
    """A table as a history finds it."""

    version: int
    rows: Rows


class Templates:
    """Makes copies of templates, each of which is made once.

    Args:
        spark: the session that makes them
        folder: where they and their copies are kept

    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._made: dict[Template, tuple[Path, Start]] = {}
        self._copies = 0

    def copy(self, wanted: Template) -> tuple[Table, Start]:
        """Return a table that nobody else uses."""
        if wanted not in self._made:
            self._made[wanted] = self._make(wanted)
        original, start = self._made[wanted]
        self._copies += 1
        path = self._folder / f"t{self._copies}"
        shutil.copytree(original, path)
        return Table(path), start

    def _make(self, wanted: Template) -> tuple[Path, Start]:
        table = Table(self._folder / f"template-{len(self._made)}")
        for statement in wanted.statements:
            self._spark.sql(statement.format(t=table))
        found = self._spark.sql(
            f"SELECT id, v, {wanted.columns.number}, "
            f"_metadata.row_id, _metadata.row_commit_version FROM {table}"
        ).collect()
        rows = tuple(Row(*row) for row in found)
        assert Counter(map(wanted.columns.of, rows)) == Counter(map(plain, deltalake_rows(table)))
        return table.path, Start(latest_version(table), rows)
