"""Java programs for tests, from the registry of Maven."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pyspark

from tests.kit.tree import ROOT

JARS = Path(pyspark.__file__).parent / "jars"
_FETCHED = ROOT / ".build" / "servers"


def hadoop_version() -> str:
    """Return the version of the Hadoop that PySpark carries."""
    (jar,) = JARS.glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def java(*options: str) -> list[str]:
    """Return the command that Spark itself starts."""
    home = os.environ.get("JAVA_HOME")
    return [str(Path(home, "bin", "java")) if home else "java", *options]


def fetched(modules: Iterable[str]) -> list[Path]:
    """Return the jars of `group:artifact:version`, without what they depend on.

    A classifier may follow the version.

    Jars that were never asked for are fetched, by the Ivy that PySpark carries.
    """
    named = {_jar(*module.split(":")): module for module in modules}
    _FETCHED.mkdir(parents=True, exist_ok=True)
    with (_FETCHED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [module for jar, module in named.items() if not jar.exists()]
        if missing:
            file = _FETCHED / "ivy.xml"
            file.write_text(_ivy(missing), encoding="utf-8")
            (ivy,) = JARS.glob("ivy-*.jar")
            options = ["-ivy", str(file), "-confs", "default", "-warn"]
            target = str(_FETCHED / "[artifact]-[revision](-[classifier]).[ext]")
            command = [*java("-jar"), str(ivy), *options, "-retrieve", target]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return list(named)


def _jar(_: str, artifact: str, version: str, classifier: str = "") -> Path:
    return _FETCHED / f"{'-'.join(filter(None, (artifact, version, classifier)))}.jar"


def _ivy(modules: Iterable[str]) -> str:
    lines = (_dependency(*module.split(":")) for module in modules)
    head = (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="io.interlock" module="servers"/>'
    )
    return "\n".join([head, "<dependencies>", *lines, "</dependencies>", "</ivy-module>"])


def _dependency(group: str, artifact: str, version: str, classifier: str = "") -> str:
    named = f'<dependency org="{group}" name="{artifact}" rev="{version}" conf="default->master"'
    if not classifier:
        return f"{named}/>"
    of_kind = f'<artifact name="{artifact}" type="jar" m:classifier="{classifier}"/>'
    return f"{named}>{of_kind}</dependency>"
