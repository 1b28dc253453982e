"""Which places may be named, and how they are shown."""

import pickle
import shutil
import subprocess
import sys
import traceback

import pytest
from fsspec.registry import _registry
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer import open_table, samples
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    MissingDependencyError,
    MissingFileError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.storage import Storage
from tests.inner.storage import full_text, is_outside, normalize, parse_location, resolve_location
from tests.support import filesystems

AWAY = "which is on another storage than the table itself"


@pytest.mark.parametrize(
    ("given_path", "shown"),
    [
        ("s3://lake/shop.db/orders", "s3://lake/shop.db/orders"),
        ("s3://lake/orders/", "s3://lake/orders"),
        ("S3A://lake/orders", "s3://lake/orders"),
        ("s3n://lake/orders", "s3://lake/orders"),
        ("s3://KEY:SECRET@lake/orders", "s3://lake/orders"),
        ("s3://lake/what?/t", "s3://lake/what?/t"),
        ("s3://lake/a#b/t", "s3://lake/a#b/t"),
        ("s3://lake/a::b/t", "s3://lake/a::b/t"),
        ("https://host/t?X-Amz-Signature=abc/def&x=1", "https://host/t?..."),
        ("sftp://user:pass@host:22/t", "sftp://host:22/t"),
        ("sftp://user:p@ss@host/t", "sftp://host/t"),
        ("abfss://container@account.dfs.core.windows.net/t", "abfs://container@account.dfs.core.windows.net/t"),
        ("abfs://c@acc/t?sv=1&sig=secret", "abfs://c@acc/t?..."),
        ("abfs://user:secret@acc/t", "abfs://acc/t"),
        ("hdfs:/warehouse/t", "hdfs:///warehouse/t"),
        ("memory://t", "memory://t"),
        ("/data/a::b/t", "/data/a::b/t"),
        ("file:/data/t?a=1", "/data/t?a=1"),
    ],
)
def test_a_location_is_shown_without_its_secrets(given_path, shown):
    assert parse_location(given_path).shown == shown


@pytest.mark.parametrize("path", ["", "   ", "a\0b", None, 17, b"bytes"])
def test_what_is_not_a_path_is_refused(path):
    with pytest.raises(InvalidArgumentError, match="is not a path. Give the table's folder, such as"):
        Storage(path)


@pytest.mark.parametrize("path", ["simplecache::s3://lake/t", "zip://t::s3://lake/t.zip", "zip://t::memory"])
def test_a_chain_of_protocols_is_refused(path):
    with pytest.raises(UnsupportedFeatureError, match="chains several protocols with `::`"):
        Storage(path)


def test_a_table_in_a_zip_archive_opens_by_the_option_that_the_message_names(tmp_path):
    orders = samples.path("orders")
    parent, _, name = orders.rpartition("/")
    archive = shutil.make_archive(tmp_path / "lake", "zip", parent, name)

    with pytest.raises(UnsupportedFeatureError) as caught:
        open_table(f"zip://orders::{archive}")
    assert str(caught.value) == (
        "A folder of an archive is not given with `::`. Give the archive as an option: "
        f"open_table('zip://orders', storage_options={{'fo': '{archive}'}})."
    )
    with pytest.raises(InvalidArgumentError, match="^zip://orders does not say which archive it is in. Give it as an"):
        open_table("zip://orders")
    read = open_table("zip://orders", storage_options={"fo": archive}).at("latest").to_arrow()
    assert read.num_rows == open_table(orders).at("latest").count()


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("tar://t::/data/x.tar", UnsupportedFeatureError, "^tar:// is not read: several files .* Unpack it, and give"),
        ("tar://t", UnsupportedFeatureError, "^tar:// is not read"),
        (
            "dir://t",
            UnsupportedFeatureError,
            "^dir:// only wraps another file system. Give the table's own path or URL",
        ),
        (
            "dbfs://lake/t",
            InvalidArgumentError,
            "^dbfs:// needs the storage options instance and token, .* /dbfs/lake/t",
        ),
        ("dbfs:/lake/t", TableNotFoundError, r" On its clusters dbfs:/ is a local folder: give /dbfs/lake/t\."),
        ("C:\\data\\t", TableNotFoundError, r" That is a path of Windows, .* In WSL it is /mnt/c/data/t\."),
        ("'/data/t'", TableNotFoundError, " has quotation marks of its own: give /data/t without them"),
        ('"s3://lake/t"', TableNotFoundError, " has quotation marks of its own: give s3://lake/t without them"),
    ],
)
def test_a_path_that_cannot_be_meant_so_gets_a_hint(path, error, message):
    with pytest.raises(error, match=message):
        open_table(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gs://b/t", r"^gs:// needs a package that is not installed. Install it with: pip install gcsfs\.$"),
        ("abfss://c@a/t", r"pip install adlfs\.$"),
        ("oss://b/t", r"pip install ossfs\.$"),
        ("sftp://h/t", r"pip install paramiko\.$"),
        ("box://t", "^box:// needs a package that is not installed. Please install boxfs"),
        ("s4://b/t", r"^No known package reads s4://. Did you mean s3://\?$"),
        ("what-is-this://b/t", "Use a local path, s3://, gs://, abfs:// or another of fsspec's"),
    ],
)
def test_a_protocol_that_can_not_be_read_says_what_to_install(path, message, monkeypatch):
    for package in ("gcsfs", "adlfs"):
        monkeypatch.setitem(sys.modules, package, None)
    for protocol in ("gs", "abfs"):
        monkeypatch.delitem(_registry, protocol, raising=False)

    with pytest.raises(MissingDependencyError, match=message):
        Storage(path)


def test_s3_without_its_package_says_what_to_install():
    code = """
import sys
sys.modules["s3fs"] = None
from snapshot_explorer.storage import Storage
try:
    Storage("s3://lake/t")
except ImportError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)

    assert said.stdout == "s3:// needs a package that is not installed. Install it with: pip install s3fs.\n"


def test_hdfs_without_hadoop_says_what_to_set(monkeypatch):
    for name in ("JAVA_HOME", "HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(MissingDependencyError, match="hdfs:// needs pyarrow and a Hadoop client: set JAVA_HOME"):
        Storage("hdfs://namenode/t").read("a")


@pytest.mark.parametrize(
    ("root", "location", "resolved"),
    [
        ("/t", "FILE:/mnt/x/f1=10/data.orc", "file:///mnt/x/f1=10/data.orc"),
        ("/t", "file:///mnt/x", "file:///mnt/x"),
        ("/t", "file://localhost/mnt/x", "file:///mnt/x"),
        ("/t", "/mnt/a b%20#?*", "file:///mnt/a b%20#?*"),
        ("s3://lake/t", "s3a://other/x", "s3://other/x"),
        ("s3a://lake/t", "S3N://lake/x?y", "s3://lake/x?y"),
        ("memory://t", "memory://other/x", "memory://other/x"),
        ("memory://t", "memory:/other/x", "memory:///other/x"),
    ],
)
def test_a_file_elsewhere_on_the_same_storage_is_followed(root, location, resolved):
    storage = Storage(root)

    assert storage.resolve_external(location) == resolved
    assert storage.resolve_external(resolved) == resolved


@pytest.mark.parametrize(
    ("root", "location"),
    [
        ("s3://lake/t", "/etc/passwd"),
        ("s3://lake/t", "file:///etc/passwd"),
        ("s3://lake/t", "FILE:/etc/passwd"),
        ("s3://lake/t", "local:///etc/passwd"),
        ("s3://lake/t", "oss://lake/x"),
        ("s3://lake/t", "http://169.254.169.254/latest"),
        ("s3://lake/t", "s3://KEY:SECRET@lake/x"),
        ("s3://lake/t", "s3://lake/x?versionId=1"),
        ("memory://t", "/etc/passwd"),
        ("memory://t", "file:/etc/passwd"),
        ("/t", "s3://lake/x"),
        ("/t", "http://host/x"),
        ("/t", "hdfs:/x"),
        ("https://host/t", "https://other/x"),
        ("hdfs://here/t", "hdfs://there/x"),
    ],
)
def test_a_file_on_another_storage_is_not_followed(root, location):
    storage = Storage(root)

    with pytest.raises(UnsupportedFeatureError, match=AWAY):
        storage.resolve_external(location)
    if "://" in location:  # as a path that came straight from metadata
        for ask in (storage.read, storage.open, storage.exists, storage.list):
            with pytest.raises(UnsupportedFeatureError, match=AWAY):
                ask(location)


def test_the_refusal_names_the_location_and_the_table():
    with pytest.raises(UnsupportedFeatureError) as caught:
        Storage("s3://lake/t").resolve_external("FILE:/etc/passwd")

    assert str(caught.value) == (
        "The table names the file /etc/passwd, which is on another storage than the table itself, s3://lake/t. "
        "It is not read: metadata may not choose the storage."
    )


@pytest.mark.parametrize("location", ["", "x", "a/b", "file:x", "file://../x", "/mnt/../etc", "/a\0b", "~/x"])
def test_what_is_not_a_full_location_is_refused(location):
    with pytest.raises(
        CorruptTableError, match="is not a full location of a file. The metadata that names it is corrupt"
    ):
        Storage("/t").resolve_external(location)


def test_an_external_file_is_read_like_any_other(tmp_path, memory_root):
    (tmp_path / "t").mkdir()
    (tmp_path / "x#?.bin").write_bytes(b"outside")
    filesystem, root = memory_root
    filesystem.pipe_file(f"{root}/x#?.bin", b"outside")

    for path, location in (
        (str(tmp_path / "t"), f"FILE:{tmp_path}/x#?.bin"),
        (f"memory://{root}/t", f"memory://{root}/x#?.bin"),
    ):
        storage = pickle.loads(pickle.dumps(Storage(path)))
        token = storage.resolve_external(location)
        assert storage.read(token) == b"outside"
        assert storage.read_many([token, token]) == [b"outside"] * 2
        assert storage.open(token).read() == b"outside"
        assert storage.exists(token)
        assert not storage.exists(f"{token}.gone")
        with pytest.raises(MissingFileError, match="x#.*gone does not exist"):
            storage.read(f"{token}.gone")


def outcome(ask):
    """Return what comes back, and what is said if it is refused."""
    try:
        return ask(), None
    except (CorruptTableError, UnsupportedFeatureError) as error:
        return None, str(error)


@given(st.text(max_size=40))
def test_any_text_from_metadata_is_a_path_below_the_root_or_refused(text):
    path, said = outcome(lambda: normalize(text))

    if path is None:
        assert said.isprintable()
        assert len(said) < 600
    else:
        assert not path.startswith("/")
        assert ".." not in path.replace("\\", "/").split("/")


@given(
    st.sampled_from(["", "/", "file:", "FILE:///", "s3a://", "s3://lake/", "memory:/", "https://host/", "x:", "../"]),
    st.text(max_size=40),
    st.sampled_from(["/t", "s3://lake/t", "memory://t", "https://host/t"]),
)
def test_any_external_location_stays_on_the_storage_or_is_refused(start, text, root):
    root = parse_location(root)

    found, said = outcome(lambda: resolve_location(start + text, root))

    if found is None:
        assert said.isprintable()
    else:
        assert found.protocol == root.protocol
        assert resolve_location(full_text(found), root) == found


def test_options_are_in_no_repr_and_no_traceback(register):
    register(filesystems.failing(PermissionError("denied for key SECRET-VALUE, see https://h/x?sig=SECRET%2DVALUE")))
    storage = Storage(
        "failing://user:URL-SECRET@host/t", {"key": "SECRET-VALUE", "deep": {"list": [b"BYTES-SECRET", 987654]}}
    )

    with pytest.raises(StorageError) as caught:
        storage.read("a")
    printed = "".join(traceback.format_exception(caught.value))
    everything = f"{storage!r} {storage} {storage.root} {vars(storage)} {printed} {caught.value!r}"

    for secret in ("SECRET-VALUE", "URL-SECRET", "BYTES-SECRET", "987654"):
        assert secret not in everything, everything
    assert caught.value.__context__ is None
    assert "denied for key ***" in str(caught.value)


@pytest.mark.parametrize("root", ["/lake/t", "memory://lake/t", "https://data.example.org/lake/t"])
def test_a_folder_whose_name_begins_as_the_tables_does_is_outside(root):
    table = parse_location(root)

    assert is_outside(parse_location(f"{root}2/a"), table)
    assert is_outside(parse_location(f"{root}-old/a"), table)
    assert not is_outside(parse_location(f"{root}/a"), table)
    assert not is_outside(parse_location(root), table)
