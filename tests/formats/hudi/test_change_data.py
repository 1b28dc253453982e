"""Recorded change data of Hudi: the changes of each commit are those that Hudi's own change query returns."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError, SnapshotNotFoundError

DATA = Path(__file__).parents[2] / "data"
EXPECTED = sorted((DATA / "expected" / "hudi_change_data").glob("*.json"))


def text(row):
    """Return a row as text, without its nulls, which images of before a column was added lack."""
    return json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True)


def changes_by_hudi(path):
    """Return the changes of each commit; of log files without those that changed nothing."""
    changes = {}
    for version, events in json.loads(path.read_text()).items():
        kinds = {"i": (None, "+I"), "u": ("-U", "+U"), "d": ("-D", None)}
        changes[int(version)] = Counter(
            (kind, text(row))
            for operation, *images in events
            for kind, row in zip(kinds[operation], images, strict=True)
            if kind and not ("_mor_" in path.stem and images[0] == images[1])
        )
    return changes


def changes_of(rows):
    return Counter((row.pop("rowkind"), text(row)) for row in rows.to_pylist())


@pytest.mark.parametrize("path", EXPECTED, ids=[path.stem for path in EXPECTED])
def test_the_changes_of_each_commit_are_those_of_hudis_change_query(path):
    table = open_table(DATA / "hudi_change_data" / path.stem)
    expected = changes_by_hudi(path)

    assert expected.keys() <= set(table.versions())
    read = {version: changes_of(table.at(version).changelog()) for version in table.versions()}
    for version, changes in read.items():
        # Hudi 0.15 returns one row of a replaced file again and again, in place of the others.
        by_number = any(count > 1 for count in expected.get(version, Counter()).values())
        assert compared(changes, by_number=by_number) == compared(expected.get(version, Counter()), by_number=by_number)
    whole = sum(read.values(), Counter())
    assert changes_of(table.row_changes("earliest^", "latest", mode="changelog")) == whole
    assert changes_of(table.row_changes("earliest^", "latest")) == whole


def compared(changes, *, by_number):
    """Return changes, or with `by_number` only the number of deleted rows among them."""
    if not by_number:
        return changes
    deleted = sum(count for (kind, _), count in changes.items() if kind == "-D")
    return deleted, Counter({change: count for change, count in changes.items() if change[0] != "-D"})


def copied(tmp_path, name="logged_cow_9_before"):
    return Path(shutil.copytree(DATA / "hudi_change_data" / name, tmp_path / name))


def change_files(table):
    return sorted(table.rglob(".*.cdc"))


def test_changes_name_their_commit_on_request():
    table = open_table(DATA / "hudi_change_data" / "logged_cow_9_before")
    changes = table.row_changes("earliest^", "latest", ["id", "_hoodie_commit_time"])

    assert {int(time) for time in changes["_hoodie_commit_time"].to_pylist()} == changes_by_hudi(
        DATA / "expected" / "hudi_change_data" / "logged_cow_9_before.json"
    ).keys()


def test_change_data_is_listed_with_the_commit_that_wrote_it():
    path = DATA / "hudi_change_data" / "logged_cow_9_before"
    file = change_files(path)[0]
    listed = open_table(path).at(written_by(file)).file_changes().to_arrow().to_pylist()

    assert file.name in {row["path"].rpartition("/")[2] for row in listed if row["list"] == "changelog"}


def written_by(file):
    """Return the commit in the name of a file of change data."""
    return int(file.name.rpartition(".log.")[0].rpartition("_")[2])


def test_rows_that_change_data_does_not_record_need_their_data_files(tmp_path):
    path = copied(tmp_path)
    file = change_files(path)[0]
    for base in path.rglob("*.parquet"):
        base.unlink()

    with pytest.raises(SnapshotNotFoundError, match=r"\.parquet"):
        open_table(path).at(written_by(file)).changelog()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-9], r"The change data .*\.cdc has \d+ bytes, but its commit records \d+"),
        (lambda content: b"#HUDI#" + bytes(len(content) - 6), r"\.cdc cannot be read: it has no intact block"),
        (
            lambda content: content.replace(b"2026", b"2025", 1),
            r"\.cdc cannot be read: it has a block of the commit 2025",
        ),
        (lambda content: content.replace(b'"op"', b'"oq"', 1), r"\.cdc cannot be read: it has the operation 'None'"),
    ],
)
def test_damaged_change_data_is_named(tmp_path, damage, message):
    path = copied(tmp_path)
    file = change_files(path)[0]
    file.write_bytes(damage(file.read_bytes()))
    table = open_table(path)

    with pytest.raises(CorruptTableError, match=message):
        table.at(written_by(file)).changelog()


def test_change_data_that_is_gone_is_named(tmp_path):
    path = copied(tmp_path)
    file = change_files(path)[0]
    table = open_table(path)
    file.unlink()

    with pytest.raises(SnapshotNotFoundError, match=rf"{file.name}"):
        table.at(written_by(file)).changelog()


def test_a_table_without_change_data_has_no_changelog(tmp_path):
    table = open_table(DATA / "hudi" / "v9_cow_basic")

    with pytest.raises(InvalidArgumentError, match=r"records no change data: hoodie\.table\.cdc\.enabled is not true"):
        table.row_changes("earliest", "latest", mode="changelog")
    assert changes_of(table.current.changelog()) == changes_of(table.row_changes("latest^", "latest"))
