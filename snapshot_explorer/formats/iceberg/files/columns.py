"""Columns of a data file as columns of the table: found by field id at every depth, cast to the table's types.

Source: iceberg specification, "Column Projection", "Schema Evolution", "Default values".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import int96, variants
from snapshot_explorer.arrow.nesting import TEXTS, as_list, plain, with_entries, with_fields, with_items
from snapshot_explorer.core import resources
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Message
from snapshot_explorer.formats.features import FILES_OF_OTHER_TYPES, LEAVE_OUT, refusal
from snapshot_explorer.formats.files import variant_columns
from snapshot_explorer.formats.iceberg.files.field_ids import FileField
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType, IcebergField, arrow_type, type_text
from snapshot_explorer.formats.iceberg.metadata.values import default_value, single_values, uuid_texts
from snapshot_explorer.formats.spatial import SPATIAL

Constants = Mapping[int, pa.Scalar]
_UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Projection:
    """The mapping from the columns of a data file to columns of the table."""

    targets: tuple[tuple[IcebergField, FileField | None], ...]
    """Requested columns in order, each with its column in the file; None if the file lacks it or it is constant."""
    constants: Constants
    path: str
    names: list[str]
    """The columns of the file to read, each once."""
    is_exact: bool
    """Whether the requested columns equal the columns to read, with the same order, names and values."""


def projection(
    fields: Sequence[IcebergField], stored_fields: Sequence[FileField], constants: Constants, path: str
) -> Projection:
    """Return the mapping from the columns of a data file to requested columns.

    Args:
        constants: Columns that are constant, even if the file contains other values.
    """
    by_id = _by_id(stored_fields, path)
    names = [field.name for field in stored_fields]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CorruptTableError(f"The data file {path} has two columns {twice!r}. Compare it with a copy of the table.")
    targets = tuple(
        (field, None if field.id in constants or field.type.root == "unknown" else by_id.get(field.id))
        for field in fields
    )
    for field, source in targets:
        if source is None and field.id not in constants:
            _check_optional(field, path)
    to_read = list(dict.fromkeys(source.name for _, source in targets if source is not None))
    is_exact = len(to_read) == len(targets) and all(
        source is not None and source.name == field.name and _is_exact(source.type, field.type)
        for field, source in targets
    )
    return Projection(targets, constants, path, to_read, is_exact=is_exact)


def _by_id(stored_fields: Sequence[FileField], path: str) -> dict[int, FileField]:
    result = {field.id: field for field in stored_fields if field.id is not None}
    if len(result) < sum(field.id is not None for field in stored_fields):
        raise CorruptTableError(
            f"The data file {path} has two columns with one field id. It may be damaged; compare it with a copy of the "
            "table."
        )
    return result


def _check_optional(field: IcebergField, path: str) -> None:
    """Check that a file may lack a column.

    Source: iceberg specification, "Column Projection"; `BaseParquetReaders` ("Missing required field").
    """
    if field.required and field.initial_default is None and field.type.root != "unknown":
        raise CorruptTableError(
            f"The data file {path} has no column with the id {field.id}, and the column {field.name!r} is required and "
            "has no default. The file may have been written for another table; compare it with a copy of the table."
        )


def project(batch: pa.RecordBatch, projection: Projection, rows: int) -> list[pa.Array]:
    """Return the requested columns of rows of a data file, in the Arrow types of the table.

    Args:
        batch: Rows with the columns `projection.names`, and maybe others.
    """
    result = []
    for field, source in projection.targets:
        if source is None:
            result.append(_absent(field, projection.constants, rows))
            continue
        try:
            result.append(_conform(batch.column(source.name), field, source, projection))
        except CorruptTableError:
            raise
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(
                Message(
                    f"The column {field.name!r} of the data file {projection.path} cannot be read as "
                    f"{type_text(field.type)}: {error}. Leave the column out with ",
                    LEAVE_OUT,
                    ", or read it with Iceberg's own readers.",
                )
            ) from error
        except (pa.ArrowException, KeyError, ValueError) as error:
            resources.check(error, f"The data file {projection.path} could not be read")
            if "out of range" in str(error) and pa.types.is_timestamp(arrow_type(field.type)):
                raise
            raise CorruptTableError(
                f"The column {field.name!r} of the data file {projection.path} cannot be read as "
                f"{type_text(field.type)}: {error}."
            ) from error
    return result


def _absent(field: IcebergField, constants: Constants, rows: int) -> pa.Array:
    """Return a column that is not read from the file: its constant, its initial default, or nulls."""
    if field.id in constants:
        # A partition value has the column's current type, which an older schema may have in a narrower form.
        value = constants[field.id]
        target = arrow_type(field.type)
        return pa.repeat(value if value.type == target else value.cast(target), rows)
    if field.initial_default is not None and field.type.root not in ("unknown", "variant"):
        return pa.repeat(default_value(field, field.initial_default), rows)
    return pa.nulls(rows, arrow_type(field.type))


def _is_exact(stored: pa.DataType, data_type: IcebergDataType) -> bool:
    """Return whether values of a file need no conversion to the type of the table's column."""
    return (
        bool(stored == arrow_type(data_type)) and not data_type.fields and data_type.root not in ("variant", "unknown")
    )


def _conform(values: pa.Array, field: IcebergField, source: FileField, projection: Projection) -> pa.Array:
    data_type = field.type
    target = arrow_type(data_type)
    if _is_exact(values.type, data_type):
        return values
    values = plain(values)
    match data_type.root:
        case "struct":
            return _struct(values, data_type, source, projection)
        case "list":
            return _list(values, data_type, source, projection)
        case "map":
            return _map(values, data_type, source, projection)
        case "variant":
            return _variant(values, data_type, target)
        case "unknown":
            return pa.nulls(len(values))
    return _ATOMS[data_type.root](values, data_type, target)


def _other_type(values: pa.Array, data_type: IcebergDataType) -> UnsupportedFeatureError:
    return refusal(FILES_OF_OTHER_TYPES, stored=values.type, type=type_text(data_type))


def _struct(values: pa.Array, data_type: IcebergDataType, source: FileField, projection: Projection) -> pa.Array:
    if not isinstance(values, pa.StructArray):
        raise _other_type(values, data_type)
    by_id = {child.id: index for index, child in enumerate(source.children) if child.id is not None}
    # Below a null struct, Avro files have empty values that are not null.
    stored = values.flatten() if values.null_count else [values.field(index) for index in range(values.type.num_fields)]
    children = []
    for field in data_type.fields:
        index = None if field.id in projection.constants or field.type.root == "unknown" else by_id.get(field.id)
        if index is None:
            if field.id not in projection.constants:
                _check_optional(field, projection.path)
            children.append(_absent(field, projection.constants, len(values)))
        else:
            children.append(_conform(stored[index], field, source.children[index], projection))
    return with_fields(values, arrow_type(data_type), children)


def _list(values: pa.Array, data_type: IcebergDataType, source: FileField, projection: Projection) -> pa.Array:
    if isinstance(values, pa.MapArray) or not hasattr(values.type, "value_type"):
        raise _other_type(values, data_type)
    values = as_list(values)
    items = _conform(values.values, data_type.fields[0], source.children[0], projection)
    return with_items(values, arrow_type(data_type), items)


def _map(values: pa.Array, data_type: IcebergDataType, source: FileField, projection: Projection) -> pa.Array:
    if not isinstance(values, pa.MapArray):
        raise _other_type(values, data_type)
    key, value = data_type.fields
    keys = _conform(values.keys, key, source.children[0], projection)
    items = _conform(values.items, value, source.children[1], projection)
    return with_entries(values, arrow_type(data_type), keys, items)


def _variant(values: pa.Array, data_type: IcebergDataType, target: pa.StructType) -> pa.Array:
    if not isinstance(values, pa.StructArray) or not variants.is_group(values.type):
        raise _other_type(values, data_type)
    return variant_columns.unshred_variants(values, target)


_INTEGERS = (pa.int8(), pa.int16(), pa.int32())


def _boolean(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    if values.type != target:
        raise _other_type(values, data_type)
    return values


def _number(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    known = (*_INTEGERS, pa.int64()) if data_type.root == "long" else _INTEGERS
    if values.type not in known:
        raise _other_type(values, data_type)
    return values.cast(target)


def _float(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    if values.type != pa.float32():
        raise _other_type(values, data_type)
    return values.cast(target)


def _decimal(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    """Return decimals; Avro has them as bytes of the unscaled number."""
    if pa.types.is_decimal(values.type) and values.type.scale == data_type.scale:
        return values.cast(target)
    if pa.types.is_binary(values.type):
        result = single_values(values, data_type)
        if result.null_count > values.null_count:
            raise pa.ArrowInvalid("a value has more digits")
        return result
    raise _other_type(values, data_type)


def _date(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    if values.type != pa.int32():
        raise _other_type(values, data_type)
    return values.view(target)


def _time(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    """Return times of day; ORC has them as plain numbers of microseconds."""
    if values.type == pa.int64():
        return values.view(target)
    if not pa.types.is_time(values.type):
        raise _other_type(values, data_type)
    return values.cast(target)


def _timestamp(values: pa.Array, data_type: IcebergDataType, target: pa.TimestampType) -> pa.Array:
    """Return timestamps; whether the file marks them as UTC does not matter, the numbers are the same.

    Source: `BaseParquetReaders`; iceberg specification, "Schema Evolution" for dates.
    """
    if values.type == pa.int64():
        return values.view(target)
    if pa.types.is_date32(values.type) and data_type.root in ("timestamp", "timestamp_ns"):
        return values.cast(target)
    if pa.types.is_fixed_size_binary(values.type) and values.type.byte_width == int96.WIDTH:
        return int96.timestamps(values, target.unit).view(target)
    if not pa.types.is_timestamp(values.type):
        raise _other_type(values, data_type)
    naive = values.view(pa.timestamp(values.type.unit))
    if values.type.unit == "ns" and target.unit == "us":
        naive = pc.floor_temporal(naive, unit="microsecond")
    return naive.cast(pa.timestamp(target.unit)).view(target)


def _text(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    if values.type not in TEXTS and not (data_type.root == "binary" and pa.types.is_fixed_size_binary(values.type)):
        raise _other_type(values, data_type)
    return values.cast(target)


def _spatial(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    """Return WKB; a text would be another notation."""
    if values.type not in TEXTS or pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        raise _other_type(values, data_type)
    return values.cast(target)


def _uuid(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    """Return uuids as text; ORC has them as binary of any length."""
    if not pa.types.is_binary(values.type) and values.type != pa.binary(_UUID_BYTES):
        raise _other_type(values, data_type)
    fixed = values.cast(pa.binary(_UUID_BYTES))
    if not len(fixed):
        return pa.array([], target)
    filled = fixed.fill_null(bytes(_UUID_BYTES)) if fixed.null_count else fixed
    start = filled.offset * _UUID_BYTES
    cells = np.frombuffer(filled.buffers()[1], np.uint8, len(filled) * _UUID_BYTES, start).reshape(-1, _UUID_BYTES)
    texts = uuid_texts(cells)
    return pc.if_else(fixed.is_valid(), texts, pa.scalar(None, target)) if fixed.null_count else texts


def _fixed(values: pa.Array, data_type: IcebergDataType, target: pa.DataType) -> pa.Array:
    if not pa.types.is_binary(values.type) and not pa.types.is_fixed_size_binary(values.type):
        raise _other_type(values, data_type)
    return values.cast(target)


_ATOMS: Mapping[str, Callable[[pa.Array, IcebergDataType, pa.DataType], pa.Array]] = {
    "boolean": _boolean,
    "int": _number,
    "long": _number,
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "date": _date,
    "time": _time,
    **dict.fromkeys(("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), _timestamp),
    "string": _text,
    "binary": _text,
    "uuid": _uuid,
    "fixed": _fixed,
    **dict.fromkeys(SPATIAL, _spatial),
}
