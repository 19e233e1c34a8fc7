"""Pages whose examples run: each block of SQL or Python, in order, in one session.

A `text` block directly after one of them is its output: the rows of the last statement, Python's
printed output, or the message of the error that ended it. Times and ids differ from run to run and
are not compared. A block after `<!-- not run -->` is not run.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import interlock
from interlock._tabular import grid
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

_BLOCK = re.compile(r"(<!-- not run -->\n)?```(sql|python|text)\n(.*?)```\n", re.DOTALL)
_CHANGING = (
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"(?<=#)\d+",
    r"(?<=[Bb]y )[^\s,)]+",
    r"local-\d+",
    r"\d+(?= ms of)",
)


@dataclass(frozen=True)
class Example:
    """A block of code and its output.

    Attributes:
        code: the code
        is_sql: whether it is SQL, not Python
        output: the text of the block after it, None if there is none
        span: the position of that text on the page

    """

    code: str
    is_sql: bool
    output: str | None
    span: tuple[int, int]


def examples(page: str) -> Iterator[Example]:
    """Find the blocks that run."""
    blocks = list(_BLOCK.finditer(page))
    for block, after in pairwise([*blocks, None]):
        assert block is not None
        if block[1] or block[2] == "text":
            continue
        is_output = after is not None and after[2] == "text" and after.start() - block.end() <= 1
        output = after if is_output else None
        yield Example(
            block[3],
            block[2] == "sql",
            output[3] if output else None,
            output.span(3) if output else (0, 0),
        )


class Reader:
    """Runs a page's examples; Python keeps its names from block to block."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._names: dict[str, Any] = {"spark": spark, "interlock": interlock}

    def output(self, example: Example) -> str:
        """Run an example and return what it shows."""
        run = self._sql if example.is_sql else self._python
        try:
            return run(example.code)
        except PySparkException as error:
            if example.output is None:
                raise
            return str(error).partition("\n\nJVM stacktrace")[0].rstrip() + "\n"

    def _sql(self, code: str) -> str:
        shown = [self._spark.sql(statement) for statement in _statements(code)]
        return _as_text(shown[-1])

    def _python(self, code: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self._names)
        return printed.getvalue()


def checked(page: Path, spark: SparkSession) -> str:
    """Run a page and return it as it would be with the outputs of this run."""
    text = page.read_text(encoding="utf-8")
    reader = Reader(spark)
    parts, end = [], 0
    for example in examples(text):
        output = reader.output(example)
        if example.output is not None:
            start, stop = example.span
            kept = masked(output) == masked(example.output)
            parts += [text[end:start], example.output if kept else output]
            end = stop
    return "".join([*parts, text[end:]])


def masked(text: str) -> str:
    """Leave out texts that differ from run to run, and the blanks whose number depends on them."""
    for changing in _CHANGING:
        text = re.sub(changing, "*", text)
    return re.sub(r"-{2,}", "--", re.sub(r" +", " ", text))


def _statements(code: str) -> list[str]:
    return [part.strip() for part in re.split(r";[ ]*\n", code) if part.strip()]


def _as_text(frame: DataFrame) -> str:
    found = frame.collect()
    if not frame.columns or not found:
        return ""
    rows = [[_shown(value) for value in row] for row in found]
    return "\n".join(grid([frame.columns, *rows])) + "\n"


def _shown(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value)
