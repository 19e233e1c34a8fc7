"""A driver whose statements a SIGINT meets while their Spark job runs, beside a stream.

A job says by a FIFO that it is there, and stays until another FIFO is written or its worker is
killed. The driver prints a JSON line of how each statement ended, and waits for one to go on.

    python -m integration.interrupted FOLDER [ADDRESS OF A CONNECT SERVER]
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import interlock
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType

from tests.kit.sessions import classic_session, connect_session
from tests.kit.support import Table, make_table

STATEMENT, STREAM = FIFOS = ("statement", "stream")
# How long Spark lets the worker of a cancelled task live.
KILLED_SOON = {"spark.python.task.killTimeout": "0s"}


def go(name: str) -> str:
    """Name the FIFO that lets a job go on."""
    return f"{name}-go"


def main(folder: Path, address: str | None) -> None:
    """Run the statements, one that nobody interrupts, and the stream to its end."""
    with ExitStack() as closing:
        if address is None:
            spark = closing.enter_context(classic_session(**KILLED_SOON))
        else:
            spark = closing.enter_context(connect_session(address))
        spark.udf.register("stay", stay(folder), StringType())
        table = make_table(spark, folder / "table", statements=())
        stream = _stream(spark, folder / "source")
        for name, (statement, handler) in _statements(spark, table).items():
            sys.stdin.readline()
            signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]
            print(json.dumps([name, _end_of(statement)]), flush=True)
        sys.stdin.readline()
        spark.sql(f"INSERT INTO {table} VALUES (1, 'last')")
        stream.processAllAvailable()


def stay(folder: Path) -> Callable[[str], str]:
    """Return the function of a job that says by the FIFO of a name that it is there, and stays."""

    def stays(name: str) -> str:
        with open(folder / name, "w") as answer:
            answer.write("there")
            answer.flush()
            return (folder / f"{name}-go").read_text()

    return stays


def _stream(spark: SparkSession, source: Path) -> StreamingQuery:
    source.mkdir()
    (source / "line").write_text("one")
    lines = spark.readStream.text(str(source)).selectExpr(f"stay('{STREAM}')")
    return lines.writeStream.format("noop").start()


def _statements(
    spark: SparkSession, table: Table
) -> dict[str, tuple[Callable[[], object], object]]:
    """Return statements by name, each with the handler of SIGINT under which it runs."""
    rows = f"SELECT CAST(id AS INT) AS id, stay('{STATEMENT}') AS v FROM range(0, 1, 1, 1)"
    insert = f"INSERT INTO {table} {rows}"
    append = spark.sql(rows).write.format("delta").mode("append")
    given, notebook = signal.getsignal(signal.SIGINT), signal.default_int_handler
    return {
        "spark.sql": (lambda: spark.sql(insert), given),
        "spark.sql in a notebook": (lambda: spark.sql(insert), notebook),
        "DataFrame.write": (lambda: append.save(str(table.path)), given),
        "interlock.retry": (lambda: interlock.retry(lambda: spark.sql(insert)), given),
    }


def _end_of(statement: Callable[[], object]) -> str:
    try:
        statement()
    except KeyboardInterrupt:
        return "interrupted"
    return "succeeded"


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    main(Path(sys.argv[1]), sys.argv[2] if sys.argv[2:] else None)
