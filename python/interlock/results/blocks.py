"""What `Table.blocks` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from interlock.results._shown import Records


@dataclass(frozen=True)
class BlockRecord:
    """An atomic block that has changed a table.

    Attributes:
        block: its id
        version: the version that it has made; that which reserves one, if it has made none
        timestamp: the time of this version, in UTC
        state: "committed", "rolled back", or "undecided" until the table's next writer finishes it
        statements: what its statements are; None if it has made no version
        others: the versions that it has made of other tables, by the tables' ids

    """

    block: str
    version: int
    timestamp: datetime | None
    state: str
    statements: tuple[str, ...] | None
    others: Mapping[str, int]


class Blocks(Records[BlockRecord]):
    """The atomic blocks of a table, newest first."""

    record_class = BlockRecord
