"""Compares what a table's log has with what its writers were told.

Each row of such a table has an id of its own, and each data file one row: the statistics of a file
say which.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Any

from tests.kit.support import Table, commit, commit_info, deltalake_rows, versions

# A commit's tags name at most so many of the versions that it has passed.
MOST_NAMED = 100


@dataclass(frozen=True)
class Found:
    """What is wrong with a table; empty where nothing is.

    Attributes:
        lost: ids that were acknowledged and are not there
        duplicated: ids that are there more than once
        unasked: ids that are there although their commit was refused
        gaps: versions that are missing
        broken_files: files of the log that are missing or have another size
        misjudged: versions of which the commit says that it passed others than those that lie
            between what it read and itself

    """

    lost: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    unasked: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()
    broken_files: tuple[str, ...] = ()
    misjudged: tuple[int, ...] = ()

    def __str__(self) -> str:
        named = {f.name: getattr(self, f.name) for f in fields(self)}
        return ", ".join(f"{k}: {len(v)} {v[:5]}" for k, v in named.items() if v) or "nothing"


def check(table: Table, acknowledged: Collection[int], *, unknown: Collection[int] = ()) -> Found:
    """Compare a table of appends with the ids whose commits were acknowledged.

    Args:
        table: of which no version was cleaned up
        acknowledged: ids whose commit was reported as made
        unknown: ids of whose commit nobody was told the end

    """
    found = versions(table)
    adds = [a["add"] for v in found for a in commit(table, v) if "add" in a]
    there = Counter(int(json.loads(add["stats"])["minValues"]["id"]) for add in adds)
    read = Counter(int(str(row[0])) for row in deltalake_rows(table))
    for name, counts in (("log", there), ("deltalake", read)):
        assert counts.keys() == read.keys() | there.keys(), f"{name} and the other reader differ"
    return Found(
        lost=tuple(sorted(set(acknowledged) - there.keys())),
        duplicated=tuple(sorted(i for i in read if read[i] > 1 or there[i] > 1)),
        unasked=tuple(sorted(there.keys() - set(acknowledged) - set(unknown))),
        gaps=tuple(sorted(set(range(max(found) + 1)) - set(found))),
        broken_files=tuple(
            add["path"]
            for add in adds
            if not (table.path / add["path"]).exists()
            or (table.path / add["path"]).stat().st_size != add["size"]
        ),
        misjudged=tuple(v for v in found if _is_misjudged(v, commit_info(table, v))),
    )


def _is_misjudged(version: int, info: dict[str, Any]) -> bool:
    """Tell whether a commit under a policy has not passed just the newest of what it missed."""
    tags = info.get("tags", {})
    if tags.get("interlock.class") != "APPEND":
        return False
    passed = [int(v) for v in tags.get("interlock.winners", "").split(",") if v]
    missed = list(range(info["readVersion"] + 1, version))
    return passed != missed[-MOST_NAMED:]
