"""Rows of Delta versions: columns, deletion vectors, partitions, row ids, and files that are not as the log says."""

import io
import json
import pickle
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.arrow import int96
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.storage import Storage
from tests.inner.delta import DeltaDataType, DeltaField, DeltaLog, Removals, check_readable, planning, read, removed_in
from tests.support.delta.log_reader import plan_of, rows_of, state_of, table_of
from tests.support.delta.table_builder import DeltaTable, add, inline_vector, remove, schema_json

NAMED = {"delta.columnMapping.mode": "name"}
TRACKED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-col",
}


def new(**more):
    return DeltaTable(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}/t", **more)


def put(table, name, rows, **options):
    """Write an Arrow table as a data file and return its add action."""
    reported = {
        key: options.pop(key) for key in ("partition", "vector", "count", "stats", "baseRowId") if key in options
    }
    version = {"defaultRowCommitVersion": options.pop("defaultRowCommitVersion", None)}
    out = io.BytesIO()
    pq.write_table(rows, out, **options)
    table.write(name, out.getvalue())
    return add(name, size=len(out.getvalue()), rows=reported.pop("count", rows.num_rows), **reported, **version)


def mapped(number, name):
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}


def test_rows_come_in_the_order_of_the_files_and_columns_as_asked():
    table = new()
    table.append([(2, "b"), (1, "a")])
    table.append([(3, None)])

    assert table_of(table).to_pydict() == {"id": [2, 1, 3], "name": ["b", "a", None]}
    assert table_of(table, columns=["name", "id"]).column_names == ["name", "id"]
    assert table_of(table, columns=[]).num_rows == 3


def test_what_a_file_lacks_is_null_and_what_it_has_beyond_is_not_read():
    table = new(fields=[("id", "long"), ("s", {"type": "struct", "fields": [
        {"name": "a", "type": "date", "nullable": True, "metadata": {}}]}), ("v", "void")])  # fmt: skip
    table.commit(
        put(table, "f", pa.table({"_change_type": ["x", "y"], "gone": [1, 2], "ID": pa.array([5, 6], pa.int32())}))
    )

    assert rows_of(table) == [(5, None, None), (6, None, None)]
    assert rows_of(table, columns=["s"]) == [(None,), (None,)]


def test_names_with_dots_are_names():
    table = new(fields=[("a.b", "long"), ("a", {"type": "struct", "fields": [
        {"name": "b", "type": "long", "nullable": True, "metadata": {}},
        {"name": "c", "type": "long", "nullable": True, "metadata": {}}]})])  # fmt: skip
    table.commit(put(table, "f", pa.table({"a": [{"b": 1, "c": 2}], "a.b": [3]})))

    assert rows_of(table) == [(3, {"b": 1, "c": 2})]
    assert rows_of(table, columns=["a.b"]) == [(3,)]
    assert rows_of(table, columns=["a"]) == [({"b": 1, "c": 2},)]


def test_columns_are_mapped_where_the_protocol_says_so_and_old_names_do_not_come_back():
    fields = [("new", "long", mapped(1, "old")), ("old", "string", mapped(2, "col-2"))]
    table = new(fields=fields, configuration=NAMED, features=["columnMapping"])
    table.commit(put(table, "f", pa.table({"old": [1, 2]})))

    assert rows_of(table) == [(1, None), (2, None)]


def test_mapping_by_id_reads_whatever_the_names():
    fields = [("a", "long", mapped(1, "col-1")), ("b", "string", mapped(2, "col-2"))]
    table = new(fields=fields, configuration={"delta.columnMapping.mode": "id"}, features=["columnMapping"])
    stored = pa.schema(
        [
            pa.field("x", pa.string(), metadata={"PARQUET:field_id": "2"}),
            pa.field("y", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        ]
    )
    table.commit(put(table, "f", pa.table([["s"], [7]], schema=stored)))
    table.commit(put(table, "g", pa.table({"a": [1]})))

    assert rows_of(table, version=1) == [(7, "s")]
    with pytest.raises(CorruptTableError, match="The data file g has no field ids"):
        rows_of(table)


def test_partition_values_come_from_the_log_even_if_the_file_has_the_column():
    table = new(fields=[("id", "long"), ("p", "decimal(5,2)")], partition_by=["p"])
    table.commit(put(table, "p=1.50/f", pa.table({"id": [1], "p": ["no"]}), partition={"p": "1.50"}))
    table.commit(put(table, "p=null/f", pa.table({"id": [2]}), partition={"p": None}))

    assert rows_of(table) == [(1, Decimal("1.50")), (2, None)]
    assert rows_of(table, where="p = 1.5") == [(1, Decimal("1.50"))]


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, 199)), st.sets(st.integers(0, 199)), st.sampled_from([1, 7, 50, 500]), st.booleans())
def test_deleted_rows_are_left_out_whatever_the_row_groups(gone, others, group, has_columns):
    table = new(fields=[("id", "long")], features=["deletionVectors"])
    every = pa.table({"id": range(200)})
    table.commit(
        put(table, "f", every, vector=inline_vector(gone), row_group_size=group),
        put(table, "g", every, vector=table.vector(others), row_group_size=group),
    )

    found = table_of(table, columns=None if has_columns else [])

    if has_columns:
        assert found.column("id").to_pylist() == sorted(set(range(200)) - gone) + sorted(set(range(200)) - others)
    assert found.num_rows == 400 - len(gone) - len(others)
    assert sum(split.live_rows for split in plan_of(table).splits) == found.num_rows


def test_positions_count_over_batches_and_row_groups():
    gone = [0, 65_535, 65_536, 99_999, 100_000, 149_999]
    table = new(fields=[("id", "long")], features=["deletionVectors"])
    table.commit(put(table, "f", pa.table({"id": range(150_000)}), vector=table.vector(gone), row_group_size=100_000))

    ids = table_of(table).column("id").to_numpy()

    assert np.array_equal(ids, np.setdiff1d(np.arange(150_000), gone))


@pytest.mark.parametrize("group", [3, 100])
def test_only_rows_at_given_positions_are_read_where_they_are_reported(group):
    table = new(fields=[("id", "long")], features=["deletionVectors"])
    every = pa.table({"id": range(20)})
    table.commit(put(table, "f", every, vector=inline_vector([0, 5]), row_group_size=group), put(table, "g", every))
    splits = plan_of(table).splits

    def ids(**keep):
        keep = {name: np.array(positions, np.int64) for name, positions in keep.items()}
        batches = [batch for split in splits for batch in read.read_rows(Storage(table.url), split, ["id"], keep=keep)]
        return [row["id"] for batch in batches for row in batch.to_pylist()]

    assert sorted(ids(f=[0, 5, 19], g=[])) == [0, 5, 19]
    assert sorted(ids(g=[3])) == sorted([*(set(range(20)) - {0, 5}), 3])
    with pytest.raises(CorruptTableError, match="Row 20 of the data file g is requested, but the file has 20 rows"):
        ids(g=[20])


def test_row_ids_follow_from_positions_unless_the_file_has_them():
    table = new(fields=[("id", "long")], configuration=TRACKED, features=["deletionVectors"])
    moved = {"_row-id-col": pa.array([None, 77], pa.int64()), "_row-version-col": pa.array([2, None], pa.int64())}
    table.commit(
        put(
            table, "f", pa.table({"id": [1, 2, 3]}), vector=inline_vector([1]), baseRowId=10, defaultRowCommitVersion=1
        ),
        put(table, "g", pa.table({"id": [4, 5], **moved}), baseRowId=20, defaultRowCommitVersion=4),
    )

    found = rows_of(table, columns=["id", "_row_id", "_row_commit_version"])

    assert found == [(1, 10, 1), (3, 12, 1), (4, 20, 2), (5, 77, 4)]
    assert rows_of(table, columns=["_row_id"]) == [(10,), (12,), (20,), (77,)]
    assert "_row_id" not in table_of(table).column_names


def test_row_ids_are_refused_where_there_are_none():
    table = new()
    table.append([(1, "a")])
    tracked = new(configuration=TRACKED)
    tracked.append([(1, "a")])

    with pytest.raises(InvalidArgumentError, match="'_row_id' was requested, but the table does not track its rows"):
        rows_of(table, columns=["_row_id"])
    with pytest.raises(CorruptTableError, match="has rows without _row_commit_version: neither the file nor its add"):
        rows_of(tracked, columns=["_row_commit_version"])


def test_a_column_of_the_table_wins_over_a_hidden_one():
    table = new(fields=[("_row_id", "string")])
    table.append([("mine",)])

    assert rows_of(table, columns=["_row_id"]) == [("mine",)]


def test_a_column_that_is_not_there_is_reported():
    table = new()
    table.append([(1, "a")])
    (split,) = plan_of(table).splits

    with pytest.raises(InvalidArgumentError, match="Unknown column 'color'. Columns: id, name."):
        list(read.read(Storage(table.url), split, ["color"]))


def test_splits_can_be_pickled():
    table = new(fields=[("id", "long"), ("p", "date")], partition_by=["p"], features=["deletionVectors"])
    table.commit(put(table, "f", pa.table({"id": [1, 2]}), partition={"p": "2020-01-01"}, vector=inline_vector([0])))
    (split,) = pickle.loads(pickle.dumps(plan_of(table).splits))

    assert [batch.to_pydict()["id"] for batch in read.read(Storage(table.url), split, ["id"])] == [[2]]


def test_a_further_column_of_change_data_is_read_by_its_name():
    table = new(fields=[("a", "long", mapped(1, "col-1"))], configuration=NAMED, features=["columnMapping"])
    table.commit(put(table, "f", pa.table({"col-1": [1], "_change_type": ["insert"]})))
    state = state_of(table)
    change = DeltaField(name="_change_type", type=DeltaDataType(root="string"), stored="_change_type")
    schema = check_readable(state.protocol, state.metadata).with_columns([change])

    (split,) = planning.file_splits(Storage(table.url), state.adds, schema)

    batches = list(read.read(Storage(table.url), split, ["_change_type", "a"]))
    assert [batch.to_pydict() for batch in batches] == [{"_change_type": ["insert"], "a": [1]}]


def test_a_missing_file_is_named_and_who_removed_it():
    table = new()
    table.commit(add("gone.parquet", rows=1))
    (split,) = plan_of(table).splits

    with pytest.raises(CorruptTableError, match="The data file gone.parquet does not exist. No newer version"):
        rows_of(table)
    removals = Removals(version=1, removed_in=lambda path: 7 if path == "gone.parquet" else None)
    with pytest.raises(SnapshotNotFoundError, match=r"Version 1 has expired: .* not among the files of version 7"):
        list(read.read(Storage(table.url), split, [], removals=removals))


def test_a_file_whose_deletion_vector_was_replaced_was_not_removed():
    table = new(features=["deletionVectors"])
    table.commit(add("f", rows=9), add("g", rows=9))
    table.commit(remove("f"), add("f", rows=9, vector=inline_vector([1])), remove("g"))
    storage = Storage(table.url)

    assert [removed_in(storage, DeltaLog(storage), path) for path in ("f", "g")] == [None, 2]


def test_another_number_of_rows_than_the_log_says_is_damage():
    table = new()
    table.commit(put(table, "f", pa.table({"id": [1]}), count=2))

    for columns in (None, []):
        with pytest.raises(CorruptTableError, match="The data file f has 1 rows, but its action in the log records 2"):
            rows_of(table, columns=columns)


@pytest.mark.parametrize("kept", [0, 3, 20, 200])
def test_a_file_cut_short_is_named(kept):
    table = new()
    table.append([(number, "x") for number in range(100)], name="f")
    table.write("f", table.read("f")[:kept])

    with pytest.raises(
        CorruptTableError, match=rf"The data file f has {kept} bytes, but its action in the log records \d+"
    ):
        rows_of(table)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_mutated_file_gives_rows_or_an_error_that_names_it(data):
    table = new(fields=[("id", "long"), ("at", "timestamp")])
    table.commit(
        put(
            table,
            "f.parquet",
            pa.table({"id": range(30), "at": pa.array(range(30), pa.timestamp("us", tz="UTC"))}),
            use_deprecated_int96_timestamps=data.draw(st.booleans()),
        )
    )
    content = bytearray(table.read("f.parquet"))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    table.write("f.parquet", bytes(content))

    try:
        assert table_of(table).num_rows == 30
    except (CorruptTableError, UnsupportedFeatureError) as error:
        assert "f.parquet" in str(error)  # noqa: PT017 - most mutations are read


def test_no_changed_byte_loses_rows_unsaid():
    table = new(fields=[("id", "long")])
    table.commit(put(table, "f.parquet", pa.table({"id": range(30)})))
    content = table.read("f.parquet")
    gave = set()

    for place in range(len(content)):
        table.write("f.parquet", content[:place] + b"\x01" + content[place + 1 :])
        try:
            gave.add(table_of(table).num_rows)
        except (CorruptTableError, UnsupportedFeatureError):
            gave.add(None)

    assert gave == {30, None}


def test_a_type_that_is_not_read_as_the_tables_names_file_and_column():
    table = new(fields=[("id", "integer")])
    table.commit(put(table, "f", pa.table({"id": pa.array([1], pa.int64())})))

    with pytest.raises(
        UnsupportedFeatureError, match="The column 'id' of the data file f cannot be read as integer: its type"
    ):
        rows_of(table)


def test_a_value_that_does_not_fit_names_file_and_column():
    table = new(fields=[("id", "byte")])
    table.commit(put(table, "f", pa.table({"id": pa.array([1000], pa.int32())})))

    with pytest.raises(CorruptTableError, match="The column 'id' of the data file f cannot be read as byte"):
        rows_of(table)


FAR = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(9999, 12, 31, tzinfo=UTC),
]


def as_int96(moments, *, negative=False):
    """Return timestamps as INT96: nanoseconds of a day and the day."""
    cells = b""
    for moment in moments:
        micros = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // (datetime.resolution)
        day, rest = divmod(micros, 86_400_000_000)
        if negative and rest:
            day, rest = day + 1, rest - 86_400_000_000
        cells += (rest * 1000).to_bytes(8, "little", signed=True) + (day + 2_440_588).to_bytes(4, "little", signed=True)
    return cells


@pytest.mark.parametrize("negative", [False, True])
def test_int96_is_read_to_the_microsecond_in_every_year(negative):
    cells = as_int96(FAR, negative=negative)
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(12), 3, [None, pa.py_buffer(cells)])

    assert int96.timestamps(values, "us").cast(pa.timestamp("us", tz="UTC")).to_pylist() == FAR


@pytest.mark.parametrize("writer", [{}, {"org.apache.spark.version": "3.5.0"}])
def test_int96_of_a_file_is_read_beside_other_columns(writer):
    table = new(
        fields=[("at", "timestamp"), ("s", {"type": "array", "elementType": "timestamp", "containsNull": True})]
    )
    some = [datetime(1700, 1, 1, tzinfo=UTC), None, datetime(2020, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]
    stored = pa.table(
        {"at": pa.array(some, pa.timestamp("us")), "s": pa.array([some, None, []], pa.list_(pa.timestamp("us")))}
    )
    stored = stored.replace_schema_metadata(writer)
    table.commit(put(table, "f", stored, use_deprecated_int96_timestamps=True))

    assert table_of(table).column("at").to_pylist() == some
    assert table_of(table).column("s").to_pylist() == [some, None, []]


def test_legacy_lists_are_lists():
    table = new(fields=[("a", {"type": "array", "elementType": "integer", "containsNull": True})])
    rows = pa.table({"a": pa.array([[1, 2], [], None], pa.list_(pa.int32()))})
    table.commit(put(table, "f", rows, use_compliant_nested_type=False))

    assert table_of(table).column("a").to_pylist() == [[1, 2], [], None]


def test_absolute_and_escaped_paths_are_followed_and_other_storages_are_not():
    table, other = new(), new()
    other.append([(1, "a")], name="d%20 x.parquet")
    there = f"memory:/{other.root}/d%2520%20x.parquet"
    table.commit(add(there, rows=1, size=len(other.read("d%20 x.parquet"))))

    assert rows_of(table) == [(1, "a")]
    table.commit(add("s3://elsewhere/f.parquet", rows=1))
    with pytest.raises(UnsupportedFeatureError, match="on another storage than the table itself"):
        plan_of(table)


def test_a_path_out_of_the_table_is_not_followed():
    table = new()
    table.append([(1, "a")], name="../secret.parquet")

    with pytest.raises(CorruptTableError, match="leads out of the table's folder"):
        rows_of(table)


def test_a_table_without_columns_has_rows():
    table = new(fields=None)
    table.commit(put(table, "f", pa.table({"x": [1, 2, 3]})))

    assert table_of(table).num_rows == 3


def test_a_char_has_its_spaces_wherever_it_comes_from():
    char = {"__CHAR_VARCHAR_TYPE_STRING": "char(4)"}
    table = new(
        fields=[
            ("c", "string", char),
            ("v", "string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(4)"}),
            ("p", "string", char),
        ],
        partition_by=["p"],
    )
    stats = {"numRecords": 3, "minValues": {"c": "a\u0001"}, "maxValues": {"c": "abcd"}, "nullCount": {"c": 1}}
    table.commit(
        put(table, "f", pa.table({"c": ["ab", "äöüß", None], "v": ["ab", "", None]}), partition={"p": "x"}, stats=stats)
    )

    assert rows_of(table) == [("ab  ", "ab", "x   "), ("äöüß", "", "x   "), (None, None, "x   ")]
    assert rows_of(table, where="c = 'ab  ' AND p = 'x   '") == [("ab  ", "ab", "x   ")]
    assert rows_of(table, where="c = 'ab'") == []


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_a_user_defined_type_is_what_it_is_stored_as(mode):
    stored = json.loads(schema_json([("type", "byte"), ("values", "double")]))
    vector = {"type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT", "sqlType": stored}
    column = {"delta.columnMapping.physicalName": "v", "delta.columnMapping.id": 1}
    table = new(fields=[("v", vector, column)], configuration={"delta.columnMapping.mode": mode})
    kind = pa.struct({"type": pa.int8(), "values": pa.float64()})
    field = pa.field("v", kind, metadata={"PARQUET:field_id": "1"})
    values = pa.array([{"type": 1, "values": 2.5}, None], kind)
    table.commit(put(table, "f", pa.table([values], schema=pa.schema([field]))))

    assert rows_of(table) == [(None,), ({"type": 1, "values": 2.5},)]


def test_a_char_in_a_nested_type_has_its_spaces():
    declared = "struct<v:varchar(3),l:array<char(2)>,m:map<char(1),struct<x:char(3),d:decimal(4,2)>>,old_name:char(2)>"
    inner = json.loads(schema_json([("x", "string"), ("d", "decimal(4,2)")]))
    kinds = {
        "v": "string",
        "l": {"type": "array", "elementType": "string", "containsNull": True},
        "m": {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True},
        "c": "string",
    }
    table = new(fields=[("s", json.loads(schema_json(kinds.items())), {"__CHAR_VARCHAR_TYPE_STRING": declared})])
    values = [{"v": "a", "l": ["b", None], "m": [("", {"x": "ä", "d": None})], "c": "c"}, None]
    kind = pa.struct(
        {
            "v": pa.string(),
            "l": pa.list_(pa.string()),
            "m": pa.map_(pa.string(), pa.struct({"x": pa.string(), "d": pa.decimal128(4, 2)})),
            "c": pa.string(),
        }
    )
    table.commit(put(table, "f", pa.table({"s": pa.array(values, kind)})))

    padded = {"v": "a", "l": ["b ", None], "m": [(" ", {"x": "ä  ", "d": None})], "c": "c "}
    assert rows_of(table) == [(None,), (padded,)]
