"""Replays a table's log by the Delta protocol and checks what every commit claims.

This shares no code with Delta: each `remove` names a file that is live, with
the deletion vector it has, no file is added twice, row ids do not overlap, and the version checksum
equals what was counted here.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from tests.kit.support import Table, commit, versions


def check_log(table: Table) -> dict[str, dict[str, Any]]:
    """Check every commit; return the `add` actions that are live in the end, by path."""
    live: dict[str, dict[str, Any]] = {}
    for version in versions(table):
        actions = commit(table, version)
        for remove in (action["remove"] for action in actions if "remove" in action):
            known = live.pop(remove["path"], None)
            assert known is not None, f"version {version} removes {remove['path']}: not live"
            assert _vector(known) == _vector(remove), f"version {version}: {remove['path']}"
        for add in (action["add"] for action in actions if "add" in action):
            assert add["path"] not in live, f"version {version} adds {add['path']}: it is live"
            assert _dead(add) < json.loads(add["stats"])["numRecords"], f"{version}: {add['path']}"
            live[add["path"]] = add
        _check_row_ids(version, live)
        _check_checksum(table, version, live)
    return live


def live_rows(live: dict[str, dict[str, Any]]) -> int:
    """Count the rows that the live files claim to have."""
    return sum(json.loads(add["stats"])["numRecords"] - _dead(add) for add in live.values())


def _vector(action: dict[str, Any]) -> str | None:
    vector = action.get("deletionVector")
    return json.dumps(vector, sort_keys=True) if vector else None


def _dead(action: dict[str, Any]) -> int:
    return int((action.get("deletionVector") or {"cardinality": 0})["cardinality"])


def _check_row_ids(version: int, live: dict[str, dict[str, Any]]) -> None:
    """Row ids that files give by default lie in ranges of their own."""
    ranges = sorted(
        (add["baseRowId"], add["baseRowId"] + json.loads(add["stats"])["numRecords"], add["path"])
        for add in live.values()
        if "baseRowId" in add
    )
    for before, after in itertools.pairwise(ranges):
        assert before[1] <= after[0], f"version {version}: row ids of {before} and {after}"


def _check_checksum(table: Table, version: int, live: dict[str, dict[str, Any]]) -> None:
    path = table.path / "_delta_log" / f"{version:020}.crc"
    if not path.exists():
        return
    claimed = json.loads(path.read_text(encoding="utf-8"))
    assert claimed["numFiles"] == len(live), f"version {version}"
    assert claimed["tableSizeBytes"] == sum(add["size"] for add in live.values())
    if "allFiles" in claimed:
        assert {(add["path"], _vector(add)) for add in claimed["allFiles"]} == {
            (path, _vector(add)) for path, add in live.items()
        }
    if claimed.get("numDeletedRecordsOpt") is not None:
        assert claimed["numDeletedRecordsOpt"] == sum(_dead(add) for add in live.values())
