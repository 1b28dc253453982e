"""Variants that Spark shredded are the values that Spark reads, and damaged ones are errors."""

import json
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.arrow import variants
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.results import Frame
from tests.inner.arrow import json_text, json_texts, with_texts

DATA = Path(__file__).parents[1] / "data" / "variants"
FILES = sorted(DATA.glob("*.parquet"))
TYPE = pa.struct({"value": pa.binary(), "metadata": pa.binary()})
EMPTY = b"\1\0\0"
NAMES = b"\1\2\0\1\2ab"
"""The metadata of objects with fields a and b."""


def as_spark_writes(text):
    """A JSON value as Spark's `to_json` writes it: times have a blank where ISO 8601 has a T."""
    return json.loads(text, parse_float=str, object_hook=lambda fields: {k: spaced(v) for k, v in fields.items()})


def spaced(value):
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    return value.replace("T", " ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shredded_variants_have_the_values_that_spark_reads(path):
    expected = json.loads((DATA / "expected.json").read_text())[path.stem]
    table = pq.read_table(path)
    values = table["v"].combine_chunks()

    texts = json_texts(variants.unshred(values, TYPE))

    assert variants.is_group(values.type)
    assert variants.unread_type(values.type) is None
    for number, text in zip(table["id"].to_pylist(), texts.to_pylist(), strict=True):
        theirs = expected[str(number)]
        assert (text and as_spark_writes(text)) == (theirs and as_spark_writes(theirs))


def test_all_rows_at_once_and_a_few_at_a_time_give_the_same():
    values = pq.read_table(DATA / "deep.parquet")["v"].combine_chunks()

    whole = variants.unshred(values, TYPE)

    for begin, length in ((0, 0), (0, 1), (2, 5), (7, 8)):
        assert variants.unshred(values.slice(begin, length), TYPE).equals(whole.slice(begin, length))


def shredded(*rows, **kinds):
    kind = pa.struct({"metadata": pa.binary(), "value": pa.binary(), **kinds})
    return pa.array(rows, kind)


OBJECT = pa.struct({"a": pa.struct({"value": pa.binary(), "typed_value": pa.int32()})})


@pytest.mark.parametrize(
    ("row", "kind", "said"),
    [
        ({"metadata": b"\2\0\0"}, pa.int32(), "metadata of a variant is not of version 1"),
        ({"metadata": b"\1\5\0"}, pa.int32(), "metadata of a variant ends early"),
        ({"metadata": b"\1\1\0\7a"}, pa.int32(), "names beyond its end"),
        ({"metadata": EMPTY, "value": b"\0", "typed_value": 1}, pa.int32(), "both a value and a typed value"),
        ({"metadata": EMPTY, "typed_value": {"a": {"typed_value": 1}}}, OBJECT, "lack the name"),
        ({"metadata": NAMES, "value": b"\0", "typed_value": {"a": {}}}, OBJECT, "a value that is not an object"),
        ({"metadata": NAMES, "value": b"\2\1", "typed_value": {"a": {}}}, OBJECT, "ends early"),
        ({"metadata": NAMES, "value": b"\2\1\7\0\1\0", "typed_value": {"a": {}}}, OBJECT, "not in its metadata"),
        ({"metadata": NAMES, "value": b"\2\1\1\0\7\0", "typed_value": {"a": {}}}, OBJECT, "beyond its end"),
        (
            {"metadata": NAMES, "value": b"\2\1\0\0\1\0", "typed_value": {"a": {"typed_value": 1}}},
            OBJECT,
            "a field twice",
        ),
    ],
)  # fmt: skip
def test_a_group_that_contradicts_itself_is_an_error(row, kind, said):
    with pytest.raises(pa.ArrowInvalid, match=said):
        variants.unshred(shredded(row, typed_value=kind), TYPE)


def test_a_variant_that_is_required_and_missing_is_null():
    found = variants.unshred(shredded({"metadata": EMPTY}, None, typed_value=pa.int32()), TYPE)

    assert found.to_pylist() == [{"value": b"\0", "metadata": EMPTY}, None]


def test_fields_come_in_the_order_of_their_names_whatever_their_numbers():
    metadata = b"\1\2\0\1\2ba"  # b is field 0
    row = {"metadata": metadata, "value": b"\2\1\0\0\1\0", "typed_value": {"a": {"typed_value": 7}}}

    found = variants.unshred(shredded(row, typed_value=OBJECT), TYPE)

    assert json_texts(found).to_pylist() == ['{"a":7,"b":null}']


@pytest.mark.parametrize(
    "value", [b"", b"\x14\1", b"\2\1", b"\2\1\7\0\1\0", b"\x40\xff\xff\xff\xff", b"\xfc", b"\3\1\0\7"]
)
def test_bytes_that_are_not_a_variant_are_an_error(value):
    with pytest.raises(ValueError, match="variant"):
        json_text(NAMES, value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x1c" + b"\0\0\0\0\0\0\xf8\x7f", '"NaN"'),
        (b"\x38" + b"\0\0\x80\xff", '"-Infinity"'),
        (b"\x20\2\x9c\xff\xff\xff", "-1"),
        (b"\x20\3\5\0\0\0", "0.005"),
        (b"\x44" + (3_723_000_001).to_bytes(8, "little"), '"01:02:03.000001"'),
        (b"\x4c" + (1001).to_bytes(8, "little"), '"1970-01-01T00:00:00.000001001"'),
        (b"\x50" + bytes(range(16)), '"00010203-0405-0607-0809-0a0b0c0d0e0f"'),
    ],
)
def test_values_of_types_that_spark_does_not_write_are_text_too(value, text):
    assert json_text(EMPTY, value) == text


@pytest.mark.parametrize("types", ["arrow", "numpy", "nullable"])
def test_variants_are_json_text_in_pandas_also_inside_of_other_values(types):
    table = open_table(DATA.parent / "delta" / "variants")

    row = table.current.to_pandas(where="id = 13", types=types).iloc[0]

    text = '{"a":1,"b":{"c":[1.5,true,null]}}'
    assert (row["v"], row["s"], list(row["l"])) == (text, {"v": text}, [text, None])


def test_variants_in_maps_are_text_too():
    kind = open_table(DATA.parent / "delta" / "variants").current.to_arrow(["v"]).schema.field("v").type
    values = pa.array([[("k", {"value": b"\x0c\1", "metadata": EMPTY})], None, []], pa.map_(pa.string(), kind))

    assert with_texts(pa.table({"m": values}))["m"].to_pylist() == [[("k", "1")], None, []]


def test_variants_are_drawn_as_json_and_damaged_ones_as_bytes():
    kind = open_table(DATA.parent / "delta" / "variants").current.to_arrow(["v"]).schema.field("v").type
    values = pa.array([{"value": b"\3\1\0\1\0", "metadata": EMPTY}, {"value": b"\xfc", "metadata": b"x"}], kind)

    drawn = repr(Frame(pa.table({"v": values}), title="rows", noun="rows"))

    assert "[null]" in drawn
    assert "value=0xfc" in drawn
    with pytest.raises(
        CorruptTableError, match=r"The column 'v' cannot be converted to JSON text: .* snapshot\.to_arrow\(\)"
    ):
        with_texts(pa.table({"v": values}))
