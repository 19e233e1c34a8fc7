"""Checks the arguments of this package's functions; a wrong one raises an `ArgumentError`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar

from interlock.errors import ArgumentError

_T = TypeVar("_T")


def refused(name: str, wanted: str, value: object) -> ArgumentError:
    """Make the error that says what an argument must be."""
    return ArgumentError(f"{name} must be {wanted}, not {type(value).__name__}: {value!r}.")


def integer(name: str, value: Any) -> int:
    """Take an int, or an object that can be used as one, such as NumPy's integers."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise refused(name, "an int", value)
    return operator.index(value)


def number(name: str, value: Any) -> float:
    """Take an int or a float, or an object that can be used as one."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise refused(name, "a number", value)
    return float(value)


def moment(name: str, value: object) -> datetime:
    """Take a datetime."""
    if not isinstance(value, datetime):
        raise refused(name, "a datetime", value)
    return value


def text(name: str, value: object) -> str:
    """Take a str."""
    if not isinstance(value, str):
        raise refused(name, "a str", value)
    return value


def path(name: str, value: Any) -> str:
    """Take the path of a file, as a path object or a text."""
    if not isinstance(value, str | os.PathLike):
        raise refused(name, "a str or a path", value)
    return os.fspath(value)


def texts(name: str, value: object) -> list[str]:
    """Take a collection of texts; a single text is refused."""
    if isinstance(value, Collection) and not isinstance(value, str):
        items = list(value)
        if all(isinstance(item, str) for item in items):
            return items
    raise refused(name, "a collection of str", value)


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Take a mapping whose keys are texts."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refused(name, "a dict with names as its keys", value)
    return value


def span(name: str, value: object, end: Callable[[str, object], _T]) -> tuple[_T, _T | None]:
    """Take two ends of a range, the second of which may be None."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise refused(name, "a pair such as (first, last), in which last may be None", value)
    first, last = value
    return end(f"{name}[0]", first), None if last is None else end(f"{name}[1]", last)


def one_of(**given: object) -> None:
    """Require exactly one of some arguments."""
    if sum(value is not None for value in given.values()) != 1:
        raise ArgumentError(f"give either {' or '.join(given)}.")
