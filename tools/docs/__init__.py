"""The generated documentation: docs/policies.md, docs/errors.md and the matrices in README.md.

It comes from the resources that the jar reads; neither Spark nor the jar is needed.
"""

from __future__ import annotations

from pathlib import Path

from tools.docs import errors, policies
from tools.docs.resources import ROOT, read_catalogue, read_policies


def pages() -> dict[Path, str]:
    """Return every file as it must be, by its path in the repository."""
    known = read_policies()
    readme = ROOT.joinpath("README.md").read_text(encoding="utf-8")
    return {
        Path("docs/policies.md"): policies.page(known),
        Path("docs/errors.md"): errors.page(read_catalogue()),
        Path("README.md"): policies.with_matrices(readme, known),
    }
