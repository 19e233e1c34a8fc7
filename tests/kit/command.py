"""The command line, as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

INTERLOCK = [sys.executable, "-c", "from interlock._cli import main; exit(main())"]


def doctor(settings: Mapping[str, str], target: str) -> dict[str, Any]:
    """Run `interlock doctor` with settings of Spark; return its checks by name."""
    conf = [f"--conf={key}={value}" for key, value in settings.items()]
    command = [*INTERLOCK, "doctor"]
    done = subprocess.run(
        [*command, target, "--json", *conf], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == (0 if all(check["ok"] for check in checks.values()) else 1)
    return checks
