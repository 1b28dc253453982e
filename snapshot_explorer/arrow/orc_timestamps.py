"""Timestamps of ORC files that pyarrow does not return as ORC's Java reader does, decoded with NumPy.

pyarrow counts nanoseconds, which end in 1677 and 2262. If the writer's clock was not in UTC, pyarrow's result is wrong
by a second around 1970, and by the difference of offsets before 1900.

Source: ORC specification v1, "Timestamp Columns", "Integer Run Length Encoding, version 2", "Boolean Run Length
Encoding"; for times before 1970, and for zones, the ORC Java reader, `TreeReaderFactory.TimestampTreeReader`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.orc_tail import (
    ColumnStreams,
    column_streams,
    fixed_offset,
    streams_of,
    timestamp_columns,
    writer_zone,
)
from snapshot_explorer.arrow.varints import unzigzag, varint
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.old_libraries import PYARROW_ORC_TIMES

_PRESENT, _DATA, _SECONDARY = 0, 1, 5
_DIRECT_V2 = 2
_EPOCH = 1_420_070_400
"""2015-01-01 in UTC, from which seconds are counted: on the writer's clock."""
UTC_NAMES = frozenset(("", "UTC", "GMT", "Z", "UCT", "Zulu", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Universal"))
"""Zones of a writer in which the file holds times in UTC."""
_FIRST_OFFSET = -2_208_988_800
"""1900-01-01: before it, Java uses only the standard offset of a zone."""
_ALL_AGREE = -1_546_300_800
"""1921-01-01: from then on all readers have the same offsets."""
_LAST_EARLY = 2 * 86_400
"""Two days after 1970-01-01: later times need no correction, and pyarrow's kernels for zones end in 2037."""
_MAX_OFFSET = 18 * 3600
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
"""Bits of packed numbers, by their code."""
_SHORT_REPEAT, _DIRECT, _PATCHED = 0, 1, 2
_NANO = 1_000_000_000
_MAX_NANO_SECONDS = np.iinfo(np.int64).max // _NANO
_PER_SECOND = {"us": 1_000_000, "ns": _NANO}
_LARGEST_NANO_BEFORE = 999_999

Numbers = npt.NDArray[np.int64]


def as_java_reads(batch: pa.RecordBatch, source: pa.NativeFile, stripe: int) -> pa.RecordBatch:
    """Return a stripe that pyarrow has read with the times that ORC's Java reader returns in UTC.

    Args:
        source: The file. It is read only for times around 1970 or before 1921.
    """
    indices = [index for index, column in enumerate(batch.columns) if _may_differ(column)]
    if not indices or (zone := writer_zone(source)) in UTC_NAMES:
        return batch
    columns = list(batch.columns)
    for index in indices:
        name, theirs = batch.schema.names[index], columns[index]
        ours = _early_times(source, stripe, name, theirs.type.unit) if pa.types.is_timestamp(theirs.type) else None
        if ours is None:
            raise UnsupportedFeatureError(
                f"The column {name!r} of an ORC file holds times before 1921 or around 1970 that were written in the "
                f"time zone {zone}, which is not supported within other values. Read the other columns."
            )
        columns[index] = pc.if_else(pc.less(ours, pa.scalar(_LAST_EARLY, pa.timestamp("s"))), ours, theirs)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _may_differ(values: pa.Array) -> bool:
    """Return whether values contain times without a zone that readers decode differently if the writer had a zone."""
    dtype = values.type
    if pa.types.is_struct(dtype):
        return any(_may_differ(part) for part in values.flatten())
    if pa.types.is_map(dtype):
        return _may_differ(values.keys) or _may_differ(values.items)
    if pa.types.is_list(dtype):
        return _may_differ(values.values)
    if not pa.types.is_timestamp(dtype) or dtype.tz is not None:
        return False
    each = _PER_SECOND[dtype.unit]
    times = values.cast(pa.int64()).drop_null().to_numpy()
    seconds, fraction = np.divmod(times, each)
    around = (np.abs(seconds) <= _MAX_OFFSET) & (fraction > _LARGEST_NANO_BEFORE * each // _NANO)
    return bool((around | (seconds < _ALL_AGREE)).any())


def check_range(source: pa.NativeFile, stripe: int, names: Sequence[str] | None) -> None:
    """Raise the error of newer versions of pyarrow for times that do not fit its nanoseconds.

    Reads the columns with timestamps, where an old pyarrow is installed.
    """
    if not PYARROW_ORC_TIMES.applies():
        return
    for number in timestamp_columns(source, names):
        streams = streams_of(source, stripe, number)
        if streams.encoding != _DIRECT_V2:
            raise UnsupportedFeatureError(f"ORC files of old writers hold times: {PYARROW_ORC_TIMES.remedy()}.")
        for seconds in _runs(streams.streams.get(_DATA, b""), signed=True):
            if len(seconds) and int(np.abs(seconds + _EPOCH).max()) >= _MAX_NANO_SECONDS:
                raise pa.ArrowInvalid("ORC timestamp is out of range for nanosecond resolution")


def timestamps(source: pa.NativeFile, stripe: int, name: str) -> pa.TimestampArray | None:
    """Return a timestamp column of a stripe in microseconds; None if its encoding is not supported."""
    streams = column_streams(source, stripe, name)
    if streams.encoding != _DIRECT_V2 or streams.zone not in UTC_NAMES:
        return None
    return _decode(streams, "us", None)


def _early_times(source: pa.NativeFile, stripe: int, name: str, unit: Literal["us", "ns"]) -> pa.TimestampArray | None:
    """Return a timestamp column on the writer's clock, right until 2037; None if it cannot be decoded."""
    streams = column_streams(source, stripe, name)
    try:
        zone = fixed_offset(streams.zone) or ZoneInfo(streams.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return _decode(streams, unit, zone) if streams.encoding == _DIRECT_V2 else None


def _decode(streams: ColumnStreams, unit: Literal["us", "ns"], zone: ZoneInfo | timezone | None) -> pa.TimestampArray:
    each = _PER_SECOND[unit]
    valid = _present(streams)
    count = int(valid.sum())
    seconds = integers(streams.streams.get(_DATA, b""), count, signed=True)
    seconds += _EPOCH if zone is None else int(datetime(2015, 1, 1, tzinfo=zone).timestamp())
    nanos = _nanos(integers(streams.streams.get(_SECONDARY, b""), count, signed=False))
    seconds -= (seconds < 0) & (nanos > _LARGEST_NANO_BEFORE)
    if count and int(np.abs(seconds).max()) >= np.iinfo(np.int64).max // each - _MAX_OFFSET:
        raise CorruptBytesError(f"a timestamp is out of range for {unit}")
    if zone is not None:
        seconds = _on_the_clock_of(zone, seconds)
    moments = np.zeros(streams.rows, np.int64)
    moments[valid] = seconds * each + nanos // (_NANO // each)
    return pa.array(moments, mask=~valid).view(pa.timestamp(unit))


def _on_the_clock_of(zone: ZoneInfo | timezone, seconds: Numbers) -> Numbers:
    """Return the local times of a zone at some seconds since 1970, with Java's offsets, until 2037."""
    winter, summer = (datetime(2026, month, 1, tzinfo=zone).utcoffset() for month in (1, 7))
    standard = min(winter, summer).total_seconds() if winter is not None and summer is not None else 0
    if isinstance(zone, timezone):
        return seconds + int(standard)
    moments = pa.array(seconds).view(pa.timestamp("s")).cast(pa.timestamp("s", zone.key))
    shown = pc.local_timestamp(moments).cast(pa.int64()).to_numpy()
    return np.where(seconds < _FIRST_OFFSET, seconds + int(standard), shown)


def _present(streams: ColumnStreams) -> npt.NDArray[np.bool_]:
    content = streams.streams.get(_PRESENT)
    if content is None:
        return np.ones(streams.rows, np.bool_)
    parts, offset, size = [], 0, 0
    while offset < len(content) and size * 8 < streams.rows:
        control = content[offset]
        if control < 128:  # noqa: PLR2004 - a run, otherwise literals
            parts.append(content[offset + 1 : offset + 2] * (control + 3))
            offset += 2
        else:
            parts.append(content[offset + 1 : offset + 1 + 256 - control])
            offset += 257 - control
        size += len(parts[-1])
    bits = np.unpackbits(np.frombuffer(b"".join(parts), np.uint8))[: streams.rows].astype(np.bool_)
    if len(bits) < streams.rows:
        raise CorruptBytesError("the stream of nulls is cut short")
    return bits


def _nanos(stored: Numbers) -> Numbers:
    """Return nanoseconds. The last three bits contain the number of removed trailing zeros, less one."""
    zeros = stored & 7
    factor = np.where(zeros > 0, 10 ** (zeros + 1), 1)
    return (stored >> 3) * factor


def integers(content: bytes, count: int, *, signed: bool) -> Numbers:
    """Return the numbers of a stream.

    Args:
        signed: Whether they are stored as zigzag numbers.
    """
    parts = [np.zeros(0, np.int64)]
    total = 0
    runs = _runs(content, signed=signed)
    while total < count:
        part = next(runs, None)
        if part is None:
            raise CorruptBytesError("a stream of numbers is cut short")
        parts.append(part)
        total += len(part)
    if total > count:
        raise CorruptBytesError("a stream of numbers is longer than its rows")
    return np.concatenate(parts)


def _runs(content: bytes, *, signed: bool) -> Iterator[Numbers]:
    offset = 0
    try:
        while offset < len(content):
            encoding = content[offset] >> 6
            if encoding == _SHORT_REPEAT:
                width, count = (content[offset] >> 3 & 7) + 1, (content[offset] & 7) + 3
                value = int.from_bytes(_part(content, offset + 1, width), "big")
                yield np.full(count, unzigzag(value) if signed else _wrap(value), np.int64)
                offset += 1 + width
                continue
            width = _WIDTHS[content[offset] >> 1 & 31]
            count = (content[offset] & 1) << 8 | content[offset + 1]
            if encoding == _DIRECT:
                size = (width * (count + 1) + 7) // 8
                packed = _unpack(_part(content, offset + 2, size), width, count + 1)
                yield _to_signed(packed) if signed else packed.view(np.int64)
                offset += 2 + size
            elif encoding == _PATCHED:
                values, offset = _decode_patched(content, offset, width, count + 1)
                yield values
            else:
                values, offset = _deltas(content, offset, count + 1, signed=signed)
                yield values
    except (IndexError, OverflowError, ValueError) as error:
        if isinstance(error, CorruptBytesError):
            raise
        raise CorruptBytesError(f"a stream of numbers is damaged ({error})") from error


def _decode_patched(content: bytes, offset: int, width: int, count: int) -> tuple[Numbers, int]:
    """Return the numbers of a run with a base and patches for its largest numbers, and the offset of its end."""
    third, fourth = content[offset + 2], content[offset + 3]
    base_bytes, patch_width = (third >> 5) + 1, _WIDTHS[third & 31]
    gap_width, patches = (fourth >> 5) + 1, fourth & 31
    offset += 4
    base = int.from_bytes(_part(content, offset, base_bytes), "big")
    sign = 1 << (8 * base_bytes - 1)
    base = -(base & ~sign) if base & sign else base
    offset += base_bytes
    size = (width * count + 7) // 8
    values = _unpack(_part(content, offset, size), width, count)
    offset += size
    bits = next(item for item in _WIDTHS if item >= gap_width + patch_width)
    size = (bits * patches + 7) // 8
    at = 0
    for entry in _unpack(_part(content, offset, size), bits, patches).tolist():
        at += entry >> patch_width
        values[at] |= np.uint64((entry & ((1 << patch_width) - 1)) << width)
    return values.view(np.int64) + base, offset + size


def _deltas(content: bytes, offset: int, count: int, *, signed: bool) -> tuple[Numbers, int]:
    """Return the numbers of a run of differences, and the offset of its end."""
    code = content[offset] >> 1 & 31
    base, offset = varint(content, offset + 2)
    first, offset = varint(content, offset)
    base, step = unzigzag(base) if signed else _wrap(base), unzigzag(first)
    steps = np.full(count, step, np.int64)
    steps[0] = base
    if code and count > 2:  # noqa: PLR2004 - the base and the first difference are apart
        width = _WIDTHS[code]
        size = (width * (count - 2) + 7) // 8
        rest = _unpack(_part(content, offset, size), width, count - 2).view(np.int64)
        steps[2:] = -rest if step < 0 else rest
        offset += size
    return np.cumsum(steps), offset


def _unpack(content: bytes, width: int, count: int) -> npt.NDArray[np.uint64]:
    """Return numbers of some bits each, the highest bit first."""
    bits = np.unpackbits(np.frombuffer(content, np.uint8))[: width * count].reshape(count, width)
    result = np.zeros(count, np.uint64)
    for bit in range(width):
        result = (result << np.uint64(1)) | bits[:, bit]
    return result


def _to_signed(values: npt.NDArray[np.uint64]) -> Numbers:
    return (values >> np.uint64(1)).view(np.int64) ^ -(values & np.uint64(1)).view(np.int64)


def _wrap(value: int) -> int:
    """Return an unsigned number of 64 bits as a signed one, as readers in C++ do."""
    return value - (1 << 64) if value >> 63 else value


def _part(content: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(content):
        raise CorruptBytesError("a stream of numbers is cut short")
    return content[offset : offset + size]
