"""Start one session as a user would, so that later ones find Delta's jars on this machine."""

from __future__ import annotations

import tempfile

import interlock
from pyspark.sql import SparkSession


def main() -> None:
    """Make a table with a policy in a temporary folder."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    with tempfile.TemporaryDirectory() as folder:
        builder = builder.config("spark.sql.warehouse.dir", folder)
        spark = interlock.configure(builder).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        spark.sql(
            f"CREATE TABLE delta.`{folder}/first` (id INT) USING delta "
            "TBLPROPERTIES ('interlock.policy' = 'serializable')"
        )
        spark.stop()


if __name__ == "__main__":
    main()
