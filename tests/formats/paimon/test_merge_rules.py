"""Which merge engines and functions are read, and what is refused before any row."""

import pickle

import pyarrow as pa
import pytest

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from tests.inner.paimon import Aggregation, Function, PartialUpdate, SequenceGroup
from tests.support.paimon.splits import Files, entry, int_row, parquet, rows, schema, splits

TABLE = schema(
    [
        ("k", "INT NOT NULL"),
        ("g", "INT"),
        ("t", "STRING"),
        ("short", "VARCHAR(3)"),
        ("n", "INT"),
        ("l", "ARRAY<INT>"),
        ("bytes", "ARRAY<BYTES>"),
        ("floats", "ARRAY<ROW<x DOUBLE>>"),
        ("table", "ARRAY<ROW<id INT, v STRING>>"),
        ("m", "MAP<STRING, INT>"),
        ("by_bytes", "MAP<BYTES, INT>"),
        ("timed", "MAP<STRING, ROW<v INT, at STRING>>"),
        ("raw", "BYTES"),
    ],
    keys=["k"],
)
AGGREGATION = {"merge-engine": "aggregation"}
PARTIAL = {"merge-engine": "partial-update"}


def keyed(name, **values):
    return entry(name, min_key=int_row(1), max_key=int_row(2), **values)


def rules(options):
    found = splits(TABLE, [keyed("a.parquet"), keyed("b.parquet")], options=options)
    return pickle.loads(pickle.dumps(found[0].detail.merge))


def refusal(options):
    with pytest.raises(UnsupportedFeatureError) as error:
        splits(TABLE, [keyed("a.parquet")], options=options)
    assert str(error.value).startswith("The rows of version 7 need ")
    return str(error.value)


@pytest.mark.parametrize(
    ("column", "function", "more"),
    [
        ("raw", "sum", {}),
        ("t", "rbm32", {}),
        ("t", "rbm64", {}),
        ("t", "hll_sketch", {}),
        ("t", "theta_sketch", {}),
        ("n", "median", {}),
        ("t", "sum", {}),
        ("l", "max", {}),
        ("n", "bool_or", {}),
        ("short", "listagg", {}),
        ("n", "collect", {}),
        ("bytes", "collect", {"fields.bytes.distinct": "true"}),
        ("floats", "collect", {"fields.floats.distinct": "true"}),
        ("by_bytes", "merge_map", {}),
        ("m", "merge_map_with_keytime", {}),
        ("timed", "merge_map_with_keytime", {"fields.timed.ts-field": "v"}),
        ("l", "nested_update", {}),
        ("floats", "nested_update", {}),
        ("table", "nested_update", {"fields.table.nested-key": "gone"}),
        ("table", "nested_partial_update", {}),
        ("table", "nested_update", {"fields.table.nested-sequence-field": "id"}),
        ("table", "nested_update", {"fields.table.nested-key": "id", "fields.table.nested-sequence-field": "gone"}),
        ("table", "nested_update", {"fields.table.nested-key": "id", "fields.table.nested-key-null-strategy": "skip"}),
        ("table", "nested_update", {"fields.table.nested-key-null-strategy": "ignore"}),
    ],
)
def test_a_function_that_is_not_read_exactly_is_refused_by_name(column, function, more):
    said = refusal({**AGGREGATION, f"fields.{column}.aggregate-function": function, **more})

    assert f"the aggregate function {function} of the column {column!r}" in said
    assert f"fields.{column}.aggregate-function={function}" in said


@pytest.mark.parametrize("column", ["l", "bytes", "table", "floats"])
def test_collect_joins_elements_of_any_type(column):
    options = {**AGGREGATION, f"fields.{column}.aggregate-function": "collect"}

    found = rules(options).engine.functions[column]

    assert (found.name, found.distinct) == ("collect", False)


def test_options_of_nested_functions_are_read():
    options = {
        "fields.table.aggregate-function": "nested_update",
        "fields.table.nested-key": "id",
        "fields.table.nested-sequence-field": "v, id",
        "fields.table.nested-key-null-strategy": "IGNORE",
        "fields.table.count-limit": "3",
    }

    assert rules({**AGGREGATION, **options}).engine.functions["table"] == Function(
        name="nested_update", nested_key=("id",), nested_sequence=("v", "id"), null_keys="ignore", count_limit=3
    )


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_that_is_not_a_number_of_rows_is_refused(limit):
    options = {"fields.table.aggregate-function": "nested_update", "fields.table.count-limit": limit}

    assert f"fields.table.count-limit={limit}" in refusal({**AGGREGATION, **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fields.g.sequence-group": "gone"}, "the column 'gone' in a sequence group"),
        ({"fields.g.sequence-group": "k"}, "the column 'k' in a sequence group"),
        ({"fields.g.sequence-group": "t", "fields.n.sequence-group": "t"}, "the column 't' in a sequence group"),
        ({"fields.l.sequence-group": "t"}, "a sequence field of a nested type"),
        ({"fields.n.aggregate-function": "sum"}, "outside of a sequence group"),
        (
            {"partial-update.remove-record-on-sequence-group": "g"},
            "the sequence field 'g', which is not in a sequence group",
        ),
        (
            {"partial-update.remove-record-on-delete": "true", "ignore-delete": "true"},
            "remove-record-on-delete with sequence groups or ignored deletes",
        ),
        (
            {"partial-update.remove-record-on-delete": "true", "fields.g.sequence-group": "t"},
            "remove-record-on-delete with sequence groups or ignored deletes",
        ),
        (
            {
                "partial-update.remove-record-on-sequence-group": "g",
                "fields.g.sequence-group": "t",
                "ignore-delete": "true",
            },
            "remove-record-on-sequence-group with ignored deletes",
        ),
    ],
)
def test_partial_updates_that_paimon_refuses_are_refused(options, said):
    assert said in refusal({**PARTIAL, **options})


def test_a_removal_of_records_beside_ignored_retracts_is_refused():
    options = {"aggregation.remove-record-on-delete": "true", "fields.n.ignore-retract": "true"}

    assert "remove-record-on-delete with ignored retracts" in refusal({**AGGREGATION, **options})


def test_first_rows_by_sequence_fields_are_refused():
    assert "merge-engine=first-row with sequence fields" in refusal(
        {"merge-engine": "first-row", "sequence.field": "g"}
    )


def test_a_primary_key_of_partition_columns_only_is_refused():
    table = schema([("day", "INT NOT NULL"), ("n", "INT")], keys=["day"], partitions=["day"])

    with pytest.raises(UnsupportedFeatureError, match="the primary key 'day' has only partition columns"):
        splits(table, [entry("a.parquet", partition=int_row(1)), entry("b.parquet", partition=int_row(1))])


def test_functions_are_those_of_the_columns_then_the_default_then_the_last_value_that_is_not_null():
    engine = rules({**AGGREGATION, "sequence.field": "g", "fields.n.aggregate-function": "max"}).engine

    assert isinstance(engine, Aggregation)
    assert {name: engine.functions[name].name for name in ("k", "g", "n", "t")} == {
        "k": "primary_key",
        "g": "last_value",
        "n": "max",
        "t": "last_non_null_value",
    }
    engine = rules({**AGGREGATION, "fields.default-aggregate-function": "first_not_null_value"}).engine
    assert engine.functions["t"].name == "first_non_null_value"


def test_sequence_groups_are_read_from_options():
    options = {"fields.g,n.sequence-group": "t,m", "partial-update.remove-record-on-sequence-group": "n"}

    engine = rules({**PARTIAL, **options}).engine

    assert isinstance(engine, PartialUpdate)
    assert engine.groups == (SequenceGroup(order=("g", "n"), fields=("t", "m"), removes=True),)


SMALL = schema([("k", "INT NOT NULL"), ("n", "TINYINT")], keys=["k"])


def stored(numbers, kinds, *, first=0):
    size = len(numbers)
    return parquet(
        pa.table(
            {
                "_SEQUENCE_NUMBER": pa.array(range(first, first + size), pa.int64()),
                "_VALUE_KIND": pa.array(kinds, pa.int8()),
                "k": pa.array([1] * size, pa.int32()),
                "n": pa.array(numbers, pa.int8()),
            }
        )
    )


FILES = {"bucket-0/a.parquet": stored([100], [0]), "bucket-0/b.parquet": stored([100], [3], first=1)}


def test_first_rows_are_those_of_compacted_files():
    options = {"merge-engine": "first-row"}
    fresh, done = keyed("a.parquet"), keyed("b.parquet", level=5)

    assert [split.files for split in splits(SMALL, [fresh, done], options=options)] == [("bucket-0/b.parquet",)]
    assert splits(SMALL, [fresh], options=options) == []


def test_compacted_files_of_first_rows_are_raw_on_whatever_level():
    found = splits(
        SMALL, [keyed("a.parquet", level=4), keyed("b.parquet", level=5)], options={"merge-engine": "first-row"}
    )

    assert [split.raw for split in found] == [True]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"merge-engine": "first-row"}, "a table with merge-engine=first-row contains rows of kind -U or -D"),
        ({"merge-engine": "partial-update"}, "a table with merge-engine=partial-update contains rows of kind -U or -D"),
        (
            {"merge-engine": "aggregation", "fields.n.aggregate-function": "max"},
            "column 'n': rows of kind -U or -D, which the aggregate function max cannot retract",
        ),
    ],
)
def test_rows_that_can_not_be_merged_are_refused_with_their_files_named(options, said):
    entries = [keyed("a.parquet", level=4), keyed("b.parquet", level=5, deleted_rows=1)]
    (split,) = splits(SMALL, entries, options=options)

    with pytest.raises(CorruptTableError) as error:
        rows(Files(FILES), split, ["k", "n"])

    assert said in str(error.value)
    assert "bucket-0/a.parquet and 1 more in its bucket" in str(error.value)
    assert "Paimon 2.0 and newer also fails on them" in str(error.value)


def test_a_sum_that_overflows_is_refused_but_the_other_columns_and_the_count_are_read():
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
    files = {**FILES, "bucket-0/b.parquet": stored([100], [0], first=1)}
    (split,) = splits(SMALL, [keyed("a.parquet"), keyed("b.parquet")], options=options)

    with pytest.raises(CorruptTableError, match="200, a sum or product, does not fit its type int8"):
        rows(Files(files), split, ["n"])
    assert rows(Files(files), split, ["k"]).to_pylist() == [{"k": 1}]
    assert rows(Files(files), split, []).num_rows == 1


@pytest.mark.parametrize("function", ["rbm32", "rbm64"])
def test_bytes_that_are_not_a_bitmap_are_refused_with_column_and_files_named(function):
    table = schema([("k", "INT NOT NULL"), ("b", "BYTES")], keys=["k"])
    raw = pa.table({"_SEQUENCE_NUMBER": [1], "_VALUE_KIND": pa.array([0], pa.int8()), "k": [1], "b": [b"\x01none"]})
    files = {"bucket-0/a.parquet": parquet(raw), "bucket-0/b.parquet": parquet(raw)}
    options = {"merge-engine": "aggregation", "fields.b.aggregate-function": function}
    (split,) = splits(table, [keyed("a.parquet"), keyed("b.parquet")], options=options)

    with pytest.raises(CorruptTableError, match="column 'b': .*bitmap") as error:
        rows(Files(files), split, ["b"])
    assert "bucket-0/a.parquet and 1 more in its bucket" in str(error.value)


def test_blank_texts_that_releases_join_in_different_ways_are_refused():
    table = schema([("k", "INT NOT NULL"), ("n", "STRING")], keys=["k"])
    blank = pa.table({"_SEQUENCE_NUMBER": [1], "_VALUE_KIND": pa.array([0], pa.int8()), "k": [1], "n": [" "]})
    files = {"bucket-0/a.parquet": parquet(blank), "bucket-0/b.parquet": parquet(blank)}
    options = {"merge-engine": "aggregation", "fields.n.aggregate-function": "listagg"}
    (split,) = splits(table, [keyed("a.parquet"), keyed("b.parquet")], options=options)

    with pytest.raises(UnsupportedFeatureError, match=r"Merging bucket-0/a.parquet .*listagg contains blank strings"):
        rows(Files(files), split, ["n"])
