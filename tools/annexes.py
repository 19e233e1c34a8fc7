"""Which annexes' suites a change needs: `make test ALSO="$(python3 tools/annexes.py)"`.

An annex is what a reader of the product may skip; its tests have a folder of their own below
`tests`. They are needed where the branch has changed them, or what they stand on; all of them on
main, with CI_ALL=1, and where Git cannot tell what has changed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What all annexes stand on, and what those that order commits do. `*` also stands for `/`.
ALL = (
    "build.sbt",
    "project/*",
    "constraints.txt",
    "pyproject.toml",
    "conftest.py",
    "tests/conftest.py",
    "tests/kit/*",
    "Makefile",
    ".ci/run",
    "tools/annexes.py",
)
COMMITS = (
    "jvm/coordinator/src/main/*",
    "jvm/spark/src/main/*/spark/commits/*",
    "jvm/spark/src/main/*/delta/interlock/log/*",
    "jvm/spark/src/main/*/delta/interlock/commit/*",
    "jvm/spark/src/main/*/delta/interlock/statement/*",
    "jvm/spark/src/main/*/spark/claims/*",
    "jvm/spark/src/main/*/spark/errors/*",
    "jvm/spark/src/main/*/spark/properties/*",
    "jvm/spark/src/main/*/spark/Maintenance.scala",
    "jvm/spark/src/main/resources/*",
    "python/interlock/_*.py",
    "python/interlock/_commands/*",
    "integration/[!t]*",  # the helpers there, not the tests
)
# Folders below `tests`, and the files whose change needs them.
ANNEXES = {
    "postgres": (
        "tests/postgres/*",
        "jvm/postgres/*",
        *COMMITS,
        *ALL,
    ),
    "storage": ("tests/storage/*", *COMMITS, *ALL),
    "demo": (
        "tests/demo/*",
        "tests/storage/s3.py",
        "tools/demo_on_s3.py",
        "python/interlock/demo/*",
        *ALL,
    ),
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
    """List the files that differ from where the branch left main.

    None on main itself, where several commits may have been pushed at once, and if Git cannot tell.
    """

    def git(*arguments: str) -> str:
        # The clone may belong to another user, as where CI checks it out.
        command = ["git", "-c", "safe.directory=*", *arguments]
        return subprocess.run(
            command, cwd=root, check=True, capture_output=True, text=True
        ).stdout.strip()

    try:
        fork = git("merge-base", "origin/main", "HEAD")
        if fork == git("rev-parse", "HEAD"):
            return None
        return git("diff", "--name-only", "--no-renames", fork).splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None


def main() -> None:
    """Print the annexes that are needed, in one line."""
    files = None if os.environ.get("CI_ALL") == "1" else changed(ROOT)
    print(*(ANNEXES if files is None else needed(files)))


if __name__ == "__main__":
    main()
