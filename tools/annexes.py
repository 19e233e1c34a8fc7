"""Which annexes' suites a change needs: `make test ALSO="$(python3 tools/annexes.py)"`.

An annex is what a reader of the product may skip; its tests have a folder of their own below
`tests`. They are needed where the branch has changed them, or what they stand on; all of them with
CI_ALL=1, and where Git cannot tell what has changed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What all annexes stand on, and what those that order commits do. `*` also stands for `/`.
ALL = ("build.sbt", "project/*", "constraints.txt", "pyproject.toml", "conftest.py", "tests/kit/*")
COMMITS = (
    "jvm/coordinator/src/main/*",
    "jvm/spark/src/main/*/spark/commits/*",
    "jvm/spark/src/main/*/delta/interlock/log/*",
    "jvm/spark/src/main/*/delta/interlock/commit/*",
    "jvm/spark/src/main/*/delta/interlock/statement/*",
    "integration/[!t]*",  # the helpers there, not the tests
)
# Folders below `tests`, and the files whose change needs them.
ANNEXES = {
    "postgres": (
        "tests/postgres/*",
        "jvm/postgres/*",
        "python/interlock/_commands/coordinator.py",
        *COMMITS,
        *ALL,
    ),
    "storage": ("tests/storage/*", *COMMITS, *ALL),
    "demo": ("tests/demo/*", "tools/demo_on_s3.py", "python/interlock/demo/*", *ALL),
    "recipes": ("tests/recipes/*", "docs/recipes.md", *ALL),
}


def needed(changed: Iterable[str]) -> list[str]:
    """Return the annexes that stand on one of some files."""
    files = list(changed)
    return [
        annex
        for annex, globs in ANNEXES.items()
        if any(fnmatchcase(file, glob) for file in files for glob in globs)
    ]


def changed(root: Path) -> list[str] | None:
    """List the files that differ from the base of the branch, or from the commit before on main.

    None if Git cannot tell, as in a clone of one commit.
    """

    def git(*arguments: str) -> str:
        # The clone may belong to another user, as where CI checks it out.
        command = ["git", "-c", "safe.directory=*", *arguments]
        return subprocess.run(
            command, cwd=root, check=True, capture_output=True, text=True
        ).stdout.strip()

    try:
        head, base = git("rev-parse", "HEAD"), git("rev-parse", "HEAD^")
        if git("branch", "--remotes", "--list", "origin/main"):
            fork = git("merge-base", "origin/main", "HEAD")
            base = base if fork == head else fork
        return git("diff", "--name-only", "--no-renames", base).splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None


def main() -> None:
    """Print the annexes that are needed, in one line."""
    files = None if os.environ.get("CI_ALL") == "1" else changed(ROOT)
    print(*(ANNEXES if files is None else needed(files)))


if __name__ == "__main__":
    main()
