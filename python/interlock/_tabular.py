"""Dataclasses as tables of other libraries, which are imported when they are first used."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from html import escape
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    import pandas
    import pyarrow

_SQL_NAMES = {"operation_class": "class"}  # a word of Python's


def columns(row_class: type[Any]) -> dict[str, str]:
    """Map the fields of a dataclass to the columns that SQL has for them."""
    return {field.name: _SQL_NAMES.get(field.name, field.name) for field in fields(row_class)}


def arrow_table(row_class: type[Any], rows: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    """Make a table with the types of the dataclass, also where all values are unknown."""
    import pyarrow

    hints = get_type_hints(row_class)
    schema = pyarrow.schema(
        [(column, _arrow_type(hints[field])) for field, column in columns(row_class).items()]
    )
    # pyarrow takes pairs for a map, and no mapping.
    plain = [{key: _pairs(value) for key, value in row.items()} for row in rows]
    return pyarrow.Table.from_pylist(plain, schema=schema)


def pandas_frame(table: pyarrow.Table) -> pandas.DataFrame:
    """Make a frame whose whole numbers stay such beside unknown ones."""
    import pandas
    import pyarrow

    types = {pyarrow.int64(): pandas.Int64Dtype(), pyarrow.bool_(): pandas.BooleanDtype()}
    return table.to_pandas(types_mapper=types.get, maps_as_pydicts="strict")


def html(titles: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Draw a table for a notebook."""
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text(row[title]))}</td>" for title in titles) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def grid(table: list[list[str]]) -> list[str]:
    """Draw a table as text; its first row is its header."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return [lines[0], "-+-".join("-" * width for width in widths), *lines[1:]]


def fitted(table: list[list[str]], width: int) -> list[str]:
    """Draw the first columns that fit, at least two, and say which are left out."""
    shown = len(table[0])
    while shown > 2 and len(grid([row[:shown] for row in table])[1]) > width:
        shown -= 1
    left_out = ", ".join(table[0][shown:])
    note = f"(not shown: {left_out}; to_dicts(), to_pandas() and --json have all)"
    return [*grid([row[:shown] for row in table]), *([note] if left_out else [])]


def text(value: object, times: str = "milliseconds") -> str:
    """Write a value for people; what is unknown is empty."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec=times)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(map(text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={text(item)}" for key, item in value.items())
    return str(value)


def as_json(value: object) -> str:
    """Write dictionaries of results as JSON, times as ISO 8601."""
    return json.dumps(value, indent=2, default=_json_value)


def _json_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else dict(value)


def _pairs(value: Any) -> Any:
    return list(value.items()) if isinstance(value, Mapping) else value


def _arrow_type(hint: Any) -> pyarrow.DataType:
    import pyarrow

    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _arrow_type(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        return pyarrow.list_(_arrow_type(arguments[0]))
    if origin is not None:
        return pyarrow.map_(*map(_arrow_type, arguments))
    return {
        bool: pyarrow.bool_(),
        int: pyarrow.int64(),
        str: pyarrow.string(),
        datetime: pyarrow.timestamp("us", tz="UTC"),
    }[hint]
