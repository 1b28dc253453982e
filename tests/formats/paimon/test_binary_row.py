"""BinaryRows as Arrow columns."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.paimon import PaimonField, arrow_type, decode, parse_type
from tests.support.paimon.binary_rows import binary_row

VALUES = {
    "BOOLEAN": st.booleans(),
    "TINYINT": st.integers(-128, 127),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "STRING": st.text(max_size=20),
    "CHAR(9)": st.text(max_size=9),
    "BYTES": st.binary(max_size=20),
    "DATE": st.integers(-719_162, 2_932_896),
    "TIME(3)": st.integers(0, 86_399_999),
    "DECIMAL(10, 2)": st.decimals(-99_999_999, 99_999_999, places=2),
    "DECIMAL(38, 5)": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -5))
    ),
    "TIMESTAMP(3)": st.integers(-62_135_596_800_000, 253_402_300_799_999),
    "TIMESTAMP(6)": st.tuples(
        st.integers(-62_135_596_800_000, 253_402_300_799_999), st.integers(0, 999).map(lambda n: n * 1000)
    ),
    "TIMESTAMP_LTZ(9)": st.tuples(st.integers(-9_223_372_036_000, 9_223_372_036_000), st.integers(0, 999_999)),
}


def fields(*kinds):
    return [PaimonField(id=index, name=f"f{index}", type=parse_type(kind)) for index, kind in enumerate(kinds)]


def hexadecimal(text):
    return bytes.fromhex(text.replace(" ", "").replace("\n", ""))


def as_arrow(kind, value):
    """Return a value as Arrow prints it."""
    if value is None or not kind.startswith(("DATE", "TIME")):
        return value
    whole = value
    if kind in ("TIMESTAMP(6)", "TIMESTAMP_LTZ(9)"):
        per_milli = 1_000 if kind == "TIMESTAMP(6)" else 1_000_000
        whole = value[0] * per_milli + value[1] * per_milli // 1_000_000
    return whole


KINDS_AND_ROWS = st.lists(st.sampled_from(sorted(VALUES)), max_size=70).flatmap(
    lambda kinds: st.tuples(
        st.just(kinds), st.lists(st.tuples(*[st.none() | VALUES[kind] for kind in kinds]), min_size=1, max_size=4)
    )
)


@settings(deadline=None, max_examples=150)
@given(KINDS_AND_ROWS)
def test_rows_come_back_as_they_were_written(kinds_and_rows):
    kinds, rows = kinds_and_rows
    types = [parse_type(kind) for kind in kinds]

    table = decode(pa.array([binary_row(types, row) for row in rows], pa.binary()), fields(*kinds))

    assert table.num_rows == len(rows)
    assert table.schema.types == [arrow_type(kind) for kind in types]
    table.validate(full=True)
    for index, kind in enumerate(kinds):
        column = table.column(index)
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        assert column.to_pylist() == [as_arrow(kind, row[index]) for row in rows]


def test_the_partition_of_the_documentation():
    row = hexadecimal("00000001 0000000000000000 0a00000000000000")

    assert decode(pa.array([row]), fields("INT")).to_pylist() == [{"f0": 10}]


def test_the_statistics_of_the_documentation():
    row = hexadecimal("""00000004 00 00000000000000 416c696365 0000 85
        0200000000000000 0c00000000000000 cdcccccccccc0040""")

    found = decode(pa.array([row]), fields("STRING", "INT", "INT", "DOUBLE"))

    assert found.to_pylist() == [{"f0": "Alice", "f1": 2, "f2": 12, "f3": 2.1}]


def test_the_long_values_of_the_documentation():
    row = hexadecimal("""00000006 0020000000000000 1400000000000000 0100000000000000 2efbffff00000000
        e9030000 38000000 0a000000 40000000 0000000000000000
        41028756f6fdffff fd62bd4958d56238 f8f2000000000000""")

    found = decode(pa.array([row]), fields("INT", "INT", "DATE", "TIMESTAMP(9)", "DECIMAL(23, 5)", "BYTES"))

    assert [found.column(index)[0].as_py() for index in (0, 1, 2, 4, 5)] == [
        20,
        1,
        date(1966, 8, 16),
        Decimal("-123456789987654321.45678"),
        None,
    ]
    assert found.column(3)[0].value == -2_240_521_239_999 * 1_000_000 + 1_001


def test_null_rows_are_null_in_every_column_and_equal_rows_come_each_time():
    row = binary_row([parse_type("INT")], [7])

    found = decode(pa.chunked_array([[row, None], [row]]), fields("INT"))

    assert found["f0"].to_pylist() == [7, None, 7]


def test_rows_without_fields_keep_their_number():
    assert decode(pa.array([bytes(12)] * 3), []).num_rows == 3
    assert decode(pa.array([], pa.binary()), []).num_rows == 0


def test_no_rows_have_the_types_of_the_fields():
    found = decode(pa.array([], pa.binary()), fields("STRING", "DECIMAL(30, 2)", "TIMESTAMP(9)", "BOOLEAN"))

    assert found.schema.types == [pa.string(), pa.decimal128(30, 2), pa.timestamp("ns"), pa.bool_()]


def test_types_without_an_order_are_null():
    row = binary_row([parse_type("INT"), parse_type("BYTES")], [1, b"whatever it holds"])

    assert decode(pa.array([row]), fields("INT", "ARRAY<INT>")).to_pylist() == [{"f0": 1, "f1": None}]


def test_local_zone_timestamps_are_in_utc():
    row = binary_row([parse_type("TIMESTAMP_LTZ(3)")], [1_767_225_600_123])

    value = decode(pa.array([row]), fields("TIMESTAMP_LTZ(3)"))["f0"][0].as_py()

    assert value == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)


def test_another_number_of_fields_is_broken():
    row = binary_row([parse_type("INT")] * 2, [1, 2])

    with pytest.raises(CorruptTableError, match="has 2 fields, but the schema has 1.*compare the table with a copy"):
        decode(pa.array([row]), fields("INT"))


@pytest.mark.parametrize("kind", ["STRING", "BYTES", "DECIMAL(38, 0)", "TIMESTAMP(9)"])
@pytest.mark.parametrize("offset", [-1, 17, 25, 2**31 - 1])
def test_a_value_outside_of_its_row_is_broken(kind, offset):
    row = (
        hexadecimal("00000001 0000000000000000") + (9).to_bytes(4, "little") + offset.to_bytes(4, "little", signed=True)
    )

    with pytest.raises(CorruptTableError, match="points outside of its row"):
        decode(pa.array([row + bytes(8), row + bytes(8)]), fields(kind))


def test_a_decimal_with_too_many_digits_is_broken():
    row = binary_row([parse_type("BIGINT")], [10**12])

    with pytest.raises(CorruptTableError, match="a value that is invalid for its type"):
        decode(pa.array([row]), fields("DECIMAL(5, 2)"))


def test_text_that_is_not_utf8_is_broken():
    row = binary_row([parse_type("BYTES")], [b"\xff\xfe"])

    with pytest.raises(CorruptTableError, match="a value that is invalid for its type"):
        decode(pa.array([row]), fields("STRING"))


def test_a_timestamp_too_far_away_is_refused_or_unknown():
    row = binary_row([parse_type("TIMESTAMP(9)")], [(253_402_300_799_999, 0)])

    with pytest.raises(
        UnsupportedFeatureError, match="TIMESTAMP.9. in a partition or key is outside the range of 64 bits"
    ):
        decode(pa.array([row]), fields("TIMESTAMP(9)"))
    assert decode(pa.array([row]), fields("TIMESTAMP(9)"), lenient=True)["f0"].to_pylist() == [None]


EVERY_KIND = sorted(VALUES)


def test_a_row_cut_anywhere_is_broken():
    examples = {"TIMESTAMP(6)": (1, 0), "TIMESTAMP_LTZ(9)": (1, 0), "BYTES": b"0123456789", "STRING": "0123456789"}
    values = [examples.get(kind, 1 if kind != "CHAR(9)" else "x") for kind in EVERY_KIND]
    whole = binary_row([parse_type(kind) for kind in EVERY_KIND], values)

    for size in range(len(whole) - 8):
        with pytest.raises(CorruptTableError):
            decode(pa.array([whole[:size]]), fields(*EVERY_KIND))


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=120), st.lists(st.sampled_from(EVERY_KIND), min_size=1, max_size=4))
def test_any_bytes_give_our_error_or_values(content, kinds):
    row = len(kinds).to_bytes(4, "big") + content

    try:
        table = decode(pa.array([row, row + bytes(8)]), fields(*kinds), lenient=True)
    except CorruptTableError:
        return
    table.validate(full=True)
