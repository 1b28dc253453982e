"""What reads S3: requests of our own where they do what s3fs would do, otherwise s3fs."""

import os
import sys

import pytest

from snapshot_explorer.errors import MissingFileError, StorageError
from snapshot_explorer.storage import Storage, object_store_clients
from tests.inner.storage import ObjectStoreFiles, RemoteFiles, parse_location
from tests.support.faulty_proxy import FaultyProxy
from tests.support.object_stores import put_on_s3
from tests.support.outputs import shown_by

KEYS = {"key": "AKIAKEY", "secret": "secret"}
HERE = {"endpoint_url": "http://127.0.0.1:9"}


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("AWS_") or name == "REQUESTS_CA_BUNDLE"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))


def client(options, path="s3://lake/t"):
    return type(Storage(path, options)._connection().files)


@pytest.mark.parametrize(
    "options",
    [
        {**KEYS, **HERE},
        {**KEYS, "client_kwargs": {"region_name": "eu-west-1"}},
        {"aws_access_key_id": "AKIAKEY", "aws_secret_access_key": "secret", "aws_region": "eu-west-1"},
        {"anon": True, **HERE},
        {**KEYS, **HERE, "config_kwargs": {"read_timeout": 5, "retries": {"total_max_attempts": 2}}},
        {**KEYS, **HERE, "skip_instance_cache": True},
    ],
)
def test_no_package_reads_what_options_describe_in_full(options):
    assert client(options) is ObjectStoreFiles


@pytest.mark.parametrize(
    "options",
    [
        {},
        KEYS,  # the region is unknown: botocore finds it
        {"key": "AKIAKEY", **HERE},
        HERE,
        {**KEYS, **HERE, "profile": "prod"},
        {**KEYS, **HERE, "use_ssl": False},
        {**KEYS, **HERE, "client_kwargs": {"verify": False}},
        {**KEYS, **HERE, "client_kwargs": "wrong"},
        {**KEYS, **HERE, "config_kwargs": {"proxies": {}}},
        {**KEYS, **HERE, "config_kwargs": {"s3": {"use_accelerate_endpoint": True}}},
        {**KEYS, "endpoint_url": "http://user:password@127.0.0.1:9"},
    ],
)
def test_s3fs_reads_what_needs_more(options):
    assert object_store_clients.settings(parse_location("s3://lake/t"), options) is None


def test_keys_and_region_may_be_in_the_environment_but_not_a_profile(monkeypatch):
    for name, value in (("ACCESS_KEY_ID", "AKIAKEY"), ("SECRET_ACCESS_KEY", "secret"), ("DEFAULT_REGION", "eu-west-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    assert client({}) is ObjectStoreFiles

    monkeypatch.setenv("AWS_PROFILE", "prod")
    assert client({}) is RemoteFiles


@pytest.mark.parametrize("bucket", ["lake--use1-az4--x-s3", "Upper"])
def test_buckets_with_rules_of_their_own_are_left_to_s3fs(bucket):
    assert client({**KEYS, **HERE}, f"s3://{bucket}/t") is RemoteFiles


def test_s3fs_is_not_imported_where_nothing_needs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)

    with pytest.raises(StorageError, match="UnreachableStoreError: Could not connect to the endpoint: it refuses"):
        Storage("s3://lake/t", {**KEYS, **HERE, "config_kwargs": {"retries": {"total_max_attempts": 1}}}).list("")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_fork_reads_over_connections_of_its_own(proxied):
    storage, write, _ = proxied
    write("a", b"1")
    assert storage.read("a") == b"1"

    child = os.fork()
    if not child:
        os._exit(0 if storage.read_many(["a"] * 9) == [b"1"] * 9 else 1)

    assert storage.read_many(["a"] * 9) == [b"1"] * 9
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def proxied(s3):
    """A Storage in a fresh bucket, a function that writes, and the proxy before it."""
    client, bucket, options = s3
    proxy = FaultyProxy(options["endpoint_url"])

    def write(key, content=b"x"):
        client.put_object(Bucket=bucket, Key=f"t/{key}", Body=content)

    once = {"retries": {"total_max_attempts": 1}}
    yield Storage(f"s3://{bucket}/t", {**options, "endpoint_url": proxy.url, "config_kwargs": once}), write, proxy
    proxy.close()


@pytest.mark.parametrize("page", ["xhtml", "plain"])
def test_a_page_in_the_place_of_a_listing_is_not_an_empty_folder(proxied, page):
    storage, write, proxy = proxied
    write("log/1")
    write("other/1")
    proxy.on_request(0, page)

    assert [entry.name for entry in storage.list("log")] == ["1"]
    assert proxy.faults == [page]


def test_a_page_in_the_place_of_the_end_of_a_listing_does_not_shorten_it(s3, proxied):
    storage, _, proxy = proxied
    paths = [f"log/{number % 40}-{number}" for number in range(1005)]
    for path in paths:
        put_on_s3(s3[1], f"t/{path}", b"x")
    proxy.fault = lambda number, _, path: "xhtml" if number == 1 and "continuation-token" in path else None

    assert len(storage.list("log")) == 1005
    proxy.reset()
    assert storage.sizes([*paths, *(f"{number}/a" for number in range(40))]) == dict.fromkeys(paths, 1)
    assert proxy.faults == ["xhtml"]


def test_a_folder_that_only_its_own_object_represents_is_empty(proxied):
    storage, write, _ = proxied
    write("marker/", b"")
    write("a")

    assert storage.list("marker") == []


@pytest.mark.parametrize("name", ["a b", "a+b", "a%20b", "ä", "a#b?c=d&e", "a=1/b", "~(a)*'!", "a:b@c,d;e", "a\tb"])
def test_every_character_of_a_name_is_literal(proxied, name):
    storage, write, _ = proxied
    write(name, b"1")

    assert storage.read(name) == b"1"
    assert storage.sizes([name]) == {name: 1}


def test_a_session_token_of_the_environment_is_not_added_to_keys_of_the_options(proxied, monkeypatch):
    storage, write, proxy = proxied
    write("a", b"1")
    tokens = []
    answer = proxy.answer
    proxy.answer = lambda request: (tokens.append(request.headers.get("x-amz-security-token")), answer(request))
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-another-key")

    assert storage.read("a") == b"1"
    assert tokens == [None]


def test_an_answer_that_quotes_secrets_is_not_shown(proxied, s3):
    storage, _, proxy = proxied
    secret = s3[2]["secret"]
    body = f"<Error><Code>AccessDenied</Code><Message>{secret}</Message><Canary>{secret}</Canary></Error>".encode()
    proxy.answer = lambda request: proxy.send(request, 403, {"Content-Type": "application/xml"}, body)

    with pytest.raises(StorageError, match=r"PermissionError: AccessDenied: \*\*\*. Check the keys") as caught:
        storage.read("a")

    assert not isinstance(caught.value, MissingFileError)
    assert not [text for text in shown_by(caught.value) if secret in text]
