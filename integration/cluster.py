"""A standalone Spark cluster on this machine: a master and its workers, each a process."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

import pyspark

PATIENCE_SECONDS = 60
_HOME = Path(pyspark.__file__).parent
_PACKAGE = "org.apache.spark.deploy"
_LOCAL = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: the master's URL
        workers: the folder of each worker

    """

    master: str
    workers: tuple[Path, ...]

    @property
    def executors(self) -> list[int]:
        """Count the executors that each worker has run."""
        return [len(list(worker.glob("app-*/*"))) for worker in self.workers]


@contextmanager
def standalone_cluster(folder: Path, *, workers: int) -> Iterator[Cluster]:
    """Start a cluster with one core and 700 MB for each worker.

    Args:
        folder: where the processes work and leave their logs
        workers: how many there are

    """
    with ExitStack() as processes:
        master = processes.enter_context(
            _daemon(folder / "master", f"{_PACKAGE}.master.Master", *_LOCAL)
        )
        url = "spark://" + master.await_line("Starting Spark master at spark://")
        folders = tuple(folder / f"worker-{number}" for number in range(workers))
        started = [processes.enter_context(_worker(worker, url)) for worker in folders]
        for process in started:
            process.await_line("Successfully registered with master")
        yield Cluster(url, folders)


class _Daemon:
    """A process of Spark's whose log is read as it grows."""

    def __init__(self, folder: Path, command: tuple[str, ...]) -> None:
        folder.mkdir(parents=True)
        self._log = folder / "log"
        self._lines: SimpleQueue[str] = SimpleQueue()
        self.process = subprocess.Popen(
            [str(_HOME / "bin" / "spark-class"), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={
                **os.environ,
                "SPARK_HOME": str(_HOME),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "SPARK_LOCAL_DIRS": str(folder),
                "SPARK_DAEMON_MEMORY": "256m",
                "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
                "-Dspark.master.rest.enabled=false",
            },
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def await_line(self, text: str) -> str:
        """Wait for a line of the log that holds `text`; returns what follows it."""
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE_SECONDS)
            except Empty:
                raise AssertionError(f"no '{text}' in {self._log}") from None
            if text in line:
                return line.split(text, 1)[1].strip()

    def stop(self) -> None:
        """End it, and with it what it started."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines, self._log.open("w", encoding="utf-8") as log:
            for line in lines:
                log.write(line)
                log.flush()
                self._lines.put(line)


def _worker(folder: Path, master: str) -> AbstractContextManager[_Daemon]:
    size = ("-c", "1", "-m", "700m", "-d", str(folder))
    return _daemon(folder, f"{_PACKAGE}.worker.Worker", *_LOCAL, *size, master)


@contextmanager
def _daemon(folder: Path, *command: str) -> Iterator[_Daemon]:
    daemon = _Daemon(folder, command)
    try:
        yield daemon
    finally:
        daemon.stop()
