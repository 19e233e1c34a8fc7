"""A SELECT just after a commit to a table of very many files, beside stock Delta.

    python -m benchmarks.reads [--files 100000] [--repetitions 15]

Both sessions have the same table, stock Delta a copy of it; another process has made it, so neither
has its files in memory before the first round. In each round both insert a row, and then look for
the rows with one id, each side first in every second round. What is measured is the SELECT.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.rebase import SETTINGS, print_table
from integration.writers import order
from tests.kit.driver_process import DriverProcess, driver_processes

WARM_UP = 15
MAKE = """from pathlib import Path
from tests.kit.tiny_files import of_tiny_files
of_tiny_files(spark, Path({table!r}), (f"{{n // 1000}}/{{n}}.parquet" for n in range({files})))"""


def seconds(driver: DriverProcess, statement: str) -> float:
    """Run a statement and return how long it took."""
    begun = time.perf_counter()
    end = driver.run(statement)
    assert end.error is None, end.message
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A SELECT just after a commit.")
    parser.add_argument("--files", type=int, default=100_000, help="of the table")
    parser.add_argument("--repetitions", type=int, default=15, help="rounds that count")
    arguments = parser.parse_args()
    names = ("stock", "interlock")
    times: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        tables = [Path(folder) / name for name in names]
        with driver_processes(Path(folder), "interlock", settings=SETTINGS) as (maker,):
            order(maker, MAKE.format(table=str(tables[1]), files=arguments.files))
        shutil.copytree(tables[1], tables[0])
        with driver_processes(Path(folder), *names, settings=SETTINGS) as drivers:
            sides = list(zip(names, drivers, tables, strict=True))
            for _ in range(WARM_UP + arguments.repetitions):
                sides.reverse()
                for name, driver, table in sides:
                    seconds(driver, f"INSERT INTO delta.`{table}` VALUES (2)")
                    select = f"spark.sql('SELECT * FROM delta.`{table}` WHERE id = 1').collect()"
                    times[name].append(seconds(driver, select))
    medians = [statistics.median(times[name][WARM_UP:]) for name in names]
    cells = [f"{median * 1000:.0f} ms" for median in medians]
    ratio = f"{medians[1] / medians[0]:.2f}"
    print_table([["files", *names, "ratio"], [f"{arguments.files:,}", *cells, ratio]])


if __name__ == "__main__":
    main()
