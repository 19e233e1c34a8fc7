"""`interlock.transaction`: several statements that become one commit, or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from interlock import _conversion
from interlock._sql_text import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Transaction:
    """An atomic block of a session.

    Attributes:
        id: the block's id, which its commits have in the tag `interlock.block`
        versions: after the commit, the new version of each table that the block has changed, by
            the table's name; empty if it has changed nothing

    """

    def __init__(self, identifier: str) -> None:
        self.id = identifier
        self.versions: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Transaction(id={self.id!r}, versions={self.versions})"


@contextmanager
def transaction(spark: SparkSession) -> Iterator[Transaction]:
    """Run the statements of a `with` block as one commit, which takes place at its end.

        with interlock.transaction(spark) as tx:
            spark.sql("DELETE FROM sales WHERE day = '2026-11-29'")
            frame.write.format("delta").mode("append").saveAsTable("sales")
        tx.versions  # {'spark_catalog.default.sales': 7}

    They may change several tables, if these have the same coordinator and are exclusive.

    The statements see what those before them have written, and nobody else sees any of it before
    the commit. An exception that leaves the block rolls it back; so does, at the end, that of a
    statement that failed and was caught inside. The block belongs to the session, on classic
    PySpark and on Spark Connect: what other threads do in the same session is part of it.
    docs/transactions.md says which statements it takes.

    Raises:
        ConflictError: at the end, if the block loses against another job; nothing of it is kept
        UsageError: the session has an open block already (INTERLOCK_BLOCK_OPEN); or, of a statement
            that a block does not take, INTERLOCK_NOT_IN_BLOCK; or, after a statement that failed
            and was caught, INTERLOCK_BLOCK_FAILED

    """
    _conversion.install()
    block = Transaction(run(spark, "BEGIN TRANSACTION").collect()[0]["block"])
    try:
        yield block
        done = spark.sql("COMMIT").collect()
    except BaseException:
        with suppress(Exception):
            spark.sql("ROLLBACK")
        raise
    block.versions = {row["table"]: row["version"] for row in done}
