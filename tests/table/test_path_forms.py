"""Metadata that names files by other paths than the one that was opened: every call finds the same files."""

import threading
import uuid
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from urllib.parse import quote

import fsspec
import pytest

from snapshot_explorer import diff, open_table, twins
from tests.support.delta.table_builder import DeltaTable, add, remove
from tests.support.filesystems import counting
from tests.support.iceberg.table_builder import EXISTING, IcebergTable, entry

OPENED_AT = ("real/t", "link/t", "real/../link//t/")
LOCAL = (
    "{0}/real/t/",
    "{0}/link/t/",
    "file:{0}/real/t/",
    "file:{0}/link/t/",
    "file:///{0}/real/t/",
    "file://localhost{0}/link/t/",
    "file://{0}//real//t/",
    "file://{0}/./real/./t/",
    "file://{0}/link/t//./",
)
RELATIVE = ("./", "././", ".//", "x/../", "%2E/")
"""Prefixes that a writer of Delta, which normalizes paths, may put before a relative path."""
ELSEWHERE = ("s3://lake/t/", "dbfs:/mnt/lake/t/", "hdfs://name/t/", "file:///gone/t/", "../t/")
"""Prefixes of paths that are not read here, or do not exist, and may still mean the files of the table."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "real/t/data").mkdir(parents=True)
    (tmp_path / "real/t/metadata").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    return tmp_path


def delta(folder, form):
    """Write a Delta table whose files are named by a prefix, with a removed file, and a deletion vector by its path."""
    prefix = form.format(folder)
    table = DeltaTable(None, folder / "real/t", features=("deletionVectors",))

    def named(action):
        return {kind: body | {"path": prefix + body["path"]} for kind, body in action.items()}

    first, second = (table.data(f"{name}.parquet", [(1, name), (2, name)]) for name in ("a", "b"))
    table.commit(named(first))
    table.commit(named(second), named(remove("a.parquet")))
    vector = table.vector([1])
    if "://" in prefix:
        name = next((folder / "real/t").glob("deletion_vector_*")).name
        vector |= {"storageType": "p", "pathOrInlineDv": f"{prefix}{name}"}
    table.commit(named({"add": second["add"] | {"deletionVector": vector}}), named(remove("b.parquet")))
    return table


class IcebergTableElsewhere(IcebergTable):
    """A table whose metadata names some of its files by a prefix."""

    prefix, part = None, "data/"

    def path(self, name):
        return f"{self.prefix}{name}" if self.prefix and name.startswith(self.part) else super().path(name)


def iceberg(folder, form, part="data/"):
    table = IcebergTableElsewhere(fsspec.filesystem("file"), f"{folder}/real/t", location=f"file://{folder}/real/t")
    table.prefix, table.part = form.format(folder), part
    table.commit([(1, "a"), (2, "a")])
    table.commit([(1, "b"), (2, "b")], removed=["data-1.parquet"])
    table.delete("data-2.parquet", [1])
    table.write_metadata()
    return table


def rows(table, version="latest"):
    return sorted(map(tuple, (row.values() for row in table.at(version).to_arrow().to_pylist())))


def check_all_is_in_order(table):
    """Check what each call answers of a table of four rows, of which the last version returns one."""
    orphans = table.orphans("0d")
    assert orphans.verdict == "No file is orphaned."
    assert orphans.is_complete
    assert rows(table) == [(1, "b")]
    assert table.verify("bytes").is_ok
    assert set(table.verify().versions.to_arrow()["readable"].to_pylist()) == {"yes"}
    trace = table.trace("id = 2")
    assert trace.versions.to_arrow()["rows"].to_pylist()[-3:] == [1, 1, 0]
    assert set(trace.files.to_arrow()["evidence"].to_pylist()) == {"read"}
    freed = table.retention(keep="0d", keep_last=None if table.format == "delta" else 1).freed
    assert [path.rpartition("/")[2] for path in freed["path"].to_pylist() if ".parquet" in path] == [
        "a.parquet" if table.format == "delta" else "data-1.parquet"
    ]


@pytest.mark.parametrize(("form", "opened_at"), [*zip([*LOCAL, *RELATIVE], cycle(OPENED_AT))])
def test_files_of_a_delta_table_are_found_by_every_path(folder, form, opened_at):
    delta(folder, form)

    check_all_is_in_order(open_table(f"{folder}/{opened_at}"))


@pytest.mark.parametrize(
    ("form", "part", "opened_at"),
    [*zip(LOCAL, cycle(["data/", "metadata/", "", "data/data-2"]), cycle(OPENED_AT))],
)
def test_files_of_an_iceberg_table_are_found_by_every_path(folder, form, part, opened_at):
    iceberg(folder, form, part)

    check_all_is_in_order(open_table(f"{folder}/{opened_at}"))


@pytest.mark.parametrize(
    ("write", "form"),
    [*((delta, form) for form in ELSEWHERE), *((iceberg, form) for form in ELSEWHERE if "://" in form)],
)
def test_nothing_is_safe_to_delete_where_a_path_cannot_be_decided(folder, form, write):
    write(folder, form)
    (folder / "real/t/lost.parquet").write_bytes(b"lost")
    table = open_table(folder / "real/t")
    orphans = table.orphans("0d")

    assert not any(orphans.files.to_arrow()["is_orphan"].to_pylist())
    assert not orphans.is_complete
    assert "Which files are orphaned is unknown, because not all could be decided: " in orphans.verdict
    assert "Not all could be decided: the metadata names " in repr(orphans)
    assert "the metadata may name it by another path" in orphans.files.to_arrow()["reason"].to_pylist()


def test_vacuum_lists_nothing_where_a_path_cannot_be_decided(folder):
    table = delta(folder, "s3://lake/t/")
    retention = open_table(table.root).retention(keep="0d")

    assert not len(retention.freed)
    assert any(
        note.startswith("Not all could be decided: ") and "No file is listed" in note for note in retention.notes
    )


def test_vacuum_is_warned_of_files_that_the_log_names_by_way_of_a_link(folder):
    table = delta(folder, "file://{0}/link/t/")

    (warning,) = (note for note in open_table(table.root).retention().notes if "VACUUM compares paths as text" in note)
    assert "The log names 2 files by another path to the folder, such as file://" in warning


def test_a_copy_whose_log_names_the_files_of_the_original_has_orphans(folder):
    table = delta(folder, "file://{0}/other/")
    for name in ("a.parquet", "b.parquet", *(path.name for path in (folder / "real/t").glob("deletion_vector_*"))):
        (folder / "other").mkdir(exist_ok=True)
        (folder / "other" / name).write_bytes((folder / "real/t" / name).read_bytes())
    opened = open_table(table.root)

    assert rows(opened) == [(1, "b")]
    assert {"a.parquet", "b.parquet"} <= set(opened.orphans("0d").files.to_arrow()["path"].to_pylist())
    assert set(opened.orphans("0d").files.to_arrow()["is_orphan"].to_pylist()) == {True}


def test_a_removal_by_another_form_of_the_path_removes_the_file(folder):
    table = DeltaTable(None, folder / "real/t")
    table.commit(table.data("a.parquet", [(1, "a")]), table.data("p=1/b.parquet", [(2, "b")]))
    table.commit(remove("./a.parquet"))
    table.commit(remove("p=1//./b.parquet"), add(f"file:{folder}//real/t/a.parquet", size=table.sizes["a.parquet"]))
    opened = open_table(table.root)

    assert [rows(opened, version) for version in (1, 2, 3)] == [[(1, "a"), (2, "b")], [(2, "b")], [(1, "a")]]
    assert opened.verify("bytes").is_ok


def test_folders_within_a_table_may_be_links(folder):
    table = DeltaTable(None, folder / "real/t", partition_by=("name",))
    table.commit(table.data("name=a/f.parquet", [(1,)], partition={"name": "a"}))
    (folder / "elsewhere").mkdir()
    (folder / "real/t/name=a").rename(folder / "elsewhere/moved")
    (folder / "real/t/name=a").symlink_to(folder / "elsewhere/moved")
    (folder / "real/t/name=b").symlink_to("name=a")
    (folder / "real/t/g.parquet").symlink_to("name=a/f.parquet")
    (folder / "real/t/loop").symlink_to(".")
    opened = open_table(table.root)

    assert opened.orphans("0d").verdict == "No file is orphaned."
    assert not len(opened.retention(keep="0d").freed)
    assert opened.verify("bytes").is_ok


def test_a_table_and_the_same_by_a_link_are_twins_that_share_their_files(folder):
    delta(folder, "file://{0}/link/t/")
    a, b = open_table(folder / "real/t"), open_table(folder / "link/t")
    result = twins(a, b)

    assert not result.are_copies
    assert result.is_in_step
    assert (result.shared, result.only_a, result.only_b) == (1, 0, 0)
    assert not any(diff(a.at("latest"), b.at("latest")).counts.values())


def test_a_clone_shares_its_files_however_it_names_them(folder):
    source = DeltaTable(None, folder / "real/t")
    source.commit(source.data("a.parquet", [(1, "a")]))
    clone = DeltaTable(None, folder / "clone")
    clone.commit(add(f"file://{folder}/link//t/a.parquet", size=source.sizes["a.parquet"], rows=1))

    result = twins(source.root, clone.root)
    assert not result.are_copies
    assert (result.shared, result.is_in_step) == (1, True)


def test_iceberg_keeps_a_file_that_a_kept_snapshot_names_by_another_path(folder):
    table = IcebergTableElsewhere(fsspec.filesystem("file"), f"{folder}/real/t", location=f"file://{folder}/real/t")
    table.commit([(1, "a")])
    (live,) = table.entries[table.manifests[table.metadata["current-snapshot-id"]][0]["manifest_path"]]
    other = live["data_file"] | {"file_path": f"{folder}/link//t/data/data-1.parquet"}
    snapshot_id, head = next(table.ids), table.metadata["current-snapshot-id"]
    table.sequence += 1
    numbers = {"snapshot_id": head, "sequence_number": 1, "file_sequence_number": 1}
    table.manifests[snapshot_id] = [table.manifest(snapshot_id, [entry(EXISTING, other, **numbers)])]
    table.add_snapshot(snapshot_id, head, {"operation": "replace"}, millis=table._millis(None))
    table.write_metadata()
    retention = open_table(table.root).retention(keep="0d", keep_last=1)

    assert retention.versions["outcome"].to_pylist() == ["kept", "lost"]
    assert not len(retention.freed)
    assert any("kept snapshots name the same by another path" in note for note in retention.notes)


@pytest.mark.parametrize(("form", "is_decided"), [("memory://{0}/", True), ("memory://{0}//", False), ("/", False)])
def test_files_on_a_store_are_found_by_every_spelling_of_their_url(form, is_decided):
    filesystem, root = fsspec.filesystem("memory"), f"/lake-{uuid.uuid4().hex}/t"
    table = DeltaTable(filesystem, root)
    action = table.data("a.parquet", [(1, "a")])
    table.commit({"add": action["add"] | {"path": form.format(root) + "a.parquet"}})
    orphans = open_table(f"memory://{root}").orphans("0d")

    assert not any(orphans.files.to_arrow()["is_orphan"].to_pylist())
    assert orphans.is_complete is (is_decided or "//" in form.removeprefix("memory://"))


@pytest.fixture
def web(folder):
    """Serve the folder on the loopback interface; return its address."""
    handler = type("Handler", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    with server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"127.0.0.1{{}}:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("form", ["http://{}/real/t/", "HTTP://{}//real/./t/", "http://{}/source%20x/", ""])
def test_files_on_the_web_are_found_by_every_spelling_of_their_url(folder, web, form):
    table = DeltaTable(None, folder / "real/t")
    action = table.data("a b.parquet", [(1, "a")])
    if "source" in form:
        (folder / "source x").mkdir()
        (folder / "real/t/a b.parquet").rename(folder / "source x/a b.parquet")
    # Delta decodes a path once; a URL keeps one escape.
    path = quote(form.format(web.format(".")), safe=":/") + (quote("a%20b.parquet") if form else "a%20b.parquet")
    table.commit({"add": action["add"] | {"path": path}})
    opened = open_table(f"http://{web.format('')}/real/t")

    assert rows(opened) == [(1, "a")]
    assert opened.verify("bytes").is_ok
    assert opened.trace("id = 1").versions["rows"].to_pylist()[-1] == 1
    assert not any(opened.orphans("0d").files["is_orphan"].to_pylist())


def test_a_file_that_cannot_be_looked_for_leaves_the_others_judged(memory_root, register):
    filesystem, root = memory_root
    table = DeltaTable(filesystem, root)
    filesystem.pipe_file("/outside/b.parquet", b"b")
    table.commit(table.data("a.parquet", [(1, "a")]))
    table.commit(
        add("counted:///outside/b.parquet", size=1), add(f"counted://{root}//a.parquet", size=table.sizes["a.parquet"])
    )

    class Denied(counting()):
        def ls(self, path, **options):
            if path.startswith("/outside"):
                raise PermissionError(path)
            return super().ls(path, **options)

    register(Denied)
    opened = open_table(f"counted://{root}")
    states = {row["path"]: (row["state"], row["reason"]) for row in opened.verify().files.to_arrow().to_pylist()}
    unknown = "it is on another storage, or outside of the folder, and could not be looked for"
    assert states["counted:///outside/b.parquet"] == (None, unknown)
    assert states["a.parquet"] == ("ok", None)
    assert opened.verify().versions["readable"].to_pylist() == [None, "yes", "yes"]
