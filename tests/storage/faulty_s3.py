"""A proxy that makes an S3 server slow and unreliable.

    proxy = FaultyServer(server.port)
    spark = ... .config(map=server.settings(port=proxy.port)) ...

Each request waits 30 ms. One in ten of those that make a version fails, and one in a hundred of the
others: it is cut off before the server has it, its reply is swallowed, or it is answered with an
error that S3 knows.
"""

from __future__ import annotations

import enum
import random
import re
import socket
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from tests.kit.tcp_proxy import CHUNK, INTERIM_REPLY, Pair, Proxy

DELAY_SECONDS = 0.03
_SHARE_OF_COMMITS, _SHARE_OF_OTHERS = 0.1, 0.01
_REQUEST = re.compile(rb"(?:GET|HEAD|PUT|POST|DELETE) \S+ HTTP/1\.1\r\n")
_MAKES_A_VERSION = re.compile(rb"PUT \S+/_delta_log/\d{20}\.json ")


class Fault(enum.Enum):
    """What goes wrong with a request."""

    REQUEST_LOST = "the connection is cut before the server has the request"
    REPLY_LOST = "the connection is cut instead of the reply"
    ERROR = "500 InternalError"
    SLOW_DOWN = "503 SlowDown"
    CONFLICT = "409 ConditionalRequestConflict"  # S3 sends it for conditional requests only


_REPLIES = (Fault.ERROR, Fault.SLOW_DOWN, Fault.CONFLICT)


class FaultyServer(Proxy):
    """The proxy.

    Args:
        target: the server's port
        kinds: what may go wrong; if nothing may, the server is only slow

    Attributes:
        faults: how often each has happened to a request that makes a version

    """

    def __init__(self, target: int, kinds: Collection[Fault] = tuple(Fault)) -> None:
        self.faults: Counter[Fault] = Counter()
        self._of_commits = tuple(kinds)
        self._of_others = tuple(kind for kind in kinds if kind is not Fault.CONFLICT)
        super().__init__(target)

    def _requests(self, pair: Pair) -> None:
        with pair.closing():
            while data := pair.client.recv(CHUNK):
                if _REQUEST.match(data):
                    time.sleep(DELAY_SECONDS)
                    fault = self._fault_for(data)
                    if fault is Fault.REQUEST_LOST:
                        return
                    if fault in _REPLIES:
                        _refuse(pair.client, fault)
                        return
                    pair.is_reply_lost = fault is Fault.REPLY_LOST
                pair.server.sendall(data)

    def _replies(self, pair: Pair) -> None:
        with pair.closing():
            while data := pair.server.recv(CHUNK):
                if pair.is_reply_lost and not data.startswith(INTERIM_REPLY):
                    return
                pair.client.sendall(data)

    def _fault_for(self, request: bytes) -> Fault | None:
        if not self._of_commits:
            return None
        if not _MAKES_A_VERSION.match(request):
            return random.choice(self._of_others) if random.random() < _SHARE_OF_OTHERS else None
        if random.random() >= _SHARE_OF_COMMITS:
            return None
        fault = random.choice(self._of_commits)
        self.faults[fault] += 1
        return fault


@contextmanager
def faulty(target: int, kinds: Collection[Fault] = tuple(Fault)) -> Iterator[FaultyServer]:
    """Start a proxy and close it."""
    proxy = FaultyServer(target, kinds)
    try:
        yield proxy
    finally:
        proxy.close()


def _refuse(client: socket.socket, fault: Fault) -> None:
    """Answer with an error, and wait until the client has it."""
    status, code = fault.value.split()
    body = f"<Error><Code>{code}</Code><Message>not now</Message></Error>"
    head = f"HTTP/1.1 {status} {code}\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    client.shutdown(socket.SHUT_WR)
    while client.recv(CHUNK):
        pass
