"""Runs a case on real Spark and Delta and compares the result with the expected one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interlock._races import Job, race
from interlock.errors import UsageError
from interlock.lab.cases import Case
from interlock.lab.example import Tables, latest_version, sql_name
from interlock.lab.log import Log, read_log
from interlock.lab.model import Body, Class, Outcome, Rows, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Reader = Callable[[Path, int], Rows]


@dataclass(frozen=True)
class CaseResult:
    """The result of a case.

    Attributes:
        case: what was run
        table: the folder of its table
        seen: the outcome on real Spark and Delta
        error: the class of the later job's error
        rows: the table's rows at the end
        problems: every difference from what must be, as sentences; none if all is right
        seconds: how long it took

    """

    case: Case
    table: Path
    seen: Outcome
    error: str | None
    rows: Rows
    problems: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Tell whether everything was as it must be."""
        return not self.problems


def run_case(
    spark: SparkSession, tables: Tables, case: Case, *, reader: Reader | None = None
) -> CaseResult:
    """Run `case` on a new table.

    Args:
        spark: a session with Interlock
        tables: where tables are made
        case: what to run
        reader: reads a version of a table without Spark. With one, Spark reads the last version and
            the reader all of them; without, Spark reads all

    """
    start = time.monotonic()
    path = tables.fresh(case.example, case.properties)
    if case.outcome is Outcome.REFUSED:
        seen, error, problems = _run_refused(spark, path, case)
    else:
        seen, error, problems = _run_race(spark, path, case)
    log = read_log(path)
    rows = _rows(spark, path)
    if rows != case.rows:
        problems.append(f"rows must be {show(case.rows)}, are {show(rows)}")
    problems.extend(_check_log(case, log))
    read: Reader = reader or partial(_rows, spark)
    problems.extend(_check_history(case.history, lambda version: read(path, version), log.last))
    return CaseResult(case, path, seen, error, rows, tuple(problems), time.monotonic() - start)


def _run_race(spark: SparkSession, path: Path, case: Case) -> tuple[Outcome, str | None, list[str]]:
    jobs = [_job(spark, path, case, name) for name in ("earlier", "later")]
    earlier, later = race(spark, *jobs, latest_version=lambda: latest_version(path))
    problems = []
    if earlier.error is not None:
        problems.append(f"the earlier job failed: {_first_line(earlier.error)}")
    if not later.held:
        problems.append("the later job never came to a commit")
    seen = Outcome.BOTH if later.ok else Outcome.FAIL
    error = None if later.error is None else type(later.error).__name__
    if seen is not case.outcome:
        why = "" if later.error is None else f": {_first_line(later.error)}"
        problems.append(f"must be {case.outcome.value}, is {seen.value}{why}")
    elif error != case.error:
        problems.append(f"the later job must raise {case.error}, raises {error}")
    return seen, error, problems


def _job(spark: SparkSession, path: Path, case: Case, name: str) -> Job:
    body: Body = case.earlier if name == "earlier" else case.later
    sql = body.sql.format(t=sql_name(path))
    session = spark if case.sessions == 1 and not body.settings else spark.newSession()
    for key, value in body.settings:
        session.conf.set(key, value)
    return Job(name, lambda session: session.sql(sql), session)


def _run_refused(
    spark: SparkSession, path: Path, case: Case
) -> tuple[Outcome, str | None, list[str]]:
    """Run the statement which this kind of table does not offer, all alone."""
    body = case.earlier if case.earlier.kind is Class.UD else case.later
    try:
        spark.sql(body.sql.format(t=sql_name(path)))
    except UsageError as error:
        return Outcome.REFUSED, type(error).__name__, []
    except Exception as error:
        return Outcome.FAIL, type(error).__name__, [f"not refused, but: {_first_line(error)}"]
    return Outcome.BOTH, None, ["must be refused, is not"]


def _rows(spark: SparkSession, path: Path, version: int | None = None) -> Rows:
    at = "" if version is None else f" VERSION AS OF {version}"
    query = spark.sql(f"SELECT * FROM {sql_name(path)}{at}")
    return in_order(tuple(tuple(row) for row in query.collect()))


def _check_log(case: Case, log: Log) -> Iterable[str]:
    if log.last != max(case.history):
        yield f"the last version must be {max(case.history)}, is {log.last}"
    if log.changes != case.changes:
        found, expected = sorted(log.changes), sorted(case.changes)
        yield f"versions that change data must be {expected}, are {found}"
    if len(log.live_files) != case.files:
        yield f"live files must be {case.files}, are {len(log.live_files)}"


def _check_history(
    expected: dict[int, Rows], read: Callable[[int], Rows], last: int
) -> Iterable[str]:
    for version, rows in expected.items():
        if version <= last and (found := in_order(read(version))) != rows:
            yield f"version {version} must be {show(rows)}, is {show(found)}"


def show(rows: Rows) -> str:
    """Write rows as the documents do: {1a, 2b}."""
    return "{" + ", ".join("".join(map(str, row)) for row in rows) + "}"


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
