"""Counts of rows in snapshots that contradict the files, which Paimon does not compare; before 0.6 it wrote such."""

import json
import shutil
from pathlib import Path

import pytest

from snapshot_explorer import open_table, samples
from tests.support.paimon.table_builder import PaimonTable

ORDERS = Path(samples.__file__).parent / "orders"
EVENTS = Path(samples.__file__).parent / "events"


def copied(tmp_path, source=ORDERS):
    return Path(shutil.copytree(source, tmp_path / source.name))


def change(table, counts, versions):
    for version in versions:
        path = table / "snapshot" / f"snapshot-{version}"
        stored = json.loads(path.read_text())
        path.write_text(json.dumps(stored | {name: change(stored[name]) for name, change in counts.items()}))


def versions_of(table, first):
    return sorted(
        number for path in (table / "snapshot").glob("snapshot-*") if (number := int(path.name.split("-")[1])) >= first
    )


@pytest.mark.parametrize("source", [ORDERS, EVENTS], ids=["primary key", "append only"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"totalRecordCount": lambda count: count + 20},
        {"totalRecordCount": lambda count: count - 1},
        {"totalRecordCount": lambda _: 0},
        {"totalRecordCount": lambda _: -1},
        {"deltaRecordCount": lambda count: count + 20},
        {"totalRecordCount": lambda count: count + 20, "deltaRecordCount": lambda count: count + 20},
        {"changelogRecordCount": lambda _: 7},
    ],
    ids=["too many", "one too few", "none", "negative", "delta", "total and delta", "changelog"],
)
def test_rows_are_those_of_the_files_where_a_snapshot_counts_others(tmp_path, source, wrong):
    table = copied(tmp_path, source)
    expected = open_table(str(source))
    newest = expected.current.version
    change(table, wrong, [newest])
    found = open_table(str(table))

    assert found.current.count() == expected.current.count()
    assert found.current.to_arrow().equals(expected.current.to_arrow())
    assert found.current.files().to_arrow().equals(expected.current.files().to_arrow())
    assert len(found.at("latest").file_changes(since="earliest")) == len(
        expected.at("latest").file_changes(since="earliest")
    )
    added = ["added_rows", "removed_rows", "added_files"]
    assert found.history().to_arrow().select(added).equals(expected.history().to_arrow().select(added))


def test_totals_that_each_later_commit_carried_on_change_no_row(tmp_path):
    table = copied(tmp_path)
    expected = open_table(str(ORDERS))
    versions = versions_of(table, 1)
    commits = expected.history().to_arrow().to_pylist()
    compacted = min(commit["version"] for commit in commits if commit["kind"] == "compact")
    change(table, {"deltaRecordCount": lambda count: count + 20}, [compacted])
    change(table, {"totalRecordCount": lambda count: count + 20}, [item for item in versions if item >= compacted])
    found = open_table(str(table))

    for version in (compacted, compacted + 1, versions[-1]):
        assert found.at(version).count() == expected.at(version).count()
        assert found.at(version).to_arrow().equals(expected.at(version).to_arrow())


def test_the_total_of_a_commit_whose_own_rows_contradict_its_count_is_unknown(tmp_path):
    table = copied(tmp_path)
    newest = open_table(str(table)).current.version
    change(table, {"deltaRecordCount": lambda count: count + 20}, [newest])

    commits = open_table(str(table)).history().to_arrow().to_pylist()
    totals = {commit["version"]: commit["total_rows"] for commit in commits}

    assert totals[newest] is None
    assert None not in [total for version, total in totals.items() if version != newest]


def test_files_that_write_all_columns_of_older_rows_insert_none(memory_root):
    table = PaimonTable(*memory_root, options={"row-tracking.enabled": "true", "data-evolution.enabled": "true"})
    table.commit([(1, "a"), (2, "b")], first_row_id=0, nextRowId=2)
    table.commit([(3, "c")], first_row_id=2, nextRowId=3)
    table.commit([(3, "C")], first_row_id=2, nextRowId=3)  # the last row anew, in all its columns
    table.commit([(4, "d")], first_row_id=3, nextRowId=4)
    opened = open_table(f"memory://{table.root}")

    def inserted(**arguments):
        rows = opened.history(**arguments).to_arrow().to_pylist()
        return {row["version"]: (row["rows_inserted"], row["rows_source"]) for row in rows}

    expected = {4: (1, "metadata"), 3: (None, None), 2: (1, "metadata"), 1: (2, "metadata")}
    assert inserted() == expected
    assert opened.current.count() == 4
    assert [inserted(between=f"{version}..{version}")[version] for version in expected] == [*expected.values()]

    table.expire(3)
    opened = open_table(f"memory://{table.root}")
    assert inserted() == {4: (1, "metadata"), 3: (None, None)}
    table.expire(4)
    opened = open_table(f"memory://{table.root}")
    assert inserted() == {4: (None, None)}  # whose rows these are is unknown without the version before


def test_a_warning_tells_which_count_the_files_contradict(tmp_path, caplog):
    table = copied(tmp_path)
    newest = open_table(str(table)).current.version
    change(table, {"totalRecordCount": lambda _: 7}, [newest])

    open_table(str(table)).current.count()

    assert f"snapshot/snapshot-{newest} records 7: rows are counted in the files" in caplog.text
