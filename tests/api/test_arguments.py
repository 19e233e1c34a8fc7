"""Wrong arguments of every call are refused before Spark is asked. Needs no Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import interlock
import pytest
from pyspark.sql import SparkSession

TIME = datetime(2026, 1, 1)


class NoSession:
    """Stands where a session would, and is never asked."""

    def sql(self, statement: str) -> None:
        raise AssertionError(statement)


def table(name: Any = "t") -> Any:
    session: Any = NoSession()
    return interlock.table(session, name)


REFUSED: dict[str, Callable[[], object]] = {
    "spark must be a SparkSession, not str: 't'.": lambda: interlock.table("t", NoSession()),  # type: ignore[arg-type]
    "name must be a str, not int: 3.": lambda: table(3),
    "'some/rel/path' is no table's name, and a path must be absolute. Put a name with a slash in "
    "backquotes.": lambda: table("some/rel/path"),
    "'./t' is no table's name, and a path must be absolute. Put a name with a slash in "
    "backquotes.": lambda: table("./t"),
    "'a..b' is no table's name or path.": lambda: table("a..b"),
    "name must be a str, not bool: True.": lambda: table().set_policy(True),
    "keep must be a collection of str, not str: 'rowTracking'.": lambda: table().remove_policy(
        keep="rowTracking"
    ),
    "keep must be a collection of str, not tuple: (1,).": lambda: table().remove_policy(keep=(1,)),
    "limit must be an int, not str: '3'.": lambda: table().history(limit="3"),
    "limit must be an int, not float: 1.5.": lambda: table().versions(limit=1.5),
    "limit must be an int, not bool: True.": lambda: table().conflicts(limit=True),
    "path must be a str or a path, not int: 3.": lambda: table().timeline(path=3),
    "partition must be a dict with names as its keys, not str: 'p = 1'.": lambda: table().history(
        partition="p = 1"
    ),
    "partition must be a dict with names as its keys, not list: [1].": lambda: table().files(
        partition=[1]
    ),
    "partition must be a dict with names as its keys, not dict: {1: 2}.": lambda: table().compact(
        "minor", partition={1: 2}
    ),
    "A partition value cannot be of type bytes: b'x'.": lambda: table().merge_small_files(
        partition={"p": b"x"}
    ),
    "kind must be 'minor' or 'major', not 3.": lambda: table().compact(3),
    "conflict must be a ConflictError or a transaction's id, not int: 3.": lambda: table().explain(
        3
    ),
    "n must be an int, not str: '1'.": lambda: table().latest_version("1"),
    "n must be an int, not NoneType: None.": lambda: table().latest_timestamp(None),
    "version must be an int, not str: '1'.": lambda: table().as_of(version="1"),
    "timestamp must be a datetime, not date: datetime.date(2026, 1, 1).": lambda: table().as_of(
        timestamp=date(2026, 1, 1)
    ),
    "timestamp must be a datetime, not str: '2026-01-01'.": lambda: table().restore(
        timestamp="2026-01-01"
    ),
    "give either version or timestamp.": lambda: table().restore(version=1, timestamp=TIME),
    "versions must be a pair such as (first, last), in which last may be None, not int: 3.": (
        lambda: table().between(versions=3)
    ),
    "versions must be a pair such as (first, last), in which last may be None, not tuple: (3,).": (
        lambda: table().between(versions=(3,))
    ),
    "versions[0] must be an int, not NoneType: None.": lambda: table().between(versions=(None, 3)),
    "versions[1] must be an int, not str: '4'.": lambda: table().between(versions=(3, "4")),
    "timestamps[0] must be a datetime, not int: 1.": lambda: table().between(timestamps=(1, TIME)),
    "give either versions or timestamps.": lambda: table().between(),
    "from_version must be an int, not str: '1'.": lambda: table().diff(
        from_version="1", to_version=2
    ),
    "to_version must be an int, not NoneType: None.": lambda: table().diff(
        from_version=1, to_version=None
    ),
    "fn must be a function without arguments, not str: 'UPDATE'.": lambda: interlock.retry(
        "UPDATE"  # type: ignore[call-overload]
    ),
    "attempts must be an int, not str: '3'.": lambda: interlock.retry(attempts="3"),  # type: ignore[call-overload]
    "backoff must be a number of seconds >= 0, not '1'.": lambda: interlock.retry(backoff="1"),  # type: ignore[call-overload]
    "builder must be the builder of a SparkSession, not str: 'local'.": lambda: interlock.configure(
        "local"  # type: ignore[arg-type]
    ),
    "policies must be a dict with names as its keys, not list: ['mine'].": (
        lambda: interlock.configure(SparkSession.builder, policies=["mine"])  # type: ignore[arg-type]
    ),
    "policies['mine'] must be a str or a path, not int: 3.": lambda: interlock.configure(
        SparkSession.builder,
        policies={"mine": 3},  # type: ignore[dict-item]
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_a_wrong_argument_is_refused(sentence: str) -> None:
    with pytest.raises(interlock.ArgumentError) as refused:
        REFUSED[sentence]()
    assert str(refused.value) == sentence
    assert isinstance(refused.value, interlock.UsageError)
    assert isinstance(refused.value, ValueError)
    assert isinstance(refused.value, TypeError)


def test_what_stands_for_a_number_is_one() -> None:
    class Three:
        def __index__(self) -> int:
            return 3

    with pytest.raises(AssertionError, match=r"VERSION AS OF 3$"):
        table().as_of(version=Three())


def test_a_name_with_a_slash_is_given_in_backquotes() -> None:
    assert table("db.`some/name`").sql_name == "`db`.`some/name`"
    assert table("/some/path").sql_name == "delta.`/some/path`"
    assert table("delta.`/some/path`").sql_name == "`delta`.`/some/path`"
