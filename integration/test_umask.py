"""Permissions of the files in a log on a disk: Hadoop's setting counts, as for stock Delta."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE

from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.support import Table

INTERVAL = "'delta.checkpointInterval' = '2'"
POLICY = "'interlock.policy' = 'row_level'"


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Start processes with it."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(table: Table) -> dict[str, dict[str, set[str]]]:
    """The permissions of what is in the log's folder, by its kind: of files and of folders."""
    log = table.path / "_delta_log"
    found: dict[str, dict[str, set[str]]] = {"file": {}, "folder": {}}
    for path in log.rglob("*"):
        if not path.name.startswith("."):  # checksums that Hadoop keeps beside files of its own
            kind = path.suffix or path.parent.name if path.is_file() else path.name
            of_kind = found["folder" if path.is_dir() else "file"].setdefault(kind, set())
            of_kind.add(oct(S_IMODE(path.stat().st_mode)))
    return found


def run(driver: DriverProcess, *statements: str) -> None:
    for statement in statements:
        end = driver.run(statement)
        assert end.error is None, end.message


def test_a_log_has_the_permissions_that_hadoop_sets(tmp_path: Path) -> None:
    """Hadoop's umask applies; the process's own would let nobody else read."""
    settings = {"spark.hadoop.fs.permissions.umask-mode": "002"}
    with (
        umask(0o077),
        driver_processes(tmp_path, "interlock", "stock", settings=settings) as drivers,
    ):
        ours, stock = (
            written(driver, Table(tmp_path / name), properties)
            for driver, name, properties in zip(
                drivers, ("ours", "stock"), (f"{INTERVAL}, {POLICY}", INTERVAL), strict=True
            )
        )
    assert set(ours["file"]) == {".json", ".crc", ".parquet", ".jsonl", "_delta_log", "running"}
    assert set(ours["folder"]) == {"_interlock", "running", "_staged_commits"}
    for found in (ours, stock):
        assert set(map(frozenset, found["file"].values())) == {frozenset({"0o664"})}, found
        assert set(map(frozenset, found["folder"].values())) == {frozenset({"0o775"})}, found


def written(driver: DriverProcess, table: Table, properties: str) -> dict[str, dict[str, set[str]]]:
    """Let one of two statements lose; what the log has while it runs, and after a checkpoint."""
    run(
        driver,
        f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ({properties})",
        f"INSERT INTO {table} VALUES (1)",
    )
    driver.hold(f"UPDATE {table} SET id = 5 WHERE id = 1")
    run(driver, f"UPDATE {table} SET id = 4 WHERE id = 1")
    running = modes(table)
    assert driver.open().error is not None
    run(driver, f"INSERT INTO {table} VALUES (2)")
    driver.stop()
    ended = modes(table)
    return {kind: running[kind] | ended[kind] for kind in ended}
