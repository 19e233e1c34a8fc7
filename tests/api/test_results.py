"""Results as frames of other libraries and as HTML. Needs no Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, astuple
from datetime import datetime, timezone
from typing import Any, cast

import interlock
import pandas as pd
import pyarrow as pa
import pytest
from interlock import _tabular
from interlock.results import FileRecord, Files, History, HistoryRecord, Versions

TIME = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc)
KNOWN = HistoryRecord(
    7, TIME, TIME, "APPEND", "row<level>", "WRITE", {"mode": "Append"}, (5, 6), ("D7", None),
    ("FAIL", None), False, 3, 0, 1, 0, "me", "x", 4, "of a block",
)  # fmt: skip
UNKNOWN = HistoryRecord(6, *[None] * 18)
HISTORY = History((KNOWN, UNKNOWN))
COMPACTION = interlock.CompactionResult(8, "COMPACT_MINOR", 2, 1, 20, 11, 3, 1, ())


def test_records_are_a_sequence() -> None:
    assert len(HISTORY) == 2
    assert HISTORY[0] is KNOWN
    assert list(HISTORY) == [KNOWN, UNKNOWN]
    assert HISTORY[-1:] == (UNKNOWN,)
    assert History((KNOWN,)) == History((KNOWN,)) != HISTORY
    with pytest.raises(FrozenInstanceError):
        cast(Any, HISTORY).records = ()


def test_columns_are_those_of_sql() -> None:
    (known, _) = HISTORY.to_dicts()
    assert list(known)[:5] == ["version", "time_version", "timestamp", "class", "policy"]
    assert tuple(known.values()) == tuple(astuple(KNOWN))


def test_arrow_has_types_even_where_all_is_unknown() -> None:
    for history in (HISTORY, History((UNKNOWN,)), History(())):
        schema = history.to_arrow().schema
        assert schema.field("version").type == pa.int64()
        assert schema.field("time_version").type == pa.timestamp("us", tz="UTC")
        assert schema.field("class").type == pa.string()
        assert schema.field("foreign").type == pa.bool_()
        assert schema.field("operation_parameters").type == pa.map_(pa.string(), pa.string())
        assert schema.field("winners").type == pa.list_(pa.int64())
    table = HISTORY.to_arrow()
    assert table["timestamp"].to_pylist() == [TIME, None]
    assert table["winners"].to_pylist() == [[5, 6], None]
    assert table["operation_parameters"].to_pylist() == [[("mode", "Append")], None]


def test_pandas_keeps_whole_numbers_beside_unknown_ones() -> None:
    frame = HISTORY.to_pandas()
    assert frame["rows_in"].dtype == pd.Int64Dtype()
    assert frame["foreign"].dtype == pd.BooleanDtype()
    assert frame["rows_in"].tolist() == [3, pd.NA]
    assert frame["timestamp"][0] == pd.Timestamp(TIME)
    assert frame["timestamp"].isna().tolist() == [False, True]
    assert frame["operation_parameters"][0] == {"mode": "Append"}


def test_a_single_result_is_a_table_of_one_row() -> None:
    frame = COMPACTION.to_pandas()
    assert frame.to_dict("records")[0]["class"] == "COMPACT_MINOR"
    assert COMPACTION.to_arrow().num_rows == 1
    assert "<td>COMPACT_MINOR</td>" in COMPACTION._repr_html_()


def test_files() -> None:
    made = FileRecord("p=1/f", {"p": "1", "q": None}, 10, 3, 0, None, ("a", "b"))
    frame = Files((made,)).to_pandas()
    assert frame["partition"][0] == {"p": "1", "q": None}
    assert list(frame["compacted_from"][0]) == ["a", "b"]
    assert "<td>p=1, q=</td>" in Files((made,))._repr_html_()


def test_printed_they_are_tables_of_what_tells_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    titles, line, known, unknown = str(HISTORY).splitlines()
    assert [title.strip() for title in titles.split("|")] == list(History.printed)
    assert set(line) == set("-+")
    assert " ".join(known.split()).startswith("7 | 2026-01-02 03:04:05.678+00:00 | APPEND")
    assert unknown.startswith("6 ")
    assert str(Versions(())).splitlines()[0] == "version | time_version | timestamp | operation"
    assert "p=1/f" in str(Files((FileRecord("p=1/f", {}, 10, 3, 0, None, None),)))
    assert repr(HISTORY).startswith("History(records=(HistoryRecord(version=7")


@pytest.mark.parametrize("kind", [History, interlock.Conflicts])
def test_what_is_printed_are_columns(kind: type[History] | type[interlock.Conflicts]) -> None:
    assert set(kind.printed) < set(_tabular.columns(kind.record_class).values())


def test_html_is_readable_and_escaped() -> None:
    shown = HISTORY._repr_html_()
    assert shown.startswith("<table><thead><tr><th>version</th><th>time_version</th>")
    assert "<td>2026-01-02 03:04:05.678+00:00</td>" in shown
    assert "<td>row&lt;level&gt;</td>" in shown
    assert "<td>5, 6</td>" in shown
    assert "<td>mode=Append</td>" in shown
    assert "<td>false</td>" in shown
    assert "None" not in shown


def test_json() -> None:
    (known, unknown) = json.loads(_tabular.as_json(HISTORY.to_dicts()))
    assert known["timestamp"] == "2026-01-02T03:04:05.678000+00:00"
    assert known["operation_parameters"] == {"mode": "Append"}
    assert known["winners"] == [5, 6]
    assert unknown["class"] is None


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    code = "import interlock.results, sys; print(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pandas", "pyarrow", "pyspark"} & set(done.stdout.split())
    assert Versions(()).to_dicts() == []
