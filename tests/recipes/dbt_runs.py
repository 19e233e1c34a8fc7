"""Runs dbt in one process, with one Spark for all its runs, as the test orders.

A line of JSON on stdin is an order, `{"arguments": [...], "beside": [[part, winner]]}`: dbt's
arguments, and which statements of it are held before their commit until another has committed. The
answer is a line on stdout: whether the run succeeded, and what dbt said of each model.

    python -m tests.recipes.dbt_runs STATEMENT...    # which are run first of all
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from tests.kit.beside import Beside


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # dbt prints on stdout
    runner = import_module("dbt.cli.main").dbtRunner()
    beside = Beside(before=tuple(sys.argv[1:]))
    with beside.installed():
        for line in sys.stdin:
            order = json.loads(line)
            for part, winner in order["beside"]:
                beside.let_win(part, winner)
            ended = runner.invoke(order["arguments"])
            found = getattr(ended.result, "results", [])
            answer = {
                "ok": ended.success,
                "messages": [result.message for result in found] or [repr(ended.exception)],
                "met": beside.all_met(),
            }
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
