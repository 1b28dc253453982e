"""Hudi tables on a real S3 API: the same answers as on disk, for a number of requests that is known."""

from pathlib import Path

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError
from tests.support.canonical import canonical_rows
from tests.support.faulty_proxy import FaultyProxy
from tests.support.object_stores import put_on_s3

DATA = Path(__file__).parents[2] / "data" / "hudi"
pytestmark = pytest.mark.usefixtures("s3_client")


@pytest.fixture
def uploaded(s3):
    """Return a callable that uploads a table: its URL, storage options, and the requests that are made with them."""
    _, bucket, options = s3
    proxy = FaultyProxy(options["endpoint_url"])

    def upload(name):
        for path in DATA.joinpath(name).rglob("*"):
            if path.is_file():
                key = f"lake/{name}/{path.relative_to(DATA / name).as_posix()}"
                put_on_s3(bucket, key, path.read_bytes())
        return f"s3://{bucket}/lake/{name}", {**options, "endpoint_url": proxy.url}, proxy.requests

    yield upload
    proxy.close()


def answers(table):
    """Return what there is to know of a table, in plain values."""
    versions = table.versions()
    found = {
        "versions": versions,
        "tags": table.tags().to_arrow().to_pylist(),
        "history": table.history().to_arrow().to_pylist(),
        "lifetimes": table.lifetimes().to_arrow().to_pylist(),
        "readability": table.verify().versions.to_arrow().to_pylist(),
        "differences": [table.compare(versions[0], version).files.to_arrow().to_pylist() for version in versions[1:]],
        "retention": table.retention(keep_last=1).freed.to_arrow().to_pylist(),
        "timeline": table.inspect("timeline").to_arrow().to_pylist(),
    }
    for version in versions:
        found[version] = rows(lambda number=version: table.at(number).to_arrow())
    found["changes"] = rows(lambda: table.row_changes("latest^", "latest"))
    return found


def rows(read):
    try:
        return canonical_rows(read())
    except SnapshotExplorerError as error:
        return type(error).__name__


@pytest.mark.parametrize("name", ["v9_mor_basic", "v9_cow_savepoint_restored"])
def test_a_table_on_s3_answers_as_on_disk_and_names_no_local_file(uploaded, name):
    url, options, requests = uploaded(name)

    on_store = answers(open_table(url, storage_options=options))

    assert on_store == answers(open_table(DATA / name))
    with pytest.raises(SnapshotExplorerError) as caught:
        open_table(url, storage_options=options).at(17).to_arrow()
    assert url in str(caught.value)
    assert str(DATA) not in repr(on_store)
    assert {method for method, _ in requests} <= {"GET", "HEAD"}


def test_requests_grow_with_commits_once_and_not_with_versions(uploaded):
    url, options, requests = uploaded("v9_mor_log_compaction")
    table = open_table(url, storage_options=options)
    opening = len(requests)
    commits = len(table.versions())
    requests.clear()

    table.history()
    history = len(requests)
    requests.clear()
    for version in table.versions():
        table.at(version).files()
    table.lifetimes()
    files = len(requests)
    requests.clear()
    table.current.to_arrow()

    assert opening <= 8
    # The metadata of each commit once, after the properties and listings of the timeline, its archive and the only
    # partition, which may have files from before an archive that is gone.
    assert history <= commits + 5
    assert files <= 14
    assert len(requests) <= 2 * len(table.current.files())
