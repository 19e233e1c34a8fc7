"""What other writers do: commits that the test writes into a table's log, and their VACUUM."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from tests.kit.support import Table, commit, commit_file, commit_info, latest_version

Action = dict[str, Any]


def commit_by_hand(
    table: Table,
    operation: str | None,
    *actions: Action,
    engine: str = "other",
    parameters: Mapping[str, str | None] | None = None,
    tags: Mapping[str, str | None] | None = None,
    metrics: Mapping[str, str | None] | None = None,
) -> None:
    """Put the next version into the log."""
    version = latest_version(table) + 1
    time = commit_info(table, version - 1)["inCommitTimestamp"] + 1
    info = {"operation": operation, "engineInfo": engine, "timestamp": time}
    info |= {"operationParameters": parameters or {}, "inCommitTimestamp": time, "tags": tags or {}}
    info |= {"operationMetrics": metrics} if metrics else {}
    text = "".join(json.dumps(line) + "\n" for line in ({"commitInfo": info}, *actions))
    log = commit_file(table, version)
    log.write_text(text, encoding="utf-8")


def added(table: Table, version: int) -> list[Action]:
    """Return the AddFiles of a version's commit."""
    return [action["add"] for action in commit(table, version) if "add" in action]


def remove(add: Action, **fields: object) -> Action:
    """Remove a file; of the optional fields only those that are given."""
    return {"remove": {"path": add["path"], "deletionTimestamp": 0, "dataChange": True, **fields}}


def copy(table: Table, add: Action, values: dict[str, str | None]) -> Action:
    """Add a copy of a file under other partition values, or other spellings of its own."""
    name = f"copy-of-{add['path'].rsplit('/', 1)[-1]}"
    shutil.copy(table.path / unquote(add["path"]), table.path / name)
    new_rows = {"baseRowId": add["baseRowId"] + 1000, "defaultRowCommitVersion": 2}
    return {"add": {**add, **new_rows, "path": name, "partitionValues": values}}


def compact_without_ids(table: Table, version: int, *, base: int | None = 1000) -> None:
    """Copy a version's only file and give its rows new ids from `base` on, or none."""
    (add,) = added(table, version)
    moved = copy(table, add, add["partitionValues"])["add"] | {"baseRowId": base}
    kept = {key: value for key, value in moved.items() if value is not None}
    gone = remove(add, dataChange=False)
    commit_by_hand(table, "OPTIMIZE", gone, {"add": kept | {"dataChange": False}})


def vacuum(spark: SparkSession, table: Table) -> None:
    """Run Delta's VACUUM RETAIN 0 HOURS as a writer does that has no Interlock."""
    jvm: Any = spark._jvm
    delta, some = jvm.org.apache.spark.sql.delta, jvm.scala.Option.apply
    nothing = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({})
    session: Any = spark._jsparkSession
    path = jvm.org.apache.hadoop.fs.Path(str(table.path))
    resolved = delta.catalog.DeltaTableV2.apply(session, path, nothing, "VACUUM")
    clock = jvm.org.apache.spark.util.SystemClock()
    delta.commands.VacuumCommand.gc(
        session, resolved, False, some(0.0), some(None), some(None), nothing, clock
    )
