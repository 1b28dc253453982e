"""Compares a Hudi table with what Hudi read of each version while it was the newest, and with what hudi-rs reads."""

import itertools
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.canonical import canonical_rows
from tests.support.oracles.comparing import assert_rows, expectations, open_written
from tests.support.oracles.delta_answers import assert_same, conditions


def assert_versions(folder, name):
    """Assert that each version has the rows, count and answers to conditions that are expected.

    A version whose files Hudi's cleaner removed is refused, and no other one.
    """
    table = open_written(folder, name)
    readable = {row["version"]: row for row in table.verify().versions.to_arrow().to_pylist()}
    expected = expectations(folder, name)
    for one in expected:
        snapshot = table.at(one["version"])
        if readable[one["version"]]["missing_files"]:
            with pytest.raises(SnapshotExplorerError, match="not|gone|missing"):
                snapshot.to_arrow()
            continue
        rows = snapshot.to_arrow()
        rows.validate(full=True)
        assert_rows(rows, one)
        assert snapshot.count() == len(one["rows"])
        again = pa.Table.from_pandas(snapshot.to_pandas(), schema=rows.schema, preserve_index=False)
        assert_rows(again, one)
        for where, kept in conditions(rows.schema, one["rows"]):
            assert_same(canonical_rows(snapshot.to_arrow(where=where)), kept, f"version {one['version']} where {where}")
    assert not readable[table.versions()[-1]]["missing_files"]
    assert {one["version"] for one in expected} <= set(table.versions())
    assert len(table.versions()) > 1


def assert_changes(folder, name):
    """Assert that the rows that changed lead from the rows of each version to those of the next one."""
    table = open_written(folder, name)
    readable = {row["version"] for row in table.verify().versions.to_arrow().to_pylist() if not row["missing_files"]}
    expected = [one for one in expectations(folder, name) if one["version"] in readable]
    compared = 0
    for old, new in itertools.pairwise(expected):
        if old["columns"] != new["columns"]:
            continue  # changes are in the schema of the later version
        changes = table.row_changes(old["version"], new["version"])
        kinds, rows = changes["rowkind"].to_pylist(), changes.select(old["columns"])
        gone = [index for index, kind in enumerate(kinds) if kind in ("-D", "-U")]
        come = [index for index, kind in enumerate(kinds) if kind in ("+I", "+U")]
        left = old["rows"] + canonical_rows(rows.take(pa.array(come, pa.int64())))
        right = new["rows"] + canonical_rows(rows.take(pa.array(gone, pa.int64())))
        assert_same(sorted(left, key=json.dumps), sorted(right, key=json.dumps), f"changes of version {new['version']}")
        compared += 1
    assert compared


def assert_cleaned(folder, name, copy):
    """Assert that retention predicts which files Hudi's cleaner deletes, by each policy.

    `copy` is a folder into which the table may be copied.
    """
    cleaned = Path(folder) / "cleaned" / name
    shutil.copytree(cleaned / "before", copy)
    properties = copy / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    for policy, deleted in json.loads((cleaned / "deleted.json").read_text()).items():
        name, number = policy.split()
        properties.write_text(f"{text}\nhoodie.clean.policy={name}\n")
        retention = open_table(copy).retention(keep_last=int(number))
        assert sorted(retention.freed.to_arrow()["path"].to_pylist()) == deleted, policy
        assert f"clean_policy => '{name}'" in retention.commands[0][1]


def assert_archived(folder, name, copy):
    """Assert that retention predicts which versions Hudi's archiver moves.

    `copy` is a folder into which the table may be copied.
    """
    cleaned = Path(folder) / "cleaned" / name
    shutil.copytree(cleaned / "before", copy)
    ((numbers, moved),) = json.loads((cleaned / "archived.json").read_text()).items()
    names = ("hoodie.keep.min.commits", "hoodie.keep.max.commits", "hoodie.clean.commits.retained")
    options = "".join(f"{option}={number}\n" for option, number in zip(names, numbers.split(), strict=True))
    with (copy / ".hoodie" / "hoodie.properties").open("a") as properties:
        properties.write(f"\nhoodie.clean.policy=KEEP_LATEST_COMMITS\n{options}")
    versions = open_table(copy).retention(keep_last=50).versions.to_arrow().to_pylist()
    assert sorted(row["version"] for row in versions if "archival would move it" in row["because"]) == moved, numbers


def assert_newest(folder, name):
    """Assert that the newest version has the rows that hudi-rs reads, unless it refuses the table."""
    second = json.loads((Path(folder) / "hudi-rs" / f"{name}.json").read_text())
    if second["outcome"] == "rows":
        rows = open_written(folder, name).current.to_arrow().select(second["columns"])
        assert_same(canonical_rows(rows), second["rows"], "the newest version by hudi-rs")
