"""Files in whose place there is something else: nothing, blanks, a page of a proxy, JSON that is not an action."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import DeltaTable, commit_name, inline_vector, remove

PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>\n<p>Please sign in.</p></body></html>\n"
INSTEAD = {
    "nothing": (b"", "it is empty"),
    "blanks": (b" \n\r\n\t\n", "it is blank"),
    "a page": (PAGE, "line 1 is not an action"),
    "text": (b"Bad Gateway", "line 1 is not an action"),
    "a number": (b"42\n", "line 1 is not an action"),
    "an answer in JSON": (b'{"error": {"code": 403}}\n', "it contains no action of a known kind"),
    "an answer in pretty JSON": (b'{\n  "error": 403\n}\n', "line 1 is not an action"),
}


@pytest.fixture
def table(tmp_path):
    """Versions 0 to 5; files are added, removed, and have rows deleted."""
    written = DeltaTable(None, tmp_path, features=["deletionVectors"])
    written.append([(1, "a"), (2, "b")], name="0.parquet")
    written.append([(3, "c")], name="1.parquet")
    written.commit(remove("1.parquet", size=500))
    size = (tmp_path / "0.parquet").stat().st_size
    written.commit(
        remove("0.parquet", size=size),
        written.data("0.parquet", [(1, "a"), (2, "b")], vector=inline_vector([0])),
    )
    written.append([(4, "d")], name="2.parquet")
    return written


def read_units(table_format, units):
    read = table_format.metadata_tasks.reader()
    return [list(read(unit)) for unit in units]


def no_look(pieces):
    raise AssertionError("small logs are read at once")


CALLS = {
    "open": open_table,
    "at": lambda root: open_table(root).at(3).to_arrow(),
    "files": lambda root: open_table(root).at(4).files(),
    "commit": lambda root: open_table(root).at(3).commit,
    "history": lambda root: open_table(root).history(),
    "changes": lambda root: open_table(root).at("latest").file_changes(since="earliest"),
    "compare": lambda root: open_table(root).compare(1, 5).files,
    "lifetimes": lambda root: open_table(root).lifetimes(),
    "health over": lambda root: open_table(root).health(between=".."),
    "readability": lambda root: open_table(root).verify().versions,
    "retention": lambda root: open_table(root).retention(),
    "changed rows": lambda root: open_table(root).row_changes(1, 5),
    "a listing of metadata": lambda root: open_table(root).inspect("history"),
    "a manifest": lambda root: Delta(Storage(root)).version(5).entries(commit_name(3)),
    "state on executors": lambda root: read_units(
        d := Delta(Storage(root)), d.metadata_tasks.of_state(5, no_look).tasks
    ),
    "changes on executors": lambda root: read_units(
        d := Delta(Storage(root)), d.metadata_tasks.of_changes(range(6), no_look, lifetimes=True)
    ),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("instead", INSTEAD)
def test_a_commit_that_is_something_else_is_refused_by_name(table, call, instead):
    content, why = INSTEAD[instead]
    table.write(commit_name(3), content)

    with pytest.raises(CorruptTableError, match=f"{commit_name(3)} is damaged: {why}"):
        CALLS[call](table.root)


@pytest.mark.parametrize("instead", INSTEAD)
def test_a_commit_behind_a_checkpoint_is_named_and_versions_that_need_it_are_refused(table, instead):
    content, why = INSTEAD[instead]
    table.checkpoint()
    table.write(commit_name(3), content)
    opened = open_table(table.root)
    problem = f"{commit_name(3)} is damaged: {why}"

    assert sorted(opened.current.to_arrow()["id"].to_pylist()) == [2, 4]
    for version in (3, 4):
        with pytest.raises(CorruptTableError, match=problem):
            opened.at(version).to_arrow()
    history, changes, lifetimes = (
        opened.history(),
        opened.at("latest").file_changes(since="earliest"),
        opened.lifetimes(),
    )
    for frame in (history, changes, lifetimes.frame):
        assert any(problem in note for note in frame.notes)
    assert [note.partition(":")[0] for note in history.notes] == ["The commit of version 3 cannot be read"]
    assert 3 not in changes.to_arrow()["version"].to_pylist()
    assert (lifetimes.versions, list(lifetimes.unread)) == ((0, 1, 2, 5), [3, 4])


@pytest.mark.parametrize("instead", INSTEAD)
def test_a_commit_that_must_carry_its_time_is_refused_where_only_times_are_read(tmp_path, instead):
    content, _ = INSTEAD[instead]
    written = DeltaTable(None, tmp_path, configuration={"delta.enableInCommitTimestamps": "true"})
    written.append([(1, "a")])
    written.append([(2, "b")])
    written.checkpoint()
    opened = open_table(written.root)
    written.write(commit_name(1), content)

    with pytest.raises(CorruptTableError, match=commit_name(1)):
        history_of(opened).committed_at([1])


def test_a_commit_of_known_and_unknown_actions_is_one(table):
    reported = table.log[3]
    table.write(
        commit_name(3), b"".join(json.dumps(one).encode() + b"\n" for one in (*reported, {"newKind": {"protocol": 1}}))
    )

    assert len(open_table(table.root).at("latest").file_changes(since="earliest")) == 6
    table_format = Delta(Storage(table.root))
    read_units(table_format, table_format.metadata_tasks.of_changes(range(6), no_look, lifetimes=True))


@pytest.mark.parametrize("form", ["classic", "multi-part", "parquet", "json"])
@pytest.mark.parametrize("instead", INSTEAD)
def test_a_checkpoint_that_is_something_else_is_passed_over_or_refused(table, form, instead):
    for path in table.checkpoint(3, form=form):
        table.write(path, INSTEAD[instead][0])

    assert sorted(open_table(table.root).current.to_arrow()["id"].to_pylist()) == [2, 4]

    table.clean(3)
    with pytest.raises(Exception, match="checkpoint") as refused:
        open_table(table.root)
    assert type(refused.value).__module__ == "snapshot_explorer.core.errors"


@pytest.mark.parametrize("instead", INSTEAD)
def test_hints_and_checksums_that_are_something_else_are_passed_over(table, instead):
    table.checkpoint()
    table.write("_delta_log/_last_checkpoint", INSTEAD[instead][0])
    table.write(f"_delta_log/{5:020d}.crc", INSTEAD[instead][0])

    opened = open_table(table.root)

    assert sorted(opened.current.to_arrow()["id"].to_pylist()) == [2, 4]
    assert len(opened.history()) == 6


@pytest.mark.parametrize("instead", INSTEAD)
def test_a_data_file_that_is_something_else_is_refused_by_name(table, instead):
    table.write("2.parquet", INSTEAD[instead][0])

    with pytest.raises(CorruptTableError, match=r"2\.parquet"):
        open_table(table.root).current.to_arrow()


def test_a_sidecar_without_file_actions_is_refused(table):
    paths = table.checkpoint(sidecars=1, form="parquet")
    table.write(paths[0], _parquet_of_size(Path(table.root, paths[0]).stat().st_size))
    table.clean(3)

    with pytest.raises(CorruptTableError, match="contains neither add nor remove actions"):
        open_table(table.root).current.to_arrow()


def _parquet_of_size(size_bytes):
    """Return a parquet file without actions of a size: the recorded one, so that only its columns differ."""
    padding = 0
    for _ in range(9):
        sink = pa.BufferOutputStream()
        options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        pa.parquet.write_table(pa.table({"id": ["x" * padding]}), sink, **options)
        file = sink.getvalue().to_pybytes()
        padding += size_bytes - len(file)
    assert len(file) == size_bytes
    return file
