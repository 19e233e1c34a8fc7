"""Finds an error of Interlock in a text, if only the text is left of it.

On Spark Connect a Python callback such as foreachBatch's runs in a process of its own. An error
that it raises comes back as the text of its traceback, with the message from the catalogue.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from interlock import _artifacts, errors
from interlock._conversion import kinds

_CONDITION = re.compile(r"\[(INTERLOCK_[A-Z_]+)\] ")
_DELTAS = re.compile(r"\((io\.delta\.exceptions\.\w+)\) (?:\[([A-Z_.]+)\] )?")
_PARAMETER = re.compile(r"<(\w+)>")


class Found(NamedTuple):
    """An error of Interlock, with those attributes that are in the text."""

    kind: type[errors.InterlockError]
    facts: dict[str, Any]


def find(text: str) -> Found | None:
    """Return the first error of Interlock, or conflict of Delta, that `text` quotes."""
    ours = _CONDITION.search(text)
    if ours and ours[1] in _artifacts.error_conditions():
        return _of_catalogue(ours[1], text[ours.start() :])
    deltas = _DELTAS.search(text)
    kind = deltas and kinds.by_class([deltas[1]])
    if not deltas or not kind:
        return None
    message = text[deltas.end() :].partition("\n\n")[0]
    prefix = f"[{deltas[2]}] " if deltas[2] else ""
    return Found(kind, {"message": prefix + message, "condition": deltas[2]})


def _of_catalogue(condition: str, text: str) -> Found:
    entry = _artifacts.error_conditions()[condition]
    sqlstate = entry["sqlState"]
    kind = kinds.by_condition(condition)
    pattern = _pattern(f"[{condition}] " + "\n".join(entry["message"]))
    shown = re.match(rf"{pattern} SQLSTATE: {sqlstate}", text, re.DOTALL)
    known = {"condition": condition, "sqlState": sqlstate}
    if shown is None or not issubclass(kind, errors.ConflictError):
        message = shown[0] if shown else text.partition("\n\n")[0]
        return Found(kind, {"message": message, "condition": condition, "sqlstate": sqlstate})
    facts = errors.conflict_facts({**shown.groupdict(), **known})
    return Found(kind, {"message": shown[0], **facts})


def _pattern(template: str) -> str:
    """Return the regular expression of a message, a group for each of its parameters."""
    seen: set[str] = set()
    pattern = ""
    for number, part in enumerate(_PARAMETER.split(template)):
        if number % 2 == 0:
            pattern += re.escape(part)
        elif part in seen:
            pattern += f"(?P={part})"
        else:
            seen.add(part)
            pattern += f"(?P<{part}>.*?)"
    return pattern
