"""A real S3 API behind a proxy that fails: what passes is waited for, what stays is said, nothing wrong is answered.

The long form: SNAPSHOT_EXPLORER_S3_FAULT_RUNS=50 pytest tests/storage/test_s3_faults.py
"""

import os
import re

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import SnapshotExplorerError, StorageError
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import DeltaTable
from tests.support.effort import ended_if_it_hangs
from tests.support.faulty_proxy import TRANSIENT, FaultyProxy
from tests.support.hudi.table_builder import HudiTable
from tests.support.object_stores import put_on_s3
from tests.support.paimon.table_builder import PaimonTable

pytestmark = pytest.mark.usefixtures("s3_client")

RUNS = int(os.environ.get("SNAPSHOT_EXPLORER_S3_FAULT_RUNS", "1"))
"""How many runs at a rate there are. With more than one, every n-th request fails in every way, not some in a few."""


@pytest.fixture
def proxy(s3_endpoint):
    made = FaultyProxy(s3_endpoint)
    yield made
    made.close()


def hasty(proxy, options, **more):
    """Options that leave asking again to this library, which waits less than botocore."""
    config = {"retries": {"mode": "standard", "total_max_attempts": 1}, "read_timeout": 20, "connect_timeout": 20}
    return {**options, "endpoint_url": proxy.url, "config_kwargs": config | more}


def delta(root):
    table = DeltaTable(*root)
    for number in range(6):
        table.append([(number, "x" * number)])
        if number == 2:
            table.checkpoint()
    return table, table.version


def paimon(root):
    table = PaimonTable(*root)
    for number in range(4):
        table.commit([(number, "x" * number)])
    return table, 4


def hudi(root):
    table = HudiTable(*root)
    for number in range(4):
        table.insert([(number, "x" * number)])
    return table, 4


TABLES = {"delta": delta, "paimon": paimon, "hudi": hudi}


@pytest.fixture(params=TABLES)
def stored(request, s3, memory_root):
    """The URL of a table on S3, and the storage options."""
    _, bucket, options = s3
    written, newest = TABLES[request.param](memory_root)
    for path in written.filesystem.find(written.root):
        key = "t/" + path.removeprefix(written.root.rstrip("/") + "/").removeprefix(written.root.strip("/") + "/")
        put_on_s3(bucket, key, written.filesystem.cat_file(path))
    return f"s3://{bucket}/t", options, newest, request.param


def answers(url, options):
    """Return what there is to know of a table, in plain values."""
    table = open_table(url, storage_options=options)
    return {
        "version": table.current.version,
        "versions": table.versions(),
        "rows": sorted(table.current.to_arrow()["id"].to_pylist()),
        "older": sorted(table.at("latest~2").to_arrow()["id"].to_pylist()),
        "history": table.history()["version"].to_pylist(),
        "files": sorted(table.current.files()["path"].to_pylist()),
        "changes": table.at("latest").file_changes(since="earliest").num_rows,
        "lifetimes": sorted(table.lifetimes().frame["path"].to_pylist()),
        "readable": table.verify().versions["readable"].to_pylist(),
    }


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_fifth_of_the_requests_failing_changes_no_answer(stored, proxy, seed):
    url, options, _, _ = stored
    truth = answers(url, options)

    proxy.at_rate(0.2, seed=seed)
    found = answers(url, hasty(proxy, options))

    assert found == truth
    assert len(proxy.faults) > 2


def test_throttling_at_a_fifth_of_the_requests_changes_no_answer_with_the_options_as_they_come(stored, proxy):
    url, options, newest, _ = stored
    proxy.at_rate(0.2, (503,), seed=4)

    table = open_table(url, storage_options={**options, "endpoint_url": proxy.url})

    assert table.current.version == newest
    assert table.current.to_arrow().num_rows == newest
    assert proxy.faults


@pytest.mark.parametrize(
    ("stored", "kind"),
    [*(("delta", kind) for kind in ("page", "xhtml", "plain", "circle")), ("paimon", "page"), ("hudi", "page")],
    indirect=["stored"],
)
def test_what_is_always_answered_in_the_place_of_files_is_refused(stored, proxy, kind):
    url, options, _, _ = stored
    table = open_table(url, storage_options=hasty(proxy, options))
    proxy.always(kind)

    for question in (
        lambda: open_table(url, storage_options=hasty(proxy, options)),
        table.update,
        table.versions,
        table.verify,
        lambda: table.at("latest~1").to_arrow(),
    ):
        with pytest.raises(StorageError) as caught:
            question()
        assert "RecursionError" not in str(caught.value)
        assert f"(endpoint {proxy.url}, region us-east-1)" in str(caught.value)
        if kind == "circle":
            assert re.search(
                "the storage answers with (a loop of redirects|a redirect, which is not followed). Check the endpoint",
                str(caught.value),
            )
        elif kind != "page" or "Internal Server Error" not in str(caught.value):  # what botocore calls a broken listing
            assert "the storage " in str(caught.value)


def test_pages_at_a_fifth_of_the_requests_give_the_right_answer_or_none(stored, proxy):
    url, options, newest, _ = stored
    for seed in range(2 * RUNS):
        proxy.at_rate(0.2, ("page", "xhtml", "plain"), seed=100 + seed)
        try:
            rows = open_table(url, storage_options=hasty(proxy, options)).current.to_arrow()
        except SnapshotExplorerError:
            continue
        assert sorted(rows["id"].to_pylist()) == list(range(newest))


@pytest.mark.parametrize("kind", TRANSIENT if RUNS > 1 else (503, "cut", "xhtml"))
def test_each_request_of_opening_and_loading_may_fail_once(stored, proxy, kind):
    url, options, newest, _ = stored
    options = hasty(proxy, options)
    open_table(url, storage_options=options).current.to_arrow()
    requests = len(proxy.requests)

    for number in range(0 if RUNS > 1 else TRANSIENT.index(kind) % 4, requests, 1 if RUNS > 1 else 5):
        proxy.reset()
        proxy.on_request(number, kind)
        assert open_table(url, storage_options=options).current.to_arrow().num_rows == newest
        assert proxy.faults in ([], [kind])  # some requests are made at once, and not always as many


def test_a_range_that_is_answered_with_a_page_or_cut_is_requested_again(s3, proxy):
    client, bucket, options = s3
    content = os.urandom(3 << 20)
    client.put_object(Bucket=bucket, Key="t/data", Body=content)
    for kind in ("page", "cut", "reset", 503):
        proxy.at_rate(0.3, (kind,), seed=1)
        opened = Storage(f"s3://{bucket}/t", hasty(proxy, options)).open("data", size_bytes=len(content))
        parts = []
        while part := opened.read(200_000):
            parts.append(part)
        assert b"".join(parts) == content
        assert proxy.faults


def test_an_endpoint_that_is_always_slow_fails_within_the_bounds(s3, proxy):
    _, bucket, options = s3
    proxy.always("slow")

    with (
        ended_if_it_hangs(),
        pytest.raises(StorageError, match="Check the endpoint in storage_options and the network, then try again."),
    ):
        Storage(f"s3://{bucket}/t", hasty(proxy, options, read_timeout=0.3)).read("a")

    proxy.wait_for_requests(5)  # the client may give up before the proxy has read them
    assert len(proxy.requests) == 5


@pytest.mark.parametrize(("kind", "tries"), [(503, 5), (500, 5), ("reset", 5), ("page", 5)])
def test_what_fails_for_good_is_asked_five_times_and_names_key_endpoint_and_region(s3, proxy, kind, tries):
    _, bucket, options = s3
    proxy.always(kind)

    with pytest.raises(StorageError) as caught:
        Storage(f"s3://{bucket}/shop.db/t", hasty(proxy, options)).read("a/key")

    asked = len([method for method, _ in proxy.requests if method == "GET"])
    # aiohttp asks again by itself, once, where a connection that was kept open is reset.
    assert tries <= asked <= (2 * tries if kind == "reset" else tries)
    assert str(caught.value).startswith(
        f"Could not read a/key in s3://{bucket}/shop.db/t (endpoint {proxy.url}, region us-east-1): "
    )
    assert "Check the " in str(caught.value)


COSTS = {
    "delta": {"open": 12, "update": 1, "at": 1, "history": 8, "files": 3, "load": 14},
    "paimon": {"open": 7, "update": 4, "at": 8, "history": 19, "files": 12, "load": 18},
    "hudi": {"open": 8, "update": 4, "at": 4, "history": 9, "files": 0, "load": 4},
}
"""The most requests that a question may cost, of the tables above."""


def test_questions_cost_no_more_requests_than_they_should(stored, proxy):
    url, options, _, name = stored
    options = hasty(proxy, options)
    costs = {}

    def counted(what, question):
        proxy.reset()
        found = question()
        costs[what] = len(proxy.requests)
        return found

    table = counted("open", lambda: open_table(url, storage_options=options))
    counted("update", table.update)
    counted("at", lambda: table.at("latest~1"))
    counted("history", lambda: table.history(limit=5))
    counted("files", table.current.files)
    counted("load", table.current.to_arrow)

    assert isinstance(table.current.to_arrow(), pa.Table)
    assert {what: cost for what, cost in costs.items() if cost > COSTS[name][what]} == {}, costs
