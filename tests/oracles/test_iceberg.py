"""Iceberg's connector for Spark writes tables at random in this run; we read the same rows, and so does pyiceberg.

SNAPSHOT_EXPLORER_SEED says what is random.
"""

import json
import os

import pytest

import snapshot_explorer
from tests.support import logical_counts
from tests.support.iceberg.histories import KINDS
from tests.support.iceberg.pyiceberg_rows import inspected
from tests.support.oracles import iceberg_answers as answers

SEED = int(os.environ.get("SNAPSHOT_EXPLORER_SEED", "1"))


@pytest.fixture(scope="session")
def written(connector_wrote):
    print(f"seed {SEED}; SNAPSHOT_EXPLORER_SEED sets another")  # noqa: T201 - shown where a test fails
    return connector_wrote("iceberg")


@pytest.mark.parametrize("name", KINDS)
def test_every_snapshot_has_the_rows_that_iceberg_reads(written, name):
    expected = answers.expected_snapshots(written, name)

    for one in expected:
        snapshot = answers.snapshot_of(written, name, one)
        assert one["version"] in (None, snapshot.version)
        answers.assert_rows(snapshot, one)
    table = snapshot_explorer.open_table(written / "tables" / name)
    assert len(table.versions()) == sum(one["is_main"] for one in expected) > 1


@pytest.mark.parametrize("name", KINDS)
def test_changed_rows_lead_from_each_version_to_the_next(written, name):
    answers.assert_changes(written, name, answers.expected_snapshots(written, name))


@pytest.mark.parametrize("name", KINDS)
def test_the_rows_of_commits_are_those_that_differ(written, name):
    logical_counts.check(snapshot_explorer.open_table(written / "tables" / name))


@pytest.mark.parametrize("name", KINDS)
def test_pyiceberg_reads_the_same_rows_from_the_same_files(written, name):
    second = json.loads((written / "pyiceberg" / f"{name}.json").read_text())

    for expected in answers.expected_snapshots(written, name):
        found = second["snapshots"][str(expected["snapshot_id"])]
        if found["outcome"] == "error":
            continue
        answers.assert_same(found["rows"], expected["rows"], f"version {expected['version']} read by pyiceberg")
        files = answers.snapshot_of(written, name, expected).files().to_arrow()
        ours = set(files["path"].to_pylist())
        assert {file.partition(f"/tables/{name}/")[2] for file in found["files"]} == ours
    assert sum(found["outcome"] == "rows" for found in second["snapshots"].values()) > 1


@pytest.mark.parametrize("name", KINDS)
def test_metadata_tables_are_those_of_pyiceberg(written, name):
    second = json.loads((written / "pyiceberg" / f"{name}.json").read_text())
    table = snapshot_explorer.open_table(written / "tables" / name)

    for one, expected in second["inspections"].items():
        if expected is not None:
            assert inspected(table.inspect(one).to_arrow().to_pylist()) == expected, one


@pytest.mark.parametrize("name", KINDS)
def test_branches_and_tags_are_those_of_pyiceberg(written, name):
    second = json.loads((written / "pyiceberg" / f"{name}.json").read_text())
    table = snapshot_explorer.open_table(written / "tables" / name)

    refs = {row["name"]: row["snapshot_id"] for row in table.inspect("refs").to_arrow().to_pylist()}

    assert refs == second["refs"]


@pytest.mark.parametrize("name", KINDS)
def test_a_branch_has_the_rows_that_iceberg_reads_and_differs_from_main_by_these(written, name):
    answers.assert_branches(written, name)
