"""A disk of a few megabytes, for tests that fill it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OPTIONS = "size=24m"


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount one at a folder."""
    mount = ["mount", "-t", "tmpfs", "-o", OPTIONS, "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def may_mount(folder: Path) -> bool:
    """Tell whether this machine lets us mount one."""
    try:
        with small_disk(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def fill(path: Path) -> None:
    """Write to a file until its disk has no room."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return
