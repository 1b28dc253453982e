"""Times that old Spark versions wrote in the Julian calendar before 1582, converted to the Gregorian calendar.

Spark stores a day as a number, and old versions counted it from a date of the Julian calendar. Readers convert the
number to year, month and day in that calendar, and these to the number in the Gregorian calendar.

Source: spark RebaseDateTime, DataSourceUtils.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.features import refusal

_PREFIX = b"org.apache.spark."
_VERSION, _ZONE = _PREFIX + b"version", _PREFIX + b"timeZone"
_DATES, _INT96 = _PREFIX + b"legacyDateTime", _PREFIX + b"legacyINT96"
_UTC = frozenset(("UTC", "GMT", "Z", "UCT", "Zulu", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Universal"))
_DAY_MICROS = 86_400_000_000
_FIRST_DAY = -141_427
"""1582-10-15, the first day of the Gregorian calendar."""
_UNIFORM = -25_567 * _DAY_MICROS
"""1900-01-01: from then on old and new times agree in every zone; one day of margin for the zone itself."""
_JULIAN_EPOCH = 719_470
"""Days from the 1st of March of the year 0 in the Julian calendar to 1970-01-01."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """The calendar of a file's times."""

    dates: bool = False
    """Whether dates and timestamps use the old calendar."""
    int96: bool = False
    """Whether timestamps stored as INT96 do."""
    zone: str | None = None
    """The writer's zone; None if the file does not record it."""


def calendar_of(metadata: Mapping[bytes, bytes]) -> Calendar:
    """Return the calendar of a file from the key-value metadata of its footer."""
    version = metadata.get(_VERSION)
    old = (1, 2) if version is None else tuple(int(part) if part.isdigit() else 0 for part in version.split(b".")[:2])
    is_known = version is not None
    return Calendar(
        dates=_DATES in metadata or (is_known and old < (3, 0)),
        int96=_INT96 in metadata or (is_known and old < (3, 1)),
        zone=metadata[_ZONE].decode("utf-8", "replace") if _ZONE in metadata else None,
    )


def rebase(values: pa.Array, calendar: Calendar, *, is_int96: bool) -> pa.Array:
    """Return dates, or timestamps of microseconds, in the Gregorian calendar; other values unchanged."""
    is_time = pa.types.is_timestamp(values.type)
    if not (is_time or pa.types.is_date32(values.type)) or not (calendar.int96 if is_int96 else calendar.dates):
        return values
    limit = _FIRST_DAY * _DAY_MICROS if is_time and calendar.zone in _UTC else _UNIFORM if is_time else _FIRST_DAY
    numbers = values.cast(pa.int64()) if is_time else values.cast(pa.int32()).cast(pa.int64())
    minimum = pc.min(numbers).as_py()
    if minimum is None or minimum >= limit:
        return values
    if not is_time:
        days = np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), np.int64)
        return pa.array(_gregorian(days).astype(np.int32), mask=_nulls(values)).view(values.type)
    if calendar.zone not in _UTC:
        raise refusal(features.OLD_CALENDARS, zone=f" in {calendar.zone}" if calendar.zone else "")
    micros = np.asarray(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), np.int64)
    moved = _gregorian(micros // _DAY_MICROS) * _DAY_MICROS + micros % _DAY_MICROS
    return pa.array(moved, mask=_nulls(values)).view(values.type)


def _nulls(values: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(values.is_null())


def _gregorian(days: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return days since 1970. Days before 1582-10-15, counted from a Julian date, become Gregorian days.

    A 29th of February that only the Julian calendar has is the 1st of March.
    """
    since = days + _JULIAN_EPOCH
    year, rest = since // 1461 * 4, since % 1461
    part = np.minimum(rest // 365, 3)
    year, rest = year + part, rest - part * 365
    # Months are counted from March, so that the leap day is the last day of the year.
    month = (5 * rest + 2) // 153
    day = rest - (153 * month + 2) // 5
    months = 12 * (year - 1970) + 2 + month
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return np.where(days < _FIRST_DAY, first + day, days)
