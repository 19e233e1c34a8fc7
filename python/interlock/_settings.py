"""The configuration that a Spark session would have without Interlock's additions.

`interlock.configure` appends to lists which the user may have given in three places: the builder,
a Spark process that runs already (under `spark-submit`), and `spark-defaults.conf`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any


class Settings:
    """The settings behind a builder, and how to change them."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def value(self, key: str) -> str | None:
        """Return the value that the session would get for `key`."""
        options: dict[str, Any] = self._builder._options
        if key in options:
            return None if options[key] is None else str(options[key])
        return self._below.get(key)

    def all_keys(self) -> set[str]:
        """Return the keys for which the session would get a value."""
        options: dict[str, Any] = self._builder._options
        return {key for key in (*options, *self._below) if self.value(key) is not None}

    def set(self, key: str, value: str) -> None:
        """Set `key` in the builder."""
        self._builder.config(key, value)

    def items(self, key: str) -> list[str]:
        """Return the comma-separated list at `key`."""
        return [item.strip() for item in (self.value(key) or "").split(",") if item.strip()]

    def append(self, key: str, items: Iterable[str]) -> None:
        """Append to the list at `key` those `items` that it does not have."""
        found = self.items(key)
        added = [item for item in items if item not in found]
        if added:
            self.set(key, ",".join(found + added))

    @cached_property
    def _below(self) -> dict[str, str]:
        if running_in_spark():
            from pyspark import SparkConf, SparkContext

            SparkContext._ensure_initialized()
            return dict(SparkConf().getAll())
        return _spark_defaults()


def running_in_spark() -> bool:
    """Tell whether this Python process has a Spark JVM already, as under `spark-submit`."""
    from pyspark import SparkContext

    return SparkContext._jvm is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def spark_has_jar(prefix: str) -> bool:
    """Tell whether the Spark installation itself has a jar whose name starts so."""
    from pyspark.find_spark_home import _find_spark_home

    return any(Path(_find_spark_home(), "jars").glob(f"{prefix}*.jar"))


def _spark_defaults() -> dict[str, str]:
    """Read `spark-defaults.conf` where Spark's launcher is going to read it."""
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    path = Path(folder, "spark-defaults.conf")
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    pairs = (re.split(r"\s*[=\s]\s*", line.strip(), maxsplit=1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and not pair[0].startswith("#")}
