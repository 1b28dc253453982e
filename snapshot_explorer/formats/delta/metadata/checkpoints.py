"""Checkpoints of every kind: one file, several parts, with or without sidecars, parquet or JSON.

Only the columns that a state needs are read, row group by row group; tombstones only on request.

Source: delta PROTOCOL.md, "Checkpoints".
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import parquet_pages
from snapshot_explorer.arrow.arrays import array, to_numpy
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.python_values import with_dicts
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError, MissingFileError, SnapshotExplorerError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.formats.corrupt_files import check_size
from snapshot_explorer.formats.delta.metadata.actions import Parser, domain_of, metadata_of, protocol_of, transaction_of
from snapshot_explorer.formats.delta.metadata.json_columns import integer
from snapshot_explorer.formats.delta.metadata.layout import SIDECARS, DeltaLogFile
from snapshot_explorer.formats.delta.metadata.locations import decode_path, decode_path_array
from snapshot_explorer.formats.delta.metadata.records import ADDS, DELETION_VECTOR, STRINGS
from snapshot_explorer.formats.delta.metadata.replay import ReplayState, concat_adds
from snapshot_explorer.storage import Storage
from snapshot_explorer.storage.location import is_full_location

WHOLE_FILE_BYTES = 8 << 20
"""A checkpoint file up to this size is read whole, in one request, concurrently with others."""
_AT_ONCE = 64 << 20
"""Bytes of a checkpoint's files that are in memory at the same time; fewer of local ones, which need no concurrency."""
_NON_FILE_ACTIONS = ("protocol", "metaData", "txn", "domainMetadata", "sidecar")
FileKind = Literal["add", "remove"]
_FILE_KINDS: tuple[FileKind, ...] = get_args(FileKind)

_ROWS_AT_ONCE = 1 << 14
"""Rows of a checkpoint that are decoded at a time."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededColumns:
    """The columns of ADDS that are read from a checkpoint. Paths and sizes always are."""

    names: frozenset[str]
    parsed: frozenset[str] | None = frozenset()
    """The stored names of the columns whose statistics as structs are read, with the counts of rows; None for all."""
    vectors: bool = True
    """Whether deletion vectors are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """A file of a checkpoint."""

    path: str
    """Below the table's root."""
    size_bytes: int | None
    list_path: str | None
    """The file that names it, for a sidecar."""
    adds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was read."""

    replay_state: ReplayState
    files: tuple[CheckpointFile, ...]
    """Its files, sidecars last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileActions:
    """The actions of one kind in a row group of a checkpoint."""

    kind: FileKind
    row_numbers: npt.NDArray[np.int64]
    """The row of each action in the row group."""
    files: pa.Table
    """The actions as ADDS, maybe with `stats_parsed`; missing values are null."""


def read_checkpoint(storage: Storage, files: Sequence[DeltaLogFile], *, adds: bool = True) -> Checkpoint:
    """Return the contents of a checkpoint.

    Reads its files, small ones whole and concurrently. Without `adds` the live files are left out: then only the
    columns of the other actions are read from a large file, and sidecars are not read.
    """
    parts = _CheckpointParts(adds=adds, limits=storage.limits)
    for path, content in _contents(storage, [(file.path, file.size_bytes) for file in files]):
        parts.take(path, content)
    if adds:
        parts.take_sidecars(storage)
    sizes = {file.path: file.size_bytes for file in files} | parts.sidecars
    return Checkpoint(
        replay_state=parts.replay_state(),
        files=tuple(parts.described(path, size) for path, size in sizes.items()),
    )


def checkpoint_files(storage: Storage, files: Sequence[DeltaLogFile]) -> dict[str, int | None]:
    """Return the paths and sizes of the files of a checkpoint, sidecars last, in one pass over its footers."""
    parts = _CheckpointParts(adds=False, limits=storage.limits, non_file_actions=("sidecar",))
    sizes = {file.path: file.size_bytes for file in files}
    for path, content in _contents(storage, list(sizes.items())):
        with _damage_of(path):
            may_have_sidecars = path.endswith(".json") or parquet_pages.may_name_column(content, "sidecar")
        if may_have_sidecars:
            parts.take(path, content)
    return sizes | parts.sidecars


def file_actions(
    storage: Storage, path: str, size_bytes: int | None, needed: NeededColumns
) -> Iterator[list[FileActions]]:
    """Yield the add and remove actions of each row group of a checkpoint's parquet file.

    Reads a small file whole; of a large one, row group by row group, the columns that are needed. Others are null.
    """
    for _, content in _contents(storage, [(path, size_bytes)]):
        with _damage_of(path):
            file = parquet_pages.open_metadata_file(content)
            leaves_by_kind = {kind: leaves for kind in _FILE_KINDS if (leaves := _leaves(file, kind, needed))}
            leaves = [leaf for of_kind in leaves_by_kind.values() for leaf in of_kind]
            parquet_pages.check(file, content, path, columns=leaves, limits=storage.limits)
            for group in range(file.num_row_groups):
                actions = [
                    (kind, *_actions(file.read_row_group(group, columns=of_kind), kind))
                    for kind, of_kind in leaves_by_kind.items()
                ]
                yield [
                    FileActions(kind=kind, row_numbers=numbers, files=adds_of(rows))
                    for kind, numbers, rows in actions
                    if len(rows)
                ]


def read_adds(
    storage: Storage, path: str, size_bytes: int | None, *, part: int = 0, parts: int = 1
) -> Iterator[pa.Table]:
    """Yield the ADDS of a file of a checkpoint or of a sidecar, piece by piece.

    Args:
        part: The part of it, from 0; only parquet files have several.
    """
    for _, content in _contents(storage, [(path, size_bytes)]):
        yield from _adds_in(path, content, storage.limits, ALL_COLUMNS, part=part, parts=parts)


def read_live_files(storage: Storage, checkpoint: Checkpoint, needed: NeededColumns) -> Iterator[pa.Table]:
    """Yield the ADDS of a checkpoint, some at a time, with null in columns that are not needed.

    Reads its files, small ones whole and concurrently, large ones row group by row group.

    Args:
        checkpoint: The checkpoint, with or without live files.
    """
    own = [(file.path, file.size_bytes) for file in checkpoint.files if file.list_path is None]
    for path, content in _contents(storage, own):
        yield from _adds_in(path, content, storage.limits, needed)
    sidecars = {file.path: (file.size_bytes, file.list_path) for file in checkpoint.files if file.list_path is not None}
    for path, content in _sidecar_contents(storage, sidecars):
        yield from _adds_in(path, content, storage.limits, needed, sidecar=True)


def _adds_in(
    path: str,
    content: pa.NativeFile,
    limits: Limits,
    needed: NeededColumns,
    *,
    sidecar: bool = False,
    part: int = 0,
    parts: int = 1,
) -> Iterator[pa.Table]:
    if path.endswith(".json"):
        parser = Parser(infos=False, limits=limits)
        parser.feed(None, path, content.read())
        yield _of_checkpoint(parser.actions().adds)
        return
    with _damage_of(path):
        file = _open(content, sidecar=sidecar)
        leaves = _leaves(file, "add", needed)
        parquet_pages.check(file, content, path, columns=leaves, limits=limits)
        yield from _adds(file, needed, part=part, parts=parts)


def _open(content: pa.NativeFile, *, sidecar: bool) -> pq.ParquetFile:
    file = parquet_pages.open_metadata_file(content)
    if sidecar and not any(kind in file.schema_arrow.names for kind in _FILE_KINDS):
        raise CorruptBytesError("it contains neither add nor remove actions")
    return file


def _sidecar_contents(
    storage: Storage, sidecars: Mapping[str, tuple[int | None, str]]
) -> Iterator[tuple[str, pa.NativeFile]]:
    """Yield opened sidecars by their sizes and the checkpoint files that name them."""
    try:
        for path, content in _contents(storage, [(path, size) for path, (size, _) in sidecars.items()]):
            size, named_by = sidecars[path]
            check_size(f"The sidecar file {path}", content.size(), size, by=f"the checkpoint file {named_by}")
            yield path, content
    except MissingFileError as error:
        raise CorruptTableError(
            f"A checkpoint names a sidecar file that does not exist: {error} An earlier checkpoint may still be whole."
        ) from error


class _CheckpointParts:
    def __init__(self, *, adds: bool, limits: Limits, non_file_actions: Sequence[str] = _NON_FILE_ACTIONS) -> None:
        self.wants_adds = adds
        self.limits = limits
        self.tables: list[pa.Table] = []
        self.non_file_actions: dict[str, list[tuple[str, Mapping[str, Any]]]] = {kind: [] for kind in non_file_actions}
        self.counts: dict[str, int] = {}
        self.sidecars: dict[str, int | None] = {}
        self.named_by: dict[str, str] = {}

    def take(self, path: str, content: pa.NativeFile, *, sidecar: bool = False) -> None:
        if path.endswith(".json"):
            self._take_json(path, content)
            return
        with _damage_of(path):
            file = _open(content, sidecar=sidecar)
            leaves = _leaves(file, "add", ALL_COLUMNS) if self.wants_adds else []
            leaves += [] if sidecar else self.non_file_actions
            parquet_pages.check(file, content, path, columns=leaves, limits=self.limits)
            if not sidecar:
                for kind in self.non_file_actions:
                    self.non_file_actions[kind] += [(path, row) for row in _rows(file, kind)]
            tables = list(_adds(file, ALL_COLUMNS)) if self.wants_adds else []
        self._keep(path, tables)
        if not sidecar:
            self._name_sidecars(path)

    def take_sidecars(self, storage: Storage) -> None:
        sidecars = {path: (size, self.named_by[path]) for path, size in self.sidecars.items()}
        for path, content in _sidecar_contents(storage, sidecars):
            self.take(path, content, sidecar=True)

    def replay_state(self) -> ReplayState:
        return ReplayState(
            adds=concat_adds(self.tables),
            protocol=next(self._records("protocol", protocol_of), None),
            metadata=next(self._records("metaData", metadata_of), None),
            transactions={item.app_id: item for item in self._records("txn", transaction_of)},
            domains={item.domain: item for item in self._records("domainMetadata", domain_of)},
        )

    def described(self, path: str, size: int | None) -> CheckpointFile:
        adds = self.counts.get(path, 0)
        return CheckpointFile(path=path, size_bytes=size, list_path=self.named_by.get(path), adds=adds)

    def _records(self, kind: str, make: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
        for path, body in self.non_file_actions[kind]:
            try:
                yield make(body)
            except CorruptBytesError as error:
                raise CorruptTableError(
                    f"{path} is damaged: its {kind} has {error}. An earlier checkpoint may still be whole."
                ) from error

    def _take_json(self, path: str, content: pa.NativeFile) -> None:
        parser = Parser(infos=False, limits=self.limits)
        parser.feed(None, path, content.read())
        actions = parser.actions()
        self._keep(path, [_of_checkpoint(actions.adds)] if self.wants_adds else [])
        for kind, body in parser.non_file_actions:
            if kind in self.non_file_actions:
                self.non_file_actions[kind].append((path, body))
        self._name_sidecars(path)

    def _keep(self, path: str, tables: Sequence[pa.Table]) -> None:
        self.tables += tables
        self.counts[path] = sum(table.num_rows for table in tables)

    def _name_sidecars(self, path: str) -> None:
        for owner, body in self.non_file_actions["sidecar"]:
            if owner != path:
                continue
            name = body.get("path")
            if not isinstance(name, str) or not name:
                raise CorruptTableError(f"{path} is damaged: a sidecar without a path. Restore it from a backup.")
            where = decode_path(name)
            full = where if is_full_location(where) else f"{SIDECARS}/{where}"
            self.sidecars[full] = _size(body.get("sizeInBytes"))
            self.named_by[full] = path


def _size(reported: Any) -> int | None:
    try:
        return integer(reported)
    except ValueError:
        return None


def _contents(storage: Storage, files: Sequence[tuple[str, int | None]]) -> Iterator[tuple[str, pa.NativeFile]]:
    """Yield opened files: small ones are read whole and concurrently, large ones by ranges."""
    at_once = WHOLE_FILE_BYTES if storage.is_local else _AT_ONCE
    waiting: list[str] = []
    size_bytes = 0
    for path, size in files:
        if size is not None and size > WHOLE_FILE_BYTES:
            yield path, storage.open(path)
            continue
        waiting.append(path)
        size_bytes += WHOLE_FILE_BYTES if size is None else size
        if size_bytes >= at_once:
            yield from _read(storage, waiting)
            waiting, size_bytes = [], 0
    yield from _read(storage, waiting)


def _read(storage: Storage, paths: Sequence[str]) -> Iterator[tuple[str, pa.NativeFile]]:
    for path, content in zip(paths, storage.read_many(paths), strict=True):
        yield path, pa.BufferReader(content)


def _rows(file: pq.ParquetFile, kind: str) -> Iterator[Mapping[str, Any]]:
    """Yield the actions of a rare kind as JSON values."""
    if kind not in file.schema_arrow.names:
        return
    for group in range(file.num_row_groups):
        column = file.read_row_group(group, columns=[kind]).column(kind)
        if not pa.types.is_struct(column.type):
            raise CorruptBytesError(f"a column {kind} of type {column.type}")
        yield from with_dicts(column.drop_null(), "strict")


def _adds(file: pq.ParquetFile, needed: NeededColumns, *, part: int = 0, parts: int = 1) -> Iterator[pa.Table]:
    """Yield the add actions of each row group; for one of `parts`, of every n-th row group."""
    leaves = _leaves(file, "add", needed)
    groups = list(range(part, file.num_row_groups, parts)) if leaves else []
    for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=groups, columns=leaves) if groups else ():
        _, rows = _actions(pa.Table.from_batches([batch]), "add")
        if len(rows):
            yield adds_of(rows)


def _leaves(file: pq.ParquetFile, kind: FileKind, needed: NeededColumns) -> list[str]:
    """Return the fields to read of a kind of file action; none if the file has no such column."""
    if kind not in file.schema_arrow.names:
        return []
    stored = file.schema_arrow.field(kind).type
    if not pa.types.is_struct(stored) or stored.get_field_index("path") < 0:
        raise CorruptBytesError(f"a column {kind} without paths")
    names = {field.name for field in stored}
    wanted = needed.names | {"path", "size_bytes"}
    leaves = [name for column, (name, _) in STORED.items() if column in wanted and name in names]
    leaves += [name for name in ("deletionVector",) if name in names and needed.vectors]
    if PARSED in names and "stats" in needed.names and not _has_all_stats(file, kind):
        leaves += _parsed_leaves(file, kind, needed.parsed)
    return [f"{kind}.{name}" for name in leaves]


def _parsed_leaves(file: pq.ParquetFile, kind: FileKind, columns: frozenset[str] | None) -> list[str]:
    """Return the leaves of the statistics of some columns, and of counts of rows, that are stored as structs."""
    start = f"{kind}.{PARSED}."
    paths = [file.schema.column(index).path for index in range(len(file.schema))]
    parts = [path.removeprefix(start) for path in paths if path.startswith(start)]
    if columns is None or any(name in part for part in parts for name in (".list.", ".key_value.")):
        return [PARSED]
    steps = [part.split(".", 2) for part in parts]
    chosen = [f"{PARSED}.{'.'.join(step[:2])}" for step in steps if len(step) == 1 or step[1] in columns]
    return list(dict.fromkeys(chosen))


def _actions(rows: pa.Table, kind: FileKind) -> tuple[npt.NDArray[np.int64], pa.StructArray]:
    column = single_chunk(rows.column(kind))
    is_present = pc.is_valid(pc.struct_field(column, ["path"]))
    return to_numpy(pc.indices_nonzero(is_present)).astype(np.int64), column.filter(is_present)


def _has_all_stats(file: pq.ParquetFile, kind: FileKind) -> bool:
    """Return whether every action has its statistics as text, by the file's own statistics."""
    names = [file.schema.column(index).path for index in range(len(file.schema))]
    if f"{kind}.stats" not in names or f"{kind}.path" not in names:
        return False
    indices = names.index(f"{kind}.stats"), names.index(f"{kind}.path")
    for group in range(file.num_row_groups):
        reported = [file.metadata.row_group(group).column(column_index).statistics for column_index in indices]
        nulls = [item.null_count if item is not None and item.has_null_count else None for item in reported]
        if nulls[0] is None or nulls[0] != nulls[1]:
            return False
    return True


@contextmanager
def _damage_of(path: str) -> Iterator[None]:
    """Translate errors while reading a file into an error that names the file."""
    try:
        yield
    except SnapshotExplorerError:
        raise
    except (pa.ArrowException, CorruptBytesError, OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        resources.check(error, f"The checkpoint file {path} could not be read")
        reported = " ".join(str(error).split())[:300]
        raise CorruptTableError(
            f"The checkpoint file {path} is damaged: {reported}. An earlier checkpoint may still be whole."
        ) from error


STORED: Mapping[str, tuple[str, pa.DataType]] = {
    "path": ("path", pa.string()),
    "partition_values": ("partitionValues", STRINGS),
    "size_bytes": ("size", pa.int64()),
    "stats": ("stats", pa.string()),
    "base_row_id": ("baseRowId", pa.int64()),
    "default_row_commit_version": ("defaultRowCommitVersion", pa.int64()),
    "tags": ("tags", STRINGS),
    "modified_at": ("modificationTime", pa.int64()),
    "clustering_provider": ("clusteringProvider", pa.string()),
}
"""Columns of ADDS, each with its name and type in a checkpoint; deletion vectors are separate.

The protocol requires `dataChange` to be false in a checkpoint, whatever the commit recorded: it is not read.
"""
_VECTOR = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
PARSED = "stats_parsed"
"""Statistics as structs, read where a checkpoint has no text."""
ALL_COLUMNS = NeededColumns(names=frozenset(STORED), parsed=None)


def adds_of(rows: pa.StructArray) -> pa.Table:
    """Return ADDS of file actions, with `stats_parsed` if they have it; other columns are null."""
    present = {field.name for field in rows.type}
    columns = {"version": pa.nulls(len(rows), pa.int64()), "data_change": pa.nulls(len(rows), pa.bool_())}
    for name, (stored, dtype) in STORED.items():
        values = pc.struct_field(rows, [stored]) if stored in present else pa.nulls(len(rows), dtype)
        columns[name] = values if values.type == dtype else _cast(values, dtype)
    columns["path"] = decode_path_array(columns["path"])
    columns["deletion_vector"] = (
        _vectors(pc.struct_field(rows, ["deletionVector"]))
        if "deletionVector" in present
        else pa.nulls(len(rows), DELETION_VECTOR)
    )
    table = pa.table([columns[name] for name in ADDS.names], schema=ADDS)
    table.validate(full=True)
    return table.append_column(PARSED, pc.struct_field(rows, [PARSED])) if PARSED in present else table


def _of_checkpoint(adds: pa.Table) -> pa.Table:
    """Return ADDS of JSON without `dataChange`; see `STORED`."""
    index = adds.schema.get_field_index("data_change")
    return adds.set_column(index, adds.schema.field(index), pa.nulls(len(adds), pa.bool_()))


def _cast(values: pa.Array, dtype: pa.DataType) -> pa.Array:
    if pa.types.is_map(dtype):
        if not pa.types.is_map(values.type):
            raise CorruptBytesError(f"a map of type {values.type}")
        return pa.MapArray.from_arrays(
            _offsets(values), values.keys.cast(pa.string()), values.items.cast(pa.string()), type=dtype
        )
    return values.cast(dtype)


def _offsets(maps: pa.MapArray) -> pa.Array:
    """Return the offsets of a map array, null where the map is null, from the first key on."""
    offsets = maps.offsets
    empty = pc.is_null(maps)
    if not pc.any(empty).as_py():
        return offsets
    is_null = pa.concat_arrays([empty, array([False], pa.bool_())])
    return pc.if_else(is_null, pa.nulls(1, pa.int32())[0], offsets)


def _vectors(vectors: pa.StructArray) -> pa.Array:
    if vectors.null_count == len(vectors):
        return pa.nulls(len(vectors), DELETION_VECTOR)
    names = {field.name for field in vectors.type}
    children = [
        pc.struct_field(vectors, [stored]).cast(field.type) if stored in names else pa.nulls(len(vectors), field.type)
        for stored, field in zip(_VECTOR, DELETION_VECTOR, strict=True)
    ]
    described = pc.is_valid(children[0])
    return pa.StructArray.from_arrays(children, fields=list(DELETION_VECTOR), mask=pc.invert(described))
