"""Casts, judged by what Paimon's own cast executors gave (probes/README.md)."""

import gzip
import json
import struct
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.inner.paimon import NotCastableError, arrow_type, cast, castable, nearest_float32, parse_type

PROBES = Path(__file__).parent / "probes"
NANOS = {"ms": 1_000_000, "us": 1_000, "ns": 1}
PAIRS = [json.loads(line) for line in gzip.decompress((PROBES / "casts.jsonl.gz").read_bytes()).decode().splitlines()]
FAMILIES = sorted({(pair["from"].split("(")[0], pair["to"].split("(")[0]) for pair in PAIRS})


def nanos(text):
    millis, rest = map(int, text.split(":"))
    return millis * 1_000_000 + rest


READ = {
    "s": str,
    "x": bytes.fromhex,
    "f": lambda text: struct.unpack(">f", bytes.fromhex(text))[0],
    "d": lambda text: struct.unpack(">d", bytes.fromhex(text))[0],
    "n": Decimal,
    "b": lambda text: text == "true",
    "t": nanos,
    "i": int,
}


def value(text):
    return None if text is None else READ[text[0]](text[2:])


def array(text, kind):
    """The value as an array of one, or None where Arrow's type cannot hold it."""
    wanted, found = arrow_type(kind), value(text)
    if pa.types.is_timestamp(wanted):
        number = None if found is None else found // NANOS[wanted.unit]
        if number is not None and abs(number) >= 2**63:
            return None
        return pa.array([number], pa.int64()).view(wanted)
    if pa.types.is_time(wanted) or pa.types.is_date(wanted):
        return pa.array([found], pa.int32()).view(wanted)
    return pa.array([found], wanted)


def identical(left, right):
    """Equal, with NaN equal to NaN and -0.0 not to 0.0."""
    if pa.types.is_floating(left.type) and left.null_count == right.null_count == 0:
        one, other = np.asarray(left), np.asarray(right)
        return bool(np.all((one == other) & (np.signbit(one) == np.signbit(other)) | np.isnan(one) & np.isnan(other)))
    return left.equals(right)


@pytest.mark.parametrize(("source", "target"), FAMILIES, ids=lambda name: name)
def test_a_value_is_cast_as_paimon_casts_it_or_refused(source, target):
    for pair in PAIRS:
        if (pair["from"].split("(")[0], pair["to"].split("(")[0]) != (source, target):
            continue
        one, other = parse_type(pair["from"]), parse_type(pair["to"])
        if pair["cases"] is None:
            assert not castable(one, other), pair
            continue
        assert castable(one, other), pair
        for given, wanted in pair["cases"]:
            before = array(given, one)
            if before is None:
                continue
            after = None if wanted == "error" else array(wanted, other)
            try:
                found = cast(pa.concat_arrays([before, pa.array([None], before.type)]), one, other)
            except NotCastableError:
                continue
            assert after is not None, (pair["from"], pair["to"], given, found)
            assert found.type == after.type
            assert identical(found[:1], after), (pair["from"], pair["to"], given, found, after)
            assert not found[1].is_valid


REFUSED = {
    # Number-like text was cast to times differently by different releases, or oddly.
    ("STRING", "DATE"): 30,
    ("STRING", "TIME(3)"): 30,
    ("STRING", "TIMESTAMP(3)"): 30,
    # Hexadecimal floats, digits of other scripts.
    ("STRING", "DOUBLE"): 1,
    ("STRING", "DECIMAL(5, 2)"): 1,
    ("STRING", "INT"): 0,
    ("STRING", "BOOLEAN"): 0,
    ("DOUBLE", "INT"): 0,
    ("DECIMAL(38, 10)", "BIGINT"): 0,
    ("TIMESTAMP(9)", "STRING"): 0,
    ("DATE", "TIMESTAMP(3)"): 0,
}


@pytest.mark.parametrize(("source", "target"), REFUSED)
def test_few_values_that_paimon_casts_are_refused(source, target):
    pair = next(pair for pair in PAIRS if (pair["from"], pair["to"]) == (source, target))
    refused = []
    for given, wanted in pair["cases"]:
        before = array(given, parse_type(source))
        if wanted == "error" or before is None:
            continue
        try:
            cast(before, parse_type(source), parse_type(target))
        except NotCastableError:
            refused.append(given)

    assert len(refused) <= REFUSED[source, target], refused


def test_text_that_is_not_a_number_is_named():
    with pytest.raises(NotCastableError, match="'12x' is not cast from STRING to INT"):
        cast(pa.array(["1", "12x"]), parse_type("STRING"), parse_type("INT"))


def test_a_time_that_arrow_can_not_hold_is_refused_and_not_wrapped():
    with pytest.raises(NotCastableError, match=r"does not fit TIMESTAMP\(9\)"):
        cast(pa.array([253_402_300_799]), parse_type("BIGINT"), parse_type("TIMESTAMP(9)"))


def test_a_decimal_just_above_the_middle_of_two_floats_goes_up():
    # 16777217 is the middle of two floats, and so near that a double cannot tell it from what is added here.
    assert nearest_float32(Decimal(16777217)) == 16777216
    assert nearest_float32(Decimal("16777217.0000000000000000000000001")) == 16777218
    assert nearest_float32(Decimal("16777216.9999999999999999999999999")) == 16777216


def test_nothing_is_cast_to_or_from_nested_types():
    assert not castable(parse_type("ARRAY<INT>"), parse_type("STRING"))
    assert not castable(parse_type("STRING"), parse_type("ROW<a INT>"))
