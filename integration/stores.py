"""Where a table's commits are ordered, as tables and sessions are told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.kit.support import Table
from tests.storage.remote import SeenTable, Storage

ON_S3 = " on s3"
ON_HDFS = " on hdfs"
"""These end the name of a store whose tables are not on a local disk."""

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
        storage: of the tables; None for a local disk
        root: the folder with all that is on the storage

    """

    name: str
    kind: str = "interlock"
    properties: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    database: bool = False
    storage: Storage | None = None
    root: Path = Path()

    def folder(self, local: Path) -> Path:
        """Return where folders of tables are made: `local`, or what shows the storage."""
        return local if self.storage is None else self.root

    def table(self, path: Path) -> Table:
        """Return the table whose files are in a folder, which a storage shows in `root`."""
        return Table(path) if self.storage is None else SeenTable(path, self.root, self.storage.url)

    def on(self, storage: Storage, root: Path, suffix: str) -> Store:
        """Return the same for tables on a storage, with a suffix to the name."""
        settings = {**self.settings, **storage.settings}
        name = self.name + suffix
        return replace(self, name=name, settings=settings, storage=storage, root=root)

    def create(self, table: object, *, more: dict[str, str] | None = None) -> str:
        """Return the statement that creates `table` with one column, `id`."""
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in {**self.properties, **(more or {})}.items())
        clause = f" TBLPROPERTIES ({listed})" if listed else ""
        return f"CREATE TABLE {table} (id BIGINT) USING delta{clause}"


FILE_SYSTEM = Store("filesystem", properties={"interlock.policy": "maxcompute_transactional"})
STORES = (FILE_SYSTEM.name, "postgres 16", "postgres 18")
ALL_STORES = tuple(name + end for end in ("", ON_S3, ON_HDFS) for name in STORES)
STOCK = Store("stock", kind="stock")
STOCK_SAME_PROPERTIES = Store("stock, same properties", kind="stock", properties=REQUIRED)
STOCK_WIDENED = Store(
    "stock, one second before its rename",
    kind="stock",
    # A checkpoint keeps what a replaced commit had added, so readers would differ.
    properties={"delta.checkpointInterval": "10000"},
    settings={
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "integration.SlowRenames",
        "spark.hadoop.integration.rename.millis": "1000",
    },
)
