"""Build hook: a wheel carries exactly one jar, the one of its own version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class OneJarHook(BuildHookInterface[Any]):
    """Refuses to build without the jar; `make jar` puts it into its place."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compare `python/interlock/jars/` with the one jar that belongs there."""
        right = f"interlock-spark_4.2_2.13-{self.metadata.version}.jar"
        jars = Path(self.root, "python", "interlock", "jars")
        found = sorted(jar.name for jar in jars.glob("*.jar"))
        if found != [right]:
            raise RuntimeError(
                f"python/interlock/jars must hold {right} and no other jar, but it holds "
                f"{', '.join(found) or 'none'}: run `make jar`, then build again."
            )
