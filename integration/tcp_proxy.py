"""A TCP proxy on 127.0.0.1 that cuts a connection where a test wants it cut."""

from __future__ import annotations

import contextlib
import enum
import socket
import threading
from collections.abc import Collection
from types import TracebackType


class Cut(enum.Enum):
    """When a connection that sends a trigger ends.

    `SENT`: as soon as the server has all that the client had sent with it.
    `ANSWERED`: when the server's answer arrives, of which the client gets nothing.
    """

    SENT = "sent"
    ANSWERED = "answered"


class TcpProxy:
    """Passes bytes between clients and one server; also after the server was restarted."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed: tuple[Collection[bytes], Cut] | None = None
        self._lock = threading.Lock()
        self.has_cut = threading.Event()
        self.port: int = self._listener.getsockname()[1]

    def cut(self, triggers: Collection[bytes], when: Cut) -> None:
        """Cut the next connection whose client sends one of `triggers`, once."""
        self.has_cut.clear()
        with self._lock:
            self._armed = (triggers, when)

    def __enter__(self) -> TcpProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            _Connection(self, client, server).start()

    def disarm(self, sent: bytes) -> Cut | None:
        """Return how the connection ends that sent these bytes, which is told only once."""
        with self._lock:
            if self._armed is None or not any(trigger in sent for trigger in self._armed[0]):
                return None
            when = self._armed[1]
            self._armed = None
            return when


class _Connection:
    def __init__(self, proxy: TcpProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._cut_at_answer = False

    def start(self) -> None:
        for work in (self._to_server, self._to_client):
            threading.Thread(target=work, daemon=True).start()

    def _to_server(self) -> None:
        try:
            while sent := self._client.recv(65536):
                when = self._proxy.disarm(sent)
                self._cut_at_answer |= when is Cut.ANSWERED
                self._server.sendall(sent)
                if when is Cut.SENT:
                    self._proxy.has_cut.set()
                    break
        except OSError:
            pass
        self._close()

    def _to_client(self) -> None:
        try:
            while answer := self._server.recv(65536):
                if self._cut_at_answer:
                    self._proxy.has_cut.set()
                    break
                self._client.sendall(answer)
        except OSError:
            pass
        self._close()

    def _close(self) -> None:
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
