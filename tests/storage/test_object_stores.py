"""Azure, Google Cloud Storage and plain HTTP, as real servers on the loopback interface; S3 has tests of its own."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from snapshot_explorer import find_tables, open_table, samples
from snapshot_explorer.errors import InvalidArgumentError, MissingFileError, StorageError, TableNotFoundError
from snapshot_explorer.storage import Storage, load_of
from tests.support import object_stores
from tests.support.faulty_proxy import FaultyProxy
from tests.support.outputs import shown_by

STORES = ("azure", "azure with adlfs", "google", "google with gcsfs", "web")
LEFT_TO_FSSPEC = {"azure with adlfs": {"location_mode": "primary"}, "google with gcsfs": {"consistency": "none"}}
"""Options that only fsspec's packages have, with their defaults: with one, the package reads."""
TABLES = {"orders": "paimon", "payments": "delta", "shipments": "iceberg"}


@pytest.fixture(scope="module", params=STORES)
def store(request, tmp_path_factory):
    """A store with a table of each format."""
    folder = tmp_path_factory.mktemp("served")
    name = request.param.split()[0]
    running = object_stores.web(folder) if name == "web" else getattr(object_stores, name)()
    with running as made:
        for table in TABLES:
            made.put(samples.path(table), f"shop.db/{table}")
        yield replace(made, options={**made.options, **LEFT_TO_FSSPEC.get(request.param, {})})


@pytest.mark.parametrize("name", TABLES)
def test_a_table_opens_logs_loads_and_compares_as_on_the_local_disk(store, name):
    local = open_table(samples.path(name))

    table = open_table(f"{store.root}/shop.db/{name}", storage_options=store.options)

    assert table.format == TABLES[name]
    assert table.current.version == local.current.version
    # Whether the files are there is only looked up on the local disk.
    histories = [one.history().to_arrow().drop_columns("readable") for one in (table, local)]
    assert histories[0].equals(histories[1])
    last = table.current.version
    assert table.at(last).to_arrow().equals(local.at(last).to_arrow())
    changed, expected = (one.compare(f"{last}~1", last) for one in (table, local))
    assert changed.files.to_arrow().equals(expected.files.to_arrow())


@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")  # whoever writes it does
def test_a_large_file_is_read_in_parts(store, tmp_path):
    content = bytes(range(256)) * (3 << 12)
    (tmp_path / "large").write_bytes(content)
    store.put(tmp_path, "parts")
    storage = Storage(f"{store.root}/parts", store.options)

    with storage.open("large", size_bytes=len(content)) as opened:
        opened.seek(1000)
        assert opened.read(100) == content[1000:1100]
        load_of(opened)([(0, 500_000), (1_000_000, 1_500_000)])
        opened.seek(0)
        assert opened.read() == content
    assert storage.read("large") == content


def test_tables_are_found_below_a_folder(store):
    found = find_tables(f"{store.root}/shop.db", storage_options=store.options).to_arrow()

    assert dict(zip(found["name"].to_pylist(), found["format"].to_pylist(), strict=True)) == TABLES


def test_what_does_not_exist_is_missing(store):
    storage = Storage(f"{store.root}/shop.db", store.options)

    assert storage.list("nowhere") == []
    assert storage.read_present(["nowhere/file"]) == [None]
    assert not storage.exists("nowhere/file")
    with pytest.raises(MissingFileError, match="^nowhere does not exist in "):
        storage.read("nowhere")
    with pytest.raises(TableNotFoundError, match="the folder is missing or empty"):
        open_table(f"{store.root}/nowhere", storage_options=store.options)


@pytest.mark.parametrize(
    ("kind", "word"),
    # Google's own server says in XML, too, which bucket is missing, fake-gcs-server only to gcsfs.
    [("azure", "container"), ("azure with adlfs", "container"), ("google with gcsfs", "bucket")],
)
def test_a_missing_bucket_is_not_a_missing_folder(kind, word):
    with getattr(object_stores, kind.split()[0])() as store:
        options = {**store.options, **LEFT_TO_FSSPEC.get(kind, {})}
        with pytest.raises(StorageError, match=f": there is no such {word}. Check the {word}'s name, and ") as caught:
            open_table(f"{store.lost}/t", storage_options=options)
        with pytest.raises(StorageError, match=f"there is no such {word}"):
            Storage(f"{store.lost}/t", options).list("a")

    assert not isinstance(caught.value, FileNotFoundError)
    secrets = [value for name, value in store.options.items() if "key" in name]
    assert not [text for text in shown_by(caught.value) if any(secret in text for secret in secrets)]


@pytest.mark.parametrize(("kind", "package"), [("azure", "adlfs"), ("google", "gcsfs")])
def test_a_store_is_read_without_the_package_of_fsspec(kind, package, monkeypatch):
    with getattr(object_stores, kind)() as store:
        store.put(samples.path("payments"), "payments")
        monkeypatch.setitem(sys.modules, package, None)

        table = open_table(f"{store.root}/payments", storage_options=store.options)

        assert table.current.count() == open_table(samples.path("payments")).current.count()


@pytest.mark.parametrize(("kind", "endpoint"), [("azure", "azure_endpoint"), ("google", "google_base_url")])
def test_what_fails_for_a_moment_is_requested_again(kind, endpoint):
    local = open_table(samples.path("payments"))
    with (
        getattr(object_stores, kind)() as store,
        closing(FaultyProxy(store.options[endpoint], names_target=True)) as proxy,
    ):
        store.put(samples.path("payments"), "payments")
        proxy.at_rate(0.2, seed=1)
        path = urlsplit(store.options[endpoint]).path

        table = open_table(f"{store.root}/payments", storage_options={**store.options, endpoint: proxy.url + path})

        assert table.history().to_arrow()["version"].equals(local.history().to_arrow()["version"])
        assert table.current.to_arrow().equals(local.current.to_arrow())
        assert len(proxy.faults) > 2


def test_denied_access_is_not_retried_and_no_error_contains_the_key():
    with object_stores.azure() as store:
        canary = "Y2FuYXJ5LWNhbmFyeQ=="
        options = {**store.options, "azure_storage_account_key": canary}

        with pytest.raises(StorageError, match="PermissionError: AuthorizationFailure: .* Check the keys") as caught:
            Storage(f"{store.root}/t", options).read("a")

    assert not [text for text in shown_by(caught.value) if canary in text]


CANARY = "canary-of-google-8e44"
ACCOUNT = {
    "type": "service_account",
    "client_email": "a@b.example",
    "private_key_id": CANARY,
    "private_key": f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n",
    "token_uri": f"http://127.0.0.1:1/{CANARY}",
}


@pytest.mark.parametrize(
    "options",
    [
        {"google_service_account_key": f"{{{CANARY}"},
        {"google_service_account_key": json.dumps({**ACCOUNT, "private_key": CANARY})},
        {"google_service_account_key": json.dumps(ACCOUNT)},
        {"token": ACCOUNT},
        {"token": ACCOUNT, "consistency": "none"},
        {"token": "anon", "endpoint_url": f"http://127.0.0.1:1/{CANARY}"},
    ],
    ids=["no JSON", "no key", "a damaged key", "a damaged account", "a damaged account with gcsfs", "an endpoint"],
)
def test_no_error_of_googles_clients_contains_a_key(options):
    pytest.importorskip("gcsfs")

    with pytest.raises((StorageError, InvalidArgumentError)) as caught:
        Storage("gs://lake/t", options).read("a")

    assert not [text for text in shown_by(caught.value) if CANARY in text]


NOBODY = "http://127.0.0.1:{port}"
AZURE_CHAIN = {
    f"exclude_{name}_credential": True
    for name in ("managed_identity", "cli", "powershell", "developer_cli", "shared_token_cache", "visual_studio_code")
}
FAILURES = {
    "azure refused": (
        "abfs://lake/t",
        {"account_name": "a", "account_key": "a2V5", "azure_endpoint": f"{NOBODY}/a"},
        "Could not connect to the endpoint: it refuses connections.",
    ),
    "azure unknown": (
        "abfs://lake/t",
        {"account_name": "a", "account_key": "a2V5", "azure_endpoint": "https://a.nowhere.invalid/a"},
        "Could not connect to the endpoint: its name is unknown.",
    ),
    "azure refused, with adlfs": (
        "abfs://lake/t",
        {"account_name": "a", "account_key": "a2V5", "azure_endpoint": f"{NOBODY}/a", "location_mode": "primary"},
        "ServiceRequestError: Cannot connect to host 127.0.0.1:",
    ),
    "azure without credentials": (
        "abfs://lake/t",
        {"account_name": "nobody", **AZURE_CHAIN},
        "lake/t. No Azure credentials were found: pass account_key, sas_token or connection_string in storage_options.",
    ),
    "azure without an account": (
        "abfs://lake/t",
        {},
        "No Azure account was named: pass account_name and account_key, or connection_string in storage_options.",
    ),
    "google refused": (
        "gs://lake/t",
        {"token": "anon", "endpoint_url": NOBODY},
        "Could not connect to the endpoint: it refuses connections.",
    ),
    "google unknown": (
        "gs://lake/t",
        {"token": "anon", "endpoint_url": "http://nowhere.invalid"},
        "Could not connect to the endpoint: its name is unknown.",
    ),
    "google refused, with gcsfs": (
        "gs://lake/t",
        {"token": "anon", "endpoint_url": NOBODY, "consistency": "none"},
        "ClientConnectorError: Connect call failed",
    ),
    "s3 refused": (
        "s3://lake/t",
        {"key": "key", "secret": "secret", "endpoint_url": NOBODY},
        "Error: Could not connect to the endpoint",
    ),
    "s3 unknown": (
        "s3://lake/t",
        {"key": "key", "secret": "secret", "endpoint_url": "http://nowhere.invalid"},
        "Error: Could not connect to the endpoint",
    ),
    "s3 without credentials": (
        "s3://lake/t",
        {},
        "No S3 credentials were found: pass key and secret, or profile, or anon=True for a public bucket",
    ),
    "http refused": (f"{NOBODY}/t", {}, "ClientConnectorError: Connect call failed"),
}
SCRIPT = """
import asyncio, collections, sys, threading, time
waits, pause, rest = collections.Counter(), time.sleep, asyncio.sleep
def wait(seconds):
    waits[threading.get_ident()] += seconds
    pause(seconds / 100)
time.sleep = wait
async def noted(seconds, *values):
    waits[asyncio.current_task()] += seconds
    return await rest(seconds / 100, *values)
asyncio.sleep = noted
from snapshot_explorer import open_table
try:
    open_table({path!r}, storage_options={options!r})
except Exception as error:
    # Requests that are made at the same time wait at the same time.
    print(type(error).__name__, max(waits.values(), default=0), error)
"""


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_one_sentence_soon_and_nothing_on_stderr(name, monkeypatch, tmp_path):
    kind = name.split()[0]
    pytest.importorskip({"azure": "adlfs", "google": "gcsfs", "s3": "s3fs", "http": "aiohttp"}[kind])
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AZURE_STORAGE_CONNECTION_STRING"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    path, options, message = FAILURES[name]
    port = object_stores.free_port()
    options = {key: value.format(port=port) if isinstance(value, str) else value for key, value in options.items()}
    script = SCRIPT.format(path=path.format(port=port), options=options)

    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)

    error, waited, text = run.stdout.strip().split(" ", 2)
    assert error == "StorageError"
    assert message in text
    assert float(waited) < 4
    assert run.stderr == ""
