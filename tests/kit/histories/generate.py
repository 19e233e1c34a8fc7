"""A random history from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.kit.histories import foreign, jobs, templates
from tests.kit.histories.documents import FAILS, Heading, Page
from tests.kit.histories.model import Job, Predicate, Row, Rows
from tests.kit.histories.templates import Template

MOST_JOBS = 5
ANSI_OFF = ("spark.sql.ansi.enabled", "false")
LOCAL_TIMES = ("spark.databricks.delta.write.utcTimestampPartitionValues", "false")


@dataclass(frozen=True)
class Planned:
    """A job of a history.

    Attributes:
        job: the statement
        pin: how many jobs of the history have ended when this one starts and reads the table
        begins: how many have when its transaction begins, if it has `steps`

    """

    job: Job
    pin: int
    begins: int = 0


@dataclass(frozen=True)
class History:
    """A table and jobs, in the order in which they commit."""

    seed: int
    template: Template
    jobs: tuple[Planned, ...]

    def without(self, index: int) -> History:
        """Return the history without one of its jobs."""
        left = [
            replace(planned, pin=planned.pin - (planned.pin > index))
            for planned in self.jobs[:index] + self.jobs[index + 1 :]
        ]
        return replace(self, jobs=tuple(left))


def history(seed: int) -> History:
    """Return the history of a seed, always the same; seeds a multiple apart share a template."""
    chance = random.Random(seed)
    template = templates.template(seed % templates.COUNT)
    make = _Statements(template, chance)
    drawn = [make.job(number) for number in range(1, chance.randint(2, MOST_JOBS) + 1)]
    # Half of the matrix fails, so of two orders the one is taken in which more jobs can succeed.
    orders = [chance.sample(drawn, len(drawn)) for _ in range(2)]
    order = min(orders, key=lambda order: _failures(order, template.page))
    planned = (Planned(job, _pin(job, index, chance)) for index, job in enumerate(order))
    return History(seed, template, tuple(planned))


def _pin(job: Job, index: int, chance: random.Random) -> int:
    if job.by_hand is not None:
        return index
    return 0 if chance.random() < 0.7 else chance.randint(0, index)


def _failures(order: list[Job], page: Page) -> int:
    """Count the jobs that must fail if all read one version and all overlap."""
    done: list[Heading] = []
    for job in order:
        if all(page.outcome(earlier, job.heading) != FAILS for earlier in done):
            done.append(job.heading)
    return len(order) - len(done)


class _Statements:
    """Draws statements for a table."""

    def __init__(self, template: Template, chance: random.Random) -> None:
        self._chance = chance
        self._ids = template.ids
        self._columns = template.columns
        self._partitioned = template.partitioned
        self._makes_vectors = template.vectors == "on"
        # Delta's change data feed reads a removal without partitionValues as one of p = NULL.
        self._foreign_tells = template.changes
        self._ansi = chance.random() < 0.7

    def job(self, number: int) -> Job:
        """Draw a job; its number is in its new values."""
        kinds: list[tuple[int, Callable[[int], Job]]] = [
            (3, self._insert),
            (2, self._overwrite),
            (1, self._truncate),
            (3, self._update),
            (3, self._delete),
            (2, self._merge),
            (3, lambda _: self._compact(Heading.MINOR)),
            (4, lambda _: self._compact(Heading.MAJOR)),
            (1, lambda _: self._compact(Heading.SMALL_FILES)),
            (1, lambda _: jobs.optimize(self._one_partition(), self._columns)),
        ]
        if self._partitioned or self._columns.nested:
            kinds.append((2, self._replace_where))
        if self._partitioned:
            kinds += [(2, self._foreign_delete), (2, self._foreign_insert)]
        if self._partitioned and not self._ansi:
            kinds.append((2, self._of_no_partition))
        weights, draw = zip(*kinds, strict=True)
        drawn: Callable[[int], Job] = self._chance.choices(draw, weights)[0]
        return self._written(drawn(number), number)

    def _written(self, job: Job, number: int) -> Job:
        """Give a job the settings of its session, and perhaps capitals to its columns' names."""
        if job.by_hand is not None:
            return job
        if not self._ansi:
            job = jobs.under(job, ANSI_OFF)
        if self._columns.p == "TIMESTAMP" and number % 2 == 1:
            job = jobs.under(job, LOCAL_TIMES)
        return jobs.in_capitals(job) if self._chance.random() < 0.2 else job

    def _insert(self, number: int) -> Job:
        if self._chance.random() < 0.4:
            return jobs.insert(self._copies(number))
        rows = self._rows(number, least=1)
        return jobs.insert(jobs.values(rows, self._columns))

    def _overwrite(self, number: int) -> Job:
        if self._chance.random() < 0.4:
            source = self._copies(number)
        else:
            source = jobs.values(self._rows(number, least=0), self._columns)
        kind = self._chance.choice(("whole", "partition", "dynamic") if self._partitioned else "w")
        if kind == "partition":
            p = self._partition()
            rows = tuple(replace(row, p=p) for row in self._rows(number, least=0))
            return jobs.overwrite_partition(p, rows, self._columns)
        return (jobs.overwrite_dynamically if kind == "dynamic" else jobs.overwrite)(source)

    def _replace_where(self, number: int) -> Job:
        """REPLACE WHERE p, s.p or both; the new rows satisfy the condition, as Delta demands."""
        by_field = self._columns.nested and (not self._partitioned or self._chance.random() < 0.7)
        by_partition = self._partitioned and (not by_field or self._chance.random() < 0.3)
        p = self._partition() if by_partition else None
        field = self._chance.randint(1, 3) if by_field else None
        rows = tuple(
            replace(row, id=row.id + 3 * place + (field or 0), p=p if by_partition else row.p)
            for place, row in enumerate(self._rows(number, least=1))
        )
        return jobs.replace_where(p, field, rows, self._columns)

    def _truncate(self, number: int) -> Job:
        return jobs.truncate(self._one_partition(), self._columns)

    def _compact(self, heading: Heading) -> Job:
        return jobs.compact(heading, self._one_partition(), self._columns)

    def _of_no_partition(self, number: int) -> Job:
        return jobs.of_no_partition(self._chance.choice(jobs.OF_NO_PARTITION))

    def _foreign_delete(self, number: int) -> Job:
        p = self._chance.choice(templates.PARTITIONS)
        return foreign.delete(p, tells=self._foreign_tells or self._chance.random() < 0.3)

    def _foreign_insert(self, number: int) -> Job:
        p = self._chance.choice((None, self._partition()))
        rows = tuple(replace(row, p=p) for row in self._rows(number, least=1))
        # Without the key Delta writes no deletion vector for a file, and its dynamic overwrite
        # leaves files whose timestamp is spelled otherwise.
        needs_key = self._columns.p == "TIMESTAMP" or (self._makes_vectors and len(rows) > 1)
        return foreign.insert(p, rows, self._columns, has_key=needs_key)

    def _update(self, number: int) -> Job:
        moves = self._partitioned and self._chance.random() < 0.25
        p = self._partition() if moves else None
        return jobs.update(self._predicate(), self._columns, v=f"u{number}", p=p)

    def _delete(self, number: int) -> Job:
        return jobs.delete(self._predicate())

    def _merge(self, number: int) -> Job:
        known = self._chance.sample(self._ids, 2)
        rows = self._rows(number, least=1)
        rows += tuple(replace(rows[0], id=identifier) for identifier in known)
        matched = self._chance.choice(("UPDATE", "UPDATE", "DELETE", ""))
        return jobs.merge(
            rows,
            self._columns,
            partition=self._one_partition(),
            matched=matched,
            inserts=not matched or self._chance.random() < 0.5,
        )

    def _copies(self, number: int) -> tuple[str, Callable[[Rows], Rows]]:
        moves = self._partitioned and self._chance.random() < 0.5
        return jobs.from_itself(
            self._predicate(),
            1000 * number,
            self._columns,
            moved_to=self._partition() if moves else None,
        )

    def _rows(self, number: int, *, least: int) -> Rows:
        count = self._chance.randint(least, 3)
        p = self._chance.choice(templates.PARTITIONS)
        elsewhere = self._chance.random() < 0.3
        found = []
        for place in range(count):
            partition = self._chance.choice(templates.PARTITIONS) if elsewhere else p
            partition = partition if self._partitioned else None
            found.append(Row(100 * number + place, f"n{number}", partition))
        return tuple(found)

    def _predicate(self) -> Predicate:
        rows = self._row_predicate()
        if not self._partitioned or self._chance.random() < 0.3:
            return rows
        p = self._partition()
        is_p, is_not_p = (f"p {sign} {self._columns.value(p)}" for sign in ("=", "<>"))
        draw = self._chance.random()
        if draw < 0.2:  # a partition predicate only; without ANSI a failed cast is NULL
            sql = is_p if self._ansi else f"(p = 'none' OR {is_p})"
            return Predicate(sql, lambda row: row.p == p, lambda value: value == p)
        if draw < 0.3:  # selects every partition
            return Predicate(f"({is_p} OR {rows.sql})", lambda r: r.p == p or rows.holds(r))
        if draw < 0.45:
            return Predicate(
                f"p IS NULL AND {rows.sql}",
                lambda row: row.p is None and rows.holds(row),
                lambda value: value is None,
            )
        if draw < 0.65:
            return Predicate(
                f"{is_not_p} AND {rows.sql}",
                lambda row: row.p is not None and row.p != p and rows.holds(row),
                lambda value: value is not None and value != p,
            )
        return Predicate(
            f"{is_p} AND {rows.sql}",
            lambda row: row.p == p and rows.holds(row),
            lambda value: value == p,
        )

    def _row_predicate(self) -> Predicate:
        draw, identifier = self._chance.random(), self._chance.choice(self._ids)
        if self._columns.nested and self._chance.random() < 0.4:
            field = self._chance.randint(1, 3)
            return Predicate(f"s.p = {field}", lambda row: row.s[0] == field)
        if draw < 0.1:
            return jobs.EVERY_ROW
        if draw < 0.4:
            return Predicate(f"id = {identifier}", lambda row: row.id == identifier)
        if draw < 0.6:
            return Predicate(f"id > {identifier}", lambda row: row.id > identifier)
        if draw < 0.65:
            return Predicate("id < 0", lambda row: row.id < 0)
        by, rest = self._chance.randint(2, 4), self._chance.randint(0, 1)
        return Predicate(f"id % {by} = {rest}", lambda row: row.id % by == rest)

    def _partition(self) -> int:
        return self._chance.choice((1, 1, 2, 2, 3))

    def _one_partition(self) -> int | None:
        """Return a partition, or None: all of them."""
        return self._partition() if self._partitioned and self._chance.random() < 0.5 else None
