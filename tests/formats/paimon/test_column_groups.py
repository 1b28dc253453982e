"""Rows whose columns are spread over files, and the ids of rows."""

import itertools
import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import snapshot_explorer
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from tests.inner.paimon import PaimonVector, side_by_side
from tests.support.canonical import canonical_rows
from tests.support.paimon.splits import Files, entry, orc_file, parquet, rows, schema, splits
from tests.support.vector_bytes import vector_64

DATA = Path(__file__).parents[2] / "data"
WITH_IDS = sorted((DATA / "expected" / "row_ids").glob("*/*.json"))
EVOLVING = {"data-evolution.enabled": "true", "row-tracking.enabled": "true"}
TABLE = schema([("k", "INT"), ("v", "STRING"), ("w", "STRING")])


@pytest.mark.parametrize("case", WITH_IDS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_ids_and_sequence_numbers_are_those_that_paimon_gives(case):
    expected = json.loads(case.read_text())
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / case.parent.name)).at(expected["version"])

    found = snapshot.to_arrow(columns=expected["columns"])

    found.validate(full=True)
    assert canonical_rows(found) == expected["rows"]
    assert "_ROW_ID" not in snapshot.to_arrow().column_names
    for column in ("_ROW_ID", "_SEQUENCE_NUMBER"):
        assert sorted(snapshot.to_arrow(columns=[column])[column].to_pylist()) == sorted(
            row[expected["columns"].index(column)] for row in expected["rows"]
        )


def test_there_are_tables_with_ids():
    assert len(WITH_IDS) > 10


@pytest.mark.parametrize("name", ["_ROW_ID", "_SEQUENCE_NUMBER"])
def test_ids_of_a_table_that_keeps_none_are_refused(name):
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / "append_bucketed")).current

    with pytest.raises(InvalidArgumentError, match=f"The column {name!r} needs row tracking"):
        snapshot.to_arrow(columns=[name])


def test_a_column_that_is_nowhere_raises_as_ever():
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / "row_tracking")).current

    with pytest.raises(InvalidArgumentError, match="nowhere"):
        snapshot.to_arrow(columns=["_ROW_ID", "nowhere"])


def part(name, names, *, count=2, first=0, sequence=1, **more):
    return entry(
        name, rows=count, first_row_id=first, write_columns=names, min_sequence=sequence, max_sequence=sequence, **more
    )


def text(*columns, **values):
    return pa.table({name: pa.array(values[name], pa.string()) for name in columns})


STORE = Files(
    {
        "bucket-0/a.parquet": parquet(
            pa.table({"k": pa.array([1, 2], pa.int32()), "v": ["a", "b"], "w": ["x", "y"]}), row_group_size=1
        ),
        "bucket-0/b.orc": orc_file(text("v", v=["A", None])),
        "bucket-0/c.parquet": parquet(text("v", "w", v=["old", "old"], w=["X", "Y"])),
        "bucket-0/only_k.parquet": parquet(pa.table({"k": pa.array([7, 8], pa.int32())})),
    }
)


def test_a_column_comes_from_the_newest_file_that_has_it_also_as_null():
    files = [
        part("b.orc", ["v"], sequence=3),
        part("a.parquet", None, sequence=1),
        part("c.parquet", ["v", "w"], sequence=2),
    ]

    (split,) = splits(TABLE, files, options=EVOLVING)
    split = pickle.loads(pickle.dumps(split))

    assert rows(STORE, split, ["w", "k", "v"]).to_pylist() == [
        {"w": "X", "k": 1, "v": "A"},
        {"w": "Y", "k": 2, "v": None},
    ]
    assert rows(STORE, split, []).num_rows == 2
    assert rows(STORE, split, ["v"]).to_pydict() == {"v": ["A", None]}
    assert (split.raw, split.rows, split.live_rows) == (False, 2, 2)


def test_only_files_with_a_requested_column_are_opened():
    store = Files(STORE.files)
    (split,) = splits(TABLE, [part("a.parquet", None), part("b.orc", ["v"], sequence=2)], options=EVOLVING)

    rows(store, split, ["v"])

    assert store.opened == ["bucket-0/b.orc"]


def test_a_column_that_no_file_of_the_group_has_is_null():
    (split,) = splits(TABLE, [part("only_k.parquet", ["k"])], options=EVOLVING)

    assert rows(STORE, split, ["k", "v"]).to_pylist() == [{"k": 7, "v": None}, {"k": 8, "v": None}]
    assert rows(STORE, split, ["v", "_ROW_ID"]).to_pydict() == {"v": [None, None], "_ROW_ID": [0, 1]}
    assert not split.raw


def test_whole_rows_are_raw_and_rows_in_parts_are_not():
    found = splits(
        TABLE,
        [part("a.parquet", None, first=10), part("b.orc", ["v"]), part("c.parquet", ["v", "w"], sequence=2)],
        options=EVOLVING,
    )

    assert [(split.raw, len(split.files)) for split in found] == [(True, 1), (False, 2)]


def test_files_that_overlap_without_being_of_the_same_rows_are_broken():
    with pytest.raises(
        CorruptTableError, match="overlap but do not contain the same rows: 2 rows from 0 on, and 2 from 1"
    ):
        splits(TABLE, [part("a.parquet", None), part("c.parquet", ["v"], first=1)], options=EVOLVING)


@pytest.mark.parametrize(("first", "count"), [(9, 2), (11, 2), (5, 100)])
def test_a_blob_file_must_lie_within_its_rows(first, count):
    files = [part("a.parquet", ["k"], first=10), part("b.blob", ["v"], first=first, count=count)]
    table = schema([("k", "INT"), ("v", "BLOB")])

    with pytest.raises(CorruptTableError, match=f"The blob file bucket-0/b.blob contains {count} rows from {first} on"):
        splits(table, files, options=EVOLVING)


def test_a_blob_file_without_rows_is_broken():
    with pytest.raises(CorruptTableError, match="blob file bucket-0/b.blob contains rows that no data file contains"):
        splits(schema([("v", "BLOB")]), [part("b.blob", ["v"])], options=EVOLVING)


def test_blobs_inside_a_data_file_are_refused():
    with pytest.raises(
        UnsupportedFeatureError, match="outside of blob files .the column 'v' of the data file a.parquet"
    ):
        splits(schema([("k", "INT"), ("v", "BLOB")]), [part("a.parquet", None)], options=EVOLVING)


def test_a_part_of_rows_that_have_no_id_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="a.parquet lacks the column 'v'"):
        splits(TABLE, [part("a.parquet", ["k"], first=None)], options=EVOLVING)


def test_the_vector_of_the_oldest_file_deletes_rows_in_parts():
    vectors = {(entry("x")["partition"], 0, "a.parquet"): PaimonVector(path="i", offset=1, length=None, cardinality=1)}
    options = EVOLVING | {"deletion-vectors.enabled": "true"}
    store = Files(STORE.files | {"i": b"\x01" + vector_64({0})})
    files = [part("a.parquet", None, first=30), part("b.orc", ["v"], first=30, sequence=2)]
    (split,) = splits(TABLE, files, options=options, vectors=vectors)

    whole = rows(STORE, splits(TABLE, files, options=options)[0], ["k", "v", "w", "_ROW_ID"])

    assert rows(store, split, ["k", "v", "w", "_ROW_ID"]).equals(whole.slice(1))
    assert rows(store, split, ["v"]).equals(whole.slice(1).select(["v"]))
    assert rows(store, split, []).num_rows == split.live_rows == 1


def test_vectors_of_newer_files_of_rows_in_parts_are_refused():
    vectors = {(entry("x")["partition"], 0, "b.orc"): PaimonVector(path="i", offset=1, length=1, cardinality=1)}
    options = EVOLVING | {"deletion-vectors.enabled": "true"}
    files = [part("a.parquet", None), part("b.orc", ["v"], sequence=2)]

    with pytest.raises(UnsupportedFeatureError, match="not the oldest one with columns of its rows .the data file .*b"):
        splits(TABLE, files, options=options, vectors=vectors)


def test_rows_without_any_id_are_broken_when_it_is_requested():
    (split,) = splits(TABLE, [part("a.parquet", None, first=None)], options={"row-tracking.enabled": "true"})

    assert rows(STORE, split, ["k", "_SEQUENCE_NUMBER"]).to_pydict() == {"k": [1, 2], "_SEQUENCE_NUMBER": [1, 1]}
    with pytest.raises(CorruptTableError, match="data file bucket-0/a.parquet has rows without an id"):
        rows(STORE, split, ["_ROW_ID"])


def test_ids_in_the_file_count_before_those_of_its_position():
    held = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "_ROW_ID": [70, None, 50], "_SEQUENCE_NUMBER": [None, 4, 5]})
    store = Files({"bucket-0/a.parquet": parquet(held)})
    names = ["k", "_ROW_ID", "_SEQUENCE_NUMBER"]
    (split,) = splits(
        schema([("k", "INT")]), [part("a.parquet", names, count=3, first=20, sequence=9)], options=EVOLVING
    )

    assert rows(store, split, names[1:]).to_pydict() == {"_ROW_ID": [70, 21, 50], "_SEQUENCE_NUMBER": [9, 4, 5]}


def test_rows_keep_their_ids_where_others_are_deleted():
    vectors = {(entry("x")["partition"], 0, "a.parquet"): PaimonVector(path="i", offset=1, length=None, cardinality=1)}
    options = EVOLVING | {"deletion-vectors.enabled": "true"}
    store = Files(STORE.files | {"i": b"\x01" + vector_64({0})})
    (split,) = splits(TABLE, [part("a.parquet", None, first=30)], options=options, vectors=vectors)

    assert rows(store, split, ["k", "_ROW_ID"]).to_pydict() == {"k": [2], "_ROW_ID": [31]}


@settings(max_examples=50)
@given(st.lists(st.lists(st.integers(1, 20), max_size=6), min_size=1, max_size=4))
def test_streams_cut_anyhow_stay_row_by_row(cuts):
    total = 60

    def stream(place, sizes):
        edges = sorted({0, total, *(min(total, sum(sizes[: n + 1])) for n in range(len(sizes)))})
        for begin, end in itertools.pairwise(edges):
            yield pa.record_batch([pa.array(range(begin, end))], names=[str(place)])

    found = list(side_by_side([stream(place, sizes) for place, sizes in enumerate(cuts)]))

    for place in range(len(cuts)):
        assert [n for parts in found for n in parts[place].column(0).to_pylist()] == list(range(total))
    assert all(len({part.num_rows for part in parts}) == 1 for parts in found)
