"""Commits that are Avro files, many small ones at once: NumPy reads a field of all of them in a few operations.

`avro_commits` reads one, and large ones faster.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

import fastavro
import numpy as np
import orjson
import pyarrow as pa

from snapshot_explorer.formats.avro.columns import decode_at
from snapshot_explorer.formats.avro.container import Container, Record
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS, bare, record_of
from snapshot_explorer.formats.hudi.metadata.avro_commits import STATS

_LANES = 256
"""The commits that are decoded together must have so many times the bytes of the largest one: fewer take longer."""
_MAX_BYTES = 2**30


class AvroCommit(NamedTuple):
    """What an Avro file records about a commit."""

    stats: Sequence[tuple[Any, ...]]
    """Of each write stat the partition and the values of the fields, in order."""
    recorded: Mapping[str, Any]
    """The other fields."""


def read_avro_commits(
    containers: Sequence[Container], fields: Sequence[pa.Field]
) -> Iterator[tuple[Container, AvroCommit]]:
    """Yield commits that can be read together. Others are damaged, have another form, or are too large for that.

    Args:
        fields: The fields of a write stat to return.
    """
    by_schema: dict[bytes, list[Container]] = {}
    for container in containers:
        if len(container.blocks) == 1 and container.rows == 1:
            by_schema.setdefault(container.schema_text, []).append(container)
    for text, alike in by_schema.items():
        chosen = _of_similar_size(alike)
        try:
            yield from zip(chosen, _decoded(text, chosen, fields), strict=True)
        except FOREIGN_ERRORS:
            continue


def _of_similar_size(containers: Sequence[Container]) -> Sequence[Container]:
    ordered = sorted(containers, key=lambda container: len(container.blocks[0][1]))
    sizes = np.array([len(container.blocks[0][1]) for container in ordered])
    totals = np.cumsum(sizes)
    chosen = np.flatnonzero((totals >= _LANES * sizes) & (totals <= _MAX_BYTES))
    return ordered[: chosen[-1] + 1] if len(chosen) else ()


def _decoded(text: bytes, containers: Sequence[Container], fields: Sequence[pa.Field]) -> list[AvroCommit]:
    """Return what Avro files of one schema contain; nothing if it is not that of commits."""
    if not containers:
        return []
    shape = containers[0].shape
    if not isinstance(shape, Record) or shape.fields[0][0] != STATS:
        raise ValueError("not the schema of a commit")
    blocks = [container.blocks[0][1] for container in containers]
    bounds = np.cumsum([0, *map(len, blocks)])
    stats = pa.map_(pa.string(), pa.list_(pa.struct(list(fields))))
    decoded = decode_at(b"".join(blocks), bounds[:-1], Record(shape.fields[:1]), pa.struct([(STATS, stats)]))
    if decoded is None or (decoded[1] > bounds[1:]).any():
        raise ValueError("not write stats")
    rests = [_rest(text, block[end:]) for block, end in zip(blocks, decoded[1] - bounds[:-1], strict=True)]
    return list(map(AvroCommit, _stats(decoded[0].field(0)), rests))


def _stats(partitions: pa.MapArray) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the write stats of each commit."""
    lists = partitions.items
    ends = lists.offsets.to_numpy()
    names = chain.from_iterable(map(_repeated, partitions.keys.to_pylist(), np.diff(ends).tolist()))
    stats = list(zip(names, *(column.to_pylist() for column in lists.values.flatten()), strict=True))
    bounds = ends[partitions.offsets.to_numpy()].tolist()
    for start, end in pairwise(bounds):
        yield stats[start:end]


def _repeated(name: str, count: int) -> list[str]:
    return [name] * count


@lru_cache(maxsize=32)
def _rest(text: bytes, content: bytes) -> Mapping[str, Any]:
    """Return the other fields of a commit. Most commits of a writer have the same."""
    stream = io.BytesIO(content)
    rest: Any = fastavro.schemaless_reader(stream, _rest_schema(text))
    if stream.tell() != len(content):
        raise ValueError("bytes follow the record")
    return rest  # type: ignore[no-any-return]


@lru_cache(maxsize=32)
def _rest_schema(text: bytes) -> Any:
    record = record_of(bare(orjson.loads(text)))
    return fastavro.parse_schema(record | {"name": f"{record['name']}Rest", "fields": record["fields"][1:]})
