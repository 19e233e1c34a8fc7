"""The list of variants. Needs no Spark."""

from __future__ import annotations

import pytest

from tests.kit import variants
from tests.kit.tree import ROOT
from tests.kit.variants import is_variant
from tools.mutants import mutations

TEXT = """
# rewrites
tests/test_it.py
    test_all
    TestMany
    test_some[*]
    !test_some[a - *]
"""
PATTERNS = list(variants.read(TEXT))
LISTED = list(variants.read(variants.LIST.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("test_all", True),
        ("test_all[1]", True),
        ("test_all_of_it", False),
        ("TestMany::test_one[a]", True),
        ("test_some[b - 1]", True),
        ("test_some[a - 1]", False),
        ("test_other", False),
    ],
)
def test_a_pattern_names_tests_as_a_gitignore_does_files(test: str, expected: bool) -> None:
    assert is_variant(f"tests/test_it.py::{test}", PATTERNS) is expected
    assert not is_variant(f"tests/test_its.py::{test}", PATTERNS)


def test_each_pattern_names_a_test(pytestconfig: pytest.Config) -> None:
    if any("::" in asked for asked in pytestconfig.args):
        pytest.skip("not run: of some file not all tests were looked for")
    found = pytestconfig.stash[variants.COLLECTED]
    files = {test.partition("::")[0] for test in found}
    missing = {pattern.file for pattern in LISTED} - files
    assert [file for file in missing if not (ROOT / file).exists()] == []
    stale = [p for p in LISTED if p.file in files and not any(map(p.matches, found))]
    assert stale == []


def test_what_a_mutation_must_fail_is_no_variant() -> None:
    listed = mutations.read(mutations.LIST.read_text(encoding="utf-8"))
    assert [m.name for m in listed if is_variant(m.test, LISTED)] == []
