"""Hashes of rows, by DuckDB: rows that are equal have equal hashes, and rows of equal hashes may still differ."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.equal_values import comparable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

Hashes = npt.NDArray[np.uint64]

_CONFIG = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "threads": "1",
}


class RowHasher:
    """Hashes rows on a connection of its own, which reaches no file. Safe to use from several threads."""

    def __init__(self) -> None:
        """Open no connection yet."""
        self._lock = threading.Lock()
        self._local = threading.local()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def hashes(self, columns: Sequence[pa.Array], rows: int) -> Hashes:
        """Return a hash per row of some columns, 64 bits, the same in every process with one DuckDB."""
        if not columns:
            return np.zeros(rows, np.uint64)
        names = [f"c{place}" for place in range(len(columns))]
        batch = pa.RecordBatch.from_arrays([comparable(column) for column in columns], names=names)
        cursor = self._cursor()
        cursor.register("rows", pa.Table.from_batches([batch]))
        query = f"SELECT hash({', '.join(names)}) FROM rows"  # noqa: S608 - the names are numbers
        found = cursor.execute(query).fetchnumpy()["hash(" + ", ".join(names) + ")"]
        return np.asarray(found, np.uint64)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        found: duckdb.DuckDBPyConnection | None = getattr(self._local, "cursor", None)
        if found is None:
            with self._lock:
                if self._connection is None:
                    import duckdb

                    self._connection = duckdb.connect(":memory:", config=dict(_CONFIG))
                found = self._local.cursor = self._connection.cursor()
        return found
