"""The wheel's version and jars, and the versions of Spark and Delta that it needs."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

__version__ = version("spark-interlock")

SPARK_MINORS = ("4.0", "4.1", "4.2")
SCALA = "2.13"
MAVEN_GROUP = "io.github.interlock-spark"
DELTA_VERSION = "4.4.0"
POSTGRES_VERSION = "42.7.10"
POSTGRES_COORDINATES = f"org.postgresql:postgresql:{POSTGRES_VERSION}"


def spark_minor() -> str:
    """Return the minor version of the PySpark that is installed; the newest if there is none.

    If Interlock does not know it, a `VersionMismatchError` is raised.
    """
    newest = SPARK_MINORS[-1]
    try:
        import pyspark
    except ImportError:
        return newest
    minor = ".".join(pyspark.__version__.split(".")[:2])
    if minor not in SPARK_MINORS:
        from interlock.errors import VersionMismatchError

        raise VersionMismatchError(
            f"Interlock {__version__} works with PySpark {', '.join(SPARK_MINORS)}, and this is "
            f"PySpark {pyspark.__version__}: pip install 'pyspark=={newest}.*'."
        )
    return minor


def delta_artifact() -> str:
    """Return the name of Delta's artifact for the installed PySpark."""
    return f"delta-spark_{spark_minor()}_{SCALA}"


def delta_coordinates() -> str:
    """Return the Maven coordinates of Delta for the installed PySpark."""
    return f"io.delta:{delta_artifact()}:{DELTA_VERSION}"


def jar_name() -> str:
    """Return the file name of the jar for the installed PySpark."""
    return f"interlock-spark_{spark_minor()}_{SCALA}-{__version__}.jar"


def jar_path() -> Path:
    """Return the jar for the installed PySpark, for `spark.jars` or `spark-submit --jars`.

    Without PySpark, it is the jar for the newest Spark. If the installation has no such jar of its
    own version, a `ConfigurationError` is raised; if Interlock does not work with this PySpark, a
    `VersionMismatchError`.
    """
    path = Path(__file__).resolve().parent / "jars" / jar_name()
    if not path.is_file():
        from interlock.errors import ConfigurationError

        others = ", ".join(sorted(jar.name for jar in path.parent.glob("*.jar")))
        raise ConfigurationError(
            f"This installation of spark-interlock has no {path.name}"
            f"{others and f', only {others}'}: "
            f"install it again (pip install --force-reinstall spark-interlock=={__version__}), "
            "or the wheel with the jars for all versions of Spark, which `make wheel` builds."
        )
    return path


def maven_coordinates() -> str:
    """Return the same jar's Maven coordinates, for `spark.jars.packages`."""
    return f"{MAVEN_GROUP}:interlock-spark_{spark_minor()}_{SCALA}:{__version__}"


@cache
def error_conditions() -> dict[str, Any]:
    """Read the jar's catalogue of errors: by condition, the lines of its message and `sqlState`."""
    with ZipFile(jar_path()) as jar:
        catalogue: dict[str, Any] = json.loads(jar.read("io/interlock/error-conditions.json"))
    return catalogue
