"""The tab "Interlock" of Spark's UI, while the application runs and in the History Server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import interlock
import pytest
from pyspark.sql import SparkSession

from tests.kit.eventually import eventually
from tests.kit.sessions import classic_session, history_server
from tests.kit.support import Table, make_table, sql_race

SCRIPT = "<script>alert('1 & 2')</script>"
LITERAL = "'" + SCRIPT.replace("'", "\\'") + "'"
COUNTS = "Commits under a policy: 6 Rebased over other commits: 1 Rejected: 2"
EVENT = "org.apache.spark.interlock.ui.SparkListenerInterlockCommit"


@pytest.fixture(scope="module")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("event_log")


@pytest.fixture(scope="module")
def spark(event_log: Path) -> Iterator[SparkSession]:
    """A session whose UI listens on this machine alone."""
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with classic_session(**settings) as session:
        yield session


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table on which two jobs were rejected, then one was rebased."""
    table = Table(tmp_path_factory.mktemp("table") / "t")
    spark.sql(
        f"CREATE TABLE {table} (id INT, v STRING) USING delta TBLPROPERTIES "
        "('interlock.policy' = 'row_level', 'delta.enableDeletionVectors' = 'true')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    delete = f"DELETE FROM {{t}} WHERE v = 'a' OR v = {LITERAL}"
    added = sql_race(spark, table, "ALTER TABLE {t} ALTER COLUMN v FIRST", delete)
    updated = sql_race(spark, table, f"UPDATE {{t}} SET v = {LITERAL} WHERE id = 2", delete)
    passing = ("DELETE FROM {t} WHERE id = 3", "ALTER TABLE {t} COMPACT MAJOR")
    assert [job.ok for job in (*added, *updated)] == [True, False] * 2
    assert all(job.ok for job in sql_race(spark, table, *passing))
    return table


def get(address: str) -> str:
    with urlopen(address, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def live_page(spark: SparkSession, parameters: str = "") -> str:
    """Read the tab, once Spark's listeners have heard everything."""
    heard(spark)
    return get(f"{spark.sparkContext.uiWebUrl}/interlock/?{parameters}")


def heard(spark: SparkSession) -> None:
    context: Any = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()


def cells(page: str) -> list[list[str]]:
    """Read the rows of the page's table; the text of an explanation is a row of one cell."""
    rows = [
        re.findall(r"<td.*?</td>", row, re.DOTALL)
        for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    ]
    return [[words(cell) for cell in row] for row in rows if row]


def words(html: str) -> str:
    """Return the text of some HTML, as a browser would show it but on one line."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def facts(page: str) -> list[list[str]]:
    return [row[1:] for row in cells(page) if len(row) > 1]


def explained(spark: SparkSession, table: Table) -> list[str]:
    """Return the explanations of a table's records, newest first."""
    told = interlock.table(spark, str(table))
    return [" ".join(told.explain(record.txn_id).text.split()) for record in told.conflicts()]


def test_a_rejected_and_a_rebased_commit(spark: SparkSession, table: Table) -> None:
    page = live_page(spark)
    rebased = ["COMPACT MAJOR", "COMPACT_MAJOR", "REBASED", "MUTATE -> COMPACT_MAJOR", "4"]
    rejected = ["DELETE", "MUTATE", "REJECTED", "MUTATE -> MUTATE", "3"]
    told = [[str(table), *row, "the whole table"] for row in (rebased, rejected)]
    assert facts(page)[:2] == told
    assert facts(page)[2][3:] == ["REJECTED", "MetadataChanged", "2", ""]
    assert [row[0] for row in cells(page) if len(row) == 1] == explained(spark, table)
    assert COUNTS in words(page)
    assert "Verdicts (3)" in words(page)


def test_what_users_wrote_stays_text(spark: SparkSession, table: Table) -> None:
    page = live_page(spark)
    assert SCRIPT in words(page)
    assert "<script>alert" not in page


def test_the_event_log(spark: SparkSession, event_log: Path, table: Table) -> None:
    heard(spark)
    lines = [line for file in event_log.rglob("events_*") for line in file.open()]
    events = [event for event in map(json.loads, lines) if event["Event"] == EVENT]
    assert [event["outcome"] for event in events if event["table"] == str(table)] == [
        *("COMMITTED", "COMMITTED", "COMMITTED", "REJECTED"),
        *("COMMITTED", "REJECTED", "COMMITTED", "REBASED"),
    ]
    rejected, _, rebased = events[-3:]
    assert (rejected["version"], rejected["winners"]) == (None, [3])
    assert rejected["verdicts"] == ["BY_ROWS"]
    assert (rebased["version"], rebased["winners"]) == (5, [4])
    assert rebased["verdicts"] == ["REBASE_COMPACTION"]


@pytest.mark.variant
def test_the_history_server(
    spark: SparkSession, event_log: Path, table: Table, tmp_path: Path
) -> None:
    """It shows the same, from its store on disk."""
    live = live_page(spark)
    application = spark.sparkContext.applicationId
    with history_server(tmp_path, event_log) as address:
        page = soon(f"{address}/history/{application}/interlock/")
    assert cells(page) == cells(live)
    assert COUNTS in words(page)
    assert "<script>alert" not in page


def test_a_long_text_is_cut_between_characters(spark: SparkSession, table_path: Path) -> None:
    """Explanations quote predicates; the limit falls before and within a surrogate pair."""
    table = make_table(spark, table_path, policy="serializable")
    texts = ("\N{DUCK}" * 6000, "x" + "\N{DUCK}" * 6000)
    deletes = [f"DELETE FROM {{t}} WHERE id = 1 OR v = '{text}'" for text in texts]
    jobs = sql_race(spark, table, "INSERT INTO {t} VALUES (1, 'z')", *deletes)
    assert [job.ok for job in jobs] == [True, False, False]
    page = live_page(spark)  # decodes it
    shown = [row[0] for row in cells(page) if len(row) == 1 and "\N{DUCK}" in row[0]]
    assert len(shown) == 2
    assert all(text.endswith("\N{DUCK} ...") for text in shown)


def soon(address: str) -> str:
    """Read a page that is not there yet."""

    def page() -> str | None:
        with suppress(HTTPError):
            return get(address)
        return None

    return eventually(page, 60, address)
