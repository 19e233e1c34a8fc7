"""Commits by a writer without Interlock, which leave optional fields out."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.foreign import Action, commit_by_hand, remove
from tests.kit.histories.columns import Columns, noon
from tests.kit.histories.documents import Heading
from tests.kit.histories.model import NOWHERE, Change, Job, Row, Rows
from tests.kit.histories.physical import partition
from tests.kit.log_replay import check_log
from tests.kit.support import Table, commit, latest_version, versions

_ROW_IDS = "delta.rowTracking"


def delete(p: int | None, *, tells: bool) -> Job:
    """Removal of all files of a partition, with or without partition values in the commit."""

    def by_hand(table: Table) -> None:
        gone = [add for add in check_log(table).values() if partition(add) == p]
        if gone:
            commit_by_hand(table, "DELETE", *(_remove(add, tells=tells) for add in gone))

    return Job(
        Heading.UPDATE,
        f"-- Another writer removes all of p = {p}"
        + ("" if tells else ", without partitionValues"),
        lambda read, now: Change(deleted=tuple(row for row in now if row.p == p)),
        lambda partition: partition == p,
        by_hand=by_hand,
        tells=tells,
    )


def insert(p: int | None, rows: Rows, columns: Columns, *, has_key: bool) -> Job:
    """A new file of one partition.

    Args:
        p: the partition
        rows: its rows
        columns: the table's columns
        has_key: whether its partitionValues have the key also where p is NULL

    """

    def by_hand(table: Table) -> None:
        new = latest_version(table) + 1
        name, first = f"of-another-writer-{new}.parquet", _row_ids(table) + 1
        pq.write_table(_data(rows, columns), table.path / name)
        is_timestamp = columns.p == "TIMESTAMP"
        values: dict[str, str | None]
        if p is None:
            values = {"p": None} if has_key else {}
        else:
            values = {"p": noon(p) if is_timestamp else str(p)}
        add = {
            "path": name,
            "partitionValues": values,
            "size": (table.path / name).stat().st_size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps({"numRecords": len(rows)}),
            "baseRowId": first,
            "defaultRowCommitVersion": new,
        }
        mark = json.dumps({"rowIdHighWaterMark": first + len(rows) - 1})
        domain = {"domain": _ROW_IDS, "configuration": mark, "removed": False}
        commit_by_hand(table, "WRITE", {"add": add}, {"domainMetadata": domain})

    return Job(
        Heading.INSERT,
        f"-- Another writer adds {', '.join(f'({columns.fields(row)})' for row in rows)}",
        lambda read, now: Change(inserted=rows),
        NOWHERE,
        by_hand=by_hand,
    )


def _remove(add: Action, *, tells: bool) -> Action:
    fields = {"deletionVector": add["deletionVector"]} if add.get("deletionVector") else {}
    if tells:
        told = {"partitionValues": add["partitionValues"], "size": add["size"]}
        fields |= {**told, "extendedFileMetadata": True}
    return remove(add, **fields)


def _row_ids(table: Table) -> int:
    """Return the highest row id that was given."""
    marks = [
        json.loads(action["domainMetadata"]["configuration"])["rowIdHighWaterMark"]
        for version in versions(table)
        for action in commit(table, version)
        if action.get("domainMetadata", {}).get("domain") == _ROW_IDS
    ]
    return int(marks[-1])


def _data(rows: tuple[Row, ...], columns: Columns) -> pa.Table:
    data = {
        "id": pa.array([row.id for row in rows], pa.int32()),
        "v": pa.array([row.v for row in rows], pa.string()),
    }
    if columns.nested:
        nested = pa.struct({"p": pa.int32(), "id": pa.int32()})
        data["s"] = pa.array([{"p": row.s[0], "id": row.s[1]} for row in rows], nested)
    return pa.table(data)
