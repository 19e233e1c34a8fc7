"""Where a table's commits are ordered, as tables and sessions are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from tests.kit.s3 import BucketTable
from tests.kit.support import Table

ON_S3 = " on s3"
"""Ends the name of a store whose tables are on S3."""

REQUIRED = {"delta.enableRowTracking": "true", "delta.enableInCommitTimestamps": "true"}


@dataclass(frozen=True)
class Store:
    """A kind of session, and what its tables are made with.

    Attributes:
        name: of the row in a report
        kind: of the driver process, "interlock" or "stock"
        properties: of the tables
        settings: of the sessions
        database: whether tables are bound to one
        bucket: the folder of all objects, for tables on S3; None for tables on a local disk

    """

    name: str
    kind: str = "interlock"
    properties: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    database: bool = False
    bucket: Path | None = None

    def table(self, path: Path) -> Table:
        """Return the table whose files are in a folder, which on S3 is one of the bucket."""
        return Table(path) if self.bucket is None else BucketTable(path, self.bucket)

    def on_s3(self, bucket: Path, settings: Mapping[str, str] = MappingProxyType({})) -> Store:
        """Return the same for tables in a bucket, which sessions reach by `settings`."""
        both = {**self.settings, **settings}
        return replace(self, name=self.name + ON_S3, settings=both, bucket=bucket)

    def create(self, table: object, *, more: dict[str, str] | None = None) -> str:
        """Return the statement that creates `table` with one column, `id`."""
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in {**self.properties, **(more or {})}.items())
        clause = f" TBLPROPERTIES ({listed})" if listed else ""
        return f"CREATE TABLE {table} (id BIGINT) USING delta{clause}"


FILE_SYSTEM = Store("filesystem", properties={"interlock.policy": "maxcompute_transactional"})
STORES = (FILE_SYSTEM.name, "postgres 16", "postgres 18")
STOCK = Store("stock", kind="stock")
STOCK_SAME_PROPERTIES = Store("stock, same properties", kind="stock", properties=REQUIRED)
STOCK_WIDENED = Store(
    "stock, one second before its rename",
    kind="stock",
    settings={
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "integration.SlowRenames",
        "spark.hadoop.integration.rename.millis": "1000",
    },
)
