"""Many writers of one table: what was acknowledged is there exactly once, and nothing else is.

The short form runs INSERT statements; the soak commits files that are there already, up to 3,200
times, and measures stock Delta beside it. What stock loses is printed, and it is expected to lose
only where its window between check and rename has been widened.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.follower import Follower
from integration.log_check import Found, check
from integration.stores import FILE_SYSTEM, STOCK, STOCK_WIDENED, Store
from integration.writers import Answer, acknowledged, answers, order, plan, run, streaming_copy
from tests.driver_process import DriverProcess, driver_processes
from tests.support import Table, deltalake_rows

STORES = [FILE_SYSTEM]
MOST_PROCESSES = 4
SECONDS_PER_COMMIT = 3
SLOW_RENAMES = "from integration.compiled import compiled; compiled(spark, 'SlowRenames')"


@contextmanager
def drivers_of(store: Store, folder: Path, writers: int) -> Iterator[list[DriverProcess]]:
    """Start processes for `writers` writers, and create their table in `folder`."""
    kinds = [store.kind] * min(writers, MOST_PROCESSES)
    with driver_processes(folder, *kinds, settings=store.settings) as drivers:
        if store is STOCK_WIDENED:
            for driver in drivers:
                order(driver, SLOW_RENAMES)
        created = drivers[0].run(store.create(Table(folder / "table")))
        assert created.error is None, created.message
        yield drivers


def stress(
    drivers: list[DriverProcess], folder: Path, *, writers: int, commits: int, how: str
) -> tuple[Found, list[Answer]]:
    """Let them all write, and compare."""
    table = Table(folder / "table")
    planned = plan(table, folder, writers=writers, commits=commits, how=how)
    seconds = run(drivers, planned, 60 + writers * commits * SECONDS_PER_COMMIT)
    told = answers(planned)
    found = check(table, acknowledged(told))
    slowest = max(answer.seconds for answer in told)
    print(
        f"{writers} writers x {commits}: {len(told) / seconds:.1f} commits per second, "
        f"{len(told) - len(acknowledged(told))} refused, longest wait {slowest:.1f} s; "
        f"wrong: {found}"
    )
    return found, told


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_statements_while_others_read(store: Store, tmp_path: Path) -> None:
    """Two processes with three writers each; a reader and a streaming query follow them."""
    with drivers_of(store, tmp_path, 2) as drivers:
        table = Table(tmp_path / "table")
        with Follower(table) as follower, streaming_copy(drivers[0], table, tmp_path) as copy:
            found, told = stress(drivers, tmp_path, writers=6, commits=3, how="insert")
    assert found == Found()
    assert [answer.error for answer in told] == [None] * len(told)
    assert deltalake_rows(copy) == deltalake_rows(table)
    assert follower.wrong == []
    assert follower.reads > 1


@pytest.mark.soak
@pytest.mark.parametrize("commits", [50, 200])
@pytest.mark.parametrize("writers", [2, 8, 16])
@pytest.mark.parametrize("store", STORES, ids=lambda store: store.name)
def test_commits(store: Store, writers: int, commits: int, tmp_path: Path) -> None:
    """Nothing is lost, doubled or refused, while a reader and a streaming query follow."""
    with drivers_of(store, tmp_path, writers) as drivers:
        table = Table(tmp_path / "table")
        with Follower(table) as follower, streaming_copy(drivers[0], table, tmp_path) as copy:
            found, told = stress(drivers, tmp_path, writers=writers, commits=commits, how="commit")
    assert found == Found()
    assert [answer.error for answer in told] == [None] * len(told)
    assert deltalake_rows(copy) == deltalake_rows(table)
    assert follower.wrong == []


@pytest.mark.soak
@pytest.mark.parametrize("writers", [8, 16])
@pytest.mark.parametrize("store", [STOCK, STOCK_WIDENED], ids=lambda store: store.name)
def test_stock(store: Store, writers: int, tmp_path: Path) -> None:
    """Stock Delta's own loss, as measured; certain only where its window is wider."""
    with drivers_of(store, tmp_path, writers) as drivers:
        found, told = stress(drivers, tmp_path, writers=writers, commits=50, how="commit")
    print(f"{store.name}: {len(found.lost)} of {len(acknowledged(told))} acknowledged are lost")
    if store is STOCK_WIDENED:
        assert found.lost
