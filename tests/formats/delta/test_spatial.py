"""Columns of type geometry and geography: WKB as it is stored, with the coordinate reference system in the metadata."""

import json
import re
import struct

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import UnsupportedFeatureError
from tests.inner.delta import arrow_schema
from tests.support.delta.log_reader import metadata
from tests.support.delta.table_builder import DeltaTable, inline_vector, remove, schema_json
from tests.support.parquet_footers import with_geometry


def point(x, y):
    return struct.pack("<BIdd", 1, 1, x, y)


A, B, C = point(1.0, 2.0), point(-3.5, 0.0), point(10.0, 20.0)
CRS84 = {b"crs": b"OGC:CRS84"}
TYPES = [
    ("geometry", "geometry(OGC:CRS84)", CRS84),
    ("geometry(EPSG:3857)", "geometry(EPSG:3857)", {b"crs": b"EPSG:3857"}),
    ("geometry(4326)", "geometry(4326)", {b"crs": b"4326"}),
    ("geometry(ANY)", "geometry(ANY)", {b"crs": b"ANY"}),
    ("geography", "geography(OGC:CRS84, spherical)", CRS84 | {b"edges": b"spherical"}),
    ("geography(OGC:CRS84, SPHERICAL)", "geography(OGC:CRS84, spherical)", CRS84 | {b"edges": b"spherical"}),
    ("geography(EPSG:4326)", "geography(EPSG:4326, spherical)", {b"crs": b"EPSG:4326", b"edges": b"spherical"}),
    ("geography(4326)", "geography(4326, spherical)", {b"crs": b"4326", b"edges": b"spherical"}),
    ("geography(karney)", "geography(OGC:CRS84, karney)", CRS84 | {b"edges": b"karney"}),
]


class Places(DeltaTable):
    """A table (id long, g geometry or geography)."""

    def __init__(self, root, kind="geometry", *, convert=lambda content: content):
        self.convert = convert
        super().__init__(None, root, fields=[("id", "long"), ("g", kind)], features=["geospatial", "deletionVectors"])

    def as_written(self, content):
        return self.convert(content)

    def append(self, rows, *, file_type=None, **options):
        return super().append(rows, schema=pa.schema({"id": pa.int64(), "g": file_type or pa.binary()}), **options)


@pytest.mark.parametrize(("kind", "shown", "stored"), TYPES)
def test_values_are_wkb_as_stored_and_the_field_has_the_parameters_of_its_type(tmp_path, kind, shown, stored):
    Places(tmp_path, kind).append([(1, A), (2, None), (3, b"")])

    found = open_table(str(tmp_path))
    rows = found.current.to_arrow()

    assert rows["g"].to_pylist() == [A, None, b""]
    assert (rows.schema.field("g").type, rows.schema.field("g").metadata) == (pa.binary(), stored)
    assert shown in str(found.at("latest").schema)


@pytest.mark.parametrize("feature", ["geospatial", "geospatial-dev"])
@pytest.mark.parametrize("logical", ["geometry", "geography"])
def test_files_with_the_logical_types_of_parquet_are_read(tmp_path, logical, feature):
    table = Places(tmp_path, logical, convert=lambda content: with_geometry(content, "g", logical, "OGC:CRS84"))
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace('"geospatial"', json.dumps(feature)))
    table.append([(1, A), (2, None)])

    assert open_table(str(tmp_path)).current.to_arrow()["g"].to_pylist() == [A, None]


@pytest.mark.parametrize("kind", ["geography(OGC:CRS84, flat)", "geography(a, b, c)", "geometry()", "geo", "box"])
def test_a_type_with_parameters_that_are_not_known_is_refused_by_name(tmp_path, kind):
    Places(tmp_path, kind).append([(1, A)])
    found = open_table(str(tmp_path))

    assert kind in str(found.at("latest").schema)
    with pytest.raises(UnsupportedFeatureError, match=re.escape(f"type {kind}")):
        found.current.to_arrow()


@pytest.mark.parametrize("file_type", [pa.string(), pa.large_string(), pa.int64()])
def test_a_file_with_another_notation_of_places_is_refused(tmp_path, file_type):
    Places(tmp_path).append([(1, 7 if file_type == pa.int64() else "POINT (1 2)")], file_type=file_type)

    with pytest.raises(UnsupportedFeatureError, match="'g'"):
        open_table(str(tmp_path)).current.to_arrow()


def test_a_place_is_not_the_value_of_a_partition(tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("id", "long"), ("g", "geometry")], partition_by=["g"])
    table.append([(1,)], partition={"g": "POINT (1 2)"}, schema=pa.schema({"id": pa.int64()}))

    with pytest.raises(UnsupportedFeatureError, match="Partition columns of type geometry"):
        open_table(str(tmp_path)).current.to_arrow()


STATISTICS = {
    "numRecords": 3,
    "minValues": {"id": 1, "g": "POINT(-3.5 0)"},
    "maxValues": {"id": 3, "g": "POINT(1 2)"},
    "nullCount": {"id": 0, "g": 1},
}


@pytest.mark.parametrize("kind", ["geometry", "geography"])
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("g = '{a}'::BLOB", [1]),
        ("g != '{a}'::BLOB", [2]),
        ("g > '\\x00'::BLOB", [1, 2]),
        ("g < '\\x02'::BLOB", [1, 2]),
        ("g IN ('{a}'::BLOB, '\\x00'::BLOB)", [1]),
        ("g IS NULL", [3]),
        ("g IS NOT NULL AND id > 1", [2]),
    ],
)
def test_bounds_which_are_corners_skip_no_rows(tmp_path, kind, where, ids):
    Places(tmp_path, kind).append([(1, A), (2, B), (3, None)], stats=json.dumps(STATISTICS))
    literal = "".join(f"\\x{byte:02X}" for byte in A)

    found = open_table(str(tmp_path)).current.to_arrow(where=where.format(a=literal))

    assert found["id"].to_pylist() == ids


def test_files_show_no_bounds_of_places(tmp_path):
    Places(tmp_path).append([(1, A), (2, B), (3, None)], stats=json.dumps(STATISTICS))

    (file,) = open_table(str(tmp_path)).current.files(statistics=True).to_arrow().to_pylist()

    assert (file["lower"]["g"], file["upper"]["g"], file["null_count"]["g"]) == (None, None, 1)


def test_rows_that_moved_or_were_deleted_are_found(tmp_path):
    table = Places(tmp_path)
    table.append([(1, A), (2, B)], name="a.parquet")
    (first,) = (action for action in table.log[1] if "add" in action)
    table.commit(remove("a.parquet"), {"add": first["add"] | {"deletionVector": inline_vector([1])}})
    table.append([(2, C), (3, None)])
    found = open_table(str(tmp_path))

    changes = found.diff_rows(1, found.current.version, key="id").to_arrow().to_pylist()

    assert {(row["id"], row["g"]) for row in changes if row["rowkind"] in ("+I", "+U")} == {(2, C), (3, None)}
    assert found.current.to_arrow()["g"].to_pylist() == [A, C, None]
    assert found.sql("SELECT id FROM this WHERE g IS NULL")["id"].tolist() == [3]


def test_places_in_nested_types_have_their_metadata():
    array = {"type": "array", "elementType": "geography(karney)", "containsNull": True}
    entries = {"type": "map", "keyType": "string", "valueType": "geometry(EPSG:3857)", "valueContainsNull": True}
    part = {"type": "struct", "fields": [{"name": "g", "type": "geometry", "nullable": True, "metadata": {}}]}

    found = arrow_schema(metadata(schema_json([("a", array), ("m", entries), ("s", part)])))

    assert found.field("a").type.value_field.metadata == CRS84 | {b"edges": b"karney"}
    assert found.field("m").type.item_field.metadata == {b"crs": b"EPSG:3857"}
    assert found.field("s").type.field("g").metadata == CRS84
