"""The generated documentation: docs/policies.md and docs/errors.md.

It comes from the resources that the jar reads; neither Spark nor the jar is needed.
"""

from __future__ import annotations

from pathlib import Path

from tools.docs import errors, policies
from tools.docs.resources import read_catalogue, read_policies


def pages() -> dict[Path, str]:
    """Return every file as it must be, by its path in the repository."""
    return {
        Path("docs/policies.md"): policies.page(read_policies()),
        Path("docs/errors.md"): errors.page(read_catalogue()),
    }
