"""Unions of 64-bit bitmaps. What Java makes of them is in vectors/unions_64.json and the table aggregates_bitmaps."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.arrow import roaring
from snapshot_explorer.errors import UnsupportedFeatureError
from tests.inner.arrow import CorruptBytesError
from tests.inner.paimon import Bitmap64, BitmapContainer, Leaf
from tests.inner.paimon import bitmaps_64_parse as parse
from tests.inner.paimon import bitmaps_64_serialize as serialize
from tests.inner.paimon import bitmaps_64_union as union

UNIONS = json.loads((Path(__file__).parents[2] / "data" / "vectors" / "unions_64.json").read_text())
VALID = sorted(
    {bytes.fromhex(side) for sides in UNIONS.values() for side in sides}, key=lambda content: (len(content), content)
)
NUMBERS = st.sets(
    st.one_of(
        st.builds(lambda byte, shift: byte << shift, st.integers(0, 255), st.sampled_from([0, 16, 24, 40, 56])),
        st.integers(0, (1 << 64) - 1),
    ),
    max_size=120,
)


def single(number):
    key, low = (number >> 16).to_bytes(6, "big"), np.array([number & 0xFFFF], np.int64)
    return Bitmap64(
        tree=Leaf(key=key, slot=0), slot_by_key={key: 0}, slots=[BitmapContainer(numbers=low, is_run=False)], last=0
    )


def bitmap(numbers):
    made = parse(b"\x00")
    for number in numbers:
        made = union(made, single(number))
    return made


def numbers_of(made):
    return {
        int.from_bytes(key, "big") << 16 | low
        for key, slot in made.slot_by_key.items()
        for low in made.slots[slot].numbers.tolist()
    }


@pytest.mark.parametrize("case", UNIONS)
def test_a_union_has_the_bytes_that_java_writes(case):
    left, right, both = (bytes.fromhex(side) for side in UNIONS[case])

    assert serialize(union(parse(left), parse(right))) == both


@pytest.mark.parametrize("content", VALID, ids=len)
def test_a_bitmap_comes_out_as_it_came_in(content):
    assert serialize(parse(content + b"more")) == content


@settings(deadline=None, max_examples=50)
@given(NUMBERS, NUMBERS)
def test_a_union_has_the_numbers_of_both_and_can_be_read_again(left, right):
    made = union(bitmap(left), bitmap(right))

    again = parse(serialize(made))

    assert numbers_of(made) == numbers_of(again) == left | right
    assert again.tree == made.tree


def test_a_union_leaves_both_sides_as_they_were():
    left, right = bitmap({1, 1 << 40}), bitmap({2, 1 << 50})
    before = serialize(left), serialize(right)

    union(left, right)

    assert (serialize(left), serialize(right)) == before


def test_the_bytes_are_those_of_the_library():
    content = serialize(bitmap([(1 << 64) - 1]))

    leaf = "04 0000 00 ffffffffffff 0000000000000000"
    slot = "01 02 01000000 ffff"
    assert content == bytes.fromhex(
        f"01 0100000000000000 {leaf} 01000000 fe 01000000 {slot} 0100000000000000 00000000 00000000"
    )


@pytest.mark.parametrize("content", [content for content in VALID if len(content) < 400], ids=len)
def test_bytes_that_are_cut_short_are_refused(content):
    for size in range(len(content)):
        with pytest.raises(CorruptBytesError):
            parse(content[:size])


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(VALID), st.integers(0, 1 << 20), st.integers(0, 255))
def test_bytes_that_were_changed_are_refused_or_come_out_as_they_are(content, place, byte):
    place %= len(content)
    changed = content[:place] + bytes([byte]) + content[place + 1 :]
    try:
        made = parse(changed)
    except CorruptBytesError:
        return

    assert changed.startswith(serialize(made))


LEAF = "04000000000000000001" + "0000000000000000"
SLOTS = "01000000fe01000000" + "0102010000000500"
END = "01000000000000000000000000000000"


def of(*, head="010100000000000000", tree=LEAF, slots=SLOTS, end=END):
    return bytes.fromhex(head + tree + slots + end)


def test_the_bytes_that_the_next_tests_change_are_a_bitmap():
    assert numbers_of(parse(of())) == {1 << 16 | 5}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (of(head="020100000000000000"), "a bitmap 2 of 1 keys with 1 leaves and 1 containers"),
        (of(head="010200000000000000"), "a bitmap 1 of 2 keys"),
        (of(tree="050000"), "a node of kind 5 with 0 children"),
        (of(tree="00050000000000"), "a node of kind 0 with 5 children"),
        (of(tree="00010006000000000000"), "with 1 children behind 0 and 6 bytes"),
        (of(tree="00010000" + "00000007" + LEAF), "the key 000000000001 behind 07, with 0 bytes that remain"),
        (of(tree="00020000" + "00000000" + LEAF + LEAF), "a node of 2 children that lists 2, or not in order"),
        (of(tree="03020000" + "01" + "00" * 31 + LEAF), "a node of 2 children that lists 1"),
        (of(tree="02020000" + "ff" * 6 + "0000" + "ff" * 248 + LEAF), "share a position"),
        (of(tree="02010000" + "ff" * 7 + "30" + "ff" * 248 + LEAF), "or are past its end"),
        (of(tree="04010000" + LEAF[8:]), "with 0 bytes that remain"),
        (of(tree="04000000000000000001" + "0100000000000000"), "1 leaves and 1 containers"),
        (of(slots="02000000fe01000000"), "1 slots in 2 arrays of the mark 254"),
        (of(slots="01000000ff01000000"), "1 slots in 1 arrays of the mark 255"),
        (of(slots="01000000feffffff7f"), "2147483647 slots in 1 arrays"),
        (of(slots="01000000fe01000000" + "0201010000000500"), "a container of kind 1 with 1 numbers, marked 2"),
        (of(slots="01000000fe01000000" + "010101000000" + "00" * 8192), "a container of kind 1 with 1 numbers"),
        (of(slots="01000000fe01000000" + "010001000100"), "a container of kind 0 with 65537 numbers"),
        (of(slots="01000000fe01000000" + "010200000000"), "a container of kind 2 with 0 numbers"),
        (of(slots="01000000fe01000000" + "010002000000" + "0200" + "0100000002000000"), "runs that touch"),
        (of(end="02000000000000000000000000000000"), "2 containers, the last in slot 0 of 1 and array 0"),
        (of(end="01000000000000000100000000000000"), "and array 1"),
        (of(end="010000000000000000000000ffffffff"), "the last in slot -1 of 1"),
    ],
)
def test_a_bitmap_that_java_would_not_write_is_refused(content, said):
    with pytest.raises(CorruptBytesError, match=said):
        parse(content)


def test_a_few_bytes_that_stand_for_too_many_numbers_are_refused():
    full = "01000000010001000000ffff"
    count = roaring.MOST_NUMBERS // 65_536 + 1
    slots = "01000000fe" + count.to_bytes(4, "little").hex() + full * count

    with pytest.raises(
        UnsupportedFeatureError, match="A bitmap contains 33,619,968 positions; the limit is 33,554,432"
    ):
        parse(of(slots=slots))
