"""`StoredRows`: rows of a result, in memory or in a temporary file."""

from __future__ import annotations

import shutil
import weakref
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.results.outputs import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self


class StoredRows:
    """Rows, in memory up to a limit, beyond it in a temporary file that is removed with this object.

    Rows are added within a `with` block, and read after it.
    """

    def __init__(self, schema: pa.Schema, *, limit_bytes: int) -> None:
        """Contain no rows yet."""
        self.schema = schema
        self._limit_bytes = limit_bytes
        self._tables: list[pa.Table] = []
        self._held = 0
        self._folder: Path | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, part: pa.Table) -> None:
        """Add rows."""
        self._tables.append(part)
        self._held += part.nbytes
        if self._writer is None and self._held > self._limit_bytes:
            self._writer = pa.ipc.new_stream(self._path(), self.schema)
        while self._writer is not None and self._tables:
            self._writer.write_table(self._tables.pop(0))

    def _path(self) -> str:
        if self._folder is None:
            self._folder = scratch_folder("result")
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return str(self._folder / "rows.arrows")

    @property
    def is_in_memory(self) -> bool:
        """Whether all rows are in memory."""
        return self._folder is None

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows, part by part."""
        if self._folder is None:
            yield from self._tables
            return
        with pa.OSFile(self._path()) as source:
            for batch in pa.ipc.open_stream(source):
                yield pa.Table.from_batches([batch])
