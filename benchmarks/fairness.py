"""What each of several processes gets of the commits to one table.

    python -m benchmarks.fairness [--seconds 20] [--store filesystem --store "postgres 18"]

Writers commit as fast as they can; to judge themselves against one other commit takes half a
millisecond, or three. They are those of `FairnessBench` (jvm/postgres, tests), which uses the queue
and the stores without Spark: what is measured is who waits for whom.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from integration.opened import opened
from integration.stores import FILE_SYSTEM, STORES
from tests.kit.tree import ROOT

SBT = ("java", "-Xss4m", "-Dsbt.ci=true", "-Dsbt.color=false", "-jar")
PROCESSES_AND_WRITERS = ((2, 8), (4, 4))
MICROSECONDS_TO_JUDGE = (500, 3000)


def main() -> None:
    """Print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--store", action="append", choices=STORES)
    arguments = parser.parse_args()
    java = _java()
    for store in arguments.store or (FILE_SYSTEM.name, STORES[-1]):
        with tempfile.TemporaryDirectory() as folder, _settings(store, Path(folder)) as settings:
            for processes, writers in PROCESSES_AND_WRITERS:
                for micros in MICROSECONDS_TO_JUDGE:
                    numbers = map(str, (processes, writers, micros, arguments.seconds))
                    found = subprocess.run(
                        [*java, *numbers, *settings], check=True, capture_output=True, text=True
                    )
                    print(f"{store}: {found.stdout.strip()}", flush=True)


def _java() -> Sequence[str]:
    """Return the command that runs the writers, compiled by the build."""
    launcher = next((ROOT / ".build").glob("sbt-launch-*.jar"))
    exported = subprocess.run(
        [*SBT, str(launcher), "--error", "export postgres/Test/fullClasspath"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        check=True,
        capture_output=True,
        text=True,
    )
    class_path = exported.stdout.strip().splitlines()[-1]
    return ["java", "-cp", class_path, "io.interlock.coordinator.postgres.FairnessBench"]


@contextmanager
def _settings(store: str, folder: Path) -> Iterator[Sequence[str]]:
    """Start what a store needs, and yield its settings as the writers take them."""
    with opened(store, folder) as (found, _):
        keys = [key for key in found.settings if key.startswith("spark.interlock.coordinator.")]
        yield [f"{key.rsplit('.', 1)[1]}={found.settings[key]}" for key in keys]


if __name__ == "__main__":
    main()
