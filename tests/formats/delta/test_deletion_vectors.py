"""Deletion vectors: inline, beside the table and elsewhere, both layouts, and damaged in every way."""

import struct
import uuid
import zlib

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.storage import Storage
from tests.inner.delta import decode_z85, read_deleted_positions, vector_of
from tests.support.delta.log_reader import tried
from tests.support.delta.table_builder import bitmap, inline_vector, vector_file
from tests.support.delta.table_builder import z85 as encoded
from tests.support.vector_bytes import bitmap as bitmap_32

ROWS = 1_000_000
PATH = "part-0.parquet"


@pytest.fixture
def storage():
    root = f"/{uuid.uuid4().hex}"
    fsspec.filesystem("memory").mkdirs(root)
    return Storage(f"memory:/{root}")


def put(storage, name, content):
    fsspec.filesystem("memory").pipe_file(f"{storage.root.removeprefix('memory:/')}/{name}", content)


def described(**changes):
    usual = {"storage_type": "i", "path_or_inline": "", "offset": None, "size_bytes": 40, "cardinality": 1}
    return usual | changes


def inline(content, cardinality, **changes):
    return described(path_or_inline=encoded(content), size_bytes=len(content), cardinality=cardinality, **changes)


def of(storage, descriptor, rows=ROWS):
    return read_deleted_positions(storage, vector_of(descriptor, storage, PATH), PATH, rows).tolist()


def test_the_vector_that_delta_wrote_is_read(storage):
    content = bytes.fromhex("0100000022d1d339640100000000000000000000003a3000000100000000000000100000000000f7a6b4b5")
    unique = uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    put(storage, f"ab/deletion_vector_{unique}.bin", content)
    reported = described(
        storage_type="u", path_or_inline="ab^-aqEH.-t@S}K{vb[*k^", offset=1, size_bytes=34, cardinality=1
    )

    assert of(storage, reported, 50) == [0]


def test_without_a_description_there_is_no_vector(storage):
    assert vector_of(None, storage, PATH) is None


@given(st.sets(st.integers(0, ROWS - 1), max_size=50))
def test_inline_positions_come_back(positions):
    reported = inline_vector(positions)

    assert of(
        Storage("memory://any"),
        inline(bitmap(positions), len(positions)) | {"path_or_inline": reported["pathOrInlineDv"]},
    ) == sorted(positions)


def test_a_file_holds_several_vectors(storage):
    sets = [range(0, 20_000, 2), [5], [65_535, 65_536, 999_999]]
    content, offsets = vector_file(*sets)
    unique = uuid.uuid4()
    put(storage, f"deletion_vector_{unique}.bin", content)

    for positions, offset in zip(sets, offsets, strict=True):
        reported = described(
            storage_type="u",
            path_or_inline=encoded(unique.bytes),
            offset=offset,
            size_bytes=len(bitmap(positions)),
            cardinality=len(positions),
        )
        assert of(storage, reported) == list(positions)


def test_an_absolute_path_is_decoded_once_and_may_not_leave_the_storage(storage):
    content, (offset,) = vector_file([3])
    put(storage, "a%20 b.bin", content)
    reported = described(
        storage_type="p",
        path_or_inline=f"{storage.root}/a%2520%20b.bin",
        offset=offset,
        size_bytes=len(bitmap([3])),
        cardinality=1,
    )

    assert of(storage, reported) == [3]
    with pytest.raises(UnsupportedFeatureError, match="on another storage than the table"):
        vector_of(reported | {"path_or_inline": "s3://elsewhere/x.bin"}, storage, PATH)


def test_rows_past_four_thousand_million_are_read():
    positions = [7, (1 << 32) + 1, (3 << 32) + 65_536]

    assert of(Storage("memory://any"), inline(bitmap(positions), 3), (4 << 32)) == positions


def native(*parts):
    out = struct.pack("<ii", 1_681_511_376, len(parts))
    for part in parts:
        out += struct.pack("<i", len(part)) + part
    return out


def test_the_other_layout_is_read():
    content = native(bitmap_32([(0, [1, 2])]), bitmap_32([]), bitmap_32([(0, [4])]))

    assert of(Storage("memory://any"), inline(content, 3), 3 << 32) == [1, 2, (2 << 32) + 4]


def test_runs_and_bitmaps_are_read():
    runs = bitmap_32([(0, list(range(100, 300))), (1, list(range(0, 60_000, 7)))], runs=(0,))
    content = struct.pack("<iqI", 1_681_511_377, 1, 0) + runs

    assert of(Storage("memory://any"), inline(content, 200 + 8572)) == [*range(100, 300), *range(65_536, 125_536, 7)]


def test_both_ways_to_write_a_short_last_block_are_read():
    assert decode_z85("##093") == bytes([3, 0])
    assert decode_z85(encoded(b"\x03\x00\x01")) == b"\x03\x00\x01\x00"


@given(st.binary(max_size=40))
def test_z85_goes_there_and_back(content):
    assert decode_z85(encoded(content)) == content + bytes(-len(content) % 4)


@given(st.text(max_size=12))
def test_any_text_is_z85_or_damage(text):
    found, error = tried(decode_z85, text)

    assert len(found) <= len(text) if error is None else "Z85" in str(error)


SOME = [0, 7, 40_000, 70_000]
WHOLE = vector_file(SOME)[0]
UNIQUE = uuid.UUID(int=5)


BESIDE = described(
    storage_type="u",
    path_or_inline=encoded(UNIQUE.bytes),
    offset=1,
    size_bytes=len(bitmap(SOME)),
    cardinality=len(SOME),
)


def beside(storage, content, **changes):
    put(storage, f"deletion_vector_{UNIQUE}.bin", content)
    return BESIDE | changes


@pytest.mark.parametrize(
    ("change", "content", "said"),
    [
        ({}, WHOLE[:-1], "the file ends 1 bytes before the end of the vector"),
        ({}, WHOLE[:20], "the file ends"),
        ({}, b"", "the file is of version none"),
        ({}, b"\x02" + WHOLE[1:], "the file is of version 02, not 01"),
        ({}, WHOLE[:30] + b"\xff" + WHOLE[31:], "CRC checksum verification failed"),
        ({}, WHOLE[:-1] + bytes([WHOLE[-1] ^ 1]), "CRC checksum verification failed"),
        ({"size_bytes": 40}, WHOLE, "Encountered a size mismatch"),
        ({"cardinality": 3}, WHOLE, "Encountered a cardinality mismatch: 4 rows, but the log records 3"),
        ({"offset": 0}, WHOLE, "it begins at 0 of"),
        ({"offset": None}, WHOLE, "it begins at 0 of"),
        ({"offset": -4}, WHOLE, "it begins at -4 of"),
        ({"offset": 5000}, WHOLE, "it begins at 5000 of"),
    ],
)
def test_damage_names_the_vector_and_its_data_file(storage, change, content, said):
    with pytest.raises(CorruptTableError, match=said) as reported:
        of(storage, beside(storage, content, **change))

    assert "The deletion vector of part-0.parquet, in deletion_vector_00000000" in str(reported.value)
    assert "compare it with a copy" in str(reported.value)


def test_a_vector_past_the_end_of_its_data_file_is_damage(storage):
    with pytest.raises(CorruptTableError, match="position 70000 where 70000 is the end"):
        of(storage, beside(storage, WHOLE), 70_000)


def test_a_vector_that_is_gone_is_named(storage):
    reported = described(storage_type="u", path_or_inline=encoded(UNIQUE.bytes), offset=1)

    with pytest.raises(
        CorruptTableError,
        match=r"The file deletion_vector_.* with the deletion vector of part-0.parquet does not exist",
    ):
        of(storage, reported)


@pytest.mark.parametrize(
    "change",
    [
        {"path_or_inline": None},
        {"size_bytes": None},
        {"size_bytes": -1},
        {"size_bytes": 3},
        {"cardinality": None},
        {"cardinality": -1},
        {"path_or_inline": "abc"},
        {"path_or_inline": "äöü12"},
        {"path_or_inline": "#####"},
        {"storage_type": "u", "path_or_inline": "short"},
        {"storage_type": "u", "path_or_inline": "x" * 19},
    ],
)
def test_a_description_that_can_not_be_is_damage(storage, change):
    with pytest.raises(
        CorruptTableError, match="The log describes a deletion vector of part-0.parquet that is not valid"
    ):
        vector_of(described(**change), storage, PATH)


@pytest.mark.parametrize("kind", ["r", "", None, "U"])
def test_another_way_to_store_is_refused(storage, kind):
    with pytest.raises(UnsupportedFeatureError, match="has the unknown storage type"):
        vector_of(described(storage_type=kind), storage, PATH)


def test_a_vector_without_a_size_is_not_read(storage):
    with pytest.raises(UnsupportedFeatureError, match="has 1,000,000,000 bytes; the limit"):
        vector_of(described(size_bytes=1_000_000_000), storage, PATH)


def test_a_folder_before_the_name_may_not_leave_the_table(storage):
    reported = described(storage_type="u", path_or_inline="../.." + encoded(UNIQUE.bytes), offset=1)

    with pytest.raises(CorruptTableError, match="leads out of the table's folder"):
        of(storage, reported)


@pytest.mark.parametrize(
    "body",
    [
        b"\x00" * 40,
        struct.pack("<iq", 1_681_511_377, -1) + b"\0" * 30,
        struct.pack("<iq", 1_681_511_377, 1 << 40) + b"\0" * 30,
        struct.pack("<ii", 1_681_511_376, -1) + b"\0" * 32,
        struct.pack("<ii", 1_681_511_376, 2_000_000_000) + b"\0" * 32,
        bitmap(SOME) + b"\0\0\0\0",
        native(bitmap_32([(0, [1])]) + b"\0"),
    ],
)
def test_bytes_that_are_not_a_bitmap_are_damage(body):
    with pytest.raises(CorruptTableError, match="inline in the log, cannot be read"):
        of(Storage("memory://any"), inline(body, 1))


@settings(max_examples=300)
@given(st.data())
def test_mutated_bytes_are_read_or_damage(data):
    content = bytearray(data.draw(st.sampled_from([bitmap(SOME), native(bitmap_32([(0, [1, 2, 9])]))])))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(8, len(content))) :]

    found, error = tried(of, Storage("memory://any"), inline(bytes(content), 4), 100_000)

    if error is None:
        assert found == sorted(set(found))
        assert len(found) == 4
        assert found[-1] < 100_000
    else:
        assert PATH in str(error)


@settings(max_examples=100)
@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_a_file_with_one_wrong_byte_is_never_read_as_other_rows(place, value):
    storage = Storage("memory://one-wrong-byte")
    content = WHOLE[:place] + bytes([value]) + WHOLE[place + 1 :]
    fsspec.filesystem("memory").pipe_file(f"/one-wrong-byte/deletion_vector_{UNIQUE}.bin", content)

    found, error = tried(of, storage, BESIDE)

    assert found == SOME if error is None else content != WHOLE
    assert zlib.crc32(bitmap(SOME)) == int.from_bytes(WHOLE[-4:], "big")
