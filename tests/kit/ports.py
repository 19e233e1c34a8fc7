"""Ports of 127.0.0.1 for the servers of tests."""

from __future__ import annotations

import random
import socket
from itertools import islice

HOST = "127.0.0.1"


def free_port() -> int:
    """One that nothing uses, below those which the system gives to outgoing connections."""
    (port,) = free_ports(1)
    return port


def free_ports(number: int) -> tuple[int, ...]:
    """Several of that kind, each another."""
    free = filter(_is_free, random.sample(range(20000, 30000), 100))
    return tuple(islice(free, number))


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex((HOST, port)) != 0
