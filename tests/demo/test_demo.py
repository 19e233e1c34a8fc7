"""The demo as a user starts it, and its replay on a few rows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from interlock.demo.__main__ import _interruptible, main
from interlock.demo.flights import Batch
from interlock.demo.jobs import (
    Compact,
    Delete,
    DemoJob,
    Insert,
    Merge,
    Optimize,
    Overwrite,
    Update,
    Where,
)
from interlock.demo.replay import Replay

from tests.demo.demo_process import deltalake_totals, jobs_of, run_demo
from tests.kit.spark_version import s3_without_database
from tests.kit.tree import ROOT
from tests.storage import s3

RUNS = ("stock", "row_level", "maxcompute_delta", "maxcompute_transactional")


@pytest.mark.variant
def test_the_demo_tells_the_policies_apart(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    page = tmp_path / "page.html"
    done = run_demo(
        *("--days", "3", "--rounds", "3", "4", "7", "8"),
        *("--keep", str(kept), "--timeline", str(page)),
    )
    assert done.returncode == 0, done.stdout + done.stderr

    jobs = jobs_of(done.stdout)
    assert len(jobs) == 21
    stock, row_level, delta, transactional = jobs["INSERT OVERWRITE of Nov"]
    assert stock == ["-", "0", "LOST", "-", "-", "ConcurrentAppendException"]
    assert row_level == ["OVERWRITE", "0", "ok", "2", "1", "BY_FILES"]
    assert delta == ["OVERWRITE", "0", "ok", "2", "1", "D6"]
    assert transactional == ["OVERWRITE", "0", "ok", "2", "1", "T5"]
    assert jobs["INSERT INTO Oct (late)"][2][-1] == "D2, ConcurrentAppend"
    assert [cells[2] for cells in jobs["OPTIMIZE of May"]] == ["LOST"]
    assert [cells[2] for cells in jobs["COMPACT MINOR of May"]] == ["ok", "ok", "LOST"]
    assert jobs["COMPACT MINOR of May"][1][-1] == "D14"
    assert jobs["COMPACT MAJOR of Dec"][1][-2:] == ["10", "D20"]
    assert jobs["UPDATE in Dec"][2] == ["MUTATE", "3", "ok", "12", "10,11", "D18,D23"]
    assert jobs["INSERT INTO Mar (late)"][2][-1] == "D22"
    ends = [cells[2] for cells in jobs["UPDATE in Aug (AA)"]]
    assert ends == ["LOST", "ok", "LOST", "LOST"]
    assert "Timeline of" in page.read_text(encoding="utf-8")

    assert "DIFFERS" not in done.stdout
    assert re.search(r"its versions 2 and 3 hold [\d,]+ and [\d,]+ rows", done.stdout)
    assert done.stdout.splitlines()[-1].endswith(
        "jobs lost: stock Delta 8 of 17, row_level 2 of 17, maxcompute_delta 3 of 17, "
        "maxcompute_transactional 7 of 17"
    )
    wide = [line for line in done.stdout.splitlines() if len(line) > 120]
    assert [line for line in wide if str(page) not in line] == []
    told = re.findall(r"the table holds ([\d,]+) rows", done.stdout)
    assert told == [f"{deltalake_totals(kept / run).rows:,}" for run in RUNS]


@pytest.mark.variant
@s3_without_database
def test_on_s3_the_same_jobs_succeed(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_demo(
        *("--days", "1", "--rounds", "4", "--runs", "row_level", "--timeline", str(page)),
        module="tools.demo_on_s3",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    jobs = jobs_of(done.stdout)
    assert [end[2] for ends in jobs.values() for end in ends] == ["ok", "ok"]
    assert jobs["INSERT INTO Oct (late)"][0][-1] == "BY_ROWS"
    assert "the table holds 10,662 rows" in done.stdout
    assert "its versions 2 and 3 hold 918 and 9,736 rows" in done.stdout
    assert f"Timeline of s3a://{s3.BUCKET}/row_level" in page.read_text(encoding="utf-8")


def test_a_store_that_the_demo_does_not_know_is_refused() -> None:
    make = ["make", "--dry-run", "demo", "STORE=tape"]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "STORE=tape is none of disk s3." in done.stderr


def test_a_second_ctrl_c_does_not_end_the_cancelling(monkeypatch: pytest.MonkeyPatch) -> None:
    cancels: list[int] = []
    main_thread = threading.main_thread()
    interrupted = signal.getsignal(signal.SIGINT)

    def cancel() -> None:
        cancels.append(1)
        os.kill(os.getpid(), signal.SIGINT)

    def is_waited_for() -> bool:
        assert main_thread.ident is not None
        frame = sys._current_frames()[main_thread.ident].f_back
        return frame is not None and frame.f_code.co_name == "result"

    def work() -> bool:
        """As Spark starts: there is nothing to cancel yet."""
        while not is_waited_for():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
        while len(cancels) < 3:
            time.sleep(0.01)
        return True

    monkeypatch.setattr("interlock.demo.__main__._cancel_spark_jobs", cancel)
    with pytest.raises(KeyboardInterrupt):
        _interruptible(work)
    assert len(cancels) >= 3
    assert signal.getsignal(signal.SIGINT) == interrupted


def test_a_table_that_differs_from_its_replay_ends_the_demo_with_1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("interlock.demo.pipeline.run_demo", lambda folder, **_: False)
    assert main([]) == 1


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("no Spark"), 1), (KeyboardInterrupt(), 130)]
)
def test_its_folder_goes_away_even_if_it_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException, status: int
) -> None:
    def fail(folder: Path, **_: object) -> bool:
        assert folder.parent == tmp_path
        (folder / "landing").mkdir()
        raise error

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("interlock.demo.pipeline.run_demo", fail)
    assert main([]) == status
    assert list(tmp_path.iterdir()) == []


def flights(*rows: tuple[int, str, int, float]) -> pd.DataFrame:
    columns = ["month", "carrier", "flight", "arr_delay"]
    frame = pd.DataFrame(rows, columns=columns).assign(time_hour="h", tailnum="N1")
    return frame.assign(dep_delay=0.0, air_time=60.0, distance=100)


def batch(*rows: tuple[int, str, int, float]) -> Batch:
    return Batch(Path("unused"), flights(*rows))


LOADED = flights((1, "UA", 1, 5.0), (1, "AA", 2, 6.0), (2, "UA", 3, 7.0))
LATE = Insert("late", batch((1, "UA", 4, 1.0)))
UNITED = Where(1, "carrier", "UA")


def test_replay_of_a_level_that_counts_appends_as_last() -> None:
    replay = Replay(LOADED, appends_last=True)
    replay.round([LATE, Overwrite("w", 1, batch((1, "AA", 9, 2.0)))])
    months = replay.totals.months
    assert {month: (found[0], found[2]) for month, found in months.items()} == {
        1: (2, 3),
        2: (1, 7),
    }


@pytest.mark.parametrize(
    ("jobs", "rows", "delays"),
    [
        pytest.param(
            [LATE, Optimize("o", 1), Compact("c", 1, "MAJOR")],
            4,
            19,
            id="an INSERT adds, compactions do nothing",
        ),
        pytest.param(
            [LATE, Overwrite("w", 1, batch((1, "AA", 9, 2.0)))],
            2,
            9,
            id="an OVERWRITE replaces what it never read",
        ),
        pytest.param(
            [LATE, Update("u", UNITED, 10)], 4, 29, id="an UPDATE changes only what it read"
        ),
        pytest.param([LATE, Delete("d", UNITED)], 3, 14, id="a DELETE removes only what it read"),
        pytest.param(
            [Overwrite("w", 1, batch((1, "UA", 9, 2.0))), Update("u", UNITED, 10)],
            2,
            9,
            id="an UPDATE does not bring back what it read",
        ),
        pytest.param(
            [Merge("m", 1, batch((1, "UA", 1, 50.0), (1, "UA", 4, 3.0)))],
            4,
            66,
            id="a MERGE changes and adds",
        ),
    ],
)
def test_replay(jobs: list[DemoJob], rows: int, delays: int) -> None:
    replay = Replay(LOADED)
    replay.round(jobs)
    months = replay.totals.months.values()
    assert (sum(month[0] for month in months), sum(month[2] for month in months)) == (rows, delays)


def test_replay_says_where_a_table_differs() -> None:
    one, other = Replay(LOADED), Replay(LOADED)
    one.round([LATE])
    assert list(one.totals.differences(one.totals)) == []
    (difference,) = one.totals.differences(other.totals)
    assert difference.startswith("month 1: (3, 0, 12, 180, 300) and not (2, 0, 11, 120, 200)")
    one.round([LATE])
    assert one.totals.twice == 1
