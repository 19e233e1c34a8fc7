"""One hour of the busy table of `integration.busy_table`, under `row_level`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from integration.busy_table import SETTINGS, Table, hour
from tests.kit.sessions import classic_session

pytestmark = pytest.mark.variant


@pytest.mark.parametrize("clustered", [False, True], ids=["plain", "clustered"])
def test_an_hour_ends_as_if_its_jobs_had_run_one_by_one(tmp_path: Path, clustered: bool) -> None:
    """No two jobs of the hour change the same row, so no job fails."""
    with classic_session(**SETTINGS) as spark:
        busy = Table(spark, tmp_path / "busy", "row_level", clustered=clustered)
        day = busy.run(hours=1)
        quiet = Table(spark, tmp_path / "quiet", "stock")
        for statement in chain.from_iterable(hour(0)):
            quiet.execute(statement)
        assert day.rows == quiet.totals()
    assert (day.aborted, day.given_up, day.reasons) == ({}, {}, [])
