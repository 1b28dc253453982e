"""The partitions of files: texts of the log as typed values, parsed once per distinct partition.

Source: delta PROTOCOL.md, "Partition Value Serialization". The empty text is null, except in columns of strings and
binary: there Delta's readers return an empty value, which the library deltalake writes, contrary to the protocol.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation, localcontext

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.milliseconds import EPOCH
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.metadata.data_types import (
    DeltaDataType,
    DeltaField,
    arrow_type,
    pad_texts,
    type_text,
)
from snapshot_explorer.formats.delta.metadata.records import Metadata
from snapshot_explorer.formats.delta.metadata.schema import DeltaSchema, schema_of
from snapshot_explorer.formats.features import refusal

_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?")
_DATE = re.compile(r"(\d{4,})-(\d{1,2})-(\d{1,2})(?:[ T].*)?")
_BOOLEAN = re.compile(r"true|false", re.IGNORECASE)
_DIGITS = 76


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaPartitions:
    """The distinct partitions of some files."""

    of_rows: npt.NDArray[np.int64]
    """The index of each file's partition among the distinct ones."""
    values: pa.Table
    """The distinct partitions, a typed column per partition column, by its name."""
    texts: tuple[Mapping[str, str | None], ...]
    """The distinct partitions as text in the log; null is None."""

    def where(self, kept: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> "DeltaPartitions":
        """Return the partitions of some files, selected by a mask or by positions."""
        return replace(self, of_rows=self.of_rows[kept])

    def column(self) -> pa.Array:
        """Return the files' partitions as a map column, frames.PARTITION."""
        return pa.array([list(text.items()) for text in self.texts], frames.PARTITION).take(pa.array(self.of_rows))


def partition_texts(files: pa.Table, metadata: Metadata) -> pa.Array:
    """Return the partition of each file as text, with logical column names; frames.PARTITION.

    Args:
        files: ADDS, REMOVES or CDC. A file without partition values, as old writers' removes, has nulls.
    """
    schema = schema_of(metadata)
    of_rows, distinct = _distinct(files, schema)
    texts = [list(zip(schema.partition_columns, values, strict=True)) for values in distinct]
    return pa.array(texts, frames.PARTITION).take(pa.array(of_rows))


def partitions_of(files: pa.Table, schema: DeltaSchema) -> DeltaPartitions:
    """Return the partitions of files, typed.

    Args:
        files: ADDS, REMOVES or CDC.
        schema: The version's schema; values are read by its types.
    """
    of_rows, distinct = _distinct(files, schema)
    columns = []
    for index, field in enumerate(schema.partition_fields):
        texts = [values[index] for values in distinct]
        try:
            columns.append(pad_texts(parse_partition_values(texts, field.type), field.type))
        except _UnparsedError as error:
            position = int(np.flatnonzero(of_rows == error.position)[0])
            raise CorruptTableError(
                f"The file {files.column('path')[position].as_py()} is in the partition "
                f"{field.name}={texts[error.position]!r}, which is not a {type_text(field.type)}. The log is damaged; "
                "compare it with a copy of the table."
            ) from error
    names = schema.partition_columns
    values = pa.table(columns, names=list(names)) if names else pa.table({"": pa.nulls(len(distinct))}).select([])
    return DeltaPartitions(
        of_rows=of_rows,
        values=values,
        texts=tuple(dict(zip(names, texts, strict=True)) for texts in distinct),
    )


def _distinct(files: pa.Table, schema: DeltaSchema) -> tuple[npt.NDArray[np.int64], list[tuple[str | None, ...]]]:
    """Return the index of each file's partition among the distinct partitions, and the distinct partitions."""
    of_rows = np.zeros(len(files), np.int64)
    if not schema.partition_columns or not len(files):
        return of_rows, [()] if len(files) else []
    distinct: list[tuple[str | None, ...]] = [()]
    for field in schema.partition_fields:
        texts = _texts(files.column("partition_values"), field).dictionary_encode()
        codes = np.asarray(pc.fill_null(texts.indices, len(texts.dictionary)).to_numpy(zero_copy_only=False), np.int64)
        words = [*texts.dictionary.to_pylist(), None]
        pairs, of_rows = np.unique(of_rows * len(words) + codes, return_inverse=True)
        distinct = [(*distinct[pair // len(words)], words[pair % len(words)]) for pair in pairs.tolist()]
    return of_rows, distinct


def _texts(values: pa.ChunkedArray, field: DeltaField) -> pa.Array:
    """Return the texts of one partition column; the empty text is null, except of a string or binary."""
    result = values_of(values, field.stored, last=True)
    if field.type.root in ("string", "binary"):
        return result
    return pc.if_else(pc.equal(result, ""), pa.scalar(None, pa.string()), result)


class _UnparsedError(ValueError):
    """A text is not a value of the type."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def parse_partition_values(texts: list[str | None], data_type: DeltaDataType) -> pa.Array:
    """Return partition values of the log in the Arrow type of their column.

    A timestamp without a zone is in UTC.
    """
    parse = _PARSERS.get(data_type.root)
    if parse is None:
        raise refusal(features.PARTITION_TYPES, type=type_text(data_type))
    dtype = arrow_type(data_type)
    values: list[object] = []
    for position, text in enumerate(texts):
        try:
            value = None if text is None else parse(text, data_type)
            pa.scalar(value, dtype)
        except (ValueError, OverflowError, ArithmeticError, pa.ArrowException) as error:
            raise _UnparsedError(position) from error
        values.append(value)
    return pa.array(values, dtype)


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return match


def _float(text: str, _: DeltaDataType) -> float:
    return float(_match(_FLOAT, text)[0])


def _decimal(text: str, data_type: DeltaDataType) -> Decimal:
    number = Decimal(_match(_DECIMAL, text)[0])
    with localcontext(prec=_DIGITS):
        rounded = number.quantize(Decimal(1).scaleb(-data_type.scale))
    if rounded != number:
        raise InvalidOperation(text)
    return rounded


def _date(text: str, _: DeltaDataType) -> date:
    year, month, day = _match(_DATE, text).groups()
    return date(int(year), int(month), int(day))


def _local(text: str, _: DeltaDataType) -> int:
    result, has_zone = micros(text)
    if has_zone and not text.strip().endswith(("Z", "UTC")):
        raise ValueError(text)
    return result


_PARSERS: Mapping[str, Callable[[str, DeltaDataType], object]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), lambda text, _: int(_match(_INTEGER, text)[0])),
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "boolean": lambda text, _: _match(_BOOLEAN, text)[0].lower() == "true",
    "string": lambda text, _: text,
    "binary": lambda text, _: text.encode("utf-8"),
    "date": _date,
    "timestamp": lambda text, _: micros(text)[0],
    "timestamp_ntz": _local,
}


_TIME = re.compile(
    r"(\d{4,})-(\d{1,2})-(\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s?(Z|UTC|[+-]\d{2}:?\d{2})?"
)
_MICRO_DIGITS = 6


def micros(text: str) -> tuple[int, bool]:
    """Return a timestamp as microseconds since 1970, and whether its text contains the offset from UTC.

    Raises:
        ValueError: The text is not a timestamp, or finer than microseconds.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a timestamp")
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    digits = (fraction or "").ljust(_MICRO_DIGITS, "0")
    if digits[_MICRO_DIGITS:].strip("0"):
        raise ValueError(text)
    timestamp = datetime(int(year), int(month), int(day), tzinfo=UTC)
    hours, minutes, seconds = (int(part or 0) for part in (hour, minute, second))
    timestamp = timestamp.replace(hour=hours, minute=minutes, second=seconds, microsecond=int(digits[:_MICRO_DIGITS]))
    return (timestamp - EPOCH) // timedelta(microseconds=1) - _offset(zone), zone is not None


def _offset(zone: str | None) -> int:
    if zone is None or zone in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "")
    minutes = 60 * int(digits[:2]) + int(digits[2:])
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000_000
