"""Reads tables that histories left in a session of plain Delta.

    python -m tests.kit.histories.stock FOLDER FIRST...

Each table is `FOLDER/0`, `FOLDER/1`, ... and is read at every version since its FIRST, then a copy
of it is restored to some of them, then it is vacuumed with no retention at all. Prints one JSON
object per table: rows by version, as read and as restored, and the rows after the VACUUM.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from interlock._small_session import SMALL_SESSION
from interlock.lab.model import Rows, in_order
from pyspark.sql import SparkSession

from tests.kit.histories.columns import plain
from tests.kit.sessions import stock
from tests.kit.support import Table, latest_version, rows
from tests.kit.tree import ROOT

JsonRows = list[list[object]]


@dataclass(frozen=True)
class Observed:
    """One table.

    Attributes:
        read: the rows at each version
        restored: the rows after RESTORE to the first version and to one in the middle; of none
            where the table makes no deletion vectors, as plain Delta then restores no file that has
            one, which a rebase may have left
        vacuumed: the rows after VACUUM

    """

    read: dict[str, JsonRows]
    restored: dict[str, JsonRows]
    vacuumed: JsonRows


def observe_in_process(folder: Path, first: list[int]) -> list[Observed]:
    """Run this module in a process of its own, whose session does not know Interlock."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kit.histories.stock", str(folder), *map(str, first)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Observed(**found) for found in json.loads(done.stdout.splitlines()[-1])]


def observe(spark: SparkSession, table: Table, first: int) -> Observed:
    versions = range(first, latest_version(table) + 1)
    copy = Table(table.path.with_name(f"{table.path.name}-copy"))
    shutil.copytree(table.path, copy.path)
    read = {str(version): _json(rows(spark, table, version=version)) for version in versions}
    restored = {}
    listed = spark.sql(f"SHOW TBLPROPERTIES {table}").collect()
    makes_vectors = ("delta.enableDeletionVectors", "true") in [tuple(row) for row in listed]
    for version in {versions[0], versions[len(versions) // 2]} if makes_vectors else ():
        spark.sql(f"RESTORE TABLE {copy} TO VERSION AS OF {version}")
        restored[str(version)] = _json(rows(spark, copy))
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    return Observed(read, restored, _json(rows(spark, table)))


def _json(found: Rows) -> JsonRows:
    return [list(row) for row in in_order(tuple(map(plain, found)))]


def main(folder: Path, first: list[int]) -> None:
    builder = (
        SparkSession.builder.config(map=dict(SMALL_SESSION))
        .config("spark.driver.memory", "800m")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    )
    spark = stock(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    found = [
        observe(spark, Table(folder / str(number)), version) for number, version in enumerate(first)
    ]
    print(json.dumps([vars(one) for one in found]))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(version) for version in sys.argv[2:]])
