"""The Spark session of a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from interlock.lab.session import SMALL_SESSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def small_session() -> Iterator[tuple[SparkSession, Path]]:
    """Start a small Spark with Interlock and a folder; stop the one, remove the other."""
    from pyspark.sql import SparkSession

    from interlock.session import configure

    with TemporaryDirectory(prefix="interlock-") as folder:
        builder = SparkSession.builder.appName("interlock").config(map=dict(SMALL_SESSION))
        builder = builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        spark = configure(builder).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark, Path(folder)
        finally:
            spark.stop()
