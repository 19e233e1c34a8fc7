"""`interlock doctor`: checks this machine or a table, and says what to do about what is wrong."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlock import _diagnosis
from interlock._commands.sessions import add_conf, example, unlogged, user_session
from interlock._diagnosis import Check, told_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="check Java, Spark, Delta, the jar and the session; and a storage, or a table",
        description="Checks what Interlock needs and says what to fix. With a table, looks at the "
        "table too: policy, features, foreign commits, coordinator, checkpoint and files. At a URL "
        "32 writers race for each of 100 files, which takes about 3,200 requests. Exit status 1 if "
        "anything fails or is worth a look.",
        epilog=example("doctor"),
    )
    parser.add_argument(
        "target",
        nargs="?",
        default=".",
        metavar="FOLDER|URL|TABLE",
        help="a folder of this machine where tables are, or will be; or one of another storage, as "
        "s3a://bucket/path; anything else is a table, by its name or path. By default the current "
        "folder",
    )
    parser.add_argument(
        "--delta",
        nargs="+",
        metavar="JAR",
        help="start no session, but say whether these jars (delta-spark, delta-storage) have what "
        "Interlock uses of Delta",
    )
    add_conf(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the checks as they are made; return 1 if any failed."""
    checks = []
    for check in _checks(arguments):
        checks.append(check)
        if not arguments.json:
            print(_text(check), flush=True)
    if arguments.json:
        print(json.dumps([_as_dict(check) for check in checks], indent=2))
    return 0 if all(check.ok for check in checks) else 1


def _checks(arguments: argparse.Namespace) -> Iterator[Check]:
    """Check what needs no Spark, and the rest only if that is in order."""
    installed = [_diagnosis.java(), _diagnosis.spark(), _diagnosis.jar()]
    yield from installed
    if not all(check.ok for check in installed):
        return
    if arguments.delta:
        yield _diagnosis.delta_jars(arguments.delta)
        return
    try:
        with user_session(arguments.conf) as spark:
            folder = _folder(arguments.target)
            yield from _diagnosis.of_session(spark, folder)
            if _is_url(arguments.target):
                with unlogged():
                    yield _diagnosis.store(spark, arguments.target)
                    if not _has_table(spark, arguments.target):
                        return
            if folder is None:
                yield from _table(spark, arguments.target)
    except Exception as error:  # whatever Spark or Ivy may raise
        yield _diagnosis.no_session(error)


def _folder(target: str) -> Path | None:
    """Take it for a folder if it is one, and no Delta table."""
    is_table = os.path.isdir(os.path.join(target, "_delta_log"))
    return Path(target) if os.path.isdir(target) and not is_table else None


def _is_url(target: str) -> bool:
    """Take a URL of this machine's disk for a table, whose checks include the disk."""
    return "://" in target and not target.startswith("file:")


def _has_table(spark: SparkSession, url: str) -> bool:
    from delta.tables import DeltaTable

    try:
        return bool(DeltaTable.isDeltaTable(spark, url))
    except Exception:  # of the storage, which has been told
        return False


def _table(spark: SparkSession, target: str) -> Iterator[Check]:
    from interlock._table_diagnosis import of_table

    try:
        with unlogged():
            folder = os.path.realpath(target) if os.path.isdir(target) else target
            yield from of_table(spark, folder)
    except Exception as error:  # whatever Spark or the storage may raise
        found = told_by(error).partition("; line 1")[0]
        yield Check("Table", False, found, "name a Delta table, as db.t or by its path")


def _as_dict(check: Check) -> dict[str, object]:
    found = {"name": check.name, "ok": check.ok, "found": check.found}
    return found if check.ok else {**found, "fix": check.fix}


def _text(check: Check) -> str:
    line = f"{'ok  ' if check.ok else check.mark} {check.name}: {check.found}"
    return line if check.ok else f"{line}\n     fix: {check.fix}"
