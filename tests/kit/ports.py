"""Servers of tests, and ports of 127.0.0.1 for them."""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

HOST = "127.0.0.1"
_START_SECONDS = 30
_STOP_SECONDS = 30


def free_port() -> int:
    """One that nothing uses, below those which the system gives to outgoing connections."""
    (port,) = free_ports(1)
    return port


def free_ports(number: int) -> tuple[int, ...]:
    """Several of that kind, each another."""
    free = filter(_is_free, random.sample(range(20000, 30000), 100))
    return tuple(islice(free, number))


@contextmanager
def running(
    command: Sequence[str],
    port: int,
    log: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Start a server whose output goes to `log`, wait until it answers at its port, and end it."""
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=cwd, env=env
        )
    try:
        _await_answer(port, process, log)
        yield
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _await_answer(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while _is_free(port):
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(log.read_text(encoding="utf-8"))
        time.sleep(0.1)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) != 0
