"""What `interlock doctor TABLE` checks: statements only, so that it works on Spark Connect too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from interlock._diagnosis import Check, kept_trial, told_by
from interlock._sql_text import literal, run
from interlock._tables import table as named

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_RECENT = 100
"""So many of the last versions are asked whether a foreign writer made them."""

_CHECKPOINTS_MISSED = 3
_MANY_FILES = 100
_SMALL = 16 * 1024 * 1024
_MANY_DEAD = 0.2
_EXCLUSIVE = "interlock.exclusive"
_NEEDED = {
    "delta.enableRowTracking": "rowTracking",
    "delta.enableInCommitTimestamps": "inCommitTimestamp",
}


def of_table(spark: SparkSession, name: str) -> Iterator[Check]:
    """Check a table by its name or path, as `interlock.table` takes it."""
    sql_name = named(spark, name).sql_name
    detail = run(spark, f"DESCRIBE DETAIL {sql_name}").first()
    assert detail is not None
    properties: Mapping[str, str] = detail["properties"]
    policy = properties.get("interlock.policy")
    if "catalogManaged" in detail["tableFeatures"]:
        yield _managed(sql_name, policy)
    else:
        yield _policy(spark, sql_name, policy, properties.get("interlock.policy.digest"))
    if policy is not None:
        yield _features(sql_name, properties, detail["tableFeatures"])
        if _is_on(properties, _EXCLUSIVE):
            yield _exclusive(sql_name, detail["tableFeatures"])
    yield _foreign(spark, sql_name)
    yield _coordinator(spark, sql_name, properties, policy)
    if policy is not None and properties.get("interlock.coordinator", "filesystem") == "filesystem":
        races = kept_trial(spark, detail["location"])
        if races is not None:
            yield races
    yield _checkpoints(spark, sql_name, detail)
    yield from _sizes(spark, sql_name, policy)


def _look(name: str, ok: bool, found: str, fix: str) -> Check:
    return Check(name, ok, found, fix, mark="LOOK")


def _is_on(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "").lower() == "true"


def _managed(name: str, policy: str | None) -> Check:
    """Tell of a table that can have no policy."""
    keys = "'interlock.policy', 'interlock.coordinator'"
    fix = f"ALTER TABLE {name} UNSET TBLPROPERTIES IF EXISTS ({keys})"
    found = f"{policy or 'none'}: the table's catalog orders its commits"
    return _look("Policy", policy is None, found, fix)


def _policy(spark: SparkSession, name: str, policy: str | None, digest: str | None) -> Check:
    """Compare the digest with that of the session's policy of the same name."""
    if policy is None:
        fix = f"CALL interlock.set_policy({literal(name)}, 'row_level'), or another policy"
        return _look("Policy", False, "none: commits are judged as stock Delta does", fix)
    cells = run(spark, "CALL interlock.policies()").collect()
    known = next((str(cell["digest"]) for cell in cells if cell["policy"] == policy), None)
    if known is None:
        fix = f"set spark.interlock.policies.{policy} to its file: writes are refused without it"
        return _look("Policy", False, f"{policy}, which this session does not have", fix)
    fix = f"load the {policy} that the table got, or set the policy again to take this one"
    found = f"{policy}, digest {digest or known}"
    differs = digest not in (None, known)
    return _look("Policy", not differs, found + (f", here {known}" if differs else ""), fix)


def _features(name: str, properties: Mapping[str, str], features: list[str]) -> Check:
    missing = {
        key: feature
        for key, feature in _NEEDED.items()
        if not _is_on(properties, key) or feature not in features
    }
    switches = ", ".join(f"'{key}' = 'true'" for key in missing)
    fix = f"ALTER TABLE {name} SET TBLPROPERTIES ({switches}), as the policy needs it"
    found = f"{', '.join(missing.values())} off" if missing else ", ".join(sorted(features))
    return _look("Table features", not missing, found, fix)


def _exclusive(name: str, features: list[str]) -> Check:
    """Look for the feature that keeps others out; copies that others make lack it."""
    found = "other writers are kept out" if "interlock" in features else "keeps nobody out"
    fix = f"ALTER TABLE {name} SET TBLPROPERTIES ('{_EXCLUSIVE}' = 'true'), from this session"
    return _look("Exclusive", "interlock" in features, found, fix)


def _foreign(spark: SparkSession, name: str) -> Check:
    history = f"interlock_history({literal(name)}, limit => {_RECENT})"
    found = run(spark, f"SELECT version FROM {history} WHERE foreign").collect()
    shown = ", ".join(str(row["version"]) for row in found[:5]) + (", ..." * (len(found) > 5))
    fix = (
        "let every writer load Interlock (docs/ways-in.md), as nobody judges the others; then "
        f"ALTER TABLE {name} SET TBLPROPERTIES ('interlock.exclusive' = 'true')"
    )
    text = f"{len(found)} of the last {_RECENT}: version {shown}" if found else "none lately"
    return _look("Foreign commits", not found, text, fix)


def _coordinator(
    spark: SparkSession, name: str, properties: Mapping[str, str], policy: str | None
) -> Check:
    """Ask it on the driver; over Spark Connect only its name is known."""
    coordinator = properties.get("interlock.coordinator")
    if coordinator is None and policy is None:
        return _look("Coordinator", True, "none: Delta's own commits", "")
    found = coordinator or "filesystem"
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:
        return _look("Coordinator", True, f"{found}, not asked over Spark Connect", "")
    session: Any = spark
    fault = jvm.io.interlock.spark.Maintenance.coordinatorFault(session._jsparkSession, name)
    fix = "see docs/coordinator.md; `interlock coordinator status` shows a database's state"
    return _look("Coordinator", fault is None, f"{found}: {fault or 'answers'}", fix)


def _checkpoints(spark: SparkSession, name: str, detail: Row) -> Check:
    from pyspark.errors import PySparkException

    folder = re.sub(r"([][{}*?\\])", r"\\\1", detail["location"])  # load takes a glob
    (now,) = run(spark, f"SELECT get_latest_version({literal(name)})").collect()[0]
    files = spark.read.format("binaryFile")
    try:
        found = files.load(f"{folder}/_delta_log/*.checkpoint*").select("path")
        paths = [row["path"] for row in found.collect()]
    except Exception as error:  # of the storage, for which only the table's catalog may have a key
        if not isinstance(error, PySparkException) or error.getCondition() != "PATH_NOT_FOUND":
            fix = "run it in a session that may list the log"
            return _look("Checkpoint", False, f"the log is not listed: {told_by(error)}", fix)
        paths = []
    versions = [int(number) for path in paths for number in re.findall(r"/(\d{20})\.[^/]*$", path)]
    newest = max(versions, default=0)
    interval = int(detail["properties"].get("delta.checkpointInterval", 10))
    fix = "look for warnings of checkpoints in the writers' logs; readers replay all commits since"
    text = f"version {newest}, {now - newest} behind" if versions else f"none in {now} versions"
    return _look("Checkpoint", now - newest < _CHECKPOINTS_MISSED * interval, text, fix)


def _sizes(spark: SparkSession, name: str, policy: str | None) -> Iterator[Check]:
    is_small = f"size < {_SMALL}"
    sums = ", ".join(
        [
            *("count(*)", "coalesce(sum(size), 0)"),
            *("coalesce(sum(rows), 0)", "coalesce(sum(dead_rows), 0)"),
            # A compaction leaves one in each partition that has some.
            f"count_if({is_small}) - count(DISTINCT if({is_small}, to_json(partition), NULL))",
        ]
    )
    found = run(spark, f"SELECT {sums} FROM interlock_files({literal(name)})").collect()
    files, size, rows, dead, too_many = found[0]
    small = too_many > _MANY_FILES
    fix = f"ALTER TABLE {name} COMPACT MINOR" if policy else f"OPTIMIZE {name}"
    yield _look("Files", not small, f"{files:,} of {size:,} bytes together", fix)
    many = dead > _MANY_DEAD * (rows + dead)
    fix = f"ALTER TABLE {name} COMPACT MAJOR" if policy else f"REORG TABLE {name} APPLY (PURGE)"
    yield _look("Dead rows", not many, f"{dead:,} beside {rows:,} live ones", fix)
