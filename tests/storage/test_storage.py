"""What Storage gives, whatever the protocol: bytes, listings, files with random access."""

import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import pytest

from snapshot_explorer.errors import CorruptTableError, MissingFileError, StorageError
from snapshot_explorer.storage import Entry, Storage
from tests.inner.storage import ByteBudget, RemoteFile

LITERAL = "p=a b/100%/%2F/#1/what?/st*r/[x]/{y}/é漢/a::b/~c/f.bin"
"""A name in which every character stands for itself."""


def fill(filesystem, root, files):
    for path, content in files.items():
        filesystem.makedirs(f"{root}/{path}".rsplit("/", 1)[0], exist_ok=True)
        filesystem.pipe_file(f"{root}/{path}", content)


@pytest.fixture(params=["local", "file", "memory", "readonly", "counted"])
def store(request, tmp_path, memory_root):
    """A function that writes files and returns a Storage of them, for each kind of storage."""
    kind = request.param
    filesystem, root = (
        memory_root if kind in ("memory", "counted") else (fsspec.filesystem("file"), str(tmp_path / "t"))
    )
    if kind in ("readonly", "counted"):
        request.getfixturevalue(kind)
    path = root if kind == "local" else f"{kind}://{root}"

    def written(files):
        fill(filesystem, root, files)
        return Storage(path)

    return written


def test_a_file_is_read_whole(store):
    storage = store({"a/b": b"content", "empty": b""})

    assert storage.read("a/b") == b"content"
    assert storage.read("empty") == b""


def test_every_character_of_a_name_stands_for_itself(store):
    storage = store({LITERAL: b"here", "p=a b/100%/%2F/#1/what": b"not here"})

    assert storage.read(LITERAL) == b"here"
    assert storage.exists(LITERAL)
    assert storage.open(LITERAL).read() == b"here"
    assert [entry.name for entry in storage.list("p=a b/100%/%2F/#1")] == ["what", "what?"]
    assert [entry.name for entry in storage.list(LITERAL.rsplit("/", 1)[0])] == ["f.bin"]


def test_a_star_in_a_name_is_literal(store):
    storage = store({"abc": b"", "d/abc": b""})

    assert not storage.exists("a*")
    assert storage.list("*") == []
    with pytest.raises(MissingFileError, match=r"^a\* does not exist"):
        storage.read("a*")


def test_many_files_come_in_the_order_requested(store):
    storage = store({f"f{i}": str(i).encode() for i in range(100)})

    read = storage.read_many([f"f{i}" for i in reversed(range(100))])

    assert read == [str(i).encode() for i in reversed(range(100))]
    assert storage.read_many([]) == []


def test_of_several_missing_files_the_first_in_order_is_named(store):
    storage = store({f"f{i}": b"" for i in range(60)})
    paths = [f"f{i}" for i in range(100)]

    with pytest.raises(MissingFileError, match="^f60 does not exist"):
        storage.read_many(paths)


def test_reading_what_is_present_leaves_gaps(store):
    storage = store({"a": b"1", "c": b"3"})

    assert storage.read_present(["a", "b", "c"]) == [b"1", None, b"3"]


def test_a_listing_is_sorted_and_tells_folders_from_files(store):
    storage = store({"b": b"12", "a/x": b"1", ".hidden": b"", "_also": b"", "a/deep/y": b""})

    listed = storage.list("")

    assert [(entry.name, entry.is_folder, entry.size_bytes) for entry in listed] == [
        (".hidden", False, 0),
        ("_also", False, 0),
        ("a", True, None),
        ("b", False, 2),
    ]
    assert [entry.name for entry in storage.list("a/")] == ["deep", "x"]


def test_the_folders_of_a_folder_are_reported_alone(store):
    storage = store({"b": b"12", "c/y": b"", "a/deep/y": b""})

    assert storage.folders("") == ["a", "c"]
    assert storage.folders("a") == ["deep"]
    assert storage.folders("nope") == []
    with pytest.raises(StorageError, match=r"Could not read b in .*a file, not a folder."):
        storage.folders("b")


def test_a_folder_that_is_not_there_lists_nothing(store):
    storage = store({"a": b""})

    assert storage.list("nope") == []
    assert storage.list_many(["nope", ""])[0] == []
    assert [entry.name for entry in storage.list_many(["nope", ""])[1]] == ["a"]


def test_a_file_is_not_a_folder_and_a_folder_is_not_a_file(store):
    storage = store({"a/file": b"x"})

    assert not storage.exists("a")
    assert storage.exists("a/file")
    with pytest.raises(
        StorageError, match=r"Could not read a/file in .*a file, not a folder. Give the table's own folder"
    ):
        storage.list("a/file")


@pytest.mark.parametrize("path", ["a/file/below", "nope", "nope/below"])
def test_what_is_not_there_is_missing(store, path):
    storage = store({"a/file": b"x"})

    assert not storage.exists(path)
    with pytest.raises(MissingFileError) as caught:
        storage.read(path)
    assert str(caught.value) == (
        f"{path} does not exist in {storage.root}. "
        "It may have been removed since; check the path, or open the table again."
    )
    with pytest.raises(MissingFileError):
        storage.open(path)


def test_new_files_are_seen_after_a_listing(store):
    storage = store({"snapshot/1": b""})
    assert len(storage.list("snapshot")) == 1
    assert not storage.exists("snapshot/2")

    store({"snapshot/2": b"new"})

    assert len(storage.list("snapshot")) == 2
    assert storage.exists("snapshot/2")
    assert storage.read("snapshot/2") == b"new"


def test_an_open_file_gives_any_range(store):
    content = os.urandom(3 << 20)
    storage = store({"big": content, "small": content[:1000]})

    for path, expected in (("big", content), ("small", content[:1000])):
        with storage.open(path) as opened:
            assert opened.size() == len(expected)
            opened.seek(len(expected) - 100)
            assert opened.read() == expected[-100:]
            assert opened.read_at(300, 500) == expected[500:800]
            opened.seek(0)
            assert opened.read() == expected


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "/etc/passwd",
        "\\etc",
        "..\\x",
        "a\\..\\..\\x",
        "a\0b",
        "C:\\x",
        "c:/x",
        "//h/x",
    ],
)
def test_a_path_that_leaves_the_root_is_refused(store, path):
    storage = store({"a/b": b""})

    for ask in (storage.read, storage.open, storage.exists, storage.list):
        with pytest.raises(CorruptTableError, match="leads out of the table's folder or is not a path"):
            ask(path)


@pytest.mark.parametrize("path", ["a..b", "..a", "a...", "...", "x\\y"])
def test_dots_in_a_name_do_not_lead_out_of_the_root(store, path):
    if os.name == "nt":
        pytest.skip("a backslash is a separator here")
    assert store({path: b"1"}).read(path) == b"1"


def test_a_storage_survives_pickling(store):
    storage = store({"a": b"1"})
    storage.read_many(["a", "a"])

    again = pickle.loads(pickle.dumps(storage))

    assert again.root == storage.root
    assert again.read_many(["a", "a"]) == [b"1", b"1"]


def test_several_threads_may_ask_at_once(store):
    files = {f"f{i}": os.urandom(2000) for i in range(40)}
    storage = store(files)
    wrong = []

    def ask():
        if storage.read_many(list(files)) != list(files.values()) or len(storage.list("")) != 40:
            wrong.append(threading.current_thread())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_no_thread_outlives_its_storage(store):
    before = set(threading.enumerate())
    storage = store({f"f{i}": b"" for i in range(40)})
    storage.read_many([f"f{i}" for i in range(40)])
    new = set(threading.enumerate()) - before
    workers = [thread for thread in new if thread.name.startswith("snapshot-explorer")]

    del storage
    for thread in workers:
        thread.join(60)

    assert not any(thread.is_alive() for thread in workers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("path", ["memory", "local"])
def test_a_storage_works_after_a_fork(path, tmp_path):
    # In a process of its own: pytest's has threads, and Python warns of forks with threads.
    code = f"""
import os, warnings
import fsspec
from snapshot_explorer.storage import Storage
warnings.simplefilter("ignore")
path = {str(tmp_path)!r} if {path!r} == "local" else "memory://t"
fs = fsspec.url_to_fs(path)[0]
base = fsspec.url_to_fs(path)[1]
for i in range(40):
    fs.pipe_file(f"{{base}}/f{{i}}", b"x")
storage = Storage(path)
names = [f"f{{i}}" for i in range(40)]
assert len(storage.read_many(names)) == 40
child = os.fork()
if child == 0:
    ok = storage.read_many(names) == [b"x"] * 40 and len(storage.list("")) == 40
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0
"""
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize(
    "spelled",
    [
        lambda folder: folder,
        str,
        lambda folder: f"{folder}/",
        lambda folder: f"file://{folder}",
        lambda folder: f"file:{folder}",
        lambda folder: f"FILE://localhost{folder}",
        lambda folder: f"local://{folder}",
        lambda folder: f"~/{folder.relative_to(folder.parent.parent)}",
        lambda folder: str(folder.relative_to(folder.parent)),
        lambda folder: f"./{folder.name}",
        lambda folder: f"{folder}/../{folder.name}",
    ],
)
def test_a_local_folder_has_many_spellings_and_one_root(tmp_path, monkeypatch, spelled):
    folder = tmp_path / "my table #1?"
    folder.mkdir()
    (folder / "a").write_bytes(b"1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path.parent))

    storage = Storage(spelled(folder))
    monkeypatch.chdir(tmp_path.parent)

    assert storage.root == str(folder)
    assert storage.read("a") == b"1"
    assert pickle.loads(pickle.dumps(storage)).read("a") == b"1"


def test_a_local_listing_tells_when_a_file_was_written(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    os.utime(tmp_path / "a", (0, 1_767_225_600.5))

    assert Storage(tmp_path).list("") == [
        Entry(name="a", is_folder=False, size_bytes=3, modified=datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC))
    ]


def test_links_are_followed_and_dead_ones_left_out(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"12")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").symlink_to(tmp_path / "real" / "f")
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to(tmp_path / "round")

    listed = Storage(tmp_path).list("")

    assert [(entry.name, entry.is_folder, entry.size_bytes) for entry in listed] == [
        ("file", False, 2),
        ("link", True, None),
        ("real", True, None),
    ]


@pytest.mark.parametrize("others", [0, 5000])
def test_of_many_local_files_those_are_missing_that_are_not_there(tmp_path, others):
    names = [f"{number}" for number in range(300)]
    for name in [*names[:-5], *(f"other-{number}" for number in range(others))]:
        (tmp_path / name).touch()
    (tmp_path / "297").mkdir()
    (tmp_path / "298").symlink_to(tmp_path / "0")
    (tmp_path / "299").symlink_to(tmp_path / "nowhere")
    full = [f"file://{tmp_path}/{name}" for name in names]

    gone = ["295", "296", "297", "299"]
    asked = [*names, *(f"nope/{name}" for name in names), "away/f"]
    assert Storage(tmp_path).missing(asked) == [*gone, *asked[300:]]
    assert Storage(tmp_path).missing(full) == [f"file://{tmp_path}/{name}" for name in gone]
    with pytest.raises(CorruptTableError, match=r"\.\./295"):
        Storage(tmp_path).missing([f"../{name}" for name in names[295:] + names])


def test_a_file_is_missing_once_it_was_removed_after_a_check(tmp_path):
    names = [f"{number}" for number in range(300)]
    for name in names:
        (tmp_path / name).touch()
    os.utime(tmp_path, (1, 1))
    storage = Storage(tmp_path)
    assert storage.missing(names) == []

    (tmp_path / "7").unlink()

    assert storage.missing(names) == ["7"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("path", ["pipe", "device"])
def test_a_pipe_or_device_is_refused_and_not_waited_for(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    storage = Storage(tmp_path)

    for ask in (storage.read, storage.open):
        with pytest.raises(StorageError, match=f"Could not read {path} in .* is a device or a pipe, not a file"):
            ask(path)


def test_a_folder_that_is_read_as_a_file_is_refused(tmp_path):
    (tmp_path / "a").mkdir()
    storage = Storage(tmp_path)

    for ask in (storage.read, storage.open):
        with pytest.raises(StorageError, match="a is a folder, not a file. Give a file's path"):
            ask("a")


def test_a_name_that_is_too_long_is_not_there(tmp_path):
    assert not Storage(tmp_path).exists("x" * 5000)


def test_the_local_disk_is_only_ever_read(tmp_path):
    # An audit hook cannot be taken away again: in a process of its own.
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_bytes(b"x" * 100)
    code = f"""
import os, sys
from snapshot_explorer.storage import Storage
storage = Storage({str(tmp_path)!r})
storage.read("a/f")  # loads what it needs
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod",
           "os.chown", "os.utime", "shutil.", "tempfile.", "os.putenv", "subprocess.", "os.system", "os.setxattr")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
seen = []
def hook(event, arguments):
    if event.startswith(CHANGES) or (event == "open" and arguments[2] & WRITING):
        seen.append((event, arguments))
sys.addaudithook(hook)
storage.read_many(["a/f"] * 3); storage.read_present(["a/f", "b"]); storage.list("a"); storage.list_many(["", "a"])
storage.exists("a/f"); storage.open("a/f").read()
storage.read(storage.resolve_external("file:" + {str(tmp_path / "a" / "f")!r}))
assert not seen, seen
open({str(tmp_path / "proof")!r}, "w").close()
assert seen  # the hook does see writes
"""
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_storage_has_no_way_to_write():
    public = {name for name in dir(Storage) if not name.startswith("_")}

    listing, reading = (
        {
            "exists",
            "exists_many",
            "folders",
            "folders_and_files",
            "list",
            "list_many",
            "missing",
            "names_many",
            "sizes",
            "together",
        },
        {
            "keeping_immutable",
            "open",
            "read",
            "read_each",
            "read_many",
            "read_present",
            "reading_ahead",
            "reading_once",
        },
    )
    assert public == {
        *listing,
        *reading,
        "is_local",
        "is_portable",
        "requests",
        "local_address",
        "outside",
        "resolve_external",
        "addresses",
        "below",
        "each",
        "forget_immutable",
        "has_escapes",
        "has_links",
        "is_same_store",
        "warn_once",
    }


def test_files_of_this_machine_are_read_one_by_one_as_they_are_requested(tmp_path):
    (tmp_path / "a").write_bytes(b"1")

    contents = Storage(tmp_path).read_each(["a", "gone"])

    assert next(contents) == b"1"
    with pytest.raises(MissingFileError, match="gone does not exist"):
        next(contents)


@pytest.mark.parametrize("turns", [None, threading.Lock()])
def test_in_a_block_that_reads_once_nothing_changes(turns):
    if turns is not None:
        turns.acquire()
    storage = Storage("memory://once")
    files = fsspec.filesystem("memory")
    files.pipe({"/once/a": b"1", "/once/large": bytes(100_000)})

    with storage.reading_once(turns):
        before = [*storage.read_many(["a", "a"]), storage.read_present(["gone"])[0], len(storage.list(""))]
        files.pipe({"/once/a": b"2", "/once/gone": b"3", "/once/large": b"4"})
        within = storage.read("a"), storage.read_present(["gone"])[0], len(storage.list("")), storage.read("large")
        with pytest.raises(MissingFileError, match="gone does not exist"):
            storage.read("gone")

    assert before == [b"1", b"1", None, 2]
    assert within == (b"1", None, 2, b"4")  # a large file is not kept
    assert (storage.read("a"), storage.read("gone")) == (b"2", b"3")
    assert turns is None or not turns.acquire(blocking=False)  # it was given up for each request, and taken again
    files.rm("/once", recursive=True)


def test_in_a_block_that_reads_once_a_folder_is_listed_again_after_a_file_that_it_names_is_gone():
    storage = Storage("memory://once")
    files = fsspec.filesystem("memory")
    files.pipe({"/once/a/1": b"1", "/once/a/2": b"2"})

    with storage.reading_once():
        before = [one.name for one in storage.list("a")], storage.folders("")
        files.rm("/once/a/1")
        found = storage.read_present(["a/1", "never"])
        after = [one.name for one in storage.list("a")], storage.folders("")

    assert (before, found, after) == ((["1", "2"], ["a"]), [None, None], (["2"], ["a"]))
    files.rm("/once", recursive=True)


def test_in_a_block_that_keeps_immutable_files_each_is_requested_once_and_missing_ones_again(counted, memory_root):
    files, root = memory_root
    storage = Storage(f"counted://{root}")
    files.pipe({f"{root}/a": b"1", f"{root}/large": bytes(100_000)})
    with storage.keeping_immutable():
        with storage.keeping_immutable():
            assert storage.read_present(["a", "gone"], immutable=True) == [b"1", None]
        files.pipe({f"{root}/a": b"2", f"{root}/gone": b"3"})
        assert storage.read_many(["a", "gone", "large", "large"], immutable=True)[:2] == [b"1", b"3"]
        assert storage.read("a") == b"2"
        storage.forget_immutable()
        assert storage.read_many(["a"], immutable=True) == [b"2"]
    with storage.keeping_immutable():
        files.pipe({f"{root}/a": b"4"})
        assert storage.read_many(["a"], immutable=True) == [b"4"]

    names = Counter(request.path.rpartition("/")[2] for request in counted.requests)
    assert (names["a"], names["gone"], names["large"]) == (4, 2, 1)


def test_files_of_another_machine_are_read_at_once_in_the_order_requested():
    storage = Storage("memory://each")
    with fsspec.open_files(["memory://each/a", "memory://each/b"], "wb") as files:
        for file, content in zip(files, [b"1", b"2"], strict=True):
            file.write(content)

    assert list(storage.read_each(["b", "a"])) == [b"2", b"1"]
    with pytest.raises(MissingFileError, match="gone does not exist"):
        storage.read_each(["a", "gone"])


def test_many_files_are_requested_in_order(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "folder").mkdir()

    assert Storage(tmp_path).exists_many(["b", "a", "folder", "a"]) == [False, True, False, True]


def test_every_file_that_is_read_is_logged_at_debug(tmp_path, caplog):
    (tmp_path / "a").write_bytes(b"123")
    caplog.set_level("DEBUG", "snapshot_explorer")

    Storage(tmp_path).read("a")

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("DEBUG", "read a (3 bytes)")]


def test_the_repr_is_the_root():
    assert repr(Storage("memory://lake/t", {"key": "hidden"})) == "Storage('memory://lake/t')"
    assert repr(Storage(Path("/data/t"))) == "Storage('/data/t')"


def test_the_root_of_a_storage_may_be_a_table(memory_root):
    filesystem, root = memory_root
    filesystem.pipe_file(f"{root}/a", b"1")

    assert Storage("memory://").root == "memory://"
    assert Storage("memory:///").read(f"{root[1:]}/a") == b"1"


def test_ranges_within_others_and_beside_them_are_fetched_once_and_whole():
    content = bytes(range(256)) * 40_000
    fetched = []

    def fetch(part):
        fetched.append(part)
        return content[slice(*part)]

    with ThreadPoolExecutor(2) as pool:
        opened = RemoteFile.of(len(content), content[-100:], fetch, pool, ByteBudget(0))
        opened.load([(0, 5_000_000), (100, 200), (9_000_000, 9_000_100), (9_000_050, 9_000_060)])
        opened.seek(4_999_000)
        assert opened.read(1000) == content[4_999_000:5_000_000]
        opened.seek(9_000_000)
        assert opened.read(100) == content[9_000_000:9_000_100]
        opened.close()

    assert sum(end - start for start, end in fetched) == 5_000_100
