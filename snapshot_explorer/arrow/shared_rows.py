"""Rows of an Arrow table or array that many objects share."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

T = TypeVar("T", pa.Table, pa.Array)


@dataclass(frozen=True, slots=True)
class SharedRows(Generic[T]):
    """Some rows of a table or array. Takes little memory, and is pickled without the other rows, unlike a slice."""

    values: T
    """The table or array."""
    places: tuple[int, ...]
    """The rows, by their index."""

    def taken(self) -> T:
        """Return the rows."""
        return self.values.take(pa.array(self.places, pa.int64()))

    def __reduce__(self) -> tuple[type["SharedRows[T]"], tuple[T, tuple[int, ...]]]:
        return SharedRows, (self.taken(), tuple(range(len(self.places))))
