"""`interlock.table` and `interlock.transaction` in a session that has no Interlock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import interlock
import pytest
from interlock.errors import NO_INTERLOCK
from pyspark.sql import SparkSession

from tests.kit.driver_process import DriverProcess
from tests.kit.sessions import classic_session, connect_server, connect_session

CALLS: dict[str, Callable[[interlock.Table], object]] = {
    "conflicts": lambda table: table.conflicts(),
    "explain": lambda table: table.explain("an id"),
    "history": lambda table: table.history(),
    "versions": lambda table: table.versions(),
    "files": lambda table: table.files(),
    "blocks": lambda table: table.blocks(),
    "claim": lambda table: table.claim(),
    "claims": lambda table: table.claims(),
    "latest_version": lambda table: table.latest_version(),
    "latest_timestamp": lambda table: table.latest_timestamp(),
    "between": lambda table: table.between(versions=(0, None)),
    "diff": lambda table: table.diff(from_version=0, to_version=1),
    "compact": lambda table: table.compact("minor"),
    "merge_small_files": lambda table: table.merge_small_files(),
    "set_policy": lambda table: table.set_policy("row_level"),
    "remove_policy": lambda table: table.remove_policy(),
    "transaction": lambda table: interlock.transaction(table.spark).__enter__(),
}


def check_calls(spark: SparkSession) -> None:
    """Each call says what the session lacks; what Spark itself cannot do stays Spark's error."""
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT 1 AS id")
    told = {}
    for name, call in CALLS.items():
        try:
            told[name] = f"returned {call(interlock.table(spark, 't'))}"
        except interlock.ConfigurationError as error:
            told[name] = str(error)
        except Exception as error:
            told[name] = repr(error)
    others = {name: end for name, end in told.items() if end != NO_INTERLOCK}
    assert not others, str(others)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        _ = interlock.table(spark, "no_such").policy


def test_on_classic_pyspark(stock: DriverProcess) -> None:
    code = f"from {__name__} import check_calls; check_calls(spark)"
    answer = stock.run(f"spark.version; {code}")
    assert answer.error is None, answer.message


def test_partly_set_up() -> None:
    """The extension is there, and the catalog of the procedures is not."""
    with classic_session() as half:
        half.conf.unset("spark.sql.catalog.interlock")
        with pytest.raises(interlock.ConfigurationError, match="is only partly set up"):
            interlock.table(half, "t").conflicts()


def test_on_spark_connect(tmp_path: Path) -> None:
    with (
        connect_server(tmp_path, **{"spark.plugins": ""}) as address,
        connect_session(address) as session,
    ):
        check_calls(session)
