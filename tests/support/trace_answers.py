"""A trace against brute force: the rows of all versions, data files and changelogs, and the statistics in metadata."""

import json
import struct
from functools import cache
from io import BytesIO

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet as pq
from fastavro._read import BLOCK_READERS
from fastavro.io.binary_decoder import BinaryDecoder

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.history import history_of
from tests.support.paimon.binary_rows import integer_in

NOWHERE = 123_456
"""A value that hardly any row has."""


def _unzstd(content):
    block = pa.BufferReader(BinaryDecoder(content).read_bytes())
    return BytesIO(pa.CompressedInputStream(block, "zstd").read())


def _unsnappy(content):
    block = BinaryDecoder(content).read_bytes()[:-4]  # its checksum
    size = sum((byte & 127) << 7 * place for place, byte in enumerate(block[: next(_varint_ends(block))]))
    return BytesIO(pa.decompress(block, size, codec="snappy", asbytes=True))


def _varint_ends(block):
    return (place + 1 for place, byte in enumerate(block) if byte < 128)


BLOCK_READERS.update({"zstandard": _unzstd, "snappy": _unsnappy})  # without other packages


def column_and_values(table):
    """Return a column of integers that all versions have, and some of its values, and another."""
    names = [field.name for field in table.current.arrow_schema if pa.types.is_integer(field.type)]
    ids = {(column.name, column.id) for version in table.versions() for column in _columns(table, version)}
    for name in names:
        if sum(name == other for other, _ in ids) > 1:
            continue  # another column had the name
        for version in table.versions():
            values = _live_values(table, version, name)
            if values is not None and len(known := sorted(set(values.drop_null().to_pylist()))):
                return name, [*{known[0], known[len(known) // 2]}, NOWHERE]
    return None


def assert_trace_is_brute_force(folder, table, name, value):
    """Assert that the trace of an integer in a local table finds what brute force finds; return the trace."""
    trace = table.trace(f'"{name}" = {value}')
    own = table.current.branch or history_of(table).table_format.branches.main
    rows = [row for row in trace.versions.to_arrow().to_pylist() if row["branch"] == own]
    for row in rows:
        if row["version"] not in table.versions():
            assert row["rows"] is None
            continue
        live = _live_values(table, row["version"], name)
        # Of a version that cannot be read, or has another name for the column, metadata may prove the number.
        if None not in (row["rows"], live):
            assert row["rows"] == _count(live, value), row
    files = trace.files.to_arrow().to_pylist()
    changelogs = trace.changelogs.to_arrow().to_pylist()
    for row, count in [(row, row["stored_rows"]) for row in files] + [(row, row["rows"]) for row in changelogs]:
        stored = _count(_stored_values(folder / row["path"], name), value)
        if None not in (count, stored):
            assert count == stored, row
    metadata = trace.metadata.to_arrow().to_pylist()
    _assert_metadata(folder, table, name, value, metadata)
    if trace.verdict == "No version returns a matching row, and no data file of a version stores one.":
        assert trace.is_complete
        assert all(row["rows"] == 0 for row in [*rows, *changelogs])
        assert not metadata
    return trace


def _columns(table, version):
    try:
        return table.at(version).schema.columns
    except SnapshotExplorerError:
        return ()


@cache
def _live_values(table, version, name):
    """Return the values of a version; None where it cannot be read, or has no column of that name."""
    try:
        return table.at(version).to_arrow(columns=[name])[name]
    except SnapshotExplorerError:
        return None


@cache
def _stored_values(file, name):
    """Return the values that a file stores; None where it has no plain column of that name."""
    if file.suffix not in (".parquet", ".orc") or not file.exists():
        return None
    read = pq.read_table if file.suffix == ".parquet" else pyarrow.orc.read_table
    try:
        rows = read(str(file), **({"partitioning": None} if file.suffix == ".parquet" else {}))
    except pa.ArrowInvalid:
        return None  # times that pyarrow does not read
    return rows[name] if rows.column_names.count(name) == 1 else None


def _count(values, value):
    """Return how often a value is among others; None where these are not known."""
    return None if values is None else pc.sum(pc.equal(values, value)).as_py() or 0


def _assert_metadata(folder, table, name, value, metadata):
    """Assert that exactly the metadata files are named whose recorded minima or maxima contain the value."""
    bounds = _recorded(folder, table, name)
    if bounds is None:
        return
    expected = {path for path, values in bounds.items() if value in values}
    assert {row["path"] for row in metadata if row["columns"]} == expected


@cache
def _recorded(folder, table, name):
    return _RECORDED[table.format](folder, table, name)


def _of_log(folder, table, name):
    """Return the minima and maxima of a column in each file of a Delta log; None where its names differ in files."""
    files = [file for file in (folder / "_delta_log").rglob("*") if file.suffix in (".json", ".parquet")]
    files = [file for file in files if not file.name.endswith(".compacted.json") and file.stat().st_size]
    texts = {file: _actions(file) for file in files}
    if any("delta.columnMapping.physicalName" in str(actions) for actions in texts.values()):
        return None
    bounds = {}
    for file, actions in texts.items():
        values = bounds[file.relative_to(folder).as_posix()] = set()
        for action in actions:
            for body in (action.get("add"), action.get("remove")):
                values |= _of_action(body or {}, name)
    return bounds


@cache
def _actions(file):
    if file.suffix == ".parquet":
        return pq.read_table(str(file), partitioning=None).to_pylist(maps_as_pydicts="lossy")
    return [json.loads(line) for line in file.read_text().splitlines() if line.strip()]


def _of_action(body, name):
    stats = json.loads(body.get("stats") or "{}") or body.get("stats_parsed") or {}
    values = {(stats.get(end) or {}).get(name) for end in ("minValues", "maxValues")}
    text = (body.get("partitionValues") or {}).get(name)
    return values - {None} | ({int(text)} if text else set())


def _of_manifests(folder, table, name):
    """Return the minima and maxima of a column in each Iceberg manifest of a version of a branch."""
    branches = [
        open_table(str(folder), branch=name)
        for name in (*history_of(table).branch_names(), *history_of(table).table_format.branches.detached_heads())
    ]
    paths = {path for branch in branches for version in branch.versions() for path in _manifests(branch, version)}
    number = table.current.schema.columns[table.current.arrow_schema.names.index(name)].id
    bounds = {}
    for path in paths:
        with (folder / path).open("rb") as content:
            entries = [entry["data_file"] for entry in fastavro.reader(content)]
        bounds[path] = {
            int.from_bytes(item["value"], "little", signed=True)
            for entry in entries
            for end in ("lower_bounds", "upper_bounds")
            for item in entry.get(end) or ()
            if item["key"] == number
        }
    return bounds


def _manifests(table, version):
    return table.at(version).manifests().to_arrow()["path"].to_pylist()


def _of_entries(folder, table, name):
    """Return the minima and maxima of a column in each Paimon manifest of a version; None if not in Avro."""
    if any(branch != "main" for branch in history_of(table).branch_names()):
        return None
    schemas = {int(file.name[7:]): json.loads(file.read_text()) for file in (folder / "schema").glob("schema-*")}
    number = table.current.schema.columns[table.current.arrow_schema.names.index(name)].id
    bounds = {}
    for version in table.versions():
        frame = table.at(version).manifests().to_arrow()
        for path, kind in zip(frame["path"].to_pylist(), frame["list"].to_pylist(), strict=True):
            content = (folder / path).read_bytes()
            if content[:3] != b"Obj":
                return None
            if kind != "index" and path not in bounds:
                bounds[path] = _of_files(folder / path, schemas, number)
    return bounds


def _of_files(path, schemas, number):
    values = set()
    with path.open("rb") as content:
        for entry in fastavro.reader(content):
            file = entry["_FILE"]
            schema = schemas[file["_SCHEMA_ID"]]
            by_name = {field["name"]: field for field in schema["fields"]}
            columns = file.get("_VALUE_STATS_COLS") or file.get("_WRITE_COLS") or list(by_name)
            keys = [key for key in schema["primaryKeys"] if key not in schema["partitionKeys"]]
            rows = [(file["_VALUE_STATS"][end], columns) for end in ("_MIN_VALUES", "_MAX_VALUES")]
            rows += [(file["_KEY_STATS"][end], keys) for end in ("_MIN_VALUES", "_MAX_VALUES")]
            rows += [(file[end], keys) for end in ("_MIN_KEY", "_MAX_KEY")]
            for row, names in rows:
                for position, name in enumerate(names):
                    if by_name.get(name, {}).get("id") == number and struct.unpack_from(">i", row)[0] > position:
                        values.add(integer_in(row, position, by_name[name]["type"].split()[0]))
    return values - {None}


_RECORDED = {"delta": _of_log, "iceberg": _of_manifests, "paimon": _of_entries, "hudi": lambda *_: {}}
