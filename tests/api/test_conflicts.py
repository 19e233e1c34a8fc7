"""Records and explanations of conflicts in Python."""

from __future__ import annotations

import json
from datetime import timezone
from pathlib import Path
from typing import NamedTuple, cast

import interlock
import pytest
from interlock._tabular import fitted, grid
from interlock._timeline.jobs import jobs
from pyspark.sql import SparkSession

from tests.kit.api_races import lose
from tests.kit.support import Table, commit_info, make_table


class Lost(NamedTuple):
    """A table of which two jobs have lost a row: one by its rows, then one by its schema."""

    table: interlock.Table
    path: Path
    merge: interlock.ConflictError
    insert: interlock.ConflictError


@pytest.fixture(scope="module")
def lost(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lost:
    made = make_table(spark, tmp_path_factory.mktemp("lost") / "t", policy="row_level")

    def merge(held: str) -> None:
        spark.sql(
            f"MERGE INTO {made} t USING (SELECT {held}(20) AS n) s ON t.v < 'b' "
            "WHEN MATCHED THEN UPDATE SET v = CAST(s.n AS STRING)"
        )

    def insert(held: str) -> None:
        spark.sql(f"INSERT INTO {made} SELECT {held}(20), 'j'")

    winner = f"UPDATE {made} SET v = 'a2' WHERE id = 3"
    by_rows = lose(spark, {"merge": merge}, winner)["merge"]
    alter = f"ALTER TABLE {made} ADD CONSTRAINT c CHECK (id > 0)"
    by_schema = lose(spark, {"insert": insert}, alter)["insert"]
    table = interlock.table(spark, str(made.path))
    return Lost(
        table,
        made.path,
        cast(interlock.ConflictError, by_rows),
        cast(interlock.ConflictError, by_schema),
    )


@pytest.mark.variant_cases("classic")
def test_an_error_says_where_they_met(lost: Lost) -> None:
    error = lost.merge
    assert isinstance(error, interlock.ConcurrentAppendError), error
    assert (error.rule, error.policy) == ("MUTATE -> MUTATE", "row_level")
    assert error.predicate is not None
    assert "v" in error.predicate
    assert [json.loads(row)["v"] for row in error.rows] == ["a2"]
    assert error.txn_id is not None
    assert len(error.txn_id) == 36


@pytest.mark.variant_cases("connect")
def test_conflicts(spark: SparkSession, mode: str, lost: Lost) -> None:
    found = lost.table.conflicts()
    assert isinstance(found, interlock.Conflicts)
    newest, oldest = found
    assert lost.table.conflicts(limit=1).records == (newest,)
    assert (newest.kind, newest.policy, newest.txn_id) == (
        "MetadataChanged",
        "row_level",
        newest.txn_id,
    )
    error = lost.merge
    assert oldest.txn_id == error.txn_id
    assert (oldest.outcome, oldest.operation, oldest.operation_class) == (
        "REJECTED",
        "MERGE",
        "MUTATE",
    )
    assert (oldest.rules, oldest.condition, oldest.message) == (
        (error.rule,),
        error.condition,
        error.message,
    )
    assert (oldest.rows, oldest.predicate, oldest.files) == (
        error.rows,
        error.predicate,
        error.files,
    )
    assert (oldest.read_version, oldest.version, oldest.winners) == (2, None, (3,))
    assert oldest.winner_txn_id == commit_info(Table(lost.path), 3)["txnId"]
    assert oldest.time.tzinfo is timezone.utc
    assert oldest.time <= newest.time
    assert oldest.user
    if mode == "connect":
        assert oldest.session == spark.session_id  # type: ignore[attr-defined]
    frame = found.to_pandas()
    assert list(frame["winners"].iloc[1]) == [3]
    assert "class" in frame.columns


def test_explain_takes_an_error_or_an_id(lost: Lost) -> None:
    told = lost.table.explain(lost.merge)
    assert lost.merge.txn_id is not None
    assert told == lost.table.explain(lost.merge.txn_id)
    assert isinstance(told, interlock.Explanation)
    assert told.source is not None
    assert "Delta Lake" in told.source
    assert told.policies_by_rows == ("row_level", "row_serializable")
    assert told.retry_helps is True
    assert str(told) == told.text
    assert f"Predicate: {told.predicate}" in str(told)
    assert "matched rows that the winner changed" in str(told)
    assert told._repr_html_().startswith("<pre>MERGE lost: version 3 (UPDATE by ")
    assert f"{lost.merge.why}. Policy row_level lets two jobs commit unless" in told.text
    assert told.to_pandas()["retry_helps"].tolist() == [True]
    assert told.to_dicts()[0]["class"] == "MUTATE"


@pytest.mark.variant_cases("connect")
def test_errors_of_deltas_own_checks_are_found_by_their_message(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = make_table(spark, tmp_path / "t", policy="maxcompute_delta")

    def insert(held: str) -> None:
        spark.sql(f"INSERT INTO {made} SELECT {held}(20), 'j'")

    alter = f"ALTER TABLE {made} ADD COLUMN w INT FIRST"
    error = lose(spark, {"insert": insert}, alter)["insert"]
    assert isinstance(error, interlock.ConflictError)
    assert error.txn_id is None
    told = interlock.table(spark, str(made.path)).explain(error)
    assert (told.kind, told.operation) == ("MetadataChanged", "INSERT INTO")
    assert told.message == error.message


@pytest.mark.variant_cases("classic")
def test_a_conflict_that_no_table_has_recorded(
    spark: SparkSession, tmp_path: Path, lost: Lost
) -> None:
    """Without a policy nothing is recorded; under one, errors of another table are not known."""
    made = make_table(spark, tmp_path / "t", policy=None)

    def merge(held: str) -> None:
        spark.sql(
            f"MERGE INTO {made} t USING (SELECT {held}(20) AS n) s ON t.v < 'b' "
            "WHEN MATCHED THEN UPDATE SET v = CAST(s.n AS STRING)"
        )

    winner = f"UPDATE {made} SET v = 'a2' WHERE id = 3"
    error = lose(spark, {"merge": merge}, winner)["merge"]
    assert isinstance(error, interlock.ConflictError)
    with pytest.raises(interlock.UsageError) as caught:
        interlock.table(spark, str(made.path)).explain(error)
    assert caught.value.condition == "INTERLOCK_UNKNOWN_TRANSACTION"
    assert str(caught.value).splitlines() == [
        f"There is no record of this conflict on delta.`{made.path}`.",
        "The table has no policy, and conflicts are recorded only under one: ALTER TABLE "
        f"delta.`{made.path}` SET TBLPROPERTIES ('interlock.policy' = 'row_level').",
    ]
    with pytest.raises(interlock.UsageError, match="It was on another table"):
        lost.table.explain(error)


def test_the_timeline_tells_it_in_the_words_of_the_error(lost: Lost) -> None:
    drawn = {job.key: job for job in jobs(lost.table.history(), lost.table.conflicts())}
    story = drawn[f"a-{lost.merge.txn_id}"].story
    assert story == ("MERGE lost against version 3.", *lost.merge.message.splitlines())


@pytest.mark.variant_cases("connect")
def test_an_unknown_transaction(lost: Lost) -> None:
    with pytest.raises(interlock.UsageError) as caught:
        lost.table.explain("it's nothing")
    assert caught.value.condition == "INTERLOCK_UNKNOWN_TRANSACTION"
    assert str(lost.merge.txn_id) in str(caught.value)


def test_columns_that_do_not_fit_a_terminal_are_named() -> None:
    table = [["a", "bb", "ccc"], ["1", "2", "3"]]
    shown = ["a | bb", "--+---", "1 | 2"]
    note = "(not shown: ccc; to_dicts(), to_pandas() and --json have all)"
    assert fitted(table, 8) == [*shown, note]
    assert fitted(table, 12) == grid(table)
