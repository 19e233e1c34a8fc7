"""The timeline: what its bars say, and the page in a real browser. Needs no Spark."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html import escape
from pathlib import Path

import pytest
from interlock.audit import ConflictRecord, Conflicts
from interlock.results import History, HistoryRecord
from interlock.timeline import page
from interlock.timeline.jobs import Job, Lane, jobs
from interlock.timeline.layout import ROW, layout

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
    return HistoryRecord(**{**values, **known})  # type: ignore[arg-type]


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
    predicate=f"a = {BROKEN}",
)
CONFLICTS = Conflicts(
    (
        conflict("t4", "REBASED", verdicts=("BY_ROWS", "BY_ROWS"), winners=(2, 3), millis=7),
        LOST,
        replace(LOST, txn_id=BROKEN, operation="COMPACT MAJOR", winners=(5,), read_version=None),
        replace(LOST, txn_id="long ago", winners=(1,), read_version=0),
    )
)


@pytest.fixture(scope="module")
def bars() -> dict[str, Job]:
    return {job.key: job for job in jobs(HISTORY, CONFLICTS)}


def test_a_bar_for_each_job_in_the_order_of_ends(bars: dict[str, Job]) -> None:
    assert list(bars) == ["v2", "v3", "a-lost", "v4", "v5", f"a-{BROKEN}"]
    assert [(job.read, job.end) for job in bars.values()] == [
        (1, 2), (2, 3), (1, 3), (1, 4), (3, 5), (4, 5)
    ]  # fmt: skip
    assert [key for key, job in bars.items() if job.lane is Lane.COMPACTIONS] == [
        "v5",
        f"a-{BROKEN}",
    ]
    assert [key for key, job in bars.items() if job.lane is Lane.REJECTED] == ["a-lost"]
    assert [key for key, job in bars.items() if job.reads_unknown] == ["v2", f"a-{BROKEN}"]


def test_a_rebased_version_says_what_its_audit_record_says(bars: dict[str, Job]) -> None:
    said = dict(bars["v4"].record)
    assert (said["verdicts"], said["millis"], said["winners"]) == ("BY_ROWS, BY_ROWS", "7", "2, 3")
    assert (said["txn id"], said["operation"]) == ("t4", "UPDATE")
    assert bars["v4"].passed == (2, 3)


def test_jobs_that_ran_beside_each_other_stand_below_each_other() -> None:
    beside = [version(3, read=0), version(2, read=0), version(1, read=0), version(4, read=3)]
    placed = layout(jobs(History(tuple(beside)), Conflicts(())), [1, 2, 3, 4])
    rows = [(placed.rows[f"v{number}"] - placed.bands[0].top) // ROW for number in (1, 2, 3, 4)]
    assert rows == [0, 1, 2, 0]
    assert placed.bands[0].height == 3 * ROW
    after = layout(jobs(History((version(2), version(1))), Conflicts(())), [1, 2])
    assert after.rows["v1"] == after.rows["v2"]
    assert placed.x(-5) == placed.x(0) < placed.x(1)


def test_a_record_of_a_version_that_is_not_there_is_left_out() -> None:
    history = History((version(2), version(1)))
    assert page("t", history, Conflicts((replace(LOST, winners=(10**9,)),))) == page(
        "t", history, Conflicts(())
    )


def test_an_empty_history_is_a_page_too() -> None:
    assert "No versions." in page("t", History(()), Conflicts(()))


def browser() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium on the path: install Debian's package chromium")
    return found


def browse(folder: Path, text: str, *options: str, at: str = "") -> str:
    """Open a page in a browser and return the document as it is after its scripts."""
    (folder / "page.html").write_text(text, encoding="utf-8")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    done = subprocess.run(
        [browser(), "--headless", "--disable-gpu", *sandbox, f"--user-data-dir={folder}/profile",
         *options, (folder / "page.html").as_uri() + at],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout


def chosen(dom: str) -> str:
    """Return what the record's section says, without tags."""
    (section,) = re.findall(r'<section id="record".*?</section>', dom, re.DOTALL)
    return re.sub(r"<[^>]+>", " ", section)


ACTIONS = """
<script>
const said = [];
const say = () => said.push(document.querySelector("#record h2").textContent);
const on = (key) => document.getElementById(key);
on("v3").dispatchEvent(new MouseEvent("mouseover", {bubbles: true})); say();
on("v3").closest("svg").dispatchEvent(new MouseEvent("mouseleave")); say();
on("v2").focus(); say();
const press = (key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key, bubbles: true}));
press("ArrowRight"); press("ArrowRight"); say();
press("Enter"); document.activeElement.blur(); say();
press("Escape"); say();
document.body.dataset.said = said.join(" | ");
</script>
"""


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """Texts stay texts; the address chooses a job; pointer and keys show records."""
    dom = browse(tmp_path, page(BROKEN, HISTORY, CONFLICTS), "--dump-dom", at="#v4")
    assert dom.count('role="button"') == 6
    assert dom.count("<script") == 2
    assert "<img" not in dom
    assert "<b>M" not in dom
    assert f"<title>{escape('Timeline of ' + BROKEN, quote=False)}</title>" in dom
    assert "UPDATE: version 4, past 2, 3" in chosen(dom)
    assert "BY_ROWS" in chosen(dom)
    near = re.findall(r'class="([^"]*)" id="(v\d)"', dom)
    assert [key for names, key in near if "near" in names.split()] == ["v2", "v3"]
    assert [key for names, key in near if "chosen" in names.split()] == ["v4"]
    assert dom.count('class="arrow pass near"') == 2
    assert dom.count('class="arrow lost"') == 2

    acted = page("t", HISTORY, CONFLICTS).replace("</body>", f"{ACTIONS}</body>")
    (said,) = re.findall(r'data-said="([^"]*)"', browse(tmp_path, acted, "--dump-dom"))
    lost = f"{escape(LOST.operation or '')}: lost against version 3"
    none = "No job chosen"
    assert said.split(" | ") == [
        "WRITE: version 3",
        none,
        f"{escape(BROKEN, quote=False).replace(chr(34), '&quot;')}: version 2",
        lost,
        lost,
        none,
    ]


def test_thousands_of_versions_are_drawn(tmp_path: Path) -> None:
    many = [version(n, read=max(0, n - 1 - n % 4), winners=(n - 1,)) for n in range(3000, 0, -1)]
    shot = tmp_path / "shot.png"
    text = page("t", History(tuple(many)), Conflicts(()))
    browse(tmp_path, text, "--window-size=1200,700", f"--screenshot={shot}", at="#v2990")
    picture = shot.read_bytes()
    assert struct.unpack(">II", picture[16:24]) == (1200, 700)
    assert len(picture) > 20_000  # an empty page has some 5,000
    assert text.count('role="button"') == 3000
