"""Rows of every table that Paimon wrote (tests/data), against the rows that Paimon read."""

import json
import sys
from pathlib import Path

import pytest

import snapshot_explorer
from snapshot_explorer.errors import SnapshotExplorerError, UnsupportedFeatureError

DATA = Path(__file__).parents[2] / "data"
sys.path.append(str(DATA))

from canonical import canonical_rows  # noqa: E402 - shared with the script that writes the expectations

CASES = sorted(
    path for path in (DATA / "expected" / "paimon").glob("*/*.json") if not path.stem.startswith(("branch-", "tag-"))
)
REFUSED = {
    "aggregation": "the merge engine aggregation",
    "first_row": "the merge engine first-row",
    "partial_update": "the merge engine partial-update",
}
"""Tables that are not read yet, and what their refusal must name."""
APART = {"ltz_orc_tokyo": "its rows depend on the zone of the JVM that reads: see test_read_files"}


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_rows_are_what_paimon_reads(case):
    table = case.parent.name
    if table in APART:
        pytest.skip(APART[table])
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
