"""Policies of the user's own: by configuration, with a digest that writers must share."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import interlock
import pytest
from interlock._cli import main
from interlock.errors import ConflictError, InterlockError, MetadataChangedError
from pyspark.sql import SparkSession

from tests.kit.doc_examples import checked
from tests.kit.entry_points import set_for_now
from tests.kit.own_policy import (
    CELLS,
    CLASSES,
    DIGEST,
    KEY,
    OTHERS,
    OURS,
    STRICT,
    digest,
    put_under,
    text,
    under,
)
from tests.kit.properties import latest
from tests.kit.support import (
    Table,
    all_files,
    commit_file,
    deltalake_rows,
    latest_version,
    make_table,
    race,
    rows,
    sql_job,
    sql_race,
    unknown_files,
    versions,
)
from tests.kit.tree import ROOT


@pytest.fixture(scope="module")
def _original(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ours") / "table"
    with set_for_now(spark, OURS):
        make_table(spark, path, policy="ours", properties={"delta.enableDeletionVectors": "true"})
    return path


@pytest.fixture
def ours(_original: Path, table_path: Path) -> Table:
    """A copy of {1a, 2b, 3c} at version 2 under the policy `ours`."""
    shutil.copytree(_original, table_path)
    return Table(table_path)


def refused(spark: SparkSession, table: Table, statement: str, condition: str) -> str:
    """Check that a statement is refused and has written nothing; return the message."""
    files, before = all_files(table), versions(table)
    with pytest.raises(InterlockError) as caught:
        spark.sql(statement.format(t=table))
    assert caught.value.getCondition() == condition, statement
    assert (versions(table), all_files(table)) == (before, files), statement
    return str(caught.value)


def test_jobs_are_judged_by_it(spark: SparkSession, ours: Table) -> None:
    assert latest(ours).properties[DIGEST] == digest()
    assert "deletionVectors" in latest(ours).features
    with set_for_now(spark, {KEY: text(head="source us\ncells U\npolicy ours")}):
        append = "INSERT INTO {t} VALUES (4, 'd')"
        update = "UPDATE {t} SET v = 'x' WHERE id = 1"
        assert [job.error for job in sql_race(spark, ours, append, append)] == [None, None]
        assert sql_race(spark, ours, "OPTIMIZE {t}", update)[1].error is None
        lost = sql_race(spark, ours, append, update)[1].error
    assert isinstance(lost, ConflictError)
    assert (lost.policy, lost.rule) == ("ours", "U7")
    assert len(rows(spark, ours)) == 6
    assert rows(spark, ours) == deltalake_rows(ours)


def test_an_error_names_those_of_the_session_too(spark: SparkSession, example: Table) -> None:
    """A malformed policy beside them does not hide the others."""
    broken = "spark.interlock.policies.broken"
    with set_for_now(spark, {**OURS, broken: "a\nb"}):
        append = "INSERT INTO {t} VALUES (4, 'd')"
        lost = sql_race(spark, example, append, append)[1].error
        assert isinstance(lost, ConflictError)
        assert "or ours both jobs would succeed" in str(lost)
        wrong = refused(spark, example, put_under("oursy"), "INTERLOCK_UNKNOWN_POLICY")
        assert "Did you mean 'ours'?" in wrong
        assert ", broken, ours." in wrong
    with set_for_now(spark, OURS):
        listed = spark.sql("CALL interlock.policies()").where("policy = 'ours'").collect()
    assert {(row.earlier, row.later): row.verdict for row in listed if row.verdict != "FAIL"} == (
        CELLS
    )
    assert {(row.source, row.digest) for row in listed} == {("us", digest())}


WRITES = (
    "INSERT INTO {t} VALUES (4, 'd')",
    "UPDATE {t} SET v = 'x' WHERE id = 1",
    "DELETE FROM {t}",
    "MERGE INTO {t} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "INSERT OVERWRITE {t} VALUES (4, 'd')",
    "TRUNCATE TABLE {t}",
    "OPTIMIZE {t}",
    "ALTER TABLE {t} COMPACT MINOR",
    "RESTORE TABLE {t} TO VERSION AS OF 1",
    "ALTER TABLE {t} ADD COLUMN w INT",
    "ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE {t} UNSET TBLPROPERTIES ('interlock.policy')",
    "CREATE OR REPLACE TABLE {t} USING delta AS SELECT 1 AS id",
)
READS = (
    "SELECT * FROM {t}",
    "SELECT * FROM {t} VERSION AS OF 1",
    "SELECT * FROM {t} VERSION BETWEEN 1 AND 2",
    "SHOW HISTORY FOR TABLE {t}",
    "DESCRIBE DETAIL {t}",
    "VACUUM {t} DRY RUN",
)


@pytest.mark.variant_cases(but=["other rules"])
@pytest.mark.parametrize("session", [{}, OTHERS], ids=["no such policy", "other rules"])
def test_who_means_something_else_reads_and_does_not_write(
    spark: SparkSession, ours: Table, session: dict[str, str]
) -> None:
    with set_for_now(spark, session):
        for statement in WRITES:
            told = refused(spark, ours, statement, "INTERLOCK_POLICY_MISMATCH")
            assert f"has the digest {digest()}, but" in told
            found = f"one with the digest {digest(STRICT)}" if session else "no policy of that name"
            assert f"the session has {found}." in told
            assert KEY in told
        for statement in READS[: 1 if session else None]:
            spark.sql(statement.format(t=ours)).collect()
        spark.sql(put_under("serializable").format(t=ours))  # the way out
        spark.sql(WRITES[0].format(t=ours))
    assert latest(ours).policy == "serializable"
    assert unknown_files(ours) == []


def test_other_rules_by_the_same_name_are_a_change_of_metadata(
    spark: SparkSession, ours: Table
) -> None:
    insert = sql_job(f"INSERT INTO {ours} VALUES (4, 'd')")
    with set_for_now(spark, OURS):
        session = spark.newSession()
        session.conf.set(KEY, OTHERS[KEY])
        alter = sql_job(put_under("ours").format(t=ours), session=session)
        changed, lost = race(spark, alter, insert)
        assert changed.error is None
        assert isinstance(lost.error, MetadataChangedError)
        assert latest(ours).properties[DIGEST] == digest(STRICT)
        refused(spark, ours, WRITES[0], "INTERLOCK_POLICY_MISMATCH")
        session.sql(put_under("ours").format(t=ours))  # as it is
        session.sql(f"ALTER TABLE {ours} UNSET TBLPROPERTIES ('interlock.policy')")
    assert not {"interlock.policy", DIGEST} & latest(ours).properties.keys()


@pytest.mark.parametrize(
    "clause", ["SET TBLPROPERTIES ('{}' = '0123')", "UNSET TBLPROPERTIES ('{}')"]
)
def test_nobody_sets_the_digest(spark: SparkSession, ours: Table, clause: str) -> None:
    statement = f"ALTER TABLE {ours} {clause.format(DIGEST)}"
    expected = "INTERLOCK_REQUIRED_PROPERTY" if "UNSET" in clause else "INTERLOCK_INVALID_PROPERTY"
    with set_for_now(spark, OURS):
        assert digest() in refused(spark, ours, statement, expected)
        new = Table(ours.path.parent / "new")
        for policy in ("", "'interlock.policy' = 'ours', "):
            create = (
                f"CREATE TABLE {new} (id INT) USING delta TBLPROPERTIES ({policy}'{DIGEST}' = 'x')"
            )
            refused(spark, ours, create, "INTERLOCK_INVALID_PROPERTY")
        assert not new.path.exists()


def test_a_table_of_a_built_in_policy_may_lack_it(spark: SparkSession, example: Table) -> None:
    own = latest(example).properties[DIGEST]
    first = commit_file(example, 0)
    lines = first.read_text(encoding="utf-8").splitlines()
    actions = [json.loads(line) for line in lines]
    for action in actions:
        action.get("metaData", {}).get("configuration", {}).pop(DIGEST, None)
    first.write_text("\n".join(map(json.dumps, actions)) + "\n", encoding="utf-8")
    for checksum in (example.path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    spark.sql(f"INSERT INTO {example} VALUES (4, 'd')")
    assert DIGEST not in latest(example).properties
    spark.sql(put_under("maxcompute_delta").format(t=example))
    assert latest(example).properties[DIGEST] == own


@pytest.mark.variant
def test_copies_have_the_digest_of_their_policy(spark: SparkSession, ours: Table) -> None:
    one, two, three = (Table(ours.path.parent / name) for name in ("one", "two", "three"))
    with set_for_now(spark, OURS):
        spark.sql(f"CREATE TABLE {one} SHALLOW CLONE {ours}")
        spark.sql(f"CREATE TABLE {two} SHALLOW CLONE {ours} {under('serializable')}")
        spark.sql(f"CREATE TABLE {three} (id INT) USING delta {under('serializable')}")
        spark.sql(f"RESTORE TABLE {ours} TO VERSION AS OF 1")
    digests = [latest(table).properties[DIGEST] for table in (ours, one, two, three)]
    assert digests[:2] == [digest()] * 2
    assert digests[2] == digests[3] != digest()


def test_a_file_is_read_once(spark: SparkSession, tmp_path: Path, table_path: Path) -> None:
    file = tmp_path / "ours.policy"
    file.write_text(text(), encoding="utf-8")
    for number, path in enumerate((str(file), file.as_uri())):
        table = Table(table_path / str(number))
        with set_for_now(spark, {KEY: path}):
            spark.sql(f"CREATE TABLE {table} (id INT, v STRING) USING delta {under('ours')}")
            file.write_text(text(STRICT), encoding="utf-8")
            spark.sql(f"INSERT INTO {table} VALUES (1, 'a')")
        assert latest_version(table) == 1
    assert latest(Table(table_path / "0")).properties[DIGEST] == digest()
    assert latest(Table(table_path / "1")).properties[DIGEST] == digest(STRICT)


MALFORMED = {
    KEY: (text().replace("REMAP_ROWS", "REMAP"), f"{KEY}, line 7: cell COMPACT_MINOR -> MUTATE"),
    f"{KEY}_": ("policy ours\n" + text(), "calls itself 'ours'; call it 'ours_'"),
    f"{KEY}.too": (text(), "The name must be of letters"),
    f"{KEY}x": ("/no/such.policy", "/no/such.policy cannot be read"),
    "spark.interlock.policies.serializable": (text(), "Interlock has a policy of this name"),
}


@pytest.mark.parametrize("key", MALFORMED)
def test_malformed_ones_are_refused(spark: SparkSession, example: Table, key: str) -> None:
    value, problem = MALFORMED[key]
    with set_for_now(spark, {key: value}):
        name = key.removeprefix("spark.interlock.policies.")
        told = refused(spark, example, put_under(name), "INTERLOCK_MALFORMED_POLICY")
        assert f"The policy '{name}' of this session cannot be used" in told
        assert problem in told
        with pytest.raises(InterlockError):
            spark.sql("CALL interlock.policies()")


def test_a_path_that_leads_to_no_policy_is_refused_at_once_and_nothing_of_it_is_shown(
    spark: SparkSession, example: Table, tmp_path: Path
) -> None:
    pipe, huge, other = (tmp_path / name for name in ("pipe", "huge", "other"))
    os.mkfifo(pipe)
    with huge.open("wb") as hole:
        hole.truncate(2**40)
    other.write_text("# hosts\n| secret | of another user |\n")
    problems = {
        pipe: "is empty or no file",
        tmp_path: "is empty or no file",
        huge: f"has {2**40} bytes, and a policy has at most 65536",
        other: "line 1: has no line 'source'; add it",
    }
    for path, problem in problems.items():
        with set_for_now(spark, {KEY: str(path)}):
            told = refused(spark, example, put_under("ours"), "INTERLOCK_MALFORMED_POLICY")
            assert f"{path}" in told
            assert problem in told
            assert "secret" not in told


def test_the_command_prints_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @contextmanager
    def session(conf: list[tuple[str, str]]) -> Iterator[SparkSession]:
        with set_for_now(spark, dict(conf)):
            yield spark

    monkeypatch.setattr("interlock._commands.policies.user_session", session)
    command = ["policies", "--conf", f"{KEY}={OURS[KEY]}"]
    assert main(command) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "MUTATE | D11 REPLACE_LIVE" in printed
    assert f"ours (OPTIMIZE is COMPACT_MINOR; us; digest {digest()})" in printed
    assert "APPEND | REPLACE_LIVE | AS_IS | FAIL | AS_IS" in printed
    assert main([*command, "--json"]) == 0
    printed_policies = json.loads(capsys.readouterr().out)
    ours = next(policy for policy in printed_policies if policy["name"] == "ours")
    assert (ours["classes"], ours["isolation"]) == (list(CLASSES), "Serializable")
    verdicts = {(cell["earlier"], cell["later"]): cell["verdict"] for cell in ours["cells"]}
    assert {pair: verdict for pair, verdict in verdicts.items() if verdict != "FAIL"} == CELLS
    assert main([*command[:-1], f"{KEY}=/no/such.policy"]) == 1
    assert "/no/such.policy cannot be read" in capsys.readouterr().err


def test_a_builder_takes_texts_and_paths(tmp_path: Path) -> None:
    policies: dict[str, str | Path] = {"ours": text(), "theirs": tmp_path / "x.policy"}
    builder = interlock.configure(SparkSession.builder, policies=policies)
    assert builder._options[KEY] == text()
    assert builder._options["spark.interlock.policies.theirs"] == str(tmp_path / "x.policy")


def test_the_documentation_says_what_happens(spark: SparkSession) -> None:
    page = ROOT / "docs" / "policies.md"
    spark.sql("CREATE SCHEMA db")
    spark.sql("USE db")
    try:
        assert checked(page, spark) == page.read_text(encoding="utf-8")
    finally:
        spark.conf.unset("spark.interlock.policies.orders")
        spark.sql("USE default")
        spark.sql("DROP SCHEMA db CASCADE")


@pytest.fixture(autouse=True)
def _no_policy_is_left(spark: SparkSession) -> Iterator[None]:
    yield
    assert spark.conf.get(KEY, None) is None
