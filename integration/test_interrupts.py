"""Ctrl-C in Python while a statement's Spark job runs: it is cancelled and commits nothing."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from interlock._conversion import interrupts
from pyspark import SparkContext
from pyspark.sql.types import StringType

from integration.compiled import compiled
from integration.interrupted import FIFOS, KILLED_SOON, STATEMENT, STREAM, go, stay
from tests.kit.sessions import classic_session, connect_server
from tests.kit.support import Table, deltalake_rows, latest_version
from tests.kit.tree import ROOT

PATIENCE_SECONDS = 60
NAMES = ("spark.sql", "spark.sql in a notebook", "DataFrame.write", "interlock.retry")


@pytest.mark.variant_cases("connect")
@pytest.mark.parametrize("client", ["classic", "connect"])
def test_an_interrupted_statement_commits_nothing_and_streams_go_on(
    tmp_path: Path, client: str
) -> None:
    for name in FIFOS:
        os.mkfifo(tmp_path / name)
        os.mkfifo(tmp_path / go(name))
    with ExitStack() as closing:
        arguments = [str(tmp_path)]
        if client == "connect":
            server = connect_server(tmp_path, **{"spark.pyspark.python": sys.executable})
            arguments.append(closing.enter_context(server))
        driver = closing.enter_context(_driver(*arguments))
        closing.callback(driver.kill)
        assert driver.stdin is not None
        assert driver.stdout is not None
        stream = os.open(tmp_path / STREAM, os.O_RDONLY | os.O_NONBLOCK)
        assert _read(stream) == b"there"
        for name in NAMES:
            driver.stdin.write("go on\n")
            driver.stdin.flush()
            job = os.open(tmp_path / STATEMENT, os.O_RDONLY | os.O_NONBLOCK)
            assert _read(job) == b"there"
            driver.send_signal(signal.SIGINT)
            assert json.loads(driver.stdout.readline()) == [name, "interrupted"]
            assert _read(job) == b"", f"the job of {name} went on"
            os.close(job)
        assert _read(stream, 0) is None, "the stream's job was cancelled"
        (tmp_path / go(STREAM)).write_text("go on")
        assert _read(stream) == b""
        driver.communicate("go on\n", timeout=PATIENCE_SECONDS)
        assert driver.returncode == 0
    table = Table(tmp_path / "table")
    assert latest_version(table) == 1
    assert deltalake_rows(table) == ((1, "last"),)


def test_a_job_that_is_not_listed_yet_is_cancelled(tmp_path: Path) -> None:
    for name in (STATEMENT, go(STATEMENT)):
        os.mkfifo(tmp_path / name)
    with classic_session(**KILLED_SOON) as spark, ThreadPoolExecutor() as threads:
        spark.udf.register("stay", stay(tmp_path), StringType())
        held = compiled(spark, "HeldStatus")(spark.sparkContext._jsc.sc())
        spark.range(1).collect()
        query = spark.range(1).selectExpr(f"stay('{STATEMENT}')")
        statement = threads.submit(query.collect)
        job = os.open(tmp_path / STATEMENT, os.O_RDONLY | os.O_NONBLOCK)
        assert _read(job) == b"there"
        cancelling = threads.submit(interrupts._cancel_jobs, spark)
        wait([cancelling], timeout=1)  # in which it would list the jobs too early
        held.open()
        try:
            assert _read(job) == b"", "the job went on"
        finally:
            going = os.open(tmp_path / go(STATEMENT), os.O_RDWR)  # waits for no reader
            os.write(going, b"go on")
            os.close(going)
        os.close(job)
        cancelling.result()
        assert "cancelled" in str(statement.exception())


def test_pysparks_handler_goes_on_if_it_cannot_cancel() -> None:
    """Before PySpark 4.2 this error would be raised in place of KeyboardInterrupt."""
    interrupts.install()
    stopped: Any = SimpleNamespace(_jsc=None)

    def signal_handler() -> None:
        SparkContext.cancelAllJobs(stopped)

    signal_handler()
    with pytest.raises(AttributeError):
        SparkContext.cancelAllJobs(stopped)


@pytest.mark.soak
def test_a_job_that_a_stream_starts_meanwhile_is_spared() -> None:
    """What Ctrl-C does is repeated while three streams keep starting jobs; they all go on."""
    with classic_session() as spark:
        rates = [spark.readStream.format("rate").load() for _ in range(3)]
        streams = [rate.writeStream.format("noop").start() for rate in rates]
        for _ in range(500):
            interrupts._cancel_jobs(spark)
        assert [stream.isActive for stream in streams] == [True] * 3
        for stream in streams:
            stream.stop()


def _driver(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "integration.interrupted", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _read(job: int, patience: float = PATIENCE_SECONDS) -> bytes | None:
    """Read what a job's worker says; nothing once it has ended, None if it waits on."""
    readable, _, _ = select.select([job], [], [], patience)
    return os.read(job, 10) if readable else None
