"""Statistics parsed all at once say what they say one by one."""

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inner.delta import bounds_of, parse_columns, schema_of
from tests.support.delta.log_reader import adds_of, metadata
from tests.support.delta.table_builder import schema_json
from tests.support.effort import ended_if_it_hangs

KINDS = ["byte", "long", "float", "double", "string", "date", "timestamp", "timestamp_ntz", "decimal(5,2)", "boolean"]
FIELDS = [*((kind.partition("(")[0], kind) for kind in KINDS), ("s", {"type": "struct", "fields": []})]
TOLD = metadata(schema_json(FIELDS))
USUAL = {
    "byte": st.integers(-128, 127),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(max_size=4) | st.just("a\ufffd") | st.just("a?\ufffd"),
    "date": st.dates().map(str),
    "timestamp": st.sampled_from(
        ["2000-01-01T00:00:00.000-08:00", "1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"]
    ),
    "timestamp_ntz": st.sampled_from(["2000-01-01T00:00:00.000", "9999-12-31T23:59:59.999"]),
    "decimal": st.decimals(-999, 999, places=2).map(float),
    "boolean": st.booleans(),
    "s": st.just({"inner": 1}),
}
ODD = st.sampled_from([None, True, 1, -1, 1.5, "x", "NaN", "", [], {}, 10**30, "2000-01-01", "2000-01-01T00:00:00Z"])


def objects(values):
    return st.fixed_dictionaries({}, optional={name: values(name) for name in USUAL})


def stats(values):
    return st.fixed_dictionaries(
        {"numRecords": st.integers(0, 9)},
        optional={
            "minValues": objects(values),
            "maxValues": objects(values),
            "nullCount": objects(lambda name: st.just({"inner": 0}) if name == "s" else st.integers(0, 9)),
            "tightBounds": st.booleans(),
            "other": st.integers(),
        },
    )


def both_ways(texts):
    """Return bounds of files, and the same beside a file whose text of two lines leaves all to the other way."""
    adds = adds_of(*({"path": str(number), "stats": text} for number, text in enumerate([*texts, "{\n}"])))
    return bounds_of(adds.slice(0, len(texts)), TOLD), bounds_of(adds, TOLD)


def same(fast, slow):
    for one, other in zip(
        (fast.lower, fast.upper, fast.null_count), (slow.lower, slow.upper, slow.null_count), strict=True
    ):
        assert one.schema == other.schema
        assert one.to_pylist() == other.to_pylist()[:-1]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | stats(USUAL.get).map(json.dumps), max_size=4))
def test_usual_statistics_are_read_alike(texts):
    same(*both_ways(texts))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.none() | stats(lambda name: USUAL[name] | ODD).map(json.dumps) | st.text(max_size=9), max_size=3))
def test_odd_statistics_are_read_alike(texts):
    same(*both_ways(texts))


def test_usual_statistics_are_parsed_all_at_once():
    text = json.dumps(
        {
            "numRecords": 3,
            "minValues": {
                "byte": 1,
                "string": "a",
                "decimal": 1.25,
                "date": "2020-01-01",
                "timestamp": "2020-01-01T00:00:00.000Z",
            },
            "maxValues": {"byte": 2, "double": 2},
            "nullCount": {"byte": 0, "s": {"inner": 1}},
        }
    )

    found = parse_columns(pa.array([text, None, text]), schema_of(TOLD).fields)

    assert found.is_valid().to_pylist() == [True, False, True]
    assert found.field("minValues").field("decimal").to_pylist()[::2] == pytest.approx([1.25, 1.25])


@pytest.mark.parametrize(
    "odd", ["", "{", "[1]", '{"numRecords":\n1}', '{"numRecords":1} {"numRecords":2}', '{"minValues":{"long":"x"}}']
)
def test_one_odd_text_leaves_all_to_the_other_way(odd):
    assert parse_columns(pa.array(['{"numRecords":1}', odd]), schema_of(TOLD).fields) is None


def test_statistics_of_many_columns_are_read():
    names = [f"c{number}" for number in range(4_000)]
    one = json.dumps(
        {"numRecords": 1, **{kind: dict.fromkeys(names, 0) for kind in ("minValues", "maxValues", "nullCount")}}
    )
    adds = adds_of({"path": "a", "stats": one})
    wide = metadata(schema_json([(name, "long") for name in names]))

    with ended_if_it_hangs():
        found = bounds_of(adds, wide)

    assert found.null_count.num_columns == len(names)
