"""Which annexes' suites `.ci/run` adds to `make test`. Needs no Spark."""

from __future__ import annotations

import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.kit.tree import ROOT
from tools import annexes

ALL = list(annexes.ANNEXES)


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    ran = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)
    return ran.stdout.decode()


def commit(folder: Path, file: str) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text(file, encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", file)


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """A repository whose branch main has two commits."""
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for file in ("README.md", "docs/limits.md"):
        commit(folder, file)
    return folder


def clone(main: Path, *options: str) -> Path:
    folder = main.parent / "clone"
    git(main, "clone", "--quiet", *options, main.as_uri(), str(folder))
    return folder


def test_each_glob_names_a_file_and_each_annex_a_folder() -> None:
    files = git(ROOT, "ls-files").splitlines()
    for annex, globs in annexes.ANNEXES.items():
        assert (ROOT / "tests" / annex / "__init__.py").exists()
        stale = [glob for glob in globs if not any(fnmatchcase(file, glob) for file in files)]
        assert stale == []


def test_the_makefile_knows_the_annexes() -> None:
    assert f"ANNEXES := {' '.join(ALL)}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("README.md", []),
        ("jvm/rules/src/main/scala/io/interlock/rules/Judge.scala", []),
        ("jvm/postgres/src/main/resources/io/interlock/x.sql", ["postgres"]),
        ("tests/storage/s3.py", ["storage", "demo"]),
        ("python/interlock/demo/jobs.py", ["demo"]),
        ("docs/recipes.md", ["recipes"]),
        ("jvm/coordinator/src/main/scala/io/interlock/X.scala", ["postgres", "storage"]),
        ("build.sbt", ALL),
    ],
)
def test_annexes_that_a_file_needs(file: str, expected: list[str]) -> None:
    assert annexes.needed(["docs/limits.md", file]) == expected


def test_a_branch_is_compared_with_where_it_left_main(main: Path) -> None:
    branch = clone(main)
    for file in ("a", "b"):
        commit(branch, file)
    (branch / "README.md").write_text("not committed", encoding="utf-8")
    commit(main, "c")
    git(branch, "fetch", "--quiet")
    assert annexes.changed(branch) == ["README.md", "a", "b"]


def test_on_main_several_commits_may_be_new(main: Path) -> None:
    assert annexes.changed(clone(main)) is None


def test_without_a_remote_or_a_repository_git_cannot_tell(main: Path, tmp_path: Path) -> None:
    assert annexes.changed(main) is None
    assert annexes.changed(tmp_path) is None


def test_all_are_needed_where_git_cannot_tell_or_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed() -> list[str]:
        annexes.main()
        return capsys.readouterr().out.split()

    monkeypatch.delenv("CI_ALL", raising=False)
    monkeypatch.setattr(annexes, "changed", lambda root: [])
    assert printed() == []
    monkeypatch.setattr(annexes, "changed", lambda root: None)
    assert printed() == ALL
    monkeypatch.setattr(annexes, "changed", lambda root: [])
    monkeypatch.setenv("CI_ALL", "1")
    assert printed() == ALL
