"""Manifest lists, manifests and index manifests as Arrow tables, and the live files among their entries."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.bin_packing import pack
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.limits import DEFAULT, Limits
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata import record_files as avro
from snapshot_explorer.formats.paimon.metadata.layout import check_names
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

ADD, DELETE = 0, 1
_VERSION = 2
_PART_BYTES = 8 * 2**20
"""Bytes of manifests decoded together: one manifest of Paimon's target size, or many small ones."""

_TYPES = {"longs": pa.list_(pa.int64()), "strings": pa.list_(pa.string())}


def _columns(text: str) -> tuple[pa.Schema, dict[str, str]]:
    """Return the schema of `name type path, ...`, where `!` marks a required column, and the path of each in files."""
    columns = [column.split() for column in text.split(",")]
    fields = []
    for name, dtype, _ in columns:
        plain = dtype.removesuffix("!")
        fields.append(pa.field(name, _TYPES.get(plain) or pa.type_for_alias(plain), nullable=plain == dtype))
    return pa.schema(fields), {name: path for name, _, path in columns}


LIST, _LIST_PATHS = _columns(
    "name string! _FILE_NAME, size_bytes int64 _FILE_SIZE, added int64 _NUM_ADDED_FILES, "
    "deleted int64 _NUM_DELETED_FILES, partition_min binary _PARTITION_STATS._MIN_VALUES, "
    "partition_max binary _PARTITION_STATS._MAX_VALUES, partition_nulls longs _PARTITION_STATS._NULL_COUNTS, "
    "schema_id int64 _SCHEMA_ID, min_row_id int64 _MIN_ROW_ID, max_row_id int64 _MAX_ROW_ID"
)
"""A row is a manifest in a manifest list: its file name, size, numbers of ADD and DELETE entries, BinaryRows with the
minimum and maximum of each partition column, the null count of each, the newest schema of its entries, and the
range of their row ids."""

ENTRIES, _ENTRY_PATHS = _columns(
    "kind int8! _KIND, partition binary! _PARTITION, bucket int32! _BUCKET, total_buckets int32 _TOTAL_BUCKETS, "
    "file_name string! _FILE._FILE_NAME, size_bytes int64! _FILE._FILE_SIZE, rows int64! _FILE._ROW_COUNT, "
    "min_key binary _FILE._MIN_KEY, max_key binary _FILE._MAX_KEY, key_min binary _FILE._KEY_STATS._MIN_VALUES, "
    "key_max binary _FILE._KEY_STATS._MAX_VALUES, key_null_counts longs _FILE._KEY_STATS._NULL_COUNTS, "
    "value_min binary _FILE._VALUE_STATS._MIN_VALUES, value_max binary _FILE._VALUE_STATS._MAX_VALUES, "
    "value_null_counts longs _FILE._VALUE_STATS._NULL_COUNTS, value_stats_columns strings _FILE._VALUE_STATS_COLS, "
    "min_sequence int64! _FILE._MIN_SEQUENCE_NUMBER, max_sequence int64! _FILE._MAX_SEQUENCE_NUMBER, "
    "schema_id int64! _FILE._SCHEMA_ID, level int32! _FILE._LEVEL, extra_files strings _FILE._EXTRA_FILES, "
    "created_at timestamp[ms] _FILE._CREATION_TIME, deleted_rows int64 _FILE._DELETE_ROW_COUNT, "
    "embedded_index binary _FILE._EMBEDDED_FILE_INDEX, source int8 _FILE._FILE_SOURCE, "
    "external_path string _FILE._EXTERNAL_PATH, first_row_id int64 _FILE._FIRST_ROW_ID, "
    "write_columns strings _FILE._WRITE_COLS"
)
"""A row is a manifest entry: one data file added (`kind` 0) or deleted (1). `value_stats_columns` null means all
columns, `deleted_rows` counts rows of kind -D and -U, null where not recorded. `created_at` is the
writer's local clock. `source` is 0 for appended, 1 for compacted files."""

IDENTITY = ("partition", "bucket", "level", "file_name", "embedded_index", "external_path", "extra_files")
FILE_COLUMNS = ("kind", *IDENTITY, "size_bytes", "rows", "schema_id", "deleted_rows", "source")
"""The columns of ENTRIES needed for FILES and CHANGES. Keys and statistics, which are most of the bytes, are not among
them."""
_VALUES = ("value_min", "value_max", "value_null_counts", "value_stats_columns", "first_row_id", "write_columns")
STATISTICS_COLUMNS = (*FILE_COLUMNS, *_VALUES)
"""The columns of ENTRIES needed for FILES with statistics of columns, without the ranges of keys."""
_KEYS = ("min_key", "max_key", "min_sequence", "max_sequence", "first_row_id", "write_columns")
PLAN_COLUMNS = (*FILE_COLUMNS, *_KEYS)
"""The columns of ENTRIES needed to plan a scan without a condition."""
SCAN_COLUMNS = (*PLAN_COLUMNS, *STATISTICS_COLUMNS, "total_buckets", "key_min", "key_max")
"""The columns of ENTRIES needed to plan a scan with a condition."""

_INDEXES, _INDEX_PATHS = _columns(
    "kind int8! _KIND, index_type string! _INDEX_TYPE, partition binary! _PARTITION, bucket int32! _BUCKET, "
    "file_name string! _FILE_NAME, size_bytes int64 _FILE_SIZE, rows int64 _ROW_COUNT, "
    "external_path string _EXTERNAL_PATH"
)
_VECTORS, _VECTOR_PATHS = _columns(
    "data_file string f0, offset int64 f1, length int64 f2, cardinality int64 _CARDINALITY"
)
_RANGE = pa.struct([(_VECTOR_PATHS[field.name], field.type) for field in _VECTORS])
INDEX_ENTRIES = pa.schema([*list(_INDEXES)[1:], *_VECTORS])
"""A row is one deletion vector: its location, and the number of rows it deletes (null if not recorded). An index of
another type has one row, without a data file."""


def _stored_schema(schema: pa.Schema, paths: Mapping[str, str], *others: pa.Field) -> pa.Schema:
    columns = {paths[field.name]: field.type for field in schema}
    return pa.schema([pa.field("_VERSION", pa.int32()), *_records(columns), *others])


def _records(columns: Mapping[str, pa.DataType]) -> list[pa.Field]:
    """Return the fields at these paths: a dot separates a record from its field."""
    records: dict[str, dict[str, pa.DataType]] = {}
    for path, dtype in columns.items():
        name, _, part = path.partition(".")
        records.setdefault(name, {})[part] = dtype
    return [pa.field(name, parts.get("") or pa.struct(_records(parts))) for name, parts in records.items()]


def read_lists(files: Sequence[tuple[str, bytes]], *, limits: Limits = DEFAULT) -> tuple[pa.Table, list[int]]:
    """Return the LIST rows of manifest lists in order, and the number of rows of each.

    Source: paimon docs, "Manifest".
    """
    raw, counts = avro.rows(files, _stored_schema(LIST, _LIST_PATHS), limits=limits)
    _check_version(raw, "manifest list", _VERSION)
    table = _pick(raw, _LIST_PATHS, LIST, files)
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
    stored = _stored_schema(schema, _ENTRY_PATHS)
    # Decoded entries take many times the space of the files, so only some files are decoded at a time.
    parts = [
        _entries(batch, schema, stored, limits) for batch in pack(files, lambda file: len(file[1]), target=_PART_BYTES)
    ]
    if not parts:
        return schema.empty_table(), []
    return pa.concat_tables([table for table, _ in parts]), [count for _, counts in parts for count in counts]


def _entries(
    files: Sequence[tuple[str, bytes]], schema: pa.Schema, stored: pa.Schema, limits: Limits
) -> tuple[pa.Table, list[int]]:
    raw, counts = avro.rows(files, stored, limits=limits)
    _check_version(raw, "manifest", _VERSION)
    table = _pick(raw, _ENTRY_PATHS, schema, files)
    kinds = table.column("kind")
    if len(kinds) and not pc.all(pc.is_in(kinds, pa.array([ADD, DELETE], pa.int8()))).as_py():
        raise refusal(features.ENTRY_KINDS, path=files[0][0])
    check_names(table.column("file_name"), "a manifest")
    return table, counts


def read_indexes(files: Sequence[tuple[str, bytes]], *, limits: Limits = DEFAULT) -> tuple[pa.Table, list[int]]:
    """Return the INDEX_ENTRIES rows of index manifests in order, and the number of rows of each.

    Source: paimon docs, "Table Index"; paimon IndexManifestEntry.
    """
    ranges = pa.field("_DELETIONS_VECTORS_RANGES", pa.list_(_RANGE))
    raw, counts = avro.rows(files, _stored_schema(_INDEXES, _INDEX_PATHS, ranges), limits=limits)
    table = _pick(raw, _INDEX_PATHS, _INDEXES, files)
    if len(table) and pc.max(table.column("kind")).as_py() != ADD:
        raise refusal(features.REMOVED_INDEXES, path=files[0][0])
    check_names(table.column("file_name"), "an index manifest")
    return _flat_ranges(table.drop_columns(["kind"]), single_chunk(raw.column(ranges.name)), counts)


def _flat_ranges(table: pa.Table, ranges: pa.Array, counts: Sequence[int]) -> tuple[pa.Table, list[int]]:
    """Return a row per deletion vector, or one for an index without vectors, and the number of rows of each file."""
    sizes = pc.fill_null(pc.list_value_length(ranges), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    repeats = np.maximum(sizes, 1)
    parents = np.repeat(np.arange(len(table)), repeats)
    vectors = np.flatnonzero(np.repeat(sizes > 0, repeats))
    indices = np.full(len(parents), -1, np.int64)
    indices[vectors] = np.arange(len(vectors))
    chosen = pa.array(indices, mask=indices < 0)
    flat = table.take(pa.array(parents))
    for field, part in zip(_VECTORS, ranges.flatten().flatten(), strict=True):
        flat = flat.append_column(field, part.take(chosen))
    bounds = np.cumsum([0, *counts])
    ends = np.concatenate([[0], np.cumsum(repeats)])
    return flat, np.diff(ends[bounds]).tolist()


def _check_version(raw: pa.Table, file_type: str, newest: int) -> None:
    versions = [version for version in pc.unique(raw.column("_VERSION")).to_pylist() if version != newest]
    if versions:
        raise refusal(features.OTHER_MANIFEST_FORMATS, what=file_type, version=versions[0], newest=newest)


def _pick(raw: pa.Table, paths: Mapping[str, str], schema: pa.Schema, files: Sequence[tuple[str, bytes]]) -> pa.Table:
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


class Deletes:
    """The files that DELETE entries remove.

    Source: paimon FileEntry.Identifier and FileEntry.mergeEntries.
    """

    def __init__(self, entries: pa.Table) -> None:
        """Take the DELETE entries of some entries, which have IDENTITY and `kind`."""
        entries = entries.filter(pc.equal(entries.column("kind"), DELETE))
        self._names = single_chunk(entries.column("file_name"))
        keys = identities(entries).dictionary_encode()
        self._files, self._of_entries = keys.dictionary, keys.indices.to_numpy()
        self._is_known = np.zeros(len(self._files), np.bool_)

    def without(self, entries: pa.Table) -> pa.Table:
        """Return entries without the files that are removed, and without their DELETE entries, in order."""
        if not len(self._names):
            return entries
        # Usually few files are deleted. Only files of the same name can be identical.
        names = single_chunk(entries.column("file_name"))
        alike = np.flatnonzero(pc.is_in(names, self._names).to_numpy(zero_copy_only=False))
        some = entries.select(["kind", *IDENTITY]).take(pa.array(alike))
        index = pc.fill_null(pc.index_in(identities(some), self._files), -1).to_numpy()
        self._is_known[index[(index >= 0) & (some.column("kind").to_numpy() == ADD)]] = True
        alive = np.ones(len(entries), np.bool_)
        alive[alike[index >= 0]] = False
        return entries.filter(pa.array(alive))

    def warn_of_orphans(self, storage: Storage) -> None:
        """Warn about the table in the storage if files are removed that `without` was never given: they are ignored."""
        orphans = ~self._is_known[self._of_entries]
        if orphans.any():
            storage.warn_once(
                log,
                "%d DELETE entries remove files that were never added, such as %s",
                int(orphans.sum()),
                self._names[int(np.argmax(orphans))].as_py(),
            )


def live_entries(entries: pa.Table, storage: Storage) -> pa.Table:
    """Return the ADD entries without a matching DELETE entry, in order."""
    deletes = Deletes(entries)
    alive = deletes.without(entries)
    deletes.warn_of_orphans(storage)
    return alive


def identities(entries: pa.Table) -> pa.Array:
    """Return the identity of each entry's file as bytes.

    Source: paimon FileEntry.Identifier.
    """
    extra = single_chunk(entries.column("extra_files"))
    lists = pc.if_else(pc.is_null(extra), pa.scalar([], extra.type), extra)
    lengths = pa.ListArray.from_arrays(lists.offsets, pc.binary_length(lists.values).cast(pa.string()))
    parts = [single_chunk(entries.column(name)).cast(pa.string()) for name in ("bucket", "level", "file_name")]
    parts.append(pc.binary_join(lengths, ","))
    texts = [single_chunk(entries.column(name)) for name in ("partition", "embedded_index", "external_path")]
    # Lengths come first, so that different identities never have equal bytes.
    parts += [pc.fill_null(pc.binary_length(text).cast(pa.string()), "-") for text in texts]
    joined = pc.binary_join(lists, ",")
    values = [pc.fill_null(text.cast(pa.binary()), b"") for text in (*texts, joined)]
    return pc.binary_join_element_wise(*(part.cast(pa.binary()) for part in parts), *values, b"/")
