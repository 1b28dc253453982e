"""Timestamps of ORC files that are decoded here, against what pyarrow wrote and, within nanoseconds, reads."""

import io
from datetime import datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from snapshot_explorer.errors import UnsupportedFeatureError
from tests.inner.arrow import CorruptBytesError, as_java_reads, integers
from tests.inner.arrow import orc_timestamps_timestamps as timestamps
from tests.inner.formats import OrcFile

FIRST, LAST = -62_135_596_800, 253_402_300_799
"""The seconds of the years 1 to 9999."""
RUNS = (
    st.builds(lambda value, count: [value] * count, st.integers(FIRST, LAST), st.integers(1, 600)),
    st.builds(
        lambda start, step, count: [min(LAST, max(FIRST, start + step * place)) for place in range(count)],
        st.integers(FIRST, LAST),
        st.integers(-(10**6), 10**6),
        st.integers(1, 600),
    ),
    st.lists(st.integers(FIRST, LAST) | st.integers(0, 1000), max_size=40),
    st.lists(st.none() | st.integers(FIRST, LAST), max_size=40),
)


def written(micros, compression):
    target = io.BytesIO()
    table = pa.table({"n": pa.array([1] * len(micros), pa.int64()), "t": pa.array(micros, pa.timestamp("us"))})
    orc.write_table(table, target, compression=compression)
    return target.getvalue()


def decoded(content):
    stripes = orc.ORCFile(pa.BufferReader(content)).nstripes
    parts = [timestamps(pa.BufferReader(content), stripe, "t").cast(pa.int64()) for stripe in range(stripes)]
    return [value for part in parts for value in part.to_pylist()]


@settings(max_examples=60)
@given(
    runs=st.lists(st.one_of(*RUNS), max_size=4),
    micros=st.integers(0, 999_999),
    compression=st.sampled_from(["uncompressed", "zlib", "snappy", "lz4", "zstd"]),
)
def test_timestamps_of_any_year_are_those_that_were_written(runs, micros, compression):
    seconds = [second for run in runs for second in run]
    # Before 1970, what a fraction means differs between writers.
    moments = [None if one is None else one * 1_000_000 + (micros if one >= 0 else 0) for one in seconds]

    assert decoded(written(moments, compression)) == moments


@pytest.mark.parametrize("within", ["t", "s", "l", "m"])
def test_times_that_do_not_fit_raise_wherever_they_are(within):
    moment = pa.array([datetime(1, 1, 1)], pa.timestamp("us"))  # noqa: DTZ001 - ORC's own
    offsets = pa.array([0, 1], pa.int32())
    columns = {
        "t": moment,
        "s": pa.StructArray.from_arrays([moment], ["x"]),
        "l": pa.ListArray.from_arrays(offsets, moment),
        "m": pa.MapArray.from_arrays(offsets, pa.array(["k"]), moment),
    }
    target = io.BytesIO()
    orc.write_table(pa.table(columns | {"n": [1]}), target)
    file = OrcFile(pa.BufferReader(target.getvalue()))

    with pytest.raises(pa.ArrowInvalid, match="out of range for nanosecond"):
        list(file.batches([within]))
    assert [batch.column("n").to_pylist() for batch in file.batches(["n"])] == [[1]]


@given(moments=st.lists(st.none() | st.integers(-(2**62) // 1000, 2**62 // 1000), max_size=30))
def test_where_pyarrow_reads_nanoseconds_both_agree(moments):
    content = written(moments, "uncompressed")

    theirs = orc.ORCFile(pa.BufferReader(content)).read(columns=["t"])["t"].cast(pa.int64()).to_pylist()

    assert decoded(content) == [None if one is None else one // 1000 for one in theirs]


def in_another_zone(values, zone):
    """Return an ORC file that is written in GMT, and says that its clock was another one's."""
    target = io.BytesIO()
    orc.write_table(pa.table({"t": values}), target, compression="uncompressed")
    assert target.getvalue().count(b"GMT") == 1
    return target.getvalue().replace(b"GMT", zone)


def moments(*texts):
    return pa.array(texts).cast(pa.timestamp("ns"))


@pytest.mark.parametrize(
    ("zone", "written", "expected"),
    [
        # The file counts from 2015 on the writer's clock. Java rounds as the second in UTC is below zero or not.
        (b"PRC", ["1970-01-01 00:00:01.5", None, "1970-01-01 08:00:00.5"], ["1970-01-01 00:00:00.5", None, None]),
        (b"PRC", ["1970-01-01 00:00:01.0005", "1970-01-01 00:00:01"], [None, None]),
        # Shanghai's clock was 5 minutes and 43 seconds ahead in 1900, which Java applies to that year, not before.
        (b"PRC", ["1900-06-01 00:00:00", "1899-06-01 00:00:00"], ["1900-06-01 00:05:43", None]),
        (b"PRC", ["2100-07-01 00:00:00", "1900-06-01 00:00:00"], [None, "1900-06-01 00:05:43"]),
    ],
)
def test_times_on_another_clock_are_those_of_orcs_java_reader(zone, written, expected):
    source = pa.BufferReader(in_another_zone(moments(*written), zone))

    found = as_java_reads(orc.ORCFile(source).read_stripe(0), source, 0)

    wanted = [late or early for early, late in zip(written, expected, strict=True)]
    assert found.column("t").to_pylist() == moments(*wanted).to_pylist()


def test_nested_times_on_another_clock_are_refused_where_readers_differ():
    for text, refused in (("1970-01-01 00:00:01.5", True), ("2026-01-01 00:00:01.5", False)):
        source = pa.BufferReader(in_another_zone(pa.array([[{"at": one} for one in moments(text)]]), b"PRC"))
        batch = orc.ORCFile(source).read_stripe(0)
        if refused:
            with pytest.raises(UnsupportedFeatureError, match="column 't' .* in the time zone PRC"):
                as_java_reads(batch, source, 0)
        else:
            assert as_java_reads(batch, source, 0) is batch


@pytest.mark.parametrize(
    ("content", "count", "signed", "expected"),
    [
        (bytes([0x0A, 0x27, 0x10]), 5, False, [10_000] * 5),
        (
            bytes([0x5E, 0x03, 0x5C, 0xA1, 0xAB, 0x1E, 0xDE, 0xAD, 0xBE, 0xEF]),
            4,
            False,
            [23_713, 43_806, 57_005, 48_879],
        ),
        (bytes([0xC6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46]), 10, False, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
        (
            bytes.fromhex("8e132b2107d01e00147028323c46505a646e78828c96a0aab4befce8"),
            20,
            False,
            [2030, 2000, 2020, 1_000_000, *range(2040, 2200, 10)],
        ),
    ],
)
def test_the_examples_of_the_specification_have_its_numbers(content, count, signed, expected):
    assert integers(content, count, signed=signed).tolist() == expected


@pytest.mark.parametrize("content", [b"", b"\x0a", b"\x5e\x03\x5c", b"\x8e\x13", b"\xc6\x09\x82", b"\x0a\x27\x10"])
def test_numbers_that_are_cut_short_are_refused(content):
    with pytest.raises(CorruptBytesError):
        integers(content, 4, signed=False)
