"""Partition specs: transforms, partition values typed and as text, and the column bounds that they imply.

A partition value bounds the values of its source column. So files are skipped by partition in the same way as by
statistics: the bounds of each partition are compared with the condition.

Source: iceberg specification, "Partitioning", "Partition Transforms".
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.decimals import minimal_bytes
from snapshot_explorer.arrow.murmur3 import murmur3
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Bounds, Predicate
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType, arrow_type, is_nested, is_read
from snapshot_explorer.formats.iceberg.metadata.partition_tuples import PartitionTuples
from snapshot_explorer.formats.iceberg.metadata.schema import IcebergSchema
from snapshot_explorer.formats.iceberg.metadata.values import stored_values

_WITH_WIDTH = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.IGNORECASE)
_KNOWN = ("identity", "year", "month", "day", "hour", "void")
_TIMES = ("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
_DATED = ("date", *_TIMES)
_SOURCES: Mapping[str, tuple[str, ...]] = {
    "bucket": ("int", "long", "decimal", "date", "time", *_TIMES, "string", "uuid", "fixed", "binary"),
    "truncate": ("int", "long", "decimal", "string", "binary"),
    "year": _DATED,
    "month": _DATED,
    "day": _DATED,
    "hour": _TIMES,
}
"""Types that the source of a transform may have."""
_INT, _DATE = IcebergDataType(root="int"), IcebergDataType(root="date")
_MAX_CODE_POINT, _SURROGATES = 0x10FFFF, (0xD800, 0xDFFF)
_MAX_YEARS = 200_000
"""Years from 1970 on that microseconds represent."""
_MAX_NANO_YEARS = 290
_MAX_POINTS = 10_000
_DIGITS = 76
_CODES = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
"""NumPy's names of units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """A transform of a partition field."""

    name: str
    """identity, bucket, truncate, year, month, day, hour or void; any other is unknown and skips no file."""
    width: int = 0
    """Number of buckets, or width of truncation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionField:
    """A field of a partition spec."""

    id: int
    name: str
    source_ids: tuple[int, ...]
    """Ids of the source columns: one, or several for transforms of several columns."""
    transform: Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A partition spec. Picklable."""

    id: int
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        """Whether all files are in one partition: its equality deletes then apply to all files of the table."""
        return all(field.transform.name == "void" for field in self.fields)


def parse_transform(text: str) -> Transform:
    """Return a transform from its notation; names are case-insensitive."""
    if match := _WITH_WIDTH.fullmatch(text):
        return Transform(name=match[1].lower(), width=int(match[2])) if int(match[2]) else Transform(name=text)
    return Transform(name=text.lower() if text.lower() in _KNOWN else text)


def parse_spec(raw: Mapping[str, Any]) -> Spec:
    """Return a partition spec from its JSON."""
    try:
        return Spec(
            id=int(raw["spec-id"]),
            fields=tuple(
                PartitionField(
                    id=int(field["field-id"]),
                    name=str(field["name"]),
                    source_ids=tuple(int(number) for number in (field.get("source-ids") or (field["source-id"],))),
                    transform=parse_transform(str(field["transform"])),
                )
                for field in raw["fields"]
            ),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CorruptTableError(
            f"A partition spec in the table's metadata file is not readable ({type(error).__name__}: {error}). The "
            "file may be damaged; compare it with a copy of the table."
        ) from error


def result_type(transform: Transform, source: IcebergDataType) -> IcebergDataType | None:
    """Return the type of the values of a transform; None if that is not known."""
    if transform.name in ("identity", "void"):
        return source
    if source.root not in _SOURCES.get(transform.name, ()):
        return None
    return source if transform.name == "truncate" else _DATE if transform.name == "day" else _INT


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """A field of a spec with the values of the distinct partitions."""

    field: PartitionField
    source: IcebergDataType | None
    """The type of the source column; None if the column was dropped or the transform has several."""
    type: IcebergDataType | None
    """The type of the values; None if it is not known: `values` are then as manifests store them."""
    values: pa.Array
    """A value per distinct partition."""


def partition_columns(
    spec: Spec, schema: IcebergSchema, stored: pa.StructArray, others: Sequence[IcebergSchema] = ()
) -> list[PartitionColumn]:
    """Return the fields of a spec with their values in the distinct partitions, typed.

    Args:
        schema: The table's current schema, whose types partition values have.
        stored: The distinct partitions, as in `IcebergLiveFiles.partitions`.
        others: Schemas that may have columns that the current one no longer has.
    """
    return [_column(field, (schema, *others), stored) for field in spec.fields]


def _column(field: PartitionField, schemas: Sequence[IcebergSchema], stored: pa.StructArray) -> PartitionColumn:
    index = stored.type.get_field_index(str(field.id))
    values = pa.nulls(len(stored)) if index < 0 else stored.field(index)
    paths = (schema.path(field.source_ids[0]) for schema in schemas if len(field.source_ids) == 1)
    path = next((path for path in paths if path), ())
    source = path[-1].type if path and not is_nested(path[-1].type) and is_read(path[-1].type) else None
    data_type = None if source is None else result_type(field.transform, source)
    if data_type is not None:
        values = stored_values(values, data_type)
    return PartitionColumn(field=field, source=source, type=data_type, values=values)


def partition_texts(columns: Sequence[PartitionColumn], rows: int) -> list[dict[str, str | None]]:
    """Return each distinct partition as text: name of the partition field to value, as in the names of folders.

    Void fields are left out: they have no values.
    """
    shown = [column for column in columns if column.field.transform.name != "void"]
    listed = [texts(column.values, column.field.transform.name) for column in shown]
    names = [column.field.name for column in shown]
    return [dict(zip(names, values, strict=True)) for values in zip(*listed, strict=True)] if shown else [{}] * rows


def texts(values: pa.Array, transform: str) -> list[str | None]:
    """Return partition values as text, as folders of Iceberg's writers have them.

    Source: `Transform.toHumanString`.
    """
    if transform in ("year", "month", "hour") and pa.types.is_integer(values.type):
        return [None if value is None else _period(value, transform) for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type):
        return _timestamp_texts(values)
    if pa.types.is_binary(values.type) or pa.types.is_fixed_size_binary(values.type):
        return [None if value is None else base64.b64encode(value).decode() for value in values.to_pylist()]
    if pa.types.is_decimal(values.type):
        return [None if value is None else format(value, "f") for value in values.to_pylist()]
    if pa.types.is_boolean(values.type):
        return [None if value is None else str(value).lower() for value in values.to_pylist()]
    return [None if value is None else str(value) for value in values.to_pylist()]


def _period(number: int, transform: str) -> str:
    if abs(number) > _MAX_NANO_YEARS * 366 * 24:
        return str(number)
    return str(np.array(number).astype(f"datetime64[{_CODES[transform]}]")).replace("T", "-")


def _timestamp_texts(values: pa.TimestampArray) -> list[str | None]:
    """Return timestamps in ISO format, without zeros at the end of the fraction in groups of three."""
    zone = "+00:00" if values.type.tz else ""
    plain = values.view(pa.timestamp(values.type.unit))
    result: list[str | None] = []
    for text in plain.cast(pa.string()).to_pylist():
        if text is None:
            result.append(None)
            continue
        whole, _, fraction = text.replace(" ", "T").partition(".")
        while fraction.endswith("000"):
            fraction = fraction[:-3]
        result.append(f"{whole}.{fraction}{zone}" if fraction else whole + zone)
    return result


def matching(
    columns: Sequence[PartitionColumn], rows: int, schema: IcebergSchema, predicate: Predicate
) -> npt.NDArray[np.bool_]:
    """Return for each distinct partition whether a row that matches a condition might be in it.

    Args:
        columns: The fields of a spec with their values.
        schema: The schema under which rows are read.
    """
    kept = np.ones(rows, np.bool_)
    named = list(_named_columns(columns, schema, predicate))
    constants = {name: column.values for name, column in named if column.field.transform.name == "identity"}
    part = predicate.on(frozenset(constants)) if constants else None
    if part is not None:
        kept &= np.asarray(part.mask(pa.table(constants)).to_numpy(zero_copy_only=False), np.bool_)
    for layer in _layers(named):
        kept &= _not_ruled_out(layer, rows, predicate)
    for name, column in named:
        if column.field.transform.name == "bucket":
            kept &= _in_buckets(column, name, predicate)
    return kept


class MatchingPartitions:
    """Which partitions might contain a row that matches a condition; each is compared once."""

    def __init__(
        self,
        specs: Mapping[int, Mapping[str, Any]],
        current: IcebergSchema,
        schema: IcebergSchema,
        predicate: Predicate,
        others: Sequence[IcebergSchema] = (),
    ) -> None:
        """Start without partitions.

        Args:
            specs: The partition specs of the table by id, as JSON.
            current: The table's current schema, whose types partition values have.
            schema: The schema under which rows are read.
            others: Schemas that may have columns that the current one no longer has.
        """
        self._specs, self._current, self._schema, self._others = specs, current, schema, others
        self._predicate = predicate
        self._matches: dict[int, npt.NDArray[np.bool_]] = {}

    def of(self, files: pa.Table, tuples: PartitionTuples) -> npt.NDArray[np.bool_]:
        """Return for each file in LIVE whether a row in its partition might match."""
        for spec_id, stored in tuples.arrays({number: len(known) for number, known in self._matches.items()}).items():
            columns = partition_columns(spec_with(self._specs, spec_id), self._current, stored, self._others)
            matches = matching(columns, len(stored), self._schema, self._predicate)
            self._matches[spec_id] = np.concatenate([self._matches.get(spec_id, matches[:0]), matches])
        spec_ids, numbers = files.column("spec_id").to_numpy(), files.column("partition").to_numpy()
        result = np.ones(len(files), np.bool_)
        for spec_id, matches in self._matches.items():
            where = np.flatnonzero(spec_ids == spec_id)
            result[where] = matches[numbers[where]]
        return result


def spec_with(specs: Mapping[int, Mapping[str, Any]], spec_id: int) -> Spec:
    """Return the partition spec of a manifest."""
    if spec_id not in specs:
        raise CorruptTableError(
            f"A manifest is of the partition spec {spec_id}, which the table does not have. The metadata file may "
            "be damaged; compare it with a copy of the table."
        )
    return parse_spec(specs[spec_id])


def _named_columns(
    columns: Sequence[PartitionColumn], schema: IcebergSchema, predicate: Predicate
) -> Iterator[tuple[str, PartitionColumn]]:
    """Yield the fields whose source is a column of the condition, with its name and type in the schema."""
    for column in columns:
        path = schema.path(column.field.source_ids[0]) if column.type is not None else ()
        if len(path) == 1 and path[0].name in predicate.columns and path[0].type == column.source:
            yield path[0].name, column


def _layers(named: Sequence[tuple[str, PartitionColumn]]) -> list[dict[str, "_Ends"]]:
    """Return the bounds of source columns, repeated if several fields of a spec have the same source."""
    layers: list[dict[str, _Ends]] = []
    for name, column in named:
        if column.field.transform.name == "void":
            continue
        layer = next((layer for layer in layers if name not in layer), None)
        if layer is None:
            layers.append(layer := {})
        layer[name] = _ends(column)
    return layers


def _not_ruled_out(layer: Mapping[str, "_Ends"], rows: int, predicate: Predicate) -> npt.NDArray[np.bool_]:
    bounds = Bounds(
        lower=pa.table({name: ends.lower for name, ends in layer.items()}),
        upper=pa.table({name: ends.upper for name, ends in layer.items()}),
        null_count=pa.table({name: ends.null_count for name, ends in layer.items()}),
        rows=pa.array(np.ones(rows, np.int64)),
    )
    return np.asarray(predicate.ruled_out(bounds).is_null().to_numpy(zero_copy_only=False), np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ends:
    """The bounds of a source column that partition values imply, and whether all of its values are null."""

    lower: pa.Array
    upper: pa.Array
    null_count: pa.Array
    """1 if the partition value is null, otherwise 0."""


def _ends(column: PartitionColumn) -> _Ends:
    """Return the bounds of a source column; a null partition value means that all its values are null."""
    values, transform = column.values, column.field.transform
    dtype = arrow_type(column.source) if column.source is not None else pa.null()
    lower, upper = values, values
    if transform.name == "truncate":
        lower, upper = _without_wrapped(values, transform.width), _truncation_ends(values, transform.width)
    elif transform.name in ("year", "month", "day", "hour"):
        lower, upper = _time_ends(values, transform.name, dtype)
    elif transform.name != "identity":
        lower = upper = pa.nulls(len(values), dtype)
    return _Ends(lower=lower, upper=upper, null_count=values.is_null().cast(pa.int64()))


def _without_wrapped(values: pa.Array, width: int) -> pa.Array:
    """Return truncated values, null for integers that are not a multiple of the width: they have wrapped around.

    The smallest integers are truncated to numbers below the range of their type, which Java wraps around to large ones.

    Source: iceberg specification, "Truncate Transform Details"; `TruncateUtil`.
    """
    if not pa.types.is_integer(values.type):
        return values
    numbers = np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), np.int64)
    return pc.if_else(pa.array(numbers % width == 0), values, pa.scalar(None, values.type))


def _truncation_ends(values: pa.Array, width: int) -> pa.Array:
    """Return an upper bound of the values that are truncated to each value; null if it is not known."""
    if pa.types.is_integer(values.type):
        maximum = np.iinfo(values.type.to_pandas_dtype()).max
        numbers = np.asarray(pc.fill_null(values, 0).to_numpy(zero_copy_only=False), np.int64)
        ends = np.where(numbers > maximum - width, maximum, numbers + (width - 1))
        return pa.array(ends, values.type, mask=np.asarray(values.is_null()))
    if pa.types.is_string(values.type):
        return pa.array([None if text is None else _successor(text, width) for text in values.to_pylist()], values.type)
    if pa.types.is_decimal(values.type):
        step, limit = (
            Decimal(width - 1).scaleb(-values.type.scale),
            Decimal(10) ** (values.type.precision - values.type.scale),
        )
        with localcontext(prec=_DIGITS):
            sums = [None if value is None else value + step for value in values.to_pylist()]
            return pa.array([None if end is None or end >= limit else end for end in sums], values.type)
    return pa.nulls(len(values), values.type)


def _successor(text: str, width: int) -> str | None:
    """Return a text above all that begin with a text of `width` letters; the text itself if it is shorter."""
    if len(text) < width:
        return text
    for index in range(len(text) - 1, -1, -1):
        point = ord(text[index]) + 1
        if point <= _MAX_CODE_POINT:
            point = _SURROGATES[1] + 1 if _SURROGATES[0] <= point <= _SURROGATES[1] else point
            return text[:index] + chr(point)
    return None


def _time_ends(values: pa.Array, name: str, dtype: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Return the first and the last moment of years, months, days or hours.

    Early writers rounded times before 1970 up: partitions up to 0 may contain values of the previous one.

    Source: `ProjectionUtil.fixInclusiveTimeProjection`.
    """
    numbers = values.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(values.type) else values.cast(pa.int64())
    counts = np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), np.int64)
    firsts = counts - (counts <= 0)
    is_date = pa.types.is_date32(dtype)
    unit = "D" if is_date else dtype.unit
    years = {"year": 1, "month": 12, "day": 366, "hour": 366 * 24}[name] * (
        _MAX_NANO_YEARS if unit == "ns" else _MAX_YEARS
    )
    unknown = np.asarray(values.is_null()) | (np.abs(counts) > years)

    def moments(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        known = np.where(unknown, 0, values)
        return known.astype(f"datetime64[{_CODES[name]}]").astype(f"datetime64[{unit}]").astype(np.int64)

    width = np.int32 if is_date else np.int64
    lower, upper = moments(firsts), moments(counts + 1) - 1
    lower_array, upper_array = (pa.array(ends.astype(width), mask=unknown).view(dtype) for ends in (lower, upper))
    return lower_array, upper_array


def _in_buckets(column: PartitionColumn, name: str, predicate: Predicate) -> npt.NDArray[np.bool_]:
    """Return for each distinct partition whether its bucket is one of the values that a matching row can have."""
    everything = np.ones(len(column.values), np.bool_)
    source = column.source
    if source is None or source.root in ("uuid", "fixed", "binary"):
        return everything
    points = predicate.points(pa.schema([pa.field(name, arrow_type(source))]))
    if points is None or len(points[0]) > _MAX_POINTS:
        return everything
    buckets = {bucket(value, source, column.field.transform.width) for value in points[0]}
    return np.asarray([value is None or value in buckets for value in column.values.to_pylist()], np.bool_)


def bucket(value: pa.Scalar, data_type: IcebergDataType, buckets: int) -> int | None:
    """Return the bucket of a value; None for null.

    Args:
        value: A value in the Arrow type of the column.
        data_type: The type of the column: a number, a time or text.
    """
    content = _bytes(value, data_type)
    return None if content is None else (murmur3(content) & 0x7FFF_FFFF) % buckets


def _bytes(value: pa.Scalar, data_type: IcebergDataType) -> bytes | None:
    if not value.is_valid:
        return None
    if data_type.root == "decimal":
        return _unscale(value.as_py(), data_type.scale)
    if data_type.root == "string":
        text: str = value.as_py()
        return text.encode()
    if data_type.root in ("int", "long"):
        number: int = value.as_py()
    else:
        number = value.cast(pa.int32() if data_type.root == "date" else pa.int64()).as_py()
    if data_type.root.endswith("_ns"):
        number //= 1000
    return number.to_bytes(8, "little", signed=True)


def _unscale(value: Decimal, scale: int) -> bytes:
    with localcontext(prec=_DIGITS):
        return minimal_bytes(int(value.scaleb(scale)))
