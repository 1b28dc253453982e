"""What DuckLake tables are refused for, by name, and catalogs that are damaged or were tampered with."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from snapshot_explorer import Limits, open_table
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    LimitError,
    SnapshotExplorerError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.inner.ducklake import LakeField, data_path, databases, files

PARTS = Path(__file__).parents[2] / "data" / "ducklake" / "parts" / "parts.sqlite"
SHOP = PARTS.parents[1] / "shop" / "shop.ducklake"


def opened(catalog, **options):
    return open_table(f"memory://{catalog.root}/{catalog.name}", **options)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE ducklake_metadata SET value = 'true' WHERE key = 'encrypted'", r"The lake of .* is encrypted, which"),
        (
            "UPDATE ducklake_data_file SET encryption_key = 'QQ==' WHERE data_file_id = 2",
            "data-2.* is encrypted",
        ),
        ("UPDATE ducklake_data_file SET file_format = 'lance'", "has the format 'lance', which is not supported"),
        ("UPDATE ducklake_data_file SET mapping_id = 7", "name mapping of the type None, which is not supported"),
        ("UPDATE ducklake_column SET column_type = 'int256' WHERE column_id = 1", "'id' has the type int256, which"),
    ],
)
def test_what_is_not_read_is_refused_before_any_row(catalog, statement, message):
    catalog.execute(statement)
    table = opened(catalog)

    assert len(table.current.files()) == 2
    assert [column.name for column in table.current.schema.columns] == ["id", "name"]
    with pytest.raises(UnsupportedFeatureError, match=message):
        table.current.to_arrow()


def test_other_format_versions_and_databases_are_refused(catalog):
    catalog.execute("UPDATE ducklake_metadata SET value = '2.0' WHERE key = 'version'")

    with pytest.raises(UnsupportedFeatureError, match=r"has the DuckLake format version 2\.0; 0\.1, .* are read"):
        opened(catalog)
    for path in ("mysql://host/lake", "ducklake:mysql:host=h db=d"):
        with pytest.raises(UnsupportedFeatureError, match="A DuckLake catalog in MySQL is not read"):
            open_table(path, table="main.t")


def test_versions_whose_deletions_were_replaced_are_named_in_the_log(catalog, caplog):
    catalog.commit("deleted_from_table:1")
    catalog.commit("deleted_from_table:1")
    catalog.insert("delete_file", 9, 1, 4, None, 1, "v.puffin", 1, "puffin", 2, 50, None, None, None)
    catalog.save()

    assert len(opened(catalog).at(2).to_arrow()) == 3
    assert "a later deletion vector" not in caplog.text
    assert len(opened(catalog).at(3).to_arrow()) == 3
    assert "rows that snapshot 3 deleted are shown at snapshots before 4" in caplog.text


def test_other_modes_of_changes_are_refused(catalog):
    with pytest.raises(UnsupportedFeatureError, match="so the mode 'diff' is not supported"):
        opened(catalog).row_changes(1, 2, mode="diff")


def test_a_catalog_that_a_writer_holds_is_said_so_with_the_process(tmp_path):
    error = duckdb.IOException(
        'IO Error: Could not set lock on file "x": Conflicting lock is held in /usr/bin/python (PID 4711) by user root.'
    )

    refused = databases._duckdb_error(error, "x.ducklake")

    assert isinstance(refused, UnsupportedFeatureError)
    assert "open for writing in another process (PID 4711)" in str(refused)


def test_a_catalog_that_this_process_has_open_is_said_so(tmp_path):
    path = tmp_path / "x.ducklake"
    with (
        duckdb.connect(path),
        pytest.raises(SnapshotExplorerError, match="is open in this process already, with other settings"),
    ):
        open_table(path, table="main.t")
    with pytest.raises(TableNotFoundError, match="is a database, but no DuckLake catalog"):
        open_table(path, table="main.t")


def test_a_newer_duckdb_file_names_the_release_that_reads_it(tmp_path, monkeypatch):
    path = tmp_path / "x.ducklake"
    path.write_bytes(bytes(8) + b"DUCK" + (68).to_bytes(8, "little") + bytes(4096))
    monkeypatch.setattr(databases, "installed_version", lambda _: "1.4.4")

    with pytest.raises(UnsupportedFeatureError, match=r"storage version 68.*DuckDB 1\.4\.4.*duckdb>=1\.5"):
        open_table(path, table="main.t")


def test_nested_text_is_refused_where_duckdb_does_not_parse_it(catalog, monkeypatch):
    monkeypatch.setattr(files, "installed_version", lambda _: "1.2.2")
    field = LakeField(id=1, name="l", type="list", nullable=True, initial_default=None, children=())

    with pytest.raises(UnsupportedFeatureError, match=r"nested inlined values.*DuckDB 1\.2\.2 does not parse"):
        files.cast_texts(pa.array(["[1]"]), field)


def test_inlined_variants_of_sqlite_are_refused():
    field = LakeField(id=1, name="v", type="variant", nullable=True, initial_default=None)

    with pytest.raises(UnsupportedFeatureError, match="'v' has inlined variants, which the catalog stores as text"):
        files.cast_texts(pa.array(["x"]), field)


def test_a_data_path_of_a_server_needs_a_place():
    with pytest.raises(UnsupportedFeatureError, match=r"data path 'data/'.*folder of 'data/' with relocate="):
        data_path("data/", "", None, {})
    assert data_path("data/", "", None, {"data/": "/now"}).path == "/now"
    assert data_path("s3://lake/data/", "", None, {}).path == "s3://lake/data/"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE ducklake_data_file SET path = '../../../x.parquet'", "leads out of the table's folder"),
        ("UPDATE ducklake_data_file SET begin_snapshot = 9, end_snapshot = 1", "ends before it begins"),
        ("UPDATE ducklake_data_file SET record_count = NULL", "without a number of rows and bytes"),
        ("UPDATE ducklake_column SET parent_column = 1 WHERE column_id = 2", "columns in the column 'id'"),
        ("UPDATE ducklake_column SET column_id = 1", "two columns with the id 1"),
        ("UPDATE ducklake_column SET parent_column = column_id", "columns that contain themselves"),
        ("INSERT INTO ducklake_inlined_data_tables VALUES (1, 'ducklake_metadata\" --', 1)", "is not its name by the"),
        ("UPDATE ducklake_data_file SET partial_max = 9", "no column that says which"),
        (
            "UPDATE ducklake_snapshot SET snapshot_id = NULL WHERE snapshot_id = 1",
            "row without snapshot_id in ducklake_s",
        ),
        ("UPDATE ducklake_data_file SET path = NULL WHERE data_file_id = 1", "row without path in ducklake_data_file"),
        ("UPDATE ducklake_column SET column_type = NULL", "row without column_type in ducklake_column"),
        ("UPDATE ducklake_snapshot SET snapshot_id = 'x'", "value of another type in ducklake_snapshot"),
        ("UPDATE ducklake_data_file SET record_count = 1.5", "value of another type in ducklake_data_file: 1.5 is not"),
        ("UPDATE ducklake_column SET nulls_allowed = 'false'", "'false' is neither 0 nor 1"),
        ("UPDATE ducklake_data_file SET file_size_bytes = 3", "bytes, but the catalog records 3"),
    ],
)
def test_a_damaged_catalog_is_named(catalog, statement, message):
    catalog.execute(statement)

    with pytest.raises(CorruptTableError, match=message):
        opened(catalog).current.to_arrow()


def test_a_row_of_another_table_does_not_matter(catalog):
    catalog.insert("data_file", *[None] * 16)
    catalog.insert("column", *[None] * 13)
    catalog.insert("table", *[None] * 8)
    catalog.save()

    assert opened(catalog).current.count() == 3


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "ALTER TABLE ducklake_snapshot ALTER snapshot_id TYPE VARCHAR USING 'x'",
            "value of another type in ducklake_s",
        ),
        (
            "ALTER TABLE ducklake_column ALTER column_order TYPE BIGINT[] USING [1]",
            "value of another type in ducklake_c",
        ),
        ("ALTER TABLE ducklake_snapshot ALTER snapshot_id TYPE HUGEINT USING 2 ** 70", "value of another type in"),
        (
            "UPDATE ducklake_snapshot SET snapshot_time = 'infinity'",
            "time outside of the years 1 to 9999 in ducklake_sn",
        ),
    ],
)
def test_a_damaged_catalog_of_duckdb_is_named(tmp_path, statement, message):
    lake = shutil.copytree(SHOP.parent, tmp_path / "lake") / SHOP.name
    with closing(duckdb.connect(str(tmp_path / "other.ducklake"))) as database:
        database.execute(f"ATTACH '{lake}' AS damaged (READ_ONLY)")
        for (name,) in database.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = 'damaged'"
        ).fetchall():
            database.execute(f'CREATE TABLE "{name}" AS FROM damaged."{name}"')
        database.execute(statement)

    with pytest.raises(CorruptTableError, match=message):
        open_table(tmp_path / "other.ducklake", table="orders").history().to_arrow()


def test_deletes_outside_of_the_file_are_refused(catalog):
    catalog.execute("CREATE TABLE ducklake_inlined_delete_1 (file_id, row_id, begin_snapshot)")
    catalog.execute("INSERT INTO ducklake_inlined_delete_1 VALUES (1, 0, 2)")
    assert sorted(opened(catalog).current.to_arrow()["id"].to_pylist()) == [2, 3]
    assert sorted(opened(catalog).at(1).to_arrow()["id"].to_pylist()) == [1, 2]

    catalog.execute("INSERT INTO ducklake_inlined_delete_1 VALUES (1, 77, 2)")
    with pytest.raises(CorruptTableError, match="name the position 77, and it has 2 rows"):
        opened(catalog).current.to_arrow()


def test_a_data_path_outside_of_the_catalogs_folder_is_refused_on_request(tmp_path):
    lake = shutil.copytree(PARTS.parent, tmp_path / "lake")
    moved = (lake / "data").rename(tmp_path / "elsewhere")
    with closing(sqlite3.connect(lake / PARTS.name)) as database:
        database.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", [f"{moved}/"])
        database.commit()

    assert open_table(lake / PARTS.name).current.count() == 30
    with pytest.raises(UnsupportedFeatureError, match="which is outside of its folder"):
        open_table(lake / PARTS.name, external_files="refuse")


def test_a_lake_that_was_moved_is_read_where_it_is_said_to_be(tmp_path):
    lake = shutil.copytree(PARTS.parent, tmp_path / "lake")
    with closing(sqlite3.connect(lake / PARTS.name)) as database:
        database.execute("UPDATE ducklake_metadata SET value = '/old/place/' WHERE key = 'data_path'")
        database.commit()

    with pytest.raises(CorruptTableError, match="does not exist"):
        open_table(lake / PARTS.name).current.to_arrow()
    table = open_table(lake / PARTS.name, relocate={"/old/place/": str(lake / "data")})
    assert table.current.count() == 30


def test_a_catalog_on_a_store_may_not_name_a_local_folder(catalog):
    catalog.execute("UPDATE ducklake_metadata SET value = '/etc/' WHERE key = 'data_path'")

    with pytest.raises(UnsupportedFeatureError, match="on another storage"):
        opened(catalog)


def test_a_view_in_the_place_of_a_table_is_not_read(catalog):
    catalog.execute("ALTER TABLE ducklake_snapshot RENAME TO other")
    catalog.execute("CREATE VIEW ducklake_snapshot AS SELECT * FROM other")

    with pytest.raises(TableNotFoundError, match="is a database, but no DuckLake catalog"):
        opened(catalog)


def test_a_catalog_of_many_rows_is_refused(catalog):
    for number in range(40):
        catalog.insert("snapshot", 100 + number, "2026-02-01 00:00:00+00", 1, 10, 10)
    catalog.save()

    with pytest.raises(LimitError, match=r"has 43 rows in ducklake_snapshot.*metadata_rows"):
        opened(catalog, limits=Limits(metadata_rows=2, metadata_bytes=1 << 20))


def test_a_folder_and_a_file_that_is_no_database_are_not_catalogs(tmp_path):
    (tmp_path / "x.ducklake").write_text("nothing")

    with pytest.raises(InvalidArgumentError, match="names a table in a catalog that is one file"):
        open_table(tmp_path / "x.ducklake", table="main.t")
    with pytest.raises(TableNotFoundError, match="is no DuckLake catalog: it is neither"):
        open_table(f"ducklake:{tmp_path / 'x.ducklake'}", table="main.t")


def test_what_a_later_writer_changes_is_seen(catalog):
    table = opened(catalog)
    assert table.current.count() == 3

    catalog.commit_rows([(4, "d")])
    assert table.at("latest").count() == 4
    catalog.execute("DELETE FROM ducklake_snapshot WHERE snapshot_id = 1")
    assert table.versions() == (2, 3)
    with pytest.raises(SnapshotExplorerError, match="Version 1 has expired"):
        table.at(1)
