"""A build of a release in a clone of its own, and the comparison of two."""

from __future__ import annotations

import filecmp
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.release.signatures import artifacts, write_checksums

_PLUGINS = "tools/release/sbom.sbt"


class Build:
    """A clean clone of the commit that is checked out; `release` is what it has built."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        self.release = folder / "release"
        self.commit = _git(root, "rev-parse", "HEAD")
        _git(root, "clone", "--quiet", str(root), str(folder))
        shutil.copytree(root / ".build", folder / ".build", ignore=_all_but_the_launcher)

    def run(self, sbt: str, sparks: Sequence[str]) -> None:
        """Publish the jars into the repository, then build wheel and source distribution of them.

        Args:
            sbt: the command that starts sbt, whose -Dspark is replaced
            sparks: the minor versions of Spark

        """
        for spark in sparks:
            command = re.sub(r"-Dspark=\S+", f"-Dspark={spark}", sbt)
            self._call(*shlex.split(command), f"--addPluginSbtFile={_PLUGINS}", *_TASKS)
        for artifact in artifacts(self.release / "maven"):
            if artifact.name.endswith("-cyclonedx.json"):
                sort_components(artifact)
            write_checksums(artifact)
        self._call(sys.executable, "-m", "hatchling", "build", "-d", "release/python")

    def _call(self, *command: str) -> None:
        # Jars and wheel have fixed times of their own, which this would replace.
        environment = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
        subprocess.run(
            command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, check=True
        )


_TASKS = ("spark/copyJar", "spark/publish")


def sort_components(sbom: Path) -> None:
    """Give the components of an SBOM an order; the plugin writes them in any."""
    content = json.loads(sbom.read_text(encoding="utf-8"))
    content["components"].sort(key=lambda component: component["bom-ref"])
    sbom.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def changes(root: Path) -> str:
    """Return what `git status` says of a working tree; nothing if it is the commit's."""
    return _git(root, "status", "--porcelain")


def differences(one: Path, other: Path) -> list[str]:
    """Name the files that are in one folder only, or do not have the same bytes."""
    names = {p.relative_to(top) for top in (one, other) for p in top.rglob("*") if not p.is_dir()}
    return sorted(str(name) for name in names if not _same(one / name, other / name))


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and filecmp.cmp(one, other, shallow=False)


def _all_but_the_launcher(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.startswith("sbt-launch-")]


def _git(root: Path, *arguments: str) -> str:
    # The clone may belong to another user, as where CI checks it out.
    command = ["git", "-c", "safe.directory=*", *arguments]
    result = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    return result.stdout.strip()
