"""Runs cells of the kill points: a victim, a second writer, and what the table says afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.kill_cells import (
    CLOCK_FAULTS,
    COMPACT,
    DELETE,
    HOLDING_FAULTS,
    INSERT,
    Cell,
    Fault,
    Point,
)
from integration.stores import Store
from integration.writers import order
from tests.driver_process import Answer, DriverProcess
from tests.log_replay import check_log
from tests.support import Table, commit_info, deltalake_rows, versions

ARRIVAL_SECONDS = 90
PAUSE_SECONDS = 6  # longer than each timeout of the sessions
DISK = "size=24m"
BESIDE, LATER = 900, 901
BASE = frozenset({1, 2, 3})


@dataclass(frozen=True)
class Outcome:
    """What became of a cell that was run.

    Attributes:
        told: what the victim was told
        there: whether its commit is in the table; None where nobody can see
        wrong: what must not be; empty if the cell passed

    """

    told: str
    there: bool | None
    wrong: str = ""

    def __str__(self) -> str:
        there = {True: ", there", False: ", not there", None: ""}[self.there]
        return f"FAILED: {self.told}{there}: {self.wrong}" if self.wrong else self.told + there


class Lab:
    """Two processes on tables of one store; the victim is started anew when it was killed."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._made = 0
        self._bases: dict[str, Path] = {}
        self._other = self._started("other")
        self._victim: DriverProcess | None = None

    def close(self) -> None:
        for driver in (self._other, self._victim):
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
            return _Run(self, cell, table).outcome()

    @property
    def other(self) -> DriverProcess:
        return self._other

    def victim(self) -> DriverProcess:
        if self._victim is None:
            self._victim = self._started("victim")
            order(self._victim, _call("prepare", str(self._pid_file)))
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

    def _started(self, name: str) -> DriverProcess:
        driver = DriverProcess(
            self._store.kind, self._folder / f"{name}-{self._made}.log", self._store.settings
        )
        driver.await_start()
        return driver

    def _base(self, point: Point) -> Path:
        """Make a table with two files and an old file that no version has, for cells to copy."""
        key = f"{point.policy}-{'-'.join(point.properties)}"
        if key not in self._bases:
            path = self._folder / key
            more = {"interlock.policy": point.policy, **point.properties}
            for statement in (
                self._store.create(Table(path), more=more),
                f"INSERT INTO {Table(path)} VALUES (1), (2)",
                f"INSERT INTO {Table(path)} VALUES (3)",
                f"INSERT INTO {Table(path)} VALUES (4)",
                f"DELETE FROM {Table(path)} WHERE id = 4",
            )[: 5 if point.timed else 3]:
                answer = self._other.run(statement)
                assert answer.error is None, answer.message
            (path / "orphan.parquet").write_bytes(b"PAR1")
            os.utime(path / "orphan.parquet", (0, 0))
            self._bases[key] = path
        return self._bases[key]


class _Run:
    """One cell on its table."""

    def __init__(self, lab: Lab, cell: Cell, table: Table) -> None:
        self._lab = lab
        self._cell = cell
        self._point = cell.point
        self._table = table
        self._before = max(versions(table))
        self._marker = table.path.parent / "marker"
        self._answer: Answer | None = None

    def outcome(self) -> Outcome:
        victim = self._lab.victim()
        statement = self._point.statement.format(t=self._table)
        self._put_fault(victim)
        thread = threading.Thread(target=self._work, args=(victim, statement))
        self._start(victim, statement, thread)
        wrong = self._at_the_point(thread)
        thread.join()
        if self._cell.fault is Fault.KILL:
            self._lab.bury()
        wrong = wrong or self._insert(LATER)
        there = self._there()
        return Outcome(self._told(), there, wrong or self._wrong(there))

    def _put_fault(self, victim: DriverProcess) -> None:
        fault, point = self._cell.fault, self._point
        if fault in CLOCK_FAULTS:
            hours = 1 if fault is Fault.AHEAD else -1
            order(victim, _call("shift_clock", str(self._table.path), hours))
            return
        at, action = {
            Fault.BEFORE: (point.before, "io"),
            Fault.AFTER: (point.after, "runtime"),
            Fault.CLOSE: (point.close, "io"),
            Fault.DISK_FULL: (point.writes, "hold"),
        }.get(fault, (point.hold, "hold"))
        assert at is not None
        self._arm = _call("arm", at, action, str(self._table.path), str(self._marker))
        if point.beside is None:
            order(victim, self._arm)

    def _start(self, victim: DriverProcess, statement: str, thread: threading.Thread) -> None:
        """Let the statement run; where it shall meet a winner, let that one commit first."""
        if self._point.beside is not None:
            victim.hold(statement)
            beside = self._lab.other.run(self._point.beside.format(t=self._table))
            assert beside.error is None, beside.message
            if self._cell.fault not in CLOCK_FAULTS:
                order(victim, self._arm)
        thread.start()

    def _work(self, victim: DriverProcess, statement: str) -> None:
        try:
            held = self._point.beside is not None
            self._answer = victim.open() if held else victim.run(statement)
        except AssertionError:
            self._answer = None  # it was killed

    def _at_the_point(self, thread: threading.Thread) -> str:
        """Do what the fault is, while the statement waits at the point."""
        fault = self._cell.fault
        if fault in CLOCK_FAULTS:
            return ""
        end = time.monotonic() + ARRIVAL_SECONDS
        while not self._marker.exists():
            if time.monotonic() > end or not thread.is_alive():
                return f"it never came to the point: {self._told()}"
            time.sleep(0.02)
        wrong = ""
        if fault is Fault.KILL:
            self._lab.signal(signal.SIGKILL)
            wrong = self._insert(BESIDE)
        elif fault is Fault.PAUSE:
            self._lab.signal(signal.SIGSTOP)
            try:
                wrong = self._insert(BESIDE)
                time.sleep(PAUSE_SECONDS)
            finally:
                self._lab.signal(signal.SIGCONT)
        elif fault is Fault.DISK_FULL:
            filler = self._table.path.parent / "filler"
            fill(filler)
            self._go()
            thread.join()
            filler.unlink()
        if fault in HOLDING_FAULTS:
            self._go()
        return wrong

    def _go(self) -> None:
        Path(f"{self._marker}.go").touch()

    def _insert(self, identifier: int) -> str:
        """Let the second writer append a row; return what went wrong."""
        answer = self._lab.other.run(f"INSERT INTO {self._table} VALUES ({identifier})")
        return f"the second writer: {answer.message}" if answer.error else ""

    def _rows(self) -> list[int]:
        return [int(str(row[0])) for row in deltalake_rows(self._table)]

    def _there(self) -> bool | None:
        if self._point.statement == INSERT:
            return 10 in self._rows()
        if self._point.statement == DELETE:
            return 2 not in self._rows()
        if self._point.statement == COMPACT:
            made = range(self._before + 1, max(versions(self._table)) + 1)
            return any("COMPACT" in self._operation(version) for version in made)
        return None

    def _operation(self, version: int) -> str:
        return str(commit_info(self._table, version)["operation"])

    def _told(self) -> str:
        if self._answer is None:
            return "killed"
        return self._answer.error or "committed"

    def _wrong(self, there: bool | None) -> str:
        """Compare the table with what everybody was told."""
        expected = set(BASE) | {LATER}
        if self._cell.fault in (Fault.KILL, Fault.PAUSE):
            expected.add(BESIDE)
        if there and self._point.statement == INSERT:
            expected.add(10)
        if there and self._point.statement == DELETE:
            expected.remove(2)
        if sorted(expected) != sorted(self._rows()):
            return f"rows {sorted(self._rows())}, not {sorted(expected)}"
        found = versions(self._table)
        if found != list(range(len(found))):
            return f"versions {found}"
        broken = [a for a in check_log(self._table).values() if not self._whole(a)]
        if broken:
            return f"files that are not as recorded: {broken}"
        if there is None or self._answer is None:
            return ""
        if self._answer.error is None and not there:
            return "acknowledged and lost"
        if self._answer.error not in (None, "CommitStateUnknownError") and there:
            return f"refused and there: {self._answer.message[:300]}"
        return ""

    def _whole(self, add: dict[str, object]) -> bool:
        path = self._table.path / str(add["path"])
        return path.exists() and path.stat().st_size == add["size"]


def _call(function: str, *arguments: object) -> str:
    return (
        f"from integration.kill_driver import {function}; "
        f"{function}(spark, {', '.join(map(repr, arguments))})"
    )


def fill(path: Path) -> None:
    """Write until the disk has no room."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def may_mount(folder: Path) -> bool:
    """Tell whether this machine lets us mount a small disk."""
    try:
        with small_disk(folder):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a disk of a few megabytes at a folder."""
    mount = ["mount", "-t", "tmpfs", "-o", DISK, "tmpfs", str(folder)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)
