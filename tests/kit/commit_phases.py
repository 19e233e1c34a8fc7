"""The steps of each commit of a JVM, at which a test can act."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Observer:
    """Calls a Python function at each step of each commit; its exceptions make the step fail."""

    def __init__(self, at: Callable[[str, int], None]) -> None:
        self._at = at

    def at(self, phase: Any, log: str, version: int) -> None:
        self._at(phase.name(), version)

    class Java:
        implements = ("io.interlock.coordinator.CommitPhaseObserver",)


@contextmanager
def observed(jvm: Any, at: Callable[[str, int], None]) -> Iterator[None]:
    """Call `at(phase, version)` at each step of the commits within."""
    phases = jvm.io.interlock.coordinator.CommitPhases
    phases.observe(_Observer(at))
    try:
        yield
    finally:
        phases.observe(None)
