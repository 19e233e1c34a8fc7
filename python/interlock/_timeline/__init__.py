"""A table's jobs on one page: what each read, whether it committed, and which jobs it passed.

`jobs` makes jobs of the records and `page` writes them into `page.html` as JSON. In the browser
`layout.js` places them, `drawing.js` draws them, and `page.js` answers the reader.
"""

from __future__ import annotations

from interlock._timeline.page import page

__all__ = ["page"]
