"""The cases that the lab can run: two statements, a table, and the expected result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from interlock.lab import bodies
from interlock.lab.example import PLAIN, Example
from interlock.lab.model import (
    COMPACTIONS,
    Body,
    Outcome,
    Rows,
    error_of,
    in_order,
    rows_after,
)
from interlock.lab.placement import files_after


@dataclass(frozen=True)
class Case:
    """Two concurrent jobs and the documents' answer.

    Attributes:
        id: the document's name for it, such as D7 or P4, with a suffix for a variant
        policy: the table's policy, None for stock Delta's behaviour
        earlier: the statement that commits first
        later: the statement that would commit second
        outcome: the expected outcome
        example: the table
        deletion_vectors: the table's setting
        sessions: 1 if both jobs share the session, 2 if each has one of its own
        last_version: the table's version at the end, if it is not 4 (two jobs commit) or 3 (one
            commits)
        raises: the error of the later job, if it fails and the model does not know the class

    """

    id: str
    policy: str | None
    earlier: Body
    later: Body
    outcome: Outcome
    example: Example = PLAIN
    deletion_vectors: Literal["on", "off"] = "on"
    sessions: Literal[1, 2] = 1
    last_version: int | None = None
    raises: str = ""

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties of its table."""
        vectors = "true" if self.deletion_vectors == "on" else "false"
        policy = {} if self.policy is None else {"interlock.policy": self.policy}
        return {"delta.enableDeletionVectors": vectors, **policy}

    @property
    def rows(self) -> Rows:
        """Return the rows that the table must have in the end."""
        if self.outcome is Outcome.REFUSED:
            return in_order(self.example.rows)
        return rows_after(self.earlier, self.later, self.example.rows, self.outcome)

    @property
    def error(self) -> str | None:
        """Name the class of `interlock.errors` that the later job must raise."""
        if self.outcome is not Outcome.FAIL:
            return None
        return self.raises or error_of(self.earlier, self.later)

    @property
    def history(self) -> dict[int, Rows]:
        """Return the rows that each version from 1 on must have."""
        states = [*self.example.history]
        if self.outcome is not Outcome.REFUSED:
            states.append(self.earlier.effect(self.example.rows))
        if self.outcome is Outcome.BOTH:
            states.append(self.rows)
        states = states[: self.last_version]
        return {version: in_order(rows) for version, rows in enumerate(states, start=1)}

    @property
    def changes(self) -> frozenset[int]:
        """Return the versions that change rows: all but those of compactions and empty jobs."""
        history = {0: (), **self.history}
        return frozenset(v for v in self.history if history[v] != history[v - 1])

    @property
    def files(self) -> int:
        """Return the number of files that the table must have in the end."""
        return files_after(
            self.earlier, self.later, self.example.history, self.outcome, self.deletion_vectors
        )


def on_stock(case: Case) -> Case:
    """Return the case on a table without a policy, which only OPTIMIZE compacts."""
    earlier, later = (
        bodies.optimize(body.kind) if body.kind in COMPACTIONS else body
        for body in (case.earlier, case.later)
    )
    return replace(case, policy=None, earlier=earlier, later=later)
