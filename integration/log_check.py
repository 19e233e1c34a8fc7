"""Compares what a table's log has with what its writers were told.

Each row of such a table has an id of its own, and each data file one row: the statistics of a file
say which.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, fields

from tests.support import Table, commit, deltalake_rows, versions


@dataclass(frozen=True)
class Found:
    """What is wrong with a table; empty where nothing is.

    Attributes:
        lost: ids that were acknowledged and are not there
        duplicated: ids that are there more than once
        unasked: ids that are there although their commit was refused
        gaps: versions that are missing
        broken_files: files of the log that are missing or have another size

    """

    lost: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    unasked: tuple[int, ...] = ()
    gaps: tuple[int, ...] = ()
    broken_files: tuple[str, ...] = ()

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
    )
