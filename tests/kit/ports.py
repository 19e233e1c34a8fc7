"""Ports of 127.0.0.1 for the servers of tests."""

from __future__ import annotations

import random
import socket
import subprocess
import time
from itertools import islice
from pathlib import Path

HOST = "127.0.0.1"
_START_SECONDS = 30


def free_port() -> int:
    """One that nothing uses, below those which the system gives to outgoing connections."""
    (port,) = free_ports(1)
    return port


def free_ports(number: int) -> tuple[int, ...]:
    """Several of that kind, each another."""
    free = filter(_is_free, random.sample(range(20000, 30000), 100))
    return tuple(islice(free, number))


def await_answer(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server that `process` runs, and that writes `log`, answers at its port."""
    until = time.monotonic() + _START_SECONDS
    while _is_free(port):
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(log.read_text(encoding="utf-8"))
        time.sleep(0.1)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) != 0
