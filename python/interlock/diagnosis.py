"""What `interlock doctor` checks, one function each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from zipfile import BadZipFile, ZipFile

from interlock import artifacts
from interlock.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA = 17


@dataclass(frozen=True)
class Check:
    """What one check found.

    Attributes:
        name: what was looked at
        ok: whether it is as it must be
        found: what is there
        fix: what to do about it, empty where nothing is

    """

    name: str
    ok: bool
    found: str
    fix: str = ""


def java() -> Check:
    """Ask the Java that Spark would start for its version."""
    fix = f"install JDK {_OLDEST_JAVA} or newer, or set JAVA_HOME to one."
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if program is None or not Path(program).is_file():
        return Check("Java", False, f"none at {program}" if program else "none on the PATH", fix)
    asked = subprocess.run(
        [program, "-XshowSettings:properties", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    version = re.search(r"java\.specification\.version = ([\d.]+)", asked.stderr)
    if version is None:
        return Check("Java", False, f"{program} does not tell its version", fix)
    new_enough = float(version[1]) >= _OLDEST_JAVA
    return Check("Java", new_enough, f"{version[1]} ({program})", "" if new_enough else fix)


def spark() -> Check:
    """Look for PySpark of the right version."""
    fix = f"pip install 'pyspark=={artifacts.SPARK_MINOR}.*'"
    try:
        import pyspark
    except ImportError:
        return Check("Spark", False, "PySpark is not installed", fix)
    found: str = pyspark.__version__
    fits = found.startswith(f"{artifacts.SPARK_MINOR}.")
    return Check("Spark", fits, f"PySpark {found}", "" if fits else fix)


def jar() -> Check:
    """Look whether the wheel brings a whole jar of its own version."""
    fix = f"pip install --force-reinstall spark-interlock=={artifacts.__version__}"
    try:
        path = artifacts.jar_path()
        with ZipFile(path) as opened:
            text = opened.read("io/interlock/version.properties").decode()
    except (ConfigurationError, BadZipFile, KeyError) as error:
        return Check("Jar", False, str(error), fix)
    fits = f"version={artifacts.__version__}" in text.splitlines()
    found = f"{path.name} in wheel {artifacts.__version__}"
    return Check("Jar", fits, found if fits else f"{found}, which says {text.strip()}", fix * (not fits))


def no_session(error: Exception) -> Check:
    """Report a session that did not start."""
    return Check(
        "Session",
        False,
        f"did not start: {str(error).strip()}",
        "correct the settings that it names (docs/ways-in.md); without network, give Delta's jars "
        "by --conf spark.jars=...",
    )


def of_session(session: SparkSession, folder: Path) -> Iterator[Check]:
    """Check what only a session can tell."""
    yield _delta(session)
    yield _loaded(session)
    yield _procedures(session)
    yield _links(session, folder)
