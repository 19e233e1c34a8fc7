"""What Interlock costs where nobody else writes, against stock Delta, side by side.

    python -m benchmarks.overhead [--repetitions 30] [--policy maxcompute_delta] [--steps]

Three sessions, each in a process of its own, run the same statements on tables of their own, in
turn and with the first place going round, so that whatever slows the machine slows all of them:

    plain        stock Delta, a table without properties
    properties   stock Delta, a table with the Delta properties that the policy requires
    interlock    Interlock, a table with the policy

With `--steps` three more sessions of stock Delta have one difference each from a plain table: row
tracking, in-commit timestamps, or no statistics of columns.

`beside plain` compares each with plain, `overhead` compares interlock with properties, each by the
median of the ratios of one round.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kit.driver_process import DriverProcess, driver_processes

REQUIRED = {
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.feature.deletionVectors": "supported",
}
SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "true",
}
ROWS = 20_000
STATEMENTS = {
    "INSERT VALUES": "INSERT INTO delta.`{grows}` VALUES ({n}, 'round {n}')",
    "INSERT": "INSERT INTO delta.`{grows}` SELECT id, uuid() AS v FROM range(1000)",
    "UPDATE": "UPDATE delta.`{stays}` SET v = 'round {n}' WHERE id % 100 = {n} % 100",
    "MERGE": (
        "MERGE INTO delta.`{stays}` t USING (SELECT id * 50 AS id FROM range(200)) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged {n}'"
    ),
}


@dataclass(frozen=True)
class Contender:
    """A session and its tables.

    Attributes:
        name: its column
        kind: whether it loads Interlock
        properties: of its tables

    """

    name: str
    kind: str
    properties: dict[str, str]


PLAIN = Contender("plain", "stock", {"delta.enableDeletionVectors": "false"})
PROPERTIES = Contender("properties", "stock", {**PLAIN.properties, **REQUIRED})
STEPS = tuple(
    Contender(name, "stock", {**PLAIN.properties, key: value})
    for name, key, value in (
        ("row tracking", "delta.enableRowTracking", "true"),
        ("in-commit timestamps", "delta.enableInCommitTimestamps", "true"),
        ("no statistics", "delta.dataSkippingNumIndexedCols", "0"),
    )
)


class Runner:
    """Runs the statements in one session."""

    def __init__(self, contender: Contender, driver: DriverProcess, folder: Path) -> None:
        self.contender = contender
        self._driver = driver
        self._tables = {kind: folder / f"{contender.name}-{kind}" for kind in ("grows", "stays")}
        self._seconds: dict[str, list[float]] = {name: [] for name in STATEMENTS}

    def create_tables(self) -> None:
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in self.contender.properties.items())
        for path in self._tables.values():
            self._run(
                f"CREATE TABLE delta.`{path}` (id BIGINT, v STRING) USING delta "
                f"TBLPROPERTIES ({listed})"
            )
        self._run(
            f"INSERT INTO delta.`{self._tables['stays']}` "
            f"SELECT id, uuid() FROM range(0, {ROWS}, 1, 2)"
        )

    def time(self, name: str, number: int) -> None:
        """Run one statement and remember its seconds."""
        statement = STATEMENTS[name].format(n=number, **self._tables)
        start = time.perf_counter()
        self._run(statement)
        self._seconds[name].append(time.perf_counter() - start)

    def seconds(self, name: str, *, skip: int) -> list[float]:
        """Return a statement's times without those of the first `skip` rounds."""
        return self._seconds[name][skip:]

    def _run(self, statement: str) -> None:
        end = self._driver.run(statement)
        if end.error is not None:
            raise RuntimeError(f"{self.contender.name}: {statement}: {end.message}")


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Interlock's overhead without contention.")
    parser.add_argument("--repetitions", type=int, default=30, help="rounds that count")
    parser.add_argument("--warm-up", type=int, default=8, help="rounds before them")
    parser.add_argument("--policy", default="maxcompute_delta", help="of Interlock's tables")
    parser.add_argument("--steps", action="store_true", help="each property by itself as well")
    arguments = parser.parse_args()
    with_policy = {**PLAIN.properties, "interlock.policy": arguments.policy}
    steps = STEPS if arguments.steps else ()
    contenders = (PLAIN, *steps, PROPERTIES, Contender("interlock", "interlock", with_policy))
    with tempfile.TemporaryDirectory() as folder:
        runners = measure(Path(folder), contenders, arguments.warm_up + arguments.repetitions)
    print_table(runners, skip=arguments.warm_up)


def measure(folder: Path, contenders: Sequence[Contender], rounds: int) -> dict[str, Runner]:
    """Run all rounds and return the runners by name."""
    kinds = [contender.kind for contender in contenders]
    with driver_processes(folder, *kinds, settings=SETTINGS) as drivers:
        runners = [Runner(c, d, folder) for c, d in zip(contenders, drivers, strict=True)]
        for runner in runners:
            runner.create_tables()
        for number in range(rounds):
            print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
            first = number % len(runners)
            for name in STATEMENTS:
                for runner in runners[first:] + runners[:first]:
                    runner.time(name, number)
        print(file=sys.stderr)
    return {runner.contender.name: runner for runner in runners}


def print_table(runners: dict[str, Runner], *, skip: int) -> None:
    """Print the medians in milliseconds and the ratios."""
    heads = ["statement", *runners, "overhead"]
    rows = [heads]
    for name in STATEMENTS:
        times = {key: runner.seconds(name, skip=skip) for key, runner in runners.items()}
        medians = [f"{statistics.median(seconds) * 1000:.0f} ms" for seconds in times.values()]
        beside = [ratio(seconds, times[PLAIN.name]) for seconds in times.values()]
        overhead = ratio(times["interlock"], times[PROPERTIES.name])
        rows += [[name, *medians, overhead], ["beside plain", *beside, ""]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Return the median of the ratios of one round each, as a difference in percent."""
    return (
        f"{(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)) - 1) * 100:+.1f} %"
    )


if __name__ == "__main__":
    main()
