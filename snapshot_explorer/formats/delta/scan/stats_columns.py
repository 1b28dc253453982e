"""Statistics as JSON text parsed straight into Arrow columns, all files at once.

What Arrow's parser and casts do not take exactly is left to who looks at each text: then there are no columns.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.delta.log.data_types import Field, arrow_type

_ENDS = ("minValues", "maxValues")
_BLOCK = 1 << 22
_AT_ONCE = 50_000
"""Texts that are parsed at the same time."""
_EXACT_DIGITS = 15


def parsed(texts: pa.Array, fields: Sequence[Field]) -> pa.StructArray | None:
    """Return statistics as a struct like `stats_parsed`, with the types of the table; None where they are odd.

    Args:
        texts: JSON; null gives null.
        fields: The columns wanted, under their stored names.
    """
    there = texts.drop_null()
    # A text of several lines would be several rows.
    is_line = pc.and_(pc.starts_with(there, "{"), pc.ends_with(there, "}"))
    is_broken = pc.or_(pc.match_substring(there, "\n"), pc.match_substring(there, "\r"))
    if not len(there) or not pc.all(pc.and_not(is_line, is_broken)).as_py():
        return None
    parts = []
    for start in range(0, len(there), _AT_ONCE):
        part = _part(there.slice(start, _AT_ONCE), fields)
        if part is None:
            return None
        parts.append(part)
    places = pc.subtract(pc.cumulative_sum(texts.is_valid().cast(pa.int64())), 1)
    return pa.concat_arrays(parts).take(pc.if_else(texts.is_valid(), places, None))


def _part(texts: pa.Array, fields: Sequence[Field]) -> pa.StructArray | None:
    import pyarrow.json as pj  # noqa: PLC0415 - only conditions and statistics need it

    longest = pc.max(pc.binary_length(texts)).as_py()
    try:
        found = pj.read_json(
            pa.BufferReader("\n".join(texts.to_pylist()).encode()),
            read_options=pj.ReadOptions(block_size=max(_BLOCK, 2 * longest)),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(_schema(fields)), unexpected_field_behavior="ignore"
            ),
        )
        found.validate(full=True)
        return _typed(found, fields) if len(found) == len(texts) else None
    except (pa.ArrowException, UnicodeError):
        return None


def _schema(fields: Sequence[Field]) -> list[pa.Field]:
    """Return what the parser is to look for."""
    ordered = [pa.field(field.stored, _spelled(field)) for field in fields if _is_ordered(field)]
    counted = [pa.field(field.stored, pa.int64()) for field in fields if _is_counted(field)]
    return [
        pa.field("tightBounds", pa.bool_()),
        *(pa.field(name, pa.struct(ordered)) for name in _ENDS),
        pa.field("nullCount", pa.struct(counted)),
    ]


def _is_ordered(field: Field) -> bool:
    return field.type.root not in ("boolean", "binary", "array", "map", "struct", "variant", "void")


def _is_counted(field: Field) -> bool:
    return field.type.root not in ("struct", "variant", "void")


def _spelled(field: Field) -> pa.DataType:
    """Return the type in which JSON has values of a column."""
    root = field.type.root
    if root in ("byte", "short", "integer", "long"):
        return pa.int64()
    if root in ("float", "double"):
        return pa.float64()
    return arrow_type(field.type) if root == "decimal" else pa.string()


def is_exact(field: Field) -> bool:
    """Return whether all texts of a column say what they mean: a writer may round decimals of many digits."""
    return field.type.root != "decimal" or field.type.precision <= _EXACT_DIGITS


def _typed(found: pa.Table, fields: Sequence[Field]) -> pa.StructArray:
    """Return the table's rows as a struct, least and greatest values in the types of the columns.

    Raises:
        pyarrow.ArrowException: A value is none of its column.
    """
    columns = [found.column("tightBounds")]
    ordered = [field for field in fields if _is_ordered(field)]
    for name in _ENDS:
        ends = single_chunk(found.column(name))
        values = [pc.struct_field(ends, [place]).cast(arrow_type(field.type)) for place, field in enumerate(ordered)]
        kinds = [pa.field(field.stored, value.type) for field, value in zip(ordered, values, strict=True)]
        columns.append(pa.StructArray.from_arrays(values, fields=kinds) if values else pa.nulls(len(found)))
    columns.append(found.column("nullCount"))
    names = ["tightBounds", *_ENDS, "nullCount"]
    return pa.StructArray.from_arrays([single_chunk(column) for column in columns], names=names)
