"""What a small table's log says, read without Spark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from interlock.lab.example import versions


@dataclass(frozen=True)
class Log:
    """A log that begins at version 0.

    Attributes:
        last: the latest version
        live_files: the data files that are live in it
        changes: the versions with a logical change of data; compaction makes none

    """

    last: int
    live_files: frozenset[str]
    changes: frozenset[int]


def read_log(table: Path) -> Log:
    """Replay the log of the table at a path."""
    live: set[str] = set()
    changes: set[int] = set()
    last = 0
    for last in versions(table):
        commit = (table / "_delta_log" / f"{last:020}.json").read_text(encoding="utf-8")
        actions = [json.loads(line) for line in commit.splitlines()]
        removes = [action["remove"] for action in actions if "remove" in action]
        adds = [action["add"] for action in actions if "add" in action]
        live -= {remove["path"] for remove in removes}
        live |= {add["path"] for add in adds}
        if any(action["dataChange"] for action in adds + removes):
            changes.add(last)
    return Log(last, frozenset(live), frozenset(changes))
