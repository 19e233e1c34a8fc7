"""The table of kill points and faults.

    python -m integration.kill_points [--cell 'K3: kill -9'] [--seed 7]

Each cell says what the victim was told and whether its commit is there, or why it was not run.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from integration.kill_cells import POINTS, Cell, Fault, cells, not_applicable, not_runnable
from integration.kill_lab import Lab, may_mount
from integration.stores import FILE_SYSTEM, Store

STORES = (FILE_SYSTEM,)


@contextmanager
def lab(store: Store, folder: Path) -> Iterator[Lab]:
    """Start the processes of one store."""
    made = Lab(store, folder)
    try:
        yield made
    finally:
        made.close()


def run(lab: Lab, store: Store, wanted: Sequence[Cell], folder: Path) -> dict[Cell, str]:
    """Run cells in the order given; return what each says."""
    said: dict[Cell, str] = {}
    disk = folder / "disk"
    disk.mkdir()
    mounts = may_mount(disk)
    for cell in wanted:
        if reason := not_applicable(cell, database=store.database):
            said[cell] = f"n/a: {reason}"
        elif reason := not_runnable(cell):
            said[cell] = f"not run: {reason}"
        elif cell.fault is Fault.DISK_FULL and not mounts:
            said[cell] = "not run: mounting is not allowed"
        else:
            said[cell] = str(lab.run(cell))
            print(f"{store.name}: {cell}: {said[cell]}", flush=True)
    return said


def table(store: Store, said: dict[Cell, str]) -> str:
    """Render cells as Markdown: a row for each point, a column for each fault."""
    lines = [f"| {store.name} | {' | '.join(fault.value for fault in Fault)} |"]
    lines.append("|---" * (len(Fault) + 1) + "|")
    by_name = {str(cell): text for cell, text in said.items()}
    for point in POINTS:
        texts = [by_name.get(str(Cell(point, fault)), "") for fault in Fault]
        lines.append(f"| {point.name} {point.text} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main() -> None:
    """Run cells and print the table."""
    parser = argparse.ArgumentParser(description="Kill points and faults.")
    parser.add_argument("--store", action="append", choices=[store.name for store in STORES])
    parser.add_argument("--cell", action="append", help="as 'K3: kill -9'; default all")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the order")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    wanted = [c for c in cells() if not arguments.cell or str(c) in arguments.cell]
    random.Random(arguments.seed).shuffle(wanted)
    failed = 0
    for store in STORES:
        if arguments.store and store.name not in arguments.store:
            continue
        with tempfile.TemporaryDirectory(prefix="interlock-kill-") as name:
            with lab(store, Path(name)) as started:
                said = run(started, store, wanted, Path(name))
        print(table(store, said))
        failed += sum("FAILED" in text for text in said.values())
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
