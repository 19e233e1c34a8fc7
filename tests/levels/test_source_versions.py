"""Sources that read the table before the transaction of their statement begins.

A commit that is made between the two is judged as if the statement had begun when its source read
the table: a changed row that it has read fails it, and a compaction does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from interlock.errors import ConflictError
from interlock.lab.model import Rows, in_order
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tests.kit.early_sources import CHANGES, RANGES, SOURCES, VERSIONS, Target
from tests.kit.gates import ReadGate, end_behind, phase_gate
from tests.kit.histories import foreign
from tests.kit.log_replay import check_log
from tests.kit.support import confs, deltalake_rows, latest_version, make_table, rows

POLICIES = ("row_level", "row_serializable", "serializable", "write_serializable")
START = ((1, 1), (2, 2), (3, 3))
FILES = ("INSERT INTO {t} VALUES (1, 1), (2, 2)", "INSERT INTO {t} VALUES (3, 3)")
CHANGED = "UPDATE {t} SET n = n + 100 WHERE id = 1"
OTHER = "UPDATE {t} SET n = n + 100 WHERE id = 3"
OPTIMIZE = "OPTIMIZE {t}"
WINNERS = {"changed": CHANGED, "other": OTHER, "optimize": OPTIMIZE}
AFTER: dict[str, Rows] = {
    CHANGED: ((1, 101), (2, 2), (3, 3)),
    OTHER: ((1, 1), (2, 2), (3, 103)),
    OPTIMIZE: START,
}
RERUN = {"spark.interlock.rerun.maxRuns": "3"}
_NUMBERS = count()


@pytest.fixture
def target(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Target]]:
    names: list[str] = []

    def make(policy: str, by: str) -> Target:
        table = make_table(
            spark,
            tmp_path / "t",
            policy=policy,
            columns="(id INT, n INT) USING delta",
            properties={"delta.enableDeletionVectors": "true"},
            statements=FILES,
        )
        if by == "path":
            return Target(spark, table, None)
        names.append(f"of_source_versions_{next(_NUMBERS)}")
        spark.sql(f"CREATE TABLE {names[-1]} USING delta LOCATION '{table.location}'")
        return Target(spark, table, names[-1])

    yield make
    spark.catalog.clearCache()
    for name in names:
        spark.sql(f"DROP TABLE {name}")


def one(frame: DataFrame) -> DataFrame:
    """Take the row that CHANGED changes: its id, and a number made of its own."""
    found = frame.where("id = 1").groupBy("id")
    return found.agg((f.max("n") + 1000).cast("int").alias("n"))


# They read the table anew, in the transaction.
FRESH = ("kept",)

# ---- writes: each with what it makes of rows and of the number that its source has read ----


def merge(target: Target, data: DataFrame) -> None:
    merged = target.handle().alias("t").merge(data.alias("s"), "t.id = s.id")
    merged.whenMatchedUpdate(set={"n": "s.n"}).execute()


def merge_into_other(target: Target, data: DataFrame) -> None:
    merged = target.handle().alias("t").merge(data.alias("s"), "t.id = s.id + 1")
    merged.whenMatchedUpdate(set={"n": "s.n"}).execute()


def update(target: Target, data: DataFrame) -> None:
    data.createOrReplaceTempView("source")
    target.spark.sql(f"UPDATE {target} SET n = (SELECT max(n) FROM source) WHERE id = 2")


def insert_into(target: Target, data: DataFrame) -> None:
    data.write.mode("append").insertInto(str(target))


def insert_sql(target: Target, data: DataFrame) -> None:
    data.createOrReplaceTempView("source")
    target.spark.sql(f"INSERT INTO {target} SELECT * FROM source")


def with_number(identifier: int) -> Callable[[Rows, int], Rows]:
    def after(before: Rows, number: int) -> Rows:
        return tuple((i, number if i == identifier else n) for i, n in before)

    return after


Write = Callable[[Target, DataFrame], None]
Means = Callable[[Rows, int], Rows]
_added: Means = lambda before, number: (*before, (1, number))  # noqa: E731
WRITES: dict[str, tuple[Write, Means]] = {
    "append": (lambda target, data: target.write(data, "append"), _added),
    "insertInto": (insert_into, _added),
    "INSERT": (insert_sql, _added),
    "overwrite": (
        lambda target, data: target.write(data, "overwrite"),
        lambda before, number: ((1, number),),
    ),
    "replaceUsing": (Target.replace_using, with_number(1)),
    "replaceOn": (Target.replace_on, with_number(1)),
    "MERGE": (merge, with_number(1)),
    "MERGE of another row": (merge_into_other, with_number(2)),
    "UPDATE": (update, with_number(2)),
}


def serial(winner: str, means: Means) -> Rows:
    """The rows that the winner leaves and then the write."""
    before = AFTER[winner]
    return in_order(means(before, before[0][1] + 1000))  # type: ignore[operator]


def check(
    target: Target,
    winner: str,
    means: Means,
    error: BaseException | None,
    *,
    fails: bool | None,
) -> None:
    """Check the rows, and whether it has lost; None where both are right, each with its rows."""
    found = deltalake_rows(target.table)
    if error is None:
        assert found == serial(winner, means), f"{found} is not {serial(winner, means)}"
        assert not fails, "it has not lost, and its rows are right"
    else:
        assert isinstance(error, ConflictError), repr(error)
        assert error.winner_version == 3
        assert found == in_order(AFTER[winner])
        assert latest_version(target.table) == 3
        assert fails is not False, f"lost for nothing: {error}"
    assert rows(target.spark, target.table) == found
    check_log(target.table)


def beside(winner: Callable[[], object]) -> None:
    """Run a winner as another thread does: what the own thread commits is no winner."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(winner).result()


def ended(work: Callable[[], object]) -> BaseException | None:
    try:
        work()
    except Exception as error:
        return error
    return None


def expected(source: str, winner: str) -> bool | None:
    if source in FRESH or winner == "optimize":
        return False
    if source == "cache":
        return None  # a change by the same process ends what is cached
    return True if winner == "changed" else None  # it may count as having read the whole table


def settings(source: str, runs: int = 1) -> dict[str, str]:
    return dict(CHANGES if source == "changes" else ()) | (RERUN if runs > 1 else {})


@pytest.mark.variant_cases(
    but=[
        "localCheckpoint-name-optimize",
        "cache-path-changed",
        "latest version-path-changed",
        "between-path-changed",
        "changes-path-changed",
        "kept-path-changed",
    ]
)
@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("by", ["path", "name"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_frame_that_has_read_the_table(
    spark: SparkSession, target: Callable[..., Target], source: str, by: str, winner: str
) -> None:
    table = target("row_level", by)
    with confs(spark, settings(source)):
        data = SOURCES[source].read(table, one)
        beside(lambda: spark.sql(WINNERS[winner].format(t=table)))
        write, means = WRITES["append"]
        error = ended(lambda: write(table, data))
    fails = expected(source, winner)
    check(table, WINNERS[winner], means, error, fails=fails)


@pytest.mark.variant_cases("name")
@pytest.mark.parametrize("by", ["path", "name"])
def test_a_frame_that_was_cached_before_another_process_changed_the_table(
    spark: SparkSession, target: Callable[..., Target], by: str
) -> None:
    table = target("row_level", by)
    data = SOURCES["cache"].read(table, one)
    delete = foreign.delete(None, tells=True).by_hand
    assert delete is not None
    delete(table.table)
    assert deltalake_rows(table.table) == ()
    error = ended(lambda: WRITES["append"][0](table, data))
    assert isinstance(error, ConflictError), deltalake_rows(table.table)
    assert deltalake_rows(table.table) == ()
    assert latest_version(table.table) == 3


@pytest.mark.variant_cases(
    but=[
        "overwrite-localCheckpoint-name-changed",
        "replaceUsing-localCheckpoint-name-changed",
        "MERGE-localCheckpoint-name-changed",
        "UPDATE-localCheckpoint-name-changed",
    ]
)
@pytest.mark.parametrize("winner", ["changed", "optimize"])
@pytest.mark.parametrize("by", ["path", "name"])
@pytest.mark.parametrize("source", ["localCheckpoint", "latest version", "kept"])
@pytest.mark.parametrize("write", [name for name in WRITES if name != "append"])
def test_each_write_of_it(
    spark: SparkSession,
    target: Callable[..., Target],
    write: str,
    source: str,
    by: str,
    winner: str,
) -> None:
    table = target("row_level", by)
    data = SOURCES[source].read(table, one)
    beside(lambda: spark.sql(WINNERS[winner].format(t=table)))
    run, means = WRITES[write]
    error = ended(lambda: run(table, data))
    fails = expected(source, winner)
    check(table, WINNERS[winner], means, error, fails=fails)


@pytest.mark.variant_cases(
    but=[
        "append-localCheckpoint-changed-row_serializable",
        "replaceUsing-latest version-optimize-serializable",
    ]
)
@pytest.mark.parametrize("policy", POLICIES[1:])
@pytest.mark.parametrize("winner", ["changed", "optimize"])
@pytest.mark.parametrize("source", ["localCheckpoint", "latest version"])
@pytest.mark.parametrize("write", ["append", "replaceUsing"])
def test_other_levels(
    spark: SparkSession,
    target: Callable[..., Target],
    write: str,
    source: str,
    winner: str,
    policy: str,
) -> None:
    table = target(policy, "path")
    data = SOURCES[source].read(table, one)
    beside(lambda: spark.sql(WINNERS[winner].format(t=table)))
    run, means = WRITES[write]
    error = ended(lambda: run(table, data))
    check(table, WINNERS[winner], means, error, fails=winner == "changed")


@pytest.mark.variant_cases(but=["*-path-changed-row_level", "replaceUsing-path-other-row_level"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("winner", WINNERS)
@pytest.mark.parametrize("by", ["path", "name"])
@pytest.mark.parametrize("write", ["replaceUsing", "replaceOn"])
def test_a_source_that_is_computed_before_the_transaction(
    spark: SparkSession,
    target: Callable[..., Target],
    write: str,
    by: str,
    winner: str,
    policy: str,
) -> None:
    """With a table name the transaction begins first, so the source reads the winner's rows."""
    table = target(policy, by)
    run, means = WRITES[write]
    error = end_behind(
        spark,
        lambda: run(table, one(table.frame())),
        lambda: spark.sql(WINNERS[winner].format(t=table)),
        ReadGate,
    )
    if winner == "other" and policy in ("serializable", "write_serializable"):
        return  # files decide there
    fails = by == "path" and winner == "changed"
    check(table, WINNERS[winner], means, error, fails=fails)


STATEMENTS: dict[str, tuple[str, Means]] = {
    "INSERT": (
        "INSERT INTO {t} SELECT 1, CAST(max(n) + 1000 AS INT) FROM {t} %s WHERE id = 1",
        _added,
    ),
    "UPDATE": (
        "UPDATE {t} SET n = 1000 + (SELECT max(n) FROM {t} %s WHERE id = 1) WHERE id = 2",
        with_number(2),
    ),
    "MERGE": (
        "MERGE INTO {t} t USING (SELECT 2 AS id, max(n) + 1000 AS n FROM {t} %s WHERE id = 1) s "
        "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n",
        with_number(2),
    ),
}


@pytest.mark.variant_cases(
    but=[
        "UPDATE-latest version-path-commits-3-changed",
        "INSERT-current time-name-begins-1-optimize",
        "INSERT-between-name-commits-3-changed",
        "INSERT-changes-name-commits-1-changed",
        "UPDATE-changes-name-begins-1-changed",
    ]
)
@pytest.mark.parametrize(("runs", "winner"), [(1, "changed"), (3, "changed"), (1, "optimize")])
@pytest.mark.parametrize("gate", ["begins", "commits"])
@pytest.mark.parametrize("by", ["path", "name"])
@pytest.mark.parametrize(
    ("statement", "version"),
    [
        (statement, version)
        for statement in STATEMENTS
        for version in VERSIONS
        if statement != "UPDATE" or version not in RANGES
    ],
)
def test_a_statement_with_a_version_that_a_function_names(
    spark: SparkSession,
    target: Callable[..., Target],
    statement: str,
    version: str,
    by: str,
    gate: str,
    runs: int,
    winner: str,
) -> None:
    """The winner commits before the statement begins, or before it commits."""
    table = target("row_level", by)
    text, means = STATEMENTS[statement]
    sql = (text % VERSIONS[version]).format(t=table)
    with confs(spark, settings(version, runs)):
        error = end_behind(
            spark,
            lambda: spark.sql(sql),
            lambda: spark.sql(WINNERS[winner].format(t=table)),
            ReadGate if gate == "begins" else phase_gate,
        )
    fails = False if winner == "optimize" else True if runs == 1 else None
    check(table, WINNERS[winner], means, error, fails=fails)


@pytest.mark.variant_cases(but=["path-3"])
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("by", ["path", "name"])
def test_a_range_without_an_end(
    spark: SparkSession, target: Callable[..., Target], by: str, runs: int
) -> None:
    table = target("row_level", by)
    write, means = WRITES["append"]
    with confs(spark, settings("", runs)):
        error = end_behind(
            spark,
            lambda: write(table, SOURCES["afterVersion"].read(table, one)),
            lambda: spark.sql(CHANGED.format(t=table)),
            phase_gate,
        )
    check(table, CHANGED, means, error, fails=True if runs == 1 else None)


@pytest.mark.variant_cases(but=["path-changed"])
@pytest.mark.parametrize("winner", ["changed", "optimize"])
@pytest.mark.parametrize("by", ["path", "name"])
def test_a_frame_of_foreach_batch(
    spark: SparkSession,
    target: Callable[..., Target],
    tmp_path: Path,
    by: str,
    winner: str,
) -> None:
    """The stream reads the table, by a join, before the function writes into it."""
    table = target("row_level", by)
    arrived = str(tmp_path / "arrived")
    spark.sql("SELECT 1 AS key").write.format("delta").save(arrived)
    write, means = WRITES["append"]
    errors: list[BaseException | None] = []

    def each(data: DataFrame, number: int) -> None:
        data.persist()  # it is computed here
        data.count()
        beside(lambda: spark.sql(WINNERS[winner].format(t=table)))
        errors.append(ended(lambda: write(table, data)))

    stream = spark.readStream.format("delta").load(arrived)
    joined = stream.join(table.frame(), f.expr("id = key"))
    new = joined.selectExpr("id", "n + 1000 AS n")
    query = (
        new.writeStream.foreachBatch(each)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    check(table, WINNERS[winner], means, errors[0], fails=winner == "changed")


@pytest.mark.parametrize("own", [True, False])
def test_what_the_same_thread_commits_after_it_has_read(
    spark: SparkSession, target: Callable[..., Target], own: bool
) -> None:
    """A program may take rows, delete them and write them back."""
    table = target("row_level", "path")
    data = SOURCES["localCheckpoint"].read(table, one)
    delete = f"DELETE FROM {table} WHERE id = 1"
    if own:
        spark.sql(delete)
    else:
        beside(lambda: spark.sql(delete))
    error = ended(lambda: table.write(data, "append"))
    assert isinstance(error, ConflictError) is not own
    left = ((2, 2), (3, 3))
    assert deltalake_rows(table.table) == (((1, 1001), *left) if own else left)


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_handle_that_is_older_than_a_column(
    spark: SparkSession, target: Callable[..., Target], vectors: str
) -> None:
    """Delta would rewrite rows without the new column."""
    table = target("row_level", "path")
    handle = table.handle()
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{vectors}')"
    )
    spark.sql(f"ALTER TABLE {table} ADD COLUMN w INT")
    spark.sql(f"UPDATE {table} SET w = 5")
    stale: list[Callable[[], object]] = [lambda: handle.update("id = 1", {"n": "n + 1"})]
    if vectors == "false":
        stale.append(lambda: handle.delete("id = 1"))
    for run in stale:
        with pytest.raises(AnalysisException) as refused:
            run()
        assert refused.value.getCondition() == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    table.handle().update("id = 1", {"n": "n + 1"})
    if vectors == "true":
        handle.delete("id = 2")
    else:
        table.handle().delete("id = 2")
    assert deltalake_rows(table.table) == ((1, 2, 5), (3, 3, 5))


def test_a_merge_by_a_handle_that_is_older_than_a_field(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = "(id INT, s STRUCT<a: INT>) USING delta"
    insert = "INSERT INTO {t} VALUES (1, named_struct('a', 1))"
    made = make_table(
        spark, tmp_path / "t", policy="row_level", columns=columns, statements=(insert,)
    )
    table = Target(spark, made, None)
    handle, source = table.handle(), spark.sql("SELECT 1 AS id")
    spark.sql(f"ALTER TABLE {table} ADD COLUMN s.b INT")
    spark.sql(f"UPDATE {table} SET s.b = 5")
    merge = handle.alias("t").merge(source.alias("s"), "t.id = s.id")
    with pytest.raises(AnalysisException) as refused:
        merge.whenMatchedUpdate(set={"id": "t.id + 1"}).execute()
    assert refused.value.getCondition() == "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"
    assert rows(spark, made) == ((1, (1, 5)),)


@pytest.mark.parametrize("changed", [1, 2])
def test_two_scans_of_the_same_files(
    spark: SparkSession, target: Callable[..., Target], changed: int
) -> None:
    table = target("row_level", "path")
    scans = [table.frame().where(f"id = {identifier}") for identifier in (1, 2)]
    data = scans[0].union(scans[1]).localCheckpoint()
    beside(lambda: spark.sql(f"UPDATE {table} SET n = 9 WHERE id = {changed}"))
    assert isinstance(ended(lambda: table.write(data, "append")), ConflictError)
    assert latest_version(table.table) == 3
