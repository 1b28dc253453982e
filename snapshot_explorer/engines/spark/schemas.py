"""Convert Arrow schemas to Spark: types, nullability and values.

Values without a Spark type become text: times of day, and timestamps finer than microseconds, in ISO format with all
digits of the fraction, and a Z for UTC. No digit is lost. Unsigned numbers get the wider types that Spark gives them in
Parquet files. An interval of months, days and nanoseconds, which Spark has only as two types, becomes a struct of the
three numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.arrays import from_numpy
from snapshot_explorer.arrow.nesting import with_entries, with_fields, with_items
from snapshot_explorer.arrow.variant_texts import MARK, is_variant
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.old_libraries import PYSPARK_VARIANTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType

_VARIANT = {MARK: b"true"}
"""The field metadata of a variant, in Spark and in the formats' Arrow types."""
_INTERVAL = pa.month_day_nano_interval()
_INTERVAL_PARTS = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])
"""The parts of an interval, in the order in which Arrow stores them."""
_OTHER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    _INTERVAL: _INTERVAL_PARTS,
}
"""Types for those that Spark lacks; of unsigned numbers as in its reader of Parquet (ParquetToSparkSchemaConverter)."""
_WITHOUT = Message(
    "Leave it out with ", Hint("", {"columns": [...]}), ", or load it with ", Hint("snapshot.to_arrow"), "."
)


def quote_column(name: str) -> str:
    """Return a column name, quoted for Spark."""
    return "`" + name.replace("`", "``") + "`"


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark schema of rows."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, spark_type(field.type, field.name), field.nullable) for field in schema])


def spark_type(dtype: pa.DataType, name: str = "") -> DataType:
    """Return the Spark type of values."""
    from pyspark.sql import types as spark

    dtype = _OTHER.get(dtype, dtype)
    if _is_text(dtype):
        return spark.StringType()
    if is_variant(dtype):
        if PYSPARK_VARIANTS.applies():
            raise UnsupportedFeatureError(
                Message(f"The column {name!r} is a variant: {PYSPARK_VARIANTS.remedy()}. ", _WITHOUT)
            )
        return spark.VariantType()
    if pa.types.is_struct(dtype):
        return spark.StructType(
            [spark.StructField(item.name, spark_type(item.type, name), item.nullable) for item in dtype]
        )
    if pa.types.is_map(dtype):
        return spark.MapType(
            spark_type(dtype.key_type, name), spark_type(dtype.item_type, name), dtype.item_field.nullable
        )
    if _is_list(dtype):
        return spark.ArrayType(spark_type(dtype.value_type, name), dtype.value_field.nullable)
    if pa.types.is_decimal(dtype):
        return spark.DecimalType(dtype.precision, dtype.scale)
    if pa.types.is_timestamp(dtype):
        return spark.TimestampNTZType() if dtype.tz is None else spark.TimestampType()
    constructor = {
        pa.bool_(): spark.BooleanType,
        pa.int8(): spark.ByteType,
        pa.int16(): spark.ShortType,
        pa.int32(): spark.IntegerType,
        pa.int64(): spark.LongType,
        pa.float32(): spark.FloatType,
        pa.float64(): spark.DoubleType,
        pa.string(): spark.StringType,
        pa.large_string(): spark.StringType,
        pa.binary(): spark.BinaryType,
        pa.large_binary(): spark.BinaryType,
        pa.date32(): spark.DateType,
        pa.null(): spark.NullType,
    }.get(pa.binary() if pa.types.is_fixed_size_binary(dtype) else dtype)
    if constructor is None:
        raise UnsupportedFeatureError(
            Message(f"The column {name!r} has the type {dtype}, which Spark does not have. ", _WITHOUT)
        )
    return constructor()


def _is_text(dtype: pa.DataType) -> bool:
    """Return whether values of a type become text, since Spark has no type for them."""
    return bool(pa.types.is_time(dtype) or (pa.types.is_timestamp(dtype) and dtype.unit == "ns"))


def has_converted(dtype: pa.DataType) -> bool:
    """Return whether a type is or contains a variant, or a type whose values become text or structs."""
    if _is_text(dtype) or is_variant(dtype) or dtype == _INTERVAL:
        return True
    return any(has_converted(dtype.field(index).type) for index in range(dtype.num_fields))


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype))


def schema_of(frame: DataFrame) -> pa.Schema:
    """Return the Arrow schema of the rows of a DataFrame. Analyzes it; runs nothing.

    Raises:
        UnsupportedFeatureError: A column has a type that Arrow lacks.
    """
    return pa.schema([pa.field(field.name, _type_in_arrow(field.dataType, field.name)) for field in frame.schema])


_IN_ARROW = {
    "BooleanType": pa.bool_(),
    "ByteType": pa.int8(),
    "ShortType": pa.int16(),
    "IntegerType": pa.int32(),
    "LongType": pa.int64(),
    "FloatType": pa.float32(),
    "DoubleType": pa.float64(),
    "StringType": pa.string(),
    "VarcharType": pa.string(),
    "CharType": pa.string(),
    "BinaryType": pa.binary(),
    "DateType": pa.date32(),
    "TimestampType": pa.timestamp("us", "UTC"),
    "TimestampNTZType": pa.timestamp("us"),
    "NullType": pa.null(),
}


def _type_in_arrow(dtype: DataType, name: str) -> pa.DataType:
    from pyspark.sql import types as spark

    if isinstance(dtype, spark.DecimalType):
        return pa.decimal128(dtype.precision, dtype.scale)
    if isinstance(dtype, spark.ArrayType):
        return pa.list_(_type_in_arrow(dtype.elementType, name))
    if isinstance(dtype, spark.MapType):
        return pa.map_(_type_in_arrow(dtype.keyType, name), _type_in_arrow(dtype.valueType, name))
    if isinstance(dtype, spark.StructType):
        return pa.struct([pa.field(item.name, _type_in_arrow(item.dataType, name)) for item in dtype])
    known = _IN_ARROW.get(type(dtype).__name__)
    if known is None:
        raise UnsupportedFeatureError(
            f"The column {name!r} of the Spark DataFrame has the type {dtype.simpleString()}, which cannot be "
            "compared. Drop it, or cast it."
        )
    return known


def arrow_schema(schema: pa.Schema) -> pa.Schema:
    """Return the Arrow schema of batches for Spark."""
    return pa.schema([pa.field(field.name, _arrow_type(field.type), nullable=field.nullable) for field in schema])


def _arrow_type(dtype: pa.DataType) -> pa.DataType:
    if _is_text(dtype):
        return pa.string()
    if is_variant(dtype):
        return pa.struct(
            [
                pa.field("value", pa.binary(), nullable=False),
                pa.field("metadata", pa.binary(), nullable=False, metadata=_VARIANT),
            ]
        )
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(item.name, _arrow_type(item.type), nullable=item.nullable) for item in dtype])
    if pa.types.is_map(dtype):
        item = pa.field("value", _arrow_type(dtype.item_type), nullable=dtype.item_field.nullable)
        return pa.map_(pa.field("key", _arrow_type(dtype.key_type), nullable=False), item)
    if _is_list(dtype):
        return pa.list_(pa.field("element", _arrow_type(dtype.value_type), nullable=dtype.value_field.nullable))
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", tz=None if dtype.tz is None else "UTC")
    if pa.types.is_fixed_size_binary(dtype):
        return pa.binary()
    return (_OTHER | {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}).get(dtype, dtype)


def spark_batch(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Return columns as a batch for Spark, with the schema from `arrow_schema`."""
    values = [_as(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(values, schema=schema)


def _as(values: pa.Array, target: pa.DataType) -> pa.Array:
    dtype = values.type
    if dtype.equals(target, check_metadata=True):
        return values
    if _is_text(dtype):
        return _texts(values)
    if dtype == _INTERVAL:
        return _parts(values)
    if pa.types.is_struct(dtype):
        children = [_as(values.field(item.name), item.type) for item in target]
        return with_fields(values, target, children)
    if pa.types.is_map(dtype):
        return with_entries(values, target, _as(values.keys, target.key_type), _as(values.items, target.item_type))
    if pa.types.is_fixed_size_list(dtype) or pa.types.is_large_list(dtype):
        values = values.cast(pa.list_(dtype.value_type))
    if _is_list(dtype):
        return with_items(values, target, _as(values.values, target.value_type))
    return values.cast(target)


def _parts(values: pa.Array) -> pa.StructArray:
    """Return intervals as structs."""
    stored = np.dtype([(part.name, part.type.to_pandas_dtype()) for part in _INTERVAL_PARTS])
    numbers = np.frombuffer(values.buffers()[1] or b"", stored)[values.offset : values.offset + len(values)]
    columns = [from_numpy(np.ascontiguousarray(numbers[name])) for name in stored.names or ()]
    return pa.StructArray.from_arrays(columns, fields=list(_INTERVAL_PARTS), mask=values.is_null())


def _texts(values: pa.Array) -> pa.Array:
    """Return times of day or nanosecond timestamps in ISO format, without trailing zeros in the fraction."""
    dtype: Any = values.type
    if pa.types.is_time(dtype):
        texts = values.cast(pa.string())
    else:
        texts = pc.replace_substring(values.view(pa.timestamp("ns")).cast(pa.string()), " ", "T", max_replacements=1)
    texts = pc.replace_substring_regex(texts, r"(\.\d*?)0*$", r"\1")
    texts = pc.utf8_rtrim(texts, ".")
    return texts if getattr(dtype, "tz", None) is None else pc.binary_join_element_wise(texts, "Z", "")
