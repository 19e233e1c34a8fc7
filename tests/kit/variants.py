"""The variants of test cases, which `make variants` runs and `make test` does not.

`tests/variants.txt` names them by file: below its path, a line for each pattern of its tests. `*`
stands for any text. As in a `.gitignore`, a `!` takes back what a line above says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from tests.kit.tree import ROOT

LIST = ROOT / "tests" / "variants.txt"


@dataclass(frozen=True)
class Pattern:
    """A line of the list: which tests of a file it speaks of, and whether they are variants."""

    file: str
    text: str
    are_variants: bool

    def matches(self, test: str) -> bool:
        """Tell whether it speaks of a test, as a whole or as one of a class or function."""
        pattern = ".*".join(map(re.escape, self.text.split("*")))
        return bool(re.fullmatch(rf"{re.escape(self.file)}::{pattern}([\[:].*)?", test, re.DOTALL))


def read(text: str) -> Iterator[Pattern]:
    """Read the list."""
    file = ""
    for line in text.splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        if line == pattern:
            file = pattern
        else:
            yield Pattern(file, pattern.removeprefix("!"), not pattern.startswith("!"))


def is_variant(test: str, patterns: Sequence[Pattern]) -> bool:
    """Tell whether a test is a variant: the last pattern that matches decides."""
    found = [pattern.are_variants for pattern in patterns if pattern.matches(test)]
    return bool(found) and found[-1]


COLLECTED = pytest.StashKey[list[str]]()
"""The ids of all tests that were found, whether they are asked for or not."""


def mark(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Mark the tests that are variants."""
    config.stash[COLLECTED] = [item.nodeid for item in items]
    patterns = list(read(LIST.read_text(encoding="utf-8")))
    of_file = {file: [p for p in patterns if p.file == file] for file in {p.file for p in patterns}}
    for item in items:
        if is_variant(item.nodeid, of_file.get(item.nodeid.partition("::")[0], [])):
            item.add_marker("variant")
