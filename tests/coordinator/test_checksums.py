"""Checksums of versions that are not those of their commits: row ids stay unique, and nothing of a
wrong checksum gets into the next.

Each table is a copy, so that this process has made none of its commits.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kit.gates import SecondTransactionGate
from tests.kit.log_replay import check_log
from tests.kit.support import (
    Table,
    await_checkpoints,
    check_row_ids,
    commit,
    commit_file,
    deltalake_rows,
    jobs_started,
    latest_version,
    log_of,
    make_table,
    python_job,
    race,
    rows,
    sql_job,
)

ROW_TRACKING = "delta.rowTracking"


def crc(table: Table, version: int) -> Path:
    return table.path / "_delta_log" / f"{version:020}.crc"


def copy_of(table: Table, name: str) -> Table:
    return Table(Path(shutil.copytree(table.path, table.path.with_name(name))))


def transplant(source: Table, version: int, target: Table) -> None:
    """Put a commit of one copy of a table, and its data files, into another."""
    for action in commit(source, version):
        if "add" in action:
            shutil.copy(source.path / action["add"]["path"], target.path)
    name = f"_delta_log/{version:020}.json"
    shutil.copy(source.path / name, target.path / name)


def edit(table: Table, version: int, change: Callable[[dict[str, Any]], object]) -> None:
    claimed = json.loads(crc(table, version).read_text(encoding="utf-8"))
    change(claimed)
    crc(table, version).write_text(json.dumps(claimed) + "\n", encoding="utf-8")


def set_mark(mark: int) -> Callable[[dict[str, Any]], None]:
    def change(claimed: dict[str, Any]) -> None:
        (domain,) = (d for d in claimed["domainMetadata"] if d["domain"] == ROW_TRACKING)
        domain["configuration"] = json.dumps({"rowIdHighWaterMark": mark})

    return change


def replace_commit(spark: SparkSession, table: Table) -> None:
    """Another writer has put a commit of more rows in the place of version 2."""
    other = copy_of(table, "other")
    for end in ("json", "crc"):
        (other.path / "_delta_log" / f"{2:020}.{end}").unlink()
    spark.sql(f"INSERT INTO {other} SELECT CAST(id AS INT), 'x' FROM range(20, 30)")
    transplant(other, 2, table)


WRONG: dict[str, Callable[[SparkSession, Table], object]] = {
    "of a commit that was replaced": replace_commit,
    "lower mark": lambda _, table: edit(table, 2, set_mark(0)),
    "no domains": lambda _, table: edit(
        table, 2, lambda claimed: claimed.update(domainMetadata=[])
    ),
    "of another version": lambda _, table: shutil.copy(crc(table, 1), crc(table, 2)),
    "of another transaction": lambda _, table: edit(
        table, 2, lambda claimed: claimed.update(txnId="another")
    ),
    "of no transaction": lambda _, table: edit(
        table, 2, lambda claimed: (claimed.pop("txnId"), claimed.pop("inCommitTimestampOpt"))
    ),
}
NOT_WRONG: dict[str, Callable[[SparkSession, Table], object]] = {
    "right": lambda *_: None,
    "domains not told": lambda _, table: edit(
        table, 2, lambda claimed: claimed.pop("domainMetadata")
    ),
    "missing": lambda _, table: crc(table, 2).unlink(),
}


@pytest.mark.variant_cases(but=["lower mark", "right"])
@pytest.mark.parametrize("kind", [*WRONG, *NOT_WRONG])
def test_row_ids_and_the_next_checksums(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    table = copy_of(make_table(spark, tmp_path / "made"), "table")
    (WRONG | NOT_WRONG)[kind](spark, table)
    with log_of(spark, "org.apache.spark.sql.delta.interlock.log.Checksums") as warnings:
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd'), (5, 'e')")
    check_row_ids(spark, table)
    assert ("is not that of its commit" in warnings.toString()) == (kind in WRONG)
    spark.sql(f"UPDATE {table} SET v = 'u' WHERE id IN (1, 4)")
    check_row_ids(spark, table)
    spark.sql(f"INSERT INTO {table} VALUES (6, 'f')")
    check_row_ids(spark, table)
    crc(table, 2).unlink(missing_ok=True)
    check_log(table)
    for version in (3, 4, 5):
        check_mark(table, version)
    assert rows(spark, table) == deltalake_rows(table)


def check_mark(table: Table, version: int) -> None:
    """The checksum of a version has the highest row id that the commit set."""
    domains = json.loads(crc(table, version).read_text(encoding="utf-8")).get("domainMetadata")
    if domains is not None:
        set_there = [a["domainMetadata"] for a in commit(table, version) if "domainMetadata" in a]
        found = [json.loads(d["configuration"]) for d in domains if d["domain"] == ROW_TRACKING]
        assert found == [json.loads(domain["configuration"]) for domain in set_there]


@pytest.mark.variant_cases("in the commits")
@pytest.mark.parametrize("interval", [100, 2], ids=["in the commits", "in the checkpoint"])
def test_the_highest_row_id_of_an_earlier_commit(
    spark: SparkSession, tmp_path: Path, interval: int
) -> None:
    """A DELETE with deletion vectors assigns no row ids, so its commit has no high-water mark."""
    made = make_table(
        spark,
        tmp_path / "made",
        properties={
            "delta.checkpointInterval": str(interval),
            "delta.enableDeletionVectors": "true",
        },
        statements=(
            "INSERT INTO {t} VALUES (1, 'a')",
            "INSERT INTO {t} SELECT CAST(id AS INT), 'x' FROM range(2, 10)",
        ),
    )
    await_checkpoints(spark)
    spark.sql(f"DELETE FROM {made} WHERE id = 3")
    assert not [action for action in commit(made, 3) if "domainMetadata" in action]
    right, wrong = copy_of(made, "right"), copy_of(made, "wrong")
    edit(wrong, 3, set_mark(0))
    for table, count in ((right, 0), (wrong, 1)):
        with log_of(spark, "org.apache.spark.sql.delta.interlock.log.Checksums") as warnings:
            spark.sql(f"INSERT INTO {table} VALUES (10, 'j'), (11, 'k')")
        assert warnings.toString().count("is not that of its commit") == count
        check_row_ids(spark, table)
        crc(table, 3).unlink()
        check_log(table)


@pytest.mark.parametrize("left_over", [False, True])
def test_the_checksum_of_a_winner(spark: SparkSession, tmp_path: Path, left_over: bool) -> None:
    """No checksum is derived from that of another commit, and none that was left at the new
    version is kept.
    """
    table = make_table(spark, tmp_path / "table", policy="maxcompute_transactional")
    other = copy_of(table, "other")
    spark.sql(f"INSERT INTO {other} SELECT CAST(id AS INT), 'x' FROM range(20, 30)")

    def win(_: SparkSession) -> None:
        transplant(other, 3, table)
        shutil.copy(crc(table, 1), crc(table, 3))
        if left_over:
            shutil.copy(crc(table, 1), crc(table, 4))

    job = sql_job(f"INSERT INTO {table} VALUES (4, 'd')")
    won, passed = race(spark, python_job("winner", win), job)
    assert (won.error, passed.error, passed.held) == (None, None, True)
    check_row_ids(spark, table)
    spark.sql(f"INSERT INTO {table} VALUES (5, 'e')")
    check_row_ids(spark, table)
    crc(table, 3).unlink()
    check_log(table)
    assert crc(table, 4).exists()
    assert latest_version(table) == 5
    assert rows(spark, table) == deltalake_rows(table)


LATER = (
    "INSERT INTO {t} VALUES (3, 'c')",
    "UPDATE {t} SET v = 'u' WHERE id = 1",
    "DELETE FROM {t} WHERE id = 2",
    "ALTER TABLE {t} ADD COLUMN (w INT)",
    "ALTER TABLE {t} COMPACT MAJOR",
    "INSERT INTO {t} VALUES (4, 'd', 4)",
)
INSERT = "INSERT INTO {t} VALUES (5, 'e', 5)"


def make_later(spark: SparkSession, path: Path) -> Table:
    return make_table(
        spark,
        path,
        properties={"delta.enableDeletionVectors": "true"},
        statements=("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')", *LATER),
    )


def lose(table: Table, first: int) -> None:
    """The checksums from a version on are not those of their commits."""
    for version in range(first, latest_version(table) + 1):
        edit(table, version, lambda claimed: claimed.update(txnId="another"))


def contents(table: Table, version: int) -> dict[str, Any]:
    """What a checksum says, but for names and times, which are the statement's own."""
    claimed: dict[str, Any] = json.loads(crc(table, version).read_text(encoding="utf-8"))
    for own in ("txnId", "inCommitTimestampOpt"):
        del claimed[own]
    claimed["allFiles"].sort(key=lambda add: add["baseRowId"])
    for add in claimed["allFiles"]:
        for own in ("path", "modificationTime", "size", "stats", "tags"):
            add.pop(own, None)
    return claimed


def test_a_right_checksum_spares_the_replay_of_the_log(spark: SparkSession, tmp_path: Path) -> None:
    """If the last checksum is wrong, the one before it is used instead of a replay."""
    made = make_table(spark, tmp_path / "made")
    known, wrong = copy_of(made, "known"), copy_of(made, "wrong")
    edit(wrong, 2, set_mark(0))
    insert = "INSERT INTO {t} VALUES (4, 'd')"
    jobs = jobs_started(spark, insert.format(t=known))
    for table in (known, wrong, wrong):
        assert jobs_started(spark, insert.format(t=table)) == jobs


@pytest.mark.variant_cases("7")
@pytest.mark.parametrize("first", [7, 2])
def test_a_checksum_is_carried_over_the_commits_behind_it(
    spark: SparkSession, tmp_path: Path, first: int
) -> None:
    made = make_later(spark, tmp_path / "made")
    assert latest_version(made) == 7
    known, lost = copy_of(made, "known"), copy_of(made, "lost")
    lose(lost, first)
    jobs = jobs_started(spark, INSERT.format(t=known))
    assert jobs_started(spark, INSERT.format(t=lost)) <= jobs
    assert contents(lost, 8) == contents(known, 8)
    for version in range(first, 8):
        crc(lost, version).unlink()
    check_log(lost)
    check_row_ids(spark, lost)
    check_mark(lost, 8)


def test_a_checksum_is_not_carried_over_the_commit_of_another_writer(
    spark: SparkSession, tmp_path: Path
) -> None:
    """That commit adds an existing file again, which a carried checksum would count twice."""
    made = make_later(spark, tmp_path / "made")
    known, lost = copy_of(made, "known"), copy_of(made, "lost")
    for table in (known, lost):
        add_again(table, 7)
    lose(lost, 7)
    jobs = jobs_started(spark, INSERT.format(t=known))
    assert jobs_started(spark, INSERT.format(t=lost)) > jobs
    claimed = json.loads(crc(lost, 8).read_text(encoding="utf-8"))
    assert claimed["numFiles"] == len(spark.sql(f"SELECT * FROM {lost}").inputFiles())
    check_row_ids(spark, lost)


@pytest.mark.variant_cases("None")
@pytest.mark.parametrize("policy", [None, "maxcompute_delta"])
def test_a_checksum_of_other_metadata(
    spark: SparkSession, tmp_path: Path, policy: str | None
) -> None:
    """The checksum's metadata differ from those in the log."""
    made = make_table(
        spark,
        tmp_path / "made",
        policy=policy,
        properties={
            "interlock.coordinator": "filesystem",
            "delta.enableDeletionVectors": "false",
            "delta.enableInCommitTimestamps": "true",
        },
        statements=(
            "INSERT INTO {t} VALUES (1, 'a')",
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
            "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
        ),
    )
    table = copy_of(made, "table")
    last = latest_version(table)
    shutil.copy(crc(table, last - 1), crc(table, last))
    spark.sql(f"INSERT INTO {table} VALUES (2, 'b')")
    again = copy_of(made, "again")
    shutil.copy(crc(again, last - 1), crc(again, last))
    append = spark.sql("SELECT 2 AS id, 'b' AS v").write.format("delta").mode("append")
    append.option("txnAppId", "app").option("txnVersion", 1).save(str(again.path))
    for written in (table, again):
        assert latest_version(written) == last + 1
        assert rows(spark, written) == deltalake_rows(written) == ((1, "a"), (2, "b"))
        shutil.copy(crc(made, last), crc(written, last))
        check_log(written)


def test_a_commit_that_cannot_be_read_to_its_end(spark: SparkSession, tmp_path: Path) -> None:
    made = make_table(spark, tmp_path / "made")
    table = copy_of(made, "table")
    crc(table, 2).unlink()
    file = commit_file(table, 2)
    with file.open("a", encoding="utf-8") as lines:
        lines.write("\n")
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    assert rows(spark, table) == ((1, "a"), (2, "b"), (3, "c"), (4, "d"))
    check_row_ids(spark, table)


def add_again(table: Table, version: int) -> None:
    """Let a commit be that of another writer, and add a file of the version before again."""
    file = commit_file(table, version)
    actions = commit(table, version)
    for key in [key for key in actions[0]["commitInfo"]["tags"] if key.startswith("interlock.")]:
        del actions[0]["commitInfo"]["tags"][key]
    (again,) = (action for action in commit(table, version - 1) if "add" in action)
    again["add"]["dataChange"] = False
    file.write_text("".join(f"{json.dumps(action)}\n" for action in [*actions, again]))
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


class ChecksumsAtBackfill(SecondTransactionGate):
    """Whether the checksum of version 3 was there when its commit had been made."""

    seen: list[bool]

    def __init__(self, spark: SparkSession, table: Table) -> None:
        super().__init__(spark)
        self._table = table
        self.seen = []
        self.open()

    def beginBackfill(self) -> None:  # noqa: N802
        self.seen.append(crc(self._table, 3).exists())


def test_a_checksum_is_there_as_soon_as_its_commit(spark: SparkSession, table_path: Path) -> None:
    """A reader that finds a commit without a checksum has to replay the log."""
    table = make_table(spark, table_path)
    gate = ChecksumsAtBackfill(spark, table)
    gate.install()
    try:
        spark.sql(f"INSERT INTO {table} VALUES (4, 'd')")
    finally:
        gate.uninstall()
    assert gate.seen == [True]
    assert latest_version(table) == 3
    assert rows(spark, table) == deltalake_rows(table)
