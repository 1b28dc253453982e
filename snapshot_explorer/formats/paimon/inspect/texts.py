"""Text in the form of Paimon's system tables: partitions, keys, statistics, durations."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pyarrow as pa

from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, type_text
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.metadata.value_texts import legacy_text, sql_text

_UNORDERED = ("ARRAY", "MAP", "MULTISET", "ROW", "VARIANT", "BLOB", "VECTOR")
_NULL = "null"


def braced_texts(texts: Sequence[str | None]) -> str:
    """Return values as Paimon casts a ROW to text: `{2026-11-01, null}`."""
    return "{" + ", ".join(_NULL if text is None else text for text in texts) + "}"


def row_texts(rows: pa.ChunkedArray | pa.Array, fields: Sequence[PaimonField]) -> list[str | None]:
    """Return a column of BinaryRows as text such as `{2026-11-01, null}`; None for a null row.

    Source: paimon CastExecutors, RowToStringCastRule.
    """
    values = binary_row.decode(rows, fields, lenient=True)
    columns = [sql_text(values.column(index), field.type) for index, field in enumerate(fields)]
    present = rows.is_valid().to_pylist()
    return [
        braced_texts([column[row] for column in columns]) if is_present else None
        for row, is_present in enumerate(present)
    ]


def partition_paths(partitions: PaimonPartitions, options: Mapping[str, str]) -> list[str]:
    """Return the distinct partitions as `k=v/k2=v2`, unescaped; empty for a table without partitions.

    Null and blank values share a folder: both are `partition.default-name`.

    Source: paimon PartitionsTable, InternalRowPartitionComputer.
    """
    nothing = options.get("partition.default-name", "__DEFAULT_PARTITION__")
    return [
        "/".join(f"{name}={value if value and value.strip() else nothing}" for name, value in partition.items())
        for partition in partitions.texts
    ]


def key_texts(keys: pa.ChunkedArray, schema: PaimonSchema) -> list[str | None]:
    """Return a column of minimum or maximum keys as `[a, 2026-11-01T00:00]`, as Java prints their internal values.

    Source: paimon FilesTable; java.util.Arrays.toString.
    """
    fields = [schema.field(name) for name in schema.trimmed_primary_keys]
    if not fields:
        return [None] * len(keys)
    values = binary_row.decode(keys, fields, lenient=True)
    columns = [java_texts(values.column(index), field.type) for index, field in enumerate(fields)]
    return [
        "[" + ", ".join(_NULL if text is None else text for text in texts) + "]" for texts in zip(*columns, strict=True)
    ]


def java_texts(values: pa.ChunkedArray | pa.Array, data_type: PaimonDataType) -> list[str | None]:
    """Return values as Java prints Paimon's internal form: a DATE as days, a TIMESTAMP as `2026-11-01T00:00`.

    Bytes are hexadecimal, although Java prints their address; values of unordered types are None.
    """
    if data_type.root in _UNORDERED:
        return [None] * len(values)
    if data_type.root in ("BINARY", "VARBINARY"):
        return sql_text(values, data_type)
    return legacy_text(values, data_type)


def map_texts(names: Sequence[str], columns: Sequence[Sequence[str | None]], rows: int) -> list[str]:
    """Return a text per row, `{a=1, b=null}`, with the names in the order of Java's strings."""
    # Java orders strings by their UTF-16 units.
    order = sorted(range(len(names)), key=lambda index: names[index].encode("utf-16-be"))
    return [
        "{"
        + ", ".join(f"{names[index]}={_NULL if (text := columns[index][row]) is None else text}" for index in order)
        + "}"
        for row in range(rows)
    ]


def format_iso_duration(span: timedelta | None) -> str | None:
    """Return a duration as Java prints it, such as `PT36H` or `PT1H0.5S`; days are hours.

    Source: java.time.Duration.toString.
    """
    if span is None:
        return None
    micros = span // timedelta(microseconds=1)
    sign, micros = ("-" if micros < 0 else ""), abs(micros)
    minutes, rest = divmod(micros, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest // 1_000_000}.{rest % 1_000_000:06d}".rstrip("0").rstrip(".")
    parts = [
        f"{sign}{hours}H" if hours else "",
        f"{sign}{minutes}M" if minutes else "",
        f"{sign}{seconds}S" if rest else "",
    ]
    return "PT" + ("".join(parts) or "0S")


def java_type(data_type: PaimonDataType) -> str:
    """Return a type as Paimon prints it in SQL, with NOT NULL, and with quoted names of nested fields.

    Source: paimon DataType.asSQLString.
    """
    plain = _java_type(data_type)
    return plain if data_type.nullable else f"{plain} NOT NULL"


def _java_type(data_type: PaimonDataType) -> str:
    if data_type.root == "ROW":
        fields = (
            f"`{field.name}` {java_type(field.type)}" + (f" '{_quote(field.description)}'" if field.description else "")
            for field in data_type.fields
        )
        return f"ROW<{', '.join(fields)}>"
    if data_type.root == "VECTOR" and data_type.element:
        return f"VECTOR<{java_type(data_type.element)}, {data_type.length}>"
    if data_type.element:
        return f"{data_type.root}<{', '.join(java_type(part) for part in data_type.parts)}>"
    if data_type.root == "TIMESTAMP_LTZ":
        return f"TIMESTAMP({data_type.precision}) WITH LOCAL TIME ZONE"
    return type_text(data_type)


def _quote(text: str) -> str:
    return text.replace("'", "''")
