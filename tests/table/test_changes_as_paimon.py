"""Incremental rows against what Paimon's own core reads through audit_log (tests/data/expected/incremental)."""

import json
from pathlib import Path

import pytest

import snapshot_explorer
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[1] / "data"
CASES = [
    (file.stem, case)
    for file in sorted((DATA / "expected" / "incremental").glob("*.json"))
    for case in json.loads(file.read_text())
    if "between" in case
]


def ref(text):
    return int(text) if text.isdigit() else f"tag:{text}"


CHANCE = [("aggregates_descending", ["2", "4"])]
"""Tables and ranges between which rows get older by their sequence: what Paimon tells of them is chance."""


@pytest.mark.parametrize(
    ("table", "case"), CASES, ids=[f"{table}-{'-'.join(case['between'])}-{case['mode']}" for table, case in CASES]
)
def test_the_rows_are_what_paimon_reads(table, case):
    opened = snapshot_explorer.open_table(str(DATA / "paimon" / table))
    first, last = map(ref, case["between"])
    mode = "diff" if isinstance(first, str) else case["mode"]
    if case["rows"] is None:
        with pytest.raises((InvalidArgumentError, SnapshotNotFoundError, UnsupportedFeatureError)):
            opened.row_changes(first, last, mode=mode)
        return

    if mode == "diff" and (table, case["between"]) in CHANCE:
        with pytest.raises(UnsupportedFeatureError, match="later row does not have the greater sequence number"):
            opened.row_changes(first, last, mode=mode)
        return

    rows = opened.row_changes(first, last, mode=mode)

    rows.validate(full=True)
    assert rows.column_names == case["columns"]
    assert canonical_rows(rows) == case["rows"]


def test_there_are_changes_to_compare():
    assert len(CASES) > 150
