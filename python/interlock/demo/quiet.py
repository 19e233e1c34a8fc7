"""Keeps what Spark's process writes to standard error out of the demo's report."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def spark_writes_to(log: Path) -> Iterator[None]:
    """Let a JVM that is started in this block write to a file for as long as it lives.

    If the block fails, and was not interrupted, the file's text goes to standard error.
    """
    sys.stderr.flush()
    own = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    except Exception:
        os.write(own, log.read_bytes())
        raise
    finally:
        os.dup2(own, 2)
        os.close(own)
