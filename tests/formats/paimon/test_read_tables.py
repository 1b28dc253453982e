"""Rows of every table that Paimon wrote (tests/data), against the rows that Paimon read."""

import json
from pathlib import Path

import pytest

import snapshot_explorer
from canonical import canonical_rows
from snapshot_explorer.errors import SnapshotExplorerError, UnsupportedFeatureError

DATA = Path(__file__).parents[2] / "data"


APART = {"ltz_orc_tokyo": "its rows depend on the zone of the JVM that reads: see test_read_files"}
"""Tables whose expected rows another test compares."""
CASES = sorted(
    path
    for path in (DATA / "expected" / "paimon").glob("*/*.json")
    if not path.stem.startswith(("branch-", "tag-")) and path.parent.name not in APART
)
REFUSED = {
    "aggregation": "the merge engine aggregation",
    "first_row": "the merge engine first-row",
    "partial_update": "the merge engine partial-update",
}
"""Tables that are not read yet, and what their refusal must name."""


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_rows_are_what_paimon_reads(case):
    table = case.parent.name
    expected = json.loads(case.read_text())
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / table)).at(expected["version"])
    if table in REFUSED:
        with pytest.raises(UnsupportedFeatureError, match=REFUSED[table]):
            snapshot.to_arrow()
        return
    if expected["outcome"] == "error":
        with pytest.raises(SnapshotExplorerError):
            snapshot.to_arrow()
        return

    rows = snapshot.to_arrow()

    rows.validate(full=True)
    assert rows.column_names == expected["columns"]
    assert canonical_rows(rows) == expected["rows"]
    assert snapshot.count() == len(expected["rows"])


def test_there_are_tables_to_read():
    assert len(CASES) > 50
