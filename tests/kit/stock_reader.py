"""Counts the rows of a table by their first column in a session of plain Delta, and prints JSON.

python -m tests.kit.stock_reader TABLE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.kit.sessions import SMALL, stock
from tests.kit.support import Table


def main() -> None:
    table = Table(Path(sys.argv[1]))
    spark = stock(SparkSession.builder.config(map={**SMALL})).getOrCreate()
    found = spark.read.format("delta").load(str(table.path))
    counts = found.groupBy(found.columns[0]).count().orderBy(found.columns[0]).collect()
    print(json.dumps([list(row) for row in counts]))
    spark.stop()


if __name__ == "__main__":
    main()
