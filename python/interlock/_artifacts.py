"""The wheel's version and jar, and the versions of Spark and Delta that it needs."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

__version__ = version("spark-interlock")

SPARK_MINOR = "4.2"
SCALA = "2.13"
DELTA_VERSION = "4.4.0"
DELTA_ARTIFACT = f"delta-spark_{SPARK_MINOR}_{SCALA}"
DELTA_COORDINATES = f"io.delta:{DELTA_ARTIFACT}:{DELTA_VERSION}"
POSTGRES_VERSION = "42.7.10"
POSTGRES_COORDINATES = f"org.postgresql:postgresql:{POSTGRES_VERSION}"
ARTIFACT = f"interlock-spark_{SPARK_MINOR}_{SCALA}"
JAR_NAME = f"{ARTIFACT}-{__version__}.jar"


def jar_path() -> Path:
    """Return the jar of the installed wheel, for `spark.jars` or `spark-submit --jars`.

    If the installation has no jar of its own version, a `ConfigurationError` is raised.
    """
    path = Path(__file__).resolve().parent / "jars" / JAR_NAME
    if not path.is_file():
        from interlock.errors import ConfigurationError

        raise ConfigurationError(
            f"This installation of spark-interlock has no {JAR_NAME}: "
            f"install it again (pip install --force-reinstall spark-interlock=={__version__})."
        )
    return path


def maven_coordinates() -> str:
    """Return the same jar's Maven coordinates, for `spark.jars.packages`."""
    return f"io.interlock:{ARTIFACT}:{__version__}"


@cache
def error_conditions() -> dict[str, Any]:
    """Read the jar's catalogue of errors: by condition, the lines of its message and `sqlState`."""
    with ZipFile(jar_path()) as jar:
        catalogue: dict[str, Any] = json.loads(jar.read("io/interlock/error-conditions.json"))
    return catalogue
