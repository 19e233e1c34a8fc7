"""A TCP proxy in front of a server that drops, delays or keeps requests or replies when told to."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CHUNK = 1 << 16
INTERIM_REPLY = b"HTTP/1.1 100"
PATIENCE_SECONDS = 60


class Proxy:
    """Passes bytes between clients and a port of 127.0.0.1, until it must drop some.

    Attributes:
        port: where it listens
        delay: seconds that each request waits before it is passed on
        unanswered: the connections of requests to which it stayed silent

    """

    def __init__(self, target: int) -> None:
        self.delay = 0.0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._markers: tuple[bytes, ...] = ()
        self._reply_is_lost: Callable[[], None] | None = None
        self._request_is_lost = False
        self._is_cut_behind = False
        self._answer = b""
        self._silence: Silence | None = None
        self.unanswered: list[Pair] = []
        self._refusing = False
        self._before: tuple[bytes, Callable[[], None]] | None = None
        self.has_cut = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_reply(self, *markers: bytes, then: Callable[[], None] = lambda: None) -> None:
        """Cut the next connection whose request has one of `markers`, once its reply is here.

        `then` runs before the client can notice.
        """
        self.has_cut.clear()
        self._markers, self._reply_is_lost = markers, then

    def cut_behind(self, *markers: bytes) -> None:
        """Cut the next connection that sends one of `markers`, once the server has them."""
        self.has_cut.clear()
        self._markers, self._is_cut_behind = markers, True

    def lose_request(self, *markers: bytes) -> None:
        """Cut the next connection that sends one of `markers`, and pass nothing of it on."""
        self.has_cut.clear()
        self._markers, self._request_is_lost = markers, True

    def answer(self, reply: bytes, *markers: bytes) -> None:
        """Send `reply` to the next connection that sends one of `markers`, pass nothing of it on,
        and cut it.
        """
        self.has_cut.clear()
        self._markers, self._answer = markers, reply

    @contextmanager
    def silent(self, marker: bytes, *, times: int, has_arrived: bool) -> Iterator[None]:
        """Answer nothing to so many connections that send `marker`, and leave them open.

        Args:
            marker: of the requests
            times: how many of them
            has_arrived: whether the server has them; else they can `arrive` later

        """
        self.unanswered = []
        self._silence = Silence(marker, times, has_arrived)
        try:
            yield
        finally:
            self._silence = None
            for pair in self.unanswered:
                pair.close()

    @contextmanager
    def before_each(self, marker: bytes, call: Callable[[], None]) -> Iterator[None]:
        """Call `call` before each request that has `marker` is passed on."""
        self._before = (marker, call)
        try:
            yield
        finally:
            self._before = None

    def refuse(self) -> None:
        """Close every new connection at once."""
        self._refusing = True

    def accept(self) -> None:
        self._refusing = False

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            if self._refusing:
                raise ConnectionRefusedError
            server = socket.create_connection(("127.0.0.1", self._target))
        except OSError:
            client.close()
            return
        pair = Pair(client, server)
        threading.Thread(target=self._requests, args=(pair,), daemon=True).start()
        self._replies(pair)

    def _requests(self, pair: Pair) -> None:
        with pair.closing():
            while data := pair.client.recv(CHUNK):
                time.sleep(self.delay)
                if self._before and self._before[0] in data:
                    self._before[1]()
                if self._silence and self._silence.is_due(data):
                    self._stay_silent(pair, data, has_arrived=self._silence.has_arrived)
                    return
                if any(marker in data for marker in self._markers):
                    self._markers = ()
                    if self._answer:
                        pair.client.sendall(self._answer)
                        self._answer = b""
                        self.has_cut.set()
                        return
                    if self._request_is_lost:
                        self._request_is_lost = False
                        self.has_cut.set()
                        return
                    if self._is_cut_behind:
                        self._is_cut_behind = False
                        pair.server.sendall(data)
                        self.has_cut.set()
                        return
                    pair.on_reply, self._reply_is_lost = self._reply_is_lost, None
                pair.server.sendall(data)

    def _stay_silent(self, pair: Pair, data: bytes, *, has_arrived: bool) -> None:
        """Receive the rest of a request until the client closes the connection."""
        pair.is_silent = True
        self.unanswered.append(pair)
        while data:
            pair.kept += data
            if has_arrived:
                pair.arrive(wait=False)
            data = pair.client.recv(CHUNK)

    def _replies(self, pair: Pair) -> None:
        with pair.closing():
            while data := pair.server.recv(CHUNK):
                if pair.is_silent:
                    if not data.startswith(INTERIM_REPLY):
                        pair.has_replied.set()
                    continue
                if pair.on_reply is not None:
                    pair.on_reply()
                    self.has_cut.set()
                    return
                pair.client.sendall(data)


class Silence:
    """To which requests no answer comes."""

    def __init__(self, marker: bytes, times: int, has_arrived: bool) -> None:
        self.has_arrived = has_arrived
        self._marker, self._left = marker, times

    def is_due(self, data: bytes) -> bool:
        if not self._left or self._marker not in data:
            return False
        self._left -= 1
        return True


class Pair:
    """A client's connection and the one to the server that belongs to it.

    Attributes:
        is_silent: whether the client gets no answer; then the server's end stays open
        has_replied: to a request that the client has no answer to
        kept: what the server does not have yet

    """

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client, self.server = client, server
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_reply_lost = False
        self.on_reply: Callable[[], None] | None = None
        self.is_silent = False
        self.has_replied = threading.Event()
        self.kept = b""

    def arrive(self, *, wait: bool = True) -> None:
        """Let the server have what was kept, and wait until it has replied."""
        self.server.sendall(self.kept)
        self.kept = b""
        assert not wait or self.has_replied.wait(PATIENCE_SECONDS)

    @contextmanager
    def closing(self) -> Iterator[None]:
        try:
            with suppress(OSError):
                yield
        finally:
            if not self.is_silent:
                self.close()

    def close(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
