"""Print the pinned requirements of all extras in pyproject.toml, with the given version of PySpark.

The set-up needs them before the first wheel can be built: the launcher that builds the jar comes
out of pyspark's own jars.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib


def main(pyspark: str) -> None:
    """Print every requirement of every extra, one per line."""
    text = Path(__file__).parent.parent.joinpath("pyproject.toml").read_text(encoding="utf-8")
    extras = tomllib.loads(text)["project"]["optional-dependencies"]
    lines = "\n".join(requirement for extra in extras.values() for requirement in extra)
    print(re.sub(r"^(pyspark\S*)==.*", rf"\g<1>=={pyspark}", lines, flags=re.MULTILINE))


if __name__ == "__main__":
    main(sys.argv[1])
