"""The timeline: its jobs, and the page in a real browser. Needs no Spark."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from interlock._timeline import page
from interlock._timeline.jobs import Job, Lane, jobs
from interlock.results import ConflictRecord, Conflicts, History, HistoryRecord

TIME = datetime(2026, 1, 2, 3, 4, tzinfo=timezone.utc)
BROKEN = (
    "</script><script>document.title='broken'</script>\"'><img src=x onerror=document.title=2>&"
)


def version(number: int, *, read: int | None = None, **known: object) -> HistoryRecord:
    """Make a record of a version; it read the one before if nothing else is said."""
    values = dict.fromkeys(HistoryRecord.__dataclass_fields__) | {
        "version": number,
        "timestamp": TIME + timedelta(seconds=number),
        "operation": "WRITE",
        "operation_class": "APPEND",
        "winners": (),
        "txn_id": f"t{number}",
        "read_version": number - 1 if read is None else read,
    }
    given = {**values, **known}
    passed = range(len(given["winners"]))  # type: ignore[arg-type]
    given["rules"] = tuple(f"R{index}" for index in passed)
    given["verdicts"] = tuple(("BY_ROWS", "AS_IS")[index % 2] for index in passed)
    return HistoryRecord(**given)  # type: ignore[arg-type]


def conflict(txn_id: str, outcome: str, **known: object) -> ConflictRecord:
    values = dict.fromkeys(ConflictRecord.__dataclass_fields__) | {
        "time": TIME,
        "outcome": outcome,
        "txn_id": txn_id,
        "winners": (),
        "rules": (),
        "verdicts": (),
        "files": (),
        "rows": (),
    }
    return ConflictRecord(**{**values, **known})  # type: ignore[arg-type]


HISTORY = History(
    (
        version(5, operation="OPTIMIZE", operation_class="COMPACT_MINOR", read=3, winners=(4,)),
        version(4, operation="UPDATE", operation_class="MUTATE", read=1, winners=(2, 3)),
        version(3, read=2),
        version(2, operation=BROKEN, operation_class=None, read_version=None),
    )
)
LOST = conflict(
    "lost",
    "REJECTED",
    operation="<b>M</b>",
    read_version=1,
    winners=(3,),
    operation_class="MUTATE",
    winner_operation="INSERT INTO",
    winner_class="APPEND",
    scope="p=1, p=2, ...",
    user="ann",
    application="local-1",
    rules=("D8",),
    message="First line.\nSecond line.",
    predicate=f"a = {BROKEN}",
)
CONFLICTS = Conflicts(
    (
        conflict("t4", "REBASED", winners=(2, 3), scope="p=3; p=4", millis=7),
        LOST,
        replace(
            LOST,
            txn_id=BROKEN,
            operation="COMPACT MAJOR",
            operation_class="COMPACT_MAJOR",
            winners=(5,),
            read_version=None,
        ),
        replace(LOST, txn_id="long ago", winners=(1,), read_version=0),
    )
)


@pytest.fixture(scope="module")
def bars() -> dict[str, Job]:
    return {job.key: job for job in jobs(HISTORY, CONFLICTS)}


def data(text: str) -> Any:
    """Read what a page draws."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*)</script>', text)
    return json.loads(found)


def resource(name: str) -> str:
    return resources.files("interlock._timeline").joinpath(name).read_text(encoding="utf-8")


def kind(operation: str, operation_class: str | None = None) -> str:
    record = version(1, operation=operation, operation_class=operation_class)
    (job,) = jobs(History((record,)), Conflicts(()))
    return job.kind


def test_jobs_in_the_order_of_their_ends(bars: dict[str, Job]) -> None:
    assert list(bars) == ["v2", "v3", "a-lost", "v4", "v5", f"a-{BROKEN}"]
    assert [(job.read, job.end) for job in bars.values()] == [
        (1, 2), (2, 3), (1, 3), (1, 4), (3, 5), (4, 5)
    ]  # fmt: skip
    assert [key for key, job in bars.items() if job.reads_unknown] == ["v2", f"a-{BROKEN}"]


def test_lanes(bars: dict[str, Job]) -> None:
    lanes = {lane: [key for key, job in bars.items() if job.lane is lane] for lane in Lane}
    assert lanes == {
        Lane.COMMITTED: ["v2", "v3", "v4"],
        Lane.COMPACTIONS: ["v5", f"a-{BROKEN}"],
        Lane.REJECTED: ["a-lost"],
    }
    assert (bars["a-lost"].user, bars["a-lost"].application) == ("ann", "local-1")
    assert (bars["v4"].user, bars["v4"].application) == (None, None)


def test_arrows_lead_from_the_versions_that_a_job_passed_or_lost_against(
    bars: dict[str, Job],
) -> None:
    assert {key: job.passed for key, job in bars.items() if job.passed} == {
        "v4": (2, 3),
        "v5": (4,),
    }
    assert {key: job.end for key, job in bars.items() if job.rejected} == {
        "a-lost": 3,
        f"a-{BROKEN}": 5,
    }


@pytest.mark.parametrize(
    ("operation", "drawn"),
    [
        ("INSERT INTO", "append"),
        ("INSERT OVERWRITE", "overwrite"),
        ("DELETE", "mutate"),
        ("MERGE", "mutate"),
        ("MERGE SMALLFILES", "small-files"),
        ("OPTIMIZE", "small-files"),
        ("CREATE TABLE", "other"),
    ],
)
def test_without_a_policy_the_operation_tells_the_class(operation: str, drawn: str) -> None:
    assert kind(operation) == drawn


def test_a_commit_is_told_in_the_words_of_explain(bars: dict[str, Job]) -> None:
    assert bars["v3"].story == ("WRITE (APPEND) made version 3. It had read version 2.",)
    assert bars["v4"].story == (
        "UPDATE (MUTATE) made version 4. It had read version 1. "
        "There were other commits, and it passed them:",
        f"over version 2 ({BROKEN}): BY_ROWS, rule R0",
        "over version 3 (WRITE, APPEND): AS_IS, rule R1",
    )
    assert bars["a-lost"].story == (
        "<b>M</b> lost against version 3.",
        "First line.",
        "Second line.",
    )


def test_a_record_of_a_version_that_is_not_there_is_left_out() -> None:
    history = History((version(2), version(1)))
    assert page("t", history, Conflicts((replace(LOST, winners=(10**9,)),))) == page(
        "t", history, Conflicts(())
    )


def test_an_empty_history_is_a_page_too() -> None:
    text = page("t", History(()), Conflicts(()))
    assert "No versions." in text
    assert data(text)["jobs"] == []


def test_the_page_draws_these_jobs(bars: dict[str, Job]) -> None:
    drawn = data(page("t", HISTORY, CONFLICTS))
    assert (drawn["first"], drawn["last"]) == (1, 5)
    assert [job["key"] for job in drawn["jobs"]] == list(bars)
    assert [job["lane"] for job in drawn["jobs"]] == [job.lane.value for job in bars.values()]
    assert drawn["jobs"][1]["time"] == round((TIME + timedelta(seconds=3)).timestamp() * 1000)


def test_filters_and_views() -> None:
    text = page("t", HISTORY, CONFLICTS)
    choices = {
        name: re.findall(r'<option value="(\w*)"', options)
        for name, options in re.findall(r'<select id="(\w+)">(.*?)</select>', text, re.DOTALL)
    }
    assert choices == {
        "axis": ["version", "time"],
        "lanes": ["lane", "user", "application"],
        "kind": [""],
        "user": [""],
        "partition": [""],
    }
    script = text.rpartition("<script>")[2]
    named = set(re.findall(r'element\("(\w+)"\)', script))
    assert named <= set(re.findall(r' id="(\w+)"', text))
    assert {"lane", "user", "application"} <= set(Job.__dataclass_fields__)


def test_texts_of_the_table_stay_texts() -> None:
    text = page(BROKEN, HISTORY, CONFLICTS)
    assert text.count("<script") == 2
    assert "<img" not in text
    assert "<b>M" not in text
    assert f"<title>{escape('Timeline of ' + BROKEN)}</title>" in text
    assert "innerHTML" not in text


def test_the_page_needs_no_network() -> None:
    text = page("t", History((version(1),)), Conflicts(()))
    assert "default-src 'none'" in text
    assert re.findall(r"\w+://[\w./]+", text) == ["http://www.w3.org/2000/svg"]  # a name
    assert not re.search(r"\b(src|href)=|\bimport\b|\bfetch\b|url\((?!#)", text)


def browse(folder: Path, text: str, *, at: str = "") -> str:
    """Open a page in a browser and return the document as it is after its scripts."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("not run: there is no Chromium on the path (Debian's package chromium)")
    (folder / "page.html").write_text(text, encoding="utf-8")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    done = subprocess.run(
        [browser, "--headless", "--disable-gpu", *sandbox, f"--user-data-dir={folder}/profile",
         "--dump-dom", (folder / "page.html").as_uri() + at],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout


ACTIONS = """
<script>
const drawn = [...document.querySelectorAll("[role=option]")];
const said = [];
const say = () => said.push(document.querySelector("#record h2")?.textContent ?? "nobody");
const press = (key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key, bubbles: true}));
drawn.find((bar) => bar.dataset.key === "v3").focus(); say();
press("ArrowRight"); say();
press("Enter"); document.activeElement.blur(); say();
press("Escape"); say();
document.body.dataset.said = said.map((text) => text.split(" ")[0]).join(" | ");
</script>
"""


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """Texts stay texts; the address chooses a job; keys lead from job to job."""
    dom = browse(tmp_path, page(BROKEN, HISTORY, CONFLICTS), at="#v4")
    assert dom.count('role="option"') == 6
    assert dom.count("<script") == 2
    assert "<img" not in dom
    assert f"<title>{escape('Timeline of ' + BROKEN, quote=False)}</title>" in dom
    bars = dict(re.findall(r'<g data-key="(v\d)" class="job ([^"]*)"', dom))
    assert {key: names.split()[1:] for key, names in bars.items()} == {
        "v2": ["unsure", "near"],
        "v3": ["near"],
        "v4": ["chosen"],
        "v5": [],
    }
    acted = page("t", HISTORY, CONFLICTS).replace("</body>", f"{ACTIONS}</body>")
    (said,) = re.findall(r'data-said="([^"]*)"', browse(tmp_path, acted))
    lost = escape("<b>M</b>")
    assert said.split(" | ") == ["WRITE", lost, lost, "No"]
