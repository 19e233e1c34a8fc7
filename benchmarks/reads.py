"""A SELECT just after a commit to a table of very many files, beside stock Delta.

    python -m benchmarks.reads [--files 100000] [--repetitions 24] [--sessions 3] [--jvm=-Xmn1500m]

Two sessions of stock Delta and one of Interlock each have a copy of one table; another process has
made it, so none has its files in memory before the first round. In each round all insert a row, and
then look for the rows with one id; six rounds have each order of the sessions once. What is
measured is the SELECT, and the SELECT with the INSERT before it. How much the two stock sessions
differ shows how exact the ratio is: two JVMs seldom compile the same code.

Before that, many such rounds on a smaller table give the JVMs time to compile their code. An INSERT
under a policy is over in half of stock's time, so less is compiled meanwhile: without these rounds,
compilers take more of the time of the SELECTs under a policy. Each JVM also grows its heap as it
goes; `--jvm='-Xms4g -Xmn1500m'` gives all the same from the start.
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

from benchmarks import rebase
from benchmarks.rebase import print_table
from integration.writers import order
from tests.kit.driver_process import DriverProcess, driver_processes

# A smaller heap has a full collection in every second SELECT, which takes a quarter of a second, so
# a median would be one with or one without by chance.
SETTINGS = {**rebase.SETTINGS, "spark.driver.memory": "4g"}
SMALL_TABLE = 1_000  # files
COMPILING = 120  # rounds on it
WARM_UP = 6
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


def copies(folder: Path, files: int) -> list[Path]:
    """Make a table, and return a copy of it for each session."""
    made, *tables = (folder / f"{files}-{n}" for n in range(1 + len(KINDS)))
    with driver_processes(folder, "interlock", settings=SETTINGS) as (maker,):
        order(maker, MAKE.format(table=str(made), files=files))
    for table in tables:
        shutil.copytree(made, table)
    return tables


def take_turns(
    drivers: list[DriverProcess], tables: list[Path], rounds: int
) -> list[list[tuple[float, float]]]:
    """Return, for each session, the seconds of the INSERT and the SELECT of each round."""
    times: list[list[tuple[float, float]]] = [[] for _ in drivers]
    orders = list(itertools.permutations(zip(drivers, tables, times, strict=True)))
    random.shuffle(orders)
    for turns in itertools.islice(itertools.cycle(orders), rounds):
        for driver, table, measured in turns:
            insert = seconds(driver, f"INSERT INTO delta.`{table}` VALUES (2)")
            select = f"spark.sql('SELECT * FROM delta.`{table}` WHERE id = 1').collect()"
            measured.append((insert, seconds(driver, select)))
    return times


def measure(files: int, repetitions: int, options: str) -> list[list[tuple[float, float]]]:
    """Return what `take_turns` returns of new sessions whose code is compiled."""
    environment = {"SPARK_SUBMIT_OPTS": options}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, tables = copies(folder, SMALL_TABLE), copies(folder, files)
        with driver_processes(
            folder, *KINDS, settings=SETTINGS, environment=environment
        ) as drivers:
            take_turns(drivers, small, COMPILING)
            times = take_turns(drivers, tables, WARM_UP + repetitions)
    return [measured[WARM_UP:] for measured in times]


def row(measured: str, times: list[list[float]]) -> list[str]:
    """Compare the medians of the sessions."""
    stock, again, interlock = (statistics.median(of_session) for of_session in times)
    columns = [f"{median * 1000:.0f} ms" for median in (stock, again, interlock)]
    columns.insert(2, f"{again / stock:.2f}")
    return [measured, *columns, f"{2 * interlock / (stock + again):.2f}"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A SELECT just after a commit.")
    parser.add_argument("--files", type=int, default=100_000, help="of the table")
    parser.add_argument("--repetitions", type=int, default=24, help="rounds that count")
    parser.add_argument("--sessions", type=int, default=3, help="how often with new processes")
    parser.add_argument("--jvm", default="", help="options of the sessions' JVMs")
    arguments = parser.parse_args()
    rows = [["", "stock", "stock again", "ratio", "interlock", "ratio to both"]]
    for _ in range(arguments.sessions):
        times = measure(arguments.files, arguments.repetitions, arguments.jvm)
        selects = [[select for _, select in measured] for measured in times]
        rows.append(row("SELECT", selects))
        rows.append(row("INSERT and SELECT", [list(map(sum, measured)) for measured in times]))
    print_table(rows)


if __name__ == "__main__":
    main()
