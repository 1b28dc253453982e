"""Which files are read together, what is refused before any row, and what splits hold."""

import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from tests.inner.core import Split
from tests.inner.paimon import read
from tests.support.paimon.splits import Files, entry, int_row, orc_file, parquet, rows, schema, splits, text_row

PLAIN = schema([("k", "INT"), ("v", "STRING")])
KEYED = schema([("k", "INT"), ("v", "STRING")], keys=["k"])


def keyed(name, least, most, **values):
    return entry(name, min_key=int_row(least), max_key=int_row(most), **values)


def names(split):
    return [path.rsplit("/", 1)[1] for path in split.files]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("merge-engine", "newest-wins", "the merge engine newest-wins"),
        ("data-evolution.enabled", "true", "data evolution of a table with a primary key"),
        ("postpone.merge-on-read", "true", "merge-on-read of postponed buckets"),
        ("chain-table.enabled", "true", "a chain table"),
        ("sequence.snapshot-ordering", "true", "rows ordered by snapshot"),
        ("pk-clustering-override", "true", "files that are clustered"),
        ("fields.m.map.storage-layout", "columns", "other storage layouts of maps"),
        ("blob-descriptor-field", "v", "blobs that are stored as descriptors"),
        ("blob-view-field", "v", "blobs that are views"),
        ("sequence.field", "gone", "the sequence field 'gone'"),
    ],
)
def test_an_option_that_asks_for_more_is_refused_by_name(option, value, said):
    with pytest.raises(UnsupportedFeatureError) as refusal:
        splits(KEYED, [keyed("a.parquet", 1, 2)], options={option: value})

    assert said in str(refusal.value)
    assert f"{option}={value}" in str(refusal.value)
    assert str(refusal.value).startswith("The rows of version 7 need ")
    assert "History, schema, manifests and files are available" in str(refusal.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("merge-engine", "deduplicate"),
        ("deletion-vectors.enabled", "false"),
        ("scan.ignore-corrupt-files", "true"),
        ("scan.fallback-branch", ""),
        ("changelog-producer", "lookup"),
        ("rowkind.field", "v"),
        ("data-file.thin-mode", "true"),
        ("row-tracking.enabled", "true"),
    ],
)
def test_an_option_that_changes_no_row_is_read(option, value):
    assert splits(KEYED, [keyed("a.parquet", 1, 2)], options={option: value})


def test_the_merge_engine_of_a_table_without_keys_says_nothing():
    assert splits(PLAIN, [entry("a.parquet")], options={"merge-engine": "aggregation"})


@pytest.mark.parametrize(
    "name", ["a.csv", "a.json.gz", "a.lance", "a.blob", "a.row", "noextension", "a.vector.parquet"]
)
def test_a_file_of_another_format_is_refused_by_name(name):
    with pytest.raises(UnsupportedFeatureError, match=f"the data file {name}"):
        splits(PLAIN, [entry(name)])


@pytest.mark.parametrize("name", ["a.parquet", "a.zstd.parquet", "a.ORC", "a.avro.gz"])
def test_the_name_of_a_file_tells_its_format(name):
    (split,) = splits(PLAIN, [entry(name)])

    assert split.detail.files[0].format in name.lower()


@pytest.mark.parametrize("kind", ["BLOB", "VECTOR<FLOAT, 1048577>", "ROW<a ARRAY<BLOB>>"])
def test_a_column_of_a_type_that_is_not_read_is_refused_by_name(kind):
    with pytest.raises(UnsupportedFeatureError, match="the column 'b' of type"):
        splits(schema([("k", "INT"), ("b", kind)]), [entry("a.parquet")])


def test_a_file_with_some_columns_only_is_refused_but_row_tracking_is_not():
    with pytest.raises(UnsupportedFeatureError, match="a.parquet lacks the column 'v'"):
        splits(PLAIN, [entry("a.parquet", write_columns=["k"])])

    assert splits(PLAIN, [entry("a.parquet", write_columns=["k", "v", "_ROW_ID", "_SEQUENCE_NUMBER"])])


def test_a_postponed_bucket_without_its_option_is_refused_by_its_file():
    with pytest.raises(UnsupportedFeatureError, match="postponed buckets without .* .the data file a.parquet"):
        splits(KEYED, [keyed("a.parquet", 1, 2, bucket=-2)])


def test_files_of_postponed_buckets_are_passed_over():
    files = [keyed("a.parquet", 1, 2, bucket=-2), keyed("b.parquet", 1, 2, bucket=1, level=5)]

    (split,) = splits(KEYED, files, options={"bucket": "-2"})

    assert names(split) == ["b.parquet"]


def test_a_change_of_type_without_a_cast_is_refused_before_any_row():
    old = schema([("k", "INT"), ("v", "ARRAY<INT>")])
    new = schema([("k", "INT"), ("v", "STRING")], number=1)

    with pytest.raises(UnsupportedFeatureError, match="Version 7, data file a.parquet: The column 'v' was changed"):
        splits(new, [entry("a.parquet")], file_schemas={0: old, 1: new})


def test_a_missing_schema_names_file_and_schema():
    with pytest.raises(CorruptTableError, match=r"a.parquet was written with schema/schema-5, which does not exist"):
        splits(PLAIN, [entry("a.parquet", schema_id=5)])


def test_files_without_keys_are_packed_in_the_order_of_their_sequence_numbers():
    files = [entry(f"{n}.parquet", min_sequence=10 - n, max_sequence=10 - n, size_bytes=60 * 2**20) for n in range(5)]

    found = splits(PLAIN, files)

    assert [names(split) for split in found] == [["4.parquet", "3.parquet"], ["2.parquet", "1.parquet"], ["0.parquet"]]
    assert all(split.raw for split in found)


def test_many_small_files_count_four_megabytes_each():
    found = splits(PLAIN, [entry(f"{n}.parquet", size_bytes=10) for n in range(70)])

    assert [len(split.files) for split in found] == [32, 32, 6]


def test_partitions_and_buckets_are_not_mixed():
    table = schema([("p", "INT"), ("v", "STRING")], partitions=["p"])
    files = [
        entry("a.parquet", partition=int_row(1), bucket=0),
        entry("b.parquet", partition=int_row(2), bucket=0),
        entry("c.parquet", partition=int_row(1), bucket=1),
        entry("d.parquet", partition=int_row(1), bucket=0),
    ]

    found = splits(table, files)

    assert [(names(split), dict(split.partition), split.bucket) for split in found] == [
        (["a.parquet", "d.parquet"], {"p": "1"}, 0),
        (["b.parquet"], {"p": "2"}, 0),
        (["c.parquet"], {"p": "1"}, 1),
    ]


def test_overlapping_keys_make_a_section_and_what_stands_alone_is_raw():
    files = [
        keyed("a.parquet", 1, 5),
        keyed("b.parquet", 10, 20),
        keyed("c.parquet", 5, 7, level=1),
        keyed("d.parquet", 21, 30, level=1),
        keyed("e.parquet", 15, 15),
    ]

    found = splits(KEYED, files)

    assert [(names(split), split.raw, split.detail.merge is not None) for split in found] == [
        (["a.parquet", "c.parquet"], False, True),
        (["b.parquet", "e.parquet"], False, True),
        (["d.parquet"], True, False),
    ]


def test_keys_are_compared_by_their_type_and_not_by_their_bytes():
    numbers = [keyed("a.parquet", 1, 256), keyed("b.parquet", 257, 300), keyed("c.parquet", -5, 0)]
    texts = [
        entry("a.parquet", min_key=text_row("a"), max_key=text_row("b")),
        entry("b.parquet", min_key=text_row("aa"), max_key=text_row("c")),
        entry("c.parquet", min_key=text_row("d"), max_key=text_row("d")),
    ]

    (split,) = splits(KEYED, numbers)
    assert names(split) == ["c.parquet", "a.parquet", "b.parquet"]
    assert split.raw
    merged, alone = splits(schema([("k", "STRING"), ("v", "INT")], keys=["k"]), texts)
    assert names(merged) == ["a.parquet", "b.parquet"]
    assert names(alone) == ["c.parquet"]


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 20), st.integers(0, 3)), min_size=1, max_size=12))
def test_sections_are_the_connected_key_ranges(ranges):
    files = [keyed(f"{n}.parquet", low, low + more, level=level) for n, (low, more, level) in enumerate(ranges)]
    spans = {f"{n}.parquet": (low, low + more) for n, (low, more, _) in enumerate(ranges)}

    found = splits(KEYED, files)

    assert sorted(name for split in found for name in names(split)) == sorted(spans)
    merged = [names(split) for split in found if split.detail.merge is not None]
    if len({level for _, _, level in ranges}) == 1 and ranges[0][2]:
        assert not merged
        return
    for split in found:
        inside = names(split)
        outside = set(spans) - set(inside)
        for name in inside if split.detail.merge else ():
            assert all(spans[other][1] < spans[name][0] or spans[name][1] < spans[other][0] for other in outside)
        if not split.detail.merge:
            for name in inside:
                others = set(spans) - {name}
                assert all(spans[other][1] < spans[name][0] or spans[name][1] < spans[other][0] for other in others)


def test_files_of_one_level_without_retracts_are_raw_even_if_they_seem_to_overlap():
    (split,) = splits(KEYED, [keyed("a.parquet", 1, 5, level=5), keyed("b.parquet", 5, 9, level=5)])

    assert split.raw


@pytest.mark.parametrize("deleted", [1, None])
def test_a_file_that_may_hold_retracts_is_not_raw(deleted):
    (split,) = splits(KEYED, [keyed("a.parquet", 1, 5, level=5, deleted_rows=deleted)])

    assert not split.raw


def test_avro_evolved_files_and_times_that_others_misread_are_not_raw():
    old, new = schema([("k", "INT"), ("w", "STRING")]), schema([("k", "INT"), ("v", "STRING")], number=1)
    both = {0: old, 1: new}

    assert [split.raw for split in splits(new, [entry("a.parquet")], file_schemas=both)] == [False]
    assert [split.raw for split in splits(new, [entry("a.parquet", schema_id=1)], file_schemas=both)] == [True]
    assert [split.raw for split in splits(PLAIN, [entry("a.avro")])] == [False]
    for kind, name in (("TIMESTAMP(9)", "a.parquet"), ("TIME(0)", "a.orc"), ("ARRAY<TIMESTAMP_LTZ(3)>", "a.orc")):
        assert [split.raw for split in splits(schema([("t", kind)]), [entry(name)])] == [False]
        other = "a.orc" if name == "a.parquet" else "a.parquet"
        assert [split.raw for split in splits(schema([("t", kind)]), [entry(other)])] == [True]


def test_a_split_travels_and_holds_no_options():
    secret = {"fs.s3a.secret.key": "hidden", "sequence.field": "v"}
    table = schema([("p", "INT"), ("k", "INT"), ("v", "STRING")], keys=["p", "k"], partitions=["p"], options=secret)
    files = [keyed(f"{n}.parquet", 1, 5, partition=int_row(4)) for n in range(2)]
    store = Files(
        {f"bucket-0/{n}.parquet": parquet(keyed_rows([(1, n, 0, f"v{n}"), (2 + n, 9, 0, "x")], p=4)) for n in range(2)}
    )

    (split,) = splits(table, [{**item, "rows": 2} for item in files], options=secret)
    again = pickle.loads(pickle.dumps(split))

    assert "hidden" not in repr(again) + repr(again.detail)
    assert rows(store, again, ["k", "p", "v"]).to_pylist() == [
        {"k": 2, "p": 4, "v": "x"},
        {"k": 1, "p": 4, "v": "v1"},
        {"k": 3, "p": 4, "v": "x"},
    ]


def keyed_rows(values, **constants):
    """Rows (k, sequence, kind, v) as a primary-key file holds them."""
    columns = list(zip(*values, strict=True))
    table = {
        "_KEY_k": pa.array(columns[0], pa.int32()),
        "_SEQUENCE_NUMBER": pa.array(columns[1], pa.int64()),
        "_VALUE_KIND": pa.array(columns[2], pa.int8()),
        "k": pa.array(columns[0], pa.int32()),
        "v": pa.array(columns[3], pa.string()),
    }
    return pa.table(
        {**table, **{name: pa.array([value] * len(values), pa.int32()) for name, value in constants.items()}}
    )


def test_a_section_is_merged_and_only_the_requested_columns_are_returned():
    store = Files(
        {
            "bucket-0/a.parquet": parquet(keyed_rows([(1, 1, 0, "a"), (2, 2, 0, "b"), (3, 3, 0, "c")])),
            "bucket-0/b.orc": orc_file(keyed_rows([(1, 4, 3, "a"), (2, 5, 2, "B")])),
        }
    )
    (split,) = splits(KEYED, [keyed("a.parquet", 1, 3, rows=3), keyed("b.orc", 1, 2, rows=2, deleted_rows=1)])

    assert rows(store, split, ["v"]).to_pydict() == {"v": ["B", "c"]}
    assert rows(store, split, []).num_rows == 2
    assert split.rows == 5


def test_retracts_that_the_writer_did_not_count_are_dropped_without_a_merge():
    store = Files({"bucket-0/a.parquet": parquet(keyed_rows([(1, 1, 0, "a"), (2, 2, 3, "b"), (3, 3, 1, "c")]))})
    (split,) = splits(KEYED, [keyed("a.parquet", 1, 3, rows=3, level=5, deleted_rows=None)])

    assert split.detail.merge is None
    assert rows(store, split, ["k"]).to_pydict() == {"k": [1]}
    assert rows(store, split, []).num_rows == 1


def test_rows_come_in_exactly_the_types_of_the_schema_nulls_included():
    table = schema([("k", "INT NOT NULL"), ("l", "ARRAY<INT NOT NULL>"), ("new", "DECIMAL(5, 2)")], number=1)
    old = schema([("k", "INT"), ("l", "ARRAY<INT>")])
    store = Files(
        {
            "bucket-0/a.parquet": parquet(
                pa.table({"k": pa.array([1], pa.int32()), "l": pa.array([[1]], pa.list_(pa.int32()))})
            )
        }
    )
    (split,) = splits(table, [entry("a.parquet")], file_schemas={0: old})

    found = rows(store, split, ["new", "l", "k"])

    assert found.schema == pa.schema(
        [
            pa.field("new", pa.decimal128(5, 2)),
            pa.field("l", pa.list_(pa.field("element", pa.int32(), nullable=False))),
            pa.field("k", pa.int32(), nullable=False),
        ]
    )


def test_partition_values_come_from_the_manifest_and_not_from_the_file():
    table = schema([("p", "INT"), ("v", "STRING")], partitions=["p"])
    store = Files({"bucket-0/a.parquet": parquet(pa.table({"p": pa.array([9], pa.int32()), "v": ["x"]}))})
    (split,) = splits(table, [entry("a.parquet", partition=int_row(4))])

    assert rows(store, split, ["v", "p"]).to_pylist() == [{"v": "x", "p": 4}]
    assert rows(store, split, ["p"]).to_pylist() == [{"p": 4}]


def test_a_file_that_vanished_says_that_the_version_may_have_expired():
    class Gone(Files):
        def open(self, path, *, size_bytes=None):
            from snapshot_explorer.errors import MissingFileError

            raise MissingFileError(path)

    (split,) = splits(PLAIN, [entry("a.parquet")])

    with pytest.raises(
        CorruptTableError, match="data file bucket-0/a.parquet does not exist. The version may have expired"
    ):
        rows(Gone({}), split, ["k"])


def test_a_column_that_the_version_lacks_is_named():
    (split,) = splits(PLAIN, [entry("a.parquet")])

    with pytest.raises(InvalidArgumentError, match="Unknown column 'x'. Columns: k, v"):
        rows(Files({}), split, ["x"])


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        ((1, 2), (3, 4), ["C", "B"]),  # the files' own numbers say which is newer
        ((3, 4), (1, 2), ["a", "b"]),
        ((1, 3), (3, 4), ["C", "b"]),  # those of the rows do
        ((0, 0), (0, 0), ["C", "b"]),
    ],
)
def test_sequence_numbers_of_rows_count_where_those_of_the_files_overlap(a, b, merged):
    store = Files(
        {
            "bucket-0/a.parquet": parquet(keyed_rows([(1, 1, 0, "a"), (2, 3, 0, "b")])),
            "bucket-0/b.parquet": parquet(keyed_rows([(1, 4, 0, "C"), (2, 2, 0, "B")])),
        }
    )
    files = [
        keyed(f"{name}.parquet", 1, 2, rows=2, min_sequence=least, max_sequence=most)
        for name, (least, most) in (("a", a), ("b", b))
    ]
    (split,) = splits(KEYED, files)

    assert sorted(rows(store, split, ["v"]).column("v").to_pylist()) == sorted(merged)


def test_a_split_of_another_format_is_not_read():
    foreign = Split(files=(), raw=True, partition={}, rows=0, size_bytes=0, detail=None)

    with pytest.raises(InvalidArgumentError, match="not from a Paimon table"):
        list(read.read(Files({}), foreign, []))


def test_a_row_of_an_unknown_kind_is_broken():
    store = Files({f"bucket-0/{n}.parquet": parquet(keyed_rows([(1, 1, 7, "a")])) for n in "ab"})
    (split,) = splits(KEYED, [keyed("a.parquet", 1, 1), keyed("b.parquet", 1, 1)])

    with pytest.raises(CorruptTableError, match="a.parquet has rows without a sequence number or with an unknown kind"):
        rows(store, split, ["k"])


def test_a_pickled_split_is_equal_and_holds_its_own_files_only():
    parts = splits(schema([("k", "INT")]), [entry(f"data-{number}.parquet", rows=number) for number in range(200)])

    copies = pickle.loads(pickle.dumps(parts))

    assert len(parts) > 1
    assert copies == parts
    assert [split.identity for split in copies] == [split.identity for split in parts]
    assert [file.rows for split in copies for file in split.detail.files] == list(range(200))
    assert len(pickle.dumps(parts[0])) < len(pickle.dumps(parts)) / 2
