"""Names that are not UTF-8: one entry never fails the whole."""

import json
import os
import shutil
import sys

import pytest

from snapshot_explorer import find_tables, open_lake, open_table, report, samples
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage

pytestmark = pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="names are Unicode there")

TABLES = ("orders", "payments", "shipments", "rides")
NAMES = (b"stray\xff.parquet", b"\xfe", b"caf\xe9", b"0000000000000000000\xb9.json", b"\xed\xb3\xbf", b"\xf5\xf6 \xf7")
"""A byte at the end and at the beginning, Latin-1, where metadata has numbers, a surrogate, and several."""


def litter(folder):
    """Put files and folders of such names into every folder of a tree."""
    for root, _, _ in list(os.walk(os.fsencode(folder))):
        for name in NAMES:
            _write(root + b"/" + name)
        _write(root + b"/fo\xfflder/p=\xff/x\xff")


def _write(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 - of bytes
    with open(path, "wb") as file:  # noqa: PTH123 - of bytes
        file.write(b"x")


@pytest.mark.parametrize("name", TABLES)
def test_such_names_change_no_answer_about_a_table(tmp_path, name):
    shutil.copytree(samples.path(name), tmp_path / "t")
    before = answers(open_table(tmp_path / "t"))

    litter(tmp_path / "t")

    assert answers(open_table(tmp_path / "t")) == before


def answers(table):
    return [
        table.versions(),
        table.history().to_arrow()["kind"].to_pylist(),
        history_of(table).tags(),
        table.branches().to_arrow()["branch"].to_pylist(),
        table.current.to_arrow().num_rows,
        table.verify().versions.to_arrow()["readable"].to_pylist(),
        table.verify().verdict,
        [inspected(table, item) for item in history_of(table).table_format.inspections],
    ]


def inspected(table, inspection):
    try:
        return table.inspect(inspection.name, "latest" if inspection.at_version else None).to_arrow().num_rows
    except SnapshotExplorerError as error:
        return str(error)


@pytest.mark.parametrize("name", TABLES)
def test_no_file_of_such_a_name_is_called_an_orphan(tmp_path, name):
    shutil.copytree(samples.path(name), tmp_path / "t")
    litter(tmp_path / "t")

    orphans = open_table(tmp_path / "t").orphans("0d")

    rows = {row["path"]: row for row in orphans.files.to_arrow().to_pylist()}
    assert "stray\\xff.parquet" in rows
    assert "fo\\xfflder/p=\\xff/x\\xff" in rows
    assert {row["is_orphan"] for row in rows.values()} == {None}
    assert "not UTF-8" in rows["stray\\xff.parquet"]["reason"]
    assert not orphans.is_complete
    json.loads(orphans.files.to_json())
    repr(orphans).encode()
    orphans._repr_mimebundle_()["text/html"].encode()


@pytest.fixture
def lake(tmp_path):
    """A folder with a table in a folder of such a name, and another one."""
    for name, folder in {"payments": b"pay\xffments", "rides": b"rides"}.items():
        shutil.copytree(samples.path(name), tmp_path / name)
        (tmp_path / name).rename(os.fsdecode(os.fsencode(tmp_path) + b"/" + folder))
    for name in NAMES:
        _write(os.fsencode(tmp_path) + b"/" + name)
    _write(os.fsencode(tmp_path) + b"/other\xff/deeper\xff/x")
    return tmp_path


def test_tables_in_folders_of_such_names_are_found_and_opened(lake):
    rows = find_tables(lake).to_arrow().to_pylist()

    assert [(row["name"], row["version"], row["problem"]) for row in rows] == [
        ("pay\\xffments", 21, None),
        ("rides", rows[1]["version"], None),
    ]
    assert rows[0]["path"] == f"{lake}/pay\\xffments"


def test_a_lake_with_such_names_answers_for_all_of_its_tables(lake, tmp_path_factory):
    opened = open_lake(lake)

    assert [row["problem"] for row in opened.overview("2000-01-01").to_arrow().to_pylist()] == [None, None]
    assert set(opened.changes(since="2000-01-01").to_arrow()["table"].to_pylist()) == {"pay\\xffments", "rides"}
    at = opened.at()
    assert at.tables[0].version == 21
    assert opened["pay\\xffments"].current.count() == 126
    saved = tmp_path_factory.mktemp("saved") / "lake.json"
    at.to_json(saved)
    assert json.loads(saved.read_text("utf-8"))["tables"][0]["name"] == "pay\\xffments"
    page = tmp_path_factory.mktemp("report") / "lake.html"
    report(page, opened, opened["pay\\xffments"])
    assert "pay\\xffments" in page.read_text("utf-8")
    for drawn in (opened, at, opened["pay\\xffments"]):
        repr(drawn).encode()


def test_a_table_is_opened_by_a_path_of_such_a_name(lake):
    path = os.fsdecode(os.fsencode(lake) + b"/pay\xffments")

    table = open_table(path)

    assert table.current.to_arrow().num_rows == 126
    assert table.path == f"{lake}/pay\\xffments"
    assert table.orphans("0d").verdict == "No file is orphaned."
    repr(table).encode()


def test_a_file_of_such_a_name_is_read_by_its_escape(tmp_path):
    _write(os.fsencode(tmp_path) + b"/a\xff")
    (tmp_path / "b\\xff").write_bytes(b"plain")
    _write(os.fsencode(tmp_path) + b"/b\xff")
    _write(os.fsencode(tmp_path) + b"/\xff/c")
    storage = Storage(tmp_path)

    assert [entry.name for entry in storage.list("")] == ["\\xff", "a\\xff", "b\\xff", "b\\xff (not UTF-8)"]
    assert storage.read_many(["a\\xff", "b\\xff", "b\\xff (not UTF-8)"]) == [b"x", b"plain", b"x"]
    assert [entry.name for entry in storage.list("\\xff")] == ["c"]
    assert storage.exists("\\xff/c")
    assert storage.below("\\xff").read("c") == b"x"
    assert not storage.has_escapes("b\\xff")
    assert storage.has_escapes("\\xff/c")
