"""Compares tables that an engine wrote with what the same engine reads from them, at every version.

A script that writes tables leaves, below its folder, `tables/NAME/` and `expected/NAME/VERSION.json`, in the form of
`tests/data/README.md`: `{"version", "outcome": "rows", "columns", "rows"}`, or `"outcome": "error"` with a `"message"`.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer.errors import SnapshotExplorerError
from tests.inner.arrow import has_variant
from tests.support.canonical import canonical_rows


def expectations(folder, name):
    """The expectations of a table, by version."""
    found = [json.loads(path.read_text()) for path in (Path(folder) / "expected" / name).glob("*.json")]
    assert found, f"nothing is expected of {name}: the script wrote no version of it"
    return sorted(found, key=lambda expected: expected["version"])


def assert_every_version(folder, name, *, unordered=()):
    """Assert that every version of a table has the rows that are expected, in Arrow, in pandas and in number.

    `unordered` names columns whose arrays have no order.
    """
    table = open_written(folder, name)
    for expected in expectations(folder, name):
        snapshot = table.at(expected["version"])
        if expected["outcome"] == "error":
            with pytest.raises(SnapshotExplorerError):
                snapshot.to_arrow()
            continue
        rows = snapshot.to_arrow()
        rows.validate(full=True)
        assert_rows(rows, expected, unordered=unordered)
        assert snapshot.count() == len(expected["rows"]), f"count at version {expected['version']}"
        frame = snapshot.to_pandas()
        assert list(frame.columns) == expected["columns"]
        if any(has_variant(kind) for kind in rows.schema.types):
            continue  # in pandas these are text
        again = pa.Table.from_pandas(frame, schema=rows.schema, preserve_index=False)
        assert_rows(again, expected, unordered=unordered)


def open_written(folder, name):
    """The table of a name that a script wrote."""
    return snapshot_explorer.open_table(str(Path(folder) / "tables" / name))


def assert_rows(rows, expected, *, unordered=()):
    """Assert that a table of rows is what is expected; the message shows rows that only one side has."""
    assert rows.column_names == expected["columns"]
    positions = [expected["columns"].index(name) for name in unordered]
    ours, theirs = (lines(side, positions) for side in (canonical_rows(rows), expected["rows"]))
    if ours != theirs:
        only_ours, only_theirs = minus(ours, theirs), minus(theirs, ours)
        pytest.fail(
            f"version {expected['version']}: {len(ours)} rows, {len(theirs)} expected, of {expected['columns']}\n"
            "only read by us:\n  "
            + "\n  ".join(only_ours[:10])
            + "\nonly read by the engine:\n  "
            + "\n  ".join(only_theirs[:10])
        )


def lines(rows, unordered):
    """The rows as sorted JSON texts, with the arrays at the given positions sorted."""
    return sorted(
        json.dumps(
            [
                sorted(value, key=json.dumps) if index in unordered and value is not None else value
                for index, value in enumerate(row)
            ],
            ensure_ascii=False,
        )
        for row in rows
    )


def minus(some, others):
    """What is left of some lines without as many of the others."""
    left = list(some)
    for line in others:
        if line in left:
            left.remove(line)
    return left
