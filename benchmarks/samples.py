"""Where the time of small appends goes: samples of what the threads of a process execute.

    python -m benchmarks.samples [--writers 16] [--seconds 30]

Writers in one process append files that are there already, under a policy, as `benchmarks.commits`
measures it; samples are taken by the JVM's flight recorder, every 5 ms of some threads that run,
once a minute of commits has compiled the code. A sample belongs to the first of `PARTS` that a
frame of its stack names, from the innermost frame outwards. Threads that wait, compile code or
collect garbage are in no sample.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from interlock._small_session import JVM_OPTIONS

from benchmarks.commits import Bench
from benchmarks.rebase import print_table
from integration.stores import FILE_SYSTEM
from tests.kit.driver_process import driver_processes

PARTS = {
    "checkpoints": r"Checkpoint",
    "checksums": r"interlock\.log\.Checksums|VersionChecksum",
    "judging and rebasing": r"interlock\.(judging|rebase)|io\.interlock\.rules",
    "reading winners": r"interlock\.log\.Commit(Reader|Log)|MissedCommits",
    "writing, syncing, linking": (
        r"coordinator\.(FileSystemStore|Publisher|LocalPublisher|LocalFolder|SideBySide)"
    ),
    "the queue and the turn": r"io\.interlock\.coordinator",
    "the snapshot": r"FreshSnapshot|SnapshotManagement|delta\.Snapshot|NewestSnapshot",
    "preparing the commit": r"OptimisticTransaction|InterlockTransaction|delta\.actions",
    "what the program itself does": r"integration\.Appends",
}
RECORDING = "jdk.ExecutionSample#period=5ms,dumponexit=true,filename={file}"


def samples(file: Path, since: float) -> Iterator[list[str]]:
    """Read the stacks of a recording from a time on, as names of methods, the innermost first."""
    command = ["jfr", "print", "--json", "--stack-depth", "64", "--events", "jdk.ExecutionSample"]
    text = subprocess.run([*command, file], check=True, capture_output=True, text=True).stdout
    for event in json.loads(text)["recording"]["events"]:
        values: dict[str, Any] = event["values"]
        if time.mktime(time.strptime(values["startTime"][:19], "%Y-%m-%dT%H:%M:%S")) >= since:
            methods = [frame["method"] for frame in values["stackTrace"]["frames"]]
            yield [f"{m['type']['name']}.{m['name']}".replace("/", ".") for m in methods]


def part(stack: list[str]) -> str:
    """Name the part of a commit that a stack is in."""
    named = (name for frame in stack for name, of in PARTS.items() if re.search(of, frame))
    return next(named, "all else")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Where the time of small appends goes.")
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interlock-samples-") as folder:
        file = Path(folder) / "commits.jfr"
        recorder = f"-XX:StartFlightRecording={RECORDING.format(file=file)}"
        store = replace(
            FILE_SYSTEM,
            settings={
                **FILE_SYSTEM.settings,
                "spark.driver.extraJavaOptions": f"{JVM_OPTIONS} {recorder}",
            },
        )
        with driver_processes(Path(folder), store.kind, settings=store.settings) as drivers:
            bench = Bench(store, drivers, Path(folder), "commit")
            bench.warm_up(60)
            since = time.time()
            row = bench.throughput(arguments.writers, 1, arguments.seconds)
        found = Counter(part(stack) for stack in samples(file, since))
    print(f"{row.kept_per_second:.1f} commits per second by {arguments.writers} writers")
    total = sum(found.values())
    shares = [[name, f"{count / total * 100:.0f} %"] for name, count in found.most_common()]
    print_table([["part", f"of {total:,} samples"], *shares])


if __name__ == "__main__":
    main()
