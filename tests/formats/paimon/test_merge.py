"""Merging by key, judged by a fold over a dict."""

import datetime as dt
import functools
import hashlib
import math
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inner.paimon import FileSequences, Rules, equality_codes, merge, merge_by_files, order_codes, takes_newest

DOUBLES = st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1.5, -1.5, 5e-324])
KEYS = {
    "int": (pa.int32(), st.integers(-3, 3)),
    "bigint": (pa.int64(), st.sampled_from([-(2**63), 2**63 - 1, 0, 1])),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.sampled_from(["", "a", "a\0", "A", "é", "ab", "\U0001f600"])),
    "long text": (pa.string(), st.sampled_from(["x" * 64, "x" * 65, "x" * 64 + "y", "x" * 70 + "1", "x" * 70 + "2"])),
    "id": (
        pa.string(),
        st.integers(0, 3).map("customer-2024-{:016d}".format) | st.integers(0, 3).map("{:040d}".format),
    ),
    "bytes": (pa.binary(), st.sampled_from([b"", b"\0", b"\xff", b"a"])),
    "double": (pa.float64(), DOUBLES),
    "float": (pa.float32(), st.sampled_from([0.0, -0.0, math.nan, 0.5])),
    "decimal": (pa.decimal128(20, 3), st.sampled_from([Decimal("1.000"), Decimal("-1.000"), Decimal("0.001")])),
    "amount": (pa.decimal128(18, 2), st.sampled_from([Decimal("-0.01"), Decimal(0), Decimal("9" * 16 + ".99")])),
    "date": (pa.date32(), st.sampled_from([dt.date(1969, 1, 1), dt.date(2024, 2, 29)])),
    "stamp": (pa.timestamp("ns"), st.integers(-2, 2)),
    "time": (pa.time32("ms"), st.integers(0, 2)),
}


def java(value):
    """What tells a value from another in Java: -0.0 from 0.0, and NaN equal to itself."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    return value


def java_compare(left, right):
    """Compare as Double.compare and compareTo do, nulls first."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if isinstance(left, float):
        left, right = ((math.isnan(x), 0 if math.isnan(x) else x, math.copysign(1, x)) for x in (left, right))
    return (left > right) - (left < right)


def newer(rules, left, right):
    """Whether `left` comes after `right`."""
    for name in rules.sequence_fields:
        order = java_compare(left[name], right[name])
        if rules.descending and left[name] is not None and right[name] is not None:
            order = -order
        if order:
            return order
    for one, other in ((left["#"], right["#"]), (left["?"] in (0, 2), right["?"] in (0, 2))):
        if one != other:
            return 1 if one > other else -1
    return 0


def fold(rows, rules):
    """The rows that are left, the plain way."""
    by_key = {}
    for row in rows:
        by_key.setdefault(tuple(java(row[name]) for name in rules.keys), []).append(row)
    left = []
    for group in by_key.values():
        lowest = min((row["@"] for row in group if row["@"] > 0), default=0)
        kept = [row for row in group if not rules.lookup or row["@"] in (0, lowest)]
        kept = [row for row in kept if not rules.ignore_delete or row["?"] in (0, 2)]
        if kept:
            last = max(kept, key=functools.cmp_to_key(functools.partial(newer, rules)))
            if last["?"] in (0, 2):
                left.append(last["n"])
    return sorted(left)


@st.composite
def events(draw):
    names = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3, unique=True))
    ordering = draw(st.lists(st.sampled_from(["s1", "s2"]), max_size=2, unique=True))
    rules = Rules(
        keys=tuple(names),
        sequence_fields=tuple(ordering),
        descending=draw(st.booleans()),
        ignore_delete=draw(st.booleans()),
        lookup=draw(st.booleans()),
    )
    size = draw(st.integers(0, 30))
    numbers = draw(st.just(range(size)) | st.permutations(range(size)))  # files are often in order
    rows = [
        {
            **{name: draw(KEYS[name][1]) for name in names},
            "s1": draw(st.none() | DOUBLES),
            "s2": draw(st.none() | st.sampled_from(["a", "b", "é"])),
            "#": numbers[index],
            "?": draw(st.integers(0, 3)),
            "@": draw(st.integers(0, 3)),
            "n": index,
        }
        for index in range(size)
    ]
    return names, rules, rows


def column(values, kind):
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, pa.int32()).view(kind) if pa.types.is_time(kind) else pa.array(values, kind)


@settings(deadline=None, max_examples=300)
@given(events(), st.integers(1, 7))
def test_merging_leaves_what_a_fold_over_a_dict_leaves(drawn, chunk):
    names, rules, rows = drawn
    kinds = {**{name: KEYS[name][0] for name in names}, "s1": pa.float64(), "s2": pa.string()}
    table = pa.table({name: column([row[name] for row in rows], kind) for name, kind in kinds.items()})
    table = pa.Table.from_batches(table.to_batches(max_chunksize=chunk), table.schema)

    table = table.append_column("?", pa.array(np.arange(table.num_rows)))
    sequence = np.array([row["#"] for row in rows], np.int64)
    kinds = np.array([row["?"] for row in rows], np.int8)

    left = merge(
        table, ["?"], rules, sequence=sequence, kinds=kinds, levels=np.array([row["@"] for row in rows], np.int32)
    )
    by_files = merge_by_files(table, ["?"], rules, kinds=kinds, files=in_files(sequence, chunk))

    assert left.column("?").to_pylist() == fold(rows, rules)
    assert by_files is None or not takes_newest(rules) or by_files == left


def in_files(sequence, size):
    """The sequence numbers of files of so many rows."""
    parts = [sequence[start : start + size] for start in range(0, len(sequence), size)]
    return FileSequences(
        rows=np.array([len(part) for part in parts], np.int64),
        lowest=np.array([part.min() for part in parts], np.int64),
        highest=np.array([part.max() for part in parts], np.int64),
    )


@pytest.mark.parametrize(
    ("sequence", "left"),
    [([1, 2, 5, 6], [2, 3]), ([5, 6, 1, 2], [0, 1]), ([1, 5, 2, 6], None), ([1, 2, 2, 3], None)],
)
def test_files_order_the_rows_of_a_key_if_their_sequence_numbers_do_not_overlap(sequence, left):
    rows, kinds = pa.table({"k": [1, 2, 1, 2], "?": [0, 1, 2, 3]}), np.zeros(4, np.int8)

    found = merge_by_files(rows, ["?"], Rules(keys=("k",)), kinds=kinds, files=in_files(np.array(sequence), 2))

    assert left == (None if found is None else found.column("?").to_pylist())


def merged(table, rules, sequence, kinds, levels=None):
    zeros = [0] * len(sequence)
    rows = pa.table(table)
    left = merge(
        rows.append_column("?", pa.array(np.arange(rows.num_rows))),
        ["?"],
        rules,
        sequence=np.array(sequence, np.int64),
        kinds=np.array(kinds, np.int8),
        levels=np.array(levels or zeros, np.int32),
    )
    return left.column("?").to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "{:09d}".format,
        "key {}".format,
        "https://example.com/orders/of/the/year/2024/{:012d}".format,
        lambda number: hashlib.sha256(str(number).encode()).hexdigest(),
        lambda number: f"{number % 3}" * 80 + str(number),
        lambda number: "customer-" * (number % 4) + "\0" * (number % 3),
    ],
)
def test_many_keys_of_text_are_distinguished_however_long_they_are(text):
    files = [sorted(text(number) for number in range(start, start + 800)) for start in (0, 400)]
    last = {key: place for place, key in enumerate(key for file in files for key in file)}
    rows = pa.table({"k": pa.chunked_array(files), "j": pa.array(np.zeros(1600, np.int64))})
    rows = rows.append_column("?", pa.array(np.arange(1600)))

    for keys in (("k",), ("j", "k")):
        left = merge(
            rows,
            ["?"],
            Rules(keys=keys),
            sequence=np.arange(1600),
            kinds=np.zeros(1600, np.int8),
            levels=np.zeros(1600, np.int32),
        )
        assert left.column("?").to_pylist() == sorted(last.values())


def test_a_retract_comes_before_an_add_of_the_same_sequence_number():
    assert merged({"k": [1, 1]}, Rules(keys=("k",)), [5, 5], [2, 3]) == [0]
    assert merged({"k": [1, 1]}, Rules(keys=("k",)), [5, 5], [3, 2]) == [1]


def test_a_lone_retract_leaves_nothing():
    assert merged({"k": [1]}, Rules(keys=("k",)), [5], [3]) == []


def test_a_null_in_a_sequence_field_is_oldest_even_when_descending():
    rules = Rules(keys=("k",), sequence_fields=("s",), descending=True)

    assert merged({"k": [1, 1, 1], "s": [None, 9, 3]}, rules, [3, 2, 1], [0, 0, 0]) == [2]


def test_with_lookup_the_lowest_level_above_zero_counts_even_with_a_lower_sequence():
    assert merged({"k": [1, 1]}, Rules(keys=("k",)), [9, 1], [0, 0], [5, 1]) == [0]
    assert merged({"k": [1, 1]}, Rules(keys=("k",), lookup=True), [9, 1], [0, 0], [5, 1]) == [1]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_are_ordered_as_java_orders_them(kind):
    values = pa.chunked_array([pa.array([math.nan, 0.0, -0.0, -math.inf, None, math.inf, -1.0], kind)])

    assert np.argsort(order_codes(values)).tolist() == [4, 3, 6, 2, 1, 5, 0]
    assert len(set(equality_codes(values).tolist())) == 7


def test_booleans_are_ordered_after_null():
    values = pa.chunked_array([[True, None, False]])

    assert np.argsort(order_codes(values)).tolist() == [1, 2, 0]


def test_text_is_ordered_by_its_bytes():
    values = pa.chunked_array([["b", "\uffff"], ["\U00010000", "a", ""]])

    assert np.argsort(order_codes(values)).tolist() == [4, 3, 0, 1, 2]


def test_chunks_share_their_codes():
    values = pa.chunked_array([["x", "y"], ["y", "x"]])

    codes = equality_codes(values).tolist()

    assert codes[0] == codes[3]
    assert codes[1] == codes[2] != codes[0]
