"""What the log says of the values in files: rows, least, greatest and number of nulls per column.

Anything may be missing or cut; what is not understood is unknown, so that no file is spared wrongly.

Source: delta PROTOCOL.md, "Per-file Statistics".
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.delta.log.data_types import Field, arrow_type, is_known
from snapshot_explorer.formats.delta.log.records import Metadata
from snapshot_explorer.formats.delta.log.schema import schema_of
from snapshot_explorer.formats.delta.scan import stats_columns
from snapshot_explorer.formats.delta.scan.partitions import Partitions, partitions_of
from snapshot_explorer.formats.delta.scan.stat_bounds import End
from snapshot_explorer.model import Bounds
from snapshot_explorer.visible import logger_of

log = logger_of(__name__)

_FIRST = r'^\{\s*"numRecords"\s*:\s*(?P<rows>\d{1,18})\s*[,}]'
_LONGEST = 1 << 63


def rows_of(files: pa.Table) -> pa.Int64Array:
    """Return for each file how many rows it has, deleted ones included; null where its statistics do not say.

    Args:
        files: ADDS or REMOVES, with or without `stats_parsed`; of CDC nothing is known.
    """
    if "stats" not in files.column_names:
        return pa.nulls(len(files), pa.int64())
    texts = single_chunk(files.column("stats"))
    # Nearly every writer begins with the number of rows: then no JSON needs to be parsed.
    rows = pc.struct_field(pc.extract_regex(texts, _FIRST), "rows").cast(pa.int64())
    late = np.flatnonzero(np.asarray(pc.and_(rows.is_null(), texts.is_valid())))
    if len(late):
        found = [_number(_parsed(text.as_py()).get("numRecords")) for text in texts.take(pa.array(late))]
        rows = _placed(rows, late, pa.array(found, pa.int64()))
    parsed = (
        _part(single_chunk(files.column("stats_parsed")), "numRecords")
        if "stats_parsed" in files.column_names
        else None
    )
    return rows if parsed is None else pc.coalesce(rows, parsed.cast(pa.int64()))


def _placed(values: pa.Array, places: np.ndarray, new: pa.Array) -> pa.Array:
    """Return values with others at some places."""
    source = np.arange(len(values))
    source[places] = len(values) + np.arange(len(new))
    return pa.concat_arrays([values, new]).take(pa.array(source))


def _parsed(text: str, *, exactly: bool = False) -> Mapping[str, Any]:
    """Return statistics as a mapping; an empty one for what is none.

    Args:
        text: JSON.
        exactly: Keep numbers with a fraction as text.
    """
    import json  # noqa: PLC0415 - only decimals need it

    try:
        found = json.loads(text, parse_float=str) if exactly else orjson.loads(text)
    except (ValueError, RecursionError) as error:
        # The rows do not depend on them.
        log.warning("statistics that are no JSON are not used: %s", error)
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: object) -> int | None:
    """Return a count, which foreign writers may give as text."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LONGEST
    return value if is_count and isinstance(value, int) else None


def with_statistics(frame: pa.Table, adds: pa.Table, metadata: Metadata) -> pa.Table:
    """Return the FILES frame with `lower`, `upper` and `null_count`: structs with a field per column of the table.

    Columns are called as users call them. Null is unknown: no statistics, a type without order, a struct. Bounds of
    text may be cut: the least is at most the real one, the greatest at least; so it is with files of which rows were
    deleted. Partition columns have their one value.
    """
    known = bounds_of(adds, metadata)
    for name, values in (("lower", known.lower), ("upper", known.upper), ("null_count", known.null_count)):
        columns = [single_chunk(column) for column in values.columns]
        whole = (
            pa.StructArray.from_arrays(columns, fields=[pa.field(f.name, f.type) for f in values.schema])
            if columns
            else pa.array([{}] * len(adds), pa.struct([]))
        )
        frame = frame.append_column(name, pa.chunked_array([whole]))
    return frame


def bounds_of(adds: pa.Table, metadata: Metadata) -> Bounds:
    """Return what the log says of the values of columns in files, as `with_statistics` describes it.

    Columns of types that are not read are left out.

    Raises:
        CorruptTableError: The schema or a partition value is damaged.
    """
    schema = schema_of(metadata)
    fields = [field for field in schema.fields if is_known(field.type)]
    return bounds(adds, fields, rows_of(adds), partitions_of(adds, schema))


def bounds(
    adds: pa.Table, fields: Sequence[Field], rows: pa.Int64Array, partitions: Partitions, *, careful: bool = False
) -> Bounds:
    """Return what the log says of the values of some columns in files.

    Args:
        adds: ADDS.
        fields: The columns.
        rows: What `rows_of` says of them.
        partitions: Their partitions.
        careful: Widen bounds that a writer may have rounded.
    """
    in_files = [field for field in fields if field.name not in partitions.values.column_names]
    columns = _Columns(adds, in_files, rows, careful=careful)
    lower, upper, nulls = {}, {}, {}
    for field in fields:
        if field.name in partitions.values.column_names:
            values = partitions.values.column(field.name).take(pa.array(partitions.of_rows))
            count = pc.if_else(pc.is_null(values), rows, pa.scalar(0, pa.int64()))
            lower[field.name], upper[field.name], nulls[field.name] = values, values, count
        else:
            lower[field.name], upper[field.name], nulls[field.name] = columns.of(field)
    return Bounds(lower=_table(lower, rows), upper=_table(upper, rows), null_count=_table(nulls, rows), rows=rows)


def _table(columns: Mapping[str, pa.Array], rows: pa.Array) -> pa.Table:
    return pa.table(dict(columns)) if columns else pa.table({"rows": rows}).select([])


class _Columns:
    """The statistics of files, parsed once for all columns asked for."""

    def __init__(self, adds: pa.Table, fields: Sequence[Field], rows: pa.Int64Array, *, careful: bool) -> None:
        self._rows = rows
        self._careful = careful
        texts = single_chunk(adds.column("stats"))
        self._has_text = texts.is_valid()
        is_plain = fields and all(stats_columns.is_exact(field) or not careful for field in fields)
        self._fast = stats_columns.parsed(texts, fields) if is_plain else None
        self._slow: Sequence[Mapping[str, Any]] = ()
        if self._fast is None:
            exactly = any(not stats_columns.is_exact(field) for field in fields)
            listed = texts.to_pylist() if fields else [None] * len(adds)
            self._slow = [{} if text is None else _parsed(text, exactly=exactly) for text in listed]
        self._stored = single_chunk(adds.column("stats_parsed")) if "stats_parsed" in adds.column_names else None

    def of(self, field: Field) -> tuple[pa.Array, pa.Array, pa.Array]:
        """Return least, greatest and number of nulls of a column."""
        least, greatest = (
            self._ends(name, End(field=field, is_upper=is_upper, careful=self._careful))
            for name, is_upper in (("minValues", False), ("maxValues", True))
        )
        return least, greatest, self._null_counts(field)

    def _ends(self, name: str, end: End) -> pa.Array:
        kind = arrow_type(end.field.type)
        stored = end.field.stored
        if not end.is_known:
            return pa.nulls(len(self._rows), kind)
        fast = _part(self._fast, name, stored)
        if fast is None:
            found = pa.array([end.parsed(_of(stats, name, stored)) for stats in self._texts()], kind)
        else:
            found = end.converted(fast)
        parsed = _part(self._stored, name, stored)
        return found if parsed is None else pc.if_else(self._has_text, found, end.converted(parsed))

    def _texts(self) -> Sequence[Mapping[str, Any]]:
        return self._slow or [{}] * len(self._rows)

    def _null_counts(self, field: Field) -> pa.Array:
        found = _part(self._fast, "nullCount", field.stored)
        if found is None:
            counts = [_number(_of(stats, "nullCount", field.stored)) for stats in self._texts()]
            found = pa.array(counts, pa.int64())
        found = pc.if_else(pc.less(found, 0), pa.scalar(None, pa.int64()), found)
        tight = _part(self._fast, "tightBounds")
        if tight is None:
            tight = pa.array([stats.get("tightBounds") is not False for stats in self._texts()], pa.bool_())
        stored = _part(self._stored, "nullCount", field.stored)
        if stored is not None and pa.types.is_integer(stored.type):
            found = pc.if_else(self._has_text, found, stored.cast(pa.int64()))
        flags = _part(self._stored, "tightBounds")
        if flags is not None and pa.types.is_boolean(flags.type):
            tight = pc.if_else(self._has_text, tight, flags)
        # With deleted rows only none and all mean what they say.
        meant = [pc.fill_null(tight, True), pc.equal(found, 0), pc.equal(found, self._rows)]  # noqa: FBT003 - pyarrow's
        sure = functools.reduce(pc.or_, (pc.fill_null(one, False) for one in meant))  # noqa: FBT003
        return pc.if_else(sure, found, pa.scalar(None, pa.int64()))


def _part(values: pa.Array | None, *path: str) -> pa.Array | None:
    """Return the field of a struct at a path; None where there is none."""
    for name in path:
        if values is None or not pa.types.is_struct(values.type) or values.type.get_field_index(name) < 0:
            return None
        values = pc.struct_field(values, [values.type.get_field_index(name)])
    return values


def _of(stats: Mapping[str, Any], name: str, column: str) -> object:
    values = stats.get(name)
    return values.get(column) if isinstance(values, dict) else None
