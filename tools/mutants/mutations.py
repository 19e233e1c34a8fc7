"""The list of mutations, and how one is put into a source file."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

LIST = Path(__file__).with_name("mutations.toml")

_SUITE = re.compile(r'(rules|coordinator|postgres|spark)/(\w+)(?:: ([^"*]+))?')
_PYTEST = re.compile(r"(tests|integration)/[\w/]+\.py(::.+)?")


class MutationError(Exception):
    """A list that cannot be used; the message says which mutation is wrong and why."""


@dataclass(frozen=True)
class Mutation:
    """One change of a source file, and the test that must fail then.

    Attributes:
        name: what the code does wrong then
        file: the file by its last name: it may move
        old: what is replaced; it stands once in the file
        new: what replaces it
        test: `project/Suite` of the Scala tests, or `project/Suite: name` of one of them, or what
            pytest takes

    """

    name: str
    file: str
    old: str
    new: str
    test: str

    @property
    def suite(self) -> tuple[str, str] | None:
        """The sbt project and the suite; None where pytest runs the test."""
        found = _SUITE.fullmatch(self.test)
        return None if found is None else (found[1], found[2])

    @property
    def test_of_suite(self) -> str | None:
        """The one test of the suite that counts; None where all do."""
        found = _SUITE.fullmatch(self.test)
        return found and found[3]

    @property
    def is_quick(self) -> bool:
        """Whether its test needs no Spark, which takes a while to start and to build for."""
        return self.suite is not None and self.suite[0] != "spark"

    def mutated(self, text: str) -> str:
        """Return the file's text with the mutation in it.

        Raises:
            MutationError: where the text to be replaced is not there, or more than once

        """
        count = text.count(self.old)
        if count != 1:
            times = "not" if count == 0 else f"{count} times"
            raise MutationError(
                f"'{self.name}' is stale: its text is {times} in {self.file}: {self.old!r}"
            )
        return text.replace(self.old, self.new)


def read(text: str) -> list[Mutation]:
    """Read a list.

    Raises:
        MutationError: for a change that changes nothing, or a test of no known form

    """
    return [
        _checked(Mutation(name, file, old, new, test))
        for file, tests in tomllib.loads(text).items()
        for test, changes in tests.items()
        for name, (old, new) in changes.items()
    ]


def _checked(mutation: Mutation) -> Mutation:
    name, test = mutation.name, mutation.test
    if mutation.old == mutation.new:
        raise MutationError(f"'{name}' changes nothing")
    if not _SUITE.fullmatch(test) and not _PYTEST.fullmatch(test):
        raise MutationError(f"'{name}': {test} is neither project/Suite nor a pytest")
    return mutation


def sources(root: Path) -> dict[str, list[Path]]:
    """Return the sources of the product below `root`, by their last names."""
    files: dict[str, list[Path]] = {}
    for file in root.glob("jvm/*/src/main/**/*.scala"):
        files.setdefault(file.name, []).append(file)
    return files


def located(mutations: Sequence[Mutation], root: Path) -> dict[str, Path]:
    """Return the path of each file that the mutations name, once all fit.

    Raises:
        MutationError: naming all that are stale, or whose file is missing or not the only one

    """
    files = sources(root)
    problems = []
    for mutation in mutations:
        paths = files.get(mutation.file, [])
        if len(paths) != 1:
            problems.append(f"'{mutation.name}': {len(paths)} files are called {mutation.file}")
            continue
        try:
            mutation.mutated(paths[0].read_text(encoding="utf-8"))
        except MutationError as error:
            problems.append(str(error))
    if problems:
        raise MutationError("\n".join(problems))
    return {mutation.file: files[mutation.file][0] for mutation in mutations}


def some(mutations: Sequence[Mutation], count: int, turn: int) -> list[Mutation]:
    """Return so many in a row, from a place that the number `turn` gives."""
    size = min(count, len(mutations))
    first = turn * size
    return [mutations[(first + i) % len(mutations)] for i in range(size)]
