"""Commits that are Avro files: their write stats, which name most of a table's files, and the rest.

NumPy reads a field of all write stats of many files in a few operations. Where each begins is guessed from the length
of the id that it begins with; the guess is right if the write stats fill the lists of their commit.
"""

import io
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import fastavro
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.avro.columns import decode_at, only_rows
from snapshot_explorer.formats.avro.container import (
    MAGIC,
    Container,
    Items,
    Primitive,
    Record,
    Shape,
    Union,
    read_bytes,
    read_container,
    varint,
)
from snapshot_explorer.formats.avro.rows import FOREIGN_ERRORS, record_of, without_logical_types

STATS = "partitionToWriteStats"
"""The field with the write stats of a commit, by partition."""
_MIN_BYTES, _MAX_BYTES = 2**14, 2**22
"""The size of commits from which reading them by columns is faster, and up to which they are read together."""
_LARGEST = 2**31 - 2**10
"""Fewer bytes than Arrow's offsets can count."""
_ID_LENGTHS = 16
"""The ids of file groups in a commit differ by less than this in length: they end with a counter."""
_NULL, _TEXT, _PRESENT = Primitive("null"), Primitive("string"), 2
"""The shapes of text that may be null, and the byte that precedes it if it is not."""


Numbers = npt.NDArray[np.int64]


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
            for together in pack(paths, lambda path: len(contents[path]), target=_MAX_BYTES):
                parts = {path: contents[path][len(first.head) :] for path in together}
                if sum(map(len, parts.values())) >= _MIN_BYTES:
                    with suppress(*FOREIGN_ERRORS):
                        yield from _decode(first, parts, schema)


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


def _stat_shape(shape: Shape) -> Record | None:
    """Return the shape of a write stat; None if this is not the shape of a commit."""
    match shape:
        case Record(((name, Union((null, Items(Items(Record() as stat, keyed=False), keyed=True)))), *_)):
            return stat if name == STATS and null == _NULL else None
        case _:
            return None


def _decode(first: Container, parts: Mapping[str, bytes], schema: pa.Schema) -> Iterator[AvroCommits]:
    """Yield the commits in Avro files; nothing if their schema is not a commit schema."""
    shape = _stat_shape(first.shape)
    if shape is None:
        return
    content = b"".join(parts.values())
    if len(content) >= _LARGEST:
        return
    is_whole, begins, ends = only_rows(content, np.cumsum([0, *map(len, parts.values())]))
    rows = [
        (path, begin, end)
        for path, is_read, begin, end in zip(parts, is_whole.tolist(), begins.tolist(), ends.tolist(), strict=True)
        if is_read
    ]
    starts = _possible_stats(content, shape, [begin for _, begin, _ in rows])
    lists: list[_Lists | None] = []

    def choose(ends: Numbers) -> npt.NDArray[np.bool_]:
        walk = _Walk(content, starts, ends)
        lists.extend(walk.lists(begin, end) for _, begin, end in rows)
        chosen = np.zeros(len(starts), np.bool_)
        chosen[list(chain.from_iterable(part.stats for part in lists if part is not None))] = True
        return chosen

    decoded = decode_at(content, starts, shape, pa.struct(list(schema)[1:]), choose)
    if decoded is None:
        return
    read = [(path, part, end) for (path, _, end), part in zip(rows, lists, strict=True) if part is not None]
    partitions = [partition for _, part, _ in read for partition in part.partitions]
    names = pa.array([name for name, _ in partitions], pa.string())
    repeated = names.take(from_numpy(np.repeat(np.arange(len(names)), [count for _, count in partitions])))
    batch = pa.RecordBatch.from_arrays([repeated, *decoded[0].flatten()], schema=schema)
    is_named = pc.greater(pc.fill_null(pc.binary_length(batch.column("path")), 0), 0).to_numpy(zero_copy_only=False)
    bounds = np.cumsum([0, *(len(part.stats) for _, part, _ in read)])
    yield AvroCommits(
        [path for path, _, _ in read],
        batch if is_named.all() else batch.filter(pa.array(is_named)),
        np.concatenate([[0], np.cumsum(is_named)])[bounds].tolist(),
        [_read_other_fields(first.schema_text, content[part.end : end]) for _, part, end in read],
    )


def _possible_stats(content: bytes, shape: Record, begins: Sequence[int]) -> Numbers:
    """Return the positions at which write stats may begin: with an id of about the length of the first one.

    Args:
        begins: The positions of the commits.

    Raises:
        CorruptBytesError: The first fields are not two texts.
    """
    if [part for _, part in shape.fields[:2]] != [Union((_NULL, _TEXT))] * 2:
        raise CorruptBytesError("write stats do not begin with two texts")
    size = next((size for size in (_first_size(content, begin) for begin in begins) if size is not None), None)
    if size is None:
        return np.zeros(0, np.int64)
    padded = np.frombuffer(content + bytes(2**8), np.uint8)
    possible = np.flatnonzero(padded[: len(content)] == _PRESENT)
    lengths = padded[possible + 1]
    is_alike = (lengths & 1 == 0) & (np.abs(lengths.astype(np.int16) // 2 - size) < _ID_LENGTHS)
    possible, lengths = possible[is_alike], lengths[is_alike] >> 1
    is_followed = padded[possible + 2 + lengths] == _PRESENT  # by the path
    return np.asarray(possible[is_followed], np.int64)


def _first_size(content: bytes, at: int) -> int | None:
    """Return the length of the first id in a commit; None if it has no write stat, or that has no id."""
    if content[at] != _PRESENT:
        return None
    count, at = _count(content, at + 1)
    if not count:
        return None
    _, at = read_bytes(content, at)
    count, at = _count(content, at)
    return len(read_bytes(content, at + 1)[0]) if count and content[at] == _PRESENT else None


class _Lists(NamedTuple):
    """The write stats of a commit."""

    stats: Sequence[int]
    """The indices of its write stats."""
    partitions: Sequence[tuple[str, int]]
    """The partition and the number of write stats of each list."""
    end: int
    """Where the other fields begin."""


class _Walk:
    """Follows the lists of commits through the positions at which write stats may begin."""

    def __init__(self, content: bytes, starts: Numbers, ends: Numbers) -> None:
        """Take the positions at which write stats may begin, and at which each would end."""
        self._content = content
        self._starts, self._ends = starts.tolist(), ends.tolist()
        indices = np.searchsorted(starts, ends)
        is_next = np.append(starts, -1)[indices] == ends
        self._following: list[int] = np.where(is_next, indices, len(ends)).tolist()
        """The index of the write stat that begins where each ends; the number of all if none does."""

    def lists(self, begin: int, end: int) -> _Lists | None:
        """Return the write stats of a commit; None if one of them does not begin where it may, or bytes are damaged."""
        try:
            return self._followed(begin, end)
        except (CorruptBytesError, UnicodeDecodeError, IndexError):
            return None

    def _followed(self, begin: int, end: int) -> _Lists | None:
        content, following = self._content, self._following
        stats: list[int] = []
        partitions: list[tuple[str, int]] = []
        branch, at = varint(content, begin)
        if branch not in (0, 1):
            return None
        count, at = _count(content, at) if branch else (0, at)
        while count:
            for _ in range(count):
                name, at = read_bytes(content, at)
                before = len(stats)
                remaining, at = _count(content, at)
                while remaining:
                    index = bisect_left(self._starts, at, stats[-1] + 1 if stats else 0)
                    if index == len(following) or self._starts[index] != at:
                        return None
                    for _ in range(remaining):
                        if index == len(following):
                            return None
                        stats.append(index)
                        index = following[index]
                    remaining, at = _count(content, self._ends[stats[-1]])
                partitions.append((name.decode(), len(stats) - before))
            count, at = _count(content, at)
        return _Lists(stats, partitions, at) if at <= end else None


def _count(content: bytes, at: int) -> tuple[int, int]:
    """Return the number of items in the next part of a list or map, 0 at its end, and the position after it."""
    count, at = varint(content, at)
    if count < 0:
        _, at = varint(content, at)
        count = -count
    if count > len(content) - at:  # every item takes a byte or more
        raise CorruptBytesError(f"{count} items expected at byte {at}, found {len(content) - at} bytes")
    return count, at


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
