"""Patched footers for parquet files whose own footer pyarrow does not read.

parquet-mr 1.10.99 of Cloudera and 1.11 give the repeated group of a map the logical type UNKNOWN, which pyarrow accepts
for columns only. The type has no meaning there: other readers ignore it. Older versions of pyarrow cannot read null
lists of a fixed length. Without the Arrow schema in the footer, they are lists of any length.

Source: parquet-format, "Metadata", "Logical types"; parquet-java ParquetMetadataConverter, MapKeyValueTypeAnnotation.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from snapshot_explorer.arrow import int96, thrift
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.nesting import parts_of
from snapshot_explorer.arrow.thrift import Field, ThriftList, structs
from snapshot_explorer.core.old_libraries import PYARROW_VECTORS

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_INT96, _FIXED_BYTES = 3, 7
_I32 = 5
"""The number of the Thrift type."""
_SCHEMA, _ROW_GROUPS, _KEY_VALUES = 2, 4, 5
"""Fields of the footer."""
_TYPE, _LENGTH, _CHILDREN, _LOGICAL_TYPE = 1, 2, 5, 10
"""Fields of an element of the schema."""
_UNKNOWN = 11
"""The field of a logical type."""
_COLUMNS, _CHUNK_METADATA = 1, 3
_KEY, _ARROW_SCHEMA = 1, b"ARROW:schema"
_REFUSED_GROUP = "cannot be applied to group node"
"""pyarrow's message for a group with a logical type that only columns have."""


def open_file(source: pa.NativeFile, **options: Any) -> "pq.ParquetFile":
    """Return a parquet file, opened by pyarrow.

    Args:
        options: Arguments of `pyarrow.parquet.ParquetFile`.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - loaded when the first such file is read: it takes time

    try:
        reader = pq.ParquetFile(source, **options)
        if not PYARROW_VECTORS.applies() or not any(map(_has_vectors, reader.schema_arrow.types)):
            return reader
    except (pa.ArrowException, OSError) as error:
        if _REFUSED_GROUP not in str(error) or "metadata" in options:
            raise
        try:
            metadata = _patch(source, int96_as_bytes=False)
        except CorruptBytesError:
            raise error from None
        return pq.ParquetFile(source, metadata=metadata, **options)
    return pq.ParquetFile(source, **(options | {"metadata": _patch(source, int96_as_bytes=False)}))


def column_sizes(reader: "pq.ParquetFile") -> list[int]:
    """Return the size of the column chunks of each column of the schema, as compressed, with headers of pages.

    Raises:
        CorruptBytesError: The Arrow schema has other columns than the Parquet schema.
    """
    metadata, schema = reader.metadata, reader.schema_arrow
    columns = [index for index, field in enumerate(schema) for _ in range(_leaf_count(field.type))]
    if len(columns) != metadata.num_columns:
        raise CorruptBytesError("its columns have other types than its Arrow schema says")
    sizes = [0] * len(schema)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for leaf, column in enumerate(columns):
            sizes[column] += group.column(leaf).total_compressed_size
    return sizes


def _leaf_count(dtype: pa.DataType) -> int:
    dtype = dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype
    return sum(_leaf_count(part.type) for part in parts_of(dtype)) or 1


def _has_vectors(dtype: pa.DataType) -> bool:
    """Return whether a type is or contains a list of a fixed length."""
    if pa.types.is_fixed_size_list(dtype):
        return True
    return any(_has_vectors(dtype.field(index).type) for index in range(dtype.num_fields))


def metadata_with_int96_as_bytes(source: pa.NativeFile) -> "pq.FileMetaData":
    """Return the metadata of a parquet file with its INT96 columns as 12 bytes. Reads the footer."""
    return _patch(source, int96_as_bytes=True)


def _patch(source: pa.NativeFile, *, int96_as_bytes: bool) -> "pq.FileMetaData":
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    tree = thrift.footer(source)
    _drop_unknown_types(tree)
    if PYARROW_VECTORS.applies():
        _drop_arrow_schema(tree)
    if int96_as_bytes:
        _store_int96_as_bytes(tree)
    footer = thrift.encode_struct(tree)
    return pq.read_metadata(pa.BufferReader(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"))


def _drop_unknown_types(tree: list[Field]) -> None:
    """Remove the logical type UNKNOWN from groups, elements of the schema that have children."""
    for element in structs(tree, _SCHEMA):
        if any(field.id == _CHILDREN and field.value for field in element):
            element[:] = [field for field in element if not (field.id == _LOGICAL_TYPE and _is_unknown(field.value))]


def _drop_arrow_schema(tree: list[Field]) -> None:
    """Remove the Arrow schema, so that Arrow types follow from parquet types alone."""
    for field in tree:
        if field.id == _KEY_VALUES and isinstance(field.value, ThriftList):
            field.value.values = [value for value in field.value.values if not _is_arrow_schema(value)]


def _is_arrow_schema(key_value: thrift.Value) -> bool:
    return isinstance(key_value, list) and any(field.id == _KEY and field.value == _ARROW_SCHEMA for field in key_value)


def _is_unknown(logical_type: thrift.Value) -> bool:
    return isinstance(logical_type, list) and [field.id for field in logical_type] == [_UNKNOWN]


def _store_int96_as_bytes(tree: list[Field]) -> None:
    """Turn INT96 into 12 bytes: in the schema's elements, and in the metadata of each column chunk."""
    for element in structs(tree, _SCHEMA):
        for index, field in enumerate(element):
            if (field.id, field.value) == (_TYPE, _INT96):
                field.value = _FIXED_BYTES
                element[index + 1 : index + 1] = [Field(_LENGTH, _I32, int96.WIDTH)]
                break
    for group in structs(tree, _ROW_GROUPS):
        for chunk in structs(group, _COLUMNS):
            for metadata in (field.value for field in chunk if field.id == _CHUNK_METADATA):
                for field in metadata if isinstance(metadata, list) else ():
                    if (field.id, field.value) == (_TYPE, _INT96):
                        field.value = _FIXED_BYTES
