"""The table of kill points and faults.

    python -m integration.kill_points [--store filesystem] [--cell 'K3: kill -9'] [--seed 7]

Each cell says what the victim was told and whether its commit is there, or why it was not run.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from integration.kill_cells import POINTS, Cell, Fault, cells, not_applicable, not_runnable
from integration.kill_lab import Lab, labs
from integration.small_disk import may_mount
from integration.stores import ALL_STORES


def run(lab: Lab, wanted: Sequence[Cell], *, tell: Callable[[str], None] = print) -> dict[str, str]:
    """Run cells in the order given; return what each says."""
    said: dict[str, str] = {}
    mounts = may_mount(lab.folder)
    for cell in wanted:
        remote = lab.store.storage is not None
        if reason := not_applicable(cell, database=lab.database is not None, remote=remote):
            said[str(cell)] = f"n/a: {reason}"
        elif reason := not_runnable(cell, remote=remote):
            said[str(cell)] = f"not run: {reason}"
        elif cell.fault is Fault.DISK_FULL and not mounts:
            said[str(cell)] = "not run: mounting is not allowed"
        else:
            said[str(cell)] = str(lab.run(cell))
            tell(f"{cell}: {said[str(cell)]}")
    return said


def assert_all_hold(store: str, some: Sequence[tuple[str, Cell]], folder: Path) -> None:
    """Run some cells, each on a store; fail if one does not hold."""
    said: dict[str, str] = {}
    with labs(store, folder) as started:
        for name, wanted in some:
            told = run(started[name], [wanted])
            said |= {f"{name}: {which}": text for which, text in told.items()}
    assert len(said) == len(some)
    assert not {which: text for which, text in said.items() if text.startswith(("FAILED:", "n/a"))}


def table(name: str, said: dict[str, str]) -> str:
    """Render cells as Markdown: a row for each point, a column for each fault; notes below."""
    notes: dict[str, int] = {}
    lines = [f"| {name} | {' | '.join(fault.value for fault in Fault)} |"]
    lines.append("|---" * (len(Fault) + 1) + "|")
    for point in POINTS:
        texts = [said.get(str(Cell(point, fault)), "") for fault in Fault]
        short = [_short(text.replace("\n", " "), notes) for text in texts]
        lines.append(f"| {point.name} {point.text} | {' | '.join(short)} |")
    return "\n".join([*lines, "", *(f"{n}. {text}" for text, n in notes.items())])


def _short(text: str, notes: dict[str, int]) -> str:
    """Put a reason into the notes."""
    head, colon, reason = text.partition(": ")
    return f"{head} ({notes.setdefault(reason, len(notes) + 1)})" if colon else text


def main() -> None:
    """Run cells and print the table."""
    parser = argparse.ArgumentParser(description="Kill points and faults.")
    parser.add_argument("--store", action="append", choices=ALL_STORES)
    parser.add_argument("--cell", action="append", help="as 'K3: kill -9'; default all")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of the order")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    wanted = [c for c in cells() if not arguments.cell or str(c) in arguments.cell]
    random.Random(arguments.seed).shuffle(wanted)
    failed = 0
    for name in arguments.store or ALL_STORES:
        with (
            tempfile.TemporaryDirectory(prefix="interlock-kill-") as folder,
            labs(name, Path(folder)) as started,
        ):
            said = run(started[name], wanted, tell=lambda text: print(text, flush=True))
        print(table(name, said), flush=True)
        failed += sum(text.startswith("FAILED:") for text in said.values())
    raise SystemExit(bool(failed))


if __name__ == "__main__":
    main()
