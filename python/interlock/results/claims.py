"""What `Table.claims` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from interlock.results._shown import Records


@dataclass(frozen=True)
class ClaimRecord:
    """A claim on a table.

    Attributes:
        claim: its id
        owner: user and application
        operation_class: the class of the job that it protects; None if it protects any job of a
            session
        partitions: values of partition columns, as text; empty for the whole table
        since: when it was asked for, in UTC
        until: when it ends at the latest, in UTC; None while it waits for an earlier claim

    """

    claim: str
    owner: str
    operation_class: str | None
    partitions: tuple[Mapping[str, str | None], ...]
    since: datetime
    until: datetime | None


class Claims(Records[ClaimRecord]):
    """The claims on a table, oldest first."""

    record_class = ClaimRecord
