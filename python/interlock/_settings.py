"""The configuration that a Spark session would have without Interlock's additions.

`interlock.configure` appends to lists which the user may have given in four places: the builder,
a Spark process that runs already (under `spark-submit`), the environment variable
`PYSPARK_SUBMIT_ARGS`, and `spark-defaults.conf`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

JARS = "spark.jars"
PACKAGES = "spark.jars.packages"

_SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"
# spark-submit's options without a value.
_FLAGS = (
    "-h",
    "--help",
    "-v",
    "--verbose",
    "--version",
    "--supervise",
    "--usage-error",
    "--load-spark-defaults",
)
# A line of `spark-defaults.conf`: a key, which ends at a blank, `=` or `:`, and its value.
_DEFAULT = re.compile(r"^[ \t]*([^\s#!=:][^\s=:]*)[ \t]*[=:]?[ \t]*(.*?)[ \t]*$", re.MULTILINE)


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
        return _items(self.value(key))

    def append(self, key: str, items: Iterable[str]) -> None:
        """Append to the list at `key` those `items` that it does not have."""
        found = self.items(key)
        added = [item for item in items if item not in found]
        if added:
            self.set(key, ",".join(found + added))

    def add_submitted(self) -> None:
        """Append the jars and packages of `PYSPARK_SUBMIT_ARGS` to those of the builder."""
        submitted = _submitted()
        for key in (JARS, PACKAGES):
            self.append(key, _items(submitted.get(key)))

    @contextmanager
    def winning(self) -> Iterator[None]:
        """Let a launched Spark take the builder's jars and packages.

        PySpark gives `PYSPARK_SUBMIT_ARGS` to spark-submit behind the builder's settings, and of an
        option that is given twice the last one counts.
        """
        given = os.environ.get(_SUBMIT_ARGS)
        if given is None:
            yield
            return
        lists = {"--jars": self.value(JARS), "--packages": self.value(PACKAGES)}
        added = [text for option, value in lists.items() if value for text in (option, value)]
        submit = _Submit.of(given)
        os.environ[_SUBMIT_ARGS] = shlex.join([*submit.words, *added, *submit.application])
        try:
            yield
        finally:
            os.environ[_SUBMIT_ARGS] = given

    @cached_property
    def _below(self) -> dict[str, str]:
        from pyspark.util import is_remote_only

        if running_in_spark():
            from pyspark import SparkConf, SparkContext

            SparkContext._ensure_initialized()
            return dict(SparkConf().getAll())
        if is_remote_only():
            return {}
        return {**_defaults(), **_submitted()}


def running_in_spark() -> bool:
    """Tell whether this Python process has a Spark JVM already, as under `spark-submit`."""
    from pyspark.util import is_remote_only

    if is_remote_only():
        return False
    from pyspark import SparkContext

    return SparkContext._jvm is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def spark_has_jar(prefix: str) -> bool:
    """Tell whether the Spark installation itself has a jar whose name starts so."""
    from pyspark.find_spark_home import _find_spark_home

    return any(Path(_find_spark_home(), "jars").glob(f"{prefix}*.jar"))


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


class _Submit(NamedTuple):
    """Arguments for spark-submit.

    Attributes:
        options: its own options in order, each with its value; None for one that has none
        words: the same as they were given
        application: what runs, with its arguments

    """

    options: list[tuple[str, str | None]]
    words: list[str]
    application: list[str]

    @classmethod
    def of(cls, arguments: str) -> _Submit:
        """Split the text of an environment variable as spark-submit does."""
        words = shlex.split(arguments)
        options: list[tuple[str, str | None]] = []
        n = 0
        while n < len(words) and words[n].startswith("-"):
            option, is_joined, value = words[n].partition("=")
            n += 1
            if is_joined:
                options.append((option, value))
            elif option in _FLAGS or n == len(words):
                options.append((option, None))
            else:
                options.append((option, words[n]))
                n += 1
        return cls(options, words[:n], words[n:])

    def values(self, *names: str) -> list[str]:
        """Return the values of an option, which may have several names."""
        return [value for name, value in self.options if name in names and value is not None]


def _submitted() -> dict[str, str]:
    """Return the settings that `PYSPARK_SUBMIT_ARGS` names."""
    submit = _Submit.of(os.environ.get(_SUBMIT_ARGS, ""))
    found = dict(pair.split("=", 1) for pair in submit.values("-c", "--conf") if "=" in pair)
    for key, option in ((JARS, "--jars"), (PACKAGES, "--packages")):
        for value in submit.values(option):
            found[key] = value
    return found


def _defaults() -> dict[str, str]:
    """Return what `spark-defaults.conf` says."""
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    file = Path(folder, "spark-defaults.conf")
    return dict(_DEFAULT.findall(file.read_text(encoding="utf-8"))) if file.is_file() else {}
