"""Start one session as a user would, so that later ones find Delta's jars on this machine.

Its JVM leaves an archive of the classes that it loaded, with which the JVMs of the tests start in
two thirds of the time (Java's class data sharing).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import interlock
from interlock._small_session import SMALL_SESSION
from pyspark.sql import SparkSession

_OPTIONS = "spark.driver.extraJavaOptions"
_STATEMENTS = (
    "CREATE TABLE {t} (id INT) USING delta TBLPROPERTIES ('interlock.policy' = 'serializable')",
    "INSERT INTO {t} VALUES (1)",
    "UPDATE {t} SET id = 2",
    "SELECT * FROM {t}",
)


def main(archive: Path) -> None:
    """Make and change a table with a policy in a temporary folder."""
    builder = SparkSession.builder.config(map={**SMALL_SESSION}).config(
        _OPTIONS, f"{SMALL_SESSION[_OPTIONS]} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    )
    with tempfile.TemporaryDirectory() as folder:
        builder = builder.config("spark.sql.warehouse.dir", folder)
        spark = interlock.configure(builder).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        for statement in _STATEMENTS:
            spark.sql(statement.format(t=f"delta.`{folder}/first`")).collect()
        gateway: Any = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()  # until the archive is written


if __name__ == "__main__":
    main(Path(sys.argv[1]))
