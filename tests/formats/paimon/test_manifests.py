"""Manifests: entries, index entries, and what is live."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.storage import Storage
from tests.inner.paimon import (
    ENTRIES,
    FILE_COLUMNS,
    INDEX_ENTRIES,
    live_entries,
    read_entries,
    read_indexes,
    read_lists,
)
from tests.support.paimon import avro_schemas
from tests.support.paimon.avro_bytes import written

NOTHING = bytes(12)


def entry(kind, name, level=0, **changes):
    """Return an ENTRIES row."""
    known = {
        "kind": kind,
        "partition": NOTHING,
        "bucket": 0,
        "file_name": name,
        "size_bytes": 1,
        "rows": 1,
        "schema_id": 0,
        "level": level,
        "extra_files": [],
    }
    return known | changes


def entries(*rows):
    return pa.Table.from_pylist([dict.fromkeys(ENTRIES.names) | row for row in rows], ENTRIES)


def names(table):
    return list(zip(table["file_name"].to_pylist(), table["level"].to_pylist(), strict=True))


def raw_entry(kind=0, name="data-1", **changes):
    stats = {"_MIN_VALUES": NOTHING, "_MAX_VALUES": NOTHING, "_NULL_COUNTS": [0, None]}
    file = {
        "_FILE_NAME": name,
        "_FILE_SIZE": 500,
        "_ROW_COUNT": 3,
        "_MIN_KEY": b"a",
        "_MAX_KEY": b"b",
        "_KEY_STATS": {"_MIN_VALUES": b"c", "_MAX_VALUES": b"d", "_NULL_COUNTS": None},
        "_VALUE_STATS": stats,
        "_MIN_SEQUENCE_NUMBER": 1,
        "_MAX_SEQUENCE_NUMBER": 2,
        "_SCHEMA_ID": 4,
        "_LEVEL": 5,
        "_EXTRA_FILES": ["data-1.index"],
    }
    top = {"_VERSION": 2, "_KIND": kind, "_PARTITION": NOTHING, "_BUCKET": 6, "_TOTAL_BUCKETS": 7, "_FILE": file}
    return top | changes


def manifest(*rows):
    return ("manifest/manifest-1", written(avro_schemas.MANIFEST, list(rows)))


def test_an_entry_has_every_field_under_its_name():
    table, counts = read_entries([manifest(raw_entry())])

    assert table.schema == ENTRIES
    assert counts == [1]
    assert {name: value for name, value in table.to_pylist()[0].items() if value is not None} == {
        "kind": 0,
        "partition": NOTHING,
        "bucket": 6,
        "total_buckets": 7,
        "file_name": "data-1",
        "size_bytes": 500,
        "rows": 3,
        "min_key": b"a",
        "max_key": b"b",
        "key_min": b"c",
        "key_max": b"d",
        "value_min": NOTHING,
        "value_max": NOTHING,
        "value_null_counts": [0, None],
        "min_sequence": 1,
        "max_sequence": 2,
        "schema_id": 4,
        "level": 5,
        "extra_files": ["data-1.index"],
    }


def test_a_manifest_of_the_oldest_writers_is_read():
    old = ["null", avro_schemas.MANIFEST]

    table, _ = read_entries([("manifest/manifest-1", written(old, [raw_entry(), raw_entry(kind=1)]))])

    assert table["kind"].to_pylist() == [0, 1]


def test_no_manifests_have_no_entries():
    table, counts = read_entries([])

    assert (table.schema, len(table), counts) == (ENTRIES, 0, [])


@pytest.mark.parametrize(
    ("rows", "error", "found"),
    [
        ([raw_entry(_VERSION=1)], UnsupportedFeatureError, "A manifest of the table has version 1; version 2"),
        ([raw_entry(), raw_entry(kind=2)], UnsupportedFeatureError, "an entry that is neither ADD nor DELETE"),
        ([raw_entry(name="../x")], CorruptTableError, "a manifest names the file '../x', which could lead out"),
    ],
)
def test_entries_that_are_not_understood_are_refused(rows, error, found):
    with pytest.raises(error, match=found):
        read_entries([manifest(*rows)])


def test_a_null_where_there_must_be_a_value_is_broken():
    nullable = {**avro_schemas.MANIFEST, "fields": [*avro_schemas.MANIFEST["fields"]]}
    nullable["fields"][3] = {"name": "_BUCKET", "type": ["null", "int"]}

    with pytest.raises(CorruptTableError, match="A row of manifest/manifest-1 has no _BUCKET"):
        read_entries([("manifest/manifest-1", written(nullable, [raw_entry(_BUCKET=None)]))])


def test_a_manifest_list_names_its_manifests():
    stats = {"_MIN_VALUES": b"x", "_MAX_VALUES": b"y", "_NULL_COUNTS": []}
    row = {
        "_VERSION": 2,
        "_FILE_NAME": "manifest-1",
        "_FILE_SIZE": 10,
        "_NUM_ADDED_FILES": 3,
        "_NUM_DELETED_FILES": 4,
        "_PARTITION_STATS": stats,
        "_SCHEMA_ID": 5,
    }

    table, counts = read_lists(
        [("manifest/list", written(avro_schemas.MANIFEST_LIST, [row])), ("l", written(avro_schemas.MANIFEST_LIST, []))]
    )

    assert counts == [1, 0]
    assert table.to_pylist() == [
        {
            "name": "manifest-1",
            "size_bytes": 10,
            "added": 3,
            "deleted": 4,
            "partition_min": b"x",
            "partition_max": b"y",
            "partition_nulls": [],
            "schema_id": 5,
            "min_row_id": None,
            "max_row_id": None,
        }
    ]


def index_row(kind, name, ranges, bucket=0):
    return {
        "_VERSION": 1,
        "_KIND": 0,
        "_PARTITION": NOTHING,
        "_BUCKET": bucket,
        "_INDEX_TYPE": kind,
        "_FILE_NAME": name,
        "_FILE_SIZE": 99,
        "_ROW_COUNT": 2,
        "_DELETIONS_VECTORS_RANGES": ranges,
    }


def test_an_index_has_a_row_per_deletion_vector_and_any_other_one_row():
    vectors = [
        {"f0": "data-1", "f1": 1, "f2": 24, "_CARDINALITY": 2},
        {"f0": "data-2", "f1": 33, "f2": 22, "_CARDINALITY": None},
    ]
    rows = [
        index_row("HASH", "index-0", None),
        index_row("DELETION_VECTORS", "index-1", vectors, bucket=1),
        index_row("DELETION_VECTORS", "index-2", []),
    ]
    contents = [
        ("a", written(avro_schemas.INDEX, rows)),
        ("b", written(avro_schemas.INDEX, [])),
        ("c", written(avro_schemas.INDEX, rows[1:2])),
    ]

    table, counts = read_indexes(contents)

    assert table.schema == INDEX_ENTRIES
    assert counts == [4, 0, 2]
    chosen = table.select(["index_type", "bucket", "file_name", "data_file", "offset", "length", "cardinality"])
    assert [tuple(row.values()) for row in chosen.to_pylist()] == [
        ("HASH", 0, "index-0", None, None, None, None),
        ("DELETION_VECTORS", 1, "index-1", "data-1", 1, 24, 2),
        ("DELETION_VECTORS", 1, "index-1", "data-2", 33, 22, None),
        ("DELETION_VECTORS", 0, "index-2", None, None, None, None),
        ("DELETION_VECTORS", 1, "index-1", "data-1", 1, 24, 2),
        ("DELETION_VECTORS", 1, "index-1", "data-2", 33, 22, None),
    ]


def test_the_worked_example_of_the_documentation():
    table = entries(entry(0, "a"), entry(0, "b"), entry(1, "a"), entry(0, "a", 5), entry(1, "b"), entry(0, "c", 4))

    assert names(live_entries(table, Storage("memory://t"))) == [("a", 5), ("c", 4)]


@pytest.mark.parametrize(
    "other",
    [
        {"partition": b"other"},
        {"bucket": 1},
        {"level": 1},
        {"file_name": "b"},
        {"extra_files": ["a.index"]},
        {"embedded_index": b"x"},
        {"embedded_index": b""},
        {"external_path": "s3://x/a"},
    ],
)
def test_a_delete_takes_away_only_what_is_the_same_in_every_part(other, caplog):
    table = entries(entry(0, "a"), entry(1, "a", **other), entry(0, "z"))

    assert names(live_entries(table, Storage("memory://t"))) == [("a", 0), ("z", 0)]
    assert "1 DELETE entries remove files that were never added, such as " in caplog.text


@pytest.mark.parametrize("other", [{"rows": 9}, {"max_sequence": 7}, {"value_min": b"x"}, {"extra_files": None}])
def test_a_delete_takes_away_a_file_whatever_else_differs(other, caplog):
    assert len(live_entries(entries(entry(0, "a"), entry(1, "a", **other)), Storage("memory://t"))) == 0
    assert caplog.text == ""


def identity(row):
    parts = ("partition", "bucket", "level", "file_name", "embedded_index", "external_path")
    return (*(row[part] for part in parts), tuple(row["extra_files"] or ()))


ANY_ENTRY = st.builds(
    entry,
    st.integers(0, 1),
    st.sampled_from("abc"),
    st.integers(0, 1),
    partition=st.sampled_from([b"p", b"q"]),
    bucket=st.integers(0, 1),
    extra_files=st.sampled_from([None, [], ["x"], ["x", "y"]]),
    embedded_index=st.sampled_from([None, b"", b"i"]),
    external_path=st.sampled_from([None, "", "e"]),
)


@settings(deadline=None, max_examples=300)
@given(st.lists(ANY_ENTRY, max_size=40))
def test_live_files_are_those_added_less_those_deleted(rows):
    dead = {identity(row) for row in rows if row["kind"] == 1}
    expected = [row for row in rows if row["kind"] == 0 and identity(row) not in dead]

    found = live_entries(entries(*rows), Storage("memory://t"))

    assert found.equals(entries(*expected))


@settings(deadline=None)
@given(st.lists(ANY_ENTRY, max_size=30), st.randoms())
def test_the_order_of_entries_does_not_matter(rows, chance):
    shuffled = list(rows)
    chance.shuffle(shuffled)

    def bag(table):
        return sorted(repr(row) for row in table.to_pylist())

    assert bag(live_entries(entries(*rows), Storage("memory://t"))) == bag(
        live_entries(entries(*shuffled), Storage("memory://t"))
    )


def test_entries_of_some_columns_are_those_of_all():
    files = [manifest(raw_entry(), raw_entry(1)), manifest(raw_entry(name="data-2"))]
    every, counts = read_entries(files)

    some, counted = read_entries(files, FILE_COLUMNS)

    assert counted == counts
    assert some.equals(every.select(some.column_names))
    assert set(some.column_names) == set(FILE_COLUMNS)
