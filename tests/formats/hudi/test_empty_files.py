"""Empty files of a timeline: an answer that is shorter than listed is an error, and an empty commit is noted."""

import logging
import re
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, StorageError
from tests.support.fault_search import tables
from tests.support.faults import Fault, Request, Store, registered
from tests.support.public_calls import opened

DATA = Path(__file__).parents[2] / "data" / "hudi"
EMPTY = "The commit metadata of version {} is empty, as a crashed writer leaves it"
WITHOUT_FILES = [
    ("v6_cow_schema_on_read", 20261123043022898),
    ("v6_cow_schema_on_read", 20261123043028315),
    ("v6_cow_schema_on_read", 20261123043038612),
    ("r12_cow_empty_commits", 20261123041217972),
    ("v9_cow_partition_dropped", 0),
]
"""Tables, and a commit that wrote no files; 0 for one that is added."""


@pytest.fixture(autouse=True)
def _without_waits(monkeypatch):
    monkeypatch.setattr("snapshot_explorer.storage.retries.FIRST_WAIT", 0.001)


@pytest.fixture
def stored():
    with registered():
        yield lambda name: Store(tables()[f"hudi/{name}"], name)


def timeline(folder):
    layout_2 = folder / ".hoodie" / "timeline"
    return layout_2 if layout_2.is_dir() else folder / ".hoodie"


def emptied(folder, version):
    """Empty the completed file of a commit, or add one behind all others, and return its version."""
    if version:
        (path,) = (path for path in timeline(folder).glob(f"{version}*commit") if path.suffix.endswith("commit"))
        path.write_bytes(b"")
        return version
    newest = open_table(folder).versions()[-1] + 10_000
    name = f"{newest}_{newest + 1}.commit" if timeline(folder).name == "timeline" else f"{newest}.commit"
    (timeline(folder) / name).write_bytes(b"")
    return newest


def answers(table):
    version = table.versions()[-2]
    return (
        table.history().to_arrow().to_pylist(),
        table.lifetimes().frame.to_arrow().to_pylist(),
        table.at(version).schema,
        table.at(version).files().to_arrow().to_pylist(),
        table.current.files().to_arrow().to_pylist(),
    )


SHORT = [
    ("v6_cow_schema_on_read", r"20261123043022898\.commit$"),
    ("v6_cow_bootstrap_metadata", r"/00000000000001\.commit$"),
    ("r12_cow_empty_commits", r"20261123041217972_\d+\.commit$"),
    ("v6_mor_compaction_run", r"\.commit$"),
    ("v6_mor_savepoint_restored", r"20261123040307034\.deltacommit$"),
    ("v8_mor_partial_update", r"20261123040948769_\d+\.deltacommit$"),
    ("v3_cow", r"20261126174838575\.commit$"),
    ("v6_mor_compaction_pending", r"\.compaction\.requested$"),
    ("v9_cow_lsm_merged", r"/history/\w+\.parquet$"),
    ("v9_cow_archived", r"/history/manifest_\d+$"),
    ("v6_cow_archived", r"/archived/\.commits_\S+$"),
]


@pytest.mark.parametrize("kind", ["emptied", "blank"])
@pytest.mark.parametrize(("name", "pattern"), SHORT)
def test_a_file_of_the_timeline_that_is_answered_shorter_than_listed_once_is_requested_again(
    stored, name, pattern, kind
):
    store = stored(name)
    expected = answers(opened(store))
    path = max(path for path in store.files if re.search(pattern, path))
    store.heed(Fault(kind, Request("read", path, 0)))

    assert answers(opened(store)) == expected
    assert store.struck == 1


@pytest.mark.parametrize(("name", "pattern"), SHORT[:7])
def test_a_commit_that_stays_shorter_than_listed_is_an_error_and_named(stored, name, pattern):
    store = stored(name)
    path = max(path for path in store.files if re.search(pattern, path))
    version = int(re.search(r"(\d+)[_.]", path.rpartition("/")[2])[1])
    store.heed(Fault("emptied", Request("read", path, 0), lasts=True))

    with pytest.raises(StorageError, match=r"answered with 0 of [\d,]+ bytes"):
        opened(store).at(version).files()
    with suppress(StorageError):  # the newest commit
        assert any(re.search(r"answered with 0 of [\d,]+ bytes", note) for note in opened(store).history().notes)


@pytest.mark.parametrize(("name", "version"), WITHOUT_FILES)
def test_an_empty_commit_that_wrote_nothing_stays_a_version_and_is_noted(tmp_path, caplog, name, version):
    table = Path(shutil.copytree(DATA / name, tmp_path / name))
    version = emptied(table, version)

    with caplog.at_level(logging.WARNING):
        opened_table = open_table(table)
        notes = opened_table.history().notes
        files = opened_table.at(version).files()
        schema = opened_table.at(version).schema

    before = opened_table.versions()[opened_table.versions().index(version) - 1]
    assert any(EMPTY.format(version) in note for note in notes)
    assert sum(EMPTY.format(version) in record.getMessage() for record in caplog.records) == 1
    assert files.to_arrow().equals(opened_table.at(before).files().to_arrow())
    assert schema == opened_table.at(before).schema


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("v6_cow_schema_on_read", 20261123043024472),
        ("v6_mor_savepoint_restored", 20261123040307034),
        ("v8_mor_partial_update", 20261123040948769),
        ("v9_cow_basic", 0),
        ("v9_mor_basic", 0),
    ],
)
def test_an_emptied_commit_without_earlier_states_has_no_schema_of_another(tmp_path, name, version):
    table = Path(shutil.copytree(DATA / name, tmp_path / name))
    version = emptied(table, version or open_table(table).versions()[1])
    for path in timeline(table).glob(f"{version}*"):
        if path.suffix in (".requested", ".inflight"):
            path.unlink()

    with pytest.raises(CorruptTableError, match="names no files, but"):
        _ = open_table(table).at(version).schema


@pytest.mark.parametrize(
    "name", ["v9_cow_basic", "v9_mor_basic", "v3_cow", "v9_mor_event_time", "r12_cow_empty_commits"]
)
def test_a_commit_that_a_writer_fills_later_is_noticed_at_the_next_update(tmp_path, name):
    table = Path(shutil.copytree(DATA / name, tmp_path / name))
    newest = open_table(table).versions()[-1]
    expected = open_table(table).current.files().to_arrow()
    (path,) = (path for path in timeline(table).glob(f"{newest}*commit") if path.suffix.endswith("commit"))
    content = path.read_bytes()
    for earlier in timeline(table).glob(f"{newest}*"):
        if earlier.suffix in (".requested", ".inflight"):
            earlier.unlink()
    wrote = [Path(file) for file in set(expected["path"].to_pylist()) if str(newest) in file]
    for file in wrote:
        (table / file).rename(tmp_path / file.name)
    path.write_bytes(b"")
    reader = open_table(table)
    assert any(EMPTY.format(newest) in note for note in reader.history().notes)
    reader.lifetimes()

    for file in wrote:
        (tmp_path / file.name).rename(table / file)
    path.write_bytes(content)
    reader.update()

    assert reader.current.files().to_arrow().equals(expected)
    assert reader.lifetimes().frame.to_arrow().equals(open_table(table).lifetimes().frame.to_arrow())
    assert not any("is empty" in note for note in reader.history().notes)


CUT = ["archive_deleted", "v9_cow_basic", "v9_mor_basic", "v9_cow_clustered", "v9_mor_parquet_logs"]
"""Tables, whose first commit and archive are removed."""


def shown(table):
    return (
        table.current.files().to_arrow().to_pylist(),
        table.current.commit,
        table.history(limit=1).to_arrow().to_pylist(),
        table.lifetimes().frame.to_arrow().to_pylist(),
    )


def cut(store):
    """Remove the first commit, so that older files are found by listings; return the folders that have them."""
    commits = sorted(path for path in store.files if re.search(r"/timeline/\d+_\d+\.(delta)?commit$", path))
    first = re.search(r"/(\d+)_", commits[0])[1]
    if store.root != "lake/archive_deleted":
        for path in [path for path in store.files if f"/timeline/{first}" in path]:
            del store.files[path]
    folders = sorted({path.rpartition("/")[0] for path in store.files if "/.hoodie" not in path})
    return [folder for folder in folders if folder != store.root]


@pytest.mark.parametrize("kind", ["missing", "list emptied"])
@pytest.mark.parametrize("name", CUT)
def test_a_folder_that_is_shown_empty_once_is_listed_again(stored, name, kind):
    store = stored(name)
    folders = cut(store)
    expected = shown(opened(store))
    struck = 0
    for folder in folders:
        table = opened(store)
        store.heed(Fault(kind, Request("list", folder, 0)))

        assert shown(table) == expected
        struck += store.struck

    assert struck


@pytest.mark.parametrize("kind", ["list halved", "list without its newest"])
@pytest.mark.parametrize("name", CUT)
def test_a_folder_that_its_parent_lacks_once_is_listed_nevertheless(stored, name, kind):
    store = stored(name)
    cut(store)
    expected = shown(opened(store))
    table = opened(store)
    store.heed(Fault(kind, Request("list", store.root, 0), lasts=True))

    assert shown(table) == expected
    assert store.struck


@pytest.mark.parametrize("name", CUT)
def test_a_folder_that_was_shown_empty_is_noticed_at_the_next_update(stored, name):
    store = stored(name)
    folders = cut(store)
    expected = shown(opened(store))
    for folder in folders:
        table = opened(store)
        store.heed(Fault("list emptied", Request("list", folder, 0), lasts=True))
        with suppress(StorageError, CorruptTableError):
            shown(table)
        store.heed(None)

        table.update()

        assert shown(table) == expected


@pytest.mark.parametrize("kind", ["missing", "list emptied"])
@pytest.mark.parametrize("name", ["v2_mor", "flink_mor", "v3_cow", "v6_cow_archived", "v6_mor_types"])
def test_a_timeline_that_is_listed_without_the_properties_beside_it_is_an_error(stored, name, kind):
    store = stored(name)
    store.heed(Fault(kind, Request("list", f"{store.root}/.hoodie", 0), lasts=True))

    with pytest.raises(
        StorageError, match=r"listing of \.hoodie in .* is incomplete: \.hoodie/hoodie\.properties is missing"
    ):
        opened(store)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mor_v6_nonpartitioned_rollback", "20250126040936578.rollback"),
        ("v6_mor_savepoint_restored", "20261123040324999.restore"),
        ("v9_cow_savepoint_restored", "20261123034505623_20261123034508587.restore"),
        ("v9_mor_basic", "20261126120000000_20261126120001000.rollback"),
        ("v3_cow", "20261126180000000.rollback"),
    ],
)
def test_what_an_empty_rollback_removed_is_said_to_be_unknown(tmp_path, caplog, name, file):
    table = Path(shutil.copytree(DATA / name, tmp_path / name))
    (timeline(table) / file).write_bytes(b"")
    reader = open_table(table)

    with caplog.at_level(logging.WARNING):
        rows = reader.inspect("timeline").to_arrow()
        reader.inspect("timeline")

    assert file.partition("_")[0].partition(".")[0] in rows["requested"].to_pylist()
    assert sum(f"{file} is empty" in record.getMessage() for record in caplog.records) == 1
