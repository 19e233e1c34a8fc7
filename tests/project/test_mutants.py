"""The list of mutations and the command that runs them. Needs neither Spark nor sbt."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.mutants import copies, mutations
from tools.mutants.__main__ import ROOT
from tools.mutants.mutations import Mutation, MutationError
from tools.mutants.pytests import Pytests
from tools.mutants.sbt import BuildError, HungError, Said, Sbt

ENTRY = """
[[mutation]]
name = 'less is more'
file = 'Rules.scala'
from = 'a < b'
to = 'a > b'
test = 'rules/RulesSuite'
"""
LESS = Mutation("less is more", "Rules.scala", "a < b", "a > b", "rules/RulesSuite")


def test_the_list_fits_the_sources() -> None:
    listed = mutations.read(mutations.LIST.read_text(encoding="utf-8"))
    mutations.located(listed, ROOT)
    for mutation in listed:
        if mutation.suite is not None:
            project, suite = mutation.suite
            assert list(ROOT.glob(f"jvm/{project}/src/test/**/{suite}.scala")), mutation.name
        else:
            file, *names = mutation.test.partition("[")[0].split("::")
            text = (ROOT / file).read_text(encoding="utf-8")
            assert all(re.search(rf"(class|def) {name}\b", text) for name in names), mutation.name


def test_an_entry_is_read() -> None:
    assert mutations.read(ENTRY) == [LESS]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("to =", "too =", "must have the keys file, from, name, test, to"),
        ("'a > b'", "'a < b'", "changes nothing"),
        ("rules/RulesSuite", "RulesSuite", "neither project/Suite nor a pytest"),
        ("Rules.scala", "rules.py", "a Scala suite does not test rules.py"),
        ("\n[[mutation]]", ENTRY + "[[mutation]]", "two mutations are called 'less is more'"),
    ],
)
def test_a_wrong_entry_is_refused(old: str, new: str, problem: str) -> None:
    with pytest.raises(MutationError, match=problem):
        mutations.read(ENTRY.replace(old, new, 1))


def test_a_mutation_replaces_its_text() -> None:
    assert LESS.mutated("if (a < b) b") == "if (a > b) b"


@pytest.mark.parametrize(("text", "problem"), [("a <= b", "is not"), ("a < b < a < b", "2 times")])
def test_a_stale_mutation_is_refused(text: str, problem: str) -> None:
    with pytest.raises(MutationError, match=f"'less is more' is stale: its text .*{problem}"):
        LESS.mutated(text)


def source(root: Path, project: str, text: str) -> Path:
    file = root / "jvm" / project / "src" / "main" / "scala" / "Rules.scala"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_a_file_is_found_by_its_last_name(tmp_path: Path) -> None:
    file = source(tmp_path, "rules", "a < b")
    assert mutations.located([LESS], tmp_path) == {"Rules.scala": file}


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
    assert said.failed_test == "JudgeSuite: one of two"
    assert Said(False, ["[error] Compilation failed"]).failed_test is None


# Its first line is the setting that sbt is started with; it does not answer to the last.
ECHO = """
input()
for line in iter(input, "hang"):
    print(f"[info] {line}\\n[success] Total time: 0 s")
input()
"""


def test_sbt_answers_until_it_hangs_and_is_started_again(tmp_path: Path) -> None:
    sbt = Sbt([sys.executable, "-u", "-c", ECHO], tmp_path)
    assert sbt.run("test", 5).lines[0] == "[info] test"
    with pytest.raises(HungError):
        sbt.run("hang", 0.2)
    assert sbt.run("again", 5).ok
    sbt.close()


def test_an_sbt_that_ends_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="sbt has ended:\nno memory"):
        Sbt([sys.executable, "-c", "print('no memory')"], tmp_path).run("test", 5)


def test_what_pytest_tells(tmp_path: Path) -> None:
    (tmp_path / ".build").mkdir()
    (tmp_path / "test_it.py").write_text(
        "import pytest, time\n"
        "@pytest.fixture\ndef broken(): raise OSError\n"
        "def test_passes(): pass\n"
        "def test_fails(): assert False\n"
        "def test_fails_too(): assert False\n"
        "def test_cannot_begin(broken): pass\n"
        "def test_hangs(): time.sleep(60)\n",
        encoding="utf-8",
    )
    pytests = Pytests(Path(sys.executable), tmp_path)

    def failed(*names: str, limit: float = 30, to_the_end: bool = False) -> list[str]:
        tests = [f"test_it.py::test_{name}" for name in names]
        return pytests.run(tests, limit, to_the_end=to_the_end).failed

    assert failed("passes") == []
    assert failed("fails", "fails_too") == ["test_it: test_fails"]
    assert len(failed("fails", "fails_too", to_the_end=True)) == 2
    with pytest.raises(BuildError, match="OSError"):
        failed("cannot_begin")
    with pytest.raises(BuildError, match="not found"):
        failed("is_not_there")
    with pytest.raises(HungError):
        failed("hangs", limit=4)
