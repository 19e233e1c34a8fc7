"""A reader that shares no code with Spark and follows a table while others write it."""

from __future__ import annotations

import threading
from collections import Counter
from types import TracebackType

from tests.kit.support import Table, deltalake_rows, latest_version


class Follower:
    """Reads a growing table again and again, on a thread of its own, while it is entered.

    Attributes:
        reads: how many snapshots it has read
        wrong: what no snapshot may show: a row twice, or one that is gone again

    """

    def __init__(self, table: Table) -> None:
        self.reads = 0
        self.wrong: list[str] = []
        self._table = table
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read_all)

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _read_all(self) -> None:
        before: set[object] = set()
        while not self._over.wait(0.2):
            version = latest_version(self._table)
            counts = Counter(row[0] for row in deltalake_rows(self._table, version=version))
            self.wrong += [f"{i} is twice in {version}" for i in counts if counts[i] > 1]
            self.wrong += [f"{i} is gone from {version}" for i in before - counts.keys()]
            before = set(counts)
            self.reads += 1
