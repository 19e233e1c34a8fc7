"""The processes in which the kill points are run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from integration.stores import Store
from integration.writers import order
from tests.kit.driver_process import DriverProcess
from tests.kit.support import Table
from tests.postgres.database import Database

VICTIM = "victim"


class Processes:
    """A victim, who is started anew when it was killed, and a second writer."""

    def __init__(self, store: Store, folder: Path, database: Database | None) -> None:
        self._kind = store.kind
        self._folder = folder
        self._started = 0
        self._settings = dict(store.settings)
        if database is not None:
            self._settings.update(database.settings(VICTIM, proxied=True))
        self._victim: DriverProcess | None = None
        self.other = self._start("other", store.settings)

    def close(self) -> None:
        for driver in (self.other, self._victim):
            if driver is not None:
                driver.stop()

    def victim(self) -> DriverProcess:
        if self._victim is None:
            self._victim = self._start(VICTIM, self._settings)
            order(self._victim, call("prepare", str(self._pid_file)))
        return self._victim

    def signal(self, number: int) -> None:
        """Send a signal to the victim's JVM."""
        os.kill(int(self._pid_file.read_text(encoding="utf-8")), number)

    def bury(self) -> None:
        """Forget the victim, whose JVM was killed."""
        assert self._victim is not None
        self._victim.process.kill()
        self._victim.stop()
        self._victim = None

    def upload(self, table: Table) -> None:
        """Put a copy that was made here to where Spark finds the table."""
        self._copy(table, str(table.path), table.location)

    def download(self, table: Table) -> None:
        """Make the copy anew that stands here for a table which is elsewhere."""
        if self._is_elsewhere(table):
            shutil.rmtree(table.path, ignore_errors=True)
        self._copy(table, table.location, str(table.path))

    def _copy(self, table: Table, source: str, target: str) -> None:
        if self._is_elsewhere(table):
            order(self.other, call("copy", source, target))

    @staticmethod
    def _is_elsewhere(table: Table) -> bool:
        return table.location.startswith("hdfs:")

    @property
    def _pid_file(self) -> Path:
        return self._folder / "pid"

    def _start(self, name: str, settings: dict[str, str]) -> DriverProcess:
        self._started += 1
        driver = DriverProcess(self._kind, self._folder / f"{name}-{self._started}.log", settings)
        driver.await_start()
        return driver


def call(function: str, *arguments: object) -> str:
    """Return the code that calls a function of `kill_driver` in a driver process."""
    return (
        f"from integration.kill_driver import {function}; "
        f"{function}(spark, {', '.join(map(repr, arguments))})"
    )
