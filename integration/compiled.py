"""Java classes of `integration/java`, compiled for the sessions that need them."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.kit.tree import ROOT

_SOURCES = Path(__file__).parent / "java"
_CLASSES = ROOT / ".build" / "integration"
_PACKAGE = "integration"
_ONE_AT_A_TIME = threading.Lock()


def compiled(spark: SparkSession, name: str) -> Any:
    """Return `integration.<name>` of the session's JVM, whose JDK compiles it if it changed."""
    with _ONE_AT_A_TIME:
        return _loaded(spark._jvm, name)


def _loaded(jvm: Any, name: str) -> Any:
    if not jvm.org.apache.spark.util.Utils.classIsLoadable(f"{_PACKAGE}.{name}"):
        source, made = _SOURCES / f"{name}.java", _CLASSES / _PACKAGE / f"{name}.class"
        loader = jvm.Thread.currentThread().getContextClassLoader()
        if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
            jars = [url.getPath() for url in loader.getURLs()]
            known = os.pathsep.join([*jars, jvm.System.getProperty("java.class.path")])
            _compile(jvm.System.getProperty("java.home"), known, source)
        loader.addURL(jvm.java.io.File(str(_CLASSES)).toURI().toURL())
    return getattr(getattr(jvm, _PACKAGE), name)


def _compile(java_home: str, class_path: str, source: Path) -> None:
    """Compile beside the classes, where other processes do the same, and move what was made."""
    (_CLASSES / _PACKAGE).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_CLASSES) as folder:
        javac = [str(Path(java_home, "bin", "javac")), "-nowarn", "-proc:none", "-J-Xmx200m"]
        subprocess.run(
            [*javac, "-cp", class_path, "-d", folder, str(source)], check=True, capture_output=True
        )
        # Inner classes first: who sees the outer one has them all.
        made = sorted(Path(folder, _PACKAGE).iterdir(), key=lambda file: "$" not in file.name)
        for file in made:
            file.replace(_CLASSES / _PACKAGE / file.name)
