"""The example of a timeline on the web site: the records of real jobs, and their page.

python -m tools.docs.timeline    # runs the jobs and writes their records beside this file
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import interlock
from interlock import _tabular
from interlock._timeline import page
from interlock.results import ConflictRecord, Conflicts, History, HistoryRecord

_RECORDS = Path(__file__).with_name("timeline.json")
_TABLE = "flights"
_CREATION = f"""
    CREATE TABLE {_TABLE} (id INT, delay INT, month INT) USING delta PARTITIONED BY (month)
    TBLPROPERTIES ('interlock.policy' = 'maxcompute_delta')
"""
_ROUNDS = (
    tuple(f"INSERT INTO {_TABLE} VALUES ({month}, 5, {month})" for month in (1, 2, 3)),
    tuple(f"INSERT INTO {_TABLE} VALUES ({month}0, 7, {month})" for month in (1, 2, 3)),
    (
        f"INSERT INTO {_TABLE} VALUES (11, 9, 1)",
        f"INSERT OVERWRITE {_TABLE} PARTITION (month = 1) VALUES (1, 6), (12, 8)",
        f"UPDATE {_TABLE} SET delay = 0 WHERE month = 1",
    ),
    (
        f"INSERT INTO {_TABLE} VALUES (21, 2, 2)",
        f"INSERT INTO {_TABLE} VALUES (22, 4, 2)",
        f"DELETE FROM {_TABLE} WHERE month = 3 AND id = 30",
    ),
    (
        f"ALTER TABLE {_TABLE} PARTITION (month = 2) COMPACT MINOR",
        f"ALTER TABLE {_TABLE} PARTITION (month = 2) COMPACT MAJOR",
        f"UPDATE {_TABLE} SET delay = delay + 1 WHERE month = 2 AND id = 20",
        f"MERGE INTO {_TABLE} t USING (SELECT 3 AS id) s ON t.month = 3 AND t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET delay = 1",
    ),
)
_TIMES = ("time", "time_version", "timestamp")
_R = TypeVar("_R")


def example() -> str:
    """Return the page of the records."""
    known: Mapping[str, Sequence[Mapping[str, Any]]] = json.loads(_RECORDS.read_text("utf-8"))
    history = tuple(_record(HistoryRecord, row) for row in known["history"])
    conflicts = tuple(_record(ConflictRecord, row) for row in known["conflicts"])
    return page(_TABLE, History(history), Conflicts(conflicts))


def _record(row_class: type[_R], row: Mapping[str, Any]) -> _R:
    columns = _tabular.columns(row_class)
    return row_class(**{field: _value(name, row[name]) for field, name in columns.items()})


def _value(column: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return datetime.fromisoformat(value) if value and column in _TIMES else value


def main() -> None:
    """Run the jobs, round by round, and write what is recorded of them."""
    from tests.kit.sessions import classic_session

    with classic_session() as spark:
        spark.sql(_CREATION)
        for statements in _ROUNDS:
            interlock.race(spark, *statements)
        table = interlock.table(spark, _TABLE)
        records = {
            "history": table.history().to_dicts(),
            "conflicts": table.conflicts().to_dicts(),
        }
    parts = json.loads(_tabular.as_json(records)).items()
    lists = (f'  "{name}": [\n{_lines(rows)}\n  ]' for name, rows in parts)
    _RECORDS.write_text("{\n" + ",\n".join(lists) + "\n}\n", encoding="utf-8")


def _lines(rows: Sequence[object]) -> str:
    """Write each record in a line of its own."""
    return ",\n".join(f"    {json.dumps(row)}" for row in rows)


if __name__ == "__main__":
    main()
