"""The partitions of manifest entries: typed values, text and folders, computed once per distinct partition."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType
from snapshot_explorer.formats.paimon.metadata.layout import bucket_folders, data_path
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonPartitions:
    """The distinct partitions of a set of entries."""

    of_rows: pa.Array
    """For each entry, the index of its partition among the distinct ones."""
    values: pa.Table
    """The distinct partitions, a typed column per partition key."""
    texts: tuple[Mapping[str, str | None], ...]
    """The distinct partitions as text, in SQL's form; None for null."""

    def where(self, kept: npt.NDArray[np.bool_]) -> "PaimonPartitions":
        """Return the partitions of the selected entries."""
        return replace(self, of_rows=self.of_rows.filter(pa.array(kept)))

    def column(self) -> pa.Array:
        """Return the entries' partitions as a map column."""
        return pa.array([list(text.items()) for text in self.texts], frames.PARTITION).take(self.of_rows)


def partitions_of(rows: pa.ChunkedArray | pa.Array, schema: PaimonSchema) -> PaimonPartitions:
    """Return the partitions of a column of BinaryRows."""
    encoded = single_chunk(rows).dictionary_encode()
    fields = [schema.field(name) for name in schema.partition_keys]
    values = binary_row.decode(encoded.dictionary, fields)
    columns = [sql_text(values.column(index), field.type) for index, field in enumerate(fields)]
    names = [field.name for field in fields]
    return PaimonPartitions(
        of_rows=encoded.indices,
        values=values,
        texts=tuple(
            dict(zip(names, (column[row] for column in columns), strict=True)) for row in range(len(encoded.dictionary))
        ),
    )


def folders_of(
    partitions: PaimonPartitions, buckets: pa.ChunkedArray, schema: PaimonSchema, options: Mapping[str, str]
) -> pa.Array:
    """Return the folder of each entry's partition and bucket.

    Source: paimon docs, "File Layouts".
    """
    legacy = options.get("partition.legacy-name", "true").strip().lower() == "true"
    formatter = legacy_text if legacy else sql_text
    fields = [schema.field(name) for name in schema.partition_keys]
    columns = [formatter(partitions.values.column(index), field.type) for index, field in enumerate(fields)]
    # Partition and bucket in one integer: np.unique then finds the distinct pairs.
    pairs = _numbers(partitions.of_rows) << 32 | _numbers(buckets) & 0xFFFFFFFF
    distinct, of_rows = np.unique(pairs, return_inverse=True)
    indices, distinct_buckets = (distinct >> 32).tolist(), distinct.astype(np.int32).tolist()
    values = [
        (field.name, [column[position] for position in indices]) for field, column in zip(fields, columns, strict=True)
    ]
    folders = bucket_folders(values, distinct_buckets, options)
    return pa.array(folders, pa.string()).take(pa.array(of_rows))


def _numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(single_chunk(column).to_numpy(zero_copy_only=False), np.int64)


def data_paths(entries: pa.Table, folders: pa.Array, storage: Storage, *, strict: bool) -> pa.Array:
    """Return the path of each entry's file, for `Storage.read` and `open`.

    Args:
        entries: ENTRIES.
        storage: The table's storage, which resolves files at full locations.
        strict: Raise for a location on another storage; otherwise it is returned as stored.
    """
    names = single_chunk(entries.column("file_name"))
    paths = pc.binary_join_element_wise(folders, names, "/")
    external = entries.column("external_path")
    if external.null_count == len(external):
        return paths
    listed = zip(folders.to_pylist(), names.to_pylist(), external.to_pylist(), strict=True)
    return pa.array(
        [
            external_path(storage, location, strict=strict) if location else data_path(folder, name, None)
            for folder, name, location in listed
        ],
        pa.string(),
    )


def external_path(storage: Storage, location: str, *, strict: bool) -> str:
    """Return the path of a file at a full location; with `strict`, raise for a location on another storage."""
    try:
        return storage.resolve_external(location)
    except UnsupportedFeatureError:
        if strict:
            raise
        return location


_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FRACTION_DIGITS = 9
_PLAIN_FROM = 1e-3
_PLAIN_UNTIL = 1e7


def sql_text(values: pa.Array | pa.ChunkedArray, data_type: PaimonDataType) -> list[str | None]:
    """Return each value as SQL casts it to a string, None for null.

    DATE `2026-01-01`; TIMESTAMP `2026-01-01 12:00:00.123` with as many digits as its precision, local-zone ones in
    UTC; true, false; decimals plain; bytes in hexadecimal.

    Source: paimon CastExecutors, DateTimeUtils.formatTimestamp.
    """
    return _text(values, data_type, _SQL)


def legacy_text(values: pa.Array | pa.ChunkedArray, data_type: PaimonDataType) -> list[str | None]:
    """Return each value as Java prints its internal form, which folder names use by default.

    DATE as days since 1970, TIME as milliseconds of the day, TIMESTAMP `2026-01-01T12:00:00.123` with seconds left
    out when zero and 0, 3, 6 or 9 digits, FLOAT and DOUBLE as `1.0E20`.

    Source: paimon docs, "partition.legacy-name"; java.time.LocalDateTime.toString, java.lang.Double.toString.
    """
    return _text(values, data_type, _LEGACY)


def _text(
    values: pa.Array | pa.ChunkedArray,
    data_type: PaimonDataType,
    formatters: "dict[str, Callable[[Any, PaimonDataType], str]]",
) -> list[str | None]:
    if pa.types.is_temporal(values.type):
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()  # noqa: PLR2004
        values = values.cast(width)
    formatter = formatters.get(data_type.root, _refused)
    return [None if value is None else formatter(value, data_type) for value in values.to_pylist()]


def _plain(value: Any, _: PaimonDataType) -> str:
    return str(value)


def _refused(_: Any, data_type: PaimonDataType) -> str:
    raise refusal(features.BINARY_PARTITION_FOLDERS, type=data_type.root)


def _time(value: Any, data_type: PaimonDataType) -> str:
    seconds, millis = divmod(int(value), 1_000)
    digits = f"{millis:03d}"[: data_type.precision or 0]
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}" + (f".{digits}" if digits else "")


def _moment(value: int, data_type: PaimonDataType) -> tuple[str, str]:
    precision = data_type.precision or 0
    unit = _UNITS["ms" if precision <= 3 else "us" if precision <= 6 else "ns"]  # noqa: PLR2004
    seconds, rest = divmod(value, unit)
    return str(np.datetime64(seconds, "s")), f"{rest * (_UNITS['ns'] // unit):0{_FRACTION_DIGITS}d}"


def _sql_timestamp(value: Any, data_type: PaimonDataType) -> str:
    moment, fraction = _moment(int(value), data_type)
    precision = data_type.precision or 0
    kept = fraction[:precision] + fraction[precision:].rstrip("0")
    return moment.replace("T", " ") + (f".{kept}" if kept else "")


def _legacy_timestamp(value: Any, data_type: PaimonDataType) -> str:
    moment, fraction = _moment(int(value), data_type)
    if not moment.startswith("-") and len(moment.partition("-")[0]) > 4:  # noqa: PLR2004 - Java marks years past 9999
        moment = f"+{moment}"
    kept = next(fraction[:digits] for digits in (0, 3, 6, 9) if not fraction[digits:].strip("0"))
    if kept:
        return f"{moment}.{kept}"
    return moment.removesuffix(":00")


def _java_float(value: Any, data_type: PaimonDataType) -> str:
    """Return a number as Java prints it: plain from 0.001 to 10 million, else with an exponent."""
    number = np.float32(value) if data_type.root == "FLOAT" else np.float64(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_UNTIL:
        return str(np.format_float_positional(number, unique=True, trim="0"))
    digits, _, exponent = np.format_float_scientific(number, unique=True, trim="0").partition("e")
    return f"{digits}E{int(exponent)}"


_SQL: dict[str, Callable[[Any, PaimonDataType], str]] = {
    "BOOLEAN": lambda value, _: "true" if value else "false",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT", "CHAR", "VARCHAR"), _plain),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _java_float),
    **dict.fromkeys(("BINARY", "VARBINARY"), lambda value, _: bytes(value).hex()),
    "DECIMAL": lambda value, _: f"{value:f}",
    "DATE": lambda value, _: str(np.datetime64(int(value), "D")),
    "TIME": _time,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _sql_timestamp),
}
_LEGACY = _SQL | {
    **dict.fromkeys(("DATE", "TIME"), _plain),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), _legacy_timestamp),
    **dict.fromkeys(("BINARY", "VARBINARY"), _refused),
}
