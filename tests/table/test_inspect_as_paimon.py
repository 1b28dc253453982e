"""Inspection frames against what Paimon's own core shows of the same tables (tests/data/expected/inspect)."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import snapshot_explorer
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[1] / "data"
CASES = [
    (file.stem, case)
    for file in sorted((DATA / "expected" / "inspect").glob("*.json"))
    for case in json.loads(file.read_text())
]
MILLIS = ("create_time",)
"""Columns of TIMESTAMP(3) in which Paimon shows microseconds."""


def prepared(rows, root):
    """Return rows with paths from the table's folder on, as the expectations have them."""
    if "file_path" in rows.column_names:
        index = rows.column_names.index("file_path")
        paths = [path.removeprefix(f"{root}/") for path in rows.column(index).to_pylist()]
        rows = rows.set_column(index, "file_path", pa.array(paths, pa.string()))
    return rows


def loosened(columns, rows):
    """Return rows without what may differ: order in JSON objects, digits beyond the column's type."""
    found = []
    for row in rows:
        values = dict(zip(columns, row, strict=True))
        for name in ("fields", "options", "colstat"):
            if values.get(name):
                values[name] = json.loads(values[name])
        for name in MILLIS:
            if values.get(name):
                values[name] = values[name][:23]
        found.append(values)
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize(
    ("table", "case"), CASES, ids=[f"{table}-{case['table']}-{case['version'] or 'latest'}" for table, case in CASES]
)
def test_a_frame_is_what_paimon_shows(table, case):
    opened = snapshot_explorer.open_table(str(DATA / "paimon" / table))

    frame = opened.inspect(case["table"], case["version"])

    # Paimon 1.4.2 lacks the newest columns, which stand behind the others.
    rows = prepared(frame.to_arrow().select(range(len(case["columns"]))), opened.path)
    assert rows.column_names == case["columns"]
    assert loosened(case["columns"], canonical_rows(rows)) == loosened(case["columns"], case["rows"])


def test_there_are_frames_to_compare():
    assert len(CASES) > 200
