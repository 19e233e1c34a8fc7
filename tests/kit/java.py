"""Java programs for tests, from the registry of Maven."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pyspark

from tests.kit.tree import ROOT

JARS = Path(pyspark.__file__).parent / "jars"
_FETCHED = ROOT / ".build" / "servers"


def java(*options: str) -> list[str]:
    """Return the command that Spark itself starts."""
    home = os.environ.get("JAVA_HOME")
    return [str(Path(home, "bin", "java")) if home else "java", *options]


def fetched_jar(group: str, artifact: str, version: str) -> Path:
    """Return a jar without what it depends on; the first call fetches it."""
    jar = _FETCHED / f"{artifact}-{version}.jar"
    _FETCHED.mkdir(parents=True, exist_ok=True)
    with (_FETCHED / f"{artifact}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jar.exists():
            (ivy,) = JARS.glob("ivy-*.jar")
            coordinates = ("-dependency", group, artifact, version, "-notransitive")
            target = str(_FETCHED / "[artifact]-[revision].[ext]")
            subprocess.run(
                [*java("-jar"), str(ivy), *coordinates, "-confs", "default", "-retrieve", target],
                check=True,
                stdout=subprocess.DEVNULL,
            )
    return jar
