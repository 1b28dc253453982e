"""Timelines, properties and archives: what versions there are, and what is refused by name."""

import json
from pathlib import Path

import pytest

from snapshot_explorer import find_tables, open_table, samples
from snapshot_explorer.errors import (
    CorruptTableError,
    SnapshotNotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from tests.inner.hudi import parse_properties
from tests.inner.hudi import types_parse_fields as parse_fields
from tests.support.hudi import table_builder
from tests.support.hudi.table_builder import SCHEMA, HudiTable, completion, text

DATA = Path(__file__).parents[2] / "data" / "hudi"


@pytest.fixture
def table(memory_root):
    built = HudiTable(*memory_root)
    for number in range(3):
        built.insert([(number, "a")])
    return built


def opened(table):
    return open_table(f"memory://{table.root}")


def versions(table):
    return opened(table).history().to_arrow()["version"].to_pylist()[::-1]


def test_properties_are_those_of_java():
    content = '#c\n! c\na.b = 1\nschema={\\"a\\"\\:1}\nlong=x\\\n   y\nempty\nkey\\ with:v\\u0041\\n'

    assert dict(parse_properties(content)) == {
        "a.b": "1",
        "schema": '{"a":1}',
        "long": "xy",
        "empty": "",
        "key with": "vA\n",
    }


def test_a_table_is_found_by_its_path(table, memory_root):
    parent = table.root.rpartition("/")[0]

    assert opened(table).format == "hudi"
    found = find_tables(f"memory://{parent}").to_arrow().to_pylist()
    assert [(row["format"], row["version"]) for row in found if row["path"].endswith(table.root)] == [("hudi", 3)]


def test_times_of_writers_in_unrecorded_zones_are_said_to_be_that():
    local, utc = open_table(DATA / "v9_cow_basic"), open_table(samples.path("rides"))

    assert "zones that are not recorded: hoodie.table.timeline.timezone is not UTC" in repr(local.history())
    assert "zone" not in repr(utc.history())


def test_only_completed_writes_are_versions(table):
    for name in ("00000000000000009.deltacommit.inflight", "00000000000000009.deltacommit.requested"):
        table.write(f".hoodie/timeline/{name}", "")
    table.write(f".hoodie/timeline/{text(8)}_{completion(8)}.clean", "")
    table.write(f".hoodie/timeline/{text(7)}_{completion(7)}.commit.temp", "")

    assert versions(table) == [1, 2, 3]
    with pytest.raises(SnapshotNotFoundError, match=r"The instant 9 of .* is not a version: it is a deltacommit"):
        opened(table).at(9)
    with pytest.raises(SnapshotNotFoundError, match="The newest version before it is 3"):
        opened(table).at(4)


def test_an_empty_commit_is_a_version_without_files(table):
    table.number += 1
    table.write(f".hoodie/timeline/{text(4)}_{completion(4)}.commit", b"")

    assert versions(table) == [1, 2, 3, 4]
    assert opened(table).at(4).count() == 3


def test_a_version_in_the_middle_is_seen_by_an_update(table):
    known = opened(table)
    table.number = 9
    table.insert([(9, "z")])
    known.update()
    table.number = 4
    table.insert([(5, "late")])

    assert known.update().version == 10
    assert known.history().to_arrow()["version"].to_pylist() == [10, 5, 3, 2, 1]
    assert known.at(10).count() == 5


def test_a_rolled_back_version_is_named_in_its_error(table):
    rolled_back = {"commitsRollback": [text(4)], "instantsRollback": [{"commitTime": text(4), "action": "commit"}]}
    table.write(f".hoodie/timeline/{text(5)}_{completion(5)}.rollback", json.dumps(rolled_back))

    with pytest.raises(SnapshotNotFoundError, match=rf"was removed by the rollback at {text(5)}"):
        opened(table).at(4)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"hoodie.table.version": "10"}, "has the Hudi table version 10; 1 to 9 are supported"),
        ({"hoodie.table.version": "0"}, "has the Hudi table version 0"),
        ({"hoodie.timeline.layout.version": "3"}, "has the timeline layout 3"),
        ({"hoodie.table.format": "iceberg"}, "keeps its timeline in the format 'iceberg'"),
        ({"hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA"}, "is the metadata table of a Hudi table"),
    ],
)
def test_a_table_of_another_version_or_form_is_refused_by_name(memory_root, properties, message):
    built = HudiTable(*memory_root, properties=properties)
    built.insert([(1, "a")])

    with pytest.raises(UnsupportedFeatureError, match=message):
        opened(built)


def test_damaged_properties_are_read_from_their_backup(table, memory_root):
    filesystem, root = memory_root
    path = f"{root}/.hoodie/hoodie.properties"
    filesystem.pipe_file(f"{path}.backup", filesystem.cat_file(path))
    filesystem.pipe_file(path, b"")

    assert versions(table) == [1, 2, 3]
    filesystem.rm_file(f"{path}.backup")
    with pytest.raises(TableNotFoundError, match="missing or empty, and so is its backup"):
        opened(table)


def test_a_table_without_commits_is_empty(memory_root):
    built = HudiTable(*memory_root)

    assert opened(built).current.version is None
    assert opened(built).current.to_arrow().num_rows == 0


@pytest.mark.parametrize("content", [b"{", b"[1]", b"Obj\x01\x00\x01", b'{"partitionToWriteStats": {"": [1]}}'])
def test_a_damaged_commit_is_named(table, content):
    table.write(f".hoodie/timeline/{text(3)}_{completion(3)}.commit", content)

    with pytest.raises(CorruptTableError, match=text(3)):
        opened(table)


def test_hudi_tables_have_no_branches(table):
    with pytest.raises(TableNotFoundError, match="Hudi tables have no branches"):
        open_table(f"memory://{table.root}", branch="dev")


def test_columns_of_types_that_are_not_read_are_refused_by_name():
    union = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int", "string"]}]}'
    variant = union.replace('["null", "int", "string"]', '{"type": "bytes", "logicalType": "variant"}')

    with pytest.raises(UnsupportedFeatureError, match="one of the types int, string"):
        parse_fields(union, "a schema")
    with pytest.raises(UnsupportedFeatureError, match="has the type 'variant'"):
        parse_fields(variant, "a schema")
    with pytest.raises(CorruptTableError, match="The Avro schema in a schema cannot be read"):
        parse_fields("{", "a schema")


def test_schema_on_read_is_refused_by_name():
    folder = DATA / "v6_cow_schema_on_read"

    with pytest.raises(UnsupportedFeatureError, match="were changed by schema on read before version"):
        open_table(folder).current.to_arrow()


def test_bootstrapped_files_are_refused_by_name():
    table = open_table(DATA / "v6_cow_bootstrap_metadata")

    with pytest.raises(UnsupportedFeatureError, match="has only the keys of rows"):
        table.at("earliest").to_arrow()


def test_base_files_of_other_formats_are_refused_by_name(memory_root):
    built = HudiTable(*memory_root)
    built.number = 1
    name = f"data-1_0-0-0_{text(1)}.lance"
    built.write(name, b"x")
    built.commit([built.stat("data-1", name, b"x", [1])])

    assert opened(built).current.files().num_rows == 1
    with pytest.raises(UnsupportedFeatureError, match="is not a parquet or ORC file"):
        opened(built).current.to_arrow()


def test_dropped_partition_columns_are_refused_where_paths_do_not_contain_them(memory_root):
    properties = {
        "hoodie.datasource.write.drop.partition.columns": "true",
        "hoodie.table.partition.fields": "a,b",
        "hoodie.table.keygenerator.type": "COMPLEX",
    }
    built = HudiTable(*memory_root, properties=properties)
    built.insert([(1, "x")])

    with pytest.raises(UnsupportedFeatureError, match="The partition columns a, b are not in the data files"):
        opened(built).current.to_arrow()


def test_changes_of_a_table_with_a_column_rowkind_are_refused_by_name(memory_root, monkeypatch):
    built = HudiTable(*memory_root)
    renamed = json.loads(json.dumps(SCHEMA).replace('"name": "name"', '"name": "rowkind"'))
    monkeypatch.setattr(table_builder, "SCHEMA", renamed)
    for number in range(2):
        built.insert([(number, "a")])

    with pytest.raises(UnsupportedFeatureError, match="The table has a column rowkind"):
        opened(built).row_changes(1, 2)


def test_partitions_without_an_archive_are_listed_again_only_after_files_may_have_been_removed(counted, table):
    found = open_table(f"counted://{table.root}")
    lists = []
    for change in (None, "insert", "clean"):
        if change == "insert":
            table.insert([(7, "b")])
        elif change == "clean":
            table.write(f".hoodie/timeline/{text(9)}.clean.inflight", b"")
        counted.requests.clear()
        found.update()
        assert found.current.files().num_rows == table.number
        lists.append(len([one for one in counted.requests if one.kind == "list" and ".hoodie" not in one.path]))

    assert lists == [1, 0, 1]
