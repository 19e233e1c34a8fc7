"""The tables that the kill points start from, on one store or several."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.kill_cells import Cell, Fault, Point
from integration.kill_processes import Processes
from integration.kill_run import Outcome, Run
from integration.opened import opened
from integration.small_disk import small_disk
from integration.stores import FILE_SYSTEM, ON_HDFS, ON_S3, Store
from tests.postgres.database import Database


@dataclass(frozen=True)
class Lab:
    """Where cells are run.

    Attributes:
        store: of all tables
        folder: of all tables
        processes: which can be those of other labs too
        database: that the tables are bound to, None for the file system

    """

    store: Store
    folder: Path
    processes: Processes
    database: Database | None = None

    def run(self, cell: Cell) -> Outcome:
        """Run one cell on a table of its own."""
        with ExitStack() as stack:
            folder = self.folder / f"cell-{len(list(self.folder.iterdir()))}"
            folder.mkdir()
            if cell.fault is Fault.DISK_FULL:
                stack.enter_context(small_disk(folder))
            table = self.store.table(folder / "table")
            shutil.copytree(self._base(cell.point), table.path)
            self.processes.upload(table)
            return Run(self.processes, self.database, cell, table).outcome()

    def _base(self, point: Point) -> Path:
        """Make a table with two files and an old file that no version has, for cells to copy."""
        # A bound table gets one version more before the statement.
        interval = str(5 if self.database is None else 6)
        due = {"delta.checkpointInterval": interval} if point.checkpoint else {}
        more = {"interlock.policy": point.policy, **point.properties, **due}
        path = self.folder / "-".join(more.values())
        table = self.store.table(path)
        if not path.exists():
            for statement in (
                self.store.create(table, more=more),
                f"INSERT INTO {table} VALUES (1), (2)",
                f"INSERT INTO {table} VALUES (3)",
                f"INSERT INTO {table} VALUES (4)",
                f"DELETE FROM {table} WHERE id = 4",
            ):
                answer = self.processes.other.run(statement)
                assert answer.error is None, answer.message
            self.processes.download(table)
            (path / "orphan.parquet").write_bytes(b"PAR1")
            os.utime(path / "orphan.parquet", (0, 0))
        return path


@contextmanager
def labs(name: str, folder: Path) -> Iterator[dict[str, Lab]]:
    """Start all that the cells of a store need; those of simpler stores can share it."""
    with opened(name, folder / "database") as (store, database):
        processes = Processes(store, folder, database)
        try:
            made = {}
            for each, bound_to in _with_simpler(store, database):
                tables = each.folder(folder) / each.name
                tables.mkdir(parents=True, exist_ok=True)
                made[each.name] = Lab(each, tables, processes, bound_to)
            yield made
        finally:
            processes.close()


def _with_simpler(
    store: Store, database: Database | None
) -> Iterator[tuple[Store, Database | None]]:
    """Yield a store, and those that need less than it."""
    suffix = next((end for end in (ON_S3, ON_HDFS) if store.name.endswith(end)), "")
    local: list[tuple[Store, Database | None]] = [(FILE_SYSTEM, None)]
    if database is not None:
        local.append((database.store(store.name.removesuffix(suffix)), database))
    yield from local
    if store.storage is not None:
        for each, bound_to in local:
            yield each.on(store.storage, store.root, suffix), bound_to
