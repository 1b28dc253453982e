"""Usage by column: judged by pyarrow's own footers of each live file, and in ORC by files that have fewer columns."""

import json
from collections import Counter
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from snapshot_explorer import open_table, samples
from tests.inner.arrow import orc_column_sizes
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.scenarios import SCENARIOS, played

MAPPING = "schema.name-mapping.default"
TABLES = Path(__file__).parents[1] / "data"
SAMPLES = ("orders", "payments", "shipments", "rides")
RENAMED = {"payments": {"method": "channel"}, "shipments": {"weight": "weight_kg"}}
GOLDEN = ("paimon/dv", "paimon/written_by_1_4", "delta/dv_partitioned", "hudi/v9_mor_basic", "iceberg/v3_dv")


def rows_of(table):
    """Return the files and bytes of each row; the bytes of all rows are those of the live files."""
    usage = table.usage("column")
    rows, live = usage.groups.to_dict(), usage.summary.to_dict()[0]
    assert sum(row["size_bytes"] for row in rows) == live["live_bytes"]
    return {(row["what"], row["column"]): (row["files"], row["size_bytes"]) for row in rows}


def by_pyarrow(paths, renamed=MappingProxyType({})):
    """Return the number of files with each column, and the size of its chunks; some have other names in the files."""
    files, sizes = Counter(), Counter()
    for path in paths:
        footer = pq.read_metadata(path)
        groups = map(footer.row_group, range(footer.num_row_groups))
        chunks = [group.column(index) for group in groups for index in range(footer.num_columns)]
        stored = [chunk.path_in_schema.split(".")[0] for chunk in chunks]
        names = [renamed.get(name, name) for name in stored]
        files.update(set(names))
        for name, chunk in zip(names, chunks, strict=True):
            sizes[name] += chunk.total_compressed_size
    return {name: (files[name], sizes[name]) for name in files}


@pytest.mark.parametrize("name", [*SAMPLES, *GOLDEN])
def test_columns_have_the_bytes_of_the_footers(name):
    path = TABLES / name if "/" in name else samples.path(name)
    table = open_table(path)
    live = table.current.files()["path"].to_pylist()
    parquet = [Path(path) / name for name in live if name.endswith(".parquet")]

    rows = rows_of(table)

    columns = {name: count for (_, name), count in rows.items() if name is not None and count[0]}
    assert columns == by_pyarrow(parquet, RENAMED.get(name, {}))
    assert rows.get(("not checked", None), (0, 0))[0] == len(live) - len(parquet)


def test_columns_of_a_lake_in_a_catalog_have_the_bytes_of_the_footers():
    path = samples.path("festival")
    table = open_table(path, table="main.tickets")
    parquet = [Path(path).parent / "data" / name for name in table.current.files()["path"].to_pylist()]

    rows = rows_of(table)

    assert {name: count for (_, name), count in rows.items() if name is not None} == by_pyarrow(parquet)


@pytest.mark.parametrize("path", ["mapping_name", "mapping_id"])
def test_columns_that_delta_maps_have_their_names_in_the_table(path):
    log = sorted((TABLES / "delta" / path / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for file in log for line in file.read_text().splitlines()]
    schema = [json.loads(item["metaData"]["schemaString"]) for item in actions if "metaData" in item][-1]
    stored = {field["metadata"]["delta.columnMapping.physicalName"]: field["name"] for field in schema["fields"]}
    table = open_table(TABLES / "delta" / path)
    parquet = [TABLES / "delta" / path / name for name in table.current.files()["path"].to_pylist()]

    rows = rows_of(table)

    assert {name: count for (_, name), count in rows.items() if name is not None} == by_pyarrow(parquet, stored)


@pytest.mark.parametrize("path", ["evolution_append", "evolution_append_orc"])
def test_a_dropped_column_is_not_a_later_one_of_its_name(path):
    rows = rows_of(open_table(TABLES / "paimon" / path))

    assert (rows["column", "gone"][0], rows["only in files", "gone"][0]) == (2, 1)
    assert rows["column", "s"][0] == 4  # called `text` when the files were written
    assert ("only in files", "text") not in rows


@pytest.mark.parametrize(
    ("mapping", "what"),
    [("[]", "only in files"), ('[{"field-id": 2, "names": ["label", "name"]}]', "column"), (None, "column")],
)
def test_columns_of_files_without_ids_are_those_that_readers_find(mapping, what, memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root, properties={} if mapping is None else {MAPPING: mapping})
    table.commit([(1, "a")])
    path = f"{root}/data/data-1.parquet"
    rows = pq.read_table(filesystem.open(path)).replace_schema_metadata()
    plain = pa.table(rows.columns, names=["id", "label" if mapping else "name"])

    with filesystem.open(path, "wb") as file:
        pq.write_table(plain, file)

    rows = {
        (row["what"], row["column"])
        for row in open_table(f"memory://{root}").usage("column").groups.to_dict()
        if row["files"]
    }
    assert (what, "label" if what != "column" else "name") in rows


@pytest.fixture(params=SCENARIOS, ids=lambda scenario: scenario.format)
def scenario(request, memory_root):
    return played(request.param(*memory_root))


def test_every_format_has_a_row_for_each_column(scenario):
    table = open_table(scenario.url)

    rows = rows_of(table)

    names = [column.name for column in table.current.schema.columns]
    assert sorted(name for what, name in rows if what == "column") == sorted(names)
    assert ("not checked", None) not in rows


def test_streams_of_an_orc_column_do_not_depend_on_the_others(tmp_path):
    columns = {
        "n": pa.array(range(50_000)),
        "nested": pa.array(
            [{"a.b": str(n), "m": [(n, [n])]} for n in range(50_000)],
            pa.struct({"a.b": pa.string(), "m": pa.map_(pa.int64(), pa.list_(pa.int64()))}),
        ),
        "t": pa.array([f"text {n % 7}" for n in range(50_000)]),
    }

    def sizes(*names, **options):
        orc.write_table(pa.table({name: columns[name] for name in names}), tmp_path / "x.orc", **options)
        with pa.OSFile(str(tmp_path / "x.orc")) as source:
            return dict(zip(names, orc_column_sizes(source), strict=True)), source.size()

    for options in ({"compression": "zstd"}, {"compression": "uncompressed", "stripe_size": 1 << 16}):
        together, size = sizes(*columns, **options)
        assert together == {name: sizes(name, **options)[0][name] for name in columns}
        assert 0.9 * size < sum(together.values()) < size


@pytest.mark.parametrize("content", [None, b"PAR1 damaged PAR1"])
def test_files_that_cannot_be_opened_are_not_checked(content, memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root)
    for number in range(3):
        table.commit([(number, "a")])
    filesystem.rm(f"{root}/data/data-2.parquet")
    if content is not None:
        filesystem.pipe(f"{root}/data/data-2.parquet", content)

    usage = open_table(f"memory://{root}").usage("column")

    assert {row["what"]: row["files"] for row in usage.groups.to_dict()} == {
        "column": 2,
        "rest of the files": 2,
        "not checked": 1,
    }
    assert "data-2.parquet" in usage.groups.notes[0]
    rows_of(open_table(f"memory://{root}"))


def test_a_table_without_versions_has_columns_without_bytes(memory_root):
    filesystem, root = memory_root
    IcebergTable(filesystem, root).write_metadata()

    rows = open_table(f"memory://{root}").usage("column").groups.to_dict()

    assert {(row["what"], row["files"], row["size_bytes"]) for row in rows} == {("column", 0, 0)}
