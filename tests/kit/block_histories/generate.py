"""The blocks of a history from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.kit.support import Table

TABLES = 3
KEYS = (1, 2)
AT_FIRST = 100
"""Of each account: there is one for each key in each table."""
TOTAL = AT_FIRST * TABLES * len(KEYS)


@dataclass(frozen=True)
class Step:
    """A statement of a block.

    Attributes:
        table: the number of the table that it is on; -1 for a look at all tables
        key: of the row
        value: a text that it appends to the row's list, or what it adds to the row's account; None
            for a query

    """

    table: int
    key: int = 0
    value: str | int | None = None

    def sql(self, tables: Sequence[Table]) -> str:
        """Return the statement; a query returns one value."""
        if self.table < 0:
            return f"SELECT {' + '.join(f'(SELECT sum(v) FROM {table})' for table in tables)}"
        table, where = tables[self.table], f"WHERE id = {self.key}"
        if self.value is None:
            return f"SELECT v FROM {table} {where}"
        new = f"concat(v, ' {self.value}')" if isinstance(self.value, str) else f"v + {self.value}"
        return f"UPDATE {table} SET v = {new} {where}"


@dataclass(frozen=True)
class Block:
    """A block of a client.

    Attributes:
        number: the number in the history
        steps: its statements
        commits: whether it tries to; else it is rolled back

    """

    number: int
    steps: tuple[Step, ...]
    commits: bool = True

    def changes(self, table: int) -> bool:
        return any(step.table == table and step.value is not None for step in self.steps)


def clients_of(kind: str, seed: int, *, clients: int, blocks: int) -> list[list[Block]]:
    """Return the blocks of each client, always the same for a seed."""
    chance = random.Random(seed)
    draw = {"lists": _lists, "bank": _bank}[kind]
    made = [draw(chance, number) for number in range(1, clients * blocks + 1)]
    return [made[client::clients] for client in range(clients)]


def _lists(chance: random.Random, number: int) -> Block:
    """Appends to two or three lists, of which one may be the same twice, and reads among them."""
    if chance.random() < 0.1:  # each table by a query of its own
        return Block(number, tuple(Step(table, chance.choice(KEYS)) for table in range(TABLES)))
    tables = chance.sample(range(TABLES), chance.choice((1, 2, 2, 3)))
    steps = []
    for n, table in enumerate(tables):
        key = chance.choice(KEYS)
        again = range(2 if chance.random() < 0.15 else 1)
        steps += [Step(table, key, f"{number}.{2 * n + one}") for one in again]
    for _ in range(chance.choice((1, 1, 2))):
        read = Step(chance.randrange(TABLES), chance.choice(KEYS))
        steps.insert(chance.randint(0, len(steps)), read)
    return Block(number, tuple(steps), commits=chance.random() < 0.93)


def _bank(chance: random.Random, number: int) -> Block:
    """A transfer between two or three tables; before and after it a look at all accounts."""
    givers_and_taker = chance.sample(range(TABLES), chance.choice((2, 2, 3)))
    amounts = [-chance.randint(1, 9) for _ in givers_and_taker[1:]]
    amounts.append(-sum(amounts))
    steps = [
        Step(table, chance.choice(KEYS), amount)
        for table, amount in zip(givers_and_taker, amounts, strict=True)
    ]
    if chance.random() < 0.4:
        steps = [Step(-1), *steps, Step(-1)]
    return Block(number, tuple(steps), commits=chance.random() < 0.93)
