"""`interlock.configure` on a builder for a Spark Connect server, as clients call it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.sessions import connect_server

pytestmark = pytest.mark.variant

CLIENT = """
import sys
import warnings

import interlock
from pyspark.sql import SparkSession

with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always", interlock.ConfigurationWarning)
    spark = interlock.configure(SparkSession.builder.remote(sys.argv[1])).getOrCreate()
spark.stop()
print(*(w.message for w in seen if w.category is interlock.ConfigurationWarning), end="")
"""


@pytest.mark.parametrize("plugin", ["", "org.apache.spark.interlock.InterlockPlugin"])
def test_only_a_server_without_interlock_gets_a_warning(tmp_path: Path, plugin: str) -> None:
    with connect_server(tmp_path, **{"spark.plugins": plugin}) as address:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, address], capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    sentence = "The Spark Connect server of this session does not have Interlock"
    assert done.stdout.startswith(sentence) if not plugin else done.stdout == ""
