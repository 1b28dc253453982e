"""The least and greatest value of a column in a file, as statistics spell them: as bounds that hold for every row.

Source: delta PROTOCOL.md, "Per-file Statistics"; delta StatisticsCollection.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.formats.delta.files.columns import Origin, conform
from snapshot_explorer.formats.delta.log.data_types import Field, arrow_type
from snapshot_explorer.formats.delta.scan.time_text import micros

_CUT = "\ufffd"
_GREATEST = "\U0010ffff"
_FLOAT_DIGITS = 15
"""Decimals of up to so many digits survive a writer that takes them for floating point numbers."""
_DIGITS = 76
_MILLI = 999
"""Microseconds by which a greatest timestamp may have been cut."""
_DATE_LENGTH = 10
_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_ANYWHERE = Origin(path="_delta_log", mode="none")


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Which end of which column."""

    field: Field
    """The column."""
    is_upper: bool
    """Whether it is the greatest value."""
    careful: bool
    """Whether to allow for writers that round decimals."""

    @property
    def is_known(self) -> bool:
        """Whether statistics say anything of the column's order.

        A number of 32 bits is spelled in fewer digits than the same number of 64 bits has: so where a column was
        widened from one to the other, the spelled one may lie on either side. Those of a char(n) lack its spaces.
        """
        widened = self.field.type.root == "double" and any(change.before == "float" for change in self.field.changes)
        is_whole = self.field.char_length is None and not self.field.collated
        return self.field.type.root in _PARSERS and is_whole and not widened

    def parsed(self, value: object) -> object:
        """Return what JSON says as a value of the column; None for what is not understood."""
        if value is None or isinstance(value, bool):
            return None
        try:
            return _PARSERS[self.field.type.root](value, self)
        except (ValueError, TypeError, ArithmeticError):
            return None

    def converted(self, values: pa.Array) -> pa.Array:
        """Return what a checkpoint says in columns, as values of the column; nulls for what is not understood."""
        kind = self.field.type
        unknown = pa.nulls(len(values), arrow_type(kind))
        if self.careful and kind.root == "decimal" and kind.precision > _FLOAT_DIGITS:
            return unknown
        try:
            found = conform(values, kind, _ANYWHERE)
        except (SnapshotExplorerError, pa.ArrowException):
            return unknown
        if kind.root in ("float", "double"):
            return pc.if_else(pc.is_finite(found), found, pa.scalar(None, found.type))
        if kind.root == "string" and self.is_upper and pc.any(pc.ends_with(found, _CUT)).as_py():
            return pa.array([self.parsed(value) for value in found.to_pylist()], found.type)
        if kind.root in ("timestamp", "timestamp_ntz") and self.is_upper:
            return pc.add(found.cast(pa.int64()), _MILLI).cast(found.type)
        return found


def _integer(value: object, end: End) -> int | None:
    number = int(value) if isinstance(value, int | str) else None
    limit = 1 << (_BITS[end.field.type.root] - 1)
    return number if number is not None and -limit <= number < limit else None


def _float(value: object, end: End) -> float | None:
    """Return a number; NaN and the infinities, which are spelled as text, may stand for any."""
    number = float(value) if isinstance(value, int | float | str) else np.nan
    greatest = float(np.finfo(np.float32 if end.field.type.root == "float" else np.float64).max)
    return number if abs(number) <= greatest else None


def _decimal(value: object, end: End) -> Decimal | None:
    kind = end.field.type
    with localcontext(prec=_DIGITS, Emin=-1000, Emax=1000):
        number = Decimal(str(value))
        if end.careful and kind.precision > _FLOAT_DIGITS and Decimal(repr(float(number))) == number:
            step = abs(number) * Decimal(2) ** -52
            number += step if end.is_upper else -step
        rounding = ROUND_CEILING if end.is_upper else ROUND_FLOOR
        number = number.quantize(Decimal(1).scaleb(-kind.scale), rounding=rounding)
        return number if abs(number) < Decimal(10) ** (kind.precision - kind.scale) else None


def _text(value: object, end: End) -> str | None:
    """Return a text. Of a greatest text that was cut, older writers end in U+FFFD, which is not the greatest letter."""
    if not isinstance(value, str):
        return None
    if end.is_upper and value.endswith(_CUT):
        value = value.rstrip(_CUT + "?") + _GREATEST
    value.encode()
    return value


def _date(value: object, _: End) -> date | None:
    return date.fromisoformat(value) if isinstance(value, str) and len(value) == _DATE_LENGTH else None


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
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
}
