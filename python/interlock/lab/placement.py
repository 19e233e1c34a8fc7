"""Which rows must be in the same data file, computed in plain Python.

A file is a name here: of the job that wrote it, and of the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from interlock.lab.model import COMPACTIONS, Body, Class, Outcome, Row, Rows

File = tuple[str, Row]
Placement = dict[Row, File]


def files_after(
    earlier: Body,
    later: Body,
    history: Sequence[Rows],
    outcome: Outcome,
    deletion_vectors: Literal["on", "off"],
) -> int:
    """Count the live files after both jobs.

    Args:
        earlier: the job that commits first
        later: the other, which reads what the first one reads
        history: the rows at each version from 1 on; the last is what the jobs read
        outcome: the outcome of the two jobs
        deletion_vectors: "off" if UPDATE, DELETE and MERGE rewrite files

    """
    start = _start(history)
    now = start
    if outcome is not Outcome.REFUSED:
        now = _after(earlier, "earlier", start, start, deletion_vectors)
    if outcome is Outcome.BOTH:
        if later.kind in COMPACTIONS and earlier.kind in COMPACTIONS:
            start = now  # the later one takes what the earlier one made of its inputs
        now = _after(later, "later", start, now, deletion_vectors)
    return len(set(now.values()))


def _start(history: Sequence[Rows]) -> Placement:
    placed: Placement = {}
    for version, rows in enumerate(history):
        new = _in_new_files(str(version), [row for row in rows if row not in placed])
        placed = {row: file for row, file in (placed | new).items() if row in rows}
    return placed


def _after(
    job: Body, name: str, read: Placement, now: Placement, vectors: Literal["on", "off"]
) -> Placement:
    """Place the rows that are live once `job`, which read one placement, commits on another."""
    if job.kind in COMPACTIONS:  # moves the rows that are still where it read them
        still = [row for row in read if job.scope(row) and now.get(row) == read[row]]
        return now | _in_new_files(name, still)
    computed = job.effect(tuple(read))
    if job.kind is Class.IO:
        kept = {row: file for row, file in now.items() if not job.scope(row)}
        return kept | _in_new_files(name, filter(job.scope, computed))
    dead = read.keys() - set(computed)
    written = set(computed) - read.keys()
    if vectors == "off":
        touched = {read[row] for row in dead}
        rewritten = {row for row, file in read.items() if file in touched}
        written |= rewritten - dead
        dead = rewritten
    kept = {row: file for row, file in now.items() if row not in dead}
    return kept | _in_new_files(name, written)


def _in_new_files(name: str, rows: Iterable[Row]) -> Placement:
    return {row: (name, row[2:]) for row in rows}
