"""A copy of the tree with an environment of its own, in which sources and jars can be exchanged."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.mutants.mutations import Mutation


def files(root: Path) -> list[str]:
    """Name the files of a working tree that git knows, or would."""
    listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return [name for name in listed.split("\0") if name and (root / name).is_file()]


def turn(root: Path) -> int:
    """Return the id of the commit that is checked out, as a number."""
    return int(_git(root, "rev-parse", "HEAD"), 16)


def _git(root: Path, *arguments: str) -> str:
    # The clone may belong to another user, as where CI checks it out.
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


class Copy:
    """The copy of a tree; `folder` is where it is."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        for name in files(root):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target)
        for launcher in root.glob(".build/sbt-launch-*.jar"):
            target = folder / ".build" / launcher.name
            target.parent.mkdir(exist_ok=True)
            shutil.copy(launcher, target)
        self.python = folder / ".venv" / "bin" / "python"
        self._package: Path | None = None

    def make_environment(self) -> None:
        """Make `.venv`: a package `interlock` of its own before all packages of this one."""
        environment = self.folder / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
        others = sysconfig.get_path("purelib")
        own.joinpath("others.pth").write_text(
            f"import site; site.addsitedir({others!r})\n", encoding="utf-8"
        )
        self._package = own / "interlock"
        shutil.copytree(
            self.folder / "python" / "interlock",
            self._package,
            ignore=shutil.ignore_patterns("jars", "__pycache__"),
        )

    def install_jar(self) -> None:
        """Put the jar that was built last in the place of the one that is installed."""
        assert self._package is not None
        (jar,) = self.folder.glob("python/interlock/jars/*.jar")
        shutil.rmtree(self._package / "jars", ignore_errors=True)
        (self._package / "jars").mkdir()
        jar.rename(self._package / "jars" / jar.name)

    @contextmanager
    def mutated(self, mutation: Mutation, file: Path) -> Iterator[None]:
        """Have a mutation in a source of the copy."""
        text = file.read_text(encoding="utf-8")
        file.write_text(mutation.mutated(text), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(text, encoding="utf-8")
