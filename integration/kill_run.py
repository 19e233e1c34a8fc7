"""One cell of the kill points: the fault at its point, and what the table says afterwards."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.kill_cells import (
    CLOCK_FAULTS,
    COMPACT,
    CONNECTION_FAULTS,
    DELETE,
    INSERT,
    Cell,
    Fault,
)
from integration.kill_processes import VICTIM, Processes, call
from integration.small_disk import fill
from integration.writers import order
from tests.kit.driver_process import Answer, DriverProcess
from tests.kit.log_replay import check_log
from tests.kit.support import Table, commit_info, deltalake_rows, versions
from tests.postgres.database import COMMIT, Database

ARRIVAL_SECONDS = 60
PAUSE_SECONDS = 6  # longer than each timeout of the sessions
BOUND, DUMPED, BESIDE, LATER = 5, 6, 900, 901
RESTORED = "INTERLOCK_COORDINATOR_RESTORED"


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


class Run:
    """One cell on its table."""

    def __init__(
        self, processes: Processes, database: Database | None, cell: Cell, table: Table
    ) -> None:
        self._processes = processes
        self._bound_to = database
        self._cell = cell
        self._point = cell.point
        self._fault = cell.fault
        self._table = table
        self._rows = {1, 2, 3}
        self._before = 0
        self._marker = table.path.parent / "marker"
        self._answer: Answer | None = None
        self._wrong: list[str] = []
        self._unlock: Callable[[], Any] | None = None

    def outcome(self) -> Outcome:
        victim = self._processes.victim()
        self._before_all(victim)
        with ExitStack() as stack:
            if self._is_locked:
                self._unlock = stack.enter_context(self._database.locked(self._table))
            self._put_fault(victim)
            thread = self._start(victim)
            if self._fault not in CLOCK_FAULTS and self._arrives(thread):
                self._do_fault(thread)
            self._go()
        thread.join()
        if self._wrong and self._answer is not None:
            self._wrong.append(f"the victim: {self._answer.message[:300]}")
        if self._fault is Fault.KILL:
            self._processes.bury()
        self._afterwards()
        self._processes.download(self._table)
        there = self._there()
        self._compare(there)
        return Outcome(self._told(), there, "; ".join(filter(None, self._wrong)))

    # Before.

    def _before_all(self, victim: DriverProcess) -> None:
        if self._bound_to is not None:
            # Who knows the table waits with its commit, and not with a question before it.
            self._insert(BOUND, by=victim if self._is_locked else None)
        if self._fault is Fault.RESTORE:
            self._dump = self._database.dump()
            self._insert(DUMPED)
        if self._fault in CLOCK_FAULTS:
            hours = 1 if self._fault is Fault.AHEAD else -1
            order(victim, call("shift_clock", self._table.location, hours))
            if self._bound_to is not None:
                self._database.shift_times(self._table, hours)
        self._processes.download(self._table)
        self._before = max(versions(self._table))

    @property
    def _is_locked(self) -> bool:
        """Whether the commit waits in the database, and not in its own process."""
        return self._point.name == "K4" and self._fault not in (Fault.BEFORE, Fault.CUT)

    def _put_fault(self, victim: DriverProcess) -> None:
        point = self._point
        at, action = {
            Fault.BEFORE: (point.before, "io"),
            Fault.AFTER: (point.after, "runtime"),
            Fault.CLOSE: (point.close, "io"),
            Fault.DISK_FULL: (point.writes, "hold"),
        }.get(self._fault, (point.hold, "hold"))
        self._arm = call("arm", at, action, self._table.location, str(self._marker))
        if self._fault is Fault.CUT:
            proxy = self._database.proxy
            (proxy.cut_behind if point.name == "K4" else proxy.lose_reply)(*COMMIT)
        if point.beside is None and self._is_armed:
            order(victim, self._arm)

    @property
    def _is_armed(self) -> bool:
        return not self._is_locked and self._fault not in (Fault.CUT, *CLOCK_FAULTS)

    def _start(self, victim: DriverProcess) -> threading.Thread:
        """Let the statement run; where it shall meet a winner, let that one commit first."""
        statement = self._point.statement.format(t=self._table)
        if self._point.beside is not None:
            victim.hold(statement)
            beside = self._processes.other.run(self._point.beside.format(t=self._table))
            assert beside.error is None, beside.message
            if self._is_armed:
                order(victim, self._arm)
        thread = threading.Thread(target=self._work, args=(victim, statement))
        thread.start()
        return thread

    def _work(self, victim: DriverProcess, statement: str) -> None:
        try:
            held = self._point.beside is not None
            self._answer = victim.open() if held else victim.run(statement)
        except AssertionError:
            self._answer = None  # it was killed

    # At the point.

    def _arrives(self, thread: threading.Thread) -> bool:
        """Wait until the statement is at the point."""
        if self._is_locked:
            arrived = self._database.await_waiting(VICTIM)
        elif self._fault is Fault.CUT:
            arrived = self._database.proxy.has_cut.wait(ARRIVAL_SECONDS)
        else:
            arrived = self._marked(thread)
        if not arrived:
            self._wrong.append("it never came to the point")
        return arrived

    def _marked(self, thread: threading.Thread) -> bool:
        end = time.monotonic() + ARRIVAL_SECONDS
        while time.monotonic() < end and (thread.is_alive() or self._point.background):
            if self._marker.exists():
                return True
            time.sleep(0.02)
        return self._marker.exists()

    def _do_fault(self, thread: threading.Thread) -> None:
        """Do what happens while the statement waits at the point."""
        if self._fault is Fault.KILL:
            self._processes.signal(signal.SIGKILL)
        elif self._fault is Fault.PAUSE:
            self._processes.signal(signal.SIGSTOP)
            try:
                self._go()
                self._insert(BESIDE)
                time.sleep(PAUSE_SECONDS)
            finally:
                self._processes.signal(signal.SIGCONT)
        elif self._fault is Fault.DISK_FULL:
            filler = self._table.path.parent / "filler"
            fill(filler)
            self._go()
            thread.join()
            filler.unlink()
        elif self._fault is Fault.RESTART:
            self._database.server.restart(mode="immediate")
        elif self._fault is Fault.TERMINATE:
            self._database.server.terminate(VICTIM)
        elif self._fault is Fault.RESTORE:
            self._database.server.restore(self._dump)

    def _go(self) -> None:
        """Let the statement leave the point."""
        if self._unlock is not None:
            self._unlock()
        Path(f"{self._marker}.go").touch()

    # Afterwards.

    def _afterwards(self) -> None:
        """Let the second writer write; where the database is old, only after a repair."""
        if self._fault is Fault.RESTORE:
            refused = self._processes.other.run(self._insertion(BESIDE))
            if RESTORED not in refused.message:
                self._wrong.append(f"not {RESTORED}: {refused.error} {refused.message[:200]}")
            options = {**self._database.admin(), "table": self._table.location}
            order(self._processes.other, call("repair", options))
        if self._fault is Fault.KILL:
            self._insert(BESIDE)
        self._insert(LATER)

    def _insert(self, identifier: int, *, by: DriverProcess | None = None) -> None:
        """Let a writer append a row, the second one if none is given."""
        answer = (by or self._processes.other).run(self._insertion(identifier))
        if answer.error is not None:
            self._wrong.append(f"row {identifier}: {answer.error} {answer.message[:300]}")
        else:
            self._rows.add(identifier)

    def _insertion(self, identifier: int) -> str:
        return f"INSERT INTO {self._table} VALUES ({identifier})"

    def _found(self) -> list[int]:
        return sorted(int(str(row[0])) for row in deltalake_rows(self._table))

    def _there(self) -> bool | None:
        if self._point.statement == INSERT:
            return 10 in self._found()
        if self._point.statement == DELETE:
            return 2 not in self._found()
        if self._point.statement == COMPACT:
            made = range(self._before + 1, max(versions(self._table)) + 1)
            operations = [commit_info(self._table, version)["operation"] for version in made]
            return any("COMPACT" in operation for operation in operations)
        return None

    def _told(self) -> str:
        if self._fault is Fault.KILL:
            return "killed"
        assert self._answer is not None, "the victim died by itself"
        condition = re.search(r"INTERLOCK_[A-Z_]+", self._answer.message)
        return condition[0] if condition else self._answer.error or "committed"

    def _compare(self, there: bool | None) -> None:
        """Compare the table with what everybody was told."""
        expected = set(self._rows)
        if there and self._point.statement == INSERT:
            expected.add(10)
        if there and self._point.statement == DELETE:
            expected.remove(2)
        if sorted(expected) != self._found():
            self._wrong.append(f"rows {self._found()}, not {sorted(expected)}")
        made = versions(self._table)
        if made != list(range(len(made))):
            self._wrong.append(f"versions {made}")
        broken = [path for path, add in check_log(self._table).items() if not self._whole(add)]
        if broken:
            self._wrong.append(f"files that are not as recorded: {broken}")
        if self._fault in CONNECTION_FAULTS and self._told() != "committed":
            self._wrong.append("a connection that broke was not replaced")
        if there is None or self._answer is None or self._fault is Fault.KILL:
            return
        if self._answer.error is None and not there:
            self._wrong.append("acknowledged and lost")
        if self._answer.error not in (None, "CommitStateUnknown") and there:
            self._wrong.append(f"refused and there: {self._answer.message[:300]}")

    def _whole(self, add: dict[str, Any]) -> bool:
        path, size = self._table.path / str(add["path"]), int(add["size"])
        return path.exists() and path.stat().st_size == size

    @property
    def _database(self) -> Database:
        assert self._bound_to is not None
        return self._bound_to
