"""Reads the resources that the documentation is made of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

ROOT = Path(__file__).resolve().parent.parent.parent
POLICIES = ROOT / "jvm/rules/src/main/resources/io/interlock/policies"
HARMLESS = POLICIES.parent / "harmless-properties.txt"
CATALOGUE = ROOT / "jvm/spark/src/main/resources/io/interlock/error-conditions.json"

_ORDER = (
    "maxcompute_delta",
    "maxcompute_transactional",
    "maxcompute_standard",
    "row_level",
    "row_serializable",
)


class Condition(TypedDict):
    """An entry of the error catalogue."""

    message: list[str]
    sqlState: str


@dataclass(frozen=True)
class Cell:
    """A cell of a policy's matrix; `id` is empty where its document numbers none."""

    id: str
    earlier: str
    later: str
    verdict: str


@dataclass(frozen=True)
class Policy:
    """A policy's resource as it stands.

    Attributes:
        head: its lines of key and value
        comments: its comments, without the sign before them
        classes: rows and columns of the matrix
        cells: the matrix, row by row

    """

    head: dict[str, str]
    comments: tuple[str, ...]
    classes: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """Return the value of `interlock.policy`."""
        return self.head["policy"]

    def row(self, earlier: str) -> list[Cell]:
        """Return the cells of one row."""
        return [cell for cell in self.cells if cell.earlier == earlier]


def read_policies() -> list[Policy]:
    """Read all policies, in the order in which the documentation shows them."""
    files = sorted(POLICIES.glob("*.policy"), key=lambda file: (_place(file.stem), file.stem))
    return [read_policy(file.read_text(encoding="utf-8")) for file in files]


def read_policy(text: str) -> Policy:
    """Read a policy that the jar accepts."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    comments = tuple(line.removeprefix("#").strip() for line in lines if line.startswith("#"))
    head = dict(line.split(maxsplit=1) for line in lines if line[0] not in "#|")
    header, *rows = (_entries(line) for line in lines if line.startswith("|"))
    classes = tuple(header[1:])
    cells: list[Cell] = []
    for earlier, *verdicts in rows:
        for later, verdict in zip(classes, verdicts, strict=True):
            number = f"{head['cells']}{len(cells) + 1}" if "cells" in head else ""
            cells.append(Cell(number, earlier, later, verdict))
    return Policy(head, comments, classes, tuple(cells))


def read_harmless_properties() -> list[str]:
    """Read the table properties that a statement may change while jobs run."""
    lines = HARMLESS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def read_catalogue() -> dict[str, Condition]:
    """Read the error catalogue."""
    catalogue: dict[str, Condition] = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return catalogue


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _entries(line: str) -> list[str]:
    return [entry.strip() for entry in line.strip("|").split("|")]
