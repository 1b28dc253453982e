"""Damaged and copied files of a Hudi table's timeline are named, not read as commits that wrote nothing."""

import io
import itertools
import re
import shutil
from pathlib import Path

import fastavro
import pytest

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import CorruptTableError, StorageError, TableNotFoundError
from tests.support.faults import Fault, Request, Store, registered
from tests.support.public_calls import opened

DATA = Path(__file__).parents[2] / "data" / "hudi"


@pytest.fixture
def rides(tmp_path):
    return Path(shutil.copytree(samples.path("rides"), tmp_path / "rides"))


def commit(table, version, action="deltacommit"):
    (path,) = (table / ".hoodie" / "timeline").glob(f"{version}_*.{action}")
    return path


def assert_named(path, version, problem):
    """Check that the answers over versions name a version that cannot be read, and that it is refused itself."""
    table = open_table(path)
    answers = (table.history(), table.lifetimes().frame, table.at("latest").file_changes(since="earliest"))
    assert all(any(re.search(problem, note) for note in answer.notes) for answer in answers)
    assert version not in table.lifetimes().versions
    with pytest.raises(CorruptTableError, match=problem):
        table.at(version).files()


def test_a_commit_that_was_emptied_is_not_one_that_wrote_nothing(rides):
    path = commit(rides, 20261106030001687)
    path.write_bytes(b"")

    assert_named(rides, 20261106030001687, rf"{path.name} names no files, but .*inflight says what it wrote")


def test_a_commit_that_was_emptied_is_told_by_later_ones_too(rides):
    path = commit(rides, 20261102220004033)
    path.write_bytes(b"")
    for state in ("requested", "inflight"):
        (rides / ".hoodie" / "timeline" / f"20261102220004033.deltacommit.{state}").unlink()

    assert_named(rides, 20261102220004033, f"{path.name} names no files, but later commits follow files")


def test_a_copied_commit_is_named_and_refused(rides):
    path = commit(rides, 20261106110002199)
    shutil.copyfile(commit(rides, 20261106030001687), path)

    assert_named(rides, 20261106110002199, rf"{path.name} names .*, which the commit 20261106030001687 wrote")


def test_a_copied_file_of_the_archive_is_named_and_older_versions_are_unknown(tmp_path):
    table = Path(shutil.copytree(DATA / "v9_cow_archived", tmp_path / "table"))
    first, second, *_ = sorted((table / ".hoodie" / "timeline" / "history").glob("*.parquet"))
    shutil.copyfile(second, first)

    history = open_table(table).history()

    assert any(re.search(f"{first.name} .* it lacks the instants in its name", note) for note in history.notes)
    assert min(history.to_arrow()["version"].to_pylist()) > min(open_table(DATA / "v9_cow_archived").versions())


def test_an_emptied_file_of_the_older_archive_is_named_and_older_versions_are_unknown(tmp_path):
    table = Path(shutil.copytree(DATA / "v6_cow_archived", tmp_path / "table"))
    first = min((table / ".hoodie" / "archived").glob(".commits_*"))
    first.write_bytes(b"")

    history = open_table(table).history()

    assert any("it is empty" in note for note in history.notes)
    assert min(history.to_arrow()["version"].to_pylist()) > min(open_table(DATA / "v6_cow_archived").versions())


def test_a_log_file_that_was_cut_short_is_refused_where_rollbacks_may_append_to_it(tmp_path):
    table = Path(shutil.copytree(DATA / "v6_mor_savepoint_restored", tmp_path / "table"))
    path = max((path for path in table.rglob("*.log.*")), key=lambda path: path.name.rpartition(".log.")[2])
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])

    with pytest.raises(CorruptTableError, match=r"log.* has \d+ bytes, but its commit records"):
        open_table(table).current.to_arrow()


def test_a_table_that_shows_no_version_any_more_is_an_error(rides):
    table = open_table(rides)
    (rides / ".hoodie" / "timeline").rename(rides / ".hoodie" / "elsewhere")

    with pytest.raises(TableNotFoundError, match="shows no version any more: its folder .hoodie/timeline is missing"):
        table.update()


def test_newest_versions_that_are_not_shown_any_more_are_an_error(rides):
    table = open_table(rides)
    table.versions()
    commit(rides, 20261112220000116).unlink()

    with pytest.raises(StorageError, match="shows fewer versions than before: version 20261112220000116 is missing"):
        table.update()


def test_an_archive_that_is_not_shown_any_more_is_an_error(tmp_path):
    path = Path(shutil.copytree(DATA / "v6_cow_archived", tmp_path / "table"))
    table = open_table(path)
    table.versions()
    shutil.rmtree(path / ".hoodie" / "archived")

    with pytest.raises(StorageError, match=r"shows fewer versions than before: .* and 5 more are missing"):
        table.update()


def test_a_version_that_was_rolled_back_may_be_gone(rides):
    table = open_table(rides)
    table.versions()
    commit(rides, 20261112220000116).unlink()
    (rides / ".hoodie" / "timeline" / "20261113000000000_20261113000001000.rollback").write_bytes(b"")

    table.update()

    assert table.current.version == 20261110220002049


def test_nothing_is_known_of_what_an_emptied_commit_stored(tmp_path):
    path = Path(shutil.copytree(DATA / "v6_cow_schema_on_read", tmp_path / "table"))
    emptied = 20261123043038612
    (path / ".hoodie" / f"{emptied}.commit").write_bytes(b"")

    commit = open_table(path).at(emptied).commit

    assert (commit.operation, commit.added_files, commit.details) == (None, None, None)


def without_earlier_states(table, version):
    for path in (table / ".hoodie" / "timeline").glob(f"{version}.*"):
        path.unlink()


def test_an_emptied_commit_is_refused_while_files_that_it_wrote_exist(rides):
    path = commit(rides, 20261112220000116)
    path.write_bytes(b"")
    without_earlier_states(rides, 20261112220000116)

    with pytest.raises(CorruptTableError, match=rf"{path.name} names no files, but .*20261112220000116.* exists, and"):
        open_table(rides).current.to_arrow()


def test_an_empty_commit_without_files_counts_nothing_and_leaves_the_rows(rides):
    before = open_table(rides).current.to_arrow()
    (rides / ".hoodie" / "timeline" / "20261113000000000_20261113000001000.deltacommit").write_bytes(b"")

    table = open_table(rides)
    row = table.history(limit=1).to_arrow().to_pylist()[0]

    assert table.current.version == 20261113000000000
    assert table.current.to_arrow().equals(before)
    assert (row["kind"], row["operation"], row["added_files"], row["added_rows"]) == ("other", None, None, None)


def test_what_an_emptied_clean_did_is_unknown(tmp_path):
    table = Path(shutil.copytree(DATA / "v9_cow_archived", tmp_path / "table"))
    path = max((table / ".hoodie" / "timeline").glob("*.clean"))
    path.write_bytes(b"")

    row = open_table(table).inspect("cleans").to_arrow().to_pylist()[-1]

    assert row["state"] == "completed"
    assert (row["policies"], row["deleted_files"], row["details"]) == (None, None, None)


def test_a_log_file_in_place_of_another_is_refused_where_only_changes_are_read(tmp_path):
    table = Path(shutil.copytree(DATA / "v6_mor_compaction_run", tmp_path / "table"))
    target = next((table / "p=y").glob(".*20261123035908466.log.1_1-715-708"))
    source = next((table / "p=x").glob(".*20261123035857252.log.1_0-650-640"))
    shutil.copyfile(source, target)

    reader = open_table(table)
    pairs = itertools.pairwise(reader.versions())
    with pytest.raises(CorruptTableError, match="contains no intact block of the commit"):
        _ = [reader.row_changes(first, last, mode="diff") for first, last in pairs]


def test_a_table_whose_folder_is_shown_empty_is_refused():
    with registered():
        store = Store(DATA / "archive_deleted", "archive_deleted")
        table = opened(store)
        store.heed(Fault("missing", Request("list", store.root, 0), lasts=True))

        with pytest.raises(StorageError, match="is empty, although its folder .hoodie exists"):
            table.current.to_arrow()


def test_a_commit_with_bytes_behind_its_record_is_named_and_refused(tmp_path):
    shutil.copytree(DATA / "v9_cow_basic", tmp_path / "table")
    path = min((tmp_path / "table" / ".hoodie" / "timeline").glob("*_*.commit"))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, record = reader.writer_schema, next(reader)
    body = io.BytesIO()
    fastavro.schemaless_writer(body, schema, record)
    content = path.read_bytes()
    sync = content[-16:]
    header = content[: content.index(sync) + 16]
    block = io.BytesIO()
    fastavro.schemaless_writer(block, "long", 1)
    fastavro.schemaless_writer(block, "bytes", body.getvalue() + b"\0\0")
    path.write_bytes(header + block.getvalue() + sync)

    assert_named(tmp_path / "table", int(path.name.partition("_")[0]), "2 bytes follow the last row of a block")
