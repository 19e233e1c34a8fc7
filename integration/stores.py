"""Where a table's commits are ordered, as tables and sessions are told."""

from __future__ import annotations

from dataclasses import dataclass, field

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

    """

    name: str
    kind: str = "interlock"
    properties: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    database: bool = False

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
