"""Where rows still are: against brute force over the versions and the data files, and with files that are gone."""

import os
import re
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import fsspec
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable, metadata, remove
from tests.support.filesystems import counting
from tests.support.iceberg.table_builder import SCHEMA, IcebergTable
from tests.support.row_histories import KINDS as MODELS
from tests.support.row_histories import STEPS, play
from tests.support.trace_answers import assert_trace_is_brute_force, column_and_values

DATA = Path(__file__).parents[1] / "data"
KINDS = ("delta", "iceberg", "paimon", "hudi")
FIELDS = [("id", "long"), ("name", "string")]


CHECKED = {
    "delta": ["change_feed", "dv_partitioned", "vacuumed", "schema_changes", "cleaned_log", "widened", "row_tracking"],
    "iceberg": ["branches_tags", "v2_equality_deletes", "v2_mor_partitioned"],
    "paimon": [
        "append_parquet",
        "append_orc",
        "dv",
        "dv_append",
        "expired",
        "aggregation",
        "first_row",
        "changelog_full",
    ],
    "hudi": ["v9_cow_basic", "v9_mor_basic", "v9_cow_savepoint_restored"],
}


@pytest.mark.parametrize("path", [f"{kind}/{name}" for kind in KINDS for name in CHECKED[kind]])
def test_a_trace_is_what_brute_force_over_versions_files_and_metadata_finds(path):
    table = open_table(str(DATA / path))
    found = column_and_values(table)
    if found is None:
        pytest.skip("no column of integers")
    name, values = found
    for value in values:
        assert_trace_is_brute_force(DATA / path, table, name, value)


@pytest.mark.parametrize("kind", sorted(MODELS))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_a_trace_counts_the_rows_of_a_model(kind, steps):
    model = play(kind, fsspec.filesystem("memory"), f"/{uuid4()}", steps)

    trace = open_table(model.url).trace("id > 1 AND name IS NOT NULL")

    by_number = {row["version"]: row for row in trace.versions.to_arrow().to_pylist()}
    for version, rows in zip(model.versions, model.rows, strict=True):
        live = sum(key > 1 and row[1] is not None for key, row in rows.items())
        stored = by_number[version]["stored_rows"]
        assert by_number[version]["rows"] == live
        assert stored is None or stored >= live


@pytest.fixture
def table(tmp_path):
    """A row that is deleted by a vector, then by rewriting its file."""
    table = DeltaTable(None, tmp_path, fields=FIELDS, features=["deletionVectors"])
    first = table.data("a.parquet", [(1, "a"), (42, "x")])
    table.commit(first)
    vector = table.vector([1])
    table.commit(remove("a.parquet"), first | {"add": first["add"] | {"deletionVector": vector}})
    table.commit(remove("a.parquet", vector=vector), table.data("b.parquet", [(1, "a")]))
    return table


def test_deleted_rows_that_a_file_still_stores_are_counted(table):
    trace = open_table(table.root).trace("id = 42")

    assert trace.versions.to_arrow().select(["version", "rows", "stored_rows"]).to_pylist() == [
        {"version": 0, "rows": 0, "stored_rows": 0},
        {"version": 1, "rows": 1, "stored_rows": 1},
        {"version": 2, "rows": 0, "stored_rows": 1},
        {"version": 3, "rows": 0, "stored_rows": 0},
    ]
    assert (
        trace.verdict
        == "Version 1 returns matching rows. They have been there since version 1, of 2026-01-01 00:01:00.000Z."
    )
    assert trace.is_complete
    assert "removes 0 of 1 file" in trace.holds


def test_rows_that_no_version_returns_may_still_be_stored(table, tmp_path):
    table.checkpoint(2)
    for version in (0, 1):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    trace = open_table(table.root).trace("id = 42")

    assert "No version returns a matching row, but 1 data file stores some" in trace.verdict
    assert trace.files.to_arrow().filter(pc.field("path") == "a.parquet")["stored_rows"].to_pylist() == [1]


def test_when_retention_removes_the_last_file_with_matching_rows_is_stated(table, tmp_path):
    modified = datetime.now(UTC) - timedelta(days=1)
    os.utime(tmp_path / "a.parquet", times=(modified.timestamp(), modified.timestamp()))
    trace = open_table(table.root).trace("id = 42")
    time = re.search(r"Without further commits, a clean-up from (\S+ \S+)Z on removes the last of them", trace.holds)[1]

    assert timedelta() <= datetime.fromisoformat(f"{time}+00:00") - modified - timedelta(days=7) <= timedelta(minutes=1)
    kept = open_table(table.root).trace("id = 1").holds
    assert "Without further commits, no clean-up of the next 10 years removes the last of them." in kept


def test_what_cannot_be_read_is_never_called_gone(table, tmp_path):
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(b"x" * len(content))
    trace = open_table(table.root).trace("id = 42")

    assert not trace.is_complete
    assert trace.verdict == "No matching row was found, but not everything could be examined: this proves nothing."
    assert [row["rows"] for row in trace.versions.to_arrow().to_pylist()][1] is None
    assert "unreadable" in repr(trace)
    assert "Not known in version" in repr(trace)


def test_versions_that_expire_while_they_are_traced_are_unknown_and_never_called_gone(memory_root, register):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root, fields=FIELDS)
    table.commit(table.data("a.parquet", [(42, "x")]))
    table.commit(remove("a.parquet"), table.data("b.parquet", [(42, "y")]))
    table.commit(remove("b.parquet"), table.data("c.parquet", [(1, "z")]))
    table.checkpoint()
    system = register(counting())

    class WithWriter(system):
        def cat_file(self, path, **options):
            if path.endswith("a.parquet") and filesystem.exists(f"{root}/b.parquet"):
                for version in (0, 1, 2):
                    filesystem.rm_file(f"{root}/_delta_log/{version:020}.json")
                filesystem.rm_file(f"{root}/b.parquet")
            return super().cat_file(path, **options)

    register(WithWriter)
    trace = open_table(f"counted://{root}").trace("id = 42")

    rows = {row["version"]: row["rows"] for row in trace.versions.to_arrow().to_pylist()}
    assert rows == {0: 0, 1: 1, 2: None, 3: 0}
    assert not trace.is_complete
    assert re.search(r"Not known in version 2: .*b\.parquet", repr(trace))


def test_each_file_is_read_once_and_commits_not_for_each_version_after_them(memory_root, register):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root, fields=FIELDS)
    for number in range(20):
        table.commit(table.data(f"{number}.parquet", [(number % 5, "x")]))
    system = register(counting())
    trace = open_table(f"counted://{root}").trace("id = 4")

    assert trace.versions.to_arrow().sort_by("version")["rows"].to_pylist() == [number // 5 for number in range(21)]
    reads = Counter(request.path for request in system.requests if request.kind == "get")
    assert {count for path, count in reads.items() if path.endswith(".parquet")} == {1}
    assert max(reads.values()) < 20


def test_a_file_that_is_missing_stores_nothing_but_its_versions_are_unknown(table, tmp_path):
    (tmp_path / "a.parquet").unlink()
    trace = open_table(table.root).trace("id = 42")
    by_path = {row["path"]: row for row in trace.files.to_arrow().to_pylist()}

    assert by_path["a.parquet"]["evidence"] == "missing"
    assert [row["rows"] for row in trace.versions.to_arrow().to_pylist()] == [0, None, None, 0]
    assert "proves nothing" in trace.verdict


def test_statistics_that_name_the_value_are_reported(tmp_path):
    table = DeltaTable(None, tmp_path, fields=FIELDS)
    stats = {"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 42}, "nullCount": {"id": 0}}
    table.commit(table.data("a.parquet", [(1, "a"), (42, "x")], stats=stats))
    table.commit(table.data("b.parquet", [(7, "b")], stats=stats | {"maxValues": {"id": 7}, "numRecords": 1}))
    trace = open_table(str(tmp_path)).trace("id = 42")
    by_path = {row["path"]: row for row in trace.files.to_arrow().to_pylist()}

    assert by_path["a.parquet"]["bounds_name_value"]
    assert by_path["b.parquet"] == {
        "path": "b.parquet",
        "evidence": "metadata",
        "stored_rows": 0,
        "bounds_name_value": False,
        "reason": None,
    }
    assert trace.metadata.to_arrow().select(["path", "what", "columns", "first_version", "outcome"]).to_pylist() == [
        {
            "path": "_delta_log/00000000000000000001.json",
            "what": "commit",
            "columns": ["id"],
            "first_version": 1,
            "outcome": None,
        }
    ]
    assert trace.verdict.endswith(" The statistics in 1 metadata file name a matching value too.")
    wider = open_table(str(tmp_path)).trace("id > 5")
    assert wider.files.to_arrow()["bounds_name_value"].null_count == 2
    assert len(wider.metadata) == 2
    both = open_table(str(tmp_path)).trace("id = 42 OR name = 'x'")
    assert not both.is_complete
    assert "Statistics of id, name were not examined: the condition is not one on each column alone." in repr(both)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_changes_that_are_recorded_beside_the_rows_are_counted_or_unknown(tmp_path, is_damaged):
    root = shutil.copytree(DATA / "delta/change_feed", tmp_path / "t")
    for file in (root / "_change_data").rglob("*.parquet"):
        if is_damaged:
            file.write_bytes(file.read_bytes()[:-8])
    trace = open_table(str(root)).trace("id = 12")
    counts = trace.changelogs.to_arrow()["rows"].to_pylist()

    assert counts.count(None) == (len(counts) if is_damaged else 0)
    assert sum(count or 0 for count in counts) == (0 if is_damaged else 3)
    assert ("3 changelog files contain matching rows" in trace.verdict) is not is_damaged
    assert trace.is_complete is not is_damaged
    assert "could not be examined" in repr(trace) or not is_damaged


def test_the_digest_depends_on_what_was_found_and_not_on_the_time(table):
    opened = open_table(table.root)

    assert opened.trace("id = 42").digest == opened.trace("id = 42").digest != opened.trace("id = 1").digest


def test_branches_and_tags_are_covered():
    table = open_table(str(DATA / "iceberg" / "branches_tags"))
    trace = table.trace("id > 0")
    versions = trace.versions.to_arrow().to_pylist()

    assert trace.is_complete

    assert {row["branch"] for row in versions} == set(history_of(table).branch_names())
    named = {ref for row in versions for ref in row["refs"]}
    assert {f"branch {name}" for name in history_of(table).branch_names()} <= named
    assert {f"tag {name}" for name in history_of(table).tags()} <= named


def test_rows_of_a_snapshot_that_main_left_are_found(memory_root):
    table = IcebergTable(*memory_root)
    table.commit([(1, "a")])
    table.commit([(42, "x")])
    first = table.metadata["snapshots"][0]["snapshot-id"]
    table.metadata |= {"current-snapshot-id": first, "refs": {"main": {"snapshot-id": first, "type": "branch"}}}
    table.write_metadata()
    trace = open_table(f"memory://{memory_root[1]}").trace("id = 42")
    left = str(table.metadata["snapshots"][1]["snapshot-id"])

    assert trace.verdict.startswith("Version 2 returns matching rows. They have been there since version 2")
    assert next(row for row in trace.versions.to_arrow().to_pylist() if row["rows"])["refs"] == [f"snapshot {left}"]


def test_a_condition_that_does_not_fit_is_refused(table):
    with pytest.raises(InvalidArgumentError, match="Unknown column 'nope'"):
        open_table(table.root).trace("nope = 1")


def test_versions_with_a_type_that_is_not_comparable_are_unknown_and_the_others_are_counted(tmp_path):
    table = DeltaTable(None, tmp_path, fields=[("id", "string")])
    table.append([("x",)], name="one")
    table.fields = FIELDS[:1]
    table.commit(metadata(fields=FIELDS[:1]), remove("one"), table.data("two", [(42,)]))
    trace = open_table(table.root).trace("id = 42")

    assert [row["rows"] for row in trace.versions.to_arrow().to_pylist()] == [None, None, 1]
    assert "string at version" in repr(trace)
    assert not trace.is_complete


def test_the_condition_is_escaped(table):
    pages = [
        open_table(table.root).trace(f"name = '{value}'")._repr_mimebundle_()["text/html"]
        for value in ("a", "<script>")
    ]

    assert pages[0].count("<script>") == pages[1].count("<script>")
    assert "&lt;script&gt;" in pages[1]


def test_rows_that_a_default_gives_to_files_without_the_column_are_found(memory_root):
    filesystem, root = memory_root
    table = IcebergTable(filesystem, root, version=3)
    added = {"id": 3, "name": "x", "required": False, "type": "int", "initial-default": 7}
    for number, (rows, removed) in enumerate([([(1, "a")], ()), ([(2, "b")], ()), ([], ["data-1.parquet"])]):
        if number:
            fields = [*SCHEMA["fields"], added]
            table.metadata |= {"schemas": [SCHEMA, SCHEMA | {"schema-id": 1, "fields": fields}], "current-schema-id": 1}
        table.commit(rows, removed=removed)
        table.metadata["snapshots"][-1]["schema-id"] = min(number, 1)
    table.write_metadata()
    trace = open_table(f"memory://{root}").trace("x = 7")

    counts = [row["rows"] for row in trace.versions.to_arrow().to_pylist()]
    assert counts == [0, 2, 1]
    assert trace.verdict.startswith("Versions 2 and 3 return matching rows.")


def test_a_dropped_column_of_the_same_name_is_never_called_gone(memory_root):
    table = IcebergTable(*memory_root)
    table.commit([(1, "a")])
    fields = [*SCHEMA["fields"][:1], {"id": 3, "name": "name", "required": False, "type": "string"}]
    table.metadata |= {"schemas": [SCHEMA, SCHEMA | {"schema-id": 1, "fields": fields}], "current-schema-id": 1}
    table.commit([(2, "b")], removed=["data-1.parquet"])
    table.metadata["snapshots"][-1]["schema-id"] = 1
    table.write_metadata()
    trace = open_table(f"memory://{memory_root[1]}").trace("name = 'a'")

    assert not trace.is_complete
    assert trace.verdict == "No matching row was found, but not everything could be examined: this proves nothing."
    assert "In version 1 another column is called name; it was dropped or renamed, and its values were not" in repr(
        trace
    )
