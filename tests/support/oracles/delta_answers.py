"""Compares a Delta table with what Delta itself said of it: rows at every version, change rows, history and detail."""

import json
import os
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.history import history_of
from tests.inner.arrow import has_variant
from tests.support.canonical import canonical_rows

KINDS = {"insert": "+I", "update_preimage": "-U", "update_postimage": "+U", "delete": "-D"}


def expected_versions(folder):
    """What is expected of a table at each version, oldest first."""
    found = [json.loads(file.read_text()) for file in Path(folder).glob("*.json")]
    return sorted(found, key=lambda expected: expected["version"])


def restore_times(table, about):
    """Give the files of a log the times at which they were written: neither git nor a copy keeps them."""
    for name, milliseconds in about["modified"].items():
        os.utime(Path(table) / "_delta_log" / name, ns=(milliseconds * 10**6, milliseconds * 10**6))


def assert_version(table, expected):
    """Assert that a version has the rows, the files, the count and the answers to conditions that are expected."""
    snapshot = table.at(expected["version"])
    if expected.get("files") is not None:
        assert snapshot.files().num_rows == expected["files"]
    if expected["outcome"] == "error":
        with pytest.raises(SnapshotExplorerError):
            snapshot.to_arrow()
        return
    rows = snapshot.to_arrow()
    rows.validate(full=True)
    assert rows.column_names == expected["columns"]
    assert_same(canonical_rows(rows), expected["rows"], f"version {expected['version']}")
    assert snapshot.count() == len(expected["rows"])
    if not any(has_variant(kind) for kind in rows.schema.types):  # in pandas these are text
        again = pa.Table.from_pandas(snapshot.to_pandas(), schema=rows.schema, preserve_index=False)
        assert_same(canonical_rows(again), expected["rows"], f"version {expected['version']} in pandas")
    for where, kept in conditions(rows.schema, expected["rows"]):
        assert_same(
            canonical_rows(snapshot.to_arrow(where=where)), kept, f"version {expected['version']} where {where}"
        )
    if expected.get("row_ids") is not None:
        with_ids = snapshot.to_arrow(columns=[*expected["columns"], "_row_id", "_row_commit_version"])
        assert_same(canonical_rows(with_ids), expected["row_ids"], f"row ids of version {expected['version']}")


def assert_same(ours, theirs, what):
    """Assert that two lists of rows are the same; the message shows rows that only one side has."""
    left, right = ([json.dumps(row, ensure_ascii=False) for row in rows] for rows in (ours, theirs))
    if left != right:
        only = [
            [line for line in some if line not in set(others)][:8] for some, others in ((left, right), (right, left))
        ]
        pytest.fail(
            f"{what}: {len(left)} rows, {len(right)} expected\nonly ours:\n  "
            + "\n  ".join(only[0])
            + "\nonly Delta's:\n  "
            + "\n  ".join(only[1])
        )


def conditions(schema, rows):
    """Yield three conditions at most, and the rows that answer to them."""
    places = [place for place, field in enumerate(schema) if sorts(field.type)]
    for place in places[:1]:
        yield from compared(schema, rows, place, "=", lambda one, two: one == two)
    for place in places[1:2]:
        yield from compared(schema, rows, place, ">=", lambda one, two: one >= two)
    for place in places[-1:]:
        yield f"{quoted(schema, place)} IS NULL", [row for row in rows if row[place] is None]


def compared(schema, rows, place, sign, holds):
    """Yield a comparison of a column with a value from its middle, unless all are null."""
    present = sorted(value(row[place]) for row in rows if row[place] is not None)
    if not present:
        return
    middle = present[len(present) // 2]
    literal = "'" + middle.replace("'", "''") + "'" if isinstance(middle, str) else str(middle)
    kept = [row for row in rows if row[place] is not None and holds(value(row[place]), middle)]
    yield f"{quoted(schema, place)} {sign} {literal}", kept


def quoted(schema, place):
    return '"' + schema.field(place).name.replace('"', '""') + '"'


def sorts(kind):
    """Whether the canonical values of a type compare as the values do."""
    return pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date(kind) or is_short_decimal(kind)


def is_short_decimal(kind):
    return pa.types.is_decimal(kind) and kind.precision <= 18


def value(canonical):
    """A canonical value to compare by: a decimal is text there."""
    if isinstance(canonical, str) and canonical.lstrip("-").replace(".", "", 1).isdigit() and "." in canonical:
        return Decimal(canonical)
    return canonical


def assert_changes(table, version, expected):
    """Assert that a version changed the rows that Delta's change feed shows, or that a recorded feed is refused too."""
    if version == 0:
        return  # nothing comes before
    if expected["outcome"] == "error":
        with pytest.raises(SnapshotExplorerError):
            table.row_changes(version - 1, version, mode="changelog")
        return
    ours = table.row_changes(version - 1, version)
    kind = expected["columns"].index("_change_type")
    for row in expected["rows"]:
        row[kind] = KINDS[row[kind]]
    columns = [
        name for name in expected["columns"] if name not in {"_change_type", "_commit_version", "_commit_timestamp"}
    ]
    places = [*(expected["columns"].index(name) for name in columns), kind]
    theirs = sorted(([row[place] for place in places] for row in expected["rows"]), key=json.dumps)
    assert set(columns) == set(ours.column_names) - {"rowkind"}
    assert_same(canonical_rows(ours.select([*columns, "rowkind"])), theirs, f"changes of version {version}")


def assert_file_changes(table, path):
    """Assert that each version's file changes are as many as its commit's lines say."""
    for version in table.versions():
        commit = Path(path) / "_delta_log" / f"{version:020d}.json"
        actions = [next(iter(json.loads(line))) for line in commit.read_text().splitlines() if line]
        changes = table.at(version).file_changes().to_arrow().select(["list", "change"]).to_pylist()
        reported = {"add": ("delta", "add"), "remove": ("delta", "remove"), "cdc": ("changelog", "add")}
        for action, (name, change) in reported.items():
            ours, theirs = changes.count({"list": name, "change": change}), actions.count(action)
            assert ours == theirs, f"version {version}: {ours} of {theirs} {action} actions in {changes}"


def assert_history(table, expected):
    """Assert that the history is that of DESCRIBE HISTORY, newest first."""
    ours = table.inspect("history").to_arrow()
    assert ours.column_names == expected["columns"]
    assert ours["version"].to_pylist() == sorted(ours["version"].to_pylist(), reverse=True)
    assert_same(canonical_rows(ours), expected["rows"], "history")


def assert_detail(table, expected):
    """Assert that the detail is that of DESCRIBE DETAIL, but for where the table lies."""
    ours = table.inspect("detail").to_arrow()
    assert ours.column_names == expected["columns"]
    theirs = dict(zip(expected["columns"], expected["rows"][0], strict=True))
    found = dict(zip(ours.column_names, canonical_rows(ours)[0], strict=True))
    for both in (theirs, found):
        both.pop("location")
        both["tableFeatures"] = sorted(both["tableFeatures"])
    differing = {name: (found[name], theirs[name]) for name in theirs if found[name] != theirs[name]}
    assert not differing, f"ours and Delta's: {differing}"


def assert_times(table):
    """Assert that each version is the one of its own time, and that a moment before is the version before."""
    versions = table.versions()
    for number, moment in enumerate(history_of(table).committed_at(versions)):
        assert table.at(moment).version == versions[number]
        if number:
            assert table.at(moment - timedelta(milliseconds=1)).version == versions[number - 1]


def opened(path):
    """Open a table, always anew: what one test found out, no other should know."""
    return snapshot_explorer.open_table(str(path))
