"""Rows of every table that Paimon wrote (tests/data), against the rows that Paimon read."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[2] / "data"


APART = {"ltz_orc_tokyo": "its rows depend on the zone of the JVM that reads: see test_read_files"}
"""Tables whose expected rows another test compares."""
CASES = sorted(
    path
    for path in (DATA / "expected" / "paimon").glob("*/*.json")
    if not path.stem.startswith(("branch-", "tag-")) and path.parent.name not in APART
)
UNORDERED = ("aggregates", "aggregates_limited", "aggregates_nested", "partial_aggregates")
"""Tables with arrays that Paimon keeps in a hash table, so that their order says nothing."""

FILLED = ("append_orc",)
"""Tables with CHAR in ORC whose rows Spark's connector read: it fills it up with blanks, which Paimon's core strips."""

NEEDED = {"aggregates_sketches": "datasketches"}
"""Tables whose rows need an optional package."""


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_rows_are_what_paimon_reads(case):
    table = case.parent.name
    if table in NEEDED:
        pytest.importorskip(NEEDED[table])
    expected = json.loads(case.read_text())
    snapshot = snapshot_explorer.open_table(str(DATA / "paimon" / table)).at(expected["version"])
    if expected["outcome"] == "error":
        with pytest.raises(SnapshotExplorerError):
            snapshot.to_arrow()
        return

    rows = snapshot.to_arrow()

    rows.validate(full=True)
    assert rows.column_names == expected["columns"]
    arrays = [pa.types.is_list(kind) and table in UNORDERED for kind in rows.schema.types]
    wanted = unfilled(snapshot, expected["rows"]) if table in FILLED else expected["rows"]
    assert sorted_arrays(canonical_rows(rows), arrays) == sorted_arrays(wanted, arrays)
    assert snapshot.count() == len(expected["rows"])


def unfilled(snapshot, rows):
    """The rows without blanks at the end of CHAR."""
    chars = [column.type.startswith("CHAR(") for column in snapshot.schema.columns]
    return [
        [value.rstrip(" ") if is_char and value else value for value, is_char in zip(row, chars, strict=True)]
        for row in rows
    ]


def sorted_arrays(rows, arrays):
    """The rows with the arrays among their values sorted."""
    listed = [
        [
            sorted(value, key=json.dumps) if is_array and value is not None else value
            for value, is_array in zip(row, arrays, strict=True)
        ]
        for row in rows
    ]
    return sorted(listed, key=json.dumps)


def test_there_are_tables_to_read():
    assert len(CASES) > 50
