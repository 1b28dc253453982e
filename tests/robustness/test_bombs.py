"""Small files that ask for much memory or time: refused by name, and read where whoever knows the table allows it."""

import contextlib
import io
import pickle
import shutil
import tracemalloc
import zipfile
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import Limits, open_table, samples
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, LimitError, StorageError
from snapshot_explorer.storage import Storage
from tests.inner.arrow import CorruptBytesError
from tests.inner.core import parse_limits
from tests.inner.formats import read_container
from tests.inner.paimon import PaimonDataType, PaimonField, avro_rows, read_entries
from tests.support.avro import array, record
from tests.support.delta import table_builder
from tests.support.delta.table_builder import DeltaTable, add, commit_name
from tests.support.effort import at_most_steps
from tests.support.paimon.avro_bytes import container, number

MiB = 1 << 20
FEW = 20_000
"""Lines of Python that refuse a file, with what builds it: not one for each row that it claims."""
STRICT = Limits(metadata_bytes=4 * MiB, metadata_ratio=1)


@pytest.fixture
def table(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.append([(1, "a")])
    return table


def checkpoint(table, actions, **options):
    """Replace the table's commits by a checkpoint of these actions, written with options of pyarrow."""
    kinds = table_builder.ACTIONS
    rows = [{kind: table_builder.as_arrow(one.get(kind), kinds[kind]) for kind in kinds} for one in actions]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(kinds.items()))), out, **options)
    table.write(f"_delta_log/{table.version:020d}.checkpoint.parquet", out.getvalue())
    for version in range(table.version):
        table.remove_file(commit_name(version))
    return out.getvalue()


def swollen(count, size):
    """Return adds that all have the same long value."""
    return [
        {"add": add(f"part-{number}.parquet", size=1, rows=None)["add"] | {"clusteringProvider": "x" * size}}
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "zstd"},
        {"compression": "snappy", "data_page_version": "2.0"},
        {"compression": "none", "row_group_size": 100},
        {"compression": "zstd", "use_dictionary": False},
        {"use_dictionary": False, "column_encoding": {"add.clusteringProvider": "DELTA_BYTE_ARRAY"}},
    ],
    ids=["dictionary", "pages of version 2", "small row groups", "packed", "front-coded"],
)
def test_a_checkpoint_that_unfolds_to_more_than_it_may_is_refused(table, options):
    content = checkpoint(table, [*table.state(), *swollen(500, 20_000)], **options)

    with pytest.raises(
        LimitError, match=r"checkpoint.parquet, of \d+ bytes, decodes to \d+ bytes or more; the limit is 4194304"
    ):
        open_table(table.root, limits=Limits(metadata_bytes=4 * MiB, metadata_ratio=1)).current.files()
    assert len(content) < MiB
    assert len(open_table(table.root).current.files()) == 501


def test_a_dictionary_is_measured_before_it_is_unfolded(table):
    checkpoint(table, [*table.state(), *swollen(70, MiB)], compression="zstd", dictionary_pagesize_limit=2 * MiB)

    before = pa.total_allocated_bytes()
    with pytest.raises(LimitError, match=r"the limit is 33554432.*limits=Limits\(metadata_bytes=14\d+\)"):
        open_table(table.root, limits=Limits(metadata_bytes=32 * MiB)).current.files()
    assert pa.total_allocated_bytes() - before < 8 * MiB


def test_a_long_value_in_one_row_of_many_is_not_a_bomb(table):
    schema = table_builder.schema_json([("id", "long"), *((f"column {number}", "string") for number in range(5_000))])
    state = [one if "metaData" not in one else table_builder.metadata(schema) for one in table.state()]
    checkpoint(table, [*state, *swollen(300, 1)])

    opened = open_table(table.root, limits=Limits(metadata_bytes=4 * MiB, metadata_ratio=20))

    assert len(opened.current.files()) == 301
    assert len(opened.at("latest").schema.columns) == 5_001


def test_a_parquet_manifest_that_unfolds_to_more_than_it_may_is_refused():
    entry = {"_VERSION": 2, "_KIND": 0, "_PARTITION": b"x" * 100_000}
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([entry] * 100), out)

    with pytest.raises(LimitError, match=r"manifest/m, of \d+ bytes, decodes to 10\d{6} bytes or more; the limit is"):
        read_entries([("manifest/m", out.getvalue())], limits=STRICT)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_an_avro_block_of_rows_without_bytes_is_refused_at_once(codec):
    rows = record("r", _KIND=["null", "int"])
    content = container(rows, [(10**9, b"")], codec)

    with (
        at_most_steps(FEW),
        pytest.raises(CorruptTableError, match="manifest/m .* Avro file: implausible: 1000000000 rows"),
    ):
        read_entries([("manifest/m", content)])


def test_an_avro_file_of_more_rows_than_it_may_have_is_refused():
    rows = record("r", _KIND=["null", "int"])

    with pytest.raises(LimitError, match=r"manifest/m, of \d+ bytes, claims 5000000 rows; the limit is 4000000"):
        read_entries([("manifest/m", container(rows, [(5_000_000, bytes(5_000_000))], "deflate"))])


def rows_of(schema, blocks, **limits):
    """Return the rows of an Avro data file with a column `a`."""
    file = read_container(container(schema, blocks, "deflate"), "bucket-0/d", {}, limits=Limits(**limits))
    field = PaimonField(id=0, name="a", type=PaimonDataType(root="ARRAY", element=PaimonDataType(root="INT")))
    return list(avro_rows.batches(file, [field], 1024))


@pytest.mark.parametrize(
    "item",
    ["int", "boolean", "string", ["null", "int"], {"type": "fixed", "name": "f", "size": 1}],
    ids=["int", "boolean", "string", "union", "fixed"],
)
@pytest.mark.parametrize("count", [10**9, -(10**9)])
def test_items_that_an_avro_data_file_announces_and_lacks_are_refused_at_once(item, count):
    rows = record("r", a=array(item))
    block = number(count) + (number(5) if count < 0 else b"")

    with at_most_steps(FEW), pytest.raises(CorruptBytesError, match="a block is damaged"):
        rows_of(rows, [(1, block)])


def test_rows_that_an_avro_data_file_announces_and_lacks_are_refused_at_once():
    rows = record("r", a=array("int"))

    with (
        at_most_steps(FEW),
        pytest.raises(CorruptTableError, match="bucket-0/d .* implausible: 1000000000 rows in 1 bytes"),
    ):
        rows_of(rows, [(10**9, b"\0")])
    with (
        at_most_steps(FEW),
        pytest.raises(LimitError, match=r"bucket-0/d, of \d+ bytes, claims 5000 rows; the limit is 4000"),
    ):
        rows_of(rows, [(5000, bytes(5000))], metadata_rows=4000)
    with (
        at_most_steps(FEW),
        pytest.raises(LimitError, match=r"bucket-0/d, of \d+ bytes, has a block of 1000001 bytes or more"),
    ):
        rows_of(rows, [(5_000_000, bytes(5_000_000))], value_bytes=1_000_000)


def test_items_of_an_avro_data_file_that_take_no_bytes_are_refused():
    with pytest.raises(CorruptTableError, match="items of an array take no bytes"):
        rows_of(record("r", a=array("null")), [(1, number(10**9) + number(0))])


def test_a_commit_of_very_many_blank_lines_is_refused(table):
    path = commit_name(table.version)
    table.write(path, table.read(path) + b"\n" * 10_000_000)

    with pytest.raises(LimitError, match=r"1.json, of 10000\d+ bytes, has 10000\d+ lines, nearly all blank"):
        open_table(table.root).current.files()
    assert len(open_table(table.root, limits=Limits(metadata_rows=20_000_000)).current.files()) == 1


def test_a_long_line_of_json_is_refused(table):
    path = commit_name(table.version)
    table.write(path, table.read(path) + b'{"commitInfo": {"x": "' + b"y" * (5 * MiB) + b'"}}\n')

    with pytest.raises(LimitError, match=r"1.json, of 52\d+ bytes, has a line of 52\d+ bytes or more; the limit is"):
        open_table(table.root, limits=Limits(value_bytes=4 * MiB))
    assert len(open_table(table.root).history()) == 2


def test_limits_travel_with_a_storage_that_is_pickled(tmp_path):
    storage = Storage(tmp_path, limits=STRICT)

    assert pickle.loads(pickle.dumps(storage)).limits == STRICT


def test_limits_may_be_text():
    assert parse_limits("metadata_bytes=8589934592, value_bytes = 5") == Limits(metadata_bytes=8 << 30, value_bytes=5)


@pytest.mark.parametrize(
    "text", ["", "5", "bytes=5", "value_bytes=-5", "value_bytes=5,value_bytes=6", f"value_bytes={'9' * 5000}"]
)
def test_text_that_is_not_a_limit_is_refused(text):
    with pytest.raises(InvalidArgumentError, match="limits must be NAME=NUMBER, separated by commas, got "):
        parse_limits(text)


@pytest.mark.parametrize("value", [0, -1, 1.5, "1", True, None])
def test_what_is_not_a_limit_is_refused(value):
    with pytest.raises(InvalidArgumentError, match="limits: value_bytes must be a whole number of 1 or more, got"):
        Limits(value_bytes=value)


@pytest.fixture
def traced():
    """A function that returns the most memory of Python since it was called last, in MiB."""
    tracemalloc.start()

    def peak():
        found = tracemalloc.get_traced_memory()[1] / MiB
        tracemalloc.reset_peak()
        return found

    yield peak
    tracemalloc.stop()


def zipped(path, name, parts, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive, archive.open(name, "w") as member:
        for part in parts:
            member.write(part)
    return {"fo": str(path)}


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_file_in_an_archive_may_not_grow_to_more_than_its_stored_size_allows(tmp_path, traced, compression):
    start = orjson.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + b"\n"
    parts = [start, *[b" " * MiB] * 60]
    options = zipped(tmp_path / "a.zip", "t/_delta_log/00000000000000000000.json", parts, compression)
    traced()

    with pytest.raises(LimitError, match=r"0.json has 6291\d+ bytes or more, which are not read whole; the limit is"):
        open_table("zip://t", storage_options=options, limits=Limits(metadata_bytes=16 * MiB))
    assert traced() < 8


def test_an_archive_whose_files_are_stored_well_is_read(table, tmp_path):
    folder = Path(table.root)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.rglob("*"):
            if path.is_file():
                archive.write(path, f"t/{path.relative_to(folder)}")

    opened = open_table("zip://t", storage_options={"fo": str(tmp_path / "a.zip")}, limits=Limits(metadata_bytes=9999))

    assert opened.current.to_arrow().equals(open_table(table.root).current.to_arrow())


SPARSE = {
    "a commit": ("payments", "_delta_log/00000000000000000021.json"),
    "a hint": ("payments", "_delta_log/_last_checkpoint"),
    "a checksum": ("payments", "_delta_log/00000000000000000021.crc"),
    "a snapshot": ("orders", "snapshot/snapshot-{}"),
    "a hint of Paimon": ("orders", "snapshot/LATEST"),
    "a schema": ("orders", "schema/schema-0"),
    "a manifest": ("orders", "manifest/*"),
    "metadata": ("shipments", "metadata/*.metadata.json"),
    "a hint of Iceberg": ("shipments", "metadata/version-hint.text"),
    "a manifest list": ("shipments", "metadata/*.avro"),
    "properties": ("rides", ".hoodie/hoodie.properties"),
    "a commit of Hudi": ("rides", ".hoodie/**/*.commit"),
    "a deltacommit": ("rides", ".hoodie/**/*.deltacommit"),
}


@pytest.mark.parametrize("kind", SPARSE)
def test_a_file_of_holes_is_refused_before_it_is_read(kind, tmp_path, traced):
    name, pattern = SPARSE[kind]
    shutil.copytree(samples.path(name), tmp_path / "t")
    paths = sorted((tmp_path / "t").glob(pattern.replace("{}", "*"))) or [tmp_path / "t" / pattern]
    if not paths[-1].parent.is_dir():
        pytest.skip("the sample has no such file")
    for path in paths:
        with path.open("ab") as file:
            file.truncate(3 << 30)
    traced()

    with contextlib.suppress(LimitError, CorruptTableError, StorageError):  # what is only a hint may be ignored
        opened = open_table(tmp_path / "t")
        opened.history()
        opened.current.files()
    assert traced() < 64


def test_a_large_file_that_is_no_bomb_is_read_where_the_limits_are_raised(tmp_path):
    (tmp_path / "f").write_bytes(bytes(range(256)) * (MiB // 256) * 5)

    with pytest.raises(LimitError, match=r"f has 5242880 bytes or more.*the limit is 4194304.*metadata_bytes=1310720"):
        Storage(tmp_path, limits=Limits(metadata_bytes=MiB)).read("f")
    assert len(Storage(tmp_path, limits=Limits(metadata_bytes=1310720)).read("f")) == 5 * MiB


def test_what_a_file_may_decode_to_does_not_grow_with_its_size_without_bounds():
    limits = Limits()

    assert limits.most_bytes(10 * MiB) == 1000 * MiB
    assert limits.most_bytes(1 << 40) == limits.most_bytes(1 << 60) == 4096 * MiB
    assert limits.most_rows(1 << 60) == 64_000_000
