"""A Spark driver in a process of its own, which runs the statements that the test sends.

The test writes one JSON line per order and reads one per answer, so the two can interleave their
work in any order without a clock: `hold` answers when its statement is stopped before its commit,
`let_go` lets it go on, and `end` answers when it has ended.

    python -m tests.kit.driver_process interlock|stock SETTINGS_AS_JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from tests.kit.tree import ROOT

PATIENCE_SECONDS = 900


@dataclass(frozen=True)
class Answer:
    """How a statement ended in the other process.

    Attributes:
        error: the name of the class of what it raised, None if it succeeded
        rule: the policy's cell that decided, if the error is a conflict
        winner_version: the version it lost against
        message: what the error says

    """

    error: str | None = None
    rule: str | None = None
    winner_version: int | None = None
    message: str = ""


class DriverProcess:
    """The test's side of the connection."""

    def __init__(
        self,
        kind: str,
        log: Path,
        settings: Mapping[str, str],
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._log = log.open("w", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.kit.driver_process", kind, json.dumps(dict(settings))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=ROOT,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environment},
            text=True,
        )

    def await_start(self) -> None:
        """Wait until its session is there."""
        self._answer("session")

    def run(self, code: str) -> Answer:
        """Run a statement of SQL, or of Python where it begins with `spark.`, to its end."""
        return Answer(**self._ask("run", code))

    def hold(self, code: str) -> None:
        """Start a statement and wait until it is stopped before its commit."""
        assert self._ask("hold", code) == {}, f"{code} never came to its commit"

    def open(self) -> Answer:
        """Let the held statement go on, to its end."""
        self.let_go()
        return self.end()

    def let_go(self) -> None:
        """Let the held statement go on."""
        self._ask("let_go", "")

    def interrupt(self) -> None:
        """Interrupt the thread of the statement that was held."""
        self._ask("interrupt", "")

    def end(self) -> Answer:
        """Wait for the end of the statement that was held."""
        return Answer(**self._ask("end", ""))

    def stop(self) -> None:
        """End the process."""
        stdin, stdout = self._pipes()
        stdin.close()
        try:
            self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        stdout.close()
        self._log.close()

    def _ask(self, order: str, code: str) -> dict[str, Any]:
        stdin, _ = self._pipes()
        stdin.write(json.dumps([order, code]) + "\n")
        stdin.flush()
        return self._answer(f"{order} {code}")

    def _answer(self, order: str) -> dict[str, Any]:
        giving_up = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        giving_up.start()
        try:
            line = self._pipes()[1].readline()
        finally:
            giving_up.cancel()
        assert line, f"no answer to {order}; see {self._log.name}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        return stdin, stdout


@contextmanager
def driver_processes(
    folder: Path,
    *kinds: str,
    settings: Mapping[str, str] = MappingProxyType({}),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[list[DriverProcess]]:
    """Start processes side by side, and end them even after a failure.

    Args:
        folder: where each leaves what Spark logs
        kinds: "interlock" or "stock", one for each process
        settings: of their sessions, where they differ from the tests'
        environment: of the processes, where it differs from this one's

    """
    processes = [
        DriverProcess(kind, folder / f"{n}-{kind}.log", settings, environment)
        for n, kind in enumerate(kinds)
    ]
    try:
        for process in processes:
            process.await_start()
        yield processes
    finally:
        for process in processes:
            process.stop()


def serve(kind: str, settings: dict[str, Any], orders: IO[str], answers: IO[str]) -> None:
    """Follow the orders until there are no more."""
    spark = _session(kind, settings)
    held: _Held | None = None
    _write(answers, {})
    for line in orders:
        order, code = json.loads(line)
        if order == "run":
            _write(answers, _run(spark, code))
        elif order == "hold":
            held = _Held(spark, code)
            _write(answers, held.await_arrival())
        else:
            assert held is not None
            orders_of_held = {"let_go": held.let_go, "interrupt": held.interrupt, "end": held.end}
            _write(answers, orders_of_held[order]())
    spark.stop()


class _Held:
    """A statement on a thread of its own, behind a gate."""

    def __init__(self, spark: Any, code: str) -> None:
        self._gate = spark._jvm.io.interlock.spark.PhaseGate()
        self._end: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._work, args=(spark, code))
        self._thread.start()

    def await_arrival(self) -> dict[str, Any]:
        while not self._gate.awaitArrival(100):
            if not self._thread.is_alive():
                return self._end
        return {}

    def let_go(self) -> dict[str, Any]:
        self._gate.open()
        return {}

    def interrupt(self) -> dict[str, Any]:
        self._java_thread.interrupt()
        return {}

    def end(self) -> dict[str, Any]:
        self._thread.join()
        return self._end

    def _work(self, spark: Any, code: str) -> None:
        self._java_thread = spark._jvm.java.lang.Thread.currentThread()
        self._gate.install()
        try:
            self._end = _run(spark, code)
        finally:
            self._gate.uninstall()


def _session(kind: str, settings: dict[str, Any]) -> Any:
    import interlock
    from interlock._small_session import SMALL_SESSION
    from pyspark.sql import SparkSession

    small = {"spark.master": "local[1]", "spark.driver.memory": "800m"}
    builder = SparkSession.builder.config(map={**SMALL_SESSION, **small, **settings})
    if kind == "stock":
        from tests.kit.sessions import stock

        # The jar, of which nothing is registered, has the gate that orders commits.
        jars = [str(interlock.jar_path()), *filter(None, [settings.get("spark.jars")])]
        builder = stock(builder.config("spark.jars", ",".join(jars)))
    else:
        builder = interlock.configure(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _run(spark: Any, code: str) -> dict[str, Any]:
    try:
        if code.startswith("spark."):
            exec(code, {"spark": spark})
        else:
            spark.sql(code)
    except Exception as error:
        return {
            "error": type(error).__name__,
            "rule": getattr(error, "rule", None),
            "winner_version": getattr(error, "winner_version", None),
            "message": str(error),
        }
    return {"error": None}


def _write(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


if __name__ == "__main__":
    # Other output must not come between the answers.
    real_stdout = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.argv[1], json.loads(sys.argv[2]), sys.stdin, real_stdout)
