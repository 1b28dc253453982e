"""Metadata whose values or types are nested deep: read, or refused with the limit, never as a damaged file."""

import io
import json
import re
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import LakeSnapshot, check, open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, LimitError, SnapshotExplorerError
from snapshot_explorer.formats import json_text
from tests.inner.formats import read_container
from tests.inner.terminal import main
from tests.support.delta.table_builder import DeltaTable, add, metadata, protocol
from tests.support.hudi.table_builder import SCHEMA, HudiTable
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.avro_bytes import MAGIC, SYNC, counted, number
from tests.support.paimon.table_builder import PaimonTable
from tests.support.public_calls import arguments_for, calls

MARK = "@@nested@@"
CALLS = (
    "history",
    "history stat",
    "commit",
    "files",
    "to_arrow",
    "lifetimes",
    "health",
    "schema and properties",
    "table",
)


def objects(levels):
    return '{"a":' * levels + "1" + "}" * levels


def lists(levels):
    return "[" * levels + "]" * levels


def delta_values(root, value):
    table = DeltaTable(*root)
    table.append([(1, "a")])
    info = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "operationParameters": {"x": MARK}}, "unknown": MARK}
    action = table.data("b.parquet", [(2, "b")])
    action["add"]["stats"] = action["add"]["stats"].replace("}", f', "more": "{MARK}"}}', 1)
    domain = {"domainMetadata": {"domain": "d", "configuration": f'{{"x": "{MARK}"}}', "removed": False}}
    text = "\n".join(map(json.dumps, (info, action, domain)))
    escaped = json.dumps(value)[1:-1]
    table.write(
        "_delta_log/00000000000000000002.json",
        text.replace(f'\\"{MARK}\\"', escaped).replace(f'"{MARK}"', value).encode(),
    )
    return table.url


def paimon_values(root, value):
    filesystem, path = root
    table = PaimonTable(*root)
    table.commit([(1, "a")])
    table.tag("v1", 1)
    for name in ("snapshot/snapshot-1", "schema/schema-0", "tag/tag-v1"):
        content = json.loads(filesystem.cat_file(f"{path}/{name}")) | {"unknown": MARK}
        table.write(name, json.dumps(content).replace(f'"{MARK}"', value).encode())
    return f"memory://{path}"


def iceberg_values(root, value):
    table = IcebergTable(*root)
    table.commit([(1, "a")])
    table.metadata["snapshots"][0]["unknown"] = table.metadata["schemas"][0]["unknown"] = MARK
    table.write_metadata(unknown=MARK)
    replace(root, f"metadata/v{table.metadata_number}.metadata.json", value)
    return f"memory://{table.root}"


def hudi_values(root, value):
    table = HudiTable(*root)
    table.insert([(1, "a")])
    (name,) = (path for path in table.filesystem.find(f"{table.root}/.hoodie/timeline") if path.endswith(".commit"))
    content = json.loads(table.filesystem.cat_file(name))
    content["extraMetadata"]["unknown"] = content["unknown"] = MARK
    table.filesystem.pipe_file(name, json.dumps(content).replace(f'"{MARK}"', value).encode())
    return f"memory://{table.root}"


def replace(root, name, value):
    filesystem, path = root
    content = filesystem.cat_file(f"{path}/{name}")
    filesystem.pipe_file(f"{path}/{name}", content.replace(f'"{MARK}"'.encode(), value.encode()))


def outcomes(url):
    """Return what calls of a table return or raise, by name."""
    try:
        table = open_table(url)
        questions = calls(arguments_for(table))
    except SnapshotExplorerError as error:
        return {"open": error}
    found = {}
    for name in CALLS:
        if name in questions:
            try:
                found[name] = repr(questions[name](table))
            except SnapshotExplorerError as error:
                found[name] = error
    return found


VALUES = {"delta": delta_values, "paimon": paimon_values, "iceberg": iceberg_values, "hudi": hudi_values}


@pytest.mark.parametrize("build", [objects, lists])
@pytest.mark.parametrize("format_name", VALUES)
def test_values_of_300_levels_are_read(memory_root, format_name, build):
    found = outcomes(VALUES[format_name](memory_root, build(300)))

    assert len(found) >= len(CALLS) - 1
    assert [error for error in found.values() if isinstance(error, Exception)] == []


@pytest.mark.parametrize("levels", [1_100, 5_000, 30_000])
@pytest.mark.parametrize("format_name", VALUES)
def test_values_of_more_levels_are_refused_with_the_limit(memory_root, format_name, levels):
    found = outcomes(VALUES[format_name](memory_root, lists(levels)))

    failures = [error for error in found.values() if isinstance(error, Exception)]
    assert failures
    for error in failures:
        assert isinstance(error, LimitError)
        assert f"values within each other to {levels:,}"[:-2] in str(error) or f"{levels + 4:,}" in str(error)
        assert "the limit is 1,024" in str(error)


IDS = count(100)
DELTA = (
    ('{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":', "}]}"),
    ('{"type":"array","containsNull":true,"elementType":', "}"),
    ('{"type":"map","keyType":"string","valueContainsNull":true,"valueType":', "}"),
)
ICEBERG = (
    ('{"type":"struct","fields":[{"id":#,"name":"a","required":false,"type":', "}]}"),
    ('{"type":"list","element-id":#,"element-required":false,"element":', "}"),
    ('{"type":"map","key-id":#,"key":"string","value-id":#,"value-required":false,"value":', "}"),
)
PAIMON = (
    ('{"type":"ROW","fields":[{"id":#,"name":"a","type":', "}]}"),
    ('{"type":"ARRAY","element":', "}"),
    ('{"type":"MAP","key":"STRING","value":', "}"),
    ("ARRAY<", ">"),
    ("ROW<a ", ">"),
)
AVRO = (
    ('{"type":"record","name":"r#","fields":[{"name":"a","default":null,"type":["null",', "]}]}"),
    ('{"type":"array","items":["null",', "]}"),
    ('{"type":"map","values":', "}"),
)


def nested(parts, levels):
    """Return the JSON of types within each other, from what stands before and after the inner one; `#` is an id."""
    opened = re.sub("#", lambda _: str(next(IDS)), parts[0] * levels)
    if not opened.startswith("{"):
        return f'"{opened}BIGINT{parts[1] * levels}"'
    return opened + ('"BIGINT"' if parts in PAIMON else '"long"') + parts[1] * levels


def delta_type(root, inner):
    table = DeltaTable(*root, fields=[("id", "long")])
    table.commit(protocol(), metadata(fields=[("id", "long"), ("deep", MARK)]), table.data("a.parquet", [(1,)]))
    name = "_delta_log/00000000000000000001.json"
    content = table.filesystem.cat_file(f"{table.root}/{name}").decode()
    table.write(name, content.replace(f'\\"{MARK}\\"', json.dumps(inner)[1:-1]).encode())
    return table.url


def iceberg_type(root, inner):
    table = IcebergTable(*root)
    table.metadata["schemas"] = [json.loads(json.dumps(table.metadata["schemas"][0]))]
    table.metadata["schemas"][0]["fields"].append({"id": 99, "name": "deep", "required": False, "type": MARK})
    table.commit([(1, "a")])
    replace(root, f"metadata/v{table.metadata_number}.metadata.json", inner)
    return f"memory://{table.root}"


def paimon_type(root, inner):
    filesystem, path = root
    table = PaimonTable(*root)
    table.commit([(1, "a")])
    schema = json.loads(filesystem.cat_file(f"{path}/schema/schema-0"))
    schema["fields"].append({"id": 9, "name": "deep", "type": MARK})
    table.write("schema/schema-1", json.dumps(schema | {"id": 1, "highestFieldId": 9}).encode())
    replace(root, "schema/schema-1", inner)
    table.commit([(1, "a")], schemaId=1)
    return f"memory://{path}"


def hudi_type(root, inner):
    table = HudiTable(*root)
    table.schema = SCHEMA | {"fields": [*SCHEMA["fields"], {"name": "deep", "type": ["null", MARK], "default": None}]}
    table.insert([(1, "a")])
    (name,) = (path for path in table.filesystem.find(f"{table.root}/.hoodie/timeline") if path.endswith(".commit"))
    content = table.filesystem.cat_file(name).decode()
    table.filesystem.pipe_file(name, content.replace(f'\\"{MARK}\\"', json.dumps(inner)[1:-1]).encode())
    return f"memory://{table.root}"


TYPES = {
    "delta": (delta_type, DELTA),
    "iceberg": (iceberg_type, ICEBERG),
    "paimon": (paimon_type, PAIMON),
    "hudi": (hudi_type, AVRO),
}
EACH = [(name, index) for name, (_, builds) in TYPES.items() for index in range(len(builds))]


@pytest.mark.parametrize(("format_name", "index"), EACH)
def test_types_of_60_levels_are_read(memory_root, format_name, index):
    write, builds = TYPES[format_name]
    found = outcomes(write(memory_root, nested(builds[index], 60)))

    assert [error for error in found.values() if isinstance(error, Exception)] == []
    assert "open" not in found


@pytest.mark.parametrize("levels", [101, 300])
@pytest.mark.parametrize(("format_name", "index"), EACH)
def test_types_of_more_levels_are_refused_with_the_limit(memory_root, format_name, index, levels):
    write, builds = TYPES[format_name]
    found = outcomes(write(memory_root, nested(builds[index], levels)))

    failures = [error for error in found.values() if isinstance(error, Exception)]
    assert failures
    for error in failures:
        assert isinstance(error, LimitError), error
        assert "the limit is 1" in str(error)
        assert "cut short" not in str(error)


@pytest.mark.parametrize("levels", [101, 330, 2_000, 20_000])
@pytest.mark.parametrize("parts", AVRO)
def test_an_avro_schema_of_many_levels_is_refused_with_the_limit(parts, levels):
    schema = f'{{"type":"record","name":"r","fields":[{{"name":"x","type":{nested(parts, levels)}}}]}}'.encode()
    header = number(1) + counted(b"avro.schema") + counted(schema) + number(0)

    with pytest.raises(
        LimitError, match=r"^The Avro schema in m.avro has (types|values) within each other to [\d,]+ l"
    ):
        read_container(MAGIC + header + SYNC, "m.avro", {})


def test_the_levels_of_json_are_counted_outside_of_texts():
    brackets = json.dumps("[{" * 3_000)

    assert json_text.too_deep(f"[{brackets}, {brackets}", "x") is None
    assert json_text.loads(f'{{"a": {brackets}}}', "x") == {"a": "[{" * 3_000}
    with pytest.raises(LimitError, match="x has values within each other to 1,025 levels; the limit is 1,024"):
        json_text.loads("[" * 1_025, "x")


def test_what_is_not_a_type_does_not_count():
    comment = {"comment": "<" * 500, "fields": []}
    for _ in range(300):
        comment = {"type": "x", "metadata": comment}

    json_text.check_types({"type": "struct", "fields": [{"name": "a", "type": "long", **comment}]}, "x")


def test_a_deep_value_is_written_with_its_upper_levels():
    assert json_text.dumps(json.loads(lists(300))).count("[") == json_text.WRITTEN_LEVELS


@pytest.mark.parametrize("levels", [60, 99])
def test_a_data_file_of_many_levels_is_read_or_refused_with_the_limit(memory_root, levels):
    column = pa.array([1])
    for _ in range(levels):
        column = pa.StructArray.from_arrays([column], names=["a"])
    out = io.BytesIO()
    pq.write_table(pa.table({"deep": column}), out)
    table = DeltaTable(*memory_root, fields=[("deep", MARK)])
    table.write("a.parquet", out.getvalue())
    table.commit(protocol(), metadata(fields=[("deep", MARK)]), add("a.parquet", size=len(out.getvalue()), rows=1))
    name = "_delta_log/00000000000000000001.json"
    escaped = json.dumps(nested(DELTA[0], levels))[1:-1]
    content = table.filesystem.cat_file(f"{table.root}/{name}").decode().replace(f'\\"{MARK}\\"', escaped)
    table.write(name, content.encode())

    try:
        rows = open_table(table.url).current.to_arrow()
    except LimitError as error:
        message = str(error)
    else:
        message = ""
        assert rows["deep"].combine_chunks().equals(column.cast(rows["deep"].type))

    assert not message or (levels == 99 and "more levels than pyarrow reads" in message)


@pytest.mark.parametrize("levels", [1_100, 30_000])
def test_documents_of_users_are_refused_with_the_limit(tmp_path, levels):
    settings = tmp_path / "checks.toml"
    settings.write_text(f"rules = {lists(levels)}")
    options = tmp_path / "options.json"
    options.write_text(objects(levels))

    with pytest.raises(LimitError, match=r"The record of a lake has values within each other to .* limit is 1,024"):
        LakeSnapshot.from_json(f'{{"tables": {lists(levels)}}}')
    with pytest.raises(InvalidArgumentError, match="have values within each other to too many levels"):
        check(open_table(samples.path("orders")), config=settings)
    assert main(["log", samples.path("orders"), "--storage-options", str(options)]) == 2
