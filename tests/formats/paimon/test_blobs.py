"""Blob files: what Paimon wrote, what its documents describe, and damaged ones."""

import json
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import snapshot_explorer
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.storage import Storage
from tests.inner.arrow import CorruptBytesError
from tests.inner.paimon import PaimonDataFile, blobs
from tests.support.paimon.splits import Files, entry, parquet, rows, schema, splits

DATA = Path(__file__).parents[2] / "data"
BY_PAIMON = sorted((DATA / "paimon" / "blobs").glob("bucket-0/*.blob"))
SKIPPED = object()


def framed(value, *, length_is_checked=True):
    content, length = struct.pack("<i", 1481511375) + value, struct.pack("<q", 16 + len(value))
    return content + length + struct.pack("<I", zlib.crc32(content + length if length_is_checked else content))


def varint(number):
    coded, out = number << 1 if number >= 0 else (-number << 1) - 1, bytearray()
    while coded >= 0x80:
        out.append(coded & 0x7F | 0x80)
        coded >>= 7
    return bytes([*out, coded])


def blob_file(values, **options):
    """A blob file of values; None is null, SKIPPED leaves the row to an older file."""
    lengths = [-1 if value is None else -2 if value is SKIPPED else 16 + len(value) for value in values]
    index = b"".join(varint(now - before) for before, now in zip([0, *lengths], lengths, strict=False))
    body = b"".join(framed(value, **options) for value in values if isinstance(value, bytes))
    return body + index + struct.pack("<i", len(index)) + b"\x01"


def data_file(path, rows, *, first_row_id=0, sequence=1, size=None):
    return PaimonDataFile(
        path=path,
        format="blob",
        schema_id=0,
        rows=rows,
        size_bytes=size,
        level=0,
        min_sequence=sequence,
        max_sequence=sequence,
        deleted_rows=0,
        write_columns=("b",),
        first_row_id=first_row_id,
    )


def column(contents, *, rows):
    """The column of blob files, newest first, each with the id of its first row."""
    store = Files({f"{place}.blob": blob_file(values) for place, (_, values) in enumerate(contents)})
    files = [
        data_file(f"{place}.blob", len(values), first_row_id=first, size=len(store.files[f"{place}.blob"]))
        for place, (first, values) in enumerate(contents)
    ]
    return blobs.column(store, files, first_row_id=100, rows=rows, dtype=pa.large_binary()).to_pylist()


values = st.lists(st.none() | st.binary(max_size=300), max_size=30)


@settings(max_examples=60)
@given(values)
def test_a_blob_file_holds_exactly_the_values_that_were_written(written):
    found = blobs.parse(blob_file(written), len(written))

    assert [found.value(row) for row in range(len(written))] == written


def test_several_files_hold_parts_of_a_column():
    assert column([(102, [b"c"]), (100, [b"a", None])], rows=3) == [b"a", None, b"c"]


def test_the_newer_file_counts_but_for_rows_that_it_only_marks():
    assert column([(101, [b"B", SKIPPED, None]), (100, [b"a", b"b", b"c", b"d"])], rows=4) == [b"a", b"B", b"c", None]


@pytest.mark.parametrize("contents", [[(100, [b"a"])], [(100, [b"a", SKIPPED])]])
def test_a_row_whose_value_no_file_has_is_broken(contents):
    with pytest.raises(CorruptTableError, match="No blob file contains the value of row 101"):
        column(contents, rows=2)


def test_a_column_without_files_is_null():
    assert column([], rows=2) == [None, None]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "its version is missing"),
        (blob_file([b"a"])[:-1] + b"\x02", "its version is 02, not 1"),
        (b"\xff\0\0\0\x01", "its index has 255 bytes of 5"),
        (b"\xff\xff\xff\xff\x01", "its index has -1 bytes"),
        (blob_file([b"a", b"b"]), "its index has numbers for more than 1 rows"),
        (blob_file([]), "not possible for 1 rows"),
        (b"x" + blob_file([b"a"]), "do not fill the 18 bytes"),
        (b"\x05\x01\0\0\0\x01", "contains the length -3 for row 0"),
        (b"\x04\x01\0\0\0\x01", "do not fill the 0 bytes"),
        (b"\x80\x01\0\0\0\x01", "its index is cut short"),
    ],
)
def test_a_file_that_contradicts_the_format_is_damaged(content, said):
    with pytest.raises(CorruptBytesError) as damage:
        blobs.parse(content, 1)

    assert said in str(damage.value)


@pytest.mark.parametrize(("place", "said"), [(0, "another magic or length"), (5, "checksum"), (10, "length")])
def test_a_changed_entry_is_damaged(place, said):
    content = bytearray(blob_file([b"value"]))
    content[place] ^= 1

    with pytest.raises(CorruptBytesError, match=said):
        blobs.parse(bytes(content), 1).value(0)


@pytest.mark.parametrize("values", [[b"a"], [b""], [None, b"abc"], [b"a", SKIPPED, b"bc"], [bytes(5000)], [b"a"] * 9])
def test_checksums_of_pypaimon_before_2_1_do_not_contain_the_length(values):
    content = blob_file(values, length_is_checked=False)

    assert [value for value in values if value is not SKIPPED] == [
        blobs.parse(content, len(values)).value(row) for row, value in enumerate(values) if value is not SKIPPED
    ]


@pytest.mark.parametrize("length_is_checked", [True, False])
def test_each_changed_byte_of_a_blob_file_is_damage(length_is_checked):
    content = blob_file([b"abc"], length_is_checked=length_is_checked)

    for place in range(len(content)):
        changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
        with pytest.raises(CorruptBytesError):
            everything(changed, 1)


def test_blobs_that_paimon_wrote_are_read():
    assert len(BY_PAIMON) == 4


@pytest.mark.parametrize("path", BY_PAIMON, ids=lambda path: path.name[-6])
@settings(max_examples=60)
@given(data=st.data())
def test_cut_or_changed_bytes_are_damage_wherever_they_are(path, data):
    content = path.read_bytes()
    (rows,) = [rows for rows in range(1, 9) if is_readable(content, rows)]
    place = data.draw(st.integers(0, len(content) - 1))
    broken = content[:place]
    if data.draw(st.booleans()):
        broken += bytes([content[place] ^ data.draw(st.integers(1, 255))]) + content[place + 1 :]

    with pytest.raises(CorruptBytesError):
        everything(broken, rows)


def everything(content, rows):
    found = blobs.parse(content, rows)
    return [found.value(row) for row in range(rows)]


def is_readable(content, rows):
    try:
        blobs.parse(content, rows)
    except CorruptBytesError:
        return False
    return True


def test_a_damaged_or_missing_blob_file_is_named(tmp_path):
    (tmp_path / "a.blob").write_bytes(blob_file([b"value"])[:-3])

    with pytest.raises(CorruptTableError, match=r"The data file a.blob has 24 bytes, but its manifest records 30"):
        blobs.read(Storage(tmp_path), data_file("a.blob", 1, size=30))
    with pytest.raises(CorruptTableError, match=r"The blob file b.blob does not exist"):
        blobs.read(Storage(tmp_path), data_file("b.blob", 1, size=30))


def test_more_blobs_than_the_limit_are_refused_but_other_columns_are_read(monkeypatch):
    monkeypatch.setattr(blobs, "LIMIT_BYTES", 400)
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / "blobs")).at(1)

    assert snapshot.to_arrow(columns=["b"]).num_rows == 5
    monkeypatch.setattr(blobs, "LIMIT_BYTES", 300)
    with pytest.raises(
        UnsupportedFeatureError, match="The requested blob columns have 343 bytes; the limit of one read is 300"
    ):
        snapshot.to_arrow()
    assert snapshot.to_arrow(columns=["k"]).num_rows == 5


def described(content):
    """A descriptor's file name, offset and length, after a look at what must stand before them."""
    version, magic, size = struct.unpack_from("<b8si", content)
    uri = content[13 : 13 + size].decode()
    assert (version, magic[::-1], len(content)) == (2, b"BLOBDESC", 13 + size + 16)
    return uri, *struct.unpack_from("<qq", content, 13 + size)


DESCRIBED = json.loads((DATA / "expected" / "blob_descriptors" / "blobs.json").read_text())


@pytest.mark.parametrize(("version", "expected"), DESCRIBED.items())
def test_descriptors_say_where_paimon_says_that_the_values_are(version, expected):
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / "blobs")).at(int(version))

    found = snapshot.to_arrow(columns=["b$descriptor", "b", "k"]).to_pylist()

    places = [(row["k"], row["b$descriptor"] and described(row["b$descriptor"])) for row in found]
    assert sorted((key, place and [place[0].rsplit("/", 1)[1], *place[1:]]) for key, place in places) == sorted(
        (key, place) for key, place in expected
    )
    for row, (_, place) in zip(found, places, strict=True):
        assert (row["b"] is None) == (place is None)
        if place:
            content = Path(place[0].removeprefix("file:")).read_bytes()
            assert content[place[1] : place[1] + place[2]] == row["b"]


def test_descriptors_are_returned_only_on_request_and_only_for_blob_columns():
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / "blobs")).at("latest")

    assert snapshot.to_arrow().column_names == ["k", "b"]
    assert snapshot.to_arrow(columns=["b$descriptor"]).schema.types == [pa.binary()]
    for name in ("k$descriptor", "$descriptor", "c$descriptor"):
        with pytest.raises(InvalidArgumentError, match="Unknown column"):
            snapshot.to_arrow(columns=[name])


def test_descriptors_load_no_values_and_have_no_bound(tmp_path, monkeypatch):
    (tmp_path / "b.blob").write_bytes(blob_file([b"value", None]))
    monkeypatch.setattr(blobs, "LIMIT_BYTES", 30)
    monkeypatch.setattr(blobs, "parse", None)

    ranges = blobs.read_ranges(Storage(str(tmp_path)), data_file("b.blob", 2))

    assert described(ranges.value(0))[1:] == (4, 5)
    assert ranges.value(1) is None


@pytest.mark.parametrize("cut", [0, 3, 20])
def test_an_index_that_is_cut_short_is_refused_with_the_name_of_its_file(tmp_path, cut):
    (tmp_path / "b.blob").write_bytes(blob_file([b"value", None])[:cut])
    storage = Storage(str(tmp_path))

    with pytest.raises(CorruptTableError, match="The blob file b.blob cannot be read"):
        blobs.read_ranges(storage, data_file("b.blob", 2))
    with pytest.raises(CorruptTableError, match="The blob file c.blob does not exist"):
        blobs.read_ranges(storage, data_file("c.blob", 2))


def test_rows_without_a_blob_file_have_neither_values_nor_descriptors():
    table = schema([("k", "INT"), ("b", "BLOB")])
    store = Files({"bucket-0/a.parquet": parquet(pa.table({"k": pa.array([1, 2], pa.int32())}))})
    one = entry("a.parquet", rows=2, write_columns=["k"], first_row_id=0)
    (split,) = splits(table, [one], options={"data-evolution.enabled": "true", "row-tracking.enabled": "true"})

    assert rows(store, split, ["b$descriptor", "k", "b"]).to_pylist() == [
        {"b$descriptor": None, "k": key, "b": None} for key in (1, 2)
    ]
