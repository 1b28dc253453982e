"""Lookup of the deletes that apply to a data file.

Source: iceberg specification, "Scan Planning", "Delete Formats"; `DeleteFileIndex`.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.iceberg.deletes.deletion_vectors import IcebergVector, vector_of
from snapshot_explorer.formats.iceberg.deletes.positions import FILE_PATH_ID, POSITION_ID, bounds_of
from snapshot_explorer.formats.iceberg.files.data_files import File, FileFormat
from snapshot_explorer.formats.iceberg.metadata.entries import EQUALITY_DELETES, POSITION_DELETES

PUFFIN = "puffin"
_Partition = tuple[int, int]
_NEEDED = (
    "path",
    "location",
    "file_format",
    "content",
    "spec_id",
    "partition",
    "record_count",
    "has_confirmed_rows",
    "size_bytes",
    "has_doubted_size",
    "sequence_number",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualitySet:
    """Equality delete files that delete by the same columns. Picklable.

    All data files of a partition share one set. Only delete files with a greater sequence number than a data file
    apply to it.
    """

    ids: tuple[int, ...]
    files: tuple[tuple[int, File], ...]
    """The delete files, each after its sequence number; ascending."""
    key: str
    """A text that is equal for equal sets."""

    def after(self, sequence_number: int) -> tuple[str, ...]:
        """Return the delete files that apply to data of a sequence number."""
        return tuple(file.location for number, file in self.files if number > sequence_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """The deletes that apply to a data file. Picklable."""

    vector: IcebergVector | None = None
    """Its deletion vector; then no position delete file applies."""
    positions: tuple[File, ...] = ()
    """Position delete files that may contain positions in the data file."""
    equality: tuple[EqualitySet, ...] = ()
    """Sets of equality delete files of which at least one applies."""

    @property
    def locations(self) -> tuple[str, ...]:
        """The files with positions."""
        vector = () if self.vector is None else (self.vector.location,)
        return (*vector, *(file.location for file in self.positions))

    def identity(self, sequence_number: int) -> Hashable:
        """Return a value that is equal if the same rows of a file with this sequence number are deleted."""
        positions = tuple(file.location for file in self.positions)
        return self.vector, positions, tuple((item.ids, item.after(sequence_number)) for item in self.equality)


NO_DELETES = Deletes()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PositionFile:
    """A position delete file or a deletion vector, and its scope."""

    sequence_number: int
    partition: _Partition
    file: File | None
    vector: IcebergVector | None
    lower: bytes | None = None
    upper: bytes | None = None


class DeleteIndex:
    """The deletes of a version, by the data files that they apply to."""

    def __init__(self, deletes: pa.Table, unpartitioned: Collection[int]) -> None:
        """Index delete files. Reads nothing.

        Args:
            deletes: LIVE, the delete files, with STATISTICS.
            unpartitioned: Ids of specs without partitions, whose equality deletes apply to all files.
        """
        self._by_path: dict[str, list[_PositionFile]] = {}
        self._vectors: dict[str, _PositionFile] = {}
        by_partition: dict[_Partition, list[_PositionFile]] = {}
        equality: dict[tuple[_Partition | None, tuple[int, ...]], list[tuple[int, File]]] = {}
        for row in delete_rows(deletes):
            partition = (row["spec_id"], row["partition"])
            if row["content"] == EQUALITY_DELETES:
                scope = None if row["spec_id"] in unpartitioned else partition
                equality.setdefault((scope, _equality_ids(row)), []).append((row["sequence_number"], _file(row)))
            elif row["content"] == POSITION_DELETES and row["file_format"] == PUFFIN:
                self._add_vector(row, partition)
            else:
                position_file = _position_file(row, partition)
                path = only_path(row)
                (by_partition.setdefault(partition, []) if path is None else self._by_path.setdefault(path, [])).append(
                    position_file
                )
        self._by_partition = {
            key: sorted(files, key=lambda file: file.sequence_number) for key, files in by_partition.items()
        }
        self._equality: dict[_Partition | None, list[EqualitySet]] = {}
        for (scope, ids), files in sorted(equality.items(), key=lambda item: item[0][1]):
            self._equality.setdefault(scope, []).append(_equality_set(ids, files))
        self._is_empty = not (self._by_path or self._vectors or by_partition or equality)

    def _add_vector(self, row: Mapping[str, Any], partition: _Partition) -> None:
        path = row["referenced_data_file"]
        if path is None:
            raise CorruptTableError(
                f"A manifest describes a deletion vector in {row['location']} without its data file "
                "(referenced_data_file). It may be damaged; compare it with a copy of the table."
            )
        if path in self._vectors:
            raise CorruptTableError(
                f"The data file {path} has two deletion vectors. The table's metadata is damaged; choose another "
                "version, or ask the writer of the table to rewrite its deletes."
            )
        vector = vector_of(
            row["location"],
            row["content_offset"],
            row["content_size_bytes"],
            row["record_count"],
            path,
            file_bytes=None if row["has_doubted_size"] else row["size_bytes"],
        )
        self._vectors[path] = _PositionFile(
            sequence_number=row["sequence_number"], partition=partition, file=None, vector=vector
        )

    def of(self, path: str, spec_id: int, partition: int, sequence_number: int) -> Deletes:
        """Return the deletes that apply to a data file."""
        if self._is_empty:
            return NO_DELETES
        key = (spec_id, partition)
        equality = self._equality_of(key, sequence_number)
        vector = self._vectors.get(path)
        if vector is not None:
            _check_scope(path, key, vector)
            if vector.sequence_number < sequence_number:
                raise CorruptTableError(
                    f"The deletion vector of {path} has the sequence number {vector.sequence_number}, and the data "
                    f"file a greater one, {sequence_number}. The table's metadata is damaged; choose another version."
                )
            return Deletes(vector=vector.vector, equality=equality)
        positions = self._positions_of(path, key, sequence_number)
        return Deletes(positions=positions, equality=equality) if positions or equality else NO_DELETES

    def _positions_of(self, path: str, key: _Partition, sequence_number: int) -> tuple[File, ...]:
        files = [item for item in self._by_path.get(path, ()) if item.sequence_number >= sequence_number]
        for file in files:
            _check_scope(path, key, file)
        shared = self._by_partition.get(key)
        if shared:
            text = path.encode()  # UTF-8 bytes sort as the text
            first = bisect_left(shared, sequence_number, key=lambda file: file.sequence_number)
            files += [
                item
                for item in shared[first:]
                if (item.lower is None or item.lower <= text) and (item.upper is None or text <= item.upper)
            ]
        return tuple(item.file for item in files if item.file is not None)

    def _equality_of(self, key: _Partition, sequence_number: int) -> tuple[EqualitySet, ...]:
        groups = [*self._equality.get(key, ()), *self._equality.get(None, ())]
        return tuple(item for item in groups if item.files[-1][0] > sequence_number)


def delete_rows(deletes: pa.Table) -> Iterable[dict[str, Any]]:
    """Return the delete files; Iceberg ignores those with the sequence number 0, since format 1 has none."""
    stored = [single_chunk(deletes.column(f"{name}_bounds")) for name in ("lower", "upper")]
    bounds = [_column(column) for field_id in (FILE_PATH_ID, POSITION_ID) for column in bounds_of(field_id, *stored)]
    columns = [*(_column(deletes.column(name)) for name in _NEEDED), *bounds]
    for values in zip(*columns, strict=True):
        row = dict(zip((*_NEEDED, "lower", "upper", "first", "last"), values, strict=True))
        if row["sequence_number"]:
            yield row


def _column(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    return list(column.to_pylist())


def _both_bounds(lower: bytes | None, upper: bytes | None) -> tuple[bytes, bytes] | None:
    return None if lower is None or upper is None else (lower, upper)


def _file(row: Mapping[str, Any]) -> File:
    return File(
        location=row["location"],
        format=cast("FileFormat", row["file_format"]),
        rows=row["record_count"] if row["has_confirmed_rows"] else None,
        size_bytes=None if row["has_doubted_size"] else row["size_bytes"],
        path_bounds=_both_bounds(row["lower"], row["upper"]),
        position_bounds=_both_bounds(row["first"], row["last"]),
    )


def _equality_ids(row: Mapping[str, Any]) -> tuple[int, ...]:
    ids = row["equality_ids"]
    if not ids:
        raise CorruptTableError(
            f"A manifest describes the equality delete file {row['location']} without the columns that it compares "
            "(equality_ids). It may be damaged; compare it with a copy of the table."
        )
    return tuple(sorted(set(ids)))


def _equality_set(ids: tuple[int, ...], files: list[tuple[int, File]]) -> EqualitySet:
    ordered = tuple(sorted(files, key=lambda item: (item[0], item[1].location)))
    digest = hashlib.sha256(repr((ids, [(number, file.location) for number, file in ordered])).encode()).hexdigest()
    return EqualitySet(ids=ids, files=ordered, key=digest)


def _position_file(row: Mapping[str, Any], partition: _Partition) -> _PositionFile:
    return _PositionFile(
        sequence_number=row["sequence_number"],
        partition=partition,
        file=_file(row),
        vector=None,
        lower=row["lower"],
        upper=row["upper"],
    )


def only_path(row: Mapping[str, Any]) -> str | None:
    """Return the only data file that a position delete file applies to; None if there may be several."""
    if row["referenced_data_file"] is not None:
        return str(row["referenced_data_file"])
    if row["lower"] is None or row["lower"] != row["upper"]:
        return None
    try:
        return str(row["lower"].decode())
    except UnicodeDecodeError:
        return None


def _check_scope(path: str, key: _Partition, delete_file: _PositionFile) -> None:
    """Check that a delete of one data file is in the file's partition.

    Source: iceberg specification, "Scan Planning"; `DeleteFileIndex` of August 2026.
    """
    if delete_file.partition != key:
        where = (
            delete_file.vector.location
            if delete_file.vector is not None
            else delete_file.file.location
            if delete_file.file is not None
            else ""
        )
        raise CorruptTableError(
            f"The deletes of the data file {path} in {where} are of another partition than the file. The table's "
            "metadata is damaged; choose another version."
        )
