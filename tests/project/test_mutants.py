"""The list of mutations and the command that runs them. Needs neither Spark nor sbt."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tools.mutants import copies, mutations, runs
from tools.mutants.__main__ import ROOT
from tools.mutants.mutations import Mutation, MutationError
from tools.mutants.pytests import Pytests
from tools.mutants.sbt import BuildError, HungError, Said, Sbt

ENTRY = """
['Rules.scala'.'rules/RulesSuite']
'less is more' = ['a < b', 'a > b']
"""
LESS = Mutation("less is more", "Rules.scala", "a < b", "a > b", "rules/RulesSuite")
ONE = {"test": "rules/RulesSuite: less"}


def test_the_list_fits_the_sources() -> None:
    listed = mutations.read(mutations.LIST.read_text(encoding="utf-8"))
    mutations.located(listed, ROOT)
    assert len({mutation.name for mutation in listed}) == len(listed)
    tests = {mutation.test for mutation in listed if mutation.suite is None}
    for mutation in listed:
        if mutation.suite is not None:
            project, suite = mutation.suite
            (found,) = ROOT.glob(f"jvm/{project}/src/test/**/{suite}.scala")
            if name := mutation.test_of_suite:
                assert f'"{name}"' in found.read_text(encoding="utf-8"), mutation.name
    # None is a variant, which pytest would leave out.
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *tests]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    ids = said.splitlines()
    assert {test for test in tests if not any(found.startswith(test) for found in ids)} == set()


def test_an_entry_is_read() -> None:
    assert mutations.read(ENTRY) == [LESS]
    assert (LESS.suite, LESS.test_of_suite) == (("rules", "RulesSuite"), None)


def test_an_entry_may_name_one_test_of_a_suite() -> None:
    (one,) = mutations.read(ENTRY.replace("RulesSuite", "RulesSuite: less, or not"))
    assert (one.suite, one.test_of_suite) == (("rules", "RulesSuite"), "less, or not")
    assert one.is_quick


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("'a > b'", "'a < b'", "changes nothing"),
        ("rules/RulesSuite", "RulesSuite", "neither project/Suite nor a pytest"),
        ("rules/RulesSuite", "rules/RulesSuite:", "neither project/Suite nor a pytest"),
    ],
)
def test_a_wrong_entry_is_refused(old: str, new: str, problem: str) -> None:
    with pytest.raises(MutationError, match=problem):
        mutations.read(ENTRY.replace(old, new, 1))


@pytest.mark.parametrize(("text", "problem"), [("a <= b", "is not"), ("a < b < a < b", "2 times")])
def test_a_stale_mutation_is_refused(text: str, problem: str) -> None:
    with pytest.raises(MutationError, match=f"'less is more' is stale: its text .*{problem}"):
        LESS.mutated(text)


def source(root: Path, project: str, text: str) -> Path:
    file = root / "jvm" / project / "src" / "main" / "scala" / "Rules.scala"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_all_that_does_not_fit_is_told_at_once(tmp_path: Path) -> None:
    source(tmp_path, "rules", "a < b")
    source(tmp_path, "spark", "a < b")
    missing = Mutation("no rule", "Other.scala", "a", "b", "rules/RulesSuite")
    with pytest.raises(MutationError) as refused:
        mutations.located([LESS, missing], tmp_path)
    assert str(refused.value).splitlines() == [
        "'less is more': 2 files are called Rules.scala",
        "'no rule': 0 files are called Other.scala",
    ]


def test_turns_go_through_the_whole_list() -> None:
    listed = [Mutation(str(n), "f", "a", "b", "rules/RulesSuite") for n in range(7)]
    turns = [[m.name for m in mutations.some(listed, 3, turn)] for turn in range(4)]
    assert turns == [["0", "1", "2"], ["3", "4", "5"], ["6", "0", "1"], ["2", "3", "4"]]
    assert mutations.some(listed, 3, 1) == mutations.some(listed, 3, 1)
    assert len(mutations.some(listed, 100, 5)) == 7


def test_a_copy_is_mutated_and_the_tree_is_not(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    file = source(root, "rules", "a < b")
    (root / "left.class").touch()
    (root / ".gitignore").write_text("*.class\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    copy = copies.Copy(root, tmp_path / "copy")
    copied = copy.folder / file.relative_to(root)
    assert sorted(found.name for found in copy.folder.iterdir()) == [".gitignore", "jvm"]
    with copy.mutated(LESS, copied):
        assert copied.read_text(encoding="utf-8") == "a > b"
    assert copied.read_text(encoding="utf-8") == file.read_text(encoding="utf-8") == "a < b"


def test_the_test_that_failed_is_found_in_what_sbt_says() -> None:
    said = Said(False, ["==> X io.interlock.rules.JudgeSuite.one of two  0.011s munit.Failed"])
    assert said.failed_test() == said.failed_test("one of two") == "JudgeSuite: one of two"
    assert said.failed_test("one") is None
    assert Said(False, ["[error] Compilation failed"]).failed_test() is None


# An sbt in whose builds and tests all is well, but with the mutation it says to a command what its
# argument tells, or nothing.
SCRIPTED = """
import json, pathlib, sys, time
told = json.loads(sys.argv[1])
input()
for command in map(str.strip, sys.stdin):
    if command == "spark/copyJar":
        pathlib.Path("python/interlock/jars").mkdir(exist_ok=True)
        pathlib.Path("python/interlock/jars/it.jar").touch()
    mutated = "a > b" in pathlib.Path("jvm/rules/src/main/scala/Rules.scala").read_text()
    answer = told.get(command) if mutated else None
    if answer == "hang":
        time.sleep(60)
    print(answer or "+ less\\n[success]", "Total time: 0 s")
"""
RULES = "rules/testOnly *.RulesSuite"
ONE_OF_RULES = f'{RULES} -- "*.RulesSuite.less"'
FAILED = "==> X io.RulesSuite.{}  0.011s munit.Failed\n[error]"


@pytest.mark.parametrize(
    ("told", "changes", "outcome"),
    [
        ({}, {}, "SURVIVED rules/RulesSuite"),
        ({RULES: FAILED.format("less")}, {}, "killed by RulesSuite: less"),
        ({RULES: "hang"}, {}, "ERROR rules/RulesSuite, which does not end"),
        ({"rules/Test/compile": "hang"}, {}, "ERROR rules/Test/compile does not end"),
        ({"rules/Test/compile": "[error] no type\n[error]"}, {}, "ERROR [error] no type"),
        (
            {"spark/copyJar": "hang"},
            {"test": "tests/test_it.py"},
            "ERROR spark/copyJar does not end",
        ),
        ({ONE_OF_RULES: FAILED.format("less")}, ONE, "killed by RulesSuite: less"),
        ({ONE_OF_RULES: FAILED.format("more")}, ONE, "ERROR [error] Total time"),
        ({RULES: FAILED.format("less")}, ONE, "SURVIVED rules/RulesSuite: less"),
    ],
)
def test_what_becomes_of_a_mutation(
    told: dict[str, str],
    changes: dict[str, Any],
    outcome: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "tree"
    source(root, "rules", "a < b")
    for name in ("python/interlock/__init__.py", "tests/test_it.py"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("def test_it(): pass\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    copy = copies.Copy(root, tmp_path / "copy")
    sbt = Sbt([sys.executable, "-u", "-c", SCRIPTED, json.dumps(told)], copy.folder)
    monkeypatch.setattr(runs, "LIMIT", 1.0)
    (result,) = runs.Run(copy, sbt, [replace(LESS, **changes)], print).results()
    assert runs.line(result).startswith(f"less is more: {outcome}")


def test_what_pytest_tells(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest, time\n"
        "@pytest.fixture\ndef broken(): raise OSError\n"
        "def test_passes(): pass\n"
        "def test_fails(): assert False\n"
        "def test_fails_too(): assert False\n"
        "def test_cannot_begin(broken): pass\n"
        "def test_hangs(): time.sleep(60)\n"
        "@pytest.fixture\ndef slow(): time.sleep(60)\n"
        "def test_does_not_begin(slow): pass\n",
        encoding="utf-8",
    )
    pytests = Pytests(Path(sys.executable), tmp_path)

    def failed(*names: str, limit: float = 30, to_the_end: bool = False) -> list[str]:
        tests = [f"test_it.py::test_{name}" for name in names]
        return pytests.run(tests, limit, to_the_end=to_the_end)

    assert failed("passes") == []
    assert failed("fails", "fails_too") == ["test_it: test_fails"]
    assert len(failed("fails", "fails_too", to_the_end=True)) == 2
    with pytest.raises(BuildError, match="OSError"):
        failed("cannot_begin")
    with pytest.raises(BuildError, match="not found"):
        failed("is_not_there")
    with pytest.raises(HungError):
        failed("hangs", limit=4)
    with pytest.raises(BuildError, match="test_does_not_begin does not begin"):
        failed("does_not_begin", limit=4)
