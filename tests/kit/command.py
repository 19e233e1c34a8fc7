"""The command line, as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

INTERLOCK = [sys.executable, "-c", "from interlock._cli import main; exit(main())"]


def doctor(settings: Mapping[str, str], target: str) -> dict[str, Any]:
    """Run `interlock doctor` with settings of Spark; return its checks by name."""
    done = _run(settings, "doctor", target)
    assert done.stdout, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == (0 if all(check["ok"] for check in checks.values()) else 1)
    return checks


def repair(
    login: Mapping[str, str], table: str, settings: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """Run `interlock coordinator repair`.

    Args:
        login: url, user and passwordFile
        table: where it is
        settings: of Spark

    """
    database = ["--url", login["url"], "--user", login["user"]]
    password = ["--password-file", login["passwordFile"]]
    return _run(settings, "coordinator", "repair", *database, *password, "--table", table)


def _run(settings: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    conf = [f"--conf={key}={value}" for key, value in settings.items()]
    command = [*INTERLOCK, *arguments, "--json", *conf]
    return subprocess.run(command, capture_output=True, text=True, check=False)
