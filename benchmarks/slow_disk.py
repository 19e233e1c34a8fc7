"""A disk that takes its time for each sync, as network disks do."""

from __future__ import annotations

import subprocess
from pathlib import Path

DELAY_MILLIS = 10
SOURCE = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int fsync(int file) {{
  struct timespec delay = {{0, {DELAY_MILLIS} * 1000000L}};
  nanosleep(&delay, 0);
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return sync(file);
}}
"""


def slowing(folder: Path) -> dict[str, str]:
    """Return the environment of a process in which each fsync waits before it begins.

    Needs gcc. Several threads wait at the same time.
    """
    source, library = folder / "slow_disk.c", folder / "slow_disk.so"
    source.write_text(SOURCE, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library)}
