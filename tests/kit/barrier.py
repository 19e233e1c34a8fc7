"""A barrier at which a running query waits while it reads its rows.

`PhaseGate` stops the first transaction of a thread that the test has started. For a thread of Spark
(a micro-batch), or for a later transaction of a thread, the query itself waits: a column passes
through a function that asks the test over a local socket whether it may go on. Delta starts a
statement's transaction before it runs the query, so commits made meanwhile are winners.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

WAIT_SECONDS = 120
POLL_SECONDS = 0.05


class Barrier:
    """The barrier at which rows wait until the test opens it."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._arrived = threading.Event()
        self._opened = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def passing(self, at: int) -> Callable[[int], int]:
        """Return a function that returns its argument; for `at` it first waits at the barrier."""
        port: int = self._server.getsockname()[1]
        patience = WAIT_SECONDS

        def wait(value: int) -> int:  # runs in Spark's Python workers, which lack this module
            import socket

            if value == at:
                with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
                    connection.recv(1)
            return value

        return wait

    def await_arrival(self, *, of: Future[Any] | None = None) -> None:
        """Wait until a row is at the barrier; if the query `of` ends first, none will come."""
        give_up = time.monotonic() + WAIT_SECONDS
        while not self._arrived.wait(POLL_SECONDS):
            assert of is None or not of.done(), of.exception() or of.result()
            assert time.monotonic() < give_up, "no row came to the barrier"

    def open(self) -> None:
        """Let all rows pass, those that come later too."""
        self._opened.set()

    def close(self) -> None:
        self.open()
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._let_pass, args=(connection,), daemon=True).start()

    def _let_pass(self, connection: socket.socket) -> None:
        self._arrived.set()
        self._opened.wait(WAIT_SECONDS)
        with connection:
            connection.sendall(b".")


@contextmanager
def barrier() -> Iterator[Barrier]:
    """Make a barrier that is opened and removed at the end, even after a failure."""
    made = Barrier()
    try:
        yield made
    finally:
        made.close()
