"""`file_indexes`: the indexes of data files, from the headers of their containers."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError, MissingFileError
from snapshot_explorer.formats.corrupt_files import absent_file_error
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.inspect.schemas import schema_of
from snapshot_explorer.formats.paimon.inspect.texts import braced_texts
from snapshot_explorer.formats.paimon.metadata.layout import safe_name
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions
from snapshot_explorer.storage import Storage

_MAGIC = 1493475289347502
_VERSION = 1
_FIXED = struct.Struct(">qii")
_INT = struct.Struct(">i")
_PLACE = struct.Struct(">ii")
_EMPTY = -1
_SUFFIX = ".index"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIndex:
    """An index of one column, in a container."""

    column: str
    kind: str
    """The index type: bloom-filter, bitmap, bsi and others."""
    begin: int
    """Its offset in the container; -1 for an index of no values."""
    length: int


def parse_container(content: bytes, path: str) -> list[FileIndex]:
    """Return the indexes in a container, in its order. Does not read their bodies.

    Source: paimon docs, "File Index"; paimon FileIndexFormat.
    """
    try:
        return list(_indexes(_head(content, path), len(content)))
    except (struct.error, ValueError) as error:
        raise CorruptTableError(
            f"{path} is not a readable file index ({error}): it is cut short or was overwritten. Compare it with a "
            "copy of the table."
        ) from error


def _head(content: bytes, path: str) -> bytes:
    magic, version, length = _FIXED.unpack_from(content)
    if magic != _MAGIC:
        raise ValueError("it does not begin like one")
    if version != _VERSION:
        raise refusal(features.OTHER_FILE_INDEXES, path=path, version=version, newest=_VERSION)
    if not _FIXED.size <= length <= len(content):
        raise ValueError(f"its header would have {length} of {len(content)} bytes")
    return content[:length]


def _indexes(head: bytes, size: int) -> Iterator[FileIndex]:
    at = _FIXED.size
    (columns,) = _INT.unpack_from(head, at)
    at += _INT.size
    for _ in range(columns):
        column, at = _text(head, at)
        (kinds,) = _INT.unpack_from(head, at)
        at += _INT.size
        for _ in range(kinds):
            index_type, at = _text(head, at)
            begin, length = _PLACE.unpack_from(head, at)
            at += _PLACE.size
            is_inside = len(head) <= begin and 0 <= length <= size - begin
            if not is_inside and (begin, length) != (_EMPTY, 0):
                raise ValueError(f"an index of {column!r} would be at {begin}, with {length} bytes")
            yield FileIndex(column=column, kind=index_type, begin=begin, length=length)


def _text(head: bytes, at: int) -> tuple[str, int]:
    """Return a text in Java's modified UTF-8, prefixed with two bytes of length, and the position after it."""
    (length,) = struct.unpack_from(">H", head, at)
    content = head[at + 2 : at + 2 + length]
    if len(content) < length:
        raise ValueError("a name is cut short")
    units = content.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return units.encode("utf-16", "surrogatepass").decode("utf-16"), at + 2 + length


def file_indexes(
    storage: Storage, entries: pa.Table, partitions: PaimonPartitions, paths: Sequence[str], locations: Sequence[str]
) -> pa.Table:
    """Return a row per index of a live file, in the order of the manifests. One concurrent request per index file.

    Args:
        paths: The path of each file, for the storage.
        locations: The full location of each, for display.

    Source: paimon FileIndexesTable.
    """
    texts = [braced_texts(list(partition.values())) for partition in partitions.texts]
    names = ("bucket", "file_name", "size_bytes", "rows", "schema_id", "embedded_index", "extra_files")
    rows = list(zip(*(entries.column(name).to_pylist() for name in names), strict=True))
    beside = {
        row: _index_name(extra, name)
        for row, (_, name, _, _, _, embedded, extra) in enumerate(rows)
        if embedded is None and any(other.endswith(_SUFFIX) for other in extra or ())
    }
    contents = _read(storage, {row: _sibling(paths[row], name) for row, name in beside.items()})
    records: list[dict[str, Any]] = []
    for row, position in enumerate(partitions.of_rows.to_pylist()):
        bucket, name, size, count, schema_id, embedded, _ = rows[row]
        content = embedded if embedded is not None else contents.get(row)
        if content is None:
            continue
        source = f"the manifest entry of {name}" if embedded is not None else _sibling(paths[row], beside[row])
        records.extend(
            {
                "partition": texts[position],
                "bucket": bucket,
                "file_path": locations[row],
                "file_size_in_bytes": size,
                "record_count": count,
                "schema_id": schema_id,
                "column_name": index.column,
                "index_type": index.kind,
                "storage_type": "FILE" if embedded is None else "EMBEDDED",
                "index_file_path": _sibling(locations[row], beside[row]) if embedded is None else None,
                "index_size_in_bytes": index.length,
                "index_container_size_in_bytes": len(content),
                "is_empty": index.begin == _EMPTY,
            }
            for index in parse_container(content, source)
        )
    return pa.Table.from_pylist(records, schema_of("file_indexes"))


def _index_name(extra: Sequence[str], name: str) -> str:
    index_files = [other for other in extra if other.endswith(_SUFFIX)]
    if len(index_files) > 1:
        raise CorruptTableError(
            f"The data file {name} has {len(index_files)} index files: {', '.join(index_files)}. At most one is valid; "
            "compare the table's metadata with a copy of it."
        )
    return safe_name(index_files[0], f"the manifest entry of {name}")


def _sibling(path: str, name: str) -> str:
    return f"{path.rpartition('/')[0]}/{name}"


def _read(storage: Storage, paths: dict[int, str]) -> dict[int, bytes]:
    try:
        return dict(zip(paths, storage.read_many(list(paths.values())), strict=True))
    except MissingFileError as error:
        raise absent_file_error("An index file", error) from error
