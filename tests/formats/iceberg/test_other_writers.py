"""What other writers leave out or record wrongly, and Iceberg's own readers read nevertheless."""

import copy
import shutil
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from tests.support.iceberg.rewriting import manifest_lists, manifests, rewrite, set_lengths, without_ids
from tests.support.iceberg.table_builder import MANIFEST_LIST, IcebergTable, avro, manifest_schema

TABLES = sorted((Path(__file__).parents[2] / "data" / "iceberg").iterdir())


@pytest.fixture
def copied(tmp_path):
    def copy_of(path):
        shutil.copytree(path, tmp_path / "t")
        return tmp_path / "t"

    return copy_of


def _answers(table):
    """Return what every version of a table contains and changed."""
    versions = table.versions()
    return (
        table.history().to_arrow().drop(["details"]),
        [table.at(version).to_arrow() for version in versions],
        [table.at(version).files(statistics=True).to_arrow() for version in versions],
        [table.at(version).manifests().to_arrow().drop(["size_bytes"]) for version in versions],
        table.file_changes().to_arrow(),
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
