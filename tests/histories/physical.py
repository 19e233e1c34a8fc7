"""A table's log, read without Spark and without `deltalake`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support import Table, commit, versions


@dataclass(frozen=True)
class File:
    """A live file of a version.

    Attributes:
        path: its name
        vector: the id of its deletion vector, None if it has none
        p: its partition value, as the log writes it
        rows: the rows in it
        dead: how many of them are deleted
        size: in bytes

    """

    path: str
    vector: str | None
    p: str | None
    rows: int
    dead: int
    size: int


@dataclass(frozen=True)
class Version:
    """What a version left.

    Attributes:
        files: all live files
        changed: the partitions of the files it added or removed
        info: its commitInfo

    """

    files: frozenset[File]
    changed: frozenset[int | None]
    info: dict[str, Any]


def replayed(table: Table) -> list[Version]:
    """Replay the log, one step for each version; the log must fit together.

    A Remove hits a live pair of path and deletion vector, an Add none that stays, and the version's
    checksum says the same as the replay.
    """
    return list(_steps(table))


def _steps(table: Table) -> Iterator[Version]:
    live: dict[str, File] = {}
    for version in versions(table):
        actions = commit(table, version)
        removes = [action["remove"] for action in actions if "remove" in action]
        adds = [action["add"] for action in actions if "add" in action]
        for remove in removes:
            gone = live.pop(remove["path"], None)
            assert gone, f"version {version} removes {remove['path']}, which is not there"
            vector = _vector(remove)
            assert gone.vector == vector, (
                f"version {version} removes {remove['path']} with vector {vector}, "
                f"but it has {gone.vector}"
            )
        for add in adds:
            assert add["path"] not in live, f"version {version} adds {add['path']} again"
            live[add["path"]] = _file(add)
        files = frozenset(live.values())
        _check_checksum(table, version, files)
        changed = frozenset(_partition(action) for action in (*removes, *adds))
        yield Version(files, changed, next(a["commitInfo"] for a in actions if "commitInfo" in a))


def _file(add: dict[str, Any]) -> File:
    dead = add.get("deletionVector", {}).get("cardinality", 0)
    rows = json.loads(add["stats"])["numRecords"]
    assert dead < rows, f"{add['path']} has no live row"
    p = add["partitionValues"].get("p")
    return File(add["path"], _vector(add), p, rows, dead, add["size"])


def _vector(action: dict[str, Any]) -> str | None:
    vector = action.get("deletionVector")
    if vector is None:
        return None
    return f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _partition(action: dict[str, Any]) -> int | None:
    value = action["partitionValues"].get("p")
    return None if value is None else int(value)


def _check_checksum(table: Table, version: int, files: frozenset[File]) -> None:
    path = table.path / "_delta_log" / f"{version:020}.crc"
    if not path.exists():
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    expected = {
        "numFiles": len(files),
        "tableSizeBytes": sum(file.size for file in files),
        "numDeletedRecordsOpt": sum(file.dead for file in files),
        "numDeletionVectorsOpt": sum(file.vector is not None for file in files),
    }
    stated = {key: found[key] for key in expected if key in found}
    assert stated == {key: expected[key] for key in stated}, f"checksum of version {version}"


def unknown_files(table: Table) -> list[str]:
    """Return the data files that no version has added."""
    actions = (action for version in versions(table) for action in commit(table, version))
    added = {action["add"]["path"] for action in actions if "add" in action}
    found = (file.relative_to(table.path) for file in table.path.rglob("*.parquet"))
    return [
        str(file) for file in found if str(file) not in added and not file.parts[0].startswith("_")
    ]
