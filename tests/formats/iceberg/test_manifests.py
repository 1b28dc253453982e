"""Manifests as Arrow columns, judged by fastavro; and what entries inherit from the manifest list."""

import io

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import Limits, open_table
from snapshot_explorer.errors import CorruptTableError
from tests.inner.iceberg import BOUNDS, COUNTS, read_avro
from tests.support.iceberg.table_builder import (
    ADDED,
    DELETED,
    EXISTING,
    MANIFEST_LIST,
    IcebergTable,
    avro,
    entry,
    manifest_schema,
)

PARTITION = [
    {"name": "flag", "type": ["null", "boolean"], "field-id": 1000},
    {"name": "share", "type": ["null", "double"], "field-id": 1001},
    {
        "name": "price",
        "type": [
            "null",
            {"type": "fixed", "name": "p", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
        ],
        "field-id": 1002,
    },
    {"name": "half", "type": ["null", "float"], "field-id": 1003},
]
WANTED = pa.struct(
    {
        "0": pa.int32(),
        "1": pa.int64(),
        "2": pa.struct(
            {"100": pa.string(), "102": pa.struct([]), "110": COUNTS, "125": BOUNDS, "132": pa.list_(pa.int64())}
        ),
    }
)
LONGS = st.integers(-(2**63), 2**63 - 1)
FILES = st.fixed_dictionaries(
    {
        "content": st.just(0),
        "file_path": st.text(max_size=90).map(lambda name: f"s3://lake/t/data/{name}"),
        "file_format": st.just("PARQUET"),
        "partition": st.fixed_dictionaries(
            {
                "flag": st.none() | st.booleans(),
                "share": st.none() | st.floats(allow_nan=False),
                "price": st.none() | st.just(None),
                "half": st.none() | st.just(0.5),
            }
        ),
        "record_count": st.integers(0, 2**40),
        "file_size_in_bytes": st.integers(0, 2**40),
        "null_value_counts": st.none()
        | st.lists(st.fixed_dictionaries({"key": st.integers(0, 99), "value": LONGS}), max_size=5),
        "lower_bounds": st.none()
        | st.lists(st.fixed_dictionaries({"key": st.integers(0, 99), "value": st.binary(max_size=40)}), max_size=5),
        "split_offsets": st.none() | st.lists(LONGS, max_size=3),
    }
)
PLAIN = {"file_format": "PARQUET", "partition": {}, "record_count": 1, "file_size_in_bytes": 1}
ENTRIES = st.lists(
    st.builds(entry, st.sampled_from((EXISTING, ADDED, DELETED)), FILES, st.none() | LONGS, st.none() | LONGS),
    max_size=12,
)


@given(st.lists(ENTRIES, min_size=1, max_size=4), st.sampled_from(("null", "deflate")))
@settings(max_examples=60, deadline=None)
def test_entries_are_those_that_fastavro_reads(manifests, codec):
    files = [("m", avro(manifest_schema(*PARTITION), entries, codec)) for entries in manifests]

    decoded = read_avro(files, WANTED, {}, Limits())

    rows = [row for one in decoded for row in one.rows.to_pylist()]
    expected = [row for _, content in files for row in fastavro.reader(io.BytesIO(content))]
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        file = wanted["data_file"]
        assert (row["0"], row["1"], row["2"]["100"]) == (wanted["status"], wanted["snapshot_id"], file["file_path"])
        assert row["2"]["132"] == file["split_offsets"]
        assert [row["2"]["102"][name] for name in ("1000", "1001", "1003")] == [
            file["partition"][name] for name in ("flag", "share", "half")
        ]
        for found, name in (("110", "null_value_counts"), ("125", "lower_bounds")):
            pairs = None if file[name] is None else [(one["key"], one["value"]) for one in file[name]]
            assert row["2"][found] == pairs


def test_maps_whose_records_may_be_null_are_read_row_by_row():
    schema = manifest_schema()
    counts = schema["fields"][4]["type"]["fields"][8]
    counts["type"][1]["items"] = ["null", counts["type"][1]["items"]]
    file = {"content": 0, "file_path": "s3://a", "null_value_counts": [{"key": 1, "value": 2}], **PLAIN}

    (decoded,) = read_avro([("m", avro(schema, [entry(ADDED, file)]))], WANTED, {}, Limits())

    assert decoded.rows.to_pylist()[0]["2"]["110"] == [(1, 2)]


def test_of_many_entries_those_whose_ids_have_a_rare_size_are_read():
    ids = [2**62 + number for number in range(1_500)]
    ids[700], ids[901], ids[1_233] = 3, 2**40, None
    path = "s3://lake/t/data/{}.parquet"
    bounds = [{"key": 1, "value": path.format("bound").encode()}]
    entries = [
        entry(EXISTING, {"content": 0, "file_path": path.format(number), "lower_bounds": bounds, **PLAIN}, one, 7)
        for number, one in enumerate(ids)
    ]

    (decoded,) = read_avro([("m", avro(manifest_schema(), entries))], WANTED, {}, Limits())

    rows = decoded.rows.to_pylist()
    assert [row["1"] for row in rows] == ids
    assert [row["2"]["100"] for row in rows] == [path.format(number) for number in range(len(ids))]


@pytest.fixture
def table(memory_root):
    return IcebergTable(*memory_root, version=3)


def rewritten(table, manifests):
    """Give the newest snapshot these manifests."""
    snapshot = table.metadata["snapshots"].pop()
    table.metadata["snapshot-log"].pop()
    table.manifests[snapshot["snapshot-id"]] = manifests
    table.add_snapshot(snapshot["snapshot-id"], None, snapshot["summary"], millis=snapshot["timestamp-ms"])


def test_row_ids_are_assigned_to_files_without_them_in_the_order_of_the_manifest(table):
    head = table.commit([(1, "a"), (2, "b")])
    files = [table.data_file(f"f{number}.parquet", [(number, "x")] * number) for number in (1, 2, 3)]
    entries = [
        entry(ADDED, files[0]),
        entry(ADDED, files[1] | {"first_row_id": 500}),
        entry(DELETED, files[0] | {"file_path": "gone"}, head, 1, 1),
        entry(ADDED, files[2]),
    ]
    rewritten(table, [table.manifest(head, entries) | {"first_row_id": 100}])

    rows = open_table(f"memory://{table.root}").current.to_arrow(columns=["id", "_row_id"])

    assert sorted(map(tuple, (row.values() for row in rows.to_pylist()))) == [
        *[(1, 100)],
        *[(2, 500), (2, 501)],
        *[(3, 101), (3, 102), (3, 103)],
    ]


def test_a_manifest_without_row_ids_gives_none(table):
    head = table.commit([(1, "a")])
    file = table.data_file("f.parquet", [(1, "x")]) | {"first_row_id": 7}
    rewritten(table, [table.manifest(head, [entry(ADDED, file)])])

    assert open_table(f"memory://{table.root}").current.to_arrow(columns=["_row_id"])["_row_id"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"status": 7}, "an entry has an unknown status"),
        ({"data_file": {"content": 2}}, "an entry has another content than its manifest"),
    ],
)
def test_an_invalid_entry_is_refused_with_its_manifest(table, changed, message):
    head = table.commit([(1, "a")])
    (one,) = table.entries[table.manifests[head][0]["manifest_path"]]
    data_file = one["data_file"] | changed.pop("data_file", {})
    record = table.manifest(head, [one | changed | {"data_file": data_file}])
    rewritten(table, [record | {"added_files_count": 1}])

    with pytest.raises(CorruptTableError, match=f"metadata/.*-m1.avro is not a readable manifest: {message}"):
        open_table(f"memory://{table.root}").current.files()


def test_a_manifest_list_without_a_path_is_refused(table):
    table.commit([(1, "a")])
    schema = MANIFEST_LIST | {"fields": MANIFEST_LIST["fields"][1:]}
    records = [{**one} for one in table.manifests[table.metadata["current-snapshot-id"]]]
    table.write("metadata/snap-1000001-1.avro", avro(schema, records))

    with pytest.raises(
        CorruptTableError, match="snap-1000001-1.avro is not a readable manifest: a manifest in it has no"
    ):
        open_table(f"memory://{table.root}")
