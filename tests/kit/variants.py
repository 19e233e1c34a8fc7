"""Marks as variants the cases that `@pytest.mark.variant_cases` names beside a test.

Its arguments are the ids of the cases that are variants, or all are; those of `but` are none. `*`
stands for any text.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import groupby

import pytest


def mark(items: Sequence[pytest.Item], *, all_cases: bool) -> None:
    """Mark the variants among some tests, which have `all_cases` or some of them.

    Raises:
        UsageError: for an id that none of all cases has

    """
    for test, found in groupby(items, lambda item: item.nodeid.partition("[")[0]):
        cases = {item.nodeid.partition("[")[2][:-1]: item for item in found}
        for asked in next(iter(cases.values())).iter_markers("variant_cases"):
            but = asked.kwargs.get("but", [])
            for name, case in cases.items():
                if _is(name, asked.args or ["*"]) and not _is(name, but):
                    case.add_marker("variant")
            for pattern in [*asked.args, *but]:
                if all_cases and not any(_is(name, [pattern]) for name in cases):
                    raise pytest.UsageError(f"{test} has no case {pattern}")


def _is(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)
