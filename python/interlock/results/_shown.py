"""What results have in common: they are sequences of records, and show themselves as tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from interlock import _tabular

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Shown:
    """Something that has rows, all of one dataclass."""

    def _rows(self) -> Sequence[Any]:
        return [self]

    def _row_class(self) -> type[Any]:
        return type(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dictionary per row, with the columns that SQL has."""
        columns = _tabular.columns(self._row_class())
        return [
            {column: getattr(row, field) for field, column in columns.items()}
            for row in self._rows()
        ]

    def to_arrow(self) -> pyarrow.Table:
        """Return it as a table of `pyarrow`, which must be installed."""
        return _tabular.arrow_table(self._row_class(), self.to_dicts())

    def to_pandas(self) -> pandas.DataFrame:
        """Return it as a frame of `pandas`; needs `pandas` and `pyarrow`. Unknown is NA or NaT."""
        return _tabular.pandas_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        return _tabular.html(list(_tabular.columns(self._row_class()).values()), self.to_dicts())


_R = TypeVar("_R")


@dataclass(frozen=True)
class Records(Shown, Sequence[_R], Generic[_R]):
    """Records in a fixed order; `str` draws a table of the columns that tell most and fit.

    The width is that of the terminal, or `COLUMNS` of the environment, or else 120 characters.

    Attributes:
        records: the records

    """

    record_class: ClassVar[type[Any]]
    printed: ClassVar[tuple[str, ...]] = ()
    printed_times: ClassVar[str] = "milliseconds"
    records: tuple[_R, ...]

    def _rows(self) -> Sequence[Any]:
        return self.records

    def _row_class(self) -> type[Any]:
        return self.record_class

    def __str__(self) -> str:
        titles = list(self.printed or _tabular.columns(self.record_class).values())
        rows = [
            [_tabular.text(row[title], self.printed_times) for title in titles]
            for row in self.to_dicts()
        ]
        return "\n".join(
            _tabular.fitted([titles, *rows], shutil.get_terminal_size((120, 24)).columns)
        )

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[_R]:
        return iter(self.records)

    @overload
    def __getitem__(self, index: int) -> _R: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[_R, ...]: ...

    def __getitem__(self, index: int | slice) -> _R | tuple[_R, ...]:
        return self.records[index]
