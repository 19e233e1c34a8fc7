"""A table's jobs on one page: who read what, who committed, who lost, who passed whom.

`jobs` makes bars of the records, `layout` places them, `page` writes the HTML with the style and
the script beside it.
"""

from __future__ import annotations

from interlock.timeline.page import page

__all__ = ["page"]
