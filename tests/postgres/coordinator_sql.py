"""Calls of the coordinator's functions, as values that any session can run."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from psycopg.rows import namedtuple_row

from tests.postgres.postgres import Connection

TABLE = "table-1"
"""The table id which a call has if none is given."""

RELATIONS = ("coordinator", "tables", "commits", "abandoned")


@dataclass(frozen=True)
class Call:
    """A function and its arguments."""

    function: str
    arguments: dict[str, Any]

    def __call__(self, connection: Connection) -> list[Any]:
        """Its rows, with names."""
        casts = {"p_attempt": "uuid", "p_sizes": "bigint[]", "p_staged_names": "text[]"}
        named = ", ".join(
            f"{name} => %({name})s" + (f"::{casts[name]}" if name in casts else "")
            for name in self.arguments
        )
        text = f"SELECT * FROM interlock.{self.function}({named})"
        with connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(text, self.arguments).fetchall()


def content_of(txn: str) -> bytes:
    """The bytes which `commit` gives a transaction."""
    return f"contents of {txn}".encode()


def commit(
    path: str,
    *txns: str,
    head: int,
    head_txn: str | None = None,
    attempt: uuid.UUID | None = None,
    **others: Any,
) -> Call:
    """Contents are made up; `others` replaces any argument, without its `p_`."""
    contents = [content_of(txn) for txn in txns]
    arguments = {
        "p_log_path": path,
        "p_table_id": TABLE,
        "p_epoch": 0,
        "p_head": head,
        "p_sequence": 0,
        "p_head_txn": head_txn,
        "p_attempt": attempt or uuid.uuid4(),
        "p_new_table_id": TABLE,
        "p_txn_ids": list(txns),
        "p_contents": contents,
        "p_staged_names": [None] * len(txns),
        "p_sizes": [len(content) for content in contents],
        "p_sha256s": [hashlib.sha256(content).digest() for content in contents],
    }
    return Call("commit", arguments | {f"p_{name}": value for name, value in others.items()})


def attach(path: str, *, head: int = -1, table: str = TABLE) -> Call:
    return Call("attach", {"p_log_path": path, "p_table_id": table, "p_log_head": head})


def recreated(path: str, *, epoch: int, head: int, table: str, log_head: int) -> Call:
    seen = {"p_log_path": path, "p_epoch": epoch, "p_head": head}
    return Call("recreated", seen | {"p_table_id": table, "p_log_head": log_head})


def repair(path: str, *, head: int, table: str = TABLE) -> Call:
    return Call("repair", {"p_log_path": path, "p_table_id": table, "p_log_head": head})


def outcome(path: str, attempt: uuid.UUID) -> Call:
    return Call("outcome", {"p_log_path": path, "p_attempt": attempt})


def published(path: str, version: int, txn: str, *, epoch: int = 0) -> Call:
    return Call("published", _version(path, version, txn, epoch))


def revoke(path: str, version: int, txn: str, *, epoch: int = 0) -> Call:
    return Call("revoke", _version(path, version, txn, epoch))


def adopt(path: str, *, from_: int, to: int, epoch: int = 0) -> Call:
    heads = {"p_head_from": from_, "p_head_to": to}
    return Call("adopt", {"p_log_path": path, "p_epoch": epoch} | heads)


def tail(path: str) -> Call:
    return Call("tail", {"p_log_path": path})


def status() -> Call:
    return Call("status", {})


def _version(path: str, version: int, txn: str, epoch: int) -> dict[str, Any]:
    return {"p_log_path": path, "p_epoch": epoch, "p_version": version, "p_txn_id": txn}


def new_table(connection: Connection) -> str:
    """The path of an attached table: c0 published, c1 ratified only."""
    path = f"file:/{uuid.uuid4()}/_delta_log"
    attach(path)(connection)
    for call in (commit(path, "c0", head=-1), commit(path, "c1", head=0, head_txn="c0")):
        assert statuses(call(connection)) == "committed"
    return path


def statuses(rows: list[Any]) -> str:
    """The one status of a reply."""
    (status_,) = {row.status for row in rows}
    return str(status_)


def listed(rows: list[Any]) -> list[tuple[int, str, bytes | None]]:
    """Version, transaction and content of a reply's commits."""
    return [(r.version, r.txn_id, r.content) for r in rows if r.version is not None]


def winners(first: int, *txns: str) -> list[tuple[int, str, bytes]]:
    """What `listed` gives for the commits of `txns` from version `first` on, with contents."""
    return [(first + i, txn, content_of(txn)) for i, txn in enumerate(txns)]


def state(rows: list[Any]) -> tuple[int, int, int, int]:
    """Epoch, sequence, head and published of a reply."""
    (found,) = {(row.epoch, row.sequence, row.head, row.published) for row in rows}
    return found


def quick(connection: Connection) -> Connection:
    """The same with autocommit and without waiting for the disk."""
    connection.autocommit = True
    connection.execute("SET synchronous_commit = off")
    return connection
