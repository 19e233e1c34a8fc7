"""The results of `Table.conflicts` and `Table.explain`: records of rejected and rebased commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape

from interlock.results._shown import Records, Shown


@dataclass(frozen=True)
class ConflictRecord:
    """A commit that was rejected, or rebased over others. Unknown values are None or empty.

    Attributes:
        time: when it was rejected or committed, in UTC
        outcome: REJECTED or REBASED
        txn_id: the id of its transaction
        operation: what SHOW HISTORY calls such an operation, as "INSERT INTO"
        operation_class: its class under the table's policy
        policy: the policy that it was judged by
        read_version: the version that it had read
        version: the version that a rebased commit made
        winners: the winners: the version that it lost against, or those that it passed
        rules: for each of them the cell of the policy that decided; None where one of Delta's own
            checks did
        verdicts: for each of them the verdict of that cell
        winner_operation: the operation of the commit that it lost against
        winner_class: the class of that commit
        winner_txn_id: the transaction of that commit
        scope: the partitions in which they overlap
        files: files in which they overlap, at most 5
        rows: rows in which they overlap, as JSON objects, at most 3
        source_rows: rows of the source that match them, likewise, for a MERGE or an INSERT of
            what is absent
        predicate: its predicate that selected the rows or could not be decided, as SQL
        kind: Delta's name for the conflict, such as ConcurrentAppend
        condition: the condition in the error catalogue, Interlock's or Delta's
        message: the error's message
        phase: "before writing" if it was stopped before it wrote, None at its commit
        user: who ran it
        session: the session that ran it
        application: Spark's id of the application
        millis: of a rejected commit since its transaction began, of a rebased one in judging and
            rebasing
        millis_saved: if it was stopped before it wrote: how long the latest commit of the same
            operation took after its scan (with it where the scan writes deletion vectors), if one
            of the 20 versions before has it
        bytes: of data files: written in vain, or not written again
        block: the id of the atomic block whose commit it was, if it was one

    """

    time: datetime
    outcome: str
    txn_id: str
    operation: str | None
    operation_class: str | None
    policy: str | None
    read_version: int | None
    version: int | None
    winners: tuple[int, ...]
    rules: tuple[str | None, ...]
    verdicts: tuple[str | None, ...]
    winner_operation: str | None
    winner_class: str | None
    winner_txn_id: str | None
    scope: str | None
    files: tuple[str, ...]
    rows: tuple[str, ...]
    source_rows: tuple[str, ...]
    predicate: str | None
    kind: str | None
    condition: str | None
    message: str | None
    phase: str | None
    user: str | None
    session: str | None
    application: str | None
    millis: int | None
    millis_saved: int | None
    bytes: int | None
    block: str | None


class Conflicts(Records[ConflictRecord]):
    """The rejected and rebased commits of a table, newest first."""

    record_class = ConflictRecord
    printed_times = "seconds"
    printed = (
        "time", "txn_id", "outcome", "operation", "winners", "winner_operation",
        "rules", "version", "read_version", "class", "verdicts",
    )  # fmt: skip


@dataclass(frozen=True)
class Explanation(ConflictRecord, Shown):
    """A record, and how both jobs could have succeeded; `str` and notebooks show the text.

    Attributes:
        source: the document of the policy
        policies: policies under which two such jobs always both succeed
        policies_by_files: policies under which they do if they touch different files
        policies_by_rows: policies under which they do if they touch different rows
        layout: the predicate, the partitioning or the order that keeps such jobs apart
        retry_helps: whether the statement may succeed when it is run again; None for a rebased
            commit, for which the four values above are empty
        text: the whole explanation as text

    """

    source: str | None
    policies: tuple[str, ...]
    policies_by_files: tuple[str, ...]
    policies_by_rows: tuple[str, ...]
    layout: str | None
    retry_helps: bool | None
    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"
