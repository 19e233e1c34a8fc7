"""`interlock.table`: the statements that it makes. Needs no Spark; `tests/api` runs them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, cast

import interlock
import pytest
from interlock._session import EXTENSION, EXTENSIONS
from pyspark.sql import SparkSession


class Asked(Exception):  # noqa: N818 - no error
    """A session was given a statement."""


class Recorder:
    """Stands for a session with Interlock; a statement ends the test's call."""

    def __init__(self) -> None:
        self.conf = {EXTENSIONS: EXTENSION}

    def sql(self, statement: str) -> None:
        raise Asked(statement)


def statement_of(use: Callable[[interlock.Table], object], name: str = "t") -> str:
    with pytest.raises(Asked) as asked:
        use(interlock.table(cast(SparkSession, Recorder()), name))
    return str(asked.value)


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("flights", "`flights`"),
        ("db.flights", "`db`.`flights`"),
        ("spark_catalog.my-db.flights", "`spark_catalog`.`my-db`.`flights`"),
        ("delta.`/data/flights`", "`delta`.`/data/flights`"),
        ("`a.b`.`c``d`", "`a.b`.`c``d`"),
        ("/data/o'brien`s.v1", "delta.`/data/o'brien``s.v1`"),
        ("s3a://bucket/flights", "delta.`s3a://bucket/flights`"),
        ("file:/data/flights", "delta.`file:/data/flights`"),
    ],
)
def test_names_and_paths_are_quoted(name: str, quoted: str) -> None:
    expected = f"ALTER TABLE {quoted} COMPACT MINOR"
    assert statement_of(lambda table: table.compact("minor"), name) == expected


@pytest.mark.parametrize("name", ["", ".", "a.", ".a", "a..b", "a`b", "`a", "`a`b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no table's name or path"):
        interlock.table(cast(SparkSession, Recorder()), name)


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-7, "-7"),
        (0.1, "'0.1'"),
        (float("nan"), "'nan'"),
        (Decimal("1.50"), "'1.50'"),
        (date(2013, 1, 31), "DATE '2013-01-31'"),
        (datetime(2013, 1, 31, 5, 15), "TIMESTAMP '2013-01-31 05:15:00'"),
        (
            datetime(2013, 1, 31, 5, tzinfo=timezone(timedelta(hours=-5))),
            "TIMESTAMP '2013-01-31 05:00:00-05:00'",
        ),
        ("New York", "'New York'"),
        ("O'Hare", "'O\\'Hare'"),
        ("a\\", "'a\\\\'"),
        ("1') COMPACT MAJOR --", "'1\\') COMPACT MAJOR --'"),
    ],
)
def test_partition_values_become_literals(value: object, literal: str) -> None:
    made = statement_of(lambda table: table.merge_small_files(partition={"p": value}))
    assert made == f"ALTER TABLE `t` PARTITION (`p` = {literal}) MERGE SMALLFILES"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "CAST(NULL AS STRING)"),
        (True, "'True'"),
        (-7, "'-7'"),
        (0.1, "'0.1'"),
        (date(2013, 1, 31), "'2013-01-31'"),
        (
            datetime(2013, 1, 31, 5, tzinfo=timezone(timedelta(hours=-5))),
            "'2013-01-31 05:00:00-05:00'",
        ),
        ("O'Hare \\", "'O\\'Hare \\\\'"),
    ],
)
def test_procedures_take_partition_values_as_text(value: object, text: str) -> None:
    made = statement_of(lambda table: table._call("files", partition={"p'": value}))
    assert made == f"CALL interlock.files(table => '`t`', partition => map('p\\'', {text}))"


def test_partition_columns_are_quoted() -> None:
    made = statement_of(lambda table: table.compact("major", partition={"o`r": 1, "m d": 2}))
    assert made == "ALTER TABLE `t` PARTITION (`o``r` = 1, `m d` = 2) COMPACT MAJOR"


@pytest.mark.parametrize(
    ("use", "statement"),
    [
        (
            lambda t: t.set_policy("a'b"),
            "ALTER TABLE `t` SET TBLPROPERTIES ('interlock.policy' = 'a\\'b')",
        ),
        (
            lambda t: t.set_policy(None),
            "ALTER TABLE `t` UNSET TBLPROPERTIES IF EXISTS ('interlock.policy')",
        ),
        (lambda t: t.as_of(version=3), "SELECT * FROM `t` VERSION AS OF 3"),
        (
            lambda t: t.as_of(timestamp=datetime(2013, 1, 31, 5)),
            "SELECT * FROM `t` TIMESTAMP AS OF TIMESTAMP '2013-01-31 05:00:00'",
        ),
        (lambda t: t.history(limit=2), "SHOW HISTORY FOR TABLE `t` LIMIT 2"),
        (lambda t: t.restore(version=2), "RESTORE TABLE `t` TO VERSION AS OF 2"),
        (
            lambda t: t.between(versions=(-1, 3)),
            "SELECT * FROM table_between_versions('`t`', -1, 3)",
        ),
        (
            lambda t: t.between(timestamps=(datetime(2013, 1, 31), datetime(2013, 2, 1))),
            "SELECT * FROM table_between_timestamps('`t`', TIMESTAMP '2013-01-31 00:00:00',"
            " TIMESTAMP '2013-02-01 00:00:00')",
        ),
    ],
)
def test_statements(use: Callable[[interlock.Table], object], statement: str) -> None:
    assert statement_of(use) == statement


def test_wrong_arguments_are_refused() -> None:
    table = interlock.table(cast(SparkSession, Recorder()), "t")
    with pytest.raises(ValueError, match="kind must be 'minor' or 'major', not 'MINOR'"):
        table.compact(cast(Any, "MINOR"))
    with pytest.raises(ValueError, match="partition names no column"):
        table.compact("minor", partition={})
    with pytest.raises(TypeError, match="cannot be of type bytes"):
        table.compact("minor", partition={"p": b"1"})
