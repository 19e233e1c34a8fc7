"""Ports of 127.0.0.1 for the servers of tests."""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """One that nothing uses, below those which the system gives to outgoing connections."""
    for port in random.sample(range(20000, 30000), 100):
        with socket.socket() as attempt:
            if attempt.connect_ex((HOST, port)) != 0:
                return port
    raise RuntimeError("no free port")
