"""Old files under new schemas: by field id, at every depth."""

import pyarrow as pa
import pytest

from snapshot_explorer.errors import UnsupportedFeatureError
from tests.inner.paimon import PaimonDataType, PaimonField, arrow_type, evolve, mapping, parse_type, same


def field(number, name, kind):
    return PaimonField(id=number, name=name, type=kind if isinstance(kind, PaimonDataType) else parse_type(kind))


def row(*fields):
    return PaimonDataType(root="ROW", fields=fields)


def read(columns, there, wanted, write_columns=None):
    """Evolve a batch with the columns of a file."""
    batch = pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], arrow_type(field.type)) for field in there],
        names=[field.name for field in there],
    )
    how = mapping(wanted, there, write_columns)
    found = evolve(batch.select([source.name for source in how.sources]), how, "data-1.parquet")
    assert found.schema.types == [arrow_type(field.type) for field in wanted]
    for column in found.columns:
        column.validate(full=True)
    return found.to_pydict()


def test_a_renamed_column_is_found_by_its_id():
    found = read({"a": [1], "b": [2]}, [field(0, "a", "INT"), field(1, "b", "INT")], [field(1, "a", "INT")])

    assert found == {"a": [2]}


def test_a_column_dropped_and_added_again_is_null():
    assert read({"a": [1]}, [field(0, "a", "INT")], [field(7, "a", "INT")]) == {"a": [None]}


def test_two_columns_that_changed_names_are_not_mixed_up():
    there = [field(0, "a", "INT"), field(1, "b", "INT")]

    assert read({"a": [1], "b": [2]}, there, [field(0, "b", "INT"), field(1, "a", "INT")]) == {"b": [1], "a": [2]}


def test_a_column_that_the_file_does_not_hold_is_null():
    there = [field(0, "a", "INT"), field(1, "b", "INT")]
    how = mapping([field(0, "a", "INT"), field(1, "b", "INT")], there, ("a", "_ROW_ID"))

    assert [source.name for source in how.sources] == ["a"]
    assert evolve(pa.record_batch({"a": pa.array([3], pa.int32())}), how, "x").to_pydict() == {"a": [3], "b": [None]}


def test_types_are_cast():
    there = [field(0, "a", "BIGINT"), field(1, "b", "STRING")]
    wanted = [field(0, "a", "TINYINT"), field(1, "b", "BOOLEAN")]

    assert read({"a": [300, None], "b": ["nO", "Y"]}, there, wanted) == {"a": [44, None], "b": [False, True]}


def test_rows_in_rows_are_matched_by_id_and_cast():
    old = row(field(10, "x", "INT"), field(11, "y", row(field(12, "z", "STRING"), field(13, "gone", "INT"))))
    new = row(field(11, "why", row(field(14, "new", "DATE"), field(12, "z", "INT"))), field(10, "x", "BIGINT"))

    found = read(
        {"r": [{"x": 1, "y": {"z": "7", "gone": 2}}, None, {"x": None, "y": None}]},
        [field(0, "r", old)],
        [field(0, "r", new)],
    )

    assert found == {"r": [{"why": {"new": None, "z": 7}, "x": 1}, None, {"why": None, "x": None}]}


def test_rows_in_arrays_and_map_values_are_matched_by_id():
    old, new = row(field(10, "x", "INT")), row(field(11, "n", "INT"), field(10, "renamed", "STRING"))
    array = PaimonDataType(root="ARRAY", element=old)
    key = parse_type("STRING NOT NULL")

    found = read(
        {"l": [[{"x": 1}, None], None, []], "m": [[("k", {"x": 5})], None, [("n", None)]]},
        [field(0, "l", array), field(1, "m", PaimonDataType(root="MAP", key=key, element=old))],
        [
            field(0, "l", PaimonDataType(root="ARRAY", element=new)),
            field(1, "m", PaimonDataType(root="MAP", key=key, element=new)),
        ],
    )

    assert found == {
        "l": [[{"n": None, "renamed": "1"}, None], None, []],
        "m": [[("k", {"n": None, "renamed": "5"})], None, [("n", None)]],
    }


def test_a_slice_of_nested_values_is_evolved_as_the_slice():
    old, new = row(field(10, "x", "INT")), row(field(10, "x", "BIGINT"))
    there, wanted = (
        [field(0, "l", PaimonDataType(root="ARRAY", element=old))],
        [field(0, "l", PaimonDataType(root="ARRAY", element=new))],
    )
    whole = pa.array([[{"x": 1}], None, [{"x": 2}, {"x": 3}], []], arrow_type(there[0].type))
    batch = pa.RecordBatch.from_arrays([whole.slice(1, 2)], names=["l"])

    found = evolve(batch, mapping(wanted, there), "x").column(0)

    assert found.to_pylist() == [None, [{"x": 2}, {"x": 3}]]


def test_only_what_may_be_null_differs():
    old = PaimonDataType(root="ARRAY", element=parse_type("INT NOT NULL"))

    assert read({"l": [[1], None]}, [field(0, "l", old)], [field(0, "l", "ARRAY<INT>")]) == {"l": [[1], None]}


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("ARRAY<INT>", "STRING", "'c'"),
        ("BOOLEAN", "DATE", "'c'"),
        ("MAP<INT, INT>", "MAP<BIGINT, INT>", "'c'"),
        ("ARRAY<BOOLEAN>", "ARRAY<DATE>", "'c[]'"),
        ("DATE", "VARCHAR(5)", "'c'"),
    ],
)
def test_a_change_of_type_without_a_proven_cast_is_refused_by_name(old, new, place):
    with pytest.raises(UnsupportedFeatureError) as refusal:
        mapping([field(0, "c", new)], [field(0, "c", old)])

    assert f"The column {place} was changed from" in str(refusal.value)


def test_a_value_that_can_not_be_cast_names_file_column_and_value():
    there, wanted = [field(0, "old", "STRING")], [field(0, "amount", "INT")]

    with pytest.raises(UnsupportedFeatureError) as refusal:
        read({"old": ["1", "many"]}, there, wanted)

    assert "column 'amount' of the data file data-1.parquet" in str(refusal.value)
    assert "'many' is not cast from STRING to INT" in str(refusal.value)


def test_names_and_ids_count_when_rows_are_compared_but_not_nulls():
    one = row(field(1, "a", "INT NOT NULL"))

    assert same(one, row(field(1, "a", "INT")))
    assert not same(one, row(field(2, "a", "INT")))
    assert not same(one, row(field(1, "b", "INT")))
    assert not same(parse_type("VARCHAR(3)"), parse_type("STRING"))
