"""Object stores on the loopback interface: real implementations of the protocols, in processes of their own."""

import contextlib
import http.server
import secrets
import shutil
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pytest

STORES = Path(__file__).parents[2] / ".stores"
AZURITE, FAKE_GCS = STORES / "node_modules/.bin/azurite-blob", STORES / "bin/fake-gcs-server"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The public key of Azure's emulator."""


@dataclass(frozen=True)
class Store:
    root: str
    """The URL of a fresh bucket or folder."""
    options: dict[str, Any]
    put: Any
    """A function that copies a local folder to a name below the root."""
    lost: str | None = None
    """The URL of a bucket that does not exist."""


def free_port() -> int:
    """Return a port on which nothing listens: one that the system does not choose for others before it is used."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)  # Linux chooses from 32,768 on
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextlib.contextmanager
def _process(command, port) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def azure() -> Iterator[Store]:
    """Run Azurite, with a fresh container."""
    pytest.importorskip("adlfs")
    program = shutil.which("azurite-blob") or (str(AZURITE) if AZURITE.exists() else None)
    if program is None:
        pytest.skip("azurite-blob is not installed: .ci/stores")
    port = free_port()
    command = [program, "--silent", "--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]
    with _process([*command, "--blobPort", str(port)], port):
        options = {
            "azure_storage_account_name": _ACCOUNT,
            "azure_storage_account_key": _KEY,
            "azure_endpoint": f"http://127.0.0.1:{port}/{_ACCOUNT}",
        }
        connection = f"BlobEndpoint={options['azure_endpoint']};AccountName={_ACCOUNT};AccountKey={_KEY}"
        writer = fsspec.filesystem("abfs", connection_string=connection, skip_instance_cache=True)
        yield _bucket("abfs", writer, options)


@contextlib.contextmanager
def google() -> Iterator[Store]:
    """Run fake-gcs-server, with a fresh bucket."""
    plain = pytest.importorskip("gcsfs.core").GCSFileSystem
    program = shutil.which("fake-gcs-server") or (str(FAKE_GCS) if FAKE_GCS.exists() else None)
    if program is None:
        pytest.skip("fake-gcs-server is not installed: .ci/stores")
    port = free_port()
    address = f"127.0.0.1:{port}"
    command = [program, "-backend=memory", "-scheme=http", "-host=127.0.0.1", f"-port={port}"]
    with _process([*command, f"-public-host={address}"], port):
        options = {"google_skip_signature": "true", "google_base_url": f"http://{address}"}
        yield _bucket("gs", plain(token="anon", endpoint_url=f"http://{address}", skip_instance_cache=True), options)


def _bucket(protocol, writer, options) -> Store:
    bucket = f"lake-{uuid.uuid4().hex}"
    writer.mkdir(bucket)

    def put(folder, name):
        for file in Path(folder).rglob("*"):
            if file.is_file():
                path = f"{bucket}/{name}/{file.relative_to(folder).as_posix()}"
                writer.pipe_file(path, file.read_bytes())

    return Store(f"{protocol}://{bucket}", options, put, f"{protocol}://no-such-bucket")


def put_on_s3(bucket: str, key: str, content: bytes) -> None:
    """Put an object into a bucket of the S3 API that this process serves: without a request, which takes 5 ms."""
    from moto.backends import get_backend
    from moto.core import DEFAULT_ACCOUNT_ID

    get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket, key, content)


@contextlib.contextmanager
def web(folder) -> Iterator[Store]:
    """Serve a folder over HTTP, with listings as pages."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        yield Store(url, {}, lambda source, name: shutil.copytree(source, Path(folder) / name))
    finally:
        server.shutdown()
        server.server_close()
