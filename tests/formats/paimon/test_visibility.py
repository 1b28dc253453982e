"""Which files of a table with deletion vectors are looked at, which are merged, and whole tables at other places."""

import io
import json
import pickle
import shutil
from pathlib import Path

import fastavro
import pytest

import snapshot_explorer
from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.formats.paimon.test_read_splits import KEYED, keyed, keyed_rows, names
from tests.inner.paimon import PaimonVector
from tests.support.paimon.splits import Files, entry, int_row, parquet, rows, schema, splits
from tests.support.vector_bytes import vector_32

DATA = Path(__file__).parents[2] / "data" / "paimon"
ON = {"deletion-vectors.enabled": "true"}
PLAIN = schema([("k", "INT"), ("v", "STRING")])
SWITCHED_ON = schema([("k", "INT"), ("v", "STRING")], keys=["k"], options=ON)
FILE = parquet(keyed_rows([(1, 1, 0, "a"), (2, 2, 0, "b"), (3, 3, 0, "c")]))
INDEX = b"\x01" + vector_32({0, 2})


def deletes(name, rows=2, offset=1):
    return {(int_row(), 0, name): PaimonVector(path="index/i", offset=offset, length=None, cardinality=rows)}


def test_level_0_does_not_show_in_a_table_with_vectors():
    files = [keyed("new.parquet", 1, 3), keyed("a.parquet", 1, 3, level=4), keyed("b.parquet", 2, 9, level=5)]

    (split,) = splits(SWITCHED_ON, files, options=ON)

    assert names(split) == ["a.parquet", "b.parquet"]
    assert split.raw
    assert split.detail.merge is None


def test_files_of_a_writer_that_wrote_no_vectors_are_merged_although_the_option_is_on():
    files = [
        keyed("a.parquet", 1, 3, level=4, deleted_rows=None),
        keyed("b.parquet", 2, 9, level=5, deleted_rows=None),
    ]

    (split,) = splits(SWITCHED_ON, files, options=ON)

    assert names(split) == ["a.parquet", "b.parquet"]
    assert split.detail.merge is not None


def test_level_0_shows_where_vectors_are_merged_on_read():
    files = [keyed("new.parquet", 1, 3), keyed("a.parquet", 1, 3, level=4), keyed("b.parquet", 10, 11, level=5)]

    merged, alone = splits(SWITCHED_ON, files, options=ON | {"deletion-vectors.merge-on-read": "true"})

    assert names(merged) == ["new.parquet", "a.parquet"]
    assert merged.detail.merge.lookup
    assert (names(alone), alone.raw) == (["b.parquet"], True)


def test_vectors_are_applied_before_a_merge():
    store = Files({"bucket-0/a.parquet": FILE, "bucket-0/new.parquet": FILE, "index/i": INDEX})
    files = [keyed("new.parquet", 1, 3, rows=3), keyed("a.parquet", 1, 3, level=4, rows=3)]
    options = ON | {"deletion-vectors.merge-on-read": "true"}

    (split,) = splits(SWITCHED_ON, files, options=options, vectors=deletes("a.parquet") | deletes("new.parquet"))

    assert rows(store, split, ["k"]).to_pydict() == {"k": [2]}
    assert store.opened.count("index/i") == 1
    assert split.live_rows is None


def test_a_file_with_a_vector_is_not_raw_and_is_counted_by_its_metadata():
    store = Files({"bucket-0/a.parquet": FILE, "bucket-0/b.parquet": FILE, "index/i": INDEX})
    files = [keyed("a.parquet", 1, 3, level=4, rows=3), keyed("b.parquet", 1, 3, level=5, rows=3)]

    raw, filtered = splits(SWITCHED_ON, files, options=ON, vectors=deletes("a.parquet"))
    filtered = pickle.loads(pickle.dumps(filtered))

    assert (names(raw), raw.raw, raw.live_rows) == (["b.parquet"], True, 3)
    assert (names(filtered), filtered.raw, filtered.rows, filtered.live_rows) == (["a.parquet"], False, 3, 1)
    assert rows(store, filtered, ["v", "k"]).to_pylist() == [{"v": "b", "k": 2}]
    assert rows(store, filtered, []).num_rows == 1


def test_a_vector_without_cardinality_makes_rows_be_counted_by_reading():
    (split,) = splits(SWITCHED_ON, [keyed("a.parquet", 1, 3, level=4)], options=ON, vectors=deletes("a.parquet", None))

    assert split.live_rows is None


def test_a_vector_that_does_not_fit_its_file_is_broken_before_any_row():
    store = Files({"bucket-0/a.parquet": FILE, "index/i": INDEX})
    (split,) = splits(PLAIN, [entry("a.parquet", rows=2)], options=ON, vectors=deletes("a.parquet"))

    with pytest.raises(
        CorruptTableError, match=r"vector of bucket-0/a.parquet, in index/i at 1, .* position 2 where 2"
    ):
        rows(store, split, ["k"])
    assert store.opened == ["index/i"]


def test_the_vector_of_another_bucket_is_not_applied():
    (split,) = splits(PLAIN, [entry("a.parquet", bucket=1)], options=ON, vectors=deletes("a.parquet"))

    assert split.raw


def test_vectors_that_the_newest_options_turn_off_are_refused_where_rows_would_come_back():
    with pytest.raises(UnsupportedFeatureError, match=r"whose newest options disable them .the data file a.parq"):
        splits(PLAIN, [entry("a.parquet")], vectors=deletes("a.parquet"))
    assert splits(PLAIN, [entry("b.parquet")], vectors=deletes("a.parquet"))


def test_a_table_with_keys_is_merged_instead_where_vectors_are_turned_off(caplog):
    files = [keyed("a.parquet", 1, 3, level=4), keyed("b.parquet", 1, 3, level=5)]

    (split,) = splits(SWITCHED_ON, files, vectors=deletes("b.parquet"))

    assert split.detail.merge is not None
    assert all(file.vector is None for file in split.detail.files)
    assert "version 7 has deletion vectors, but the newest options turn them off" in caplog.text


@pytest.mark.parametrize("levels", [(0, 5), (4, 5), (0, 0)])
def test_a_version_older_than_its_vectors_is_refused_where_it_needs_a_merge(levels):
    files = [keyed(f"{place}.parquet", 1, 3, level=level) for place, level in enumerate(levels)]

    with pytest.raises(
        UnsupportedFeatureError, match="which Paimon no longer does since deletion vectors were enabled"
    ):
        splits(KEYED, files, options=ON)


def test_a_version_older_than_its_vectors_is_read_where_it_needs_no_merge():
    (split,) = splits(KEYED, [keyed("a.parquet", 1, 3, level=5)], options=ON)

    assert split.raw


def test_buckets_of_which_partitions_have_other_numbers_are_read_alike():
    files = [keyed("a.parquet", 1, 3, bucket=3, total_buckets=4), keyed("b.parquet", 1, 3, bucket=0, total_buckets=1)]

    found = splits(KEYED, files, options={"bucket": "1"})

    assert [(split.bucket, names(split)) for split in found] == [(3, ["a.parquet"]), (0, ["b.parquet"])]


def moved(table, elsewhere, scheme):
    """Move data files and deletion vectors of a table elsewhere, and have its manifests name the new places."""
    for path in sorted((table / "manifest").glob("*")):
        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        records, written = list(reader), reader.writer_schema
        for record in records:
            there = record.get("_FILE")
            if there is not None:
                there["_EXTERNAL_PATH"] = f"{scheme}{elsewhere}/bucket-{record['_BUCKET']}/{there['_FILE_NAME']}"
            elif "_INDEX_TYPE" in record:
                record["_EXTERNAL_PATH"] = f"{scheme}{elsewhere}/bucket-{record['_BUCKET']}/{record['_FILE_NAME']}"
        out = io.BytesIO()
        fastavro.writer(out, fastavro.parse_schema(written), records, codec="null")
        path.write_bytes(out.getvalue())
    without_sizes(table)
    for bucket in table.glob("bucket-*"):
        shutil.move(bucket, elsewhere / bucket.name)
    for index in (table / "index").glob("*"):
        shutil.move(index, elsewhere / "bucket-0" / index.name)


def without_sizes(table):
    """Take out what says how long the manifests were."""
    for path in sorted((table / "manifest").glob("manifest-list-*")):
        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        records, written = list(reader), reader.writer_schema
        for record in records:
            record["_FILE_SIZE"] = (table / "manifest" / record["_FILE_NAME"]).stat().st_size
        out = io.BytesIO()
        fastavro.writer(out, fastavro.parse_schema(written), records, codec="null")
        path.write_bytes(out.getvalue())
    for path in (table / "snapshot").glob("snapshot-*"):
        known = json.loads(path.read_text())
        left = {key: value for key, value in known.items() if not key.endswith("ManifestListSize")}
        path.write_text(json.dumps(left))


@pytest.mark.parametrize("scheme", ["FILE:", "file://", ""])
def test_data_and_vectors_are_read_at_full_paths_that_the_manifests_name(tmp_path, scheme):
    before = snapshot_explorer.open_table(str(DATA / "dv_1_4"))
    table, elsewhere = tmp_path / "orders", tmp_path / "else where"
    shutil.copytree(DATA / "dv_1_4", table)
    elsewhere.mkdir()

    moved(table, elsewhere, scheme)
    after = snapshot_explorer.open_table(str(table))

    for version in range(1, 9):
        assert after.at(version).to_arrow().equals(before.at(version).to_arrow())
    assert set(after.at(8).files().to_arrow()["deletion_vector"].to_pylist()) != {None}
    for path in after.at(8).files().to_arrow()["path"].to_pylist():
        assert path.startswith(f"file://{elsewhere}/bucket-0/")


def test_a_file_that_is_gone_from_its_full_path_is_named(tmp_path):
    table, elsewhere = tmp_path / "orders", tmp_path / "else"
    shutil.copytree(DATA / "dv_1_4", table)
    elsewhere.mkdir()
    moved(table, elsewhere, "FILE:")
    for path in elsewhere.glob("*/index-*"):
        path.unlink()

    with pytest.raises(CorruptTableError, match=r"file://.*/else/bucket-0/index-"):
        snapshot_explorer.open_table(str(table)).at(8).to_arrow()


def test_a_cut_index_file_of_a_real_table_is_named(tmp_path):
    shutil.copytree(DATA / "dv_append", tmp_path / "t")
    for path in (tmp_path / "t" / "index").glob("*"):
        path.write_bytes(path.read_bytes()[:-2])
    snapshot = snapshot_explorer.open_table(str(tmp_path / "t")).current

    with pytest.raises(
        CorruptTableError, match=r"index file index/index-.* has \d+ bytes, but its index manifest records"
    ):
        snapshot.to_arrow()


def test_counting_a_table_with_vectors_reads_no_data_file(tmp_path):
    shutil.copytree(DATA / "dv_1_4", tmp_path / "t")
    snapshot = snapshot_explorer.open_table(str(tmp_path / "t")).current
    known = snapshot.to_arrow().num_rows
    shutil.rmtree(tmp_path / "t" / "bucket-0")
    shutil.rmtree(tmp_path / "t" / "index")

    assert snapshot.count() == known


def test_files_say_how_many_of_their_rows_are_deleted():
    snapshot = snapshot_explorer.open_table(str(DATA / "dv_1_4")).at(8)

    files = snapshot.files().to_arrow().to_pylist()

    shown = [file for file in files if file["level"] > 0]
    assert sum(file["rows"] - (file["deleted_rows"] or 0) for file in shown) == snapshot.count()
