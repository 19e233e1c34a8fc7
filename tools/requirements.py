"""Print the requirements of the named extras in pyproject.toml, one per line.

The set-up needs them before the first wheel can be built: the launcher that builds the jar comes
out of pyspark's own jars.
"""

from __future__ import annotations

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib


def main(names: list[str]) -> None:
    """Print the requirements of all these extras."""
    text = Path(__file__).parent.parent.joinpath("pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    print(*(requirement for name in names for requirement in extras[name]), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
