"""Options that allow only some folders: nothing outside of them is read or listed, whichever way leads there."""

import pickle
import shutil

import pytest

from snapshot_explorer import open_lake, open_table, samples
from snapshot_explorer.errors import AccessDeniedError, SnapshotExplorerError, TableNotFoundError
from snapshot_explorer.storage import Storage
from tests.inner.lake import find_tables
from tests.inner.storage import AllowedRoots, ConfinedOptions
from tests.support.delta.table_builder import DeltaTable, add

OUTSIDE = "is outside of the folders that are allowed|outside of the folders that are allowed"


@pytest.fixture
def lake(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    shutil.copytree(samples.path("orders"), folder / "orders")
    shutil.copytree(samples.path("orders"), tmp_path / "secret" / "orders")
    return folder


def only(*paths):
    return ConfinedOptions({}, AllowedRoots.of([str(path) for path in paths]))


def test_a_table_below_a_root_opens(lake):
    assert open_table(lake / "orders", storage_options=only(lake)).at(8).count() > 0
    assert open_table(lake / "orders", storage_options=only(lake / "orders")).at(8).count() > 0


@pytest.mark.parametrize(
    "path",
    [
        "{}/secret/orders",
        "{}/lake/../secret/orders",
        "file://{}/secret/orders",
        "file:{}/secret/orders",
        "local://{}/secret/orders",
        "{}/lake/link",
        "{}/lakes",
        "{}",
        "memory://secret/orders",
        "s3://secret/orders",
        "http://127.0.0.1:9/orders",
    ],
)
def test_no_path_leads_out(lake, tmp_path, path):
    (lake / "link").symlink_to(tmp_path / "secret" / "orders")
    (tmp_path / "lakes").mkdir()

    with pytest.raises(SnapshotExplorerError, match=OUTSIDE):
        open_table(path.format(tmp_path), storage_options=only(lake))


@pytest.mark.parametrize("call", [find_tables, open_lake])
def test_a_search_lists_nothing_outside(lake, tmp_path, call):
    (lake / "link").symlink_to(tmp_path / "secret")

    with pytest.raises(AccessDeniedError, match=OUTSIDE):
        call(tmp_path, storage_options=only(lake))
    result = call(lake, storage_options=only(lake))

    names = [entry.name for entry in result] if call is open_lake else result.column("name").to_pylist()
    assert [name for name in names if name.startswith("link/")] == []
    assert "orders" in names


def test_the_hint_on_a_missing_table_names_nothing_outside(lake, tmp_path):
    (tmp_path / "order_backup").mkdir()

    with pytest.raises(TableNotFoundError) as caught:
        open_table(lake / "order", storage_options=only(lake))
    assert "orders" in str(caught.value)

    with pytest.raises(SnapshotExplorerError) as caught:
        open_table(tmp_path / "order", storage_options=only(lake))
    assert "backup" not in str(caught.value)


def test_a_linked_data_file_is_not_read(lake, tmp_path):
    data = next((lake / "orders").glob("bucket-0/*.parquet"))
    moved = shutil.move(data, tmp_path / "elsewhere.parquet")
    data.symlink_to(moved)
    table = open_table(lake / "orders", storage_options=only(lake))

    with pytest.raises(AccessDeniedError, match=OUTSIDE):
        table.verify()
    failures = 0
    for version in table.versions():
        try:
            table.at(version).to_arrow()
        except AccessDeniedError:
            failures += 1
    assert failures > 0


def test_a_linked_metadata_folder_is_not_read(lake, tmp_path):
    shutil.move(lake / "orders" / "manifest", tmp_path / "manifest")
    (lake / "orders" / "manifest").symlink_to(tmp_path / "manifest")

    with pytest.raises(AccessDeniedError, match=OUTSIDE):
        open_table(lake / "orders", storage_options=only(lake)).at(8).to_arrow()


@pytest.mark.parametrize("where", ["secret", "lake"])
def test_files_that_metadata_names_are_read_only_below_a_root(lake, tmp_path, where):
    DeltaTable(None, lake / "clone").commit(add(f"file://{tmp_path}/{where}/other/a.parquet", rows=1))
    table = open_table(lake / "clone", storage_options=only(lake))

    with pytest.raises(SnapshotExplorerError) as caught:
        table.current.to_arrow(where="id > 0")

    is_refused = isinstance(caught.value, AccessDeniedError)
    assert is_refused == (where == "secret"), caught.value


def test_tables_of_one_lake_and_their_storages_in_other_processes_keep_the_roots(lake, tmp_path):
    (lake / "orders" / "link").symlink_to(tmp_path / "secret")
    for storage in (
        Storage(lake, only(lake)).below("orders"),
        pickle.loads(pickle.dumps(Storage(lake / "orders", only(lake)))),
        pickle.loads(pickle.dumps(Storage(lake, only(lake)).below("orders"))),
    ):
        with pytest.raises(AccessDeniedError, match=OUTSIDE):
            storage.list("link/orders/snapshot")


def test_a_root_may_itself_be_a_link(lake, tmp_path):
    (tmp_path / "current").symlink_to(lake)

    assert open_table(tmp_path / "current" / "orders", storage_options=only(tmp_path / "current")).at(8).count() > 0


def test_a_bucket_whose_name_begins_alike_is_another(memory_root):
    filesystem, root = memory_root
    filesystem.pipe(f"{root}-other/file", b"x")
    filesystem.pipe(f"{root}/file", b"x")
    options = only(f"memory://{root}")

    assert Storage(f"memory://{root}", options).read("file") == b"x"
    with pytest.raises(AccessDeniedError, match=OUTSIDE):
        Storage(f"memory://{root}-other", options)
    filesystem.rm(f"{root}-other", recursive=True)


def test_a_relative_root_is_that_of_its_time(lake, monkeypatch, tmp_path):
    monkeypatch.chdir(lake)
    options = only("orders")
    monkeypatch.chdir(tmp_path)

    assert open_table(lake / "orders", storage_options=options).current.version == 18
