"""The checks of `interlock doctor`, one function each."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from interlock import _artifacts
from interlock._session import CATALOG, DELTA_EXTENSION, EXTENSION, PROCEDURES
from interlock.errors import ConfigurationError, UsageError, VersionMismatchError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA = 17


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        name: the thing that was checked
        ok: whether it is right
        found: what was found
        fix: what to do if it is not
        mark: what the check is called if it is not

    """

    name: str
    ok: bool
    found: str
    fix: str
    mark: str = "FAIL"


def java() -> Check:
    """Ask the Java that Spark would start for its version."""
    fix = f"install JDK {_OLDEST_JAVA} or newer, or set JAVA_HOME to one"
    program = _java_program()
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
    return Check("Java", float(version[1]) >= _OLDEST_JAVA, f"{version[1]} at {program}", fix)


def _java_program() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java")


def spark() -> Check:
    """Look for PySpark of the right version."""
    fix = f"pip install 'pyspark=={_artifacts.SPARK_MINORS[-1]}.*'"
    try:
        import pyspark
    except ImportError:
        return Check("Spark", False, "PySpark is not installed", fix)
    minor = ".".join(pyspark.__version__.split(".")[:2])
    return Check("Spark", minor in _artifacts.SPARK_MINORS, f"PySpark {pyspark.__version__}", fix)


def jar() -> Check:
    """Check that the wheel has a complete jar of its own version."""
    fix = f"pip install --force-reinstall spark-interlock=={_artifacts.__version__}"
    try:
        with ZipFile(_artifacts.jar_path()) as opened:
            text = opened.read("io/interlock/version.properties").decode()
    except VersionMismatchError:
        return Check("Jar", False, "none for this PySpark", spark().fix)
    except (ConfigurationError, BadZipFile, KeyError) as error:
        return Check("Jar", False, str(error), fix)
    version = next(line for line in text.splitlines() if line.startswith("version="))
    found = version.removeprefix("version=")
    fits = found == _artifacts.__version__
    return Check("Jar", fits, f"{found} in wheel {_artifacts.__version__}", fix)


def delta_jars(jars: Sequence[str]) -> Check:
    """Compare what Interlock uses of Delta with jars of Delta, without a session."""
    from pyspark.find_spark_home import _find_spark_home

    name = f"Delta in {', '.join(Path(jar).name for jar in jars)}"
    for jar in jars:
        if not zipfile.is_zipfile(jar):
            found = "no jar" if os.path.exists(jar) else "not there"
            return Check(name, False, f"{jar} is {found}", "name jars on this machine's disk")
    spark = os.path.join(_find_spark_home(), "jars", "*")
    class_path = os.pathsep.join([*jars, str(_artifacts.jar_path()), spark])
    asked = subprocess.run(
        [_java_program() or "java", "-cp", class_path, "io.interlock.links.CheckLinks"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        return Check(name, False, asked.stderr.strip(), "see what java says, and run it again")
    missing = asked.stdout.splitlines()
    if not missing:
        return Check(name, True, "has all that Interlock uses", fix="")
    found = "\n       ".join([f"{len(missing)} things are missing", *missing])
    return Check(name, False, found, f"use {_artifacts.delta_coordinates()}")


def no_session(error: Exception) -> Check:
    """Report a session that did not start."""
    fix = "correct the settings that it names (docs/ways-in.md)"
    return Check("Session", False, f"does not start: {str(error).strip()}", fix)


def of_session(session: SparkSession, folder: Path | None) -> Iterator[Check]:
    """Make the checks that need a session; Delta and the disk only if its JVM runs here."""
    yield extension(session)
    for name, key, value in (
        ("Catalog", "spark.sql.catalog.spark_catalog", CATALOG),
        ("Procedures", "spark.sql.catalog.interlock", PROCEDURES),
    ):
        found = session.conf.get(key, None) or "none"
        yield Check(name, found == value, found, f"set {key} to {value}")
    jvm: Any = getattr(session, "_jvm", None)
    if jvm is not None:
        yield _delta(jvm.io.delta.package.VERSION())
        if folder is not None:
            yield _links(jvm, folder.resolve())


_SET_UP = "set up Spark for this storage, and name a folder where tables may be written"
_OTHER_STORE = (
    "set 'interlock.coordinator' of tables there to a Postgres coordinator (docs/coordinator.md), "
    "or move to a store that obeys If-None-Match when requests come at once"
)


def store(session: SparkSession, url: str) -> Check:
    """Let writers race for files in a folder of any file system; the result is kept there."""
    name = f"Races in {url}"
    jvm: Any = getattr(session, "_jvm", None)
    if jvm is None:
        found = "not run over Spark Connect"
        return Check(name, False, found, "run it without spark.remote", mark="LOOK")
    classic: Any = session
    try:
        passed, found, lost = jvm.io.interlock.spark.Maintenance.storeTrial(
            classic._jsparkSession, url
        )
    except Exception as error:  # of the file system, as without credentials
        return Check(name, False, told_by(error), _SET_UP)
    fix = _SET_UP if found.startswith("Hadoop cannot open it") else _OTHER_STORE
    return Check(name, passed, f"{found}{f'; not kept: {lost}' if lost else ''}", fix)


def told_by(error: Exception) -> str:
    """Return what an error says, without the stack of the JVM."""
    raised = getattr(error, "java_exception", None)
    text = str(error if raised is None else raised.toString()).strip()
    return re.split(r"\n\tat |\n\nJVM stacktrace:", text, maxsplit=1)[0]


def kept_trial(session: SparkSession, location: str) -> Check | None:
    """Tell what `store` has found, for a table whose storage has no proof but that."""
    jvm: Any = getattr(session, "_jvm", None)
    if jvm is None:
        return None
    classic: Any = session
    maintenance = jvm.io.interlock.spark.Maintenance
    if not maintenance.needsTrial(classic._jsparkSession, location):
        return None
    kept = maintenance.keptTrial(classic._jsparkSession, location)
    if kept is None:
        return Check("Races", False, "never run", f"interlock doctor {location}", mark="LOOK")
    passed, found = kept
    return Check("Races", passed, found, _OTHER_STORE)


def extension(session: SparkSession) -> Check:
    """Try a statement that only Interlock knows, and check the order of the extensions."""
    fix = f"set spark.sql.extensions to {DELTA_EXTENSION},{EXTENSION}, in this order"
    listed = (session.conf.get("spark.sql.extensions", None) or "").split(",")
    if EXTENSION in listed and DELTA_EXTENSION not in listed[: listed.index(EXTENSION)]:
        return Check("Extension", False, "stands before Delta's", fix)
    try:
        session.sql("ALTER TABLE t COMPACT")
    except UsageError:
        return Check("Extension", True, "answers", fix)
    except Exception as error:  # Spark's, which knows no such statement
        found = str(error).strip().partition("\n")[0]
        return Check("Extension", False, f"does not answer: {found}", fix)
    return Check("Extension", False, "takes what is no statement", fix)


def _delta(found: str) -> Check:
    """Tell Delta's version: a session that has started has a Delta with all that is needed."""
    tested = _artifacts.DELTA_VERSION
    note = "" if found == tested else f", which has what Interlock uses; tested with {tested}"
    return Check("Delta", True, found + note, fix="")


def _links(jvm: Any, folder: Path) -> Check:
    name = f"Hard links in {folder}"
    if not folder.is_dir():
        return Check(name, False, "there is no such folder", "name the folder of the tables")
    try:
        fault = jvm.io.interlock.spark.Maintenance.linkFault(str(folder))
    except Exception as error:  # the disk's, as where nothing may be written
        fault = str(error).strip()
    fix = "keep tables on a file system with hard links, such as ext4 or XFS"
    return Check(name, fault is None, fault or "each name is given once", fix)
