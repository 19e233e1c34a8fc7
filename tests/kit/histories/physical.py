"""The versions of a table by its log, read without Spark and without `deltalake`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.kit.support import Table, commit, versions


@dataclass(frozen=True)
class File:
    """A live file of a version.

    Attributes:
        p: its partition, where the table has any
        rows: the rows in it
        dead: how many of them are deleted

    """

    p: int | None
    rows: int
    dead: int


@dataclass(frozen=True)
class Version:
    """The table's state at a version.

    Attributes:
        files: all live files
        changed: the partitions of the files it added or removed, as far as its commit has them
        info: its commitInfo

    """

    files: tuple[File, ...]
    changed: frozenset[int | None]
    info: dict[str, Any]


def replayed(table: Table) -> list[Version]:
    """Replay the log, one step for each version."""
    return list(_steps(table))


def _steps(table: Table) -> Iterator[Version]:
    live: dict[str, File] = {}
    for version in versions(table):
        actions = commit(table, version)
        removes = [action["remove"] for action in actions if "remove" in action]
        adds = [action["add"] for action in actions if "add" in action]
        for remove in removes:
            live.pop(remove["path"], None)
        live |= {add["path"]: _file(add) for add in adds}
        changed = frozenset(partition(action) for action in (*removes, *adds))
        info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
        yield Version(tuple(live.values()), changed, info)


def _file(add: dict[str, Any]) -> File:
    vector = add.get("deletionVector") or {"cardinality": 0}
    return File(partition(add), json.loads(add["stats"])["numRecords"], vector["cardinality"])


def partition(action: dict[str, Any]) -> int | None:
    """Return the partition of a file: a number, or the day of a timestamp in any spelling."""
    value = action.get("partitionValues", {}).get("p")
    return None if value is None else int(value[8:10] if "-" in value else value)


def unknown_files(table: Table) -> list[str]:
    """Return the data files that no version has added."""
    actions = (action for version in versions(table) for action in commit(table, version))
    added = {unquote(action["add"]["path"]) for action in actions if "add" in action}
    found = (file.relative_to(table.path) for file in table.path.rglob("*.parquet"))
    return [
        str(file) for file in found if str(file) not in added and not file.parts[0].startswith("_")
    ]
