"""Compares a table and its jobs' ends with the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from interlock.errors import ConflictError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.kit.histories.columns import plain
from tests.kit.histories.documents import Heading, Page
from tests.kit.histories.generate import History, Planned
from tests.kit.histories.model import Change, Row, Rows
from tests.kit.histories.oracle import Expected, Replay, replay
from tests.kit.histories.physical import Version, replayed, unknown_files
from tests.kit.histories.ranges import check_ranges
from tests.kit.histories.run import Ended
from tests.kit.histories.templates import Start, Template
from tests.kit.histories.times import check_time_versions
from tests.kit.log_replay import check_log
from tests.kit.snapshots import check_next_snapshot
from tests.kit.support import Table, deltalake_rows

ALTER_TABLE = "ALTER TABLE"


def check(
    spark: SparkSession, history: History, table: Table, start: Start, ends: Sequence[Ended]
) -> Replay:
    """Raise AssertionError for the first difference from the oracle."""
    check_log(table)
    log = replayed(table)
    expected = replay(history, start, ends, log)
    for planned, ended, wanted in zip(history.jobs, ends, expected.jobs, strict=True):
        if planned.job.refused_as is not None:
            assert isinstance(ended.error, PySparkException), f"{planned.job.sql} is refused"
            assert ended.error.getCondition() == planned.job.refused_as, planned.job.sql
            continue
        _check_end(planned, ended, wanted)
        if planned.job.compacts:
            _check_compaction(history.template.page, planned, ended, wanted, log)
    assert len(log) - 1 == max(expected.states), "number of versions"
    _check_log(expected, log)
    _check_rows(spark, history.template, table, start, expected)
    check_ranges(spark, history, table, start, expected)
    check_time_versions(spark, history.template, table, expected)
    if history.template.changes:
        _check_changes(spark, history.template, table, start, expected)
    _check_leftovers(spark, history, table, expected)
    check_next_snapshot(spark, table)
    return expected


def _check_leftovers(spark: SparkSession, history: History, table: Table, expected: Replay) -> None:
    """Check that the files of failed jobs are gone.

    Exceptions are files without rows, which Delta leaves, and outputs that a rebased compaction
    dropped.
    """
    unknown = unknown_files(table)
    rebased = any(
        planned.job.compacts and wanted.verdict.passed
        for planned, wanted in zip(history.jobs, expected.jobs, strict=True)
    )
    if unknown and not rebased:
        count = spark.read.parquet(*(str(table.path / file) for file in unknown)).count()
        assert count == 0, f"files that no version has added: {unknown}"


def _check_end(planned: Planned, ended: Ended, wanted: Expected) -> None:
    name, verdict = planned.job.sql, wanted.verdict
    if verdict.lost_to is None:
        assert ended.error is None, f"{name} must succeed, but: {ended.error!r}"
    elif not (planned.job.compacts and not ended.held and ended.error is None):
        assert isinstance(ended.error, ConflictError), (
            f"{name} must fail after version {verdict.lost_to} by {verdict.cell}, "
            f"but: {ended.error!r}"
        )
        stated = (ended.error.rule, ended.error.winner_version, ended.error.read_version)
        wanted_facts = (verdict.cell, verdict.lost_to, ended.read)
        assert stated == wanted_facts, f"{name}: {stated} instead of {wanted_facts}"
    assert ended.version == wanted.version, f"version {ended.version} of {name}"


def _check_compaction(
    page: Page, planned: Planned, ended: Ended, wanted: Expected, log: Sequence[Version]
) -> None:
    name = planned.job.sql
    if ended.error is None and name.startswith(ALTER_TABLE):
        told = (ended.result["version"], tuple(ended.result["winners"]))
        passed = wanted.verdict.passed if ended.held else ()
        assert told == (ended.version, passed), f"{name} returned {ended.result}"
        assert (ended.result["class"] == "MERGE_SMALLFILES") == (page.letter == "T"), name
    if not ended.held:
        files = [f for f in log[ended.read].files if planned.job.covers(f.p)]
        assert not (planned.job.heading is Heading.MAJOR and any(f.dead for f in files)), (
            f"{name} left dead rows"
        )
        if planned.job.heading is Heading.MAJOR:
            partitions = Counter(file.p for file in files)
            assert all(count == 1 for count in partitions.values()), f"{name} compacted nothing"


def _check_log(expected: Replay, log: Sequence[Version]) -> None:
    for version, rows in expected.states.items():
        counted = sum(file.rows - file.dead for file in log[version].files)
        assert counted == len(rows), f"statistics of version {version}"
    for wanted in expected.jobs:
        if wanted.version is not None:
            tags = log[wanted.version].info.get("tags") or {}
            over = tags.get("interlock.winners", "")
            stated = tuple(int(version) for version in over.split(",") if version)
            assert stated == wanted.verdict.passed, f"winners of version {wanted.version}"


def _check_rows(
    spark: SparkSession, template: Template, table: Table, start: Start, expected: Replay
) -> None:
    """Every version, as Spark and as `deltalake` read it; row ids and commit versions as well."""
    versions = sorted(expected.states)
    for version in versions:
        wanted = _counted(expected.states[version], template)
        assert Counter(map(plain, deltalake_rows(table, version=version))) == wanted, (
            f"rows of version {version}, as deltalake reads them"
        )
    found = spark.sql(
        " UNION ALL ".join(
            f"SELECT {version}, id, v, {template.columns.number}, "
            f"_metadata.row_id, _metadata.row_commit_version FROM {table} VERSION AS OF {version}"
            for version in versions
        )
    ).collect()
    known = {row.number for row in start.rows}
    for version in versions:
        rows = [Row(*row[1:]) for row in found if row[0] == version]
        read = _counted(rows, template)
        assert read == _counted(expected.states[version], template), f"rows of version {version}"
        numbers = [row.number for row in rows]
        assert len(set(numbers)) == len(numbers), f"row ids of version {version}"
        traced = Counter(_traced(row, known) for row in rows)
        wanted_traces = Counter(_traced(row, known) for row in expected.states[version])
        assert traced == wanted_traces, f"row ids and commit versions of version {version}"


def _traced(row: Row, known: set[int | None]) -> Row:
    """Forget the ids of rows that were added during the history: the oracle cannot know them."""
    return Row(row.id, row.v, row.p, row.number if row.number in known else None, row.since)


def _counted(rows: Sequence[Row], template: Template) -> Counter[tuple[object, ...]]:
    return Counter(map(template.columns.of, rows))


def _check_changes(
    spark: SparkSession, template: Template, table: Table, start: Start, expected: Replay
) -> None:
    """The change data feed has each change once, and nothing of a compaction."""
    if max(expected.states) == start.version:
        return
    feed = spark.read.option("readChangeFeed", True).option("startingVersion", start.version + 1)
    found = feed.format("delta").load(str(table.path))
    columns = ("_commit_version", "_change_type", *template.columns.names)
    read = Counter(plain(row) for row in found.select(*columns).collect())
    wanted = Counter(
        (job.version, kind, *template.columns.of(row))
        for job in expected.jobs
        if job.version is not None
        for kind, rows in _feed(job.change).items()
        for row in rows
    )
    assert read == wanted, f"change data feed: {read - wanted} for {wanted - read}"


def _feed(change: Change) -> dict[str, Rows]:
    return {
        "delete": change.deleted,
        "insert": change.inserted,
        "update_preimage": tuple(before for before, _ in change.updated),
        "update_postimage": tuple(after for _, after in change.updated),
    }
