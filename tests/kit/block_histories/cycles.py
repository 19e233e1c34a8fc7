"""Dependencies between blocks, and the circles among them that isolation levels forbid (Adya)."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Edge:
    """A dependency: in a serial order `before` comes first.

    Attributes:
        before: the number of a block
        after: the number of another one
        kind: "ww": it has changed after it what it has changed; "wr": it has read what the first
            has changed; "rw": the first has read what was there before the second's change
        what: the row
        is_judged: whether the policy judges the read of an "rw"

    """

    before: int
    after: int
    kind: str
    what: str
    is_judged: bool = True

    def __str__(self) -> str:
        note = "" if self.is_judged else ", not judged"
        return f"{self.before} -{self.kind}-> {self.after} ({self.what}{note})"


def anomalies(edges: Collection[Edge]) -> dict[str, list[Edge]]:
    """Return a circle for each kind of anomaly that there is.

    The kinds are G0 (of "ww" only), G1c (of "ww" and "wr"), G-single (one "rw") and G2 (several).
    """
    writes = [edge for edge in edges if edge.kind == "ww"]
    flow = [edge for edge in edges if edge.kind != "rw"]
    reads = [edge for edge in edges if edge.kind == "rw"]
    searches = {"G0": (writes, writes), "G1c": (flow, flow), "G-single": (reads, flow)}
    found = {name: _circle(first, rest) for name, (first, rest) in searches.items()}
    if not found["G-single"]:
        found["G2"] = _circle(reads, edges)
    return {name: circle for name, circle in found.items() if circle}


def _circle(first: Collection[Edge], rest: Collection[Edge]) -> list[Edge]:
    """Return a shortest circle of an edge of `first` and a way back among `rest`."""
    ways = [[edge, *way] for edge in first if (way := _way(edge.after, edge.before, rest))]
    return min(ways, key=len, default=[])


def _way(start: int, goal: int, edges: Collection[Edge]) -> list[Edge]:
    leaving = defaultdict(list)
    for edge in edges:
        leaving[edge.before].append(edge)
    ways: dict[int, list[Edge]] = {start: []}
    waiting = deque([start])
    while waiting and goal not in ways:
        at = waiting.popleft()
        for edge in leaving[at]:
            if edge.after not in ways:
                ways[edge.after] = [*ways[at], edge]
                waiting.append(edge.after)
    return ways.get(goal, [])
