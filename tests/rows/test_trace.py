"""Where rows still are: against brute force over the versions and the data files, and with files that are gone."""

from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, SnapshotExplorerError
from tests.support.delta.table_builder import DeltaTable, remove
from tests.support.filesystems import counting
from tests.support.iceberg.table_builder import SCHEMA, IcebergTable

DATA = Path(__file__).parents[1] / "data"
KINDS = ("delta", "iceberg", "paimon", "hudi")
FIELDS = [("id", "long"), ("name", "string")]


def column_and_values(table):
    """Return a column of integers that all versions have, and some of its values, the last of which no row has."""
    names = [field.name for field in table.current.arrow_schema if pa.types.is_integer(field.type)]
    for name in names:
        for version in table.versions():
            try:
                rows = table.at(version).to_arrow()
            except SnapshotExplorerError:
                continue
            if name in rows.column_names and len(rows):
                values = sorted(set(rows[name].drop_null().to_pylist()))
                return (name, [*{values[0], values[len(values) // 2], values[-1]}, 123_456]) if values else None
    return None


@cache
def live_values(table, version, name):
    """Return the values of a version; None where it cannot be read, or has no column of that name."""
    try:
        return table.at(version).to_arrow(columns=[name])[name]
    except SnapshotExplorerError:
        return None


@cache
def stored_values(file, name):
    """Return the values that a file stores; None where it has no plain column of that name."""
    if file.suffix not in (".parquet", ".orc") or not file.exists():
        return None
    read = pq.read_table if file.suffix == ".parquet" else pyarrow.orc.read_table
    rows = read(str(file), **({"partitioning": None} if file.suffix == ".parquet" else {}))
    return rows[name] if rows.column_names.count(name) == 1 else None


def count(values, value):
    """Return how often a value is among others; None where these are not known."""
    return None if values is None else pc.sum(pc.equal(values, value)).as_py() or 0


CHECKED = {
    "delta": ["change_feed", "dv_partitioned", "vacuumed", "schema_changes", "cleaned_log", "widened", "row_tracking"],
    "iceberg": ["branches_tags", "v2_cow", "v2_equality_deletes", "v2_mor_partitioned", "v3_dv", "v1_upgraded_to_v3"],
    "paimon": [
        "append_parquet",
        "append_orc",
        "dv",
        "dv_append",
        "expired",
        "aggregation",
        "first_row",
    ],
    "hudi": ["v9_cow_basic", "v9_mor_basic", "v9_cow_savepoint_restored"],
}


@pytest.mark.parametrize("path", [f"{kind}/{name}" for kind in KINDS for name in CHECKED[kind]])
def test_a_trace_is_what_brute_force_over_versions_and_files_finds(path):
    table = open_table(str(DATA / path))
    found = column_and_values(table)
    if found is None:
        pytest.skip("no column of integers")
    name, values = found
    for value in values:
        trace = table.trace(f'"{name}" = {value}')
        own = table.branch or table.bound.main_branch
        rows = [row for row in trace.versions.to_arrow().to_pylist() if row["branch"] == own]

        for row in rows:
            if row["version"] not in table.versions():
                assert row["rows"] is None
            elif row["rows"] is not None:
                # Metadata may prove that a version which cannot be read has no such row.
                assert row["rows"] == (count(live_values(table, row["version"], name), value) or 0), row
        files = trace.files.to_arrow().to_pylist()
        for row in files:
            stored = count(stored_values(DATA / path / row["path"], name), value)
            if row["stored_rows"] is not None and stored is not None:
                assert row["stored_rows"] == stored, row
        named = any(row["rows"] for row in rows) or any(row["stored_rows"] for row in files)
        if value == 123_456:
            assert not named
        if "no data file of a version stores one" in trace.verdict:
            assert trace.is_complete
            assert all(row["rows"] == 0 for row in rows)


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
        trace.verdict == "Version 1 returns matching rows. They are there since version 1, of 2026-01-01 00:01:00.000Z."
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
            if path.endswith("a.parquet"):
                for version in (0, 1, 2):
                    filesystem.rm_file(f"{root}/_delta_log/{version:020}.json")
                filesystem.rm_file(f"{root}/b.parquet")
            return super().cat_file(path, **options)

    register(WithWriter)
    trace = open_table(f"counted://{root}").trace("id = 42")

    rows = {row["version"]: row["rows"] for row in trace.versions.to_arrow().to_pylist()}
    assert rows == {0: 0, 1: 1, 2: None, 3: 0}
    assert not trace.is_complete
    assert "Not known in version 2: Version 2 has expired" in repr(trace)


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
    assert open_table(str(tmp_path)).trace("id > 40").files.to_arrow()["bounds_name_value"].null_count == 2


def test_the_digest_depends_on_what_was_found_and_not_on_the_time(table):
    opened = open_table(table.root)

    assert opened.trace("id = 42").digest == opened.trace("id = 42").digest != opened.trace("id = 1").digest


def test_branches_and_tags_are_covered():
    table = open_table(str(DATA / "iceberg" / "branches_tags"))
    trace = table.trace("id > 0")
    versions = trace.versions.to_arrow().to_pylist()

    assert trace.is_complete

    assert {row["branch"] for row in versions} == set(table.branch_names())
    named = {ref for row in versions for ref in row["refs"]}
    assert {f"branch {name}" for name in table.branch_names()} <= named
    assert {f"tag {name}" for name in table.tag_versions()} <= named


def test_a_condition_that_does_not_fit_is_refused(table):
    with pytest.raises(InvalidArgumentError, match="Unknown column 'nope'"):
        open_table(table.root).trace("nope = 1")


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
    opened = open_table(f"memory://{root}")
    trace = opened.trace("x = 7")

    counts = [row["rows"] for row in trace.versions.to_arrow().to_pylist()]
    assert counts == [count(live_values(opened, version, "x"), 7) or 0 for version in opened.versions()] == [0, 2, 1]
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
