"""The processes in which the kill points are run, and the tables that they start from."""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

from integration.database import Database
from integration.kill_cells import Cell, Fault, Point
from integration.kill_run import Outcome, Run, call
from integration.small_disk import small_disk
from integration.stores import Store
from integration.writers import order
from tests.driver_process import DriverProcess
from tests.support import Table

VICTIM = "victim"


class Lab:
    """A victim, who is started anew when it was killed, and a second writer.

    Args:
        store: of all tables
        folder: for everything
        database: that `store` is bound to, None for the file system

    """

    def __init__(self, store: Store, folder: Path, database: Database | None = None) -> None:
        self._store = store
        self._folder = folder
        self.database = database
        self._made = 0
        self._bases: dict[str, Path] = {}
        self._victim: DriverProcess | None = None
        self.other = self._started("other", store.settings)

    def close(self) -> None:
        for driver in (self.other, self._victim):
            if driver is not None:
                driver.stop()

    def run(self, cell: Cell) -> Outcome:
        """Run one cell on a table of its own."""
        self._made += 1
        with ExitStack() as stack:
            folder = self._folder / f"cell-{self._made}"
            folder.mkdir()
            if cell.fault is Fault.DISK_FULL:
                stack.enter_context(small_disk(folder))
            table = Table(folder / "table")
            shutil.copytree(self._base(cell.point), table.path)
            return Run(self, cell, table).outcome()

    def victim(self) -> DriverProcess:
        if self._victim is None:
            settings = dict(self._store.settings)
            if self.database is not None:
                settings.update(self.database.settings(VICTIM, proxied=True))
            self._victim = self._started(VICTIM, settings)
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

    @property
    def _pid_file(self) -> Path:
        return self._folder / "pid"

    def _started(self, name: str, settings: dict[str, str]) -> DriverProcess:
        log = self._folder / f"{name}-{self._made}.log"
        driver = DriverProcess(self._store.kind, log, settings)
        driver.await_start()
        return driver

    def _base(self, point: Point) -> Path:
        """Make a table with two files and an old file that no version has, for cells to copy."""
        # A bound table gets one version more before the statement.
        interval = str(5 if self.database is None else 6)
        due = {"delta.checkpointInterval": interval} if point.checkpoint else {}
        more = {"interlock.policy": point.policy, **point.properties, **due}
        key = "-".join(more.values())
        if key not in self._bases:
            path = self._folder / key
            for statement in (
                self._store.create(Table(path), more=more),
                f"INSERT INTO {Table(path)} VALUES (1), (2)",
                f"INSERT INTO {Table(path)} VALUES (3)",
                f"INSERT INTO {Table(path)} VALUES (4)",
                f"DELETE FROM {Table(path)} WHERE id = 4",
            ):
                answer = self.other.run(statement)
                assert answer.error is None, answer.message
            (path / "orphan.parquet").write_bytes(b"PAR1")
            os.utime(path / "orphan.parquet", (0, 0))
            self._bases[key] = path
        return self._bases[key]
