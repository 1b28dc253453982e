"""Commits that are Avro files, many small files at once: NumPy reads a field of all of them in a few operations.

`avro_commits` reads a single file, and reads large files faster.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import fastavro
import numpy as np
import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.avro.columns import decode_at, only_rows
from snapshot_explorer.formats.avro.container import MAGIC, Container, Record, Shape, read_container
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS, record_of, without_logical_types
from snapshot_explorer.formats.hudi.metadata.avro_commits import STATS

_LANES = 256
"""Commits are decoded together if their size is this multiple of the largest one; below it, that takes longer."""
_MAX_BYTES = 2**30


class AvroCommits(NamedTuple):
    """The metadata of commits, from Avro files."""

    paths: Sequence[str]
    stats: pa.RecordBatch
    """The write stats of all commits: the partition and the requested fields."""
    bounds: Sequence[int]
    """The index of the first write stat of each commit, and the end of the last commit's."""
    recorded: Sequence[Mapping[str, Any]]
    """The other fields of each commit; the same object if they are equal."""


def read_avro_commits(
    contents: Mapping[str, bytes], schema: pa.Schema, shapes: dict[bytes, Shape], limits: Limits
) -> Iterator[AvroCommits]:
    """Yield commits that can be read together. Other files are damaged, have another format, or are too large.

    Args:
        contents: The files by path.
        schema: The partition of a write stat and the fields to return.
    """
    for first, paths in _by_head(contents, shapes, limits):
        if first.header.get("avro.codec", b"null") == b"null":
            parts = {path: contents[path][len(first.head) :] for path in paths}
            try:
                yield from _decode(first, _of_similar_size(parts), schema)
            except FOREIGN_ERRORS:
                continue


def _by_head(
    contents: Mapping[str, bytes], shapes: dict[bytes, Shape], limits: Limits
) -> list[tuple[Container, list[str]]]:
    """Return groups of files with the same header before the sync marker: the first file and all paths."""
    groups: dict[bytes, tuple[Container, list[str]]] = {}
    head, paths = b"", list[str]()
    for path, content in contents.items():
        if not head or not content.startswith(head):
            if not content.startswith(MAGIC):
                continue
            try:
                first = read_container(content, path, shapes, limits=limits)
            except SnapshotExplorerError:
                continue  # raised when the file is read alone
            head = first.head
            _, paths = groups.setdefault(head, (first, []))
        paths.append(path)
    return list(groups.values())


def _of_similar_size(parts: Mapping[str, bytes]) -> Mapping[str, bytes]:
    sizes = np.sort(np.fromiter(map(len, parts.values()), np.int64, len(parts)))
    totals = np.cumsum(sizes)
    chosen = np.flatnonzero((totals >= _LANES * sizes) & (totals <= _MAX_BYTES))
    largest = sizes[chosen[-1]] if len(chosen) else -1
    return {path: part for path, part in parts.items() if len(part) <= largest}


def _decode(first: Container, parts: Mapping[str, bytes], schema: pa.Schema) -> Iterator[AvroCommits]:
    """Yield the commits in Avro files; nothing if their schema is not a commit schema."""
    shape = first.shape
    if not parts or not isinstance(shape, Record) or shape.fields[0][0] != STATS:
        return
    content = b"".join(parts.values())
    is_whole, starts, ends = only_rows(content, np.cumsum([0, *map(len, parts.values())]))
    if not is_whole.any():
        return
    stats = pa.map_(pa.string(), pa.list_(pa.struct(list(schema)[1:])))
    decoded = decode_at(content, starts[is_whole], Record(shape.fields[:1]), pa.struct([(STATS, stats)]))
    if decoded is None or (decoded[1] > ends[is_whole]).any():
        return
    rests = zip(decoded[1].tolist(), ends[is_whole].tolist(), strict=True)
    yield AvroCommits(
        [path for path, is_read in zip(parts, is_whole.tolist(), strict=True) if is_read],
        *_stats(decoded[0].field(0), schema),
        [_read_other_fields(first.schema_text, content[start:end]) for start, end in rests],
    )


def _stats(partitions: pa.MapArray, schema: pa.Schema) -> tuple[pa.RecordBatch, Sequence[int]]:
    """Return the write stats that name a file, and the index of the first one of each commit."""
    lists = partitions.items
    ends = lists.offsets.to_numpy()
    bounds = ends[partitions.offsets.to_numpy()]
    names = partitions.keys.take(from_numpy(np.repeat(np.arange(len(lists)), np.diff(ends))))
    batch = pa.RecordBatch.from_arrays([names, *lists.values.flatten()], schema=schema)
    is_named = pc.greater(pc.fill_null(pc.binary_length(batch.column("path")), 0), 0).to_numpy(zero_copy_only=False)
    if not is_named.all():
        batch = batch.filter(pa.array(is_named))
        bounds = np.concatenate([[0], np.cumsum(is_named)])[bounds]
    return batch, bounds.tolist()


@lru_cache(maxsize=32)
def _read_other_fields(text: bytes, content: bytes) -> Mapping[str, Any]:
    """Return the other fields of a commit. They are the same for most commits of a writer."""
    stream = io.BytesIO(content)
    rest: Any = fastavro.schemaless_reader(stream, _rest_schema(text))
    if stream.tell() != len(content):
        raise ValueError("bytes follow the record")
    return rest  # type: ignore[no-any-return]


@lru_cache(maxsize=32)
def _rest_schema(text: bytes) -> Any:
    record = record_of(without_logical_types(orjson.loads(text)))
    return fastavro.parse_schema(record | {"name": f"{record['name']}Rest", "fields": record["fields"][1:]})
