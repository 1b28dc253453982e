"""The content of delete files. Each file is read once for all data files to which it applies."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import TypeVar

from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.single_flight import SingleFlight
from snapshot_explorer.formats.iceberg.deletes import deletion_vectors
from snapshot_explorer.formats.iceberg.deletes.equality import DeletedRows, EqualityColumn, read_equality_deletes
from snapshot_explorer.formats.iceberg.deletes.index import Deletes, EqualitySet
from snapshot_explorer.formats.iceberg.deletes.positions import PositionDeletes, merge_positions, read_position_deletes
from snapshot_explorer.formats.iceberg.files.data_files import File
from snapshot_explorer.formats.iceberg.files.field_ids import IdRules
from snapshot_explorer.storage import Storage

_MAX_BYTES = 512 * 2**20
"""The size of the cached content of delete files, in memory."""

S = TypeVar("S", PositionDeletes, DeletedRows)


class DeleteReader:
    """Reads delete files, and caches the last used ones. Safe to use from several threads."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._values = SingleFlight()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._total = 0
        self._lock = Lock()

    def positions(self, deletes: Deletes, path: str, rows: int | None) -> Positions:
        """Return the distinct positions that position deletes and vectors delete in a data file, ascending.

        Some position delete files have positions that the data file does not have; they delete nothing.

        Args:
            rows: The number of rows of the data file, if it is known.
        """
        if deletes.vector is not None:
            return deletion_vectors.read_deleted_positions(self._storage, deletes.vector, path, rows)
        if not deletes.positions:
            return NOTHING
        return merge_positions([self._position_deletes(file).of(path) for file in deletes.positions])

    def _position_deletes(self, file: File) -> PositionDeletes:
        return self._get_cached(f"positions {file.location}", lambda: read_position_deletes(self._storage, file))

    def deleted_rows(self, equality_set: EqualitySet, columns: Sequence[EqualityColumn], rules: IdRules) -> DeletedRows:
        """Return the deleted rows of a set of equality delete files, to be looked up."""

        def made() -> DeletedRows:
            contents = self._storage.together(
                *(partial(read_equality_deletes, self._storage, file, columns, rules) for _, file in equality_set.files)
            )
            numbers = [number for number, _ in equality_set.files]
            return DeletedRows(contents, numbers)

        return self._get_cached(f"equality {equality_set.key}", made)

    def _get_cached(self, key: str, make: Callable[[], S]) -> S:
        """Return a cached value, or create it. The least recently used values are dropped."""
        result = self._values.get(key, make)
        with self._lock:
            self._total += result.size_bytes - self._sizes.pop(key, 0)
            self._sizes[key] = result.size_bytes
            while len(self._sizes) > 1 and self._total > _MAX_BYTES:
                oldest, size_bytes = self._sizes.popitem(last=False)
                self._total -= size_bytes
                self._values.forget(oldest)
        return result
