"""Columns of data files as columns of the table: by id, with defaults, constants and promotion."""

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from tests.inner.iceberg import RowReader, planning
from tests.support.iceberg.live_files import RECORDED, Version, field, schema_of, struct_type
from tests.support.parquet_footers import like_parquet_mr_1_11

ID, NAME = field(1, "id", "int"), field(2, "name", "string")
MAPPING = "schema.name-mapping.default"


def store(version, name, table, **more):
    """Put a parquet file of this table into a version."""
    pq.write_table(table, version.folder / name, **more)
    version.data_files.append(version.entry(name, 0, len(table), 1, (0, ())))


def with_ids(table, **ids):
    fields = [one.with_metadata({"PARQUET:field_id": str(ids[one.name])}) for one in table.schema]
    return table.cast(pa.schema(fields))


def test_columns_are_found_by_id_whatever_their_names(tmp_path):
    version = Version(tmp_path, field(2, "id", "string"), field(1, "name", "int"), field(3, "new", "int"))
    version.data("a.parquet", {"id": [1], "name": ["a"]}, schema=schema_of(ID, NAME))
    version.data("a.avro", {"id": [2], "name": ["b"]}, schema=schema_of(ID, NAME))

    assert version.rows() == [{"id": "a", "name": 1, "new": None}, {"id": "b", "name": 2, "new": None}]
    assert version.rows("name") == [{"name": 1}, {"name": 2}]


def test_nested_fields_are_found_by_id_and_a_null_struct_stays_null(tmp_path):
    def column(*fields):
        inner = struct_type(*fields)
        listed = {"type": "list", "element-id": 10, "element-required": False, "element": inner}
        key_value = {"key-id": 20, "key": "string", "value-id": 21, "value-required": False, "value": listed}
        return field(1, "m", {"type": "map", **key_value})

    version = Version(tmp_path, column(field(4, "c", "int"), field(2, "a", "long")))
    old = schema_of(column(field(2, "x", "int"), field(3, "b", "int")))
    rows = [[("k", [{"x": 1, "b": 2}, None]), ("l", None), ("m", [])], None]
    version.data("a.parquet", {"m": rows}, schema=old)

    assert version.rows() == [{"m": [("k", [{"c": None, "a": 1}, None]), ("l", None), ("m", [])]}, {"m": None}]


def test_a_struct_none_of_whose_fields_is_stored_is_null_where_the_stored_one_is(tmp_path):
    version = Version(tmp_path, field(1, "s", struct_type(field(3, "b", "int"))))
    version.data(
        "a.parquet", {"s": [{"a": 1}, None]}, schema=schema_of(field(1, "s", struct_type(field(2, "a", "int"))))
    )

    assert version.rows() == [{"s": {"b": None}}, {"s": None}]


_AMOUNT = struct_type(field(5, "d", "decimal(18,2)"), field(6, "n", "int"))
_REQUIRED = struct_type(field(5, "d", "decimal(9,2)", True))  # noqa: FBT003 - as in a schema
_DEEP = struct_type(field(7, "inner", struct_type(field(8, "d", "decimal(38,10)"))))
_LIST = {"type": "list", "element-id": 10, "element-required": False}
_MAP = {"type": "map", "key-id": 20, "key": "string", "value-id": 21, "value-required": False}
_ONE = Decimal("-1.50")


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (_AMOUNT, [None, {"d": _ONE, "n": 1}, {"d": None, "n": 2}]),
        (_AMOUNT, [None, None]),
        (_REQUIRED, [None, {"d": _ONE}]),
        (_DEEP, [None, {"inner": None}, {"inner": {"d": Decimal(10) ** 27}}, {"inner": {"d": None}}]),
        ({**_LIST, "element": _AMOUNT}, [None, [], [None, {"d": _ONE, "n": None}]]),
        ({**_LIST, "element": "decimal(4,0)"}, [None, [], [None, Decimal(-7)]]),
        ({**_MAP, "value": _AMOUNT}, [None, [], [("a", None), ("b", {"d": _ONE, "n": 3})]]),
        ({**_MAP, "value": {**_LIST, "element": _DEEP}}, [None, [("a", None), ("b", [None, {"inner": None}])]]),
        (struct_type(field(5, "l", {**_LIST, "element": "decimal(9,2)"})), [None, {"l": None}, {"l": [_ONE, None]}]),
    ],
)
def test_decimals_below_null_values_of_avro_files_are_those_of_parquet_files(tmp_path, kind, values):
    read = {}
    for suffix in ("parquet", "avro"):
        version = Version(tmp_path / suffix, field(1, "id", "int"), field(2, "c", kind))
        version.data(f"a.{suffix}", {"id": list(range(len(values))), "c": values})
        read[suffix] = version.rows()

    assert read["avro"] == read["parquet"]
    assert [row["c"] for row in read["avro"]] == values


def test_a_decimal_in_an_avro_file_that_has_too_many_digits_is_refused(tmp_path):
    wide, narrow = (struct_type(field(5, "d", kind)) for kind in ("decimal(9,2)", "decimal(4,2)"))
    version = Version(tmp_path, field(2, "s", narrow))
    version.data("a.avro", {"s": [None, {"d": Decimal("12345.67")}]}, schema=schema_of(field(2, "s", wide)))

    with pytest.raises(CorruptTableError, match="a value has more digits"):
        version.rows()


def test_initial_defaults_fill_files_without_the_column_at_every_depth(tmp_path):
    inner = struct_type(field(2, "a", "int"), field(3, "b", "decimal(9,2)", **{"initial-default": "1.50"}))
    version = Version(
        tmp_path,
        field(1, "s", inner),
        field(4, "d", "date", True, **{"initial-default": "2020-02-29"}),  # noqa: FBT003 - as in a schema
        format_version=3,
    )
    version.data(
        "a.parquet", {"s": [{"a": 1}, None]}, schema=schema_of(field(1, "s", struct_type(field(2, "a", "int"))))
    )

    assert version.rows() == [
        {"s": {"a": 1, "b": Decimal("1.50")}, "d": dt.date(2020, 2, 29)},
        {"s": None, "d": dt.date(2020, 2, 29)},
    ]


def test_a_stored_null_is_not_a_missing_column(tmp_path):
    version = Version(tmp_path, field(1, "a", "int", **{"initial-default": 7}), format_version=3)
    version.data("a.parquet", {"a": [None]})

    assert version.rows() == [{"a": None}]


def test_a_required_column_that_a_file_lacks_is_refused(tmp_path):
    version = Version(tmp_path, ID, field(2, "name", "string", True))  # noqa: FBT003 - as in a schema
    version.data("a.parquet", {"id": [1]}, schema=schema_of(ID))

    with pytest.raises(CorruptTableError, match="no column with the id 2, and the column 'name' is required"):
        version.rows()


def test_identity_values_of_the_partition_count_not_those_of_the_file(tmp_path):
    spec = {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"}]}
    version = Version(tmp_path, ID, NAME, specs={0: spec})
    version.data("a.parquet", {"id": [1], "name": ["a"]}, partition=(0, (5,)))
    version.data("b.parquet", {"id": [1], "name": ["b"]}, partition=(0, (None,)))

    assert version.rows() == [{"id": 5, "name": "a"}, {"id": None, "name": "b"}]
    assert [split.partition for split in version.plan().splits] == [{"id": "5"}, {"id": None}]
    assert not any(split.raw for split in version.plan().splits)


def test_identity_values_are_read_under_an_older_schema(tmp_path):
    spec = {
        "spec-id": 0,
        "fields": [
            {"source-id": 1, "field-id": 1000, "name": "id", "transform": "identity"},
            {"source-id": 2, "field-id": 1001, "name": "name", "transform": "identity"},
        ],
    }
    version = Version(tmp_path, ID, NAME, specs={0: spec})
    version.data("a.parquet", {"x": [1]}, schema=schema_of(field(9, "x", "int")), partition=(0, (5, "a")))
    current = schema_of(field(1, "id", "long"), number=1)
    metadata = replace(version.metadata(), current_schema=current, schemas={0: version.schema, 1: current})

    (split,) = planning.plan(metadata).splits
    (batch,) = RowReader(metadata.storage).read(split, ["name", "id"])

    assert batch.to_pylist() == [{"name": "a", "id": 5}]
    assert batch.schema.field("id").type == pa.int32()
    assert split.partition == {"id": "5", "name": "a"}


def test_the_source_of_an_identity_value_may_be_in_a_struct(tmp_path):
    spec = {"spec-id": 0, "fields": [{"source-id": 3, "field-id": 1000, "name": "s.a", "transform": "identity"}]}
    version = Version(tmp_path, field(2, "s", struct_type(field(3, "a", "int"), field(4, "b", "int"))), specs={0: spec})
    stored = schema_of(field(2, "s", struct_type(field(4, "b", "int"))))
    version.data("a.parquet", {"s": [{"b": 1}, None]}, schema=stored, partition=(0, (7,)))

    assert version.rows() == [{"s": {"a": 7, "b": 1}}, {"s": None}]


@pytest.mark.parametrize(
    ("before", "after", "value", "expected"),
    [
        ("int", "long", 5, 5),
        ("float", "double", 0.5, 0.5),
        ("decimal(9,2)", "decimal(20,2)", Decimal("1.25"), Decimal("1.25")),
        ("date", "timestamp", dt.date(1969, 12, 31), dt.datetime.fromisoformat("1969-12-31")),
    ],
)
def test_promoted_columns_keep_their_values(tmp_path, before, after, value, expected):
    version = Version(tmp_path, field(1, "a", after), format_version=3)
    version.data("a.parquet", {"a": [value, None]}, schema=schema_of(field(1, "a", before)))

    assert [row["a"] for row in version.rows()] == [expected, None]


@pytest.mark.parametrize(
    ("before", "after"), [("long", "int"), ("double", "float"), ("string", "int"), ("decimal(9,2)", "decimal(9,3)")]
)
def test_a_type_that_is_not_a_form_of_the_tables_is_refused_by_name(tmp_path, before, after):
    version = Version(tmp_path, field(1, "a", after))
    version.data("a.parquet", {"a": [None]}, schema=schema_of(field(1, "a", before)))

    with pytest.raises(UnsupportedFeatureError, match="The column 'a' of the data file a.parquet cannot be read as"):
        version.rows()


def test_types_of_format_3_are_read(tmp_path):
    version = Version(
        tmp_path, field(1, "u", "uuid"), field(2, "n", "unknown"), field(3, "t", "timestamp_ns"), format_version=3
    )
    raw = pa.table(
        {"u": pa.array([bytes(range(16)), None], pa.binary(16)), "t": pa.array([-1, None], pa.timestamp("ns"))}
    )
    store(version, "a.parquet", with_ids(raw, u=1, t=3))

    assert version.rows("u", "n") == [
        {"u": "00010203-0405-0607-0809-0a0b0c0d0e0f", "n": None},
        {"u": None, "n": None},
    ]
    assert version.rows("t")[0]["t"].value == -1


def test_int96_timestamps_are_read_exactly(tmp_path):
    version = Version(tmp_path, field(1, "t", "timestamptz"))
    moments = pa.array([0, -1, -62_135_596_800_000_000], pa.timestamp("us"))
    raw = with_ids(pa.table({"t": moments}), t=1)
    store(version, "a.parquet", raw, use_deprecated_int96_timestamps=True)

    table = [row["t"] for row in version.rows()]
    assert [one.replace(tzinfo=None) for one in table] == moments.to_pylist()


def test_a_variant_is_its_value_and_metadata_also_if_it_is_shredded(tmp_path):
    version = Version(tmp_path, field(1, "v", "variant"), format_version=3)
    parts = {"metadata": pa.array([b"m"]), "value": pa.array([b"v"])}
    store(
        version,
        "a.parquet",
        with_ids(pa.table({"v": pa.StructArray.from_arrays(list(parts.values()), list(parts))}), v=1),
    )
    assert version.rows() == [{"v": {"value": b"v", "metadata": b"m"}}]

    parts = {"metadata": pa.array([b"\1\0\0"]), "typed_value": pa.array([1])}
    store(
        version,
        "b.parquet",
        with_ids(pa.table({"v": pa.StructArray.from_arrays(list(parts.values()), list(parts))}), v=1),
    )
    assert version.rows() == [
        {"v": {"value": b"v", "metadata": b"m"}},
        {"v": {"value": b"\x0c\1", "metadata": b"\1\0\0"}},
    ]


def test_a_variant_in_a_type_that_variants_do_not_have_is_refused(tmp_path):
    version = Version(tmp_path, field(1, "v", "variant"), format_version=3)
    parts = {"metadata": pa.array([b"\1\0\0"]), "typed_value": pa.array([1], pa.uint64())}
    store(
        version,
        "a.parquet",
        with_ids(pa.table({"v": pa.StructArray.from_arrays(list(parts.values()), list(parts))}), v=1),
    )

    with pytest.raises(UnsupportedFeatureError, match="its variants are shredded into uint64"):
        version.rows()


def test_a_name_mapping_gives_ids_to_files_without_any(tmp_path):
    mapping = [
        {"field-id": 1, "names": ["number", "old.number"]},
        {"field-id": 3, "names": ["s"], "fields": [{"field-id": 4, "names": ["x"]}]},
        {"names": ["skipped"]},
    ]
    version = Version(
        tmp_path, ID, NAME, field(3, "s", struct_type(field(4, "a", "int"))), properties={MAPPING: json.dumps(mapping)}
    )
    store(version, "a.parquet", pa.table({"old.number": pa.array([1], pa.int32()), "name": ["no"], "skipped": [0]}))
    store(version, "b.parquet", pa.table({"s": [{"x": 5}]}, pa.schema([("s", pa.struct([("x", pa.int32())]))])))
    version.data("c.parquet", {"id": [2], "name": ["yes"]}, schema=schema_of(ID, NAME))

    assert version.rows() == [
        {"id": 1, "name": None, "s": None},
        {"id": None, "name": None, "s": {"a": 5}},
        {"id": 2, "name": "yes", "s": None},
    ]


def test_a_broken_name_mapping_is_refused(tmp_path):
    version = Version(tmp_path, ID, properties={MAPPING: '{"field-id": 1}'})
    version.data("a.parquet", {"id": [1]})

    with pytest.raises(CorruptTableError, match="schema.name-mapping.default is not readable"):
        version.rows()


def test_files_without_ids_are_read_by_name_where_the_schema_was_never_changed(tmp_path):
    version = Version(tmp_path, ID, NAME)
    version.data("a.parquet", {"id": [1], "name": ["a"]}, with_ids=False)
    assert version.rows() == [{"id": 1, "name": "a"}]

    version.data("b.parquet", {"name": ["a"], "id": [1]}, with_ids=False)
    with pytest.raises(UnsupportedFeatureError, match="b.parquet has no field ids"):
        version.rows()


def test_files_without_ids_are_refused_where_the_schema_was_changed(tmp_path):
    version = Version(tmp_path, ID, NAME, schemas=[schema_of(ID)])
    version.data("a.parquet", {"id": [1], "name": ["a"]}, with_ids=False)

    with pytest.raises(UnsupportedFeatureError, match="no name mapping"):
        version.rows()


def test_columns_whose_names_have_dots_or_differ_by_case_are_distinguished(tmp_path):
    version = Version(
        tmp_path, field(1, "a.b", "int"), field(2, "a", struct_type(field(3, "b", "int"))), field(4, "A", "int")
    )
    version.data("a.parquet", {"a.b": [1], "a": [{"b": 2}], "A": [3]})

    assert version.rows() == [{"a.b": 1, "a": {"b": 2}, "A": 3}]
    assert version.rows("a.b") == [{"a.b": 1}]
    assert version.rows("A") == [{"A": 3}]


def test_a_row_count_that_contradicts_the_manifest_is_refused_if_other_numbers_confirm_the_manifest(tmp_path):
    version = Version(tmp_path, ID)
    version.data("a.parquet", {"id": [1]}, record_count=2)

    with pytest.raises(CorruptTableError, match="a.parquet has 1 rows, but its manifest records 2"):
        version.rows()

    version.data_files[0]["has_confirmed_rows"] = None
    assert version.rows() == [{"id": 1}]


def test_a_missing_or_damaged_file_is_named(tmp_path):
    version = Version(tmp_path, ID)
    version.data("a.parquet", {"id": [1]})
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptTableError, match="a.parquet cannot be read as parquet"):
        version.rows()

    (tmp_path / "a.parquet").unlink()
    with pytest.raises(CorruptTableError, match="a.parquet does not exist"):
        version.rows()


@pytest.mark.parametrize("name", ["data", "deletes"])
def test_encrypted_files_and_other_formats_are_refused_by_name(tmp_path, name):
    version = Version(tmp_path, ID)
    path = version.data("a.parquet", {"id": [1]})
    version.position_deletes("d.parquet", [(path, 0)])
    entry = (version.data_files if name == "data" else version.delete_files)[0]
    entry["key_metadata"] = b"k"
    with pytest.raises(UnsupportedFeatureError, match="has key_metadata: it is encrypted"):
        version.rows()

    entry |= {"key_metadata": None, "file_format": "puffin" if name == "data" else "lance"}
    with pytest.raises(UnsupportedFeatureError, match="has the format (puffin|lance), which is not supported"):
        version.rows()


def test_a_column_of_a_type_that_is_not_read_refuses_the_version(tmp_path):
    version = Version(tmp_path, ID, format_version=3)
    version.data("a.parquet", {"id": [1]})
    version.schema["fields"].append(field(2, "g", "geography(OGC:CRS84, flat)"))

    with pytest.raises(UnsupportedFeatureError, match="geography"):
        version.plan()


def test_metadata_columns_tell_file_position_and_partition_spec(tmp_path):
    version = Version(tmp_path, ID)
    path = version.data("a.parquet", {"id": [1, 2, 3]})
    version.position_deletes("d.parquet", [(path, 1)])

    assert version.rows("_pos", "id", "_file", "_spec_id") == [
        {"_pos": 0, "id": 1, "_file": RECORDED + "a.parquet", "_spec_id": 0},
        {"_pos": 2, "id": 3, "_file": RECORDED + "a.parquet", "_spec_id": 0},
    ]


def test_row_ids_are_stored_or_follow_from_the_position(tmp_path):
    version = Version(tmp_path, ID, format_version=3)
    stored = pa.table(
        {"id": pa.array([1, 2], pa.int32()), "_row_id": [None, 7], "_last_updated_sequence_number": [3, None]}
    )
    ids = {"id": 1, "_row_id": 2147483540, "_last_updated_sequence_number": 2147483539}
    store(version, "a.parquet", with_ids(stored, **ids))
    version.data_files[0] |= {"first_row_id": 100, "sequence_number": 9}
    version.data("b.parquet", {"id": [3]})

    assert version.rows("_row_id", "_last_updated_sequence_number") == [
        {"_row_id": 100, "_last_updated_sequence_number": 3},
        {"_row_id": 7, "_last_updated_sequence_number": 9},
        {"_row_id": None, "_last_updated_sequence_number": None},
    ]


def test_row_ids_need_format_version_3(tmp_path):
    version = Version(tmp_path, ID)

    with pytest.raises(InvalidArgumentError, match="'_row_id' was requested, but rows have ids only from format"):
        version.rows("_row_id")


def test_maps_are_read_as_parquet_mr_1_11_writes_them(tmp_path):
    version = Version(tmp_path, ID, field(2, "m", {**_MAP, "value": "long"}))
    rows = {"id": [1, 2, 3], "m": [[("a", 1)], None, []]}
    version.data("a.parquet", rows)
    content = like_parquet_mr_1_11((tmp_path / "a.parquet").read_bytes())
    (tmp_path / "a.parquet").write_bytes(content)
    version.data_files[0]["size_bytes"] = len(content)

    assert [row["m"] for row in version.rows()] == rows["m"]
    assert version.rows("m", where="id = 1") == [{"m": [("a", 1)]}]
