"""The version of Spark that the tests run on."""

from __future__ import annotations

import pyspark
import pytest

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

# What docs/limits.md says of earlier versions.
since_4_1 = pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.0 does not have it")
since_4_2 = pytest.mark.skipif(SPARK < (4, 2), reason="Spark 4.0 and 4.1 do not have it")
