"""Statements and races on tables without a policy, and their results.

`test_stock_behaviour.py` observes the same in sessions with Interlock and of plain Delta.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from interlock._races import Job, race
from interlock.lab.example import EMPTY, PARTITIONED, PLAIN, Example, Tables
from pyspark.sql import SparkSession

from tests.kit.support import Table, commit_info, latest_version, live_files, rows, versions

OVERWRITE = "INSERT OVERWRITE {t} VALUES (200, 'y')"
INSERT = "INSERT INTO {t} VALUES (10, 'i')"
UPDATE = "UPDATE {t} SET v = 'U' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
OPTIMIZE = "OPTIMIZE {t}"
TRUNCATE = "TRUNCATE TABLE {t}"
TRUNCATE_PARTITION = "TRUNCATE TABLE {t} PARTITION (p = 1)"

Race = tuple[Example, tuple[str, ...]]

RACES: tuple[Race, ...] = (
    (PLAIN, (INSERT, OVERWRITE)),
    (PLAIN, (INSERT, INSERT)),
    (PLAIN, (INSERT, UPDATE)),
    (PLAIN, (INSERT, OPTIMIZE)),
    (PLAIN, (UPDATE, DELETE)),
    (PLAIN, (OPTIMIZE, OPTIMIZE)),
    (PLAIN, (TRUNCATE, TRUNCATE)),
    (EMPTY, (INSERT, TRUNCATE)),
    (EMPTY, (TRUNCATE,)),
    (PARTITIONED, (TRUNCATE_PARTITION,)),
    (PLAIN, ("CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id",)),
)


def observe(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Run all; the result is data that two sessions can compare."""
    tables = Tables(spark, folder)
    return {
        f"{example.name}: {' -> '.join(statements)}": _outcome(
            spark,
            Table(tables.fresh(example, {"delta.enableDeletionVectors": "false"})),
            statements,
        )
        for example, statements in RACES
    }


def _outcome(spark: SparkSession, table: Table, statements: tuple[str, ...]) -> dict[str, Any]:
    texts = [statement.format(t=table) for statement in statements]
    jobs = [Job(text, lambda s, text=text: s.sql(text)) for text in texts]  # type: ignore[misc]
    results = race(spark, *jobs, latest_version=lambda: latest_version(table))
    history = [commit_info(table, version) for version in versions(table)]
    return {
        "errors": [_error(result.error) for result in results],
        "versions": [result.version for result in results],
        "history": [info["operation"] for info in history],
        "tags": [info.get("tags") for info in history],
        "isolation": [info.get("isolationLevel") for info in history],
        "rows": rows(spark, table),
        "live files": len(live_files(table)),
        "files": len([file for file in table.path.rglob("*") if file.is_file()]),
    }


def _error(error: Exception | None) -> list[str] | None:
    """Return the class, as Delta's Python package or else the JVM calls it, and the condition."""
    if error is None:
        return None
    names = [c.__name__ for c in type(error).__mro__ if c.__module__.startswith("delta.exceptions")]
    if not names:
        thrown = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        names = [thrown.getClass().getName() if thrown is not None else type(error).__name__]
    condition = re.search(r"\[([A-Z_.]+)\]", str(error))
    return [names[0], condition.group(1) if condition else ""]


def write(spark: SparkSession, folder: Path, result: Path) -> None:
    """Write the result of `observe` to a file."""
    result.write_text(json.dumps(observe(spark, folder)), encoding="utf-8")
