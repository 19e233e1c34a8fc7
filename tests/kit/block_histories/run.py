"""Runs the blocks of clients, each client in a session of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.errors import ConflictError
from pyspark.sql import SparkSession

from tests.kit.block_histories.generate import AT_FIRST, KEYS, TABLES, Block, clients_of
from tests.kit.driver_process import DriverProcess
from tests.kit.support import Table, make_table


@dataclass(frozen=True)
class Ended:
    """What became of a block.

    Attributes:
        block: the block
        outcome: "committed", "lost" or "rolled back"
        found: the answers of its queries, each after the number of its step

    """

    block: Block
    outcome: str
    found: tuple[tuple[int, Any], ...]

    def __str__(self) -> str:
        """Tell it in a line: a read as R(table, key)='answer', a change as W(table, key, value)."""
        answers = dict(self.found)
        steps = (
            f"R{step.table, step.key}={answers.get(n)!r}"
            if step.value is None
            else f"W{step.table, step.key, step.value}"
            for n, step in enumerate(self.block.steps)
        )
        return f"{self.block.number}, {self.outcome}: {'; '.join(steps)}"


def make_tables(
    spark: SparkSession, folder: str, kind: str, policy: str, **more: str
) -> list[Table]:
    """Make in a folder the tables that a history begins with."""
    type_, first = ("STRING", "''") if kind == "lists" else ("INT", AT_FIRST)
    rows = ", ".join(f"({key}, {first})" for key in KEYS)
    return [
        make_table(
            spark,
            table.path,
            policy=policy,
            columns=f"(id INT, v {type_}) USING delta",
            properties={"interlock.exclusive": "true", **more},
            statements=(f"INSERT INTO {{t}} VALUES {rows}",),
            own_id=True,
        )
        for table in _tables(Path(folder))
    ]


class Client:
    """Runs its blocks one after the other, by a statement at each call of `go_on`."""

    def __init__(
        self, spark: SparkSession, blocks: Sequence[Block], tables: Sequence[Table]
    ) -> None:
        self._session, self._tables = spark.newSession(), tables
        self._left = list(blocks)
        self._next = -1
        self._found: list[tuple[int, Any]] = []
        self.ended: list[Ended] = []

    def go_on(self) -> bool:
        """Run the next statement; tell whether there is one after it."""
        block, sql = self._left[0], self._session.sql
        try:
            if self._next < 0:
                sql("BEGIN TRANSACTION")
            elif self._next < len(block.steps):
                step = block.steps[self._next]
                answer = sql(step.sql(self._tables)).collect()
                if step.value is None:
                    self._found.append((self._next, answer[0][0]))
            else:
                sql("COMMIT" if block.commits else "ROLLBACK")
                self._end("committed" if block.commits else "rolled back")
                return bool(self._left)
            self._next += 1
        except ConflictError:
            sql("ROLLBACK")
            self._end("lost")
        return bool(self._left)

    def _end(self, outcome: str) -> None:
        self.ended.append(Ended(self._left.pop(0), outcome, tuple(self._found)))
        self._next, self._found = -1, []


def by_turns(clients: Sequence[Client], seed: int) -> list[Ended]:
    """Run one statement at a time, of the client that the seed names: always the same history."""
    chance, running = random.Random(seed), list(clients)
    while running:
        client = chance.choice(running)
        if not client.go_on():
            running.remove(client)
    return [ended for client in clients for ended in client.ended]


def in_threads(clients: Sequence[Client]) -> list[Ended]:
    """Run all clients at once."""

    def run(client: Client) -> list[Ended]:
        while client.go_on():
            pass
        return client.ended

    with ThreadPoolExecutor(len(clients)) as threads:
        return [ended for each in threads.map(run, clients) for ended in each]


def in_processes(
    processes: Sequence[DriverProcess],
    folder: Path,
    kind: str,
    policy: str,
    seed: int,
    *,
    clients: int,
    blocks: int,
    properties: dict[str, str],
) -> tuple[list[Ended], list[Table]]:
    """Run all clients at once, an equal part of them in each process, on new tables."""
    _call(processes[0], "make_tables", str(folder), kind, policy, **properties)
    each = clients // len(processes)

    def run(number: int) -> list[tuple[int, str, list[tuple[int, Any]]]]:
        part, file = (number * each, (number + 1) * each), folder / f"{number}.json"
        of_all = kind, seed, clients, blocks
        _call(processes[number], "serve", str(folder), part, str(file), of_all)
        found: list[tuple[int, str, list[tuple[int, Any]]]] = json.loads(file.read_text())
        return found

    with ThreadPoolExecutor(len(processes)) as threads:
        told = [end for ends in threads.map(run, range(len(processes))) for end in ends]
    planned = clients_of(kind, seed, clients=clients, blocks=blocks)
    by_number = {block.number: block for each_client in planned for block in each_client}
    ends = [
        Ended(by_number[number], outcome, tuple((step, answer) for step, answer in found))
        for number, outcome, found in told
    ]
    return ends, _tables(folder)


def serve(
    spark: SparkSession,
    folder: str,
    part: tuple[int, int],
    file: str,
    of_all: tuple[str, int, int, int],
) -> None:
    """Run a part of the clients in this process, and write into a file what became of them."""
    kind, seed, clients, blocks = of_all
    planned = clients_of(kind, seed, clients=clients, blocks=blocks)[slice(*part)]
    ends = in_threads([Client(spark, each, _tables(Path(folder))) for each in planned])
    told = [(ended.block.number, ended.outcome, ended.found) for ended in ends]
    Path(file).write_text(json.dumps(told), encoding="utf-8")


def _tables(folder: Path) -> list[Table]:
    return [Table(folder / f"t{number}") for number in range(TABLES)]


def _call(process: DriverProcess, function: str, *arguments: object, **named: str) -> None:
    """Call a function of this file in another process."""
    given = ", ".join(["spark", *map(repr, arguments), f"**{named!r}"])
    here = f"__import__({__name__!r}, fromlist=['x'])"
    answer = process.run(f"spark.conf, {here}.{function}({given})")
    assert answer.error is None, answer.message
