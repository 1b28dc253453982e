"""Columns of type geometry and geography: WKB as it is stored, with the coordinate reference system in the metadata."""

import io
import re
import struct

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import UnsupportedFeatureError
from tests.inner.iceberg import arrow_schema, parse_schema, parse_type, type_text
from tests.support.iceberg.live_files import Version, field, schema_of
from tests.support.iceberg.table_builder import SCHEMA, IcebergTable
from tests.support.parquet_footers import with_geometry


def point(x, y):
    return struct.pack("<BIdd", 1, 1, x, y)


A, B, C = point(1.0, 2.0), point(-3.5, 0.0), point(10.0, 20.0)
EMPTY = bytes.fromhex("010700000000000000")
BIG_ENDIAN = struct.pack(">BIdd", 0, 1, 1.0, 2.0)


class Places(IcebergTable):
    """A table (id long, name geometry or geography)."""

    def __init__(self, root, kind="geometry", *, convert=lambda content: content, file_type=None, **bounds):
        super().__init__(fsspec.filesystem("file"), str(root), version=3, location=str(root))
        columns = [SCHEMA["fields"][0], SCHEMA["fields"][1] | {"type": kind}]
        self.metadata["schemas"] = [SCHEMA | {"fields": columns}]
        self.metadata["next-row-id"] = 0
        self.convert, self.file_type, self.bounds = convert, file_type or pa.binary(), bounds

    def write(self, path, content):
        self.filesystem.makedirs(f"{self.root}/{path}".rpartition("/")[0], exist_ok=True)
        return super().write(path, content)

    def data_file(self, name, rows):
        ids = [
            pa.field(n, t, metadata={"PARQUET:field_id": i})
            for n, t, i in (("id", pa.int64(), "1"), ("name", self.file_type, "2"))
        ]
        columns = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], self.file_type)]
        out = io.BytesIO()
        pq.write_table(pa.table(columns, schema=pa.schema(ids)), out)
        content = self.convert(out.getvalue())
        nulls = sum(row[1] is None for row in rows)
        return {
            "content": 0,
            "file_path": self.path(f"data/{name}"),
            "file_format": "PARQUET",
            "partition": {},
            "record_count": len(rows),
            "file_size_in_bytes": self.write(f"data/{name}", content),
            "null_value_counts": [{"key": 2, "value": nulls}],
            "value_counts": [{"key": 2, "value": len(rows)}],
        } | self.bounds


@pytest.mark.parametrize(
    ("kind", "shown", "metadata"),
    [
        ("geometry", "geometry(OGC:CRS84)", {b"crs": b"OGC:CRS84"}),
        ("geometry(EPSG:3857)", "geometry(EPSG:3857)", {b"crs": b"EPSG:3857"}),
        ("geometry( srid:4326 )", "geometry(srid:4326)", {b"crs": b"srid:4326"}),
        ("geometry(projjson:crs.property)", "geometry(projjson:crs.property)", {b"crs": b"projjson:crs.property"}),
        ("geography", "geography(OGC:CRS84, spherical)", {b"crs": b"OGC:CRS84", b"edges": b"spherical"}),
        ("geography(EPSG:4326)", "geography(EPSG:4326, spherical)", {b"crs": b"EPSG:4326", b"edges": b"spherical"}),
        ("geography(EPSG:4326, karney)", "geography(EPSG:4326, karney)", {b"crs": b"EPSG:4326", b"edges": b"karney"}),
        ("geography(a,VINCENTY)", "geography(a, vincenty)", {b"crs": b"a", b"edges": b"vincenty"}),
    ],
)
def test_values_are_wkb_as_stored_and_the_field_has_the_parameters_of_its_type(tmp_path, kind, shown, metadata):
    table = Places(tmp_path, kind)
    table.commit([(1, A), (2, None), (3, EMPTY), (4, BIG_ENDIAN)])

    found = open_table(str(tmp_path))
    rows = found.current.to_arrow()

    assert rows["name"].to_pylist() == [A, None, EMPTY, BIG_ENDIAN]
    assert rows.schema.field("name").type == pa.binary()
    assert rows.schema.field("name").metadata == metadata
    assert shown in str(found.at("latest").schema)


@pytest.mark.parametrize("logical", ["geometry", "geography"])
@pytest.mark.parametrize("crs", [None, "EPSG:3857"])
def test_files_with_the_logical_types_of_parquet_are_read(tmp_path, logical, crs):
    table = Places(tmp_path, logical, convert=lambda content: with_geometry(content, "name", logical, crs))
    table.commit([(1, A), (2, None)])

    assert open_table(str(tmp_path)).current.to_arrow()["name"].to_pylist() == [A, None]


@pytest.mark.parametrize(
    "kind", ["geography(OGC:CRS84, flat)", "geography(OGC:CRS84, spherical, 1)", "geometry(", "geometryz", "raster"]
)
def test_a_type_with_parameters_that_are_not_known_is_refused_by_name(tmp_path, kind):
    table = Places(tmp_path, kind)
    table.commit([(1, A)])
    found = open_table(str(tmp_path))

    assert kind in str(found.at("latest").schema)
    with pytest.raises(UnsupportedFeatureError, match=re.escape(f"type {kind}")):
        found.current.to_arrow()


@pytest.mark.parametrize("file_type", [pa.string(), pa.int64(), pa.float64()])
def test_a_file_with_another_notation_of_places_is_refused(tmp_path, file_type):
    table = Places(tmp_path, file_type=file_type)
    table.commit([(1, "POINT (1 2)" if file_type == pa.string() else 7)])

    with pytest.raises(UnsupportedFeatureError, match="name"):
        open_table(str(tmp_path)).current.to_arrow()


CORNERS = {
    "lower_bounds": [{"key": 2, "value": struct.pack("<dd", -3.5, 0.0)}],
    "upper_bounds": [{"key": 2, "value": struct.pack("<dd", 1.0, 2.0)}],
}


@pytest.mark.parametrize("kind", ["geometry", "geography"])
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("name = '{a}'::BLOB", [1]),
        ("name != '{a}'::BLOB", [2]),
        ("name > '{low}'::BLOB", [1, 2]),
        ("name < '{high}'::BLOB", [1, 2]),
        ("name IN ('{a}'::BLOB, '{b}'::BLOB)", [1, 2]),
        ("name IS NULL", [3]),
        ("name IS NOT NULL", [1, 2]),
        ("octet_length(name) = 21", [1, 2]),
    ],
)
def test_bounds_which_are_corners_skip_no_rows(tmp_path, kind, where, ids):
    table = Places(tmp_path, kind, **CORNERS)
    table.commit([(1, A), (2, B), (3, None)])
    literals = {
        name: "".join(f"\\x{byte:02X}" for byte in value)
        for name, value in {"a": A, "b": B, "low": b"\x00", "high": b"\x02"}.items()
    }

    found = open_table(str(tmp_path)).current.to_arrow(where=where.format(**literals))

    assert found["id"].to_pylist() == ids


def test_files_show_no_bounds_of_places(tmp_path):
    Places(tmp_path, **CORNERS).commit([(1, A)])

    found = open_table(str(tmp_path))
    (file,) = found.current.files(statistics=True).to_arrow().to_pylist()

    assert file["lower"]["name"] is None
    assert file["upper"]["name"] is None
    assert file["null_count"]["name"] == 0
    for name in ("files", "data_files", "entries"):
        found.inspect(name).to_arrow().validate(full=True)


def test_rows_that_were_added_are_found(tmp_path):
    table = Places(tmp_path)
    table.commit([(1, A), (2, B)])
    table.commit([(2, C), (3, None)])
    found = open_table(str(tmp_path))
    first, last = found.versions()

    changes = found.row_changes(first, last).to_pylist()
    diff = found.diff_rows(first, last)

    assert [(row["id"], row["name"]) for row in changes] == [(2, C), (3, None)]
    assert {(row["id"], row["name"]) for row in diff.to_arrow().to_pylist()} == {(2, C), (3, None)}
    assert "2 inserted, 0 deleted" in str(diff)
    assert found.sql("SELECT id FROM this WHERE name IS NULL")["id"].tolist() == [3]


def test_an_equality_delete_by_a_place_is_refused_by_name(tmp_path):
    version = Version(tmp_path, field(1, "id", "long"), field(2, "g", "geometry"), format_version=3)
    version.data("a.parquet", {"id": [1], "g": [A]})
    version.equality_deletes("d.parquet", {"g": [A]})

    with pytest.raises(UnsupportedFeatureError, match="compares the column 'g' of type geometry"):
        version.rows()


@pytest.mark.parametrize("ending", ["parquet", "avro"])
def test_places_in_nested_types_are_read_with_their_metadata(tmp_path, ending):
    columns = [
        field(1, "s", {"type": "struct", "fields": [field(2, "g", "geometry(EPSG:3857)")]}),
        field(3, "l", {"type": "list", "element-id": 4, "element-required": False, "element": "geography"}),
        field(
            5,
            "m",
            {
                "type": "map",
                "key-id": 6,
                "key": "string",
                "value-id": 7,
                "value-required": False,
                "value": "geometry",
            },
        ),
    ]
    version = Version(tmp_path, *columns, format_version=3)
    rows = {"s": [{"g": A}, None], "l": [[B, None], []], "m": [[("x", C)], None]}
    version.data(f"a.{ending}", rows)

    schema = arrow_schema(parse_schema(schema_of(*columns)))

    assert version.rows() == [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]
    assert schema.field("s").type.field("g").metadata == {b"crs": b"EPSG:3857"}
    assert schema.field("l").type.value_field.metadata == {b"crs": b"OGC:CRS84", b"edges": b"spherical"}
    assert schema.field("m").type.item_field.metadata == {b"crs": b"OGC:CRS84"}
    assert type_text(parse_type(columns[1]["type"])) == "list<geography(OGC:CRS84, spherical)>"
