"""Which files are skipped, which splits are raw, and that no row is lost by it."""

import math
import pickle
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.storage import Storage
from tests.inner.iceberg import IcebergNativeFiles, RowReader, plan_of
from tests.support.iceberg.live_files import Version, field, schema_of, struct_type

ID, NAME, SHARE = field(1, "id", "int"), field(2, "name", "string"), field(3, "share", "double")
PACKED = {1: "<i", 3: "<d"}
BY_NAME = {
    0: {"spec-id": 0, "fields": [{"source-id": 2, "field-id": 1000, "name": "name", "transform": "identity"}]},
    1: {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1001, "name": "id_trunc", "transform": "truncate[10]"}]},
}


def native_files(folder):
    storage = Storage(folder)
    return IcebergNativeFiles(storage=storage, reader=RowReader(storage))


def binary(number, value):
    return struct.pack(PACKED[number], value) if number in PACKED else value.encode()


def statistics(rows, ids=(1, 2, 3), names=("id", "name", "share")):
    """What a writer records of columns."""
    found = {"lower_bounds": [], "upper_bounds": [], "null_value_counts": [], "value_counts": []}
    for number, name in zip(ids, names, strict=True):
        values = rows.get(name)
        if values is None:
            continue
        there = [value for value in values if value is not None and not _is_nan(value)]
        found["null_value_counts"].append((number, values.count(None)))
        found["value_counts"].append((number, len(values)))
        if there:
            found["lower_bounds"].append((number, binary(number, min(there))))
            found["upper_bounds"].append((number, binary(number, max(there))))
    return found


def _is_nan(value):
    return isinstance(value, float) and math.isnan(value)


def skipped(plan):
    return [(row["files"], row["skipped"]) for row in plan.skipped().to_pylist()]


def test_files_are_skipped_by_bounds_and_the_reason_names_the_columns(tmp_path):
    version = Version(tmp_path, ID, NAME)
    for number, rows in enumerate(({"id": [1, 5], "name": ["a", "b"]}, {"id": [6, None], "name": ["c", "d"]})):
        version.data(f"{number}.parquet", rows, **statistics(rows, (1, 2), ("id", "name")))

    assert skipped(version.plan("id > 5")) == [(1, "statistics of id")]
    assert skipped(version.plan("name = 'b'")) == [(1, "statistics of name")]
    assert skipped(version.plan("id IS NULL")) == [(1, "statistics of id")]
    assert version.plan("id % 2 = 0").skipped().num_rows == 0
    assert version.rows(where="id > 5") == [{"id": 6, "name": "c"}]


def test_bounds_of_before_a_promotion_count_and_those_of_no_value_do_not(tmp_path):
    version = Version(tmp_path, field(1, "id", "long"), schemas=[schema_of(ID)])
    rows = {"id": [1, 5]}
    version.data("a.parquet", rows, schema=schema_of(ID), **statistics(rows, (1,), ("id",)))
    assert skipped(version.plan("id > 5")) == [(1, "statistics of id")]

    version.data_files[0]["upper_bounds"] = [(1, b"abc")]
    assert version.plan("id > 5").skipped().num_rows == 0


def test_nan_is_not_a_bound(tmp_path):
    version = Version(tmp_path, SHARE)
    rows = {"share": [math.nan, 1.0]}
    version.data("a.parquet", rows, **statistics(rows, (3,), ("share",)))
    version.data(
        "b.parquet", rows, **(statistics(rows, (3,), ("share",)) | {"upper_bounds": [(3, binary(3, math.nan))]})
    )

    assert len(version.rows(where="share > 5")) == 2
    assert len(version.rows(where="isnan(share)")) == 2


def test_files_are_skipped_by_the_partitions_of_their_own_spec(tmp_path):
    version = Version(tmp_path, ID, NAME, specs=BY_NAME)
    version.data("a.parquet", {"id": [1], "name": ["a"]}, partition=(0, ("a",)))
    version.data("b.parquet", {"id": [1], "name": ["b"]}, partition=(0, ("b",)))
    version.data("c.parquet", {"id": [15], "name": ["a"]}, partition=(1, (10,)))

    assert skipped(version.plan("name = 'a'")) == [(1, "partition")]
    assert skipped(version.plan("id < 10")) == [(1, "partition")]
    assert [row["id"] for row in version.rows(where="name = 'a'")] == [1, 15]
    assert [split.partition for split in version.plan().splits] == [{"name": "a"}, {"name": "b"}, {"id_trunc": "10"}]


def test_bounds_of_a_column_that_is_constant_by_partition_do_not_count(tmp_path):
    version = Version(tmp_path, NAME, specs=BY_NAME)
    rows = {"name": ["z"]}
    version.data("a.parquet", rows, partition=(0, ("a",)), **statistics(rows, (2,), ("name",)))

    assert version.rows(where="name = 'a'") == [{"name": "a"}]


def test_a_column_with_a_default_is_not_skipped_where_a_file_lacks_it(tmp_path):
    version = Version(tmp_path, ID, field(2, "x", "int", **{"initial-default": 7}), format_version=3)
    rows = {"id": [1]}
    version.data("a.parquet", rows, schema=schema_of(ID), **statistics(rows, (1,), ("id",)))

    assert version.rows(where="x = 7") == [{"id": 1, "x": 7}]


def test_a_split_is_raw_only_where_any_reader_returns_its_rows(tmp_path):
    plain = Version(tmp_path, ID, NAME)
    path = plain.data("a.parquet", {"id": [1], "name": ["a"]})
    assert [split.raw for split in plain.plan().splits] == [True]
    plain.position_deletes("d.parquet", [(path, 0)])
    assert [split.raw for split in plain.plan().splits] == [False]

    for other in (
        Version(tmp_path, ID, field(3, "name", "string"), schemas=[schema_of(ID, NAME)]),
        Version(tmp_path, field(1, "id", "long"), schemas=[schema_of(ID)]),
        Version(tmp_path, ID, field(2, "x", "int", **{"initial-default": 7}), format_version=3),
        Version(tmp_path, ID, field(2, "u", "uuid")),
        Version(
            tmp_path,
            ID,
            field(2, "s", struct_type(field(4, "a", "int"))),
            schemas=[schema_of(ID, field(2, "s", struct_type(field(3, "a", "int"))))],
        ),
        Version(tmp_path, ID, properties={"schema.name-mapping.default": "[]"}),
    ):
        other.data("b.parquet", {"id": [1]}, schema=schema_of(other.schema["fields"][0]))
        assert [split.raw for split in other.plan().splits] == [False]


def test_splits_are_picklable_and_equal_ones_have_equal_identities(tmp_path):
    version = Version(tmp_path, ID, NAME)
    path = version.data("a.parquet", {"id": [1], "name": ["a"]})
    version.position_deletes("d.parquet", [(path, 0)])
    version.equality_deletes("e.parquet", {"id": [5]})

    (first,), (second,) = version.plan().splits, version.plan().splits
    assert pickle.loads(pickle.dumps(first)).identity == second.identity

    version.equality_deletes("f.parquet", {"id": [5]}, number=3)
    assert version.plan().splits[0].identity != first.identity


def test_other_readers_find_columns_by_name_and_check_their_ids(tmp_path):
    version = Version(tmp_path, ID, NAME, specs=BY_NAME, format_version=3)
    path = version.data("a.parquet", {"id": [1, 2], "name": ["a", "a"]}, partition=(0, ("a",)))
    version.vector("v.puffin", path, [1], partition=(0, ("a",)))
    reader = RowReader(Storage(tmp_path))
    (split,) = version.plan().splits

    found = native_files(tmp_path).of(split)

    (file,) = found.files
    assert (file.names, file.ids, file.deleted, file.rows) == ({"id": "id"}, {"id": 1}, 1, 2)
    assert file.address == str(tmp_path / "a.parquet")
    assert found.partition.to_pylist() == [{"name": "a"}]
    assert reader.positions(plan_of(split)).tolist() == [1]

    version.equality_deletes("e.parquet", {"id": [5]}, partition=(0, ("a",)))
    assert native_files(tmp_path).of(version.plan().splits[0]) is None


def test_other_readers_get_no_file_whose_columns_they_would_not_find(tmp_path):
    renamed = Version(tmp_path, ID, field(2, "title", "string"), schemas=[schema_of(ID, NAME)])
    renamed.data("a.parquet", {"id": [1]}, schema=schema_of(ID))
    plain = Version(tmp_path, ID)
    plain.data("a.avro", {"id": [1]})

    assert native_files(tmp_path).of(renamed.plan().splits[0]) is None
    assert native_files(tmp_path).of(plain.plan().splits[0]) is None


CONDITIONS = (
    "id = 1",
    "id <> 1",
    "id IS NULL",
    "id IS NOT NULL AND name > 'a'",
    "NOT (id > 1 OR name = 'b')",
    "share >= 0",
    "share < 0 OR share = 'nan'::double",
    "name LIKE 'a%'",
    "id BETWEEN -1 AND 1",
    "name IN ('a', 'ab')",
)


@settings(max_examples=40)
@given(
    files=st.lists(
        st.lists(
            st.tuples(
                st.none() | st.integers(-12, 12),
                st.none() | st.sampled_from(["", "a", "ab", "b", "\U0010ffff"]),
                st.none() | st.sampled_from([-0.0, 0.0, 1.5, math.nan, -math.inf]),
            ),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    ),
    where=st.sampled_from(CONDITIONS),
)
def test_no_row_is_lost_by_skipping(tmp_path_factory, files, where):
    folder = tmp_path_factory.mktemp("t")
    known, unknown = (Version(folder, ID, NAME, SHARE) for _ in range(2))
    for place, rows in enumerate(files):
        columns = dict(zip(("id", "name", "share"), map(list, zip(*rows, strict=True)), strict=True))
        known.data(f"{place}.parquet", columns, **statistics(columns))
        unknown.data_files.append(known.data_files[-1] | dict.fromkeys(statistics(columns)))
    unknown.tuples = known.tuples

    assert repr(known.rows(where=where)) == repr(unknown.rows(where=where))


@pytest.mark.parametrize("cut", [0, 1, 7, 60])
@pytest.mark.parametrize("name", ["p.parquet", "e.parquet", "e.avro"])
def test_a_damaged_delete_file_is_named(tmp_path, name, cut):
    version = Version(tmp_path, ID)
    path = version.data("a.parquet", {"id": [1, 2]})
    if name.startswith("p"):
        version.position_deletes(name, [(path, 0)])
    else:
        version.equality_deletes(name, {"id": [1]})
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) - cut - 1])

    with pytest.raises(SnapshotExplorerError, match=name):
        version.rows()
