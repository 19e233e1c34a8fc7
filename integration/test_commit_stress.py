"""Many writers of one table: what was acknowledged is there exactly once, and nothing else is.

The short form runs INSERT statements; the soak commits files that are there already, up to 3,200
times, and measures stock Delta beside it. What stock loses is printed, and it is expected to lose
only where its window between check and rename has been widened.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from integration.follower import Follower
from integration.log_check import Found, check
from integration.opened import opened
from integration.stores import FILE_SYSTEM, STOCK, STOCK_WIDENED, STORES, Store
from integration.writers import Answer, acknowledged, answers, order, plan, run, streaming_copy
from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.eventually import eventually
from tests.kit.support import Table, commit, deltalake_rows, versions

MOST_PROCESSES = 4
SECONDS_PER_COMMIT = 3
SLOW_RENAMES = "from integration.compiled import compiled; compiled(spark, 'SlowRenames')"


def added(table: Table, of: Iterable[int]) -> list[int]:
    """List the ids that some versions have added."""
    adds = (action["add"] for v in of for action in commit(table, v) if "add" in action)
    return [json.loads(add["stats"])["minValues"]["id"] for add in adds]


@contextmanager
def drivers_of(store: Store, folder: Path, writers: int) -> Iterator[list[DriverProcess]]:
    """Start processes for `writers` writers."""
    kinds = [store.kind] * min(writers, MOST_PROCESSES)
    with driver_processes(folder, *kinds, settings=store.settings) as drivers:
        if store is STOCK_WIDENED:
            for driver in drivers:
                order(driver, SLOW_RENAMES)
        yield drivers


def create(drivers: list[DriverProcess], store: Store, path: Path) -> Table:
    created = drivers[0].run(store.create(Table(path)))
    assert created.error is None, created.message
    return Table(path)


def stress(
    drivers: list[DriverProcess], table: Table, *, writers: int, commits: int, how: str
) -> tuple[Found, list[Answer]]:
    """Let them all write, and compare."""
    folder = table.path.parent
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


def stress_beside_readers(
    drivers: list[DriverProcess], table: Table, *, writers: int, commits: int, how: str
) -> None:
    """Nothing is lost, doubled or refused, while a reader and a streaming query follow."""
    with (
        Follower(table) as follower,
        streaming_copy(drivers[0], table, table.path.parent) as copy,
    ):
        found, told = stress(drivers, table, writers=writers, commits=commits, how=how)
    assert found == Found()
    assert [answer.error for answer in told] == [None] * len(told)
    assert deltalake_rows(copy) == deltalake_rows(table)
    assert follower.wrong == []
    assert follower.reads > 0


@pytest.mark.variant
def test_statements(tmp_path: Path) -> None:
    """Two processes with two writers each, on a table of each store."""
    with (
        opened(STORES[-1], tmp_path / "database") as (bound, _),
        drivers_of(bound, tmp_path, 2) as drivers,
    ):
        for store in (FILE_SYSTEM, bound):
            folder = tmp_path / store.name
            folder.mkdir()
            table = create(drivers, store, folder / "table")
            stress_beside_readers(drivers, table, writers=4, commits=2, how="insert")


@pytest.mark.variant_cases(STORES[-1])
@pytest.mark.parametrize("name", [FILE_SYSTEM.name, STORES[-1]])
def test_a_process_is_killed_amid_a_batch(name: str, tmp_path: Path) -> None:
    """What its writers were told is there. What was only written never comes, unless ratified."""
    with (
        opened(name, tmp_path / "database") as (store, _),
        drivers_of(store, tmp_path, 2) as (killed, other),
    ):
        table = create([other], store, tmp_path / "table")
        planned = plan(table, tmp_path, writers=8, commits=1, how="commit")
        held = f"hold(spark, {[asdict(writer) for writer in planned]!r}, {str(tmp_path)!r})"
        order(killed, f"from integration.amid_batch import hold; {held}")
        eventually(lambda: acknowledged(answers(planned)))
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)
        killed.process.kill()
        assert versions(table) == [0, 1, 2]
        staged = [file.name for file in (table.path / "_delta_log").glob(".*.tmp")]
        assert sum(".crc." not in name for name in staged) == 6, staged
        inserted = other.run(f"INSERT INTO {table} VALUES (8)")
        assert inserted.error is None, inserted.message
    assert acknowledged(answers(planned)) == [0]
    found = check(table, [0, 8], unknown=range(1, 8))
    assert found == Found()
    ratified = range(8) if name == STORES[-1] else added(table, (1, 2))
    assert versions(table) == list(range(len(ratified) + 2))
    assert {row[0] for row in deltalake_rows(table)} == {*ratified, 8}


@pytest.mark.soak
@pytest.mark.parametrize("commits", [50, 200])
@pytest.mark.parametrize("writers", [2, 8, 16])
@pytest.mark.parametrize("name", STORES)
def test_commits(name: str, writers: int, commits: int, tmp_path: Path) -> None:
    with (
        opened(name, tmp_path / "database") as (store, _),
        drivers_of(store, tmp_path, writers) as drivers,
    ):
        table = create(drivers, store, tmp_path / "table")
        stress_beside_readers(drivers, table, writers=writers, commits=commits, how="commit")


@pytest.mark.soak
@pytest.mark.parametrize("writers", [8, 16])
@pytest.mark.parametrize("store", [STOCK, STOCK_WIDENED], ids=lambda store: store.name)
def test_stock(store: Store, writers: int, tmp_path: Path) -> None:
    """Stock Delta's own loss, as measured; certain only where its window is wider."""
    with drivers_of(store, tmp_path, writers) as drivers:
        table = create(drivers, store, tmp_path / "table")
        found, told = stress(drivers, table, writers=writers, commits=25, how="commit")
    print(f"{store.name}: {len(found.lost)} of {len(acknowledged(told))} acknowledged are lost")
    if store is STOCK_WIDENED:
        assert found.lost
