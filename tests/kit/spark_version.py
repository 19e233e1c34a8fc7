"""The version of Spark that the tests run on."""

from __future__ import annotations

import pyspark
import pytest
from interlock._artifacts import delta_artifact

SPARK = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

# What docs/limits.md says of earlier versions.
since_4_1 = pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.0 does not have it")
since_4_2 = pytest.mark.skipif(SPARK < (4, 2), reason="Spark 4.0 and 4.1 do not have it")
s3_without_database = pytest.mark.skipif(
    SPARK < (4, 1), reason="Hadoop 3.4.1, of Spark 4.0, has no conditional request on S3"
)


def of_this_spark(page: str) -> str:
    """Return the text of a page, which is written for Spark 4.2, with this version's Delta."""
    return page.replace("delta-spark_4.2_2.13", delta_artifact())
