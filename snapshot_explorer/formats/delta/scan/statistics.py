"""Statistics of files in the log: rows, and minimum, maximum and null count per column.

Anything may be missing or truncated. Invalid values count as unknown, so that no file is skipped wrongly.

Source: delta PROTOCOL.md, "Per-file Statistics".
"""

import functools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.delta.files.columns import Origin, conform
from snapshot_explorer.formats.delta.metadata.data_types import DeltaField, arrow_type, is_known
from snapshot_explorer.formats.delta.metadata.partitions import DeltaPartitions, micros, partitions_of
from snapshot_explorer.formats.delta.metadata.records import Metadata
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema, schema_of
from snapshot_explorer.formats.spatial import SPATIAL
from snapshot_explorer.formats.statistics import bounds_from, table_of

log = logger_of(__name__)

_FIRST = r'^\{\s*"numRecords"\s*:\s*(?P<rows>\d{1,18})\s*[,}]'
_LONGEST = 1 << 63
_CUT = "\ufffd"
_MAX_CHARACTER = "\U0010ffff"
_FLOAT_DIGITS = 15
"""Decimals with up to this many digits survive a writer that converts them to floating point numbers."""
_DIGITS = 76
_MILLI = 999
"""Microseconds by which the maximum of a timestamp may have been truncated."""
_DATE_LENGTH = 10
_DAY_MICROS = 86_400_000_000
_LOST_DAYS = (-141_438, -141_426)
"""1582-10-04 to 1582-10-15: the days that the old calendar lacks, and one more at each end for zones."""
_MAXIMA = {"float": float(np.finfo(np.float32).max), "double": float(np.finfo(np.float64).max)}
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_ANYWHERE = Origin(path="_delta_log", mode="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A bound of a column."""

    field: DeltaField
    is_upper: bool
    careful: bool
    """Whether to allow for writers that round decimals."""

    @property
    def is_known(self) -> bool:
        """Whether the statistics bound the column's values.

        A float of 32 bits is written with fewer digits than the same number of 64 bits, so after a column was widened,
        the written bound may be on either side of the value. Bounds of a char(n) lack its spaces.
        """
        widened = self.field.type.root == "double" and any(change.before == "float" for change in self.field.changes)
        is_whole = self.field.type.char_length is None and self.field.collation is None
        return self.field.type.root in _PARSERS and is_whole and not widened

    def parse_value(self, value: object) -> object:
        """Return a JSON value as a value of the column; None if it is not valid."""
        if value is None or value is True or value is False:
            return None
        try:
            return _PARSERS[self.field.type.root](value, self)
        except (ValueError, TypeError, ArithmeticError):
            return None

    def convert_values(self, values: pa.Array) -> pa.Array:
        """Return a checkpoint's values as values of the column; null where not valid."""
        data_type = self.field.type
        if data_type.root in _BITS and values.type == arrow_type(data_type):
            return values
        if self.careful and data_type.root == "decimal" and data_type.precision > _FLOAT_DIGITS:
            return pa.nulls(len(values), arrow_type(data_type))
        try:
            result = conform(values, data_type, _ANYWHERE)
        except (SnapshotExplorerError, pa.ArrowException):
            return pa.nulls(len(values), arrow_type(data_type))
        if data_type.root in ("float", "double"):
            return pc.if_else(pc.is_finite(result), result, pa.scalar(None, result.type))
        if data_type.root == "string" and self.is_upper and pc.any(pc.ends_with(result, _CUT)).as_py():
            return pa.array([self.parse_value(value) for value in result.to_pylist()], result.type)
        if data_type.root in ("timestamp", "timestamp_ntz") and self.is_upper:
            return pc.add(result.cast(pa.int64()), _MILLI).cast(result.type)
        return result


def _integer(value: object, end: End) -> int | None:
    number = int(value) if isinstance(value, int | str) else None
    limit = 1 << (_BITS[end.field.type.root] - 1)
    return number if number is not None and -limit <= number < limit else None


def _float(value: object, end: End) -> float | None:
    """Return a number; None for NaN and infinities, which are stored as text and may stand for any value."""
    number = float(value) if isinstance(value, int | float | str) else np.nan
    return number if abs(number) <= _MAXIMA[end.field.type.root] else None


def _decimal(value: object, end: End) -> Decimal | None:
    data_type = end.field.type
    with localcontext(prec=_DIGITS, Emin=-1000, Emax=1000):
        number = Decimal(str(value))
        if end.careful and data_type.precision > _FLOAT_DIGITS and Decimal(repr(float(number))) == number:
            step = abs(number) * Decimal(2) ** -52
            number += step if end.is_upper else -step
        rounding = ROUND_CEILING if end.is_upper else ROUND_FLOOR
        number = number.quantize(Decimal(1).scaleb(-data_type.scale), rounding=rounding)
        return number if abs(number) < Decimal(10) ** (data_type.precision - data_type.scale) else None


def _text(value: object, end: End) -> str | None:
    """Return a text. Older writers end a truncated maximum with U+FFFD, which is not an upper bound."""
    if not isinstance(value, str):
        return None
    if end.is_upper and value.endswith(_CUT):
        value = value.rstrip(_CUT + "?") + _MAX_CHARACTER
    value.encode()
    return value


def _timestamp(value: object, end: End) -> int | None:
    if not isinstance(value, str):
        return None
    moment, has_zone = micros(value)
    if end.field.type.root == "timestamp" and not has_zone:
        return None
    return moment + _MILLI if end.is_upper else moment


_PARSERS: Mapping[str, Callable[[object, End], object]] = {
    **dict.fromkeys(_BITS, _integer),
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "string": _text,
    "date": lambda value, _: (
        date.fromisoformat(value) if isinstance(value, str) and len(value) == _DATE_LENGTH else None
    ),
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
}


def rows_of(files: pa.Table) -> pa.Int64Array:
    """Return the number of rows of each file, including deleted ones; null if its statistics omit it.

    Args:
        files: ADDS or REMOVES, with or without `stats_parsed`; CDC has no statistics.
    """
    if "stats" not in files.column_names:
        return pa.nulls(len(files), pa.int64())
    texts = single_chunk(files.column("stats"))
    # Nearly every writer starts with the number of rows: then no JSON is parsed.
    rows = pc.struct_field(pc.extract_regex(texts, _FIRST), "rows").cast(pa.int64())
    late = np.flatnonzero(np.asarray(pc.and_(rows.is_null(), texts.is_valid())))
    if len(late):
        counts = [_number(_parse(text.as_py()).get("numRecords")) for text in texts.take(pa.array(late))]
        rows = _placed(rows, late, pa.array(counts, pa.int64()))
    parsed = (
        _part(single_chunk(files.column("stats_parsed")), "numRecords")
        if "stats_parsed" in files.column_names
        else None
    )
    return rows if parsed is None else pc.coalesce(rows, parsed.cast(pa.int64()))


def _placed(values: pa.Array, indices: np.ndarray, new: pa.Array) -> pa.Array:
    source = np.arange(len(values))
    source[indices] = len(values) + np.arange(len(new))
    return pa.concat_arrays([values, new]).take(pa.array(source))


def _parse(text: str, *, exactly: bool = False) -> Mapping[str, Any]:
    """Return statistics as a mapping; empty if they are not valid.

    Args:
        text: JSON.
        exactly: Keep numbers with a fraction as text.
    """
    import json  # noqa: PLC0415 - only decimals need it

    if not text:
        return {}
    try:
        result = json.loads(text, parse_float=str) if exactly else orjson.loads(text)
    except (ValueError, RecursionError) as error:
        # Rows do not depend on statistics, and every file has statistics.
        log.debug("statistics that cannot be parsed are not used: %s", error)
        return {}
    return result if isinstance(result, dict) else {}


def _number(value: object) -> int | None:
    """Return a count, which some writers store as text."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LONGEST
    return value if is_count and isinstance(value, int) else None


def bounds_in(adds: pa.Table, names: Sequence[str], schema: DeltaSchema, written: DeltaSchema) -> Bounds:
    """Return bounds of columns of a schema in files that were added under another schema of the table.

    Bounds that a writer may have rounded are widened. Bounds of columns that had another type are unknown. All bounds
    are unknown if the table had other partition columns.
    """
    chosen = frozenset(names)
    fields = [field for field in schema.fields if field.name in chosen and is_known(field.type)]
    rows = rows_of(adds)
    is_partitioned_alike = schema.partition_fields == written.partition_fields
    types = {field.stored: field.type.root for field in written.fields} if is_partitioned_alike else {}
    alike = [field for field in fields if _is_like(types.get(field.stored), field.type.root)]
    nowhere = DeltaPartitions(of_rows=np.zeros(len(adds), np.int64), values=table_of({}, 1), texts=())
    known = bounds(adds, alike, rows, partitions_of(adds, schema) if is_partitioned_alike else nowhere, careful=True)
    columns = {}
    for field in fields:
        if field in alike:
            ends = (known.lower, known.upper, known.null_count)
            lower, upper, nulls = (values.column(field.name) for values in ends)
        else:
            lower = upper = pa.nulls(len(adds), arrow_type(field.type))
            nulls = pa.nulls(len(adds), pa.int64())
        columns[field.name] = lower, upper, nulls
    return bounds_from(columns, rows)


def _is_like(written: str | None, read: str) -> bool:
    """Return whether bounds of a column with a former type are valid bounds with its current type."""
    return written == read or (written in _BITS and read in _BITS)


def bounds_of(adds: pa.Table, metadata: Metadata) -> Bounds:
    """Return the statistics of columns in files, under their logical names.

    Null is unknown: no statistics, a type without order, a struct. Bounds of text may be truncated: the minimum is then
    a lower bound, the maximum an upper bound. The same applies to bounds of files with deleted rows. Both bounds of a
    partition column are its only value. Columns of types that are not read are left out.
    """
    schema = schema_of(metadata)
    fields = [field for field in schema.fields if is_known(field.type)]
    return bounds(adds, fields, rows_of(adds), partitions_of(adds, schema))


def bounds(
    adds: pa.Table,
    fields: Sequence[DeltaField],
    rows: pa.Int64Array,
    partitions: DeltaPartitions,
    *,
    careful: bool = False,
) -> Bounds:
    """Return the bounds of some columns in files.

    Args:
        adds: ADDS.
        rows: The result of `rows_of`.
        careful: Widen bounds that a writer may have rounded.
    """
    of_partitions = frozenset(partitions.values.column_names)
    in_files = [field for field in fields if field.name not in of_partitions]
    columns = _Columns(adds, in_files, rows, careful=careful)
    known = {field.name: columns.of(field) for field in in_files}
    for name in of_partitions.intersection(field.name for field in fields):
        values = partitions.values.column(name).take(pa.array(partitions.of_rows))
        known[name] = values, values, pc.if_else(pc.is_null(values), rows, pa.scalar(0, pa.int64()))
    return bounds_from({field.name: known[field.name] for field in fields}, rows)


class _Columns:
    """The statistics of files, parsed once for all requested columns."""

    def __init__(self, adds: pa.Table, fields: Sequence[DeltaField], rows: pa.Int64Array, *, careful: bool) -> None:
        self._rows = rows
        self._careful = careful
        texts = single_chunk(adds.column("stats"))
        self._has_text = texts.is_valid()
        is_plain = fields and all(is_exact(field) or not careful for field in fields)
        self._fast = parse_columns(texts, fields) if is_plain and len(texts) > _FEW else None
        slow: Sequence[Mapping[str, Any]] = [{}] * len(adds)
        if self._fast is None:
            exactly = any(not is_exact(field) for field in fields)
            listed = texts.to_pylist() if fields else [None] * len(adds)
            slow = [{} if text is None else _parse(text, exactly=exactly) for text in listed]
        self._slow = slow
        stored = single_chunk(adds.column("stats_parsed")) if "stats_parsed" in adds.column_names else None
        self._fast_parts, self._stored_parts = _flatten(self._fast), _flatten(stored)
        self._are_tight = self._tight(slow, _part(stored, "tightBounds"))

    @functools.cached_property
    def _slow_parts(self) -> Mapping[str, Sequence[Mapping[str, object]]]:
        return {name: [_object(stats.get(name)) for stats in self._slow] for name in (*_ENDS, "nullCount")}

    def of(self, field: DeltaField) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return minimum, maximum and null count of a column."""
        if not len(self._rows):
            nothing = pa.nulls(0, arrow_type(field.type))
            return nothing, nothing, pa.nulls(0, pa.int64())
        minimum, maximum = (
            self._ends(name, End(field=field, is_upper=is_upper, careful=self._careful))
            for name, is_upper in (("minValues", False), ("maxValues", True))
        )
        return minimum, maximum, self._null_counts(field)

    def _ends(self, name: str, end: End) -> pa.Array:
        stored = end.field.stored
        if not end.is_known:
            return pa.nulls(len(self._rows), arrow_type(end.field.type))
        fast = self._fast_parts[name].get(stored)
        if fast is None:
            parsed_texts = [end.parse_value(values.get(stored)) for values in self._slow_parts[name]]
            from_texts = pa.array(parsed_texts, arrow_type(end.field.type))
        else:
            from_texts = end.convert_values(fast)
        parsed = self._stored_parts[name].get(stored)
        return _without_lost_days(
            from_texts if parsed is None else pc.if_else(self._has_text, from_texts, end.convert_values(parsed))
        )

    def _null_counts(self, field: DeltaField) -> pa.Array:
        fast = self._fast_parts["nullCount"].get(field.stored)
        if fast is None:
            counts = [_number(values.get(field.stored)) for values in self._slow_parts["nullCount"]]
            result = pa.array(counts, pa.int64())
        else:
            result = pc.if_else(pc.less(fast, 0), pa.scalar(None, pa.int64()), fast)
        stored = self._stored_parts["nullCount"].get(field.stored)
        if stored is not None and pa.types.is_integer(stored.type):
            result = pc.if_else(self._has_text, result, stored.cast(pa.int64()))
        if self._are_tight is None:
            return result
        # After deletes, only null counts of no row and of all rows are exact.
        meant = [self._are_tight, pc.equal(result, 0), pc.equal(result, self._rows)]
        sure = functools.reduce(pc.or_, (pc.fill_null(item, False) for item in meant))  # noqa: FBT003 - pyarrow's
        return pc.if_else(sure, result, pa.scalar(None, pa.int64()))

    def _tight(self, slow: Sequence[Mapping[str, Any]], flags: pa.Array | None) -> pa.Array | None:
        """Return for each file whether its bounds are exact; None if all are."""
        tight = _part(self._fast, "tightBounds")
        if tight is None:
            tight = pa.array([stats.get("tightBounds") is not False for stats in slow], pa.bool_())
        if flags is not None and pa.types.is_boolean(flags.type):
            tight = pc.if_else(self._has_text, tight, flags)
        tight = pc.fill_null(tight, True)  # noqa: FBT003 - pyarrow's
        return None if pc.all(tight, min_count=0).as_py() else tight


def _part(values: pa.Array | None, *path: str) -> pa.Array | None:
    for name in path:
        if values is None or not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return None
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    return values


def _flatten(values: pa.Array | None) -> Mapping[str, Mapping[str, pa.Array]]:
    """Return for each kind of statistics the arrays of its columns, by name, without duplicate names."""
    result: dict[str, dict[str, pa.Array]] = {}
    for name in (*_ENDS, "nullCount"):
        part = _part(values, name)
        if part is None or not pa.types.is_struct(part.type):
            result[name] = {}
            continue
        names, arrays = [field.name for field in part.type], part.flatten()
        result[name] = dict(zip(names, arrays, strict=True))
        for item, count in Counter(names).items() if len(result[name]) < len(names) else ():
            if count > 1:
                del result[name][item]
    return result


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


_ENDS = ("minValues", "maxValues")
_BLOCK = 1 << 22
_FEW = 32
"""The number of texts up to which parsing them one by one is faster."""
_AT_ONCE = 50_000
"""The number of texts that are parsed together."""
_EXACT_DIGITS = 15


def parse_columns(texts: pa.Array, fields: Sequence[DeltaField]) -> pa.StructArray | None:
    """Return statistics as a struct like `stats_parsed`, with the types of the table; None if they are not valid.

    Args:
        texts: JSON; null becomes null.
        fields: The columns, under their stored names.
    """
    present = texts.drop_null()
    if not len(present) or not pc.all(pc.and_(pc.starts_with(present, "{"), pc.ends_with(present, "}"))).as_py():
        return None
    parts = []
    for start in range(0, len(present), _AT_ONCE):
        part = _parse_batch(present.slice(start, _AT_ONCE), fields)
        if part is None:
            return None
        parts.append(part)
    indices = pc.subtract(pc.cumulative_sum(texts.is_valid().cast(pa.int64())), 1)
    return pa.concat_arrays(parts).take(pc.if_else(texts.is_valid(), indices, None))


def _parse_batch(texts: pa.Array, fields: Sequence[DeltaField]) -> pa.StructArray | None:
    import pyarrow.json as pj  # noqa: PLC0415 - only conditions and statistics need it

    longest = pc.max(pc.binary_length(texts)).as_py()
    try:
        together = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts), "\n")
        lines = together[0].as_buffer().to_pybytes()
        if lines.count(b"\n") >= len(texts) or b"\r" in lines:
            return None  # a text of several lines would be several rows
        json = pj.read_json(
            pa.BufferReader(lines),
            # A block is allocated whole, and few lines are parsed in less time than threads need to start.
            read_options=pj.ReadOptions(
                block_size=min(max(_BLOCK, 2 * longest), len(lines) + 1), use_threads=len(lines) > _BLOCK
            ),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(_schema(fields)), unexpected_field_behavior="ignore"
            ),
        )
        json.validate(full=True)
        return _convert_types(json, fields) if len(json) == len(texts) else None
    except (pa.ArrowException, UnicodeError):
        return None


def _schema(fields: Sequence[DeltaField]) -> list[pa.Field]:
    ordered = [pa.field(field.stored, _json_type(field)) for field in fields if _is_ordered(field)]
    counted = [
        pa.field(field.stored, pa.int64()) for field in fields if field.type.root not in ("struct", "variant", "void")
    ]
    return [
        pa.field("tightBounds", pa.bool_()),
        *(pa.field(name, pa.struct(ordered)) for name in _ENDS),
        pa.field("nullCount", pa.struct(counted)),
    ]


def _without_lost_days(values: pa.Array) -> pa.Array:
    """Return bounds of columns; dates and times of days that the old calendar lacks are null.

    Spark's mode LEGACY writes 1582-10-05 to 1582-10-14 as the 15th, and Delta records what was inserted.

    Source: spark RebaseDateTime.rebaseGregorianToJulianDays.
    """
    is_time = pa.types.is_timestamp(values.type)
    if not is_time and not pa.types.is_date32(values.type):
        return values
    numbers = values.view(pa.int64() if is_time else pa.int32())
    first, last = (pa.scalar(day * (_DAY_MICROS if is_time else 1), numbers.type) for day in _LOST_DAYS)
    is_lost = pc.and_(pc.greater_equal(numbers, first), pc.less(numbers, last))
    return pc.if_else(is_lost, pa.scalar(None, values.type), values)


def _is_ordered(field: DeltaField) -> bool:
    return field.type.root not in ("boolean", "binary", "array", "map", "struct", "variant", "void", *SPATIAL)


def _json_type(field: DeltaField) -> pa.DataType:
    root = field.type.root
    if root in ("byte", "short", "integer", "long"):
        return pa.int64()
    if root in ("float", "double"):
        return pa.float64()
    return arrow_type(field.type) if root == "decimal" else pa.string()


def is_exact(field: DeltaField) -> bool:
    """Return whether all texts of a column are exact: a writer may round decimals of many digits."""
    return field.type.root != "decimal" or field.type.precision <= _EXACT_DIGITS


def _convert_types(statistics: pa.Table, fields: Sequence[DeltaField]) -> pa.StructArray:
    """Return the table's rows as a struct, minima and maxima in the types of the columns.

    Raises:
        pyarrow.ArrowException: A value is not of its column's type.
    """
    columns = [statistics.column("tightBounds")]
    ordered = [field for field in fields if _is_ordered(field)]
    for name in _ENDS:
        ends = single_chunk(statistics.column(name))
        parts = ends.flatten() if ordered else ()
        values = [part.cast(arrow_type(field.type)) for part, field in zip(parts, ordered, strict=True)]
        children = [pa.field(field.stored, value.type) for field, value in zip(ordered, values, strict=True)]
        columns.append(pa.StructArray.from_arrays(values, fields=children) if values else pa.nulls(len(statistics)))
    columns.append(statistics.column("nullCount"))
    names = ["tightBounds", *_ENDS, "nullCount"]
    return pa.StructArray.from_arrays([single_chunk(column) for column in columns], names=names)
