"""Values of data files, cast to the types of the table's columns.

Source: iceberg specification, "Column Projection", "Schema Evolution", "Default values".
"""

from collections.abc import Callable, Mapping

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow import int96, uuids, variants
from snapshot_explorer.arrow.nesting import TEXTS
from snapshot_explorer.core.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.formats.files import variant_columns
from snapshot_explorer.formats.files.field_columns import FieldRules, other_type
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType, IcebergField, arrow_type, type_text
from snapshot_explorer.formats.iceberg.metadata.values import default_value, single_values
from snapshot_explorer.formats.spatial import SPATIAL


def _check_optional(field: IcebergField, shown: str) -> None:
    """Check that a file may lack a column.

    Source: iceberg specification, "Column Projection"; `BaseParquetReaders` ("Missing required field").
    """
    if field.required and field.initial_default is None and field.type.root != "unknown":
        raise CorruptTableError(
            f"{shown[:1].upper()}{shown[1:]} has no column with the id {field.id}, and the column {field.name!r} is "
            "required and has no default. The file may have been written for another table; compare it with a copy of "
            "the table."
        )


def _default(field: IcebergField) -> pa.Scalar | None:
    if field.initial_default is None or field.type.root in ("unknown", "variant"):
        return None
    return default_value(field, field.initial_default)


def _convert(values: pa.Array, field: IcebergField) -> pa.Array:
    return _ATOMS[field.type.root](values, field.type, arrow_type(field.type))


def _other_type(values: pa.Array, data_type: IcebergDataType) -> UnsupportedFeatureError:
    return other_type(values, type_text(data_type))


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
    if not pa.types.is_binary(values.type) and values.type != pa.binary(uuids.WIDTH):
        raise _other_type(values, data_type)
    return uuids.uuid_texts(values.cast(pa.binary(uuids.WIDTH))).cast(target)


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
    "variant": _variant,
    "unknown": lambda values, _, target: pa.nulls(len(values), target),
}
RULES: FieldRules[IcebergField] = FieldRules(
    arrow_type=lambda field: arrow_type(field.type),
    type_text=lambda field: type_text(field.type),
    parts=lambda field: field.type.fields,
    convert=_convert,
    default=_default,
    check_absent=_check_optional,
    readers="Iceberg's own readers",
)
