"""A day of a busy table, hour by hour, by writers that run at the same time.

    python -m integration.busy_table {stock,row_level} FOLDER [--hours 24] [--clustered]
        [--parquet 2.12.0]

In every hour five writers start together: an ingest that appends every few seconds, late updates of
single events, deletes of users who asked for it, late corrections that come as MERGE, and OPTIMIZE.
No two of them touch the same row. Each retries what a conflict aborted, as users of Delta do: up to
`ATTEMPTS` times, after a random pause. Prints what became of it as one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import interlock
from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
from interlock._small_session import SMALL_SESSION
from pyspark.sql import SparkSession

from tests.kit.sessions import stock

# In Python Delta's conflicts have no class in common.
CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
)
ATTEMPTS = 12
EVENTS = 400_000
USERS = 1_000  # an event's user is its number modulo this
LATE, GONE, CORRECTED = range(0, 800), range(800, 900), range(900, 1_000)
SETTINGS = {
    **SMALL_SESSION,
    "spark.driver.memory": "1536m",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.scheduler.mode": "FAIR",
}


@dataclass(frozen=True)
class Statement:
    """What a writer runs.

    Attributes:
        kind: INSERT, UPDATE, DELETE, MERGE or OPTIMIZE
        sql: the statement; `{t}` stands for the table

    """

    kind: str
    sql: str


@dataclass
class Day:
    """What became of a day.

    Attributes:
        side: which rules the table followed
        statements: how many of each kind there were
        aborted: attempts that lost to another job, by kind
        given_up: statements that lost `ATTEMPTS` times, by kind
        reasons: why attempts lost, as (kind, predicate that was not decided or selected too much)
        wall_seconds: from the first hour's start to the last one's end
        written_bytes: all that was written below the table, whether or not it was kept
        rows: `Table.totals` in the end

    """

    side: str
    statements: dict[str, int] = field(default_factory=dict)
    aborted: dict[str, int] = field(default_factory=dict)
    given_up: dict[str, int] = field(default_factory=dict)
    reasons: list[tuple[str, str]] = field(default_factory=list)
    wall_seconds: float = 0
    written_bytes: int = 0
    rows: tuple[int, ...] = ()


def hour(number: int) -> Iterator[list[Statement]]:
    """Make the statements of one hour's writers, the same on both sides."""
    chance = random.Random(number)
    first = EVENTS + number * 5_000
    yield [_ingest(first + part * 1_000) for part in range(5)]
    yield [_late(chance) for _ in range(3)]
    yield [_forget(number * 2 + user) for user in range(2)]
    yield [_correct(number, chance)]
    yield [Statement("OPTIMIZE", "OPTIMIZE {t}")]


def _ingest(first: int) -> Statement:
    return Statement(
        "INSERT",
        f"INSERT INTO {{t}} SELECT id, id % {USERS}, 'new', 0 FROM range({first}, {first + 1_000}) "
        f"WHERE id % {USERS} NOT BETWEEN {GONE.start} AND {GONE.stop - 1}",
    )


def _late(chance: random.Random) -> Statement:
    events = [chance.randrange(EVENTS // USERS) * USERS + chance.choice(LATE) for _ in range(20)]
    return Statement(
        "UPDATE", f"UPDATE {{t}} SET status = 'late' WHERE id IN ({', '.join(map(str, events))})"
    )


def _forget(number: int) -> Statement:
    return Statement("DELETE", f"DELETE FROM {{t}} WHERE user = {GONE.start + number}")


def _correct(number: int, chance: random.Random) -> Statement:
    """Correct some events; every other time the condition names the users that it is about."""
    events = sorted(
        {chance.randrange(EVENTS // USERS) * USERS + chance.choice(CORRECTED) for _ in range(200)}
    )
    source = ", ".join(f"({event})" for event in events)
    named = f" AND t.user BETWEEN {CORRECTED.start} AND {CORRECTED.stop - 1}" * (number % 2)
    return Statement(
        "MERGE",
        f"MERGE INTO {{t}} t USING (SELECT col1 AS id FROM VALUES {source}) s "
        f"ON t.id = s.id{named} WHEN MATCHED THEN UPDATE SET correction = t.correction + 1",
    )


class Table:
    """The table, and what became of its writers' statements."""

    def __init__(
        self,
        spark: SparkSession,
        path: Path,
        side: str,
        *,
        clustered: bool = False,
        parquet: str = "1.0.0",
    ) -> None:
        self._spark = spark
        self._name = f"delta.`{path}`"
        self._lock = threading.Lock()
        self.day = Day(side)
        properties = f"'delta.parquet.format.version' = '{parquet}'"
        properties += ", 'delta.enableDeletionVectors' = 'true'"
        if side != "stock":
            properties += f", 'interlock.policy' = '{side}'"
        spark.sql(
            f"CREATE TABLE {self._name} (id BIGINT, user BIGINT, status STRING, correction BIGINT) "
            f"USING delta {'CLUSTER BY (user) ' * clustered}TBLPROPERTIES ({properties})"
        )
        spark.sql(
            f"INSERT INTO {self._name} SELECT id, id % {USERS}, 'new', 0 "
            f"FROM range(0, {EVENTS}, 1, 4)"
        )

    def run(self, hours: int) -> Day:
        """Let the hours pass; the writers of one have ended before the next one begins."""
        written = self._written()
        start = time.monotonic()
        for number in range(hours):
            jobs = list(hour(number))
            with ThreadPoolExecutor(len(jobs)) as writers:
                for end in [writers.submit(self._write, job, number) for job in jobs]:
                    end.result()
        self.day.wall_seconds = time.monotonic() - start
        self.day.written_bytes = self._written() - written
        self.day.rows = self.totals()
        return self.day

    def totals(self) -> tuple[int, ...]:
        """Count the rows, and sum up what any change of a row changes."""
        found = self._spark.sql(
            "SELECT count(*), sum(id), sum(correction), sum(hash(id, status, correction)) "
            f"FROM {self._name}"
        ).collect()
        return tuple(found[0])

    def execute(self, statement: Statement) -> None:
        """Run a statement once."""
        self._spark.sql(statement.sql.format(t=self._name))

    def _write(self, statements: list[Statement], number: int) -> None:
        pauses = random.Random(number)
        for statement in statements:
            self._count(self.day.statements, statement.kind)
            for attempt in range(1, ATTEMPTS + 1):
                reason = self._attempt(statement)
                if reason is None:
                    break
                self._count(self.day.aborted, statement.kind)
                self.day.reasons.append((statement.kind, reason))
                time.sleep(pauses.uniform(0, min(4.0, 0.25 * 2**attempt)))
            else:
                self._count(self.day.given_up, statement.kind)

    def _attempt(self, statement: Statement) -> str | None:
        """Return None if it succeeded, else what it lost for."""
        try:
            self.execute(statement)
        except CONFLICTS as error:
            return str(getattr(error, "why", type(error).__name__))
        return None

    def _count(self, counts: dict[str, int], kind: str) -> None:
        with self._lock:
            counts[kind] = counts.get(kind, 0) + 1

    def _written(self) -> int:
        jvm: Any = self._spark._jvm
        found = jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        return sum(one.getBytesWritten() for one in found if one.getScheme() == "file")


def session(side: str, folder: Path) -> SparkSession:
    """Start the session of one side."""
    builder = SparkSession.builder.config(map=dict(SETTINGS)).config(
        "spark.sql.warehouse.dir", str(folder / "warehouse")
    )
    if side != "stock":
        return interlock.configure(builder).getOrCreate()
    return stock(builder).getOrCreate()


def main() -> None:
    """Run a day and print it."""
    parser = argparse.ArgumentParser(description="A day of a busy table.")
    parser.add_argument("side", choices=("stock", "row_level"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--clustered", action="store_true", help="CLUSTER BY the users")
    parser.add_argument("--parquet", default="1.0.0", help="version of the files")
    arguments = parser.parse_args()
    spark = session(arguments.side, arguments.folder)
    spark.sparkContext.setLogLevel("OFF")
    try:
        given = {"clustered": arguments.clustered, "parquet": arguments.parquet}
        table = Table(spark, arguments.folder / arguments.side, arguments.side, **given)
        day = table.run(arguments.hours)
        print(json.dumps(asdict(day)))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
