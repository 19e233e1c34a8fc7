"""Java classes of `integration/java`, compiled for the session that needs them."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_SOURCES = Path(__file__).parent / "java"
_PACKAGE = "integration"
_ONE_AT_A_TIME = threading.Lock()


def compiled(spark: SparkSession, name: str) -> Any:
    """Return `integration.<name>` of the session's JVM, compiled once per JVM by its own JDK."""
    with _ONE_AT_A_TIME:
        return _loaded(spark._jvm, name)


def _loaded(jvm: Any, name: str) -> Any:
    if not jvm.org.apache.spark.util.Utils.classIsLoadable(f"{_PACKAGE}.{name}"):
        loader = jvm.Thread.currentThread().getContextClassLoader()
        jars = [url.getPath() for url in loader.getURLs()]
        known = os.pathsep.join([*jars, jvm.System.getProperty("java.class.path")])
        folder = tempfile.mkdtemp(prefix="interlock-java-")
        _compile(jvm.System.getProperty("java.home"), known, _SOURCES / f"{name}.java", folder)
        loader.addURL(jvm.java.io.File(folder).toURI().toURL())
    return getattr(getattr(jvm, _PACKAGE), name)


def _compile(java_home: str, class_path: str, source: Path, folder: str) -> None:
    javac = [str(Path(java_home, "bin", "javac")), "-nowarn", "-proc:none"]
    subprocess.run(
        [*javac, "-J-Xmx200m", "-cp", class_path, "-d", folder, str(source)],
        check=True,
        capture_output=True,
    )
