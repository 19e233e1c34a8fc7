"""Runs Airflow's command line with statements of a DAG held until others have committed.

    python -m tests.recipes.airflow_runs ORDER ARGUMENT...

ORDER is JSON: `before` lists statements that are run first of all, `beside` pairs of a part of a
statement and the one that commits before it, and `unknown` a part of a statement that raises
CommitStateUnknown.
"""

from __future__ import annotations

import json
import runpy
import sys

from tests.kit.beside import Beside


def main() -> None:
    order = json.loads(sys.argv[1])
    beside = Beside(before=tuple(order["before"]))
    for part, winner in order["beside"]:
        beside.let_win(part, winner)
    if "unknown" in order:
        beside.lose_reply(order["unknown"])
    sys.argv = ["airflow", *sys.argv[2:]]
    with beside.installed():
        runpy.run_module("airflow", run_name="__main__")
    assert beside.all_met()


if __name__ == "__main__":
    main()
