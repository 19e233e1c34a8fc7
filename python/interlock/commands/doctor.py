"""`interlock doctor`: checks that Interlock works on this machine, and says what to fix."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlock import diagnosis
from interlock.commands.sessions import add_conf, user_session
from interlock.diagnosis import Check


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="check Java, Spark, Delta, the jar, the session and the disk",
        description="Checks what Interlock needs and says what to fix. Exit status 1 if anything "
        "fails.",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="where tables are, or will be, on this machine; by default the current folder",
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
    installed = [diagnosis.java(), diagnosis.spark(), diagnosis.jar()]
    yield from installed
    if not all(check.ok for check in installed):
        return
    try:
        with user_session(arguments.conf) as spark:
            yield from diagnosis.of_session(spark, arguments.folder)
    except Exception as error:  # whatever Spark or Ivy may raise
        yield diagnosis.no_session(error)


def _as_dict(check: Check) -> dict[str, object]:
    found = {"name": check.name, "ok": check.ok, "found": check.found}
    return found if check.ok else {**found, "fix": check.fix}


def _text(check: Check) -> str:
    line = f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.found}"
    return line if check.ok else f"{line}\n     fix: {check.fix}"
