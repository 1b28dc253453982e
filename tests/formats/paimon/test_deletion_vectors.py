"""Deletion vectors: both layouts, as Paimon wrote them and as its documents describe them, and damaged ones."""

import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.arrow import roaring
from snapshot_explorer.errors import CorruptTableError, MissingFileError, UnsupportedFeatureError
from snapshot_explorer.storage import Storage
from tests.inner.arrow import CorruptBytesError, without_deleted
from tests.inner.paimon import INDEX_ENTRIES, PaimonVector, positions, read_deleted_positions, vectors_of
from tests.scripts.make_vectors import POSITIONS
from tests.support.paimon.splits import Files
from tests.support.vector_bytes import bitmap, of, vector, vector_32, vector_64

DATA = Path(__file__).parents[2] / "data"
MANY = 2_000_000
BY_PAIMON = sorted((DATA / "vectors").glob("*.bin"))


def at(offset, length=None, cardinality=None):
    return PaimonVector(path="index/index-1", offset=offset, length=length, cardinality=cardinality)


def test_a_32_bit_vector_that_paimon_wrote_deletes_the_first_two_rows():
    content = bytes.fromhex("01000000185e43f2d03a30000001000000000001001000000000000100") + bytes.fromhex("50a75c34")

    assert positions(content, at(1, 24, 2), 10).tolist() == [0, 1]


def test_a_64_bit_file_that_paimon_wrote_has_two_vectors():
    content = bytes.fromhex(
        "0100000024d1d339640100000000000000000000003a3000000100000000000100100000000200030"
        "07a81384700000022d1d339640100000000000000000000003a3000000100000000000000100000000100eebd85f4"
    )

    assert positions(content, at(1, 44), 10).tolist() == [2, 3]
    assert positions(content, at(45, 42), 10).tolist() == [1]


@pytest.mark.parametrize("path", BY_PAIMON, ids=lambda path: path.stem)
def test_vectors_of_every_kind_of_container_hold_what_paimon_put_into_them(path):
    name, _, bits = path.stem.rpartition("_")
    content = path.read_bytes()
    size = int.from_bytes(content[1:5], "big")

    found = positions(content, at(1, size if bits == "32" else size + 8, len(POSITIONS[name])), MANY)

    assert found.tolist() == list(POSITIONS[name])


def test_vectors_that_paimon_wrote_are_read():
    assert len(BY_PAIMON) == 2 * len(POSITIONS)


sets = st.sets(st.integers(0, 200_000), max_size=200)


@settings(max_examples=60)
@given(sets, st.booleans(), st.sampled_from([vector_32, vector_64]))
def test_a_vector_holds_exactly_the_positions_that_were_written(numbers, runs, write):
    if runs and not numbers:
        return
    content = b"\x01" + write(numbers, runs=runs)

    assert positions(content, at(1), 200_001).tolist() == sorted(numbers)


def test_a_64_bit_vector_of_a_high_word_is_past_the_end():
    with pytest.raises(CorruptBytesError, match="where -"):
        positions(b"\x01" + vector_64({5 << 32}), at(1), 100)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (bytes.fromhex("5e43f2d1") + of({1}), "its magic number 5e43f2d1 is unknown"),
        (bytes.fromhex("5e43f2d0") + of({1}) + b"x", "1 bytes follow the bitmap"),
        (bytes.fromhex("5e43f2d0") + of({10}), "position 10 where 10 is the end"),
        (bytes.fromhex("5e43f2d0") + of({1 << 20}), "position 1048576 or more where 10 is the end"),
        (bytes.fromhex("5e43f2d0") + of(range(11)), "11 positions where 10 is the end"),
        (bytes.fromhex("5e43f2d0") + bitmap([(0, [3, 2])]), "not in order"),
        (bytes.fromhex("5e43f2d0") + bitmap([(0, [2, 2])]), "not in order"),
        (bytes.fromhex("5e43f2d0") + bitmap([(0, [1]), (0, [2])]), "containers out of order"),
        (bytes.fromhex("5e43f2d0") + struct.pack("<I", 12345), "no bitmap begins with 12345"),
        (bytes.fromhex("5e43f2d0") + struct.pack("<II", 12346, 70_000), "a bitmap of 70000 containers"),
        (bytes.fromhex("d1d33964") + struct.pack("<q", 2) + (b"\0\0\0\0" + of({1})) * 2, "out of order"),
        (bytes.fromhex("d1d33964") + struct.pack("<q", 1 << 60), "it is cut short"),
        (bytes.fromhex("d1d33964") + struct.pack("<q", -1), "it has -1 parts"),
        (bytes.fromhex("d1d33964"), "it has 0 parts in 4 bytes"),
    ],
)
def test_a_vector_that_contradicts_the_format_is_damaged(body, said):
    with pytest.raises(CorruptBytesError) as damage:
        positions(b"\x01" + vector(body), at(1), 10)

    assert said in str(damage.value)


@pytest.mark.parametrize("pairs", [[(0, 3), (2, 1)], [(5, 0), (1, 0)], [(65_535, 1)]])
def test_runs_that_overlap_or_leave_their_container_are_damaged(pairs):
    count = sum(more + 1 for _, more in pairs)
    content = struct.pack("<IBHH", 12347, 1, 0, count - 1) + struct.pack("<H", len(pairs))
    content += b"".join(struct.pack("<HH", *pair) for pair in pairs)

    with pytest.raises(CorruptBytesError, match="runs that overlap"):
        roaring.decode(content, 0, 1 << 17)


def test_a_bitmap_container_must_hold_as_many_as_it_says():
    content = struct.pack("<IIHHI", 12346, 1, 0, 5000 - 1, 16) + b"\xff" * 8192

    with pytest.raises(CorruptBytesError, match="a container of 5000 numbers that has 65536"):
        roaring.decode(content, 0, 1 << 17)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (at(1, 25), "its length is 24, but the index manifest records 25"),
        (at(1, 24, 3), "it deletes 2 rows, but the index manifest records 3"),
        (at(2, 24), "at 2 of 33"),
        (at(0, 24), "it begins at 0"),
        (at(-4, 24), "it begins at -4"),
        (at(None), "it begins at None"),
        (at(1 << 40), "it has 0 bytes"),
    ],
)
def test_what_the_index_manifest_says_must_be_so(where, said):
    content = b"\x01" + vector_32({0, 1})

    with pytest.raises(CorruptBytesError) as damage:
        positions(content, where, 10)

    assert said in str(damage.value)


def test_the_length_of_a_64_bit_vector_counts_size_and_checksum():
    content = b"\x01" + vector_64({0, 1})
    size = int.from_bytes(content[1:5], "big")

    assert positions(content, at(1, size + 8), 10).tolist() == [0, 1]
    with pytest.raises(CorruptBytesError, match=f"its length is {size + 8}"):
        positions(content, at(1, size), 10)


def test_an_index_file_of_another_version_is_damaged():
    with pytest.raises(CorruptBytesError, match="version of the index file is 02, not 1"):
        positions(b"\x02" + vector_32({0}), at(1), 10)


@pytest.mark.parametrize("path", BY_PAIMON, ids=lambda path: path.stem)
@settings(max_examples=40)
@given(data=st.data())
def test_cut_or_changed_bytes_are_always_damage(path, data):
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        broken = bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        broken = bytes(content)

    with pytest.raises(CorruptBytesError):
        positions(broken, at(1), MANY)


@settings(max_examples=200)
@given(data=st.data())
def test_a_damaged_bitmap_below_its_checksum_is_damage_or_ascending_positions(data):
    content = bytearray(data.draw(st.sampled_from(BY_PAIMON)).read_bytes()[9:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, min(len(content), 80) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found, _ = roaring.decode(bytes(content), 0, MANY)
    except CorruptBytesError:
        return

    assert np.all(np.diff(found) > 0)
    assert not len(found) or (found[0] >= 0 and found[-1] < MANY)


def test_each_index_file_is_read_once():
    first, second = vector_32({1}), vector_64({2, 3})
    storage = Files({"index/index-1": b"\x01" + first + second})

    found = read_deleted_positions(storage, [("a.parquet", at(1), 10), ("b.parquet", at(1 + len(first)), 10)])

    assert {name: gone.tolist() for name, gone in found.items()} == {"a.parquet": [1], "b.parquet": [2, 3]}
    assert storage.opened == ["index/index-1"]


def test_a_damaged_vector_names_data_file_and_index_file():
    storage = Files({"index/index-1": b"\x01" + vector_32({99})})

    with pytest.raises(CorruptTableError, match=r"The deletion vector of a.parquet, in index/index-1 at 1, cannot be"):
        read_deleted_positions(storage, [("a.parquet", at(1), 10)])


def test_a_missing_index_file_is_named(tmp_path):
    with pytest.raises(CorruptTableError, match=r"does not exist \(index/index-1 does not exist") as raised:
        read_deleted_positions(Storage(tmp_path), [("a.parquet", at(1), 10)])

    assert isinstance(raised.value.__cause__, MissingFileError)


def test_a_few_bytes_that_stand_for_very_many_positions_are_refused():
    containers = [struct.pack("<HH", key, 65_535) for key in range(600)]
    body = struct.pack("<I", 12347 | 599 << 16) + b"\xff" * 75 + b"".join(containers) + bytes(2400)
    body += struct.pack("<HHH", 1, 0, 65_535) * 600

    with pytest.raises(
        UnsupportedFeatureError, match="A bitmap contains 39,321,600 positions; the limit is 33,554,432"
    ):
        roaring.decode(body, 0, 1 << 31)


def test_a_file_of_impossibly_many_rows_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="for a file with 4294967296 rows"):
        positions(b"\x01" + vector_32({1}), at(1), 1 << 32)


@settings(max_examples=50)
@given(st.sets(st.integers(0, 99), max_size=30), st.lists(st.integers(0, 40), max_size=5))
def test_rows_are_taken_away_by_their_position_however_they_are_batched(gone, cuts):
    edges = sorted({0, 100, *cuts})
    numbers = [(a, pa.record_batch([pa.array(range(a, b))], names=["n"])) for a, b in pairwise(edges)]
    batches = ((start, one, one.select([])) for start, one in numbers)

    left = list(without_deleted(batches, np.array(sorted(gone), np.int64)))

    assert [n for batch, _ in left for n in batch.column(0).to_pylist()] == sorted(set(range(100)) - gone)
    assert sum(bare.num_rows for _, bare in left) == 100 - len(gone)


def indexes(**values):
    row = {"index_type": "DELETION_VECTORS", "partition": b"p", "bucket": 0, "file_name": "index-1"}
    row |= {"data_file": "a.parquet", "offset": 1, "length": 22, "cardinality": 1}
    return pa.Table.from_pylist([row | values], INDEX_ENTRIES)


@pytest.mark.parametrize(
    ("options", "external", "path"),
    [
        ({}, None, "index/index-1"),
        ({"index-file-in-data-file-dir": "TRUE"}, None, "bucket-0/index-1"),
        ({}, "FILE:/mnt/x/index-1", "file:///mnt/x/index-1"),
        ({"index-file-in-data-file-dir": "true"}, "file:/mnt/x/index-1", "file:///mnt/x/index-1"),
    ],
)
def test_an_index_file_lies_in_its_folder_beside_the_data_or_elsewhere(tmp_path, options, external, path):
    found = vectors_of(indexes(external_path=external), ["bucket-0"], options, Storage(tmp_path), strict=True)

    (key,) = found
    assert key == (b"p", 0, "a.parquet")
    assert found[key] == PaimonVector(path=path, offset=1, length=22, cardinality=1)


def test_an_index_file_on_another_storage_is_shown_but_not_read(tmp_path):
    table = indexes(external_path="s3://other/index-1")

    (shown,) = vectors_of(table, ["bucket-0"], {}, Storage(tmp_path), strict=False).values()

    assert shown.path == "s3://other/index-1"
    with pytest.raises(UnsupportedFeatureError, match="on another storage"):
        vectors_of(table, ["bucket-0"], {}, Storage(tmp_path), strict=True)


def test_other_indexes_are_passed_over_and_two_vectors_of_one_file_refused(tmp_path):
    other = indexes(index_type="HASH", data_file=None)
    two = pa.concat_tables([indexes(), indexes(file_name="index-2")])

    assert vectors_of(other, ["bucket-0"], {}, Storage(tmp_path), strict=True) == {}
    with pytest.raises(CorruptTableError, match="a.parquet has two deletion vectors, in index/index-1 and in index-2"):
        vectors_of(two, ["bucket-0"] * 2, {}, Storage(tmp_path), strict=True)
