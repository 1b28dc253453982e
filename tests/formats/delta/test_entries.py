"""The entries of single files of the log, against plain reading of the same files."""

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.core import frames
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, MissingFileError
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import DeltaTable, add, cdc, commit_name, inline_vector, metadata, remove

TABLES = Path(__file__).parents[2] / "data" / "delta"


def opened(root):
    return Delta(Storage(str(root)))


def plain_actions(file):
    """Return the file actions of a file of the log, in order, read with the json module or with pyarrow alone."""
    if file.suffix == ".json":
        rows = [json.loads(line) for line in file.read_text().split("\n") if line.strip()]
    else:
        rows = pq.read_table(file).to_pylist(maps_as_pydicts="strict")
    return [(kind, row[kind]) for row in rows for kind in ("add", "remove") if row.get(kind)]


def plain_rows(action):
    stats = action.get("stats")
    reported = json.loads(stats) if stats else action.get("stats_parsed") or {}
    return reported.get("numRecords")


def plain_vector(action):
    vector = action.get("deletionVector")
    if not vector:
        return None, None
    at = f"@{vector['offset']}" if vector.get("offset") is not None else ""
    return f"{vector['storageType']}:{vector['pathOrInlineDv']}{at}", vector["cardinality"]


def plain(file):
    """Return what the entries of a file of the log are, but for the names of partition columns.

    A checkpoint says false of every file, whatever the commit said, so its entries say nothing of it.
    """
    return [
        (
            kind,
            unquote(action["path"]),
            sorted(str(value) for value in (action.get("partitionValues") or {}).values()),
            plain_rows(action),
            action.get("size"),
            *plain_vector(action),
            action.get("dataChange") if file.suffix == ".json" else None,
        )
        for kind, action in plain_actions(file)
    ]


def reported(entries):
    return [
        (
            row["change"],
            row["path"],
            sorted(str(value) for _, value in row["partition"]),
            *(row[name] for name in ("rows", "size_bytes", "deletion_vector", "deleted_rows", "data_change")),
        )
        for row in entries.to_pylist()
    ]


def repartitions(file):
    return file.suffix == ".json" and '"metaData"' in file.read_text() and '"remove"' in file.read_text()


@pytest.mark.parametrize("name", sorted(folder.name for folder in TABLES.iterdir()))
def test_entries_of_every_file_of_the_log_are_those_of_plain_reading(name):
    table_format = opened(TABLES / name)
    seen = 0

    for version in sorted(table_format.listing(0).reachable):
        for path in table_format.version(version).manifests()["path"].to_pylist():
            entries = table_format.version(version).entries(path)
            expected = plain(TABLES / name / path)
            known = reported(entries)
            if repartitions(TABLES / name / path):  # what it removes has no values of the columns in force then
                known, expected = ([(*one[:2], *one[3:]) for one in some] for some in (known, expected))
            assert known == expected
            assert entries.schema.equals(frames.ENTRIES)
            for column in ("bucket", "level", "schema_id"):
                assert entries[column].null_count == len(entries)
            seen += 1

    assert seen


@pytest.mark.parametrize("name", sorted(folder.name for folder in TABLES.iterdir()))
def test_manifests_count_the_entries_of_their_files(name):
    table_format = opened(TABLES / name)

    for version in sorted(table_format.listing(0).reachable):
        for row in table_format.version(version).manifests().to_pylist():
            changes = table_format.version(version).entries(row["path"])["change"].to_pylist()
            assert changes.count("add") == row["added_files"]
            if row["list"] == "delta":
                assert changes.count("remove") == row["removed_files"]


FORMS = (
    {"form": "classic"},
    {"form": "classic", "sidecars": 2},
    {"form": "multi-part", "parts": 3},
    {"form": "json"},
    {"form": "json", "sidecars": 1},
    {"form": "parquet", "sidecars": 3},
)


def test_every_form_of_checkpoint_tells_all_its_live_files_and_tombstones(tmp_path):
    table = DeltaTable(None, tmp_path, partition_by=["name"])
    table.commit(*(add(f"{number}", partition={"name": "a%20b"}, rows=number) for number in range(7)))
    table.commit(remove("3", partition={"name": "a%20b"}, size=500), add("x y", partition={"name": ""}, rows=2))
    live = {str(number) for number in range(7)} - {"3"} | {"x y"}

    for options in FORMS:
        paths = table.checkpoint(hint=False, **options)
        table_format = opened(tmp_path)

        manifests = table_format.version(table.version).manifests().to_pylist()

        entries = [
            row
            for one in manifests
            for row in table_format.version(table.version).entries(one["path"]).to_pylist(maps_as_pydicts="strict")
        ]
        assert {one["path"] for one in manifests} == set(paths)
        assert {row["path"] for row in entries if row["change"] == "add"} == live
        assert [row["path"] for row in entries if row["change"] == "remove"] == ["3"]
        assert {row["path"]: row["partition"] for row in entries}["x y"] == {"name": ""}
        for path in paths:
            table.remove_file(path)


FILES = st.lists(st.sampled_from(["add", "remove", "cdc", "txn"]), min_size=1, max_size=12)


@settings(max_examples=40, deadline=None)
@given(FILES, st.sampled_from(["\n", "\n\n", "\r\n", " \n"]))
def test_entries_come_in_the_order_of_the_lines_whatever_stands_between(tmp_path_factory, kinds, end):
    root = tmp_path_factory.mktemp("table")
    table = DeltaTable(None, root)
    lines = [
        {"add": add, "remove": remove, "cdc": cdc}[kind](f"{number}")
        if kind != "txn"
        else {"txn": {"appId": f"{number}", "version": 1}}
        for number, kind in enumerate(kinds)
    ]
    table.commit()
    table.write(commit_name(1), "".join(json.dumps(line) + end for line in lines).encode())

    entries = opened(root).version(1).entries(commit_name(1))

    expected = [(kind, str(number)) for number, kind in enumerate(kinds) if kind in ("add", "remove")]
    assert list(zip(entries["change"].to_pylist(), entries["path"].to_pylist(), strict=True)) == expected


def test_a_deletion_vector_that_is_replaced_is_a_remove_and_an_add(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("f", rows=9, vector=inline_vector([1])))
    table.commit(remove("f", size=500, vector=inline_vector([1])), add("f", rows=9, vector=inline_vector([1, 2])))

    entries = opened(tmp_path).version(2).entries(commit_name(2)).select(["change", "path", "deleted_rows"])

    assert entries.to_pylist() == [
        {"change": "remove", "path": "f", "deleted_rows": 1},
        {"change": "add", "path": "f", "deleted_rows": 2},
    ]


def test_partition_columns_are_called_as_at_the_commit(tmp_path):
    table = DeltaTable(None, tmp_path, partition_by=["name"])
    table.commit(add("a", partition={"name": "1"}))
    table.commit(metadata(partition_by=["id"]), add("b", partition={"id": "2"}))
    table_format = opened(tmp_path)

    found = [table_format.version(2).entries(commit_name(version))["partition"].to_pylist() for version in (1, 2)]

    assert found == [[[("name", "1")]], [[("id", "2")]]]


def test_a_file_that_the_version_is_not_made_of_is_refused(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a"))
    table.checkpoint()
    table.commit(add("b"))
    table_format = opened(tmp_path)

    for path in (commit_name(1), commit_name(3), "a", "../secret", "_delta_log/_last_checkpoint"):
        with pytest.raises(
            InvalidArgumentError, match=r"^Version 2 is not made of .*\. It is made of 2 files of the log"
        ):
            table_format.version(2).entries(path)


@pytest.mark.parametrize("cut", [0, 1, 100, -200, -9, -4])
def test_a_checkpoint_that_is_cut_short_is_named(tmp_path, cut):
    table = DeltaTable(None, tmp_path)
    table.commit(*(add(f"{number}") for number in range(50)))
    paths = table.checkpoint(form="parquet", sidecars=1)
    table_format = opened(tmp_path)
    side = next(path for path in paths if "_sidecars" in path)
    table.write(side, table.read(side)[:cut])

    with pytest.raises(CorruptTableError, match="The checkpoint file _delta_log/_sidecars/.* is damaged"):
        table_format.version(1).entries(side)


def test_a_commit_that_is_damaged_is_named_with_its_line(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a"))
    table_format = opened(tmp_path)
    table_format.version(1).manifests()
    table.write(commit_name(1), table.read(commit_name(1))[:-9])

    with pytest.raises(CorruptTableError, match=r"00001.json is damaged: line 2 is not an action"):
        table_format.version(1).entries(commit_name(1))


def test_a_sidecar_that_has_gone_is_named(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a"))
    side = next(path for path in table.checkpoint(form="json", sidecars=1) if "_sidecars" in path)
    table_format = opened(tmp_path)
    table.remove_file(side)

    with pytest.raises(MissingFileError, match=r"_delta_log/_sidecars/.* does not exist"):
        table_format.version(1).entries(side)


def test_a_large_checkpoint_is_read_a_row_group_at_a_time(tmp_path, monkeypatch):
    table = DeltaTable(None, tmp_path)
    table.commit(*(add(f"{number}", rows=number) for number in range(3_500)))
    (path,) = table.checkpoint()
    table_format = opened(tmp_path)
    whole = table_format.version(1).entries(path)
    monkeypatch.setattr("snapshot_explorer.formats.delta.metadata.checkpoints.WHOLE_FILE_BYTES", 1_000)

    assert opened(tmp_path).version(1).entries(path).equals(whole)
    assert pq.ParquetFile(tmp_path / path).num_row_groups == 4
    assert sorted(whole["rows"].to_pylist()) == list(range(3_500))


def test_after_a_damaged_commit_the_statistics_are_unknown_until_the_schema_is_set_again(tmp_path):
    table = DeltaTable(None, tmp_path / "table")
    for number in range(1, 5):
        again = [metadata()] if number == 4 else []
        table.commit(*again, add(f"{number}.parquet", stats={"numRecords": 1, "minValues": {"id": number}}))
    (tmp_path / "table" / commit_name(2)).write_text('{"add": broken')

    named = opened(tmp_path / "table").maintenance.statistics_files([0, 1, 2, 3, 4], 1, ["id"])

    assert [file.first for file in named.files] == [0, 1, 2, 3, 4]
    for (bounds,), version in zip(named.read([named.files[1], named.files[4]]), (1, 4), strict=True):
        assert bounds.lower["id"].to_pylist() == [version]
    for version in (2, 3):
        with pytest.raises(CorruptTableError, match="00000000000000000002.json is damaged"):
            named.read([named.files[version]])
