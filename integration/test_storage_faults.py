"""Each call of a commit to the file system fails once: nothing is left, or the error says what is.

A statement is held before its commit, the n-th call that concerns its table is made to fail, and
the statement goes on. `make soak` lets n go up until no call is left, for each kind of statement.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from integration import file_faults
from tests.kit.driver_process import Answer, DriverProcess, driver_processes
from tests.kit.support import Table, commit_file, deltalake_rows, versions

MOST_CALLS = 400
# No checkpoint comes between.
WITH_POLICY = (
    "TBLPROPERTIES ('interlock.policy' = 'row_level', 'delta.checkpointInterval' = '1000')"
)
PLAIN = "TBLPROPERTIES ('delta.checkpointInterval' = '1000')"
THREE = (
    "SELECT /*+ COALESCE(1) */ col1 AS id, col2 AS v "
    "FROM VALUES ({n}1, 'a'), ({n}2, 'b'), ({n}3, 'c')"
)
MERGE = (
    "MERGE INTO {t} t USING (SELECT explode(array({n}1, {n}9)) AS id) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'm')"
)


class Case(NamedTuple):
    """A statement whose commit meets the faults; `{t}` is its table, `{n}` the number of the call.

    Attributes:
        statement: it
        winner: what is committed between its work and its commit, "" for nothing
        on_new_table: whether it makes the table
        properties: of the table
        loses: whether it loses against the winner, fault or not
        reads_log: whether it reads the whole log, so that each call needs a new table
        given: what makes the table `{s}` or the Parquet files in `{path}` that it reads

    """

    statement: str
    winner: str = ""
    on_new_table: bool = False
    properties: str = WITH_POLICY
    loses: bool = False
    reads_log: bool = False
    given: str = ""


INSERT = Case("INSERT INTO {t} VALUES ({n}0, 'x')")
# Statements that give a table its first policy: Delta commits by itself.
BIND = Case("ALTER TABLE {t} SET " + WITH_POLICY, properties=PLAIN)
BIND_BEHIND_COORDINATOR = BIND._replace(
    properties="TBLPROPERTIES ('interlock.coordinator' = 'filesystem')"
)
REPLACE = Case(
    f"CREATE OR REPLACE TABLE {{t}} USING delta {WITH_POLICY} AS {THREE}", properties=PLAIN
)
RESTORE = Case("RESTORE TABLE {t} TO VERSION AS OF 1", reads_log=True)
SOURCE = (
    f"CREATE TABLE {{s}} USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true') AS {THREE}"
)
# If its source has row tracking, a clone may give an empty table its first policy.
REPLACE_BY_CLONE = Case(
    f"CREATE OR REPLACE TABLE {{t}} SHALLOW CLONE {{s}} {WITH_POLICY}",
    on_new_table=True,
    properties=PLAIN,
    given=f'spark.sql("{SOURCE}"), '
    f'spark.sql("CREATE TABLE {{t}} (id INT, v STRING) USING delta {PLAIN}")',
)
CASES = {
    "insert": INSERT,
    "delete-rebased": Case(
        "DELETE FROM {t} WHERE id = {n}1", winner="DELETE FROM {t} WHERE id = {n}2"
    ),
    "ctas": Case(
        f"CREATE TABLE {{t}} USING delta PARTITIONED BY (v) {WITH_POLICY} AS {THREE}",
        on_new_table=True,
    ),
    "bind": BIND,
    "create": Case(
        f"CREATE TABLE {{t}} (id INT, v STRING) USING delta {WITH_POLICY}", on_new_table=True
    ),
    "insert-behind": Case("INSERT INTO {t} VALUES ({n}0, 'x')", winner="OPTIMIZE {t}"),
    "update": Case("UPDATE {t} SET v = 'u' WHERE id = {n}1"),
    "merge": Case(MERGE),
    "overwrite": Case(f"INSERT OVERWRITE {{t}} {THREE}"),
    "truncate": Case("TRUNCATE TABLE {t}"),
    "optimize": Case("OPTIMIZE {t}"),
    "compact": Case("ALTER TABLE {t} COMPACT MAJOR"),
    "loses": Case("UPDATE {t} SET v = 'u'", winner="UPDATE {t} SET v = 'w'", loses=True),
    "alter": Case("ALTER TABLE {t} SET TBLPROPERTIES ('x' = '{n}')"),
    "alter-ours": Case(
        "ALTER TABLE {t} SET TBLPROPERTIES ('interlock.compaction.minFiles' = '1{n}')"
    ),
    "replace": Case(f"CREATE OR REPLACE TABLE {{t}} USING delta {WITH_POLICY} AS {THREE}"),
    "replace-bind": REPLACE,
    "restore": RESTORE,
    "clone": Case(
        f"CREATE TABLE {{t}} SHALLOW CLONE {{s}} {WITH_POLICY}",
        on_new_table=True,
        given=SOURCE,
    ),
    "clone-bind": REPLACE_BY_CLONE,
    "convert": Case(
        "spark.conf.set('spark.interlock.defaultPolicy', 'row_level')\n"
        "try: spark.sql('CONVERT TO DELTA parquet.`{path}`')\n"
        "finally: spark.conf.unset('spark.interlock.defaultPolicy')",
        on_new_table=True,
        given="spark.sql(\"SELECT {n}1 AS id, 'c' AS v\").write.parquet('{path}')",
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverProcess]:
    folder = tmp_path_factory.mktemp("faults")
    settings = file_faults.settings(folder)
    with driver_processes(folder, "interlock", settings=settings) as (process,):
        yield process


@pytest.mark.variant_cases(but=["insert"])
@pytest.mark.parametrize(
    ("case", "numbers", "errors"),
    [
        (INSERT, (5, 12, 19, 22), {"StorageError", "CommitStateUnknown"}),
        (BIND, (1, 3), {"StorageError"}),
        (REPLACE, (12, 14, 16, 18), {"StorageError", "CommittedError"}),
        (REPLACE_BY_CLONE, (8, 16, 24), {"StorageError", "CommittedError"}),
        (RESTORE, (30, 32), {"CommittedError"}),  # behind its commit, on a busy machine too
    ],
    ids=["insert", "alter", "replace", "clone", "restore"],
)
def test_some_calls(
    session: DriverProcess, tmp_path: Path, case: Case, numbers: Sequence[int], errors: set[str]
) -> None:
    ends = [check(session, table_of(session, tmp_path, case, n), case, n) for n in numbers]
    assert {end.error for end in ends} - {None} == errors


@pytest.mark.variant_cases("failed", "exists")
@pytest.mark.parametrize(
    ("case", "told", "error"),
    [
        (REPLACE, "java.io.IOException", "CommittedError"),
        (REPLACE, "java.io.InterruptedIOException", "Py4JJavaError"),
        (REPLACE, "java.lang.IllegalStateException", "CommittedError"),
        # Hadoop's second try finds the file of its first one.
        (REPLACE, "org.apache.hadoop.fs.FileAlreadyExistsException", "CommittedError"),
        (REPLACE_BY_CLONE, "org.apache.hadoop.fs.FileAlreadyExistsException", "CommittedError"),
    ],
    ids=["failed", "interrupted", "odd", "exists", "clone-exists"],
)
def test_a_first_policy_whose_commit_is_made_and_not_answered(
    session: DriverProcess, tmp_path: Path, case: Case, told: str, error: str
) -> None:
    """Delta makes this commit itself: an error does not prove that its files are unused."""
    table = table_of(session, tmp_path, case, 1)
    known = versions(table)
    session.hold(text_of(case.statement, table, 1))
    file_faults.fail_commit(session, commit_file(table, len(known)), told, done=True)
    end = session.open()
    file_faults.disarm(session, table)
    assert end.error == error, end.message
    assert versions(table) == [*known, len(known)]
    assert deltalake_rows(table) == ((11, "a"), (12, "b"), (13, "c"))
    check_rows(session, table)
    run(session, f"INSERT INTO {table} VALUES (1, 'after')")
    check_rows(session, table)


@pytest.mark.variant_cases("protocol", "row-ids")
@pytest.mark.parametrize(
    ("case", "step"),
    [(BIND, 2), (BIND, 3), (BIND, 4), (BIND_BEHIND_COORDINATOR, 3)],
    ids=["protocol", "row-ids", "properties", "row-ids-behind-coordinator"],
)
def test_a_first_policy_that_lacks_a_commit_is_given_by_the_next_try(
    session: DriverProcess, tmp_path: Path, case: Case, step: int
) -> None:
    """ALTER TABLE commits the protocol, the row ids and the properties: one of them fails."""
    table = table_of(session, tmp_path, case, 1)
    failing = commit_file(table, step)
    file_faults.fail_commit(session, failing, "java.io.IOException", done=False)
    end = session.run(text_of(case.statement, table, 1))
    file_faults.disarm(session, table)
    assert end.error == "StorageError"
    assert end.message.startswith("[INTERLOCK_BINDING_INCOMPLETE]"), end.message
    assert versions(table) == list(range(step))
    run(session, case.statement.format(t=table), f"INSERT INTO {table} VALUES (1, 'after')")
    assert deltalake_rows(table) == ((0, "first"), (1, "after"))
    check_rows(session, table)


def test_a_clone_that_brings_the_first_policy_spares_a_table_made_anew(
    session: DriverProcess, tmp_path: Path
) -> None:
    table, other = table_of(session, tmp_path, REPLACE_BY_CLONE, 1), Table(tmp_path / "other")
    session.hold(text_of(REPLACE_BY_CLONE.statement, table, 1))
    run(session, f"CREATE TABLE {other} USING delta AS SELECT 100 AS id, 'new' AS v")
    shutil.rmtree(table.path)
    other.path.rename(table.path)
    end = session.open()
    assert end.error == "UsageError"
    assert end.message.startswith("[INTERLOCK_TABLE_GONE]"), end.message
    assert deltalake_rows(table) == ((100, "new"),)
    assert versions(table) == [0]
    check_rows(session, table)


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_each_call(session: DriverProcess, tmp_path: Path, name: str) -> None:
    case, ends = CASES[name], []
    for number in range(1, MOST_CALLS):
        if number == 1 or case.on_new_table or case.reads_log or case.properties == PLAIN:
            table = table_of(session, tmp_path, case, number)
        ends.append(check(session, table, case, number))
        run(session, "spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()")
        if ends[-1].call is None:
            break
    assert ends[-1].call is None, "there are more calls"
    if not case.loses:
        assert ends[-1].error is None
        errors = {end.error for end in ends}
        assert "StorageError" in errors
        assert errors & {"CommitStateUnknown", "CommittedError"}
    print("\n".join(f"{end.error}\t{end.call}" for end in ends))


def table_of(session: DriverProcess, folder: Path, case: Case, number: int) -> Table:
    table = Table(folder / f"table-{number}")
    if not case.on_new_table:
        run(session, f"CREATE TABLE {table} (id INT, v STRING) USING delta {case.properties}")
        run(session, f"INSERT INTO {table} VALUES (0, 'first')")
    if case.given:
        run(session, text_of(case.given, table, number))
    return table


def text_of(text: str, table: Table, number: int) -> str:
    source = Table(table.path.with_name(f"source-{number}"))
    return text.format(t=table, n=number, s=source, path=table.path)


class End(NamedTuple):
    """How the statement ended, and which call failed, None if none was left."""

    error: str | None
    call: str | None


def check(session: DriverProcess, table: Table, case: Case, number: int) -> End:
    """Let one call fail, and look at all that is there afterwards."""
    statement = text_of(case.statement, table, number)
    if not case.on_new_table:
        run(session, f"INSERT INTO {table} {THREE.format(n=number)}")
    before = paths(table)
    session.hold(statement)
    held = paths(table)
    if case.winner:
        run(session, text_of(case.winner, table, number))
    known, of_winner = versions_of(table), paths(table) - held
    file_faults.arm(session, table, number)
    end = session.open()
    call = file_faults.disarm(session, table)
    made = versions_of(table)[len(known) :]
    left = paths(table) - before - of_winner
    said = f"{call}: {end.error}, {end.message}"
    if end.error is None:
        assert made, said
    elif end.error in ("CommitStateUnknown", "CommittedError"):
        assert made, said
        assert_told(end, said)
    elif (case.properties == PLAIN or case.given) and "[FAILED_READ_FILE" in end.message:
        run(session, statement)  # Spark's word, as on stock
    elif "BINDING_INCOMPLETE" in end.message:
        assert_told(end, said)
        run(session, statement)
    else:
        assert end.error == "StorageError" or is_conflict(end), said
        assert not made, said
        allowed = ["_interlock"]
        if str(call).startswith("java.io.File.delete "):
            allowed += [".crc"]  # Hadoop's, where the clean-up itself is what fails
        if case.properties == PLAIN:
            allowed += [".tmp"]  # Delta leaves that of a commit which fails
        assert not [path for path in left if not any(part in path for part in allowed)], said
        assert_told(end, said)
    if case.on_new_table and not made:
        run(session, statement)
    run(session, f"INSERT INTO {table} VALUES ({number}, 'after')")
    check_rows(session, table)
    return End(end.error, call)


def is_conflict(end: Answer) -> bool:
    return str(end.error).startswith("Concurrent")


def assert_told(end: Answer, said: str) -> None:
    """Look for the condition, and the call's own words."""
    assert end.message.startswith("[INTERLOCK_"), said
    assert "Exception: " in end.message or is_conflict(end), said


def check_rows(session: DriverProcess, table: Table) -> None:
    """Read the table in a session and without Spark: nothing is twice, nothing is unreadable."""
    rows = deltalake_rows(table)
    assert len(set(rows)) == len(rows)
    run(session, f"spark.version; assert spark.table('{table}').count() == {len(rows)}")


def paths(table: Table) -> set[str]:
    return {str(file.relative_to(table.path)) for file in table.path.rglob("*")}


def versions_of(table: Table) -> list[int]:
    return versions(table) if table.path.exists() else []


def run(session: DriverProcess, *codes: str) -> None:
    for code in codes:
        end = session.run(code)
        assert end.error is None, end.message
