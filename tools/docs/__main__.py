"""Write the generated documentation: `make docs`."""

from __future__ import annotations

from tools.docs import pages
from tools.docs.resources import ROOT


def main() -> None:
    """Write the files that have changed."""
    for path, text in pages().items():
        target = ROOT / path
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
