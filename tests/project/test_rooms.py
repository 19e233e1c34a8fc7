"""The rooms of the sources, which package may know which, and where commits are judged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.kit.tree import ROOT

ADAPTER = "org.apache.spark.sql.delta.interlock"
RULING = {f"{ADAPTER}.judging", f"{ADAPTER}.rebase"}
RULES_ELSEWHERE = {
    "Conflicts.scala": "the error of a job that Delta or the log has failed before the judge",
    "RejectedCommit.scala": "the record of a conflict that a check of Delta's has found",
}
CONSTANT = r'(""".*?"""|"(?:\\.|[^"\\\n])*"|\'\\?.\')'
COMMENT = r"/\*.*?\*/|//[^\n]*"
BRACES = r"(?:import\s+)?([\w.]+)\.\{([^}]*)\}"
IMPORT = r"import\s+(?:static\s+)?([\w.*]+)(?:\s*=>\s*(\w+))?"
# Names that nothing stands before, so that no method of a value is taken for a package.
DOTTED = r"(?<![\w.])(?:_root_\.)?([a-z]\w*(?:\.\w+)+)"
# A class, object or trait that stands by itself in its file.
MODIFIER = r"(?:(?:private|protected)(?:\[\w+\])? |(?:final|sealed|abstract|case|public) )*"
TOP = rf"(?m)^{MODIFIER}(?:class|object|trait|interface) (\w+)"
DECISION = r"\b(?:Verdict|Ruling)\b|\bJudge(?:\.| =>)|\bConflict(?:\(|\.apply| =>)"


def sources() -> Iterator[tuple[str, Path, str]]:
    """Yield package, path and code of each file, without its comments and its package clause."""
    for path in sorted(ROOT.glob("jvm/*/src/main/**/*")):
        if path.suffix in (".scala", ".java"):
            package, code = path.read_text("utf-8").removeprefix("package ").split("\n", 1)
            yield package.rstrip(";"), path, without_comments(code)


def without_comments(code: str) -> str:
    return re.sub(f"{CONSTANT}|{COMMENT}", lambda found: found[1] or "", code, flags=re.DOTALL)


def rows() -> Iterator[list[str]]:
    """Yield the packages of each row of CONTRIBUTING's table."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for line in text.split("| packages | contents |\n")[1].split("\n\n")[0].splitlines()[1:]:
        within, _, names = line.split("|")[1].rpartition(":")
        within = within.strip(" `").replace("adapter", ADAPTER)
        yield [f"{within}.{name}".lstrip(".") for name in re.findall(r"`([\w.]+)`", names)]


SOURCES = list(sources())
PACKAGES = {package for package, _, _ in SOURCES}
ROWS = list(rows())


def inside(package: str) -> dict[str, str]:
    """Return the first names that lead from a package to ours in it, with the full ones."""
    start = f"{package}."
    firsts = {name[len(start) :].split(".")[0] for name in PACKAGES if name.startswith(start)}
    return {first: start + first for first in firsts}


def one_by_one(braces: re.Match[str]) -> str:
    return "".join(f"\nimport {braces[1]}.{name.strip()}" for name in braces[2].split(","))


def known(code: str, own: str) -> set[str]:
    """Return the other packages of ours that some code names, in an import or elsewhere."""
    code = re.sub(BRACES, one_by_one, code)
    short = inside(own)

    def full(name: str) -> str:
        first, dot, rest = name.partition(".")
        return short.get(first, first) + dot + rest

    for name, alias in re.findall(IMPORT, code):
        parent, _, last = full(name).rpartition(".")
        short |= inside(parent) if last in ("_", "*") else {alias or last: f"{parent}.{last}"}
    return {package_of(full(name)) for name in re.findall(DOTTED, code)} - {own, ""}


def package_of(name: str) -> str:
    while name and name not in PACKAGES:
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize(
    "code",
    [
        f"import {ADAPTER}.judging.X",
        f"import {ADAPTER}.{{\n  log,\n  judging\n}}",
        f"import {ADAPTER}.{{judging => j}}",
        f"import {ADAPTER}.{{judging => j, _}}",
        f"import {ADAPTER}\nval x = interlock.judging.X",
        "import org.apache.spark.sql.delta._\nimport interlock.judging.X",
        "import org.apache.spark.sql.delta._\nval x = interlock.judging.X",
        "import org.apache.spark.sql.{delta => d}\nval x = d.interlock.judging.X",
        "import org.apache.spark.sql._\nimport delta._\nimport interlock.{judging => j}",
        f"val x = _root_.{ADAPTER}.judging.X",
        f'val x = Class.forName("{ADAPTER}.judging.X")',
        f"import {ADAPTER}.judging.X;",
        f"import static {ADAPTER}.judging.X.made;",
        f"import {ADAPTER}.judging.*;",
    ],
)
def test_a_package_is_found_however_it_is_named(code: str) -> None:
    assert known(code, f"{ADAPTER}.log") == {f"{ADAPTER}.judging"}


def test_a_package_is_found_in_the_one_that_contains_it() -> None:
    assert known("postgres.Store", "io.interlock.coordinator") == {
        "io.interlock.coordinator.postgres"
    }


def test_a_value_is_no_package() -> None:
    code = "import org.apache.spark.sql.delta._\njob.interlock.judging.end(); judging.end()"
    assert known(code, f"{ADAPTER}.log") == set()


def test_comments_are_not_read() -> None:
    code = 'a /* b\n c */ "*/*" // d "\n\'"\' // e\n"s3://f" """\n//g"""'
    assert without_comments(code) == 'a  "*/*" \n\'"\' \n"s3://f" """\n//g"""'


def test_scala_and_java_are_read() -> None:
    assert {path.suffix for _, path, _ in SOURCES} == {".scala", ".java"}


def test_the_table_has_each_package_once() -> None:
    assert sorted(package for row in ROWS for package in row) == sorted(PACKAGES)


def test_no_package_knows_one_above_it() -> None:
    row_of = {package: n for n, row in enumerate(ROWS) for package in row}
    assert [
        f"{path.relative_to(ROOT)} -> {other}"
        for package, path, code in SOURCES
        for other in known(code, package)
        if row_of[other] < row_of[package]
    ] == []


def test_packages_know_each_other_in_no_circle() -> None:
    graph: dict[str, set[str]] = {package: set() for package in PACKAGES}
    for package, _, code in SOURCES:
        graph[package] |= known(code, package)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(" <- ".join(circle.args[1])) from None


@pytest.mark.parametrize(
    "code",
    [
        "Verdict.Fail",
        "import io.interlock.rules.{Verdict => V}",
        "new Ruling(v, None)",
        "Judge.judge(policy, winner, attempt)",
        "import io.interlock.rules.Judge._",
        "import io.interlock.rules.{Judge => J}",
        "Conflict(kind)",
        "new Conflict(kind)",
        "Conflict.apply(kind)",
        "import io.interlock.rules.{Conflict => C}",
    ],
)
def test_a_decision_is_found(code: str) -> None:
    assert re.search(DECISION, code)


def test_commits_are_judged_in_two_packages_only() -> None:
    assert {
        path.name
        for package, path, code in SOURCES
        if path.is_relative_to(ROOT / "jvm" / "spark") and package not in RULING
        if re.search(DECISION, code)
    } == set(RULES_ELSEWHERE)


def test_the_python_package_does_not_import_its_lab_or_demo() -> None:
    package = ROOT / "python" / "interlock"
    annexes = {package / "lab", package / "demo"}
    importing = re.compile(r"^( *)(?:from|import) interlock(?:\.| import )(?:lab|demo)\b", re.M)
    found = {
        file.name: importing.findall(file.read_text("utf-8"))
        for file in package.rglob("*.py")
        if annexes.isdisjoint(file.parents)
    }
    # The command `interlock lab` does, but only when it runs.
    assert {name for name, indents in found.items() if indents} == {"lab.py"}
    assert all(found["lab.py"])


def files_known(spark: list[tuple[str, Path, str]]) -> dict[Path, set[Path]]:
    """Return the other files of jvm/spark that each one names, in its package or by an import."""
    homes = {
        (package, name): path for package, path, code in spark for name in re.findall(TOP, code)
    }

    def named(own: str, path: Path, code: str) -> Iterator[Path]:
        packages, words = known(code, own) | {own}, set(re.findall(r"\b[A-Z]\w*", code))
        for (package, name), home in homes.items():
            if home != path and package in packages and name in words:
                yield home

    return {
        path: set(named(package, path, re.sub(CONSTANT, '""', code, flags=re.DOTALL)))
        for package, path, code in spark
    }


def test_files_know_each_other_in_no_circle() -> None:
    # Each folder `scala-spark-*` holds other forms of the same files.
    spark = [
        source
        for source in SOURCES
        if source[1].is_relative_to(ROOT / "jvm" / "spark" / "src" / "main")
        if source[1].relative_to(ROOT / "jvm" / "spark" / "src" / "main").parts[0]
        in ("scala", "java", "scala-spark-4.1-4.2", "scala-spark-4.1-4.3", "scala-spark-4.2-4.3")
    ]
    try:
        TopologicalSorter(files_known(spark)).prepare()
    except CycleError as circle:
        raise AssertionError(" <- ".join(path.name for path in circle.args[1])) from None
