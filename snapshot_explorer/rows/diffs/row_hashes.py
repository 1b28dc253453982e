"""Hashes of rows, by DuckDB: equal rows have equal hashes; rows with equal hashes may still differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.equal_values import comparable
from snapshot_explorer.engines.duckdb_sessions import locked_cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

Hashes = npt.NDArray[np.uint64]


def row_hashes(columns: Sequence[pa.Array], rows: int) -> Hashes:
    """Return a 64-bit hash per row of some columns, the same in every process with the same release of DuckDB.

    Args:
        columns: The columns; without any, all rows have the same hash.
    """
    if not columns:
        return np.zeros(rows, np.uint64)
    names = [f"c{index}" for index in range(len(columns))]
    batch = pa.RecordBatch.from_arrays([comparable(column) for column in columns], names=names)
    with locked_cursor() as cursor:
        cursor.register("rows", pa.Table.from_batches([batch]))
        columns_of_hashes = cursor.execute(f"SELECT hash({', '.join(names)}) AS hash FROM rows").fetchnumpy()  # noqa: S608 - the names are numbers
    return np.asarray(columns_of_hashes["hash"], np.uint64)
