"""A failing history, reduced to the fewest jobs that still fail, and printed as SQL."""

from __future__ import annotations

from collections.abc import Callable

from tests.kit.histories.generate import History


def shrunk(history: History, fails: Callable[[History], bool]) -> History:
    """Leave out jobs, one after the other, as long as the rest still fails."""
    for index in reversed(range(len(history.jobs))):
        if len(history.jobs) > 1:
            smaller = history.without(index)
            history = smaller if fails(smaller) else history
    return history


def told(history: History) -> str:
    """Write a history as SQL for several sessions; comments say when each one reads and commits."""
    table = "t"
    lines = [f"-- INTERLOCK_HISTORY_SEED={history.seed}", "-- Every session, first:"]
    lines += ["SET spark.sql.leafNodeDefaultParallelism = 1;", "-- The table:"]
    lines += [f"{statement.format(t=table)};" for statement in history.template.statements]
    for turn, committing in enumerate(history.jobs):
        for index, planned in enumerate(history.jobs):
            if planned.pin == turn and planned.job.by_hand is None:
                lines.append(f"-- Session {index + 1} runs, and stands before its commit:")
                lines += [f"SET {key} = {value};" for key, value in planned.job.settings]
                lines.append(f"{planned.job.sql.format(t=table)};")
        by_hand = committing.job.by_hand is not None
        lines.append(committing.job.sql if by_hand else f"-- Session {turn + 1} commits.")
    return "\n".join(lines)
