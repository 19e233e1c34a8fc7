"""What the web site has beside docs/: the pages of the top folder, and a timeline."""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.docs.timeline import example

_ROOT = Path(__file__).resolve().parents[2]
_PAGES = {name: name.lower() for name in ("CONTRIBUTING.md", "CHANGELOG.md")}
_PAGES["README.md"] = "index.md"
_LOADED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the timeline and the pages of the top folder, with links to the site's pages."""
    for source, page in _PAGES.items():
        text = (_ROOT / source).read_text(encoding="utf-8")
        text = re.sub(r'(\]\(|=")docs/', r"\1", text)
        for other, target in _PAGES.items():
            text = text.replace(f"]({other}", f"]({target}")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "timeline.html", content=example()))
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> None:
    """Refuse a page that loads anything from another server."""
    if found := _LOADED.search(output):
        raise PluginError(f"{page.file.src_path} loads from the network: {found[0]}")
