"""`Table.verify` opens data files with the readers of rows: what is read is in order, and what is damaged is found."""

import io
import shutil
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import fastavro
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from snapshot_explorer import open_table
from snapshot_explorer.analysis.retention import LEVELS
from tests.support.delta.table_builder import DeltaTable, add, remove
from tests.support.filesystems import counting
from tests.support.iceberg.table_builder import ADDED, SCHEMA, IcebergTable, entry
from tests.support.paimon.table_builder import PaimonTable

DATA = Path(__file__).parents[1] / "data"


def state(table, level="bytes"):
    """Return the state and the reason of the only file."""
    (row,) = table.verify(level).files.to_arrow().to_pylist()
    return row["state"], row["reason"]


def damage(path, start=4, count=24):
    content = bytearray(path.read_bytes())
    content[start : start + count] = bytes(255 - byte for byte in content[start : start + count])
    path.write_bytes(content)


def iceberg(folder, name, content, file_format, *, rows, fields=None):
    """Return an Iceberg table of one data file with these bytes, opened."""
    table = IcebergTable(fsspec.filesystem("file"), str(folder), location=f"file://{folder}")
    (folder / "data").mkdir(parents=True)
    (folder / "metadata").mkdir()
    if fields is not None:
        table.metadata |= {"schemas": [SCHEMA | {"fields": fields}], "last-column-id": len(fields)}
    snapshot_id, table.sequence = next(table.ids), 1
    record = {
        "content": 0,
        "file_path": table.path(f"data/{name}"),
        "file_format": file_format,
        "partition": {},
        "record_count": rows,
        "file_size_in_bytes": table.write(f"data/{name}", content),
    }
    table.manifests[snapshot_id] = [table.manifest(snapshot_id, [entry(ADDED, record)])]
    table.add_snapshot(snapshot_id, None, {"operation": "append", "total-records": str(rows)}, millis=1)
    table.write_metadata()
    return open_table(str(folder))


def bytes_of(write, table, **options):
    sink = io.BytesIO()
    write(table, sink, **options)
    return sink.getvalue()


IDS = [{"id": 1, "name": "id", "required": False, "type": "long"}]


def of_ids(rows=2):
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    return pa.table([pa.array(range(rows), pa.int64())], schema=schema)


@pytest.mark.parametrize("folder", ["src", "with space", "p=1", "é"])
@pytest.mark.parametrize("spelled", ["file://{}", "file:{}", "{}"])
def test_files_of_a_shallow_clone_are_in_order(tmp_path, spelled, folder):
    (tmp_path / folder).mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / folder / "f.parquet")
    clone = DeltaTable(None, tmp_path / "clone", fields=(("id", "long"), ("p", "string")), partition_by=["p"])
    path = spelled.format(quote(str(tmp_path / folder / "f.parquet")))
    clone.commit(add(path, partition={"p": "x"}, size=(tmp_path / folder / "f.parquet").stat().st_size, rows=2))
    table = open_table(clone.root)

    assert table.at("latest").count("id > 1") == 1
    assert [state(table, level) for level in LEVELS] == [("ok", None)] * 3
    assert [row["evidence"] for row in table.trace("id = 2").files.to_arrow().to_pylist()] == ["read"]
    damage(tmp_path / folder / "f.parquet")
    assert state(open_table(clone.root))[0] == "unreadable"


def test_files_and_vectors_of_a_clone_with_deletes_are_in_order(tmp_path):
    source = DeltaTable(None, tmp_path / "source", features=("deletionVectors",))
    action = source.data("a.parquet", [(1, "a"), (2, "b")])
    clone = DeltaTable(None, tmp_path / "clone", features=("deletionVectors",))
    path = f"file://{source.root}/a.parquet"
    clone.commit(add(path, size=action["add"]["size"], rows=2))
    vector = source.vector([0], absolute=f"file://{source.root}")
    clone.commit(remove(path), add(path, size=action["add"]["size"], rows=2, vector=vector))
    table = open_table(clone.root)

    assert table.verify("bytes").is_ok
    assert table.trace("id = 1").versions["rows"].to_pylist()[:2] == [0, 1]
    damage(next((tmp_path / "source").glob("deletion_vector_*")), start=12)
    assert not open_table(clone.root).verify("bytes").is_ok


@pytest.mark.parametrize("year", [1, 1600, 1677, 1970, 2024, 2262, 9999])
@pytest.mark.parametrize("kind", ["timestamp", "timestamptz"])
def test_orc_files_with_times_of_every_year_are_in_order(tmp_path, kind, year):
    rows = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "until": pa.array([datetime(year, 12, 31), None], pa.timestamp("s", "UTC" if kind[9:] else None)),  # noqa: DTZ001 - one of each kind
        }
    )
    fields = [*IDS, {"id": 2, "name": "until", "required": False, "type": kind}]
    table = iceberg(tmp_path / "t", "f.orc", bytes_of(orc.write_table, rows), "ORC", rows=2, fields=fields)

    assert table.at("latest").to_arrow()["until"][0].as_py().year == year
    assert state(table) == ("ok", None)
    path = tmp_path / "t/data/f.orc"
    damage(path, start=path.stat().st_size - 30)
    assert state(open_table(str(tmp_path / "t")))[0] == "unreadable"


NAMES = ("f.parquet", "f.parq", "000000_0", "part-00000", "f.parquet.gz.tmp", "F.PARQUET", "f.orc", "f.avro", "f.txt")


@pytest.mark.parametrize("name", NAMES)
def test_files_are_opened_whatever_their_names_are(tmp_path, name):
    content = bytes_of(pq.write_table, of_ids())
    table = iceberg(tmp_path / "t", name, content, "PARQUET", rows=2, fields=IDS)

    assert table.at("latest").to_arrow().num_rows == 2
    assert [state(table, level) for level in LEVELS] == [("ok", None)] * 3
    damage(tmp_path / "t/data" / name)
    assert state(open_table(str(tmp_path / "t")))[0] == "unreadable"
    assert state(open_table(str(tmp_path / "t")), "footers")[0] == "ok"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_without_its_end_is_unreadable_whatever_its_name_is(tmp_path, name):
    content = bytes_of(pq.write_table, of_ids())
    table = iceberg(tmp_path / "t", name, content[:-8] + bytes(8), "PARQUET", rows=2, fields=IDS)

    assert state(table, "footers")[0] == "unreadable"


@pytest.mark.parametrize("name", ["part-0", "part-0.parquet.tmp", "part-0.PARQUET"])
def test_files_of_delta_are_opened_whatever_their_names_are(tmp_path, name):
    table = DeltaTable(None, tmp_path)
    table.commit(table.data(name, [(1, "a" * 100)]))

    assert state(open_table(table.root)) == ("ok", None)
    damage(tmp_path / name)
    assert state(open_table(table.root))[0] == "unreadable"


def test_a_file_of_delta_that_is_not_parquet_is_unreadable(tmp_path):
    table = DeltaTable(None, tmp_path)
    orc.write_table(pa.table({"id": [1], "name": ["a"]}), tmp_path / "a.orc")
    table.commit(add("a.orc", size=(tmp_path / "a.orc").stat().st_size))

    assert state(open_table(table.root), "footers")[0] == "unreadable"


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_avro_files_of_iceberg_are_read_as_a_whole(tmp_path, codec):
    schema = {"type": "record", "name": "t", "fields": [{"name": "id", "type": ["null", "long"], "field-id": 1}]}
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), [{"id": number} for number in range(500)], codec=codec)
    table = iceberg(tmp_path / "t", "f.avro", sink.getvalue(), "AVRO", rows=500, fields=IDS)

    assert table.at("latest").count() == 500
    assert state(table) == ("ok", None)
    assert state(table, "footers") == (None, "Avro files have no footer; table.verify('bytes') reads them")
    damage(tmp_path / "t/data/f.avro", start=len(sink.getvalue()) // 2)
    assert state(open_table(str(tmp_path / "t")))[0] == "unreadable"


@pytest.mark.parametrize(
    ("name", "files", "unopened"),
    [
        ("paimon/append_avro", "**/data-*.avro", {None}),
        ("paimon/append_orc", "**/data-*.orc", {"ok"}),
        ("paimon/blobs", "**/*.blob", {"ok"}),
        ("paimon/evolution_append_avro", "**/data-*.avro", {None}),
        ("hudi/v9_mor_basic", "**/.*.log.*", {"ok", None}),
        ("hudi/v9_mor_parquet_logs", "**/.*.log.*", {"ok", None}),
        ("hudi/v6_mor_types", "**/.*.log.*", {"ok", None}),
        ("hudi/v9_cow_orc", "**/*.orc", {"ok"}),
    ],
)
def test_files_of_every_kind_are_opened_and_damaged_ones_found(tmp_path, name, files, unopened):
    root = shutil.copytree(DATA / name, tmp_path / "t")
    assert open_table(str(root)).verify("bytes").is_ok
    assert set(open_table(str(root)).verify("footers").files["state"].to_pylist()) == unopened
    path = max(root.glob(files), key=lambda path: path.stat().st_size)
    damage(path, start=path.stat().st_size // 3, count=path.stat().st_size // 3)

    rows = open_table(str(root)).verify("bytes").files.to_arrow().to_pylist()
    assert {row["path"] for row in rows if row["state"] == "unreadable"} == {str(path.relative_to(root))}


def test_a_log_file_that_lacks_the_block_of_a_commit_is_unreadable(tmp_path):
    root = shutil.copytree(DATA / "hudi/v6_mor_types", tmp_path / "t")
    path = max(root.glob("**/.*.log.*"), key=lambda path: path.stat().st_size)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    rows = {row["path"]: row for row in open_table(str(root)).verify("bytes").files.to_arrow().to_pylist()}

    assert rows[str(path.relative_to(root))]["state"] in ("unreadable", "resized")


def test_sizes_of_0_that_early_releases_of_delta_rs_recorded_are_not_compared(tmp_path):
    table = DeltaTable(None, tmp_path)
    action = table.data("a.parquet", [(1, "a")])
    table.commit({"add": action["add"] | {"size": 0}})
    opened = open_table(table.root)

    assert opened.at("latest").to_arrow().num_rows == 1
    assert [state(opened, level) for level in LEVELS] == [("ok", None)] * 3
    assert opened.verify().versions["readable"].to_pylist() == ["yes", "yes"]


def test_a_registered_file_that_was_replaced_is_read_and_in_order(tmp_path):
    imported = pa.table({"id": pa.array([1, 2], pa.int64())})
    iceberg(tmp_path / "t", "000000_0", bytes_of(pq.write_table, imported), "PARQUET", rows=2, fields=IDS)
    later = imported.append_column("more", [["a" * 300, "b"]])
    (tmp_path / "t/data/000000_0").write_bytes(bytes_of(pq.write_table, later))
    opened = open_table(str(tmp_path / "t"))

    assert opened.at("latest").count("id > 0") == 2
    assert [state(opened, level) for level in LEVELS] == [("ok", None)] * 3
    assert opened.verify().versions["readable"].to_pylist() == ["yes"]

    with_ids = of_ids().append_column("more", [["a" * 300, "b"]])
    (tmp_path / "t/data/000000_0").write_bytes(bytes_of(pq.write_table, with_ids))
    assert state(open_table(str(tmp_path / "t")))[0] == "resized"


def test_an_encrypted_file_is_not_called_damaged(tmp_path):
    content = bytes_of(pq.write_table, of_ids())
    table = iceberg(tmp_path / "t", "f.parquet", content[:-4] + b"PARE", "PARQUET", rows=2, fields=IDS)
    found, reason = state(table)

    assert found is None
    assert "encrypted" in reason


def test_a_storage_that_fails_does_not_make_a_file_unreadable(memory_root, register):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root)
    table.commit(table.data("a.parquet", [(1, "a")]))

    class Denied(counting()):
        def cat_file(self, path, start=None, end=None, **options):
            if path.endswith(".parquet"):
                raise PermissionError(path)
            return super().cat_file(path, start, end, **options)

    register(Denied)
    found, reason = state(open_table(f"counted://{root}"), "footers")
    assert found is None
    assert "Could not read" in reason


def test_a_file_of_a_format_that_is_not_read_is_not_called_damaged(memory_root):
    filesystem, root = memory_root
    table = PaimonTable(filesystem, root)
    table.file_ending = "lance"
    table.commit()

    assert state(open_table(f"memory://{root}")) == (None, "files of the format lance are not read")


@pytest.mark.parametrize(
    ("level", "done"),
    [
        ("existence", "exists, with the recorded sizes"),
        ("footers", "exists, and the footers have the recorded rows"),
        ("bytes", "was read as a whole, with all deletes, and has the recorded rows"),
    ],
)
def test_a_single_file_is_named_in_the_singular(level, done, tmp_path):
    content = bytes_of(pq.write_table, pa.table({"id": pa.array([1], pa.int64())}))

    table = iceberg(tmp_path / "t", "a.parquet", content, "PARQUET", rows=1)

    assert table.verify(level).verdict == f"The only data file {done} where some are recorded."


def test_a_file_without_a_recorded_number_of_rows_is_named_where_rows_are_compared(memory_root):
    table = DeltaTable(*memory_root)
    table.commit(table.data("a.parquet", [(1, "ann")]))
    counted = table.data("b.parquet", [(2, "bob")])
    table.commit({"add": {name: value for name, value in counted["add"].items() if name != "stats"}})

    found = open_table(table.url).verify("footers")

    assert found.is_ok
    (note,) = found.notes
    assert note.startswith("The metadata records no number of rows for 1 of 2 data files, or several that contradict")
    assert note.endswith(": these were not compared.")
    assert open_table(table.url).verify().notes == ()
