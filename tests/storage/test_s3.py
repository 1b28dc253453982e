"""A real S3 API on the loopback interface."""

import gc
import os
import pickle
import urllib.request

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import MissingFileError, StorageError, TableNotFoundError, UnsupportedFeatureError
from snapshot_explorer.storage import Storage, pickled_with_options
from tests.support.effort import ended_if_it_hangs
from tests.support.faulty_proxy import FaultyProxy
from tests.support.object_stores import put_on_s3

pytestmark = pytest.mark.usefixtures("s3_client")


@pytest.fixture
def table(s3):
    """A Storage of a folder in a fresh bucket, and a function that writes a file into it."""
    client, bucket, options = s3

    def write(path, content):
        client.put_object(Bucket=bucket, Key=f"shop.db/orders/{path}", Body=content)

    yield Storage(f"s3://{bucket}/shop.db/orders", options), write
    gc.collect()  # the session that s3fs opened is closed here, not in another test


@pytest.fixture
def sent(table, s3):
    """The requests of a second Storage of that folder, as (method, address), and the Storage."""
    _, bucket, options = s3
    proxy = FaultyProxy(options["endpoint_url"])
    yield proxy.requests, Storage(f"s3://{bucket}/shop.db/orders", {**options, "endpoint_url": proxy.url})
    proxy.close()


def test_files_are_read_listed_and_opened(table):
    storage, write = table
    write("snapshot/snapshot-1", b"one")
    write("snapshot/LATEST", b"1")
    write("empty", b"")
    write("marker/", b"")

    assert storage.read("snapshot/snapshot-1") == b"one"
    assert storage.read("empty") == b""
    assert [(entry.name, entry.is_folder, entry.size_bytes) for entry in storage.list("")] == [
        ("empty", False, 0),
        ("marker", True, None),
        ("snapshot", True, None),
    ]
    assert [entry.name for entry in storage.list("snapshot")] == ["LATEST", "snapshot-1"]
    assert storage.list("marker") == []
    assert storage.list("")[0].modified.tzinfo is not None
    assert storage.open("snapshot/snapshot-1").read() == b"one"


def test_every_character_of_a_key_stands_for_itself(table, s3_client):
    storage, write = table
    name = "p=a b/100%/%2F/#1/what?x=1/st*r/[x]/é漢/a::b/a\\b"
    write(name, b"here")

    assert storage.read(name) == b"here"
    assert storage.exists(name)
    assert [entry.name for entry in storage.list("p=a b/100%/%2F/#1")] == ["what?x=1"]
    if s3_client == "own":
        write("a?versionId=1", b"this")
        assert storage.read("a?versionId=1") == b"this"
    else:
        with pytest.raises(UnsupportedFeatureError, match="cannot read the name .*versionId=1"):
            storage.read("a?versionId=1")


def test_what_is_not_there_is_missing(table):
    storage, write = table
    write("a", b"")

    assert not storage.exists("b")
    assert storage.list("branch") == []
    assert storage.read_present(["a", "b"]) == [b"", None]
    for ask in (storage.read, storage.open):
        with pytest.raises(MissingFileError, match="^b does not exist in s3://lake-"):
            ask("b")


def test_a_bucket_that_is_not_there_is_distinguished_from_a_folder_that_is_not(table, s3):
    storage, _ = table
    _, _, options = s3
    lost = Storage("s3://no-such-bucket/t", options)

    assert storage.list("nowhere") == []
    for ask in (lost.list, lost.read, lost.folders):
        with pytest.raises(StorageError) as caught:
            ask("a")
        assert str(caught.value) == (
            f"Could not read a in s3://no-such-bucket/t (endpoint {options['endpoint_url']}, region us-east-1): there "
            "is no such bucket. Check the bucket's name, and the endpoint and region in storage_options."
        )
        assert not isinstance(caught.value, FileNotFoundError)


def test_opening_tells_a_wrong_bucket_from_a_table_that_is_not_there(table, s3):
    _, bucket, options = s3

    with pytest.raises(TableNotFoundError, match="the folder is missing or empty"):
        open_table(f"s3://{bucket}/nowhere", storage_options=options)
    with pytest.raises(StorageError, match="there is no such bucket"):
        open_table("s3://no-such-bucket/t", storage_options=options)


def test_the_root_may_not_be_a_file(table, s3):
    _, write = table
    _, bucket, options = s3
    write("file", b"x")

    with pytest.raises(StorageError, match="is a file, not a folder. Give the table's own folder"):
        Storage(f"s3://{bucket}/shop.db/orders/file", options).list("")


def test_new_objects_are_seen_after_a_first_listing(table):
    storage, write = table
    write("snapshot/snapshot-1", b"")
    assert len(storage.list("snapshot")) == 1
    assert not storage.exists("snapshot/snapshot-2")

    write("snapshot/snapshot-2", b"")

    assert len(storage.list("snapshot")) == 2
    assert storage.exists("snapshot/snapshot-2")


def test_a_rewritten_object_is_read_anew(table):
    storage, write = table
    write("LATEST", b"1")
    assert storage.read("LATEST") == b"1"

    write("LATEST", b"2")

    assert storage.read("LATEST") == b"2"


def test_each_question_costs_the_requests_that_it_says(table, sent):
    _, write = table
    requests, storage = sent
    write("a/f", b"x")
    storage.read("a/f")  # connects
    questions = {
        1: [lambda: storage.read("a/f"), lambda: storage.list("a"), lambda: storage.exists("a/f"),
            lambda: storage.open("a/f", size_bytes=1), lambda: storage.read_present(["nope"]),
            lambda: storage.exists("nope"), lambda: storage.list("nope")],
        2: [lambda: storage.open("a/f")],
    }  # fmt: skip

    for expected, asked in questions.items():
        for ask in asked:
            requests.clear()
            ask()
            assert len(requests) <= expected, requests


def test_a_listing_is_a_request_per_thousand_names(s3, sent):
    requests, storage = sent
    for i in range(1100):
        put_on_s3(s3[1], f"shop.db/orders/snapshot/snapshot-{i}", b"")
    requests.clear()

    assert len(storage.list("snapshot")) == 1100

    assert len(requests) == 2


def test_many_small_files_are_read_a_request_each(s3, sent):
    requests, storage = sent
    names = [f"f{i}" for i in range(200)]
    for name in names:
        put_on_s3(s3[1], f"shop.db/orders/{name}", name.encode())

    assert storage.read_many(names) == [name.encode() for name in names]

    assert len(requests) == 200


def test_a_parquet_file_is_read_in_ranges(table, sent):
    _, write = table
    requests, storage = sent
    columns = {f"c{i}": pa.array([os.urandom(16) for _ in range(20_000)]) for i in range(8)}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, compression="none", use_dictionary=False)
    content = sink.getvalue().to_pybytes()
    write("data.parquet", content)
    storage.list("")
    requests.clear()

    read = pq.ParquetFile(storage.open("data.parquet", size_bytes=len(content))).read(["c2"])

    assert read["c2"].combine_chunks() == columns["c2"]
    assert len(requests) <= 3


def test_a_storage_survives_pickling(table):
    storage, write = table
    write("a", b"1")
    storage.read("a")

    assert pickle.loads(pickled_with_options(storage)).read("a") == b"1"


def test_a_file_in_another_bucket_is_read(table, s3):
    storage, _ = table
    client, bucket, _ = s3
    client.create_bucket(Bucket=f"{bucket}-b")
    client.put_object(Bucket=f"{bucket}-b", Key="x/data.orc", Body=b"outside")

    token = storage.resolve_external(f"s3a://{bucket}-b/x/data.orc")

    assert token == f"s3://{bucket}-b/x/data.orc"
    assert storage.read(token) == b"outside"
    assert storage.open(token).read() == b"outside"


def test_an_endpoint_that_does_not_answer_fails_soon_and_says_so(s3):
    _, bucket, options = s3
    quick = {"connect_timeout": 1, "read_timeout": 1, "retries": {"max_attempts": 0}}
    storage = Storage(f"s3://{bucket}/t", {**options, "endpoint_url": "http://127.0.0.1:9", "config_kwargs": quick})

    for ask in (storage.read, storage.list, storage.exists):
        with ended_if_it_hangs(), pytest.raises(StorageError) as caught:
            ask("a")
        assert "Check the endpoint in storage_options and the network, then try again." in str(caught.value)
        assert "Error: Could not connect to the endpoint" in str(caught.value)


def test_missing_credentials_are_named(s3, monkeypatch, tmp_path):
    _, bucket, options = s3
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    with pytest.raises(StorageError) as caught:
        Storage(f"s3://{bucket}/t", {"endpoint_url": options["endpoint_url"]}).list("")

    assert str(caught.value) == (
        f"Could not read s3://{bucket}/t (endpoint {options['endpoint_url']}, region us-east-1). No S3 "
        "credentials were found: pass key and secret, or profile, or anon=True for a public bucket in storage_options."
    )


def test_a_profile_that_does_not_exist_is_an_error_of_the_storage(s3):
    _, bucket, options = s3

    with pytest.raises(StorageError, match=r"^Could not read s3://.*: .*\. Check the .*storage_options") as caught:
        Storage(f"s3://{bucket}/t", {**options, "profile": "nobody"}).list("")

    assert options["secret"] not in str(caught.value)


@pytest.fixture
def keys_matter(s3_endpoint):
    """From now on and until the end of the test, moto looks at keys."""

    def let_pass(count):
        address = f"{s3_endpoint}/moto-api/reset-auth"
        request = urllib.request.Request(address, data=count, method="POST", headers={"Content-Type": "text/plain"})
        with urllib.request.urlopen(request):
            pass

    let_pass(b"0")
    yield
    let_pass(b"inf")


def test_wrong_keys_are_refused_and_not_shown(s3, keys_matter):
    _, bucket, options = s3
    wrong = {**options, "key": "AKIAWRONGKEY", "secret": "wrong-secret-value"}

    for ask in (Storage(f"s3://{bucket}/t", wrong).list, Storage(f"s3://{bucket}/t", wrong).read):
        with pytest.raises(StorageError) as caught:
            ask("a")
        assert "Check the keys in storage_options, or the credentials in the environment." in str(caught.value)
        assert "PermissionError" in str(caught.value)
        assert "WRONGKEY" not in str(caught.value)


def test_files_of_many_folders_are_found_by_one_listing_of_the_table(s3, caplog):
    client, bucket, options = s3
    for number in range(40):
        client.put_object(Bucket=bucket, Key=f"t/day={number}/a b.parquet", Body=b"x" * number)
    storage = Storage(f"s3://{bucket}/t", options)
    paths = [f"day={number}/a b.parquet" for number in range(80)]

    with caplog.at_level("DEBUG", "snapshot_explorer.storage"):
        sizes = storage.sizes(paths)

    assert [sizes.get(path) for path in paths] == [*range(40), *[None] * 40]
    assert [record.message for record in caplog.records if record.message.startswith("listed")] == [
        f"listed s3://{bucket}/t with its folders (40 files)"
    ]
