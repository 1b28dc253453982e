"""Rows that two tables share."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc

Mask = npt.NDArray[np.bool_]


def equal_rows(left: pa.Table, right: pa.Table, key: str) -> tuple[Mask, Mask]:
    """Return for each row of either table whether the other one has an equal row; nulls are equal.

    Tables in which a key occurs twice have no equal rows.

    Args:
        key: A column whose values differ in each of the tables, such as paths.
    """
    masks = np.zeros(len(left), np.bool_), np.zeros(len(right), np.bool_)
    if any(len(pc.unique(table.column(key))) < len(table) for table in (left, right)):
        return masks
    indices = pc.index_in(left.column(key), right.column(key))
    common = indices.is_valid()
    lefts, rights = left.filter(common), right.take(indices.drop_null())
    equal = np.ones(len(lefts), np.bool_)
    for name in left.column_names:
        if name != key:
            equal &= _equal_values(lefts.column(name), rights.column(name))
    masks[0][np.flatnonzero(common.to_numpy())[equal]] = True
    masks[1][indices.drop_null().to_numpy()[equal]] = True
    return masks


def _equal_values(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    if left.null_count == right.null_count == len(left) or left.equals(right):
        return np.ones(len(left), np.bool_)
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((item == other for item, other in pairs), np.bool_, len(left))
    both_null = pc.and_(left.is_null(), right.is_null())
    return np.asarray(pc.if_else(both_null, True, pc.fill_null(pc.equal(left, right), False)).to_numpy(), np.bool_)  # noqa: FBT003 - values


T = TypeVar("T", pa.Table, pa.Array)


@dataclass(frozen=True, slots=True)
class SharedRows(Generic[T]):
    """Some rows of a table or array. Takes little memory, and is pickled without the other rows, unlike a slice."""

    values: T
    """The table or array."""
    indices: tuple[int, ...]
    """The rows, by their index."""

    def take_rows(self) -> T:
        """Return the rows."""
        return self.values.take(pa.array(self.indices, pa.int64()))

    def __reduce__(self) -> tuple[type["SharedRows[T]"], tuple[T, tuple[int, ...]]]:
        return SharedRows, (self.take_rows(), tuple(range(len(self.indices))))
