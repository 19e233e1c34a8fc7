"""Histories under isolation levels: serial orders explain them, and nobody loses for nothing.

INTERLOCK_HISTORIES=5000 pytest -m soak tests/levels/test_isolation.py  # so many new ones in all
INTERLOCK_HISTORY_SEED=7 pytest -m "" tests/levels/test_isolation.py -k row_level-early  # one
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.histories.generate import Planned
from tests.kit.histories.model import Predicate, Row
from tests.kit.histories.run import Runner
from tests.kit.isolation import statements
from tests.kit.isolation.check import check
from tests.kit.isolation.early import name_of
from tests.kit.isolation.generate import History, history
from tests.kit.isolation.statements import Statement
from tests.kit.isolation.workloads import WORKLOADS
from tests.kit.snapshots import delete_table
from tests.kit.support import Table

POLICIES = ("serializable", "write_serializable", "row_level", "row_serializable")
QUICK: dict[str, Sequence[int]] = {
    "changes": range(8),
    "bank": range(3),
    "lists": range(4),
    "skew": range(6),
    "keys": range(8),
    "z-order": range(103, 106),
    "clustering": range(103, 106),
    "columns": range(8),
    # Of two jobs, the first of which changes what the other has read: by replaceUsing, replaceOn,
    # versions and times that functions name, a range without an end, changes, and frames that were
    # checkpointed (in each way).
    "early": (1679, 572, 651, 13980, 9685, 2617, 3479, 224, 2414, 1128, 1034),
}
SEED = os.environ.get("INTERLOCK_HISTORY_SEED")
HISTORIES = int(os.environ.get("INTERLOCK_HISTORIES", "2000"))

Run = Callable[[History], Counter[str]]


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, stock: DriverProcess) -> Run:
    """Runs a history on a table of its own and checks what came of it."""
    folder, runner = tmp_path_factory.mktemp("isolation"), Runner(spark)
    numbers = itertools.count()

    def by_stock(planned: Planned) -> Planned:
        def by_hand(table: Table) -> None:
            assert stock.run(planned.job.sql.format(t=table)).error is None

        job = planned.job
        foreign = isinstance(job, Statement) and job.by_stock
        return replace(planned, job=replace(job, by_hand=by_hand)) if foreign else planned

    def run(wanted: History) -> Counter[str]:
        table = wanted.table(spark, folder / str(next(numbers)))
        named = name_of(table) if wanted.name == "early" else None
        if named:
            spark.sql(f"CREATE TABLE {named} USING delta LOCATION '{table.location}'")
        try:
            ends = runner.run([by_stock(planned) for planned in wanted.planned], table)
            try:
                return check(wanted, table, ends)
            except AssertionError as error:
                outcomes = [ended.version or repr(ended.error) for ended in ends]
                raise AssertionError(f"{error}\n\n{wanted}\n{outcomes}") from error
        finally:
            if named:
                spark.catalog.clearCache()
                spark.sql(f"DROP TABLE {named}")
            delete_table(spark, table)

    return run


@pytest.mark.variant_cases(but=["serializable-changes", "row_level-keys"])
@pytest.mark.parametrize(
    ("policy", "name"),
    [
        (policy, name)
        for policy in POLICIES
        for name in WORKLOADS
        # The others are soak.
        if (name == "changes" and policy != "row_serializable")
        or (policy == "row_level" and name in QUICK)
    ],
)
def test_histories(run: Run, policy: str, name: str) -> None:
    vectors = policy != "serializable"
    seeds = QUICK[name] if SEED is None else [int(SEED)]
    counts = [run(history(policy, name, seed, vectors=vectors)) for seed in seeds]
    if SEED is not None:
        return
    total = sum(counts, Counter())
    assert total["lost"], "no job lost"
    assert total["passed"] or policy != "row_level" or name == "early", "no job passed another"


P1, P2, P3 = (Predicate(f"p = {p}", lambda row, p=p: row.p == p) for p in (1, 2, 3))  # type: ignore[misc]
SHORT = Predicate("length(v) = 2", lambda row: len(row.v) == 2)  # as all are at first
ID_1, ID_3 = (Predicate(f"id = {i}", lambda row, i=i: row.id == i) for i in (1, 3))  # type: ignore[misc]
P9_OR_1 = Predicate("(p = 9 OR id = 1)", lambda row: row.p == 9 or row.id == 1)
# Each with what the jobs have read: how many of those before them have ended.
NAMED = {
    "an UPDATE moves a row into the predicate of another": (
        (statements.move(ID_3, 9), 0),
        (statements.append(P9_OR_1, 2), 0),
    ),
    "an UPDATE moves a row out of the predicate of another": (
        (statements.move(ID_1, 9), 0),
        (statements.append(P1, 2), 0),
    ),
    "a row is deleted and updated": (
        (statements.delete(ID_1), 0),
        (statements.append(ID_1, 2), 0),
    ),
    "each of three goes off call, having seen that others stay": tuple(
        (statements.leave(identifier, 1), 0) for identifier in (1, 2, 5)
    ),
    "an UPDATE has not seen a blind append, which a job before it has": (
        (statements.insert(Row(8, "8", 1)), 0),
        (statements.insert_copies(P1, 100, 2), 1),
        (statements.append(P1, 3), 0),
    ),
    "each counts what the other adds": (
        (statements.insert_count(101, 2, P1), 0),
        (statements.insert_count(102, 1, P2), 0),
    ),
}


OWN_READS = {
    "an INSERT copies rows that a compaction has moved and a TRUNCATE removed": (
        (statements.compaction(None, None), 0),
        (statements.truncate(), 1),
        (statements.insert_copies(P1, 100, 2), 0),
    ),
    "each UPDATE lengthens values that the other counts": (
        (statements.append_count(P1, SHORT), 0),
        (statements.append_count(P2, SHORT), 0),
    ),
    "a MERGE inserts the count of what an UPDATE lengthens, which counts what it inserts": (
        (statements.append_count(P1, P3), 0),
        (statements.merge_count(9, SHORT, 3), 0),
    ),
}


@pytest.mark.variant_cases(but=["serializable-histories0"])
@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ("row_level", NAMED),
        ("serializable", OWN_READS),
        *(pytest.param(policy, NAMED | OWN_READS, marks=pytest.mark.soak) for policy in POLICIES),
    ],
    ids=lambda value: value if isinstance(value, str) else "histories",
)
def test_named_histories(
    run: Run, policy: str, named: dict[str, tuple[tuple[Statement, int], ...]]
) -> None:
    for name, jobs in named.items():
        # In one file that both change, jobs would lose whatever they have read beside it.
        own = name in OWN_READS
        workload = "own reads" if own else "skew"
        wanted = History(policy, workload, 0, partitioned=own, vectors=True, jobs=jobs)
        assert run(wanted)["lost"], name


@pytest.mark.soak
@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("policy", POLICIES)
def test_many_histories(run: Run, policy: str, name: str) -> None:
    """Random histories with a new seed in each run; also on tables without deletion vectors."""
    first = random.randrange(10**6)
    failed = []
    for seed in range(first, first + HISTORIES // len(POLICIES) // len(WORKLOADS)):
        try:
            run(history(policy, name, seed, vectors=seed % 4 != 0))
        except AssertionError as error:
            print(error)
            failed.append(seed)
    assert failed == []
