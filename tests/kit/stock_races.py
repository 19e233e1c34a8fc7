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
MERGE = (
    "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'M'"
)

Race = tuple[Example, tuple[str, ...]]

QUICK: tuple[Race, ...] = (
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
RACES: tuple[Race, ...] = (
    *QUICK,
    (PLAIN, (INSERT, MERGE)),
    (PLAIN, (INSERT, "INSERT INTO {t} SELECT * FROM {t}")),
    (PLAIN, (INSERT, "RESTORE TABLE {t} TO VERSION AS OF 1")),
    (PLAIN, (OVERWRITE, INSERT)),
    (PLAIN, (UPDATE, OVERWRITE)),
    (PLAIN, (UPDATE, "UPDATE {t} SET v = 'V' WHERE id = 77")),
    (PLAIN, (OPTIMIZE, DELETE)),
    (PLAIN, ("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", INSERT)),
    (PARTITIONED, ("DELETE FROM {t} WHERE p = 1", "UPDATE {t} SET v = 'U' WHERE p = 2")),
    (EMPTY, ("INSERT OVERWRITE {t} SELECT 1, 'a' WHERE 1 = 0",)),
    (PLAIN, ("DELETE FROM {t} WHERE id = 77",)),
    (PLAIN, ("CREATE OR REPLACE TABLE {t} (id INT) USING delta",)),
    (PLAIN, ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",)),
)

WITH_VECTORS = tuple(
    (PLAIN, race) for race in ((UPDATE, DELETE), (UPDATE, OVERWRITE), (OPTIMIZE, DELETE))
)


def name_of(example: Example, statements: tuple[str, ...]) -> str:
    return f"{example.name}: {' -> '.join(statements)}"


def observe(spark: SparkSession, folder: Path, *, which: str) -> dict[str, Any]:
    """Run the "quick" ones or all; the result is data that two sessions can compare."""
    tables = Tables(spark, folder)
    found = {}
    quick, every = (("false", QUICK),), (("false", RACES), ("true", WITH_VECTORS))
    for vectors, races in quick if which == "quick" else every:
        for example, statements in races:
            path = tables.fresh(example, {"delta.enableDeletionVectors": vectors})
            name = f"{name_of(example, statements)}, deletion vectors {vectors}"
            found[name] = _outcome(spark, Table(path), statements)
    return found


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


def write(spark: SparkSession, folder: Path, which: str, result: Path) -> None:
    """Write the result of `observe` to a file."""
    result.write_text(json.dumps(observe(spark, folder, which=which)), encoding="utf-8")
