"""What other writers leave out or record wrongly, and Iceberg's own readers read nevertheless."""

import copy
import json
import shutil
from pathlib import Path

import fsspec
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from tests.support.iceberg.rewriting import manifest_lists, manifests, rewrite, set_lengths, without_ids
from tests.support.iceberg.table_builder import ADDED, MANIFEST_LIST, IcebergTable, avro, entry, manifest_schema

TABLES = sorted((Path(__file__).parents[2] / "data" / "iceberg").iterdir())


@pytest.fixture
def copied(tmp_path):
    def copy_of(path):
        shutil.copytree(path, tmp_path / "t")
        return tmp_path / "t"

    return copy_of


class ThreeFiles(IcebergTable):
    """A table whose commits add several files, with the number of values in their columns."""

    def data_file(self, name, rows):
        return super().data_file(name, rows) | {"value_counts": [{"key": 1, "value": len(rows)}]}

    def commit_files(self, files):
        """Add a data file for each list of rows."""
        snapshot_id = self.commit(None)
        added = [self.data_file(f"f{number}.parquet", rows) for number, rows in enumerate(files)]
        snapshot = self.metadata["snapshots"].pop()
        self.metadata["snapshot-log"].pop()
        self.manifests[snapshot_id] = [self.manifest(snapshot_id, [entry(ADDED, one, snapshot_id) for one in added])]
        totals = {"total-records": str(sum(map(len, files))), "total-data-files": str(len(files))}
        summary = {"operation": "append"} | totals
        self.add_snapshot(snapshot_id, None, summary, millis=snapshot["timestamp-ms"])


def _answers(table):
    """Return what every version of a table contains and changed."""
    versions = table.versions()
    return (
        table.history().to_arrow().drop(["details"]),
        [table.at(version).to_arrow() for version in versions],
        [table.at(version).files(statistics=True).to_arrow() for version in versions],
        [table.at(version).manifests().to_arrow().drop(["size_bytes"]) for version in versions],
        table.at("latest").file_changes(since="earliest").to_arrow(),
    )


@pytest.mark.parametrize("where", ["lists", "manifests", "both"])
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_manifests_and_lists_without_field_ids_are_read_by_name(copied, path, where):
    expected = _answers(open_table(path))
    root = copied(path)
    for name in manifests(root) if where != "lists" else ():
        rewrite(name, schema=without_ids)
    set_lengths(root)
    for name in manifest_lists(root) if where != "manifests" else ():
        rewrite(name, schema=without_ids)

    assert _answers(open_table(root)) == expected


def _counts(table):
    """Return what a table says about the number of its rows, and its rows."""
    snapshot = table.current
    return {
        "count": snapshot.count(),
        "sql": table.sql("select count(*) n from this")["n"].item(),
        "rows": snapshot.to_arrow().num_rows,
        "limit": snapshot.to_arrow(limit=2).num_rows,
        "none": snapshot.to_arrow(columns=[]).num_rows,
        "files": snapshot.files()["rows"].to_pylist(),
    }


def _rewritten_counts(root, *, record, listed=lambda one: one, summary=None):
    """Change the entries of manifests, the records of lists and the summaries of snapshots."""
    for path in manifests(root):
        rewrite(path, record=lambda one: one | {"data_file": record(dict(one["data_file"]))})
    set_lengths(root)
    for path in manifest_lists(root):
        rewrite(path, record=listed)
    for path in (root / "metadata").glob("*.metadata.json"):
        metadata = json.loads(path.read_text())
        for snapshot in metadata["snapshots"]:
            snapshot["summary"] |= summary or {}
        path.write_text(json.dumps(metadata))


def _with(**changed):
    return lambda one: one | {name: value(one) if callable(value) else value for name, value in changed.items()}


_KNOWN, _UNKNOWN = [2, 1, 3], [None, None, None]
_NO_VALUES = {"value_counts": None}
_STAMPED = {"record_count": 6, "file_size_in_bytes": 9_000, "value_counts": None}
_LISTED = {"added_rows_count": lambda one: one["added_rows_count"] and 99}


@pytest.mark.parametrize(
    ("changed", "known"),
    [
        ({"record": _with(record_count=99), "listed": _with(**_LISTED)}, _UNKNOWN),
        ({"record": _with(record_count=99)}, _UNKNOWN),
        ({"record": _with(record_count=0)}, _UNKNOWN),
        ({"record": _with(record_count=1)}, [None, 1, None]),
        ({"record": _with(record_count=99), "listed": _with(**_LISTED), "summary": {"total-records": "198"}}, _UNKNOWN),
        ({"record": _with(record_count=99, **_NO_VALUES), "listed": _with(**_LISTED)}, _UNKNOWN),
        ({"record": _with(record_count=99, **_NO_VALUES)}, _UNKNOWN),
        ({"record": _with(record_count=99, **_NO_VALUES), "summary": {"total-records": "none"}}, _UNKNOWN),
        ({"record": _with(**_STAMPED), "listed": _with(added_rows_count=6)}, _UNKNOWN),
        (
            {"record": _with(**_STAMPED), "listed": _with(added_rows_count=6), "summary": {"total-records": "x"}},
            _UNKNOWN,
        ),
        ({"record": _with(value_counts=[{"key": 1, "value": 7}])}, _UNKNOWN),
        ({"record": _with(), "listed": _with(**_LISTED)}, _KNOWN),
        ({"record": _with(), "summary": {"total-records": "77"}}, _KNOWN),
        ({"record": _with(**_NO_VALUES)}, _KNOWN),
        ({"record": _with(**_NO_VALUES), "listed": _with(added_rows_count=-1, existing_rows_count=-1)}, _KNOWN),
        ({"record": _with(), "listed": _with(existing_files_count=5), "summary": {"total-data-files": "3"}}, _KNOWN),
    ],
)
def test_numbers_of_rows_that_contradict_each_other_are_counted_in_the_files(tmp_path, changed, known):
    table = ThreeFiles(fsspec.filesystem("file", auto_mkdir=True), str(tmp_path), location=f"file://{tmp_path}")
    table.commit_files([[(1, "a"), (2, "b")], [(3, "c")], [(4, "d"), (5, "e"), (6, "f")]])
    expected = _counts(open_table(tmp_path))
    _rewritten_counts(tmp_path, **changed)

    read = _counts(open_table(tmp_path))

    assert read == expected | {"files": known}


class PartitionedTable(IcebergTable):
    """A table that is partitioned by both of its columns, which have the names of other fields of manifests."""

    def __init__(self, *args, names, ids):
        super().__init__(*args)
        (first, second), (self.first, self.second) = names, ids
        fields = self.metadata["schemas"][0]["fields"]
        renamed = [one | {"name": name} for one, name in zip(fields, names, strict=True)]
        self.metadata["schemas"] = [self.metadata["schemas"][0] | {"fields": renamed}]
        spec = [
            {"source-id": 1, "field-id": self.first, "name": first, "transform": "identity"},
            {"source-id": 2, "field-id": self.second, "name": second, "transform": "identity"},
        ]
        self.metadata["partition-specs"] = [{"spec-id": 0, "fields": spec}]
        self.schema = manifest_schema(
            {"name": first, "type": ["null", "long"], "field-id": self.first},
            {"name": second, "type": ["null", "string"], "field-id": self.second},
        )

    def manifest(self, snapshot_id, entries, *, schema=None, **more):
        names = [one["name"] for one in self.metadata["schemas"][0]["fields"]]
        entries = [
            one | {"data_file": one["data_file"] | {"partition": dict(zip(names, (7, "p"), strict=True))}}
            for one in entries
        ]
        return super().manifest(snapshot_id, entries, schema=schema or self.schema, **more)


@pytest.mark.parametrize("names", [("key", "value"), ("content", "status"), ("record_count", "partition"), ("a", "b")])
@pytest.mark.parametrize("has_ids", [True, False])
def test_partition_fields_may_have_the_names_of_other_fields_of_a_manifest(memory_root, names, has_ids):
    table = PartitionedTable(*memory_root, names=names, ids=(1000, 1001))
    table.schema = table.schema if has_ids else without_ids(table.schema)
    table.commit([(1, "x")])

    snapshot = open_table(f"memory://{table.root}").current

    assert snapshot.to_arrow().to_pylist() == [dict(zip(names, (7, "p"), strict=True))]
    assert snapshot.files()["partition"].to_pylist() == [list(zip(names, ("7", "p"), strict=True))]


@pytest.mark.parametrize("id_of", ["partition_spec_id", "content"])
def test_fields_without_an_id_are_not_found_where_others_have_one(memory_root, id_of):
    table = IcebergTable(*memory_root)
    table.commit([(1, "x")])
    schema = without_ids(MANIFEST_LIST)
    fields = [
        one | ({"field-id": own["field-id"]} if one["name"] == id_of else {})
        for one, own in zip(schema["fields"], MANIFEST_LIST["fields"], strict=True)
    ]
    table.write("metadata/snap-1000001-1.avro", avro(schema | {"fields": fields}, table.manifests[1_000_001]))

    with pytest.raises(CorruptTableError, match="a manifest in it has no path"):
        open_table(f"memory://{table.root}").current.to_arrow()


def test_older_names_of_counts_are_unknown_without_ids(memory_root):
    table = IcebergTable(*memory_root)
    table.commit([(1, "x"), (2, "y")])
    schema = without_ids(copy.deepcopy(MANIFEST_LIST))
    records = [dict(one) for one in table.manifests[1_000_001]]
    for field in schema["fields"]:
        if field["name"].endswith("_files_count"):
            older = field["name"].replace("_files_", "_data_files_")
            records = [{older if name == field["name"] else name: one[name] for name in one} for one in records]
            field["name"] = older
    table.write("metadata/snap-1000001-1.avro", avro(schema, records))

    assert open_table(f"memory://{table.root}").current.to_arrow()["id"].to_pylist() == [1, 2]
