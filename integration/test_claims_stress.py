"""Many statements that want the same row and run again under claims: each of them wins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.writers import Writer, acknowledged, answers, plan, run
from tests.kit.driver_process import DriverProcess, driver_processes
from tests.kit.support import Table, deltalake_rows, versions

TWICE = {"spark.interlock.rerun.maxRuns": "2"}
CREATE = (
    "CREATE TABLE {t} USING delta TBLPROPERTIES ('interlock.policy' = 'row_level', "
    "'delta.enableDeletionVectors' = '{vectors}') AS SELECT 0 AS n"
)
PATIENCE = 300


@contextmanager
def counters(
    folder: Path, *, processes: int, vectors: str
) -> Iterator[tuple[Table, list[DriverProcess]]]:
    """Start processes whose statements may run twice, and make a table of one row."""
    table = Table(folder / "table")
    with driver_processes(folder, *["interlock"] * processes, settings=TWICE) as drivers:
        created = drivers[0].run(CREATE.format(t=table, vectors=vectors))
        assert created.error is None, created.message
        yield table, drivers


def counted(table: Table) -> int:
    """Return the number of statements that the table has, which each made one version."""
    found = versions(table)
    count = len(found) - 1
    assert found == list(range(1 + count))
    assert deltalake_rows(table) == ((count,),)
    return count


def assert_all_won(planned: list[Writer], seconds: float) -> int:
    """A statement that loses twice fails, as does one that waits for nobody to the end."""
    told = answers(planned)
    slowest = max(answer.seconds for answer in told)
    print(f"{len(told) / seconds:.2f} statements per second, the slowest in {slowest:.1f} s")
    assert [answer.error for answer in told] == [None] * sum(w.commits for w in planned)
    return len(told)


def stress(folder: Path, *, processes: int, writers: int, statements: int, vectors: str) -> None:
    with counters(folder, processes=processes, vectors=vectors) as (table, drivers):
        planned = plan(table, folder, writers=writers, commits=statements, how="count")
        seconds = run(drivers, planned, PATIENCE)
    assert counted(table) == assert_all_won(planned, seconds)
    assert not list((table.path / "_delta_log/_interlock/claims").glob("*"))


@pytest.mark.variant
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_two_processes(tmp_path: Path, vectors: str) -> None:
    stress(tmp_path, processes=2, writers=4, statements=3, vectors=vectors)


@pytest.mark.soak
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_four_processes(tmp_path: Path, vectors: str) -> None:
    stress(tmp_path, processes=4, writers=8, statements=25, vectors=vectors)


@pytest.mark.soak
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_process_that_is_killed(tmp_path: Path, vectors: str) -> None:
    """The claims of its statements end, and those of the others win."""
    with (
        counters(tmp_path, processes=3, vectors=vectors) as (table, [victim, *others]),
        ThreadPoolExecutor() as beside,
    ):
        planned = plan(table, tmp_path, writers=6, commits=15, how="count")
        dying, living = planned[:2], planned[2:]
        killed = beside.submit(run, [victim], dying, PATIENCE)
        seconds = beside.submit(run, others, living, PATIENCE)
        while not answers(dying):
            time.sleep(0.05)
        victim.process.kill()
        with pytest.raises(AssertionError, match="a driver died"):
            killed.result()
        all_ran = seconds.result()
    made = assert_all_won(living, all_ran) + len(acknowledged(answers(dying)))
    assert made <= counted(table) <= made + len(dying)
