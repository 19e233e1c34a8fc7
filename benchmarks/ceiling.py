"""How many versions a second a bare program makes, which only writes, syncs and links their files.

    python -m benchmarks.ceiling [--seconds 5]

Each writer is a process. To make version N it writes a file, syncs it, links it to `N.json`,
deletes the first name and syncs the folder. A writer that finds `N.json` taken reads it and tries
the next version. The log asks this of any writer; Spark, Delta and a policy do more.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.rebase import print_table

WRITERS = (1, 4, 16)
COMMIT = b'{"commitInfo":{}}\n' + b"x" * 2000 + b"\n"


def versions_made(folder: Path, writer: int, until: float) -> int:
    """Make versions until a time of `time.time()`; return how many."""
    own, log = folder / f"writer-{writer}", os.open(folder, os.O_RDONLY)
    made = version = 0
    while time.time() < until:
        with own.open("wb") as file:
            file.write(COMMIT)
            file.flush()
            os.fsync(file.fileno())
        while True:
            name = folder / f"{version:020}.json"
            version += 1
            try:
                os.link(own, name)
                break
            except FileExistsError:
                name.read_bytes()
        own.unlink()
        os.fsync(log)
        made += 1
    os.close(log)
    return made


def per_second(writers: int, seconds: float) -> float:
    """Let so many writers make versions of one log side by side."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(writers) as pool:
        start = time.time() + 0.5  # when all processes are there
        runs = [
            pool.submit(versions_made, Path(folder), writer, start + seconds)
            for writer in range(writers)
        ]
        made = sum(run.result() for run in runs)
        assert len(list(Path(folder).glob("*.json"))) == made
        return made / (time.time() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Versions a second of a bare program.")
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    rows = [[str(n), f"{per_second(n, seconds):.0f}"] for n in WRITERS]
    print_table([["writers", "versions per second"], *rows])


if __name__ == "__main__":
    main()
