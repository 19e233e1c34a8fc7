"""Build hook: a wheel carries jars of its own version only, at most one for each Spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class OwnJarsHook(BuildHookInterface[Any]):
    """Refuses to build without a jar; `make wheel` puts all of them into their place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compare `python/interlock/jars/` with the jars that belong there."""
        right = re.compile(
            rf"interlock-spark_4\.[012]_2\.13-{re.escape(self.metadata.version)}\.jar"
        )
        jars = Path(self.root, "python", "interlock", "jars")
        found = sorted(jar.name for jar in jars.glob("*.jar"))
        if not found or not all(right.fullmatch(name) for name in found):
            raise RuntimeError(
                f"python/interlock/jars must hold jars of version {self.metadata.version} and no "
                f"other, but it holds {', '.join(found) or 'none'}: run `make wheel`."
            )
