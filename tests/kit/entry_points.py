"""What an entry point is, how it runs, and how `docs/entry-points.md` is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from interlock.lab.example import PARTITIONED, Example, sql_name
from interlock.lab.model import Rows
from pyspark.sql import SparkSession

OVERWRITE, APPEND, MUTATE, METADATA = "OVERWRITE", "APPEND", "MUTATE", "METADATA"
COMPACTION = "COMPACTION"
"""Whatever class the table's policy gives to compactions."""
MAJOR_COMPACTION = "MAJOR_COMPACTION"
"""Whatever class it gives to COMPACT MAJOR."""
UNTAGGED = "UNTAGGED"
"""RESTORE and CLONE: Delta writes these commits without tags."""

COMPACTION_OF = {
    "maxcompute_delta": {COMPACTION: "COMPACT_MINOR", MAJOR_COMPACTION: "COMPACT_MAJOR"},
    "maxcompute_transactional": dict.fromkeys((COMPACTION, MAJOR_COMPACTION), "MERGE_SMALLFILES"),
}


@dataclass(frozen=True)
class Place:
    """Where an entry point writes to.

    Attributes:
        name: what SQL calls the table
        path: its folder
        source: the folder of a table without a policy, with the row that is to be written
        new: where a table may be created
        checkpoint: a folder for a streaming query

    """

    name: str
    path: Path
    source: Path
    new: Path
    checkpoint: Path


@dataclass(frozen=True)
class Entry:
    """One way to write.

    Attributes:
        way: the heading it stands under
        code: a statement, in which `{t}` is the table, `{p}` the table by its path, `{s}` a source
            and `{n}` a new table by their paths; or an expression in Python
        commits: operation and class of each version that it makes
        after: the rows afterwards
        replaced: the partition predicate in the tags of the last version
        start: the table before
        before: statements that prepare it
        settings: settings of the session while it runs
        note: what the docs say of it beside the code
        run: what runs where it does not fit into one line; `code` describes it then

    """

    way: str
    code: str
    commits: tuple[tuple[str, str], ...]
    after: Rows
    replaced: str | None = None
    start: Example = PARTITIONED
    before: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    run: Callable[[SparkSession, Place], object] | None = None

    @property
    def is_sql(self) -> bool:
        """Tell whether `code` is a statement."""
        return self.way.startswith("SQL")

    @property
    def creates(self) -> bool:
        """Tell whether it makes a table of its own."""
        return self.way.endswith("new tables")

    @property
    def shown(self) -> str:
        """Return the code as the docs show it."""
        paths = {"p": "delta.`/path`", "s": "delta.`/source`", "n": "delta.`/new`"}
        return self.code.format(t="t", **paths) if self.is_sql else self.code

    def prepare(self, spark: SparkSession, place: Place) -> None:
        """Run the statements that come before."""
        for statement in self.before:
            spark.sql(statement.format(**_tables(place)))

    def write(self, spark: SparkSession, place: Place) -> None:
        """Run it."""
        with set_for_now(spark, self.settings):
            if self.run is not None:
                self.run(spark, place)
            elif self.is_sql:
                spark.sql(self.code.format(**_tables(place)))
            else:
                eval(self.code, _python_names(spark, place))


def _tables(place: Place) -> dict[str, str]:
    paths = {"p": place.path, "s": place.source, "n": place.new}
    return {"t": place.name, **{key: sql_name(path) for key, path in paths.items()}}


def _python_names(spark: SparkSession, place: Place) -> dict[str, Any]:
    from delta.tables import DeltaTable
    from pyspark.sql.functions import col, lit

    return {
        "spark": spark,
        "df": spark.read.format("delta").load(str(place.source)),
        "t": place.name,
        "path": str(place.path),
        "new": str(place.new),
        "table": DeltaTable.forPath(spark, str(place.path)),
        "DeltaTable": DeltaTable,
        "col": col,
        "lit": lit,
    }


@contextmanager
def set_for_now(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Have settings in the session for a while."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


_HEAD = """\
# Entry points and their classes

A policy gives its rules by classes of statements. The class of a statement depends on what it
does, not on the API that it comes through. Each line below is run by
`tests/policies/test_entry_points.py`, which also checks this page (`INTERLOCK_WRITE_DOCS=1`
writes it).

What the tables call "compaction" has the class COMPACT_MINOR under `maxcompute_delta`,
`serializable`, `write_serializable` and `row_level`, and "major compaction" has the class
COMPACT_MAJOR. Under `maxcompute_transactional` and `maxcompute_standard` both have the class
MERGE_SMALLFILES. `maxcompute_standard` refuses every MUTATE.

A commit keeps its class in `commitInfo.tags` as `interlock.class`, its policy as
`interlock.policy` and the partitions that an overwrite names as `interlock.replaced`. Delta
writes RESTORE and CLONE without tags: any concurrent commit makes CLONE fail, and RESTORE is
computed again behind it. Later jobs are judged as after an OVERWRITE.

In the tables `t` is a table's name, `path` its folder, `table` its `DeltaTable`, `df` a
DataFrame and `stream` a streaming DataFrame with its columns. `new` is an empty folder. `p` is a
partition column, `id` is not. New tables get their policy from `spark.interlock.defaultPolicy`.
"""


def page(entries: Sequence[Entry]) -> str:
    """Return the text of `docs/entry-points.md`."""
    parts = [_HEAD]
    for way, group in groupby(entries, key=lambda entry: entry.way):
        parts += [f"## {way}\n", "| entry point | class | replaces |", "|---|---|---|"]
        parts += [_line(entry) for entry in group]
        parts.append("")
    return "\n".join(parts)


def _line(entry: Entry) -> str:
    code = entry.shown.replace("|", "\\|")
    quoted = f"`` {code} ``" if "`" in code else f"`{code}`"
    notes = [f"`{key} = {value}`" for key, value in entry.settings.items()]
    if entry.note:
        notes.append(entry.note)
    about = f"<br>{', '.join(notes)}" if notes else ""
    classes = dict.fromkeys(_CLASS_SHOWN.get(name, name) for _, name in entry.commits)
    replaced = f"`{entry.replaced}`" if entry.replaced else ""
    return f"| {quoted}{about} | {', then '.join(classes)} | {replaced} |"


_CLASS_SHOWN = {
    COMPACTION: "compaction",
    MAJOR_COMPACTION: "major compaction",
    UNTAGGED: "OVERWRITE, not tagged",
}


def class_under(policy: str, becomes: str) -> str:
    """Return the class that a commit has under a policy."""
    return COMPACTION_OF[policy].get(becomes, becomes)
