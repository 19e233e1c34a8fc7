"""What `Table.history` and `Table.versions` return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from interlock.results._shown import Records


@dataclass(frozen=True)
class HistoryRecord:
    """One version of a table. What its log does not tell is None; all times are in UTC.

    Attributes:
        version: the ID version: every operation makes one
        time_version: its commit timestamp, if at least one row came or went
        timestamp: the commit timestamp that `TIMESTAMP AS OF` goes by
        operation_class: its class under the table's policy
        policy: the policy that it was committed under
        operation: what the table's history calls it, but for WRITE, which is "INSERT INTO" or
            "INSERT OVERWRITE" here
        operation_parameters: the parameters of that operation
        winners: the versions of other jobs that it passed, oldest first
        rules: for each of them the cell of the policy that let it pass
        verdicts: for each of them what that cell says
        foreign: whether a writer without Interlock made it on a table with a policy
        rows_in: how many rows came into the table
        rows_out: how many rows went out of it
        files_added: how many files it added
        files_removed: how many files it removed
        user: who made it, where its commit tells
        txn_id: the transaction that made it
        read_version: the version that the transaction had read
        block: the id of the atomic block that made it, if one did

    """

    version: int
    time_version: datetime | None
    timestamp: datetime | None
    operation_class: str | None
    policy: str | None
    operation: str | None
    operation_parameters: Mapping[str, str] | None
    winners: tuple[int, ...] | None
    rules: tuple[str | None, ...] | None
    verdicts: tuple[str | None, ...] | None
    foreign: bool | None
    rows_in: int | None
    rows_out: int | None
    files_added: int | None
    files_removed: int | None
    user: str | None
    txn_id: str | None
    read_version: int | None
    block: str | None


class History(Records[HistoryRecord]):
    """The versions of a table, newest first, and what is known of each."""

    record_class = HistoryRecord
    printed = (
        "version", "time_version", "class", "policy", "operation", "winners", "rules",
        "foreign", "rows_in", "rows_out", "files_added", "files_removed",
    )  # fmt: skip


@dataclass(frozen=True)
class VersionRecord:
    """A version of a table with its times, in UTC; attributes as those of `HistoryRecord`."""

    version: int
    time_version: datetime | None
    timestamp: datetime | None
    operation: str | None


class Versions(Records[VersionRecord]):
    """The versions of a table and their times, newest first."""

    record_class = VersionRecord
