"""Readers in other processes while blocks move amounts between two tables."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from integration.opened import opened
from integration.stores import FILE_SYSTEM, STORES, Store
from tests.kit import block_readers
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.support import Table, deltalake_rows
from tests.kit.tree import ROOT

DONE = Answer()
TOTAL = 60


def create(driver: DriverProcess, store: Store, path: Path) -> Table:
    """Make a table with the sum 30."""
    table = Table(path)
    properties = {
        **store.properties,
        "interlock.policy": "row_level",
        "interlock.exclusive": "true",
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = f"(id INT, v INT) USING delta TBLPROPERTIES ({listed})"
    assert driver.run(f"CREATE TABLE {table} {columns}") == DONE
    assert driver.run(f"INSERT INTO {table} VALUES (1, 10), (2, 20)") == DONE
    return table


@pytest.mark.parametrize(
    ("name", "rounds"),
    [
        pytest.param(FILE_SYSTEM.name, 4, marks=pytest.mark.variant),
        *(pytest.param(name, 60, marks=pytest.mark.soak) for name in (STORES[0], STORES[-1])),
    ],
)
def test_no_sum_is_torn(name: str, rounds: int, tmp_path: Path) -> None:
    """Queries of sessions with Interlock find each block whole; what stock finds is printed."""
    stop = tmp_path / "stop"
    with (
        opened(name, tmp_path / "database") as (store, _),
        driver_processes(tmp_path, "interlock", "interlock", settings=store.settings) as processes,
        ThreadPoolExecutor(1) as threads,
    ):
        writer, reader = processes
        tables = [create(writer, store, tmp_path / each) for each in "ab"]
        command = [sys.executable, "-m", block_readers.__name__, *(str(t.path) for t in tables)]
        stock = subprocess.Popen(
            [*command, str(TOTAL), str(stop)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        polling = threads.submit(block_readers.poll_by, reader, tables, TOTAL, stop)
        try:
            written = block_readers.transfers_by(writer, tables, rounds)
        finally:
            stop.touch()
        assert written == DONE
        assert polling.result() == DONE
        told, _ = stock.communicate(timeout=60)
    found = json.loads(stop.with_name("stop.interlock").read_text(encoding="utf-8"))
    print(f"{name}, {rounds} rounds: stock {told.strip()}, Interlock {found}")
    assert found["reads"] > 0
    assert found["torn"] == 0
    for table in tables:
        assert deltalake_rows(table) == ((1, 10), (2, 20))
