"""The rooms of the Scala sources, and which package may know which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.kit.tree import ROOT

SPARK = "io.interlock.spark"
ADAPTER = "org.apache.spark.sql.delta.interlock"
# What users write and Spark loads. All other packages but the adapter are below it.
ABOVE = {"org.apache.spark.interlock", SPARK} | {
    f"{SPARK}.{room}" for room in ("statements", "procedures", "history")
}
RULING = {f"{ADAPTER}.judging", f"{ADAPTER}.rebase"}


def sources() -> Iterator[tuple[str, Path, str]]:
    """Yield package, path and code of each file, without its comments and its package clause."""
    for path in sorted(ROOT.glob("jvm/*/src/main/scala*/**/*.scala")):
        package, code = path.read_text().removeprefix("package ").split("\n", 1)
        yield package, path, re.sub(r"/\*.*?\*/|//[^\n]*", "", code, flags=re.DOTALL)


SOURCES = list(sources())
PACKAGES = {package for package, _, _ in SOURCES}


def known(code: str, own: str) -> set[str]:
    """Return the other packages of ours that some code names, in an import or in full."""
    named = (name.split(".") for name in re.findall(r"\b[a-z]\w*(?:\.[a-z]\w*)+", code))
    prefixes = ([".".join(parts[:n]) for n in range(len(parts), 0, -1)] for parts in named)
    found = {next((p for p in longest_first if p in PACKAGES), own) for longest_first in prefixes}
    return found - {own}


def height(package: str) -> int:
    return 2 if package in ABOVE else 1 if package.startswith(ADAPTER) else 0


def test_no_package_knows_one_above_it() -> None:
    assert PACKAGES >= ABOVE | RULING
    assert [
        f"{path.relative_to(ROOT)} -> {other}"
        for package, path, code in SOURCES
        for other in known(code, package)
        if height(other) > height(package)
    ] == []


def test_packages_know_each_other_in_no_circle() -> None:
    graph: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for package, _, code in SOURCES:
        graph[package] |= known(code, package)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(" <- ".join(circle.args[1])) from None


def test_the_adapter_rules_in_two_rooms_only() -> None:
    assert [
        str(path.relative_to(ROOT))
        for package, path, code in SOURCES
        if package.startswith(ADAPTER) and package not in RULING
        if re.search(r"\bVerdict\b", code)
    ] == []
