"""Audit records: what a rejected commit leaves beside the log, and a rebased one in its tags."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from interlock.lab.example import PLAIN, Tables
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from tests.kit.support import (
    Job,
    Table,
    await_checkpoints,
    commit,
    commit_info,
    in_a_micro_batch,
    log_of,
    make_table,
    python_job,
    race,
    sql_race,
    tags,
)

INSERT = "INSERT INTO {t} VALUES (10, 'i')"
WHO = ("user", "session", "application")
FACTS = {
    "kind": "ConcurrentAppend",
    "policy": "maxcompute_delta",
    "operation": "MERGE",
    "operationClass": "MUTATE",
    "readVersion": 6,
    "table": "t",
    "why": "version 7 added data in the table",
}
"""What every record has."""
MOST_BYTES = 16 << 20
"""How much of a day's records is written to one file, and read at a time."""


class Lost(NamedTuple):
    """An attempt that lost: its error, the line that it left, and the table."""

    error: Any
    record: dict[str, Any]


def folder(table: Table) -> Path:
    return table.path / "_delta_log" / "_interlock"


def records(table: Table) -> list[dict[str, Any]]:
    """Read the lines of rejected commits, oldest first."""
    files = sorted(folder(table).glob("*.jsonl"))
    lines = (line for file in files for line in file.read_text().splitlines())
    return [json.loads(line) for line in lines if line.endswith("}")]


def batch(number: int, table: Table) -> Job:
    """Write as a streaming query's batch does, with the number of the batch."""

    def write(spark: SparkSession) -> None:
        writer = spark.sql("SELECT 30 AS id, 'k' AS v").write.format("delta").mode("append")
        writer.option("txnAppId", "a").option("txnVersion", number).save(str(table.path))

    return python_job("batch", write)


def restored(spark: SparkSession, table: Table) -> None:
    with in_a_micro_batch(spark):  # elsewhere it would be run again
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")


@pytest.fixture(scope="module")
def table(tables: Tables) -> Table:
    """A copy of the documents' example on which every race of `lost` has been run."""
    return Table(tables.fresh(PLAIN, {"interlock.policy": "maxcompute_delta"}))


@pytest.fixture(scope="module")
def lost(spark: SparkSession, table: Table) -> dict[str, Lost]:
    """One attempt for each kind of conflict, in this order, by the kind's name."""
    support = "ALTER TABLE {{t}} SET TBLPROPERTIES ('delta.feature.{}' = 'supported')"
    pairs: dict[str, tuple[str | Job, str | Job]] = {
        "ConcurrentAppend": (INSERT, "INSERT INTO {t} VALUES (20, 'j')"),
        "ConcurrentWrite": (INSERT, python_job("restore", lambda s: restored(s, table))),
        "ConcurrentTransaction": (batch(1, table), batch(2, table)),
        "ProtocolChanged": (support.format("timestampNtz"), support.format("typeWidening")),
        "MetadataChanged": ("ALTER TABLE {t} ADD COLUMN w INT", INSERT),
    }
    found = {}
    for kind, pair in pairs.items():
        before = len(records(table))
        jobs = (job.format(t=table) if isinstance(job, str) else job for job in pair)
        first, second = race(spark, *jobs)
        assert first.ok, first.error
        left = records(table)[before:]
        assert len(left) == 1, (kind, left, second)
        found[kind] = Lost(second.error, left[0])
    return found


def test_every_kind_of_conflict_leaves_a_record(
    spark: SparkSession, table: Table, lost: dict[str, Lost]
) -> None:
    for kind, (error, record) in lost.items():
        assert type(error).__name__ == f"{kind}Error"
        assert (record["kind"], record["outcome"]) == (kind, "REJECTED")
        assert record["policy"] == "maxcompute_delta"
        assert record["message"] == str(error).partition("\n\nJVM stacktrace")[0]
        assert record["condition"] == error.condition
        winner = commit_info(table, record["winnerVersion"])
        assert record["readVersion"] == record["winnerVersion"] - 1
        assert record["winnerOperation"] == winner["operation"].replace("WRITE", "INSERT INTO")
        assert record["winnerTxnId"] == winner["txnId"]
        assert record["user"] == spark.sparkContext.sparkUser()
        assert record["application"] == spark.sparkContext.applicationId
        assert record["session"]
        assert record["millis"] >= 0
        age = datetime.now(timezone.utc) - datetime.fromisoformat(record["time"][:19] + "+00:00")
        assert timedelta(0) <= age < timedelta(minutes=10)
    assert len({record["txnId"] for _, record in lost.values()}) == len(lost)
    assert len(list(folder(table).glob("*.jsonl"))) == 1  # a file for a process and day


def test_a_record_has_the_facts_of_the_error(lost: dict[str, Lost]) -> None:
    error, record = lost["ConcurrentAppend"]
    assert {
        "rule": "D7",
        "verdict": "FAIL",
        "winnerClass": "APPEND",
        "operationClass": "APPEND",
        "operation": "INSERT INTO",
        "scope": "the whole table",
        "why": error.why,
        "table": error.table,
        "bytes": record["bytes"],
    }.items() <= record.items()
    assert 200 < record["bytes"] < 5000  # one file of one row, written in vain
    assert lost["MetadataChanged"].record["operationClass"] == "APPEND"
    assert lost["MetadataChanged"].record["winnerClass"] == "METADATA"
    restore = lost["ConcurrentWrite"].record
    assert (restore["rule"], restore["winnerClass"]) == ("any concurrent commit", "APPEND")


def test_the_verdict_is_the_cells(spark: SparkSession, table_path: Path) -> None:
    """The record shows the cell's verdict BY_ROWS, and not FAIL."""
    table = make_table(spark, table_path, policy="row_level")
    update = "UPDATE {t} SET v = 'x' WHERE id = 1"
    _, later = sql_race(spark, table, update, update)
    assert later.error is not None
    (row,) = spark.sql(f"CALL interlock.conflicts('{table}')").collect()
    assert (row["outcome"], row["verdicts"]) == ("REJECTED", ["BY_ROWS"])


def test_conflicts_are_listed_newest_first(
    spark: SparkSession, table: Table, lost: dict[str, Lost]
) -> None:
    rows = spark.sql(f"CALL interlock.conflicts('{table}')").collect()
    assert [row["kind"] for row in rows] == list(lost)[::-1]
    assert all(row["outcome"] == "REJECTED" for row in rows)
    newest = spark.sql(f"CALL interlock.conflicts(table => '{table}', limit => 2)").collect()
    assert newest == rows[:2]
    row, (error, record) = rows[-1], lost["ConcurrentAppend"]
    assert row["txn_id"] == record["txnId"]
    assert (row["operation"], row["class"], row["rules"]) == ("INSERT INTO", "APPEND", ["D7"])
    assert (row["read_version"], row["winners"], row["version"]) == (2, [3], None)
    assert (row["message"], row["bytes"]) == (error.message, record["bytes"])
    assert tuple(row[name] for name in WHO) == tuple(record[name] for name in WHO)


def explained(spark: SparkSession, table: Table, txn_id: str) -> Row:
    call = f"CALL interlock.explain_conflict(table => '{table}', txn_id => '{txn_id}')"
    (row,) = spark.sql(call).collect()
    return row


def test_a_conflict_is_explained(spark: SparkSession, table: Table, lost: dict[str, Lost]) -> None:
    def of(kind: str) -> Row:
        return explained(spark, table, lost[kind].record["txnId"])

    append = of("ConcurrentAppend")
    assert "MaxCompute" in append["source"]
    assert append["policies"][:2] == ["maxcompute_transactional", "maxcompute_standard"]
    assert append["retry_helps"] is True
    assert append["layout"].startswith("Partition the table")
    for told in (
        "INSERT INTO (APPEND) read version 2 and lost against version 3 (INSERT INTO, APPEND).",
        "Rule D7: APPEND fails after APPEND. Source: ",
        "Where they overlap: the whole table.",
        "Run it again? Yes",
    ):
        assert told in append["text"], append["text"]
    metadata = of("MetadataChanged")
    assert "Found by a check of Delta's: MetadataChanged." in metadata["text"]
    assert metadata["policies"] == metadata["policies_by_files"] == []
    assert metadata["policies_by_rows"] == []
    helps = {kind: of(kind)["retry_helps"] for kind in lost}
    assert {kind for kind, yes in helps.items() if not yes} == {
        "ConcurrentTransaction",
        "ProtocolChanged",
    }


def test_unknown_transactions(spark: SparkSession, table: Table, lost: dict[str, Lost]) -> None:
    def refused(txn_id: str) -> str:
        with pytest.raises(PySparkException) as caught:
            explained(spark, table, txn_id)
        assert caught.value.getCondition() == "INTERLOCK_UNKNOWN_TRANSACTION"
        return str(caught.value)

    assert lost["MetadataChanged"].record["txnId"] in refused("nothing")
    winner = lost["ConcurrentAppend"].record["winnerTxnId"]
    assert "It committed version 3 and passed no other commit." in refused(winner)


def test_a_rebased_commit_is_its_own_record(spark: SparkSession, example: Table) -> None:
    for statement in ("OPTIMIZE {t}", "INSERT INTO {t} VALUES (4, 'd')"):
        spark.sql(statement.format(t=example))
    won, later = sql_race(
        spark, example, "DELETE FROM {t} WHERE id = 1", "ALTER TABLE {t} COMPACT MINOR"
    )
    assert won.ok
    assert later.error is None
    made = tags(example, 6)
    assert made.pop("delta.rowTracking.preserved") == "true"
    written = sum(action["add"]["size"] for action in commit(example, 6) if "add" in action)
    assert made.pop("interlock.millis").isdigit()
    assert made == {
        "interlock.class": "COMPACT_MINOR",
        "interlock.policy": "maxcompute_delta",
        "interlock.winners": "5",
        "interlock.rules": "D14",
        "interlock.verdicts": "REBASE_COMPACTION",
        "interlock.scope": "the whole table",
        "interlock.bytesSaved": str(written),
    }
    assert not list(folder(example).glob("conflicts*"))
    (row,) = spark.sql(f"CALL interlock.conflicts('{example}')").collect()
    txn_id = commit_info(example, 6)["txnId"]
    assert (row["outcome"], row["txn_id"], row["version"]) == ("REBASED", txn_id, 6)
    assert (row["verdicts"], row["winners"]) == (["REBASE_COMPACTION"], [5])
    assert (row["bytes"], row["read_version"]) == (written, 4)
    told = explained(spark, example, txn_id)
    assert told["retry_helps"] is None
    assert "COMPACT MINOR (COMPACT_MINOR) made version 6. It had read version 4." in told["text"]
    assert "over version 5 (DELETE, MUTATE): REBASE_COMPACTION, rule D14" in told["text"]

    sql_race(spark, example, INSERT, INSERT)
    rows = spark.sql(f"CALL interlock.conflicts('{example}')").collect()
    assert [row["outcome"] for row in rows] == ["REJECTED", "REBASED"]  # by time, not by place


def put_old(table: Table, days: int) -> Path:
    """Leave a file of records of a day, as a process of that day would have."""
    day = datetime.now(timezone.utc).date() - timedelta(days=days)
    file = folder(table) / f"conflicts-{day}-deadbeef.jsonl"
    line = {
        "txnId": f"old-{days}",
        "outcome": "REJECTED",
        "time": f"{day}T12:00:00Z",
        **FACTS,
        "winnerVersion": 7,
        "winnerOperation": None,  # as of a writer that does not say
        "winnerClass": "APPEND",
        "winnerTxnId": "w",
        "rule": "D8",
        "verdict": "FAIL",
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(line) + "\n" + '{"txnId": "cut o')
    return file


def test_records_are_kept_as_long_as_the_log(spark: SparkSession, example: Table) -> None:
    """Expired records are deleted with a process's first record, and with each checkpoint."""
    month, week = put_old(example, 40), put_old(example, 20)
    other = folder(example) / "conflicts-nonsense.jsonl"
    other.touch()
    sql_race(spark, example, INSERT, INSERT)
    assert (month.exists(), week.exists(), other.exists()) == (False, True, True)
    found = spark.sql(f"CALL interlock.conflicts('{example}')").collect()
    assert [row["txn_id"] for row in found] == [records(example)[-1]["txnId"], "old-20"]
    old = found[1]
    assert (old["operation"], old["class"], old["winners"]) == ("MERGE", "MUTATE", [7])
    assert (old["rules"], old["verdicts"]) == (["D8"], ["FAIL"])
    assert (old["winner_operation"], old["winner_class"]) == (None, "APPEND")
    assert old["winner_txn_id"] == "w"
    # As after a log was put back that had version 7.
    assert "lost against version 7 (" in explained(spark, example, "old-20")["text"]

    spark.sql(
        f"ALTER TABLE {example} SET TBLPROPERTIES ('delta.checkpointInterval' = '1', "
        "'delta.logRetentionDuration' = 'interval 10 days')"
    )
    await_checkpoints(spark)
    assert not week.exists()
    assert len(records(example)) == 1


def test_a_record_that_cannot_be_written_is_a_warning(spark: SparkSession, example: Table) -> None:
    folder(example).touch()
    with log_of(spark, "io.interlock.spark.audit.AuditTrail") as written:
        _, second = sql_race(spark, example, INSERT, INSERT)
    assert type(second.error).__name__ == "ConcurrentAppendError"
    assert "A rejected commit left no record" in written.toString()
    folder(example).unlink()


class TestFolder:
    """The record folder alone, on a local disk and on a file system of another scheme."""

    @pytest.fixture(params=["local", "other"])
    def records(self, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Any:
        """Records of a log at tmp_path/log; the other file system leads to the same disk."""
        jvm: Any = spark._jvm
        conf = jvm.org.apache.hadoop.conf.Configuration(False)
        conf.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./t", tmp_path.as_uri())
        root = tmp_path.as_uri() if request.param == "local" else f"viewfs://{tmp_path.name}/t"
        path = jvm.org.apache.hadoop.fs.Path(f"{root}/log")
        return jvm.io.interlock.spark.audit.RecordFolder(path, conf)

    @staticmethod
    def record(spark: SparkSession, number: int, day: str) -> Any:
        jvm: Any = spark._jvm
        facts = {**FACTS, "txnId": f"a{number}", "time": f"{day}T00:00:0{number}.5Z"}
        return jvm.io.interlock.spark.audit.ConflictRecord.ofJson(json.dumps(facts)).get()

    @staticmethod
    def transactions(records: Any) -> list[str]:
        found = records.newestFirst().toSeq()
        return [found.apply(n).txnId() for n in range(found.size())]

    def test_newest_first(self, spark: SparkSession, records: Any, tmp_path: Path) -> None:
        (tmp_path / "log").mkdir()
        assert not records.newestFirst().hasNext()
        days = {1: "2026-01-02", 2: "2026-01-02", 3: "2026-01-01"}
        for number, day in days.items():
            records.append(self.record(spark, number, day))
        assert self.transactions(records) == ["a2", "a1", "a3"]
        java_time: Any = spark._jvm.java.time  # type: ignore[union-attr]
        for now, left in (("2026-01-12T00:00:00Z", 3), ("2026-01-12T00:00:01Z", 2)):
            records.sweep(java_time.Duration.ofDays(10), java_time.Instant.parse(now))
            assert records.newestFirst().size() == left

    def test_what_is_no_record_is_skipped_and_said_once(
        self, spark: SparkSession, records: Any, tmp_path: Path
    ) -> None:
        """Such files are not opened: reading a pipe would never end, nor would the largest file."""
        kept = tmp_path / "log" / "_interlock"
        kept.mkdir(parents=True)
        whole = {**FACTS, "txnId": "whole", "time": "2026-01-02T00:00:00Z"}
        times = ["+1000000000-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "yesterday", 5, None]
        lines = [
            *("[1]", "null", "{}", "", '{"txnId": "\u00e9'),
            *(json.dumps({**whole, key: None}) for key in ("txnId", "kind", "readVersion")),
            *(json.dumps({**whole, "time": time}) for time in times),
            json.dumps(whole),
        ]
        broken = "\n".join(lines).encode() + b'\n{"txnId": "\xc3'
        (kept / "conflicts-2026-01-02-broken.jsonl").write_bytes(broken)
        (kept / "conflicts-2026-02-31-date.jsonl").write_text(json.dumps(whole))
        (kept / "conflicts-2026-01-02-folder.jsonl").mkdir()
        os.mkfifo(kept / "conflicts-2026-01-02-pipe.jsonl")
        with (kept / "conflicts-2026-01-03-huge.jsonl").open("wb") as huge:
            huge.truncate(2**36)
        with log_of(spark, "io.interlock.spark.audit.RecordFolder") as warnings:
            for _ in range(2):
                assert self.transactions(records) == ["whole"]
        said = warnings.toString()
        assert said.count("14 of 15 lines are no records") == 1
        assert said.count("its records are not shown") == 1
        assert f"has {2**36} bytes" in said

    def test_a_record_after_a_torn_one_is_a_line_of_its_own(
        self, spark: SparkSession, records: Any, tmp_path: Path
    ) -> None:
        (tmp_path / "log").mkdir()
        records.append(self.record(spark, 1, "2026-01-02"))
        for file in (tmp_path / "log" / "_interlock").glob("*.jsonl"):
            file.write_bytes(file.read_bytes()[:-9])
        records.append(self.record(spark, 2, "2026-01-02"))
        assert self.transactions(records) == ["a2"]

    def test_a_day_has_as_many_files_as_it_needs(
        self, spark: SparkSession, records: Any, tmp_path: Path
    ) -> None:
        """The newest records are shown first; older files are read only when they are reached."""
        (tmp_path / "log").mkdir()
        kept = tmp_path / "log" / "_interlock"
        full: list[Path] = []
        for number in (1, 2, 3):
            records.append(self.record(spark, number, "2026-01-02"))
            (newest,) = set(kept.glob("*.jsonl")) - set(full)
            full.append(newest)
            for checksum in kept.glob("*.crc"):
                checksum.unlink()
            with newest.open("ab") as file:
                file.write(b" " * (MOST_BYTES - newest.stat().st_size - 1) + b"\n")
            os.utime(newest, (number, number))
        assert self.transactions(records) == ["a3", "a2", "a1"]
        shown = records.newestFirst()
        assert shown.next().txnId() == "a3"
        full[1].unlink()
        assert shown.next().txnId() == "a1"
        java_time: Any = spark._jvm.java.time  # type: ignore[union-attr]
        records.sweep(java_time.Duration.ofDays(1), java_time.Instant.parse("2026-01-05T00:00:00Z"))
        assert list(kept.iterdir()) == []

    def test_a_dropped_table_stays_so(
        self, spark: SparkSession, records: Any, tmp_path: Path
    ) -> None:
        with pytest.raises(Exception, match="log"):
            records.append(self.record(spark, 1, "2026-01-02"))
        assert not (tmp_path / "log").exists()
