"""The columns of a data file, by its footer: the proof that another reader returns its rows as the format does.

Source: spark ParquetToSparkSchemaConverter, ParquetVectorUpdaterFactory, DataSourceUtils; orc OrcUtils.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer.core.records import NativeFile

_SPARK = b"org.apache.spark."
_TODAYS_CALENDAR = (3, 1)
"""Since this version of Spark, metadata of a file states whether it uses the old calendar."""
_OF_HIVE = "_col"
"""The prefix of all columns in ORC files of an old Hive. Spark matches their columns by position, among the selected
columns."""
_ORC = frozenset(
    (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary())
)
"""ORC types that all readers read alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The columns of a file that Spark's reader reads as Arrow's does."""

    rows: int
    size_bytes: int
    columns: Mapping[str, pa.DataType]
    """The Arrow type of each of these columns, by its exact name."""
    folded: frozenset[str]
    """The names of all columns, in lower case."""
    ids: Mapping[str, int]
    """The field ids of columns that have one, by exact name."""
    has_ids: bool
    """Whether a column, or a field in one, has a field id."""
    writer: str = ""
    """The program that wrote a parquet file, as the file names it."""
    row_groups: int = 0
    """The number of row groups of a parquet file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Identifies the content of a local file: it changes when the file is rewritten."""

    path: str
    size_bytes: int
    inode: tuple[int, int]
    """Its device and inode."""
    changed: tuple[int, int]
    """When its content and its inode were changed, in nanoseconds."""


def file_identity(path: str) -> Identity:
    """Return the identity of a local file."""
    status = os.stat(path)  # noqa: PTH116 - a Path costs more than the call
    return Identity(
        path=path,
        size_bytes=status.st_size,
        inode=(status.st_dev, status.st_ino),
        changed=(status.st_mtime_ns, status.st_ctime_ns),
    )


def read_footer(file: NativeFile) -> Footer | None:
    """Return the columns of a local file; None if it cannot be read, is not as recorded, or its names are ambiguous.

    Caches the footers of the files read last, until a file is rewritten.
    """
    try:
        stored = file_identity(file.address or "")
    except OSError:
        return None
    return _read(stored, file.kind) if file.size_bytes in (None, stored.size_bytes) else None


@lru_cache(maxsize=1_000)
def _read(file: Identity, file_format: str) -> Footer | None:
    from pyarrow import orc  # noqa: PLC0415 - loaded for the first file: it takes time

    size = file.size_bytes
    try:
        if file_format == "orc":
            reader = orc.ORCFile(file.path)
            if all(name.startswith(_OF_HIVE) for name in reader.schema.names):
                return None
            types = {field.name: field.type for field in reader.schema if field.type in _ORC}
            return _footer_of(reader.nrows, size, types, reader.schema)
        with pq.ParquetFile(file.path) as parquet:
            result = _footer_of(parquet.metadata.num_rows, size, _of_parquet(parquet), parquet.schema_arrow)
            groups, writer = parquet.metadata.num_row_groups, parquet.metadata.created_by or ""
            return None if result is None else replace(result, writer=writer, row_groups=groups)
    except (pa.ArrowException, OSError, ValueError):
        return None  # the format's own reader raises the error


def _footer_of(rows: int, size: int, columns: Mapping[str, pa.DataType], schema: pa.Schema) -> Footer | None:
    folded = frozenset(name.lower() for name in schema.names)
    if len(folded) != len(schema.names):
        return None  # Spark ignores the case of column names
    has_ids = any(map(_has_id, schema))
    return Footer(rows=rows, size_bytes=size, columns=columns, folded=folded, ids=dict(_ids(schema)), has_ids=has_ids)


_ID_KEYS = (b"PARQUET:field_id", b"iceberg.id")


def _ids(schema: pa.Schema) -> Iterator[tuple[str, int]]:
    for field in schema:
        metadata = field.metadata or {}
        number = next((metadata[key] for key in _ID_KEYS if key in metadata), b"")
        if number.isdigit():
            yield field.name, int(number)


def _has_id(field: pa.Field) -> bool:
    inner: list[pa.Field] = []
    if pa.types.is_struct(field.type):
        inner = list(field.type)
    elif pa.types.is_map(field.type):
        inner = [field.type.key_field, field.type.item_field]
    elif hasattr(field.type, "value_field"):
        inner = [field.type.value_field]
    return any(key in (field.metadata or {}) for key in _ID_KEYS) or any(map(_has_id, inner))


def _of_parquet(reader: pq.ParquetFile) -> dict[str, pa.DataType]:
    paths = [reader.schema.column(index).path for index in range(len(reader.schema))]
    old = _is_of_old_calendar(reader.metadata.metadata or {})
    columns = {}
    for field in reader.schema_arrow:
        dtype = _as_spark_reads(field.type)
        if dtype is None or (old and _is_temporal(dtype)):
            continue
        # Lists and maps have several layouts. All readers agree only on the standard one.
        mine = [path for path in paths if path == field.name or path.startswith(f"{field.name}.")]
        if mine == list(_leaves(dtype, field.name)):
            columns[field.name] = dtype
    return columns


def _is_of_old_calendar(keys: Mapping[bytes, bytes]) -> bool:
    if any(key.startswith(_SPARK + b"legacy") for key in keys):
        return True
    version = keys.get(_SPARK + b"version")
    if version is None:
        return False
    return tuple(int(part) if part.isdigit() else 0 for part in version.split(b".")[:2]) < _TODAYS_CALENDAR


def _as_spark_reads(dtype: pa.DataType) -> pa.DataType | None:
    """Return the type that Spark reads for a column with this Arrow type; None if it is uncertain."""
    plain = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(dtype, dtype)
    if plain in _ORC or plain == pa.date32() or pa.types.is_decimal128(plain):
        return plain
    if pa.types.is_timestamp(plain):
        # INT96 has no zone; Arrow reads it as nanoseconds.
        return pa.timestamp(plain.unit, tz=None if plain.tz is None else "UTC") if plain.unit in ("ms", "us") else None
    if pa.types.is_struct(plain):
        parts = [_as_spark_reads(item.type) for item in plain]
        if not parts or None in parts:
            return None
        return pa.struct([pa.field(item.name, part) for item, part in zip(plain, parts, strict=True)])
    if pa.types.is_list(plain):
        item = _as_spark_reads(plain.value_type)
        return None if item is None else pa.list_(pa.field("element", item))
    if pa.types.is_map(plain):
        key, value = _as_spark_reads(plain.key_type), _as_spark_reads(plain.item_type)
        return None if key is None or value is None else pa.map_(key, pa.field("value", value))
    return None


def _is_temporal(dtype: pa.DataType) -> bool:
    if dtype.num_fields == 0:
        return bool(pa.types.is_temporal(dtype))
    return any(_is_temporal(dtype.field(index).type) for index in range(dtype.num_fields))


def _leaves(dtype: pa.DataType, path: str) -> Iterator[str]:
    """Yield the paths of a column's leaves in the standard layout."""
    if pa.types.is_struct(dtype):
        for item in dtype:
            yield from _leaves(item.type, f"{path}.{item.name}")
    elif pa.types.is_list(dtype):
        yield from _leaves(dtype.value_type, f"{path}.list.element")
    elif pa.types.is_map(dtype):
        yield from _leaves(dtype.key_type, f"{path}.key_value.key")
        yield from _leaves(dtype.item_type, f"{path}.key_value.value")
    else:
        yield path
