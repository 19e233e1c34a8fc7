"""A race on a client of Spark Connect, which has no threads of the driver to hold."""

from __future__ import annotations

import interlock
import pytest
from pyspark.sql import SparkSession


def test_it_needs_a_classic_session(spark: SparkSession, mode: str) -> None:
    statements = ("SELECT 1",)
    if mode == "classic":
        assert all(done.ok for done in interlock.race(spark, *statements))
    else:
        with pytest.raises(interlock.ConfigurationError, match="A race needs a classic session"):
            interlock.race(spark, *statements)
