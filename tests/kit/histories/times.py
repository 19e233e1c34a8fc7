"""Compares SHOW HISTORY with the oracle: rows in and out, time versions, time travel."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

from pyspark.sql import SparkSession

from tests.kit.histories.columns import plain
from tests.kit.histories.model import Change
from tests.kit.histories.oracle import Replay
from tests.kit.histories.templates import Template
from tests.kit.support import Table, rows


def check_time_versions(
    spark: SparkSession, template: Template, table: Table, expected: Replay
) -> None:
    """Time versions increase, and are exactly the versions that add or remove a row."""
    shown = {row["version"]: row for row in spark.sql(f"SHOW HISTORY FOR TABLE {table}").collect()}
    assert list(shown) == list(range(max(expected.states), -1, -1)), "versions in the history"
    for job in expected.jobs:
        if job.version is not None:
            row = shown[job.version]
            counted = (row["rows_in"], row["rows_out"], row["time_version"] is not None)
            wanted = (*_counts(job.change), not job.change.is_empty)
            assert counted == wanted, f"rows in and out of version {job.version}: {counted}"
            assert tuple(row["winners"] or ()) == job.verdict.passed
            assert row["foreign"] is job.by_hand
    times = [(row["time_version"], v) for v, row in shown.items() if row["time_version"]][::-1]
    assert all(earlier < later for earlier, later in pairwise(times)), "time versions"
    at, version = random.Random(len(times)).choice(times)
    found = rows(spark, f"{table} TIMESTAMP AS OF '{at:%Y-%m-%d %H:%M:%S.%f}'")
    if version in expected.states:
        state = Counter(map(template.columns.of, expected.states[version]))
        assert Counter(map(plain, found)) == state, f"rows at the time of version {version}"
    else:
        assert found == rows(spark, table, version=version), f"rows at the time of {version}"


def _counts(change: Change) -> tuple[int, int]:
    updated = len(change.updated)
    return len(change.inserted) + updated, len(change.deleted) + updated
