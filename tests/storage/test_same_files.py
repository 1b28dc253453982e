"""Which file a path means: paths of one file have one address, and doubtful ones are named."""

import os

import pyarrow as pa
import pytest

from snapshot_explorer.errors import UnsupportedFeatureError
from snapshot_explorer.storage import Storage
from tests.inner.storage import match_files

AZURE = {"account_key": "c2VjcmV0"}
WEB = "https://data.example.org/lake/t"


@pytest.fixture
def folder(tmp_path):
    """Return a folder `real/t` with a file, to which `link` leads too."""
    (tmp_path / "real/t/p=1").mkdir(parents=True)
    (tmp_path / "real/t/p=1/a.parquet").write_bytes(b"a")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path


def listed(storage, *paths, recorded):
    return match_files(storage, pa.array(paths, pa.string()), pa.array(recorded, pa.string()))


LOCAL = [
    "{0}/real/t/p=1/a.parquet",
    "file://{0}/real/t/p=1/a.parquet",
    "FILE://localhost{0}/real/t/p=1/a.parquet",
    "file://{0}//real/t/p=1//a.parquet",
    "file://{0}/./real/t/./p=1/a.parquet",
    "{0}/link/t/p=1/a.parquet",
    "file://{0}/link/t//p=1/a.parquet",
    "./p=1/a.parquet",
    "p=1//a.parquet",
    "p=1/./a.parquet",
]


@pytest.mark.parametrize("opened_at", ["real/t", "link/t", "real/../link/t/"])
@pytest.mark.parametrize("form", LOCAL)
def test_paths_of_one_local_file_have_one_address(folder, form, opened_at):
    storage = Storage(f"{folder}/{opened_at}")

    assert storage.addresses([form.format(folder), "p=1/a.parquet"]) == [str(folder.resolve() / LOCAL[0][4:])] * 2
    matched = listed(storage, "p=1/a.parquet", recorded=[form.format(folder)])
    assert matched.is_named.to_pylist() == [True]
    assert not matched.undecided


REMOTE = [
    ("s3://lake/t", {}, "s3a://lake/t/a", "t/a"),
    ("s3a://lake/t", {}, "S3N://lake/t/a", "t/a"),
    ("memory://lake/t", {}, "memory://lake/t/a", "t/a"),
    (WEB, {}, "https://DATA.Example.org/lake/t/a", "t/a"),
    (WEB, {}, "https://data.example.org:443/lake/t/a", "t/a"),
    (WEB, {}, "http://data.example.org:80/lake/t/a", "t/a"),
    (WEB, {}, "HTTPS://data.example.org./lake/t/a", "t/a"),
    ("https://Data.Example.ORG:443/lake/t", {}, f"{WEB}/a", "t/a"),
    ("http://127.0.0.1:8080/t", {}, "http://127.0.0.1.:8080/t/a%20b", "t/a b"),
    ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "abfs://c@acct.dfs.core.windows.net/t/a", "t/a"),
    ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "abfss://c@ACCT.blob.core.windows.net/t/a", "t/a"),
    ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "https://acct.blob.core.windows.net/c/t/a", "t/a"),
    ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "https://acct.dfs.core.windows.net:443/c/t/a", "t/a"),
    ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "wasbs://c@acct.blob.core.windows.net/t/a", "t/a"),
    ("az://c/t", AZURE | {"account_name": "acct"}, "abfss://c@acct.dfs.core.windows.net/t/a", "t/a"),
    ("az://c/t", AZURE | {"account_name": "acct"}, "https://acct.blob.core.windows.net/c/t/a", "t/a"),
]


@pytest.mark.parametrize(("root", "options", "form", "end"), REMOTE)
def test_paths_of_one_remote_file_have_one_address(root, options, form, end):
    storage = Storage(root, options)
    name = end.removeprefix("t/")
    address, own = storage.addresses([form, name])

    assert address == own
    assert address.endswith(end)
    assert listed(storage, name, recorded=[form]).is_named.to_pylist() == [True]


@pytest.mark.parametrize(
    ("root", "options", "form"),
    [
        ("s3://lake/t", {}, "s3://lake/other/a"),
        ("s3://lake/t", {}, "s3://lake2/t/a"),
        (WEB, {}, "https://data.example.org/lake/t2/a"),
        ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "abfss://c2@acct.dfs.core.windows.net/t/a"),
        ("abfss://c@acct.dfs.core.windows.net/t", AZURE, "https://acct.blob.core.windows.net/c/t2/a"),
    ],
)
def test_another_remote_file_of_the_same_name_is_certainly_another(root, options, form):
    matched = listed(Storage(root, options), "a", "b", recorded=[form, "b"])

    assert matched.is_named.to_pylist() == [False, True]
    assert not matched.undecided


@pytest.mark.parametrize(
    ("root", "form"),
    [
        ("s3://lake/t", "s3://lake//t/part-0.parquet"),
        ("s3://lake/t", "s3://lake/t/./part-0.parquet"),
        ("s3://lake/t", "s3://Lake/t/part-0.parquet"),
        ("s3://lake/t", "s3://lake/t/part%2D0.parquet"),
        ("s3://lake/t", "https://lake.s3.amazonaws.com/t/part-0.parquet"),
        ("s3://lake/t", "gs://lake/t/part-0.parquet"),
        ("s3://lake/t", "dbfs:///mnt/lake/t/part-0.parquet"),
        ("s3://lake/t", "/mnt/lake/t/part-0.parquet"),
        ("s3://lake/t", "../t/part-0.parquet"),
        ("s3://lake/t", "https://lake.s3.amazonaws.com/t/part-0.parquet?X-Amz-Signature=1"),
        (WEB, "s3://data/lake/t/PART-0.parquet"),
    ],
)
def test_a_path_that_may_be_another_one_of_a_listed_file_is_undecided(root, form):
    matched = listed(Storage(root), "part-0.parquet", recorded=[form, "part-1.parquet"])

    assert matched.undecided == (form,)
    assert "Not all could be decided: the metadata names " in matched.note
    assert not listed(Storage(root), "part-0.parquet", recorded=[form, "part-0.parquet"]).undecided


def test_a_missing_local_file_elsewhere_of_the_same_name_is_undecided_and_an_existing_one_is_not(folder):
    storage = Storage(folder / "real/t/p=1")
    (folder / "copy").mkdir()
    form = f"file://{folder}/copy/a.parquet"
    assert listed(storage, "a.parquet", recorded=[form]).undecided == (form,)

    (folder / "copy/a.parquet").write_bytes(b"other")
    assert not listed(storage, "a.parquet", recorded=[form]).undecided


def test_links_within_the_folder_are_the_files_that_they_lead_to(folder):
    root = folder / "real/t"
    (root / "p=2").symlink_to(root / "p=1")
    (root / "b.parquet").symlink_to(root / "p=1/a.parquet")
    (root / "loop").symlink_to(root)
    (root / "lost.parquet").write_bytes(b"lost")
    names = ["p=1/a.parquet", "p=2/a.parquet", "b.parquet", "loop/p=1/a.parquet", "lost.parquet"]

    for recorded in names[:4]:
        assert listed(Storage(root), *names, recorded=[recorded]).is_named.to_pylist() == [True] * 4 + [False]


def test_a_hard_link_elsewhere_is_the_same_file(folder):
    os.link(folder / "real/t/p=1/a.parquet", folder / "mounted.parquet")

    matched = listed(Storage(folder / "real/t"), "p=1/a.parquet", recorded=[f"file://{folder}/mounted.parquet"])
    assert matched.is_named.to_pylist() == [True]


def test_a_file_by_way_of_a_link_is_within_the_folder_where_others_are_refused(folder):
    storage = Storage(folder / "real/t", external_files="refuse")

    assert storage.read(f"file://{folder}/link/t/p=1/a.parquet") == b"a"
    assert storage.outside is None
    with pytest.raises(UnsupportedFeatureError, match="outside of its folder"):
        storage.read(f"file://{folder}/link/other")
