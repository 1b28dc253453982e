"""Manifest lists, manifests and index manifests as Arrow tables, and the live files among their entries."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata import record_files as avro
from snapshot_explorer.formats.paimon.metadata.layout import check_names
from snapshot_explorer.limits import DEFAULT, Limits
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

ADD, DELETE = 0, 1
_VERSION = 2
_PART_BYTES = 8 * 2**20
"""Bytes of manifests decoded together: one manifest of Paimon's target size, or many small ones."""

LIST = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64()),
        pa.field("added", pa.int64()),
        pa.field("deleted", pa.int64()),
        pa.field("partition_min", pa.binary()),
        pa.field("partition_max", pa.binary()),
        pa.field("partition_nulls", pa.list_(pa.int64())),
        pa.field("schema_id", pa.int64()),
        pa.field("min_row_id", pa.int64()),
        pa.field("max_row_id", pa.int64()),
    ]
)
"""A row is a manifest in a manifest list: its file name, size, numbers of ADD and DELETE entries, BinaryRows with the
minimum and maximum of each partition column, the null count of each, the newest schema of its entries, and the
range of their row ids."""

ENTRIES = pa.schema(
    [
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("partition", pa.binary(), nullable=False),
        pa.field("bucket", pa.int32(), nullable=False),
        pa.field("total_buckets", pa.int32()),
        pa.field("file_name", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("min_key", pa.binary()),
        pa.field("max_key", pa.binary()),
        pa.field("key_min", pa.binary()),
        pa.field("key_max", pa.binary()),
        pa.field("key_null_counts", pa.list_(pa.int64())),
        pa.field("value_min", pa.binary()),
        pa.field("value_max", pa.binary()),
        pa.field("value_null_counts", pa.list_(pa.int64())),
        pa.field("value_stats_columns", pa.list_(pa.string())),
        pa.field("min_sequence", pa.int64(), nullable=False),
        pa.field("max_sequence", pa.int64(), nullable=False),
        pa.field("schema_id", pa.int64(), nullable=False),
        pa.field("level", pa.int32(), nullable=False),
        pa.field("extra_files", pa.list_(pa.string())),
        pa.field("created_at", pa.timestamp("ms")),
        pa.field("deleted_rows", pa.int64()),
        pa.field("embedded_index", pa.binary()),
        pa.field("source", pa.int8()),
        pa.field("external_path", pa.string()),
        pa.field("first_row_id", pa.int64()),
        pa.field("write_columns", pa.list_(pa.string())),
    ]
)
"""A row is a manifest entry: one data file added (`kind` 0) or deleted (1). `value_stats_columns` null means all
columns, `deleted_rows` counts rows of kind -D and -U, null where not recorded. `created_at` is the
writer's local clock. `source` is 0 for appended, 1 for compacted files."""

IDENTITY = ("partition", "bucket", "level", "file_name", "embedded_index", "external_path", "extra_files")
FILE_COLUMNS = ("kind", *IDENTITY, "size_bytes", "rows", "schema_id", "deleted_rows", "source")
"""The columns of ENTRIES needed for FILES and CHANGES. Keys and statistics, most of the bytes, are not among them."""
STATISTICS_COLUMNS = (
    *FILE_COLUMNS,
    "value_min",
    "value_max",
    "value_null_counts",
    "value_stats_columns",
    "first_row_id",
    "write_columns",
)
"""The columns of ENTRIES needed for FILES with statistics of columns, without the ranges of keys."""
PLAN_COLUMNS = (
    *FILE_COLUMNS,
    "min_key",
    "max_key",
    "min_sequence",
    "max_sequence",
    "first_row_id",
    "write_columns",
)
"""The columns of ENTRIES needed to plan a scan without a condition."""

INDEX_ENTRIES = pa.schema(
    [
        pa.field("index_type", pa.string(), nullable=False),
        pa.field("partition", pa.binary(), nullable=False),
        pa.field("bucket", pa.int32(), nullable=False),
        pa.field("file_name", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("external_path", pa.string()),
        pa.field("data_file", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("cardinality", pa.int64()),
    ]
)
"""A row is one deletion vector: its location, and the number of rows it deletes (null where not recorded). An index of
another type has one row, without a data file."""


def _field(dtype: pa.DataType, *names: str) -> Mapping[str, pa.DataType]:
    return dict.fromkeys(names, dtype)


_STATS = {
    **_field(pa.binary(), "_MIN_VALUES", "_MAX_VALUES"),
    **_field(pa.list_(pa.int64()), "_NULL_COUNTS"),
}
_FILE = {
    **_field(pa.string(), "_FILE_NAME"),
    **_field(pa.int64(), "_FILE_SIZE", "_ROW_COUNT"),
    **_field(pa.binary(), "_MIN_KEY", "_MAX_KEY"),
    **_field(pa.struct(_STATS), "_KEY_STATS", "_VALUE_STATS"),
    **_field(pa.int64(), "_MIN_SEQUENCE_NUMBER", "_MAX_SEQUENCE_NUMBER", "_SCHEMA_ID"),
    **_field(pa.int32(), "_LEVEL"),
    **_field(pa.list_(pa.string()), "_EXTRA_FILES", "_VALUE_STATS_COLS", "_WRITE_COLS"),
    **_field(pa.timestamp("ms"), "_CREATION_TIME"),
    **_field(pa.int64(), "_DELETE_ROW_COUNT", "_FIRST_ROW_ID"),
    **_field(pa.binary(), "_EMBEDDED_FILE_INDEX"),
    **_field(pa.int8(), "_FILE_SOURCE"),
    **_field(pa.string(), "_EXTERNAL_PATH"),
}
_ENTRY = pa.schema(
    {
        **_field(pa.int32(), "_VERSION"),
        **_field(pa.int8(), "_KIND"),
        **_field(pa.binary(), "_PARTITION"),
        **_field(pa.int32(), "_BUCKET", "_TOTAL_BUCKETS"),
        **_field(pa.struct(_FILE), "_FILE"),
    }
)
_ENTRY_PATHS = {
    "kind": "_KIND",
    "partition": "_PARTITION",
    "bucket": "_BUCKET",
    "total_buckets": "_TOTAL_BUCKETS",
    "file_name": "_FILE._FILE_NAME",
    "size_bytes": "_FILE._FILE_SIZE",
    "rows": "_FILE._ROW_COUNT",
    "min_key": "_FILE._MIN_KEY",
    "max_key": "_FILE._MAX_KEY",
    "key_min": "_FILE._KEY_STATS._MIN_VALUES",
    "key_max": "_FILE._KEY_STATS._MAX_VALUES",
    "key_null_counts": "_FILE._KEY_STATS._NULL_COUNTS",
    "value_min": "_FILE._VALUE_STATS._MIN_VALUES",
    "value_max": "_FILE._VALUE_STATS._MAX_VALUES",
    "value_null_counts": "_FILE._VALUE_STATS._NULL_COUNTS",
    "value_stats_columns": "_FILE._VALUE_STATS_COLS",
    "min_sequence": "_FILE._MIN_SEQUENCE_NUMBER",
    "max_sequence": "_FILE._MAX_SEQUENCE_NUMBER",
    "schema_id": "_FILE._SCHEMA_ID",
    "level": "_FILE._LEVEL",
    "extra_files": "_FILE._EXTRA_FILES",
    "created_at": "_FILE._CREATION_TIME",
    "deleted_rows": "_FILE._DELETE_ROW_COUNT",
    "embedded_index": "_FILE._EMBEDDED_FILE_INDEX",
    "source": "_FILE._FILE_SOURCE",
    "external_path": "_FILE._EXTERNAL_PATH",
    "first_row_id": "_FILE._FIRST_ROW_ID",
    "write_columns": "_FILE._WRITE_COLS",
}
_LIST = pa.schema(
    {
        **_field(pa.int32(), "_VERSION"),
        **_field(pa.string(), "_FILE_NAME"),
        **_field(pa.int64(), "_FILE_SIZE", "_NUM_ADDED_FILES", "_NUM_DELETED_FILES"),
        **_field(pa.struct(_STATS), "_PARTITION_STATS"),
        **_field(pa.int64(), "_SCHEMA_ID", "_MIN_ROW_ID", "_MAX_ROW_ID"),
    }
)
_LIST_PATHS = {
    "name": "_FILE_NAME",
    "size_bytes": "_FILE_SIZE",
    "added": "_NUM_ADDED_FILES",
    "deleted": "_NUM_DELETED_FILES",
    "partition_min": "_PARTITION_STATS._MIN_VALUES",
    "partition_max": "_PARTITION_STATS._MAX_VALUES",
    "partition_nulls": "_PARTITION_STATS._NULL_COUNTS",
    "schema_id": "_SCHEMA_ID",
    "min_row_id": "_MIN_ROW_ID",
    "max_row_id": "_MAX_ROW_ID",
}
_RANGE = {
    **_field(pa.string(), "f0"),
    **_field(pa.int64(), "f1", "f2", "_CARDINALITY"),
}
_INDEX = pa.schema(
    {
        **_field(pa.int32(), "_VERSION"),
        **_field(pa.int8(), "_KIND"),
        **_field(pa.binary(), "_PARTITION"),
        **_field(pa.int32(), "_BUCKET"),
        **_field(pa.string(), "_INDEX_TYPE", "_FILE_NAME"),
        **_field(pa.int64(), "_FILE_SIZE", "_ROW_COUNT"),
        **_field(pa.list_(pa.struct(_RANGE)), "_DELETIONS_VECTORS_RANGES"),
        **_field(pa.string(), "_EXTERNAL_PATH"),
    }
)
_INDEX_PATHS = {
    "kind": "_KIND",
    "index_type": "_INDEX_TYPE",
    "partition": "_PARTITION",
    "bucket": "_BUCKET",
    "file_name": "_FILE_NAME",
    "size_bytes": "_FILE_SIZE",
    "rows": "_ROW_COUNT",
    "external_path": "_EXTERNAL_PATH",
}


def read_lists(files: Sequence[tuple[str, bytes]], *, limits: Limits = DEFAULT) -> tuple[pa.Table, list[int]]:
    """Return the LIST rows of manifest lists in order, and the number of rows of each.

    Args:
        files: Path, for messages, and content of each manifest list.
        limits: Limits on the size of a file.

    Source: paimon docs, "Manifest".
    """
    raw, counts = avro.rows(files, _LIST, limits=limits)
    _check_version(raw, "manifest list", _VERSION)
    table = _picked(raw, _LIST_PATHS, LIST, files)
    check_names(table.column("name"), "a manifest list")
    return table, counts


def read_entries(
    files: Sequence[tuple[str, bytes]], columns: Sequence[str] | None = None, *, limits: Limits = DEFAULT
) -> tuple[pa.Table, list[int]]:
    """Return the ENTRIES rows of manifests in order, and the number of rows of each.

    Args:
        files: Path, for messages, and content of each manifest.
        limits: Limits on the size of a file.
        columns: The columns to decode and return, in the order of ENTRIES; None for all. `kind` and `file_name` are
            always included.

    Source: paimon docs, "Manifest".
    """
    schema = pa.schema([field for field in ENTRIES if columns is None or field.name in (*columns, "kind", "file_name")])
    stored = _only(_ENTRY, {_ENTRY_PATHS[name] for name in schema.names} | {"_VERSION"})
    # Decoded entries take many times the space of the files, so only some files are decoded at a time.
    parts = [
        _entries(some, schema, stored, limits) for some in pack(files, lambda file: len(file[1]), target=_PART_BYTES)
    ]
    if not parts:
        return schema.empty_table(), []
    return pa.concat_tables([table for table, _ in parts]), [count for _, counts in parts for count in counts]


def _only(fields: pa.Schema, paths: Collection[str]) -> pa.Schema:
    def kept(field: pa.Field, path: str) -> pa.Field | None:
        if path in paths:
            return field
        if not pa.types.is_struct(field.type):
            return None
        parts = [part for part in (kept(child, f"{path}.{child.name}") for child in field.type) if part is not None]
        return pa.field(field.name, pa.struct(parts), nullable=field.nullable) if parts else None

    return pa.schema([part for part in (kept(field, field.name) for field in fields) if part is not None])


def _entries(
    files: Sequence[tuple[str, bytes]], schema: pa.Schema, stored: pa.Schema, limits: Limits
) -> tuple[pa.Table, list[int]]:
    raw, counts = avro.rows(files, stored, limits=limits)
    _check_version(raw, "manifest", _VERSION)
    table = _picked(raw, _ENTRY_PATHS, schema, files)
    kinds = table.column("kind")
    if len(kinds) and not pc.all(pc.is_in(kinds, pa.array([ADD, DELETE], pa.int8()))).as_py():
        raise refusal(features.ENTRY_KINDS, path=files[0][0])
    check_names(table.column("file_name"), "a manifest")
    return table, counts


def read_indexes(files: Sequence[tuple[str, bytes]], *, limits: Limits = DEFAULT) -> tuple[pa.Table, list[int]]:
    """Return the INDEX_ENTRIES rows of index manifests in order, and the number of rows of each.

    Args:
        files: Path, for messages, and content of each index manifest.
        limits: Limits on the size of a file.

    Source: paimon docs, "Table Index"; paimon IndexManifestEntry.
    """
    raw, counts = avro.rows(files, _INDEX, limits=limits)
    schema = pa.schema([pa.field("kind", pa.int8(), nullable=False), *list(INDEX_ENTRIES)[:7]])
    table = _picked(raw, _INDEX_PATHS, schema, files)
    if len(table) and pc.max(table.column("kind")).as_py() != ADD:
        raise refusal(features.REMOVED_INDEXES, path=files[0][0])
    check_names(table.column("file_name"), "an index manifest")
    ranges = single_chunk(raw.column("_DELETIONS_VECTORS_RANGES"))
    return _flat_ranges(table.drop_columns(["kind"]), ranges, counts)


def _flat_ranges(table: pa.Table, ranges: pa.Array, counts: Sequence[int]) -> tuple[pa.Table, list[int]]:
    """Return a row per deletion vector, or one for an index without vectors, and the number of rows of each file."""
    sizes = pc.fill_null(pc.list_value_length(ranges), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    repeats = np.maximum(sizes, 1)
    parents = np.repeat(np.arange(len(table)), repeats)
    vectors = np.flatnonzero(np.repeat(sizes > 0, repeats))
    indices = np.full(len(parents), -1, np.int64)
    indices[vectors] = np.arange(len(vectors))
    chosen = pa.array(indices, mask=indices < 0)
    items = ranges.flatten()
    parts = dict(zip(_RANGE, items.flatten(), strict=True))
    flat = table.take(pa.array(parents))
    for column, part in (("data_file", "f0"), ("offset", "f1"), ("length", "f2"), ("cardinality", "_CARDINALITY")):
        flat = flat.append_column(INDEX_ENTRIES.field(column), parts[part].take(chosen))
    bounds = np.cumsum([0, *counts])
    ends = np.concatenate([[0], np.cumsum(repeats)])
    return flat, np.diff(ends[bounds]).tolist()


def _check_version(raw: pa.Table, what: str, newest: int) -> None:
    versions = [version for version in pc.unique(raw.column("_VERSION")).to_pylist() if version != newest]
    if versions:
        raise refusal(features.OTHER_MANIFEST_FORMATS, what=what, version=versions[0], newest=newest)


def _picked(raw: pa.Table, paths: Mapping[str, str], schema: pa.Schema, files: Sequence[tuple[str, bytes]]) -> pa.Table:
    parts: dict[str, pa.Array] = {}
    columns = []
    for field in schema:
        column = _part(raw, paths[field.name], parts)
        if column.null_count and not field.nullable:
            raise CorruptTableError(
                f"A row of {_named(files)} has no {paths[field.name]}. The file is damaged; "
                "compare it with a copy of the table, or choose another version."
            )
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _part(raw: pa.Table, path: str, parts: dict[str, pa.Array]) -> pa.Array:
    """Return a nested column. The fields of structs on the way are kept in `parts`."""
    if path not in parts:
        parent, _, name = path.rpartition(".")
        if parent:
            struct = _part(raw, parent, parts)
            for child, column in zip(struct.type, struct.flatten(), strict=True):
                parts[f"{parent}.{child.name}"] = column
        else:
            parts[path] = single_chunk(raw.column(name))
    return parts[path]


def _named(files: Sequence[tuple[str, bytes]]) -> str:
    return files[0][0] if len(files) == 1 else f"{files[0][0]} or one of {len(files) - 1} files read with it"


def live(entries: pa.Table, *, is_partial: bool = False) -> pa.Table:
    """Return the ADD entries without a matching DELETE entry, in order.

    A DELETE without its ADD is ignored, with a warning unless `is_partial`.

    Source: paimon FileEntry.Identifier and FileEntry.mergeEntries.
    """
    kinds = entries.column("kind").to_numpy()
    deleted = kinds == DELETE
    if not deleted.any():
        return entries
    names = single_chunk(entries.column("file_name"))
    # Usually few files are deleted. Only files of the same name can be identical.
    alike = np.flatnonzero(pc.is_in(names, names.filter(pa.array(deleted))).to_numpy(zero_copy_only=False))
    keys = _identities(entries.select(list(IDENTITY)).take(pa.array(alike)))
    dead = keys[deleted[alike]]
    orphans = ~np.isin(dead, keys[~deleted[alike]])
    if orphans.any() and not is_partial:
        row = int(np.flatnonzero(deleted)[np.argmax(orphans)])
        log.warning(
            "%d DELETE entries remove files that were never added, such as %s",
            int(orphans.sum()),
            entries.column("file_name")[row].as_py(),
        )
    alive = np.ones(len(entries), np.bool_)
    alive[alike[np.isin(keys, dead)]] = False
    return entries.filter(pa.array(alive))


def _identities(entries: pa.Table) -> npt.NDArray[np.int64]:
    """Return a code per entry, equal for entries of the same file."""
    codes = np.zeros(len(entries), np.int64)
    for name in IDENTITY:
        column = entries.column(name)
        more = _codes(column)
        if more is None:
            continue
        # Renumbered after each column, so that the codes never overflow.
        together = codes * (int(more.max()) + 1) + more
        codes = np.unique(together, return_inverse=True)[1].astype(np.int64)
    return codes


def _codes(column: pa.ChunkedArray) -> npt.NDArray[np.int64] | None:
    """Return a code per value, equal for equal values; None if all values are equal."""
    if len(column) == column.null_count:
        return None
    if pa.types.is_list(column.type):
        if not pc.sum(pc.list_value_length(column)).as_py():
            # A missing list of extra files equals an empty one.
            return None
        seen: dict[tuple[str, ...], int] = {}
        lists = (tuple(value or ()) for value in column.to_pylist())
        return np.array([seen.setdefault(value, len(seen)) for value in lists], np.int64)
    encoded = single_chunk(column).dictionary_encode()
    if len(encoded.dictionary) == 1 and not encoded.null_count:
        return None
    codes = pc.add(pc.fill_null(encoded.indices, -1), 1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)
