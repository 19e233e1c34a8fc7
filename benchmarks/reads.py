"""A SELECT just after a commit to a table of very many files, beside stock Delta.

    python -m benchmarks.reads [--files 100000] [--repetitions 18] [--sessions 3]

Two sessions of stock Delta and one of Interlock each have a copy of one table; another process has
made it, so none has its files in memory before the first round. In each round all insert a row, and
then look for the rows with one id; six rounds have each order of the sessions once. What is
measured is the SELECT. How much the two stock sessions differ shows how exact the ratio is: two
JVMs seldom compile the same code.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.rebase import SETTINGS, print_table
from integration.writers import order
from tests.kit.driver_process import DriverProcess, driver_processes

WARM_UP = 15
KINDS = ("stock", "stock", "interlock")
MAKE = """from pathlib import Path
from tests.kit.tiny_files import of_tiny_files
of_tiny_files(spark, Path({table!r}), (f"{{n // 1000}}/{{n}}.parquet" for n in range({files})))"""


def seconds(driver: DriverProcess, statement: str) -> float:
    """Run a statement and return how long it took."""
    begun = time.perf_counter()
    end = driver.run(statement)
    assert end.error is None, end.message
    return time.perf_counter() - begun


def medians(files: int, repetitions: int) -> list[float]:
    """Return the seconds of a SELECT in each of the sessions, which are new ones."""
    times: list[list[float]] = [[] for _ in KINDS]
    with tempfile.TemporaryDirectory() as folder:
        made, *tables = (Path(folder) / f"table{n}" for n in range(1 + len(KINDS)))
        with driver_processes(Path(folder), "interlock", settings=SETTINGS) as (maker,):
            order(maker, MAKE.format(table=str(made), files=files))
        for table in tables:
            shutil.copytree(made, table)
        with driver_processes(Path(folder), *KINDS, settings=SETTINGS) as drivers:
            orders = list(itertools.permutations(zip(drivers, tables, times, strict=True)))
            random.shuffle(orders)
            for turns in itertools.islice(itertools.cycle(orders), WARM_UP + repetitions):
                for driver, table, measured in turns:
                    seconds(driver, f"INSERT INTO delta.`{table}` VALUES (2)")
                    select = f"spark.sql('SELECT * FROM delta.`{table}` WHERE id = 1').collect()"
                    measured.append(seconds(driver, select))
    return [statistics.median(measured[WARM_UP:]) for measured in times]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A SELECT just after a commit.")
    parser.add_argument("--files", type=int, default=100_000, help="of the table")
    parser.add_argument("--repetitions", type=int, default=18, help="rounds that count")
    parser.add_argument("--sessions", type=int, default=3, help="how often with new processes")
    arguments = parser.parse_args()
    rows = [["files", "stock", "stock again", "ratio", "interlock", "ratio to both"]]
    ratios = []
    for _ in range(arguments.sessions):
        stock, again, interlock = medians(arguments.files, arguments.repetitions)
        ratios.append(2 * interlock / (stock + again))
        measured = [f"{seconds * 1000:.0f} ms" for seconds in (stock, again, interlock)]
        measured.insert(2, f"{again / stock:.2f}")
        rows.append([f"{arguments.files:,}", *measured, f"{ratios[-1]:.2f}"])
    print_table(rows)
    print(f"Median of the ratios to both: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
