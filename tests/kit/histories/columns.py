"""The columns of a history's table, in SQL and as readers give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tests.kit.histories.model import Row


@dataclass(frozen=True)
class Columns:
    """`id INT, v STRING`, perhaps `s`, perhaps `p`.

    Attributes:
        p: the type of the partition column, None if there is none; a timestamp's value is noon of a
            day, and the model has the day's number
        nested: whether there is `s`, whose fields have the names of other columns

    """

    p: str | None
    nested: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return ("id", "v", *["s"] * self.nested, *["p"] * (self.p is not None))

    @property
    def declared(self) -> str:
        nested = ", s STRUCT<p: INT, id: INT>" if self.nested else ""
        return f"id INT, v STRING{nested}" + (f", p {self.p}" if self.p else "")

    @property
    def number(self) -> str:
        """Return an expression for the model's value of p."""
        return {"INT": "p", "TIMESTAMP": "day(p)", None: "CAST(NULL AS INT)"}[self.p]

    def value(self, p: int | None) -> str:
        """Return a value of the partition column."""
        if p is None:
            return f"CAST(NULL AS {self.p})"
        return f"TIMESTAMP'{noon(p)}'" if self.p == "TIMESTAMP" else str(p)

    def fields(self, row: Row) -> str:
        """Return a row's values as a list."""
        nested = [nested_value(row.id)] if self.nested else []
        return ", ".join(
            [str(row.id), f"'{row.v}'", *nested, *([self.value(row.p)] if self.p else [])]
        )

    def of(self, row: Row) -> tuple[object, ...]:
        """Return a row's values in the form that `plain` gives to a reader's row."""
        return (row.id, row.v, *[row.s] * self.nested, *[row.p] * (self.p is not None))


def nested_value(identifier: int) -> str:
    """Return the nested column's value in the row with an id."""
    p, other = Row(identifier, "").s
    return f"named_struct('p', {p}, 'id', {other})"


def noon(day: int) -> str:
    return f"2026-01-{day:02} 12:00:00"


def plain(row: Sequence[object]) -> tuple[object, ...]:
    """Convert a reader's value to the model's: a noon to its day, a struct to a tuple."""
    return tuple(map(_plain, row))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.day
    if isinstance(value, dict):
        return tuple(value.values())
    return tuple(value) if isinstance(value, (tuple, list)) else value
