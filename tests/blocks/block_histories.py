"""Random histories of atomic blocks over three tables, on any coordinator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import SparkSession

from tests.kit.block_histories.check import check_bank, check_lists, check_tables, lists_of
from tests.kit.block_histories.generate import clients_of
from tests.kit.block_histories.run import (
    Client,
    Ended,
    by_turns,
    in_threads,
    make_tables,
)
from tests.kit.snapshots import delete_table
from tests.kit.support import Table

CLIENTS = 4


def history(
    spark: SparkSession,
    folder: Path,
    kind: str,
    policy: str,
    seed: int,
    *,
    threads: bool = False,
    blocks: int = 3,
    properties: Mapping[str, str] = MappingProxyType({}),
) -> Counter[str]:
    """Run the history of a seed on new tables, and check it.

    Args:
        spark: the session
        folder: where the tables get a folder
        kind: "lists" or "bank"
        policy: of the tables
        seed: of the blocks, and of their order unless they run in threads
        threads: whether the clients run at once; else one statement after the other
        blocks: of each client
        properties: of the tables

    Returns:
        what `check_lists` or `check_bank` has counted

    """
    tables = make_tables(spark, f"{folder}/{kind}-{policy}-{seed}", kind, policy, **properties)
    planned = clients_of(kind, seed, clients=CLIENTS, blocks=blocks)
    clients = [Client(spark, each, tables) for each in planned]
    ends = in_threads(clients) if threads else by_turns(clients, seed)
    count = checked(kind, policy, seed, ends, tables)
    for table in tables:
        delete_table(spark, table)
    return count


def checked(
    kind: str, policy: str, seed: int, ends: Sequence[Ended], tables: Sequence[Table]
) -> Counter[str]:
    """Check a history; what fails names the seed."""
    try:
        check_tables(tables)
        if kind == "bank":
            count = check_bank(ends, tables)
        else:
            count = check_lists(policy, ends, lists_of(tables))
        assert count["committed"], "no block was committed"
    except AssertionError as error:
        told = "\n".join(map(str, ends))
        raise AssertionError(f"{kind}, {policy}, seed {seed}: {error}\n{told}") from error
    print(f"{kind}, {policy}, seed {seed}: {dict(count)}")
    return count
