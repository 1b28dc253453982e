"""Compares an Iceberg table with what Iceberg, and pyiceberg, read of it: rows, row lineage, files and refs."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa

import snapshot_explorer
from snapshot_explorer.history import history_of
from tests.support.canonical import canonical_rows
from tests.support.oracles.delta_answers import assert_same, conditions

LINEAGE = ("_row_id", "_last_updated_sequence_number")


def expected_snapshots(written, name):
    """What is expected of a table at each of its snapshots."""
    return [json.loads(file.read_text()) for file in sorted((Path(written) / "expected" / name).glob("*.json"))]


def snapshot_of(written, name, expected):
    """The snapshot that an expectation is about: in main by its id, elsewhere in the history that ends with it."""
    branch = None if expected["is_main"] else str(expected["snapshot_id"])
    return snapshot_explorer.open_table(Path(written) / "tables" / name, branch=branch).at(expected["snapshot_id"])


def assert_rows(snapshot, expected):
    """Assert that a snapshot has the rows, the count and the answers to conditions that are expected."""
    what = f"version {snapshot.version}"
    rows = snapshot.to_arrow()
    rows.validate(full=True)
    assert rows.column_names == expected["columns"]
    assert_same(canonical_rows(rows), expected["rows"], what)
    assert snapshot.count() == len(expected["rows"])
    again = pa.Table.from_pandas(snapshot.to_pandas(), schema=rows.schema, preserve_index=False)
    assert_same(canonical_rows(again), expected["rows"], f"{what} in pandas")
    for where, kept in conditions(rows.schema, expected["rows"]):
        assert_same(canonical_rows(snapshot.to_arrow(where=where)), kept, f"{what} where {where}")
    if expected["lineage"] is not None:
        found = snapshot.to_arrow(columns=[*expected["columns"], *LINEAGE])
        assert_same(canonical_rows(found), expected["lineage"], f"row lineage of {what}")


def assert_changes(written, name, expected):
    """Assert that the rows that the last commits of main changed lead from the rows before to those after."""
    in_main = {one["snapshot_id"]: one for one in expected if one["is_main"]}
    table = snapshot_explorer.open_table(Path(written) / "tables" / name)
    listing = history_of(table).listing
    for before, after in zip(listing.versions, listing.versions[1:], strict=False):
        if after in listing.without_commit:
            continue
        old, new = (in_main[int(table.at(version).commit.identifier)] for version in (before, after))
        changed = table.row_changes(before, after)
        columns = [column for column in changed.column_names if column != "rowkind"]
        if not set(columns) == set(old["columns"]) == set(new["columns"]):
            continue  # changes are in the table's newest schema
        assert old["columns"] == new["columns"]
        kinds, rows = changed["rowkind"].to_pylist(), changed.select(old["columns"])
        gone = [place for place, kind in enumerate(kinds) if kind in ("-D", "-U")]
        come = [place for place, kind in enumerate(kinds) if kind in ("+I", "+U")]
        left = old["rows"] + canonical_rows(rows.take(pa.array(come, pa.int64())))
        right = new["rows"] + canonical_rows(rows.take(pa.array(gone, pa.int64())))
        assert_same(sorted(left, key=json.dumps), sorted(right, key=json.dumps), f"changes of version {after}")


def assert_branches(written, name):
    """Assert that branches, by their names, have the rows that are expected, and differ from main by these.

    Iceberg reads a branch in the table's current schema, and its newest snapshot by its id or a tag in its own.

    Source: iceberg SnapshotUtil.schemaFor(table, ref); SparkCatalog.loadTable for VERSION AS OF 'branch'.
    """
    table = snapshot_explorer.open_table(Path(written) / "tables" / name)
    heads = json.loads((Path(written) / "branches" / f"{name}.json").read_text())
    main = heads["main"]
    for branch, head in heads.items():
        rows = table.at(f"branch:{branch}").to_arrow()
        assert rows.column_names == head["columns"] == main["columns"]
        assert_same(canonical_rows(rows), head["rows"], f"branch {branch}")
        difference = table.diff_rows("branch:main", f"branch:{branch}", key=[])
        old, new = (Counter(map(json.dumps, one["rows"])) for one in (main, head))
        for rows, left in ((difference.inserted, new - old), (difference.deleted, old - new)):
            found = canonical_rows(rows.select(main["columns"]))
            assert_same(found, [json.loads(row) for row in sorted(left.elements())], f"main to branch {branch}")
    assert_same(canonical_rows(table.current.to_arrow()), main["rows"], "main")
