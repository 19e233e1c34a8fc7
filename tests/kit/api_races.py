"""Races that work on Spark Connect too, where a test cannot reach into the JVM.

The jobs that should lose wait in a function on their own rows: see `tests.kit.barrier`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType

from tests.kit.barrier import Barrier, barrier

Loser = Callable[[str], object]


def lose(
    spark: SparkSession, losers: Mapping[str, Loser], winner: str
) -> dict[str, Exception | None]:
    """Let the statement `winner` commit while all of `losers` wait; return what each raises.

    A loser gets the name of an SQL function that returns its argument after the winner's commit.
    """
    with ExitStack() as stack:
        barriers = {name: stack.enter_context(barrier()) for name in losers}
        for name, made in barriers.items():
            spark.udf.register(f"held_{name}", made.passing(at=20), IntegerType())
        threads = stack.enter_context(ThreadPoolExecutor(len(losers)))
        stack.callback(_open_all, barriers)  # before the threads are waited for
        ends = {name: threads.submit(_error, run, f"held_{name}") for name, run in losers.items()}
        for name, made in barriers.items():
            made.await_arrival(of=ends[name])
        spark.sql(winner)
        _open_all(barriers)
        return {name: end.result() for name, end in ends.items()}


def _open_all(barriers: Mapping[str, Barrier]) -> None:
    for made in barriers.values():
        made.open()


def _error(run: Loser, held: str) -> Exception | None:
    try:
        run(held)
    except Exception as raised:
        return raised
    return None
