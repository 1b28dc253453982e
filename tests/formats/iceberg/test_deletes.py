"""Which rows position deletes, equality deletes and deletion vectors remove."""

import struct
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.iceberg import DeletedRows, comparable_values
from tests.support.iceberg.live_files import RECORDED, Version, field, schema_of, struct_type

ID, NAME = field(1, "id", "int"), field(2, "name", "string")
BY_ID = {
    0: {"spec-id": 0, "fields": []},
    1: {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"}]},
    2: {"spec-id": 2, "fields": [{"source-id": 1, "field-id": 1000, "name": "id", "transform": "void"}]},
}


def ids(version):
    return [row["id"] for row in version.rows("id")]


def test_position_deletes_apply_to_data_of_the_same_or_a_lower_sequence_number(tmp_path):
    version = Version(tmp_path, ID)
    old = version.data("old.parquet", {"id": [1, 2, 3]}, number=1)
    same = version.data("same.parquet", {"id": [4, 5, 6]}, number=2)
    newer = version.data("newer.parquet", {"id": [7, 8, 9]}, number=3)
    version.position_deletes("d.parquet", [(same, 1), (old, 0), (old, 2), (newer, 0), (old, 0)], number=2)

    assert ids(version) == [2, 4, 6, 7, 8, 9]


def test_position_deletes_name_files_by_their_recorded_text(tmp_path):
    version = Version(tmp_path, ID)
    path = version.data("a.parquet", {"id": [1, 2]})
    version.position_deletes("d.parquet", [(path.replace("s3://", "s3a://"), 0), (str(tmp_path / "a.parquet"), 1)])

    assert ids(version) == [1, 2]


@pytest.mark.parametrize("name", ["d.parquet", "d.avro"])
def test_a_delete_file_of_one_data_file_is_found_by_its_path(tmp_path, name):
    version = Version(tmp_path, ID)
    path = version.data("a.parquet", {"id": [1, 2]})
    version.data("b.parquet", {"id": [3, 4]})
    version.position_deletes(name, [(path, 0), (RECORDED + "b.parquet", 0)], referenced_data_file=path)

    assert ids(version) == [2, 3, 4]


def test_position_deletes_are_of_their_partition_alone(tmp_path):
    version = Version(tmp_path, ID, specs=BY_ID)
    path = version.data("a.parquet", {"id": [1, 1]}, partition=(1, (1,)))
    version.position_deletes("other.parquet", [(path, 0)], partition=(1, (2,)))
    version.position_deletes("other_spec.parquet", [(path, 0)], partition=(0, ()))
    assert ids(version) == [1, 1]

    version.position_deletes("own.parquet", [(path, 0)], partition=(1, (1,)))
    assert ids(version) == [1]


def test_a_position_past_the_end_of_a_file_deletes_nothing(tmp_path):
    version = Version(tmp_path, ID)
    path = version.data("a.parquet", {"id": [1, 2]})
    version.position_deletes("d.parquet", [(path, 2)])

    assert version.rows() == [{"id": 1}, {"id": 2}]


def test_rows_of_delete_files_without_path_or_position_delete_nothing(tmp_path):
    version = Version(tmp_path, ID)
    path = version.data("a.parquet", {"id": [1, 2]})
    version.position_deletes("d.parquet", [(None, 0), (path, 1), (path, None)])

    assert ids(version) == [1]


def test_a_deletion_vector_replaces_position_deletes_of_its_file(tmp_path):
    version = Version(tmp_path, ID, format_version=3)
    path = version.data("a.parquet", {"id": [1, 2, 3]})
    version.position_deletes("d.parquet", [(path, 0)])
    version.vector("v.puffin", path, [2])

    assert ids(version) == [1, 2]
    assert version.plan().splits[0].live_rows == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"record_count": 5}, "deletes 1 rows, but the manifest records 5"),
        ({"content_size_bytes": 30}, "its length is"),
        ({"content_size_bytes": 2000}, "the file ends"),
        ({"content_offset": 0}, "its length is"),
        ({"content_offset": None}, "not valid: it begins at None"),
        ({"number": 0}, "greater one"),
        ({"partition": (0, ("x",))}, "another partition"),
    ],
)
def test_a_deletion_vector_that_does_not_fit_is_refused(tmp_path, more, message):
    version = Version(
        tmp_path,
        ID,
        format_version=3,
        specs={0: {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "zorder"}]}},
    )
    path = version.data("a.parquet", {"id": [1, 2, 3]}, number=1, partition=(0, ("",)))
    more = {"partition": (0, ("",))} | more
    if more.pop("number", None) == 0:
        version.data_files[0]["sequence_number"] = 9
    version.vector("v.puffin", path, [2], **more)

    with pytest.raises(CorruptTableError, match=message):
        version.rows()


@pytest.mark.parametrize("place", [0, 4, 20, 44])
def test_a_changed_byte_of_a_deletion_vector_is_found(tmp_path, place):
    version = Version(tmp_path, ID, format_version=3)
    path = version.data("a.parquet", {"id": [1, 2, 3]})
    version.vector("v.puffin", path, [2])
    content = bytearray((tmp_path / "v.puffin").read_bytes())
    content[4 + place % (len(content) - 4)] ^= 0xFF
    (tmp_path / "v.puffin").write_bytes(bytes(content))

    with pytest.raises(CorruptTableError, match="v.puffin at 4, cannot be read"):
        version.rows()


def test_the_checksum_of_a_deletion_vector_finds_another_position(tmp_path):
    version = Version(tmp_path, ID, format_version=3)
    path = version.data("a.parquet", {"id": [1, 2, 3]})
    version.vector("v.puffin", path, [2])
    content = bytearray((tmp_path / "v.puffin").read_bytes())
    position = 4 + 4 + int.from_bytes(content[4:8], "big") - 2
    assert content[position : position + 2] == struct.pack("<H", 2)
    content[position] = 0
    (tmp_path / "v.puffin").write_bytes(bytes(content))

    with pytest.raises(CorruptTableError, match="v.puffin at 4, cannot be read"):
        version.rows()


def test_two_deletion_vectors_of_a_file_are_refused(tmp_path):
    version = Version(tmp_path, ID, format_version=3)
    path = version.data("a.parquet", {"id": [1, 2, 3]})
    version.vector("v.puffin", path, [2])
    version.vector("w.puffin", path, [1])

    with pytest.raises(CorruptTableError, match="has two deletion vectors"):
        version.rows()


def test_a_bitmap_that_claims_billions_of_rows_is_refused_before_it_is_unpacked(tmp_path):
    version = Version(tmp_path, ID, format_version=3)
    path = version.data("a.parquet", {"id": [1, 2, 3]})
    body = bytes.fromhex("d1d33964") + struct.pack("<QIII", 1, 0, 12346, 65536) + bytes(64)
    blob = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    version.vector("v.puffin", path, [2], content=blob)

    with pytest.raises(CorruptTableError, match="cannot be read"):
        version.rows()


def test_equality_deletes_apply_to_data_of_a_lower_sequence_number_only(tmp_path):
    version = Version(tmp_path, ID)
    version.data("a.parquet", {"id": [1, 2, None]}, number=1)
    version.data("b.parquet", {"id": [1, 2, None]}, number=2)
    version.equality_deletes("d.parquet", {"id": [1, None]}, number=2)

    assert ids(version) == [2, 1, 2, None]


def test_sets_of_equality_deletes_count_from_their_own_sequence_number_on(tmp_path):
    version = Version(tmp_path, ID)
    for number in (1, 2, 3):
        version.data(f"{number}.parquet", {"id": [1, 2, 3]}, number=number)
    version.equality_deletes("d2.parquet", {"id": [1]}, number=2)
    version.equality_deletes("d3.parquet", {"id": [2]}, number=3)

    assert ids(version) == [3, 1, 3, 1, 2, 3]
    identities = [split.identity for split in version.plan().splits]
    assert len(set(identities)) == 3


def test_any_of_several_sets_of_columns_deletes(tmp_path):
    version = Version(tmp_path, ID, NAME)
    version.data("a.parquet", {"id": [1, 2, 3, None], "name": ["a", "b", None, None]})
    version.equality_deletes("d.parquet", {"id": [1]})
    version.equality_deletes("e.parquet", {"id": [2, 3, 1], "name": ["x", None, "b"]})
    version.equality_deletes("f.avro", {"id": [None], "name": [None]})

    assert ids(version) == [2]


def test_columns_of_a_delete_file_that_are_not_compared_do_not_matter(tmp_path):
    version = Version(tmp_path, ID, NAME)
    version.data("a.parquet", {"id": [1, 2], "name": ["a", "b"]})
    version.equality_deletes("d.parquet", {"id": [1], "name": ["other"]}, ids=[1])

    assert ids(version) == [2]


def test_equality_deletes_compare_columns_that_are_not_read(tmp_path):
    version = Version(tmp_path, ID, NAME)
    version.data("a.parquet", {"id": [1, 2], "name": ["a", "b"]})
    version.equality_deletes("d.parquet", {"id": [1]})

    assert version.rows("name") == [{"name": "b"}]


def test_equality_deletes_of_an_unpartitioned_spec_apply_to_all_partitions(tmp_path):
    version = Version(tmp_path, NAME, ID, specs=BY_ID)
    for spec_id, values in ((0, ()), (1, (1,)), (1, (2,)), (2, (None,))):
        name = f"{spec_id}{values[:1]}.parquet"
        version.data(name, {"id": [9, 9], "name": ["gone", "kept"]}, partition=(spec_id, values))
    version.equality_deletes("d.parquet", {"name": ["gone"]}, partition=(2, (None,)))

    assert [row["name"] for row in version.rows("name")] == ["kept"] * 4


def test_equality_deletes_of_a_partition_apply_to_it_alone(tmp_path):
    version = Version(tmp_path, NAME, ID, specs=BY_ID)
    for spec_id, values in ((0, ()), (1, (1,)), (1, (2,))):
        name = f"{spec_id}{values[:1]}.parquet"
        version.data(name, {"id": [9], "name": ["gone"]}, partition=(spec_id, values))
    version.equality_deletes("d.parquet", {"name": ["gone"]}, partition=(1, (2,)))

    assert ids(version) == [9, 1]


def test_a_column_that_was_dropped_still_counts_in_equality_deletes(tmp_path):
    former = schema_of(ID, NAME)
    version = Version(tmp_path, ID, field(3, "name", "int"), schemas=[former])
    version.data("a.parquet", {"id": [1, 2], "name": ["a", "b"]}, schema=former)
    version.equality_deletes("d.parquet", {"name": ["a"]}, schema=former)

    assert version.rows() == [{"id": 2, "name": None}]


def test_a_column_that_was_added_later_is_null_or_its_default_in_equality_deletes(tmp_path):
    former = schema_of(ID)
    added = (field(2, "a", "int"), field(3, "b", "int", **{"initial-default": 5}))
    version = Version(tmp_path, ID, *added, schemas=[former], format_version=3)
    version.data("a.parquet", {"id": [1]}, schema=former)
    version.data("b.parquet", {"id": [2, 3, 4], "a": [None, 1, 1], "b": [1, 5, 1]})
    version.equality_deletes("d.parquet", {"a": [None], "b": [5]})
    version.equality_deletes("e.parquet", {"b": [5], "id": [3]})

    assert ids(version) == [2, 4]


def test_promoted_columns_are_compared_in_their_new_type(tmp_path):
    former = schema_of(field(1, "id", "int"), field(2, "x", "float"))
    version = Version(tmp_path, field(1, "id", "long"), field(2, "x", "double"), schemas=[former])
    version.data("a.parquet", {"id": [1, 2], "x": [0.5, 1.5]}, schema=former)
    version.data("b.parquet", {"id": [1, 2**40], "x": [0.5, 1.5]})
    version.equality_deletes("d.parquet", {"id": [1], "x": [0.5]}, schema=former)

    assert ids(version) == [2, 2**40]


def test_nan_equals_nan_and_the_zeros_differ(tmp_path):
    version = Version(tmp_path, ID, field(2, "x", "double"))
    version.data("a.parquet", {"id": [1, 2, 3, 4], "x": [float("nan"), -0.0, 0.0, None]})
    version.equality_deletes("d.parquet", {"x": [float("nan"), 0.0]})

    assert ids(version) == [2, 4]


def test_a_field_of_a_struct_is_compared_and_null_where_the_struct_is(tmp_path):
    nested = field(2, "s", struct_type(field(3, "a", "int"), field(4, "b", "int")))
    version = Version(tmp_path, ID, nested)
    version.data(
        "a.parquet", {"id": [1, 2, 3, 4], "s": [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": None, "b": 3}, None]}
    )
    version.equality_deletes("d.parquet", {"s": [{"a": 1, "b": None}, None]}, ids=[3])

    assert ids(version) == [2]


def test_equality_columns_that_are_constant_in_a_partition_need_not_be_in_the_file(tmp_path):
    version = Version(tmp_path, ID, NAME, specs=BY_ID)
    version.data("a.parquet", {"name": ["x", "y"]}, partition=(1, (7,)))
    version.equality_deletes("d.parquet", {"id": [7], "name": ["x"]}, partition=(1, (7,)))

    assert version.rows() == [{"id": 7, "name": "y"}]


def test_equality_deletes_by_columns_that_cannot_be_compared_are_refused(tmp_path):
    version = Version(tmp_path, ID, field(2, "s", struct_type(NAME | {"id": 3})))
    version.data("a.parquet", {"id": [1]})
    version.equality_deletes("d.parquet", {"id": [1]}, ids=[2])
    with pytest.raises(CorruptTableError, match="compares the column 's', which is a struct"):
        version.rows()

    version.delete_files[0]["equality_ids"] = [99]
    with pytest.raises(CorruptTableError, match="the id 99, which no schema of the table has"):
        version.rows()

    version.delete_files[0]["equality_ids"] = None
    with pytest.raises(CorruptTableError, match="without the columns that it compares"):
        version.rows()


def test_equality_deletes_by_a_variant_are_refused_by_name(tmp_path):
    version = Version(tmp_path, ID, field(2, "v", "variant"), format_version=3)
    version.data("a.parquet", {"id": [1]})
    version.equality_deletes("d.parquet", {"id": [1]}, ids=[2])

    with pytest.raises(UnsupportedFeatureError, match="compares the column 'v' of type variant"):
        version.rows()


def test_each_delete_file_is_read_once_however_many_files_it_applies_to(tmp_path, monkeypatch):
    version = Version(tmp_path, ID)
    paths = [version.data(f"{number}.parquet", {"id": [1, 2, 3]}) for number in range(20)]
    version.position_deletes("p.parquet", [(path, 0) for path in paths])
    version.equality_deletes("e.parquet", {"id": [3]})
    opened = []
    from snapshot_explorer.storage import Storage

    original = Storage.open
    monkeypatch.setattr(Storage, "open", lambda self, path, **more: opened.append(path) or original(self, path, **more))

    assert ids(version) == [2] * 20
    assert opened.count("p.parquet") == opened.count("e.parquet") == 1


KINDS = (
    (pa.int64(), st.none() | st.integers(-2, 2) | st.sampled_from([-(2**63), 2**63 - 1])),
    (pa.int32(), st.none() | st.integers(-2, 2)),
    (pa.string(), st.none() | st.sampled_from(["", "a", "ab"])),
    (pa.string(), st.sampled_from(["customer-1", "customer-2", "customers1"])),
    (pa.string(), st.none() | st.text("ab", max_size=20)),
    (pa.bool_(), st.none() | st.booleans()),
    (pa.binary(2), st.none() | st.sampled_from([b"aa", b"ab"])),
    (pa.decimal128(9, 2), st.none() | st.decimals(-1, 1, places=2).map(lambda number: round(number, 1))),
)


@given(st.data())
def test_rows_are_deleted_as_if_each_were_compared_with_each(data):
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    one = st.tuples(*(values for _, values in kinds))
    files = data.draw(st.lists(st.lists(one, max_size=5), min_size=1, max_size=3))
    rows = data.draw(st.lists(one, max_size=20))
    number = data.draw(st.integers(0, 4))
    numbers = list(range(1, len(files) + 1))

    def columns(some):
        return [
            comparable_values(pa.array([row[place] for row in some], kind)) for place, (kind, _) in enumerate(kinds)
        ]

    start = data.draw(st.integers(0, len(rows)))
    deleted = DeletedRows([[pa.chunked_array([column]) for column in columns(some)] for some in files], numbers)
    found = deleted.contains([column.slice(start) for column in columns(rows)], number)

    gone = {row for some, at in zip(files, numbers, strict=True) if at > number for row in some}
    assert found.tolist() == [row in gone for row in rows[start:]]


@pytest.mark.parametrize("text", ["", "gone", "gone, with more than sixteen bytes"])
def test_the_text_beneath_a_null_is_not_compared(text):
    texts = pa.array([text, text, "left"])
    rows = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x06"), *texts.buffers()[1:]])

    found = DeletedRows([[pa.chunked_array([texts[:1]])]], [2]).contains([rows], 1)

    assert found.tolist() == [False, True, False]
