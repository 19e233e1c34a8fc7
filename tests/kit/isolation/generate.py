"""A random history from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tests.kit.histories import jobs
from tests.kit.histories.generate import Planned
from tests.kit.isolation.statements import COLUMNS, Statement
from tests.kit.isolation.workloads import START, WORKLOADS, Workload
from tests.kit.support import Table, make_table

_COLUMNS = f"({COLUMNS.declared}) USING delta"
_VALUES = ", ".join(f"({COLUMNS.fields(row)})" for row in START)
_TWO_FILES = "SELECT /*+ REPARTITION_BY_RANGE(2, id) */ * FROM VALUES"
_INSERT = f"INSERT INTO {{t}} {_TWO_FILES} {_VALUES} x({', '.join(COLUMNS.names)})"


@dataclass(frozen=True)
class History:
    """A table and jobs, in the order in which they come to their commits.

    Attributes:
        policy: of the table
        name: of the workload
        seed: which history of that workload it is
        partitioned: whether the table is partitioned by p
        vectors: whether UPDATE and DELETE mark rows, or write files anew
        jobs: each with how many of them have ended when it reads the table

    """

    policy: str
    name: str
    seed: int
    partitioned: bool
    vectors: bool
    jobs: tuple[tuple[Statement, int], ...]

    @property
    def workload(self) -> Workload:
        return WORKLOADS[self.name]

    @property
    def planned(self) -> list[Planned]:
        return [
            Planned(statement, pin, min(pin + statement.delay, turn) if statement.steps else pin)
            for turn, (statement, pin) in enumerate(self.jobs)
        ]

    def table(self, spark: SparkSession, path: Path) -> Table:
        """Make the table that the jobs find."""
        layout = " CLUSTER BY (id)" if self.workload.clustered else ""
        return make_table(
            spark,
            path,
            policy=self.policy,
            columns=_COLUMNS + (" PARTITIONED BY (p)" if self.partitioned else layout),
            properties={"delta.enableDeletionVectors": str(self.vectors).lower()},
            statements=(_INSERT,),
        )

    def __str__(self) -> str:
        """Tell it in statements."""
        shape = f"partitioned={self.partitioned}, vectors={self.vectors}"
        lines = [f"{self.policy}, {self.name}, seed {self.seed}; {shape}"]
        lines += [
            f"  {number}. reads after {planned.pin}"
            + (f", begins after {planned.begins}" if planned.job.steps else "")
            + f": {planned.job.sql}"
            for number, planned in enumerate(self.planned, start=1)
        ]
        return "\n".join(lines)


def history(policy: str, name: str, seed: int, *, vectors: bool) -> History:
    """Return the history of a seed, always the same."""
    chance = random.Random(seed)
    count = chance.randint(2, 4)
    drawn = tuple(
        (WORKLOADS[name].draw(chance, number), chance.choice((0, 0, chance.randint(0, number - 1))))
        for number in range(1, count + 1)
    )
    spelt = tuple(
        (jobs.in_capitals(job) if chance.random() < 0.2 and job.steps is None else job, pin)
        for job, pin in drawn
    )
    partitioned = seed % 2 == 0 and not WORKLOADS[name].clustered
    jobs_and_pins = tuple((job, _pin(job, pin, turn)) for turn, (job, pin) in enumerate(spelt))
    return History(policy, name, seed, partitioned, vectors, jobs_and_pins)


def _pin(job: Statement, pin: int, turn: int) -> int:
    if "ADD COLUMNS" in job.sql:
        return 0  # before others add the same
    return turn if job.by_stock else pin
