"""Markdown, as far as the generated pages need it."""

from __future__ import annotations


def page_of(*parts: str) -> str:
    """Join the parts of a page, with an empty line between them."""
    return "\n\n".join(parts) + "\n"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Draw a table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])
