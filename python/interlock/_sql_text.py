"""Names, values and partitions as SQL writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from interlock import _arguments
from interlock._session import EXTENSION, EXTENSIONS
from interlock.errors import NO_INTERLOCK, ArgumentError, ConfigurationError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NO_ESCAPES = "spark.sql.parser.escapedStringLiterals"

# What Spark says of a statement, procedure or function of Interlock that it does not know.
_NOT_KNOWN = (
    "INVALID_STATEMENT_OR_CLAUSE",
    "PARSE_SYNTAX_ERROR",
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    "UNRESOLVED_ROUTINE",
    "MISSING_CATALOG_ABILITY.PROCEDURES",  # Spark 4.1
    "_LEGACY_ERROR_TEMP_1184",  # Spark 4.0
)

_PARTLY = "Interlock is only partly set up in this session: see `interlock doctor`."

_PATH = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_BY_PATH = re.compile(rf"delta`?\.`((?:{_PATH.pattern})(?:[^`]|``)*)`")
_PART = r"(?:`(?:[^`]|``)+`|[^`.]+)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")


def table_name(name: str) -> str:
    """Quote a table's name, or make one of its path; anything else is an `ArgumentError`."""
    if _PATH.match(_arguments.text("name", name)):
        return f"delta.{_quoted(name)}"
    parts = re.findall(_PART, name)
    if any("/" in part and not part.startswith("`") for part in parts):
        raise ArgumentError(
            f"{name!r} is no table's name, and a path must be absolute. "
            "Put a name with a slash in backquotes."
        )
    if not _NAME.fullmatch(name):
        raise ArgumentError(f"{name!r} is no table's name or path.")
    return ".".join(_quoted(_unquoted(part)) for part in parts)


def run(spark: SparkSession, statement: str) -> DataFrame:
    """Run a statement that was written with these functions.

    Raises:
        interlock.ConfigurationError: the session has no Interlock, or the text has escapes, which
            its parser does not read
        interlock.ArgumentError: the table's name is a relative path
        interlock.UsageError: there is nothing at the table's path

    """
    if "\\" in statement and spark.conf.get(_NO_ESCAPES, "false") == "true":
        raise ConfigurationError(
            f"A name or a value needs escapes, which this session does not read in SQL "
            f"({_NO_ESCAPES} = true): SET it to false for the call."
        )
    try:
        return spark.sql(statement)
    except Exception as error:
        condition = getattr(error, "getCondition", lambda: None)()
        if condition in _NOT_KNOWN:
            require_interlock(spark)
            if condition != "PARSE_SYNTAX_ERROR":
                raise ConfigurationError(_PARTLY) from error
        if getattr(spark, "_jvm", None) is not None:
            if condition == "TABLE_OR_VIEW_NOT_FOUND":
                _refuse_relative_path(error)
            if condition == "DELTA_MISSING_DELTA_TABLE" or "FileNotFoundException" in str(error):
                _refuse_missing_path(spark, statement)
        raise


def require_interlock(spark: SparkSession) -> None:
    """Refuse a session whose extensions, on Spark Connect the server's, lack Interlock's."""
    if EXTENSION not in (spark.conf.get(EXTENSIONS, None) or ""):
        raise ConfigurationError(NO_INTERLOCK)


def _refuse_missing_path(spark: Any, statement: str) -> None:
    """Say that there is nothing, where Spark and Delta miss a table or a log."""
    named = _BY_PATH.search(statement)
    if named is None:
        return
    path = spark._jvm.org.apache.hadoop.fs.Path(named[1].replace("``", "`"))
    files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    if not files.exists(path):
        raise UsageError(
            f"There is nothing at {path.toString()}.",
            condition="INTERLOCK_NOT_A_DELTA_TABLE",
            sqlstate="42809",
        )


def _refuse_relative_path(error: Any) -> None:
    """Say what to write if the table that Spark did not find is a folder here."""
    name = (error.getMessageParameters() or {}).get("relationName", "")
    name = name.removeprefix("`delta`.").strip("`")
    if os.path.isdir(os.path.join(name, "_delta_log")):
        found = os.path.abspath(name)
        raise ArgumentError(f"There is no table {name}, and a path must be absolute: {found}.")


def partition_clause(partition: Mapping[str, object] | None) -> str:
    """Write ` PARTITION (column = value, ...)`, nothing for None."""
    if partition is None:
        return ""
    _check(partition)
    pairs = (f"{_quoted(column)} = {literal(value)}" for column, value in partition.items())
    return f" PARTITION ({', '.join(pairs)})"


def partition_map(partition: Mapping[str, object]) -> str:
    """Write a partition as the MAP<STRING, STRING> that procedures take."""
    _check(partition)
    pairs = (f"{literal(column)}, {_text(value)}" for column, value in partition.items())
    return f"map({', '.join(pairs)})"


def _text(value: object) -> str:
    """Write a partition's value as a STRING that Spark casts to the column's type."""
    written = literal(value)
    if value is None:  # Spark takes no map of strings and untyped nulls for constant
        return "CAST(NULL AS STRING)"
    if isinstance(value, datetime):
        return literal(value.isoformat(sep=" "))
    return written if written.startswith("'") else literal(str(value))


def literal(value: object) -> str:
    """Write a value; an `ArgumentError` if SQL has no literal for its type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str | float | Decimal):  # SQL has no literals for NaN and infinity
        return f"'{_escaped(str(value))}'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    raise ArgumentError(f"A partition value cannot be of type {type(value).__name__}: {value!r}.")


def _check(partition: Mapping[str, object]) -> None:
    if not _arguments.mapping("partition", partition):
        raise ArgumentError("partition names no column: leave it out for the whole table.")


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _quoted(identifier: str) -> str:
    if "${" in identifier:
        raise ArgumentError(f"Spark would replace a part of the name: {identifier!r}")
    return f"`{identifier.replace('`', '``')}`"


def _escaped(text: str) -> str:
    # Spark replaces `${...}` before it parses.
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
