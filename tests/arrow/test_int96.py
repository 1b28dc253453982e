"""Times in INT96, as Impala and old Spark store them."""

import struct

import pyarrow as pa
import pytest

from tests.inner.arrow import int96_timestamps as timestamps

UNIX_DAY = 2_440_588
DAY_NANOS = 86_400 * 10**9


def stored(days, nanos=0):
    return pa.array([struct.pack("<qi", nanos, days + UNIX_DAY)], pa.binary(12))


@pytest.mark.parametrize(("unit", "size"), [("ns", 1), ("us", 1000)])
def test_times_are_exact_up_to_the_limit_of_the_type_and_refused_beyond(unit, size):
    last = (2**63 - 1) // (DAY_NANOS // size)

    for days in (-last, -1, 0, last - 1):
        if abs(days) < 2**31 - UNIX_DAY:
            found = timestamps(stored(days, 999), unit).cast(pa.int64()).to_pylist()
            assert found == [(days * DAY_NANOS + 999) // size]
    for days in (last, -last - 1):
        if abs(days) < 2**31 - UNIX_DAY:
            with pytest.raises(pa.ArrowInvalid, match="timestamp out of range"):
                timestamps(stored(days), unit)


def test_nanoseconds_beyond_a_day_and_before_it_belong_to_other_days():
    assert timestamps(stored(1, -1)).cast(pa.int64()).to_pylist() == [DAY_NANOS - 1]
    assert timestamps(stored(0, DAY_NANOS)).cast(pa.int64()).to_pylist() == [DAY_NANOS]
