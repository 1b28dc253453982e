"""Files outside of a table's folder, which its metadata may name: they are announced once, or refused."""

import logging
import pickle

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage
from tests.support.delta.table_builder import DeltaTable
from tests.support.paimon import table_builder
from tests.support.paimon.avro_schemas import newest_manifest
from tests.support.paimon.table_builder import PaimonTable


@pytest.fixture
def clone(tmp_path):
    """A Delta table with a file of its own and three of another one, as a shallow clone has."""
    source = DeltaTable(None, tmp_path / "source")
    table = DeltaTable(None, tmp_path / "clone")
    table.append([(0, "own")])
    for number in (1, 2, 3):
        action = source.data(f"day={number}/f.parquet", [(number, "theirs")])
        action["add"]["path"] = f"file://{source.root}/day={number}/f.parquet"
        table.commit(action)
    return table


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_files_outside_are_read_and_that_is_said_once(clone, tmp_path, caplog):
    table = open_table(clone.root)
    assert warnings_of(caplog) == []

    assert sorted(table.current.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    table.current.to_arrow()
    table.at(2).to_arrow()

    (warning,) = warnings_of(caplog)
    assert warning == (
        f"{clone.root} reads 3 files outside of the table's folder, below {tmp_path}/source. The writers of the table "
        "choose them. To refuse them, use open_table(..., external_files='refuse')."
    )
    assert "3 files outside of the table's folder" in table._repr_mimebundle_()["text/plain"]


def test_a_table_without_files_outside_says_nothing(tmp_path, caplog):
    table = DeltaTable(None, tmp_path / "plain")
    action = table.data("f.parquet", [(1, "a")])
    action["add"]["path"] = f"file://{table.root}/f.parquet"
    table.commit(action)

    opened = open_table(table.root, external_files="refuse")

    assert opened.current.to_arrow().num_rows == 1
    assert history_of(opened).table_format.storage.outside is None
    assert warnings_of(caplog) == []


def test_refused_files_are_named_with_what_to_do_and_the_rest_of_the_table_is_shown(clone, tmp_path, caplog):
    table = open_table(clone.root, external_files="refuse")

    with pytest.raises(UnsupportedFeatureError) as caught:
        table.current.to_arrow()

    assert str(caught.value) == (
        f"The table names the file {tmp_path}/source/day=1/f.parquet, which is outside of its folder, {clone.root}. It "
        "is not read, because the table was opened with external_files='refuse'. If you trust the table, open it with "
        "external_files='allow'."
    )
    assert table.at(1).to_arrow().num_rows == 1
    assert table.current.files().num_rows == 4
    assert table.history().num_rows == 5
    assert warnings_of(caplog) == []


def test_a_deletion_vector_outside_is_refused(tmp_path):
    other = DeltaTable(None, tmp_path / "other")
    table = DeltaTable(None, tmp_path / "t", features=["deletionVectors"])
    vector = other.vector([0], absolute=f"file://{other.root}")
    table.commit(table.data("a.parquet", [(1, "a"), (2, "b")], vector=vector))

    assert open_table(table.root).current.to_arrow()["id"].to_pylist() == [2]
    with pytest.raises(UnsupportedFeatureError, match="other/deletion_vector_.*external_files='refuse'"):
        open_table(table.root, external_files="refuse").current.to_arrow()


def test_an_external_path_of_paimon_is_refused_and_shown(memory_root, caplog, monkeypatch):
    monkeypatch.setattr(table_builder, "MANIFEST", newest_manifest())
    filesystem, root = memory_root
    table = PaimonTable(filesystem, f"{root}/t")
    entry = table.file_entry

    def elsewhere(kind, name, rows):
        made = entry(kind, name, rows)
        made["_FILE"]["_EXTERNAL_PATH"] = f"memory://{root}/elsewhere/{name}"
        return made

    table.file_entry = elsewhere
    table.commit([(1, "a")])
    filesystem.copy(f"{table.root}/bucket-0/data-1.parquet", f"{root}/elsewhere/data-1.parquet")
    opened = open_table(f"memory://{table.root}")

    assert opened.current.to_arrow().num_rows == 1
    assert len(warnings_of(caplog)) == 1
    assert f"1 file outside of the table's folder, below memory://{root}/elsewhere" in warnings_of(caplog)[0]
    refused = open_table(f"memory://{table.root}", external_files="refuse")
    with pytest.raises(UnsupportedFeatureError, match="elsewhere/data-1.parquet, which is outside of its folder"):
        refused.current.to_arrow()
    assert refused.current.files()["path"].to_pylist() == [f"memory://{root}/elsewhere/data-1.parquet"]


def test_the_rule_travels_to_executors(tmp_path):
    (tmp_path / "outside").write_bytes(b"x")
    storage = pickle.loads(pickle.dumps(Storage(tmp_path / "t", external_files="refuse")))

    for ask in (storage.read, storage.open, storage.exists, storage.local_address, storage.resolve_external):
        with pytest.raises(UnsupportedFeatureError, match="external_files='refuse'"):
            ask(f"file://{tmp_path}/outside")


@pytest.mark.parametrize("spelled", ["s3://lake/t/a", "s3a://lake/t/a", "s3n://lake/t/x/../a".replace("x/../", "")])
def test_a_file_below_the_folder_is_inside_however_it_is_spelled(spelled):
    storage = Storage("s3://lake/t", external_files="refuse")

    assert storage.resolve_external(spelled) == "s3://lake/t/a"
    for outside in ("s3://lake/tt/a", "s3://lake/a", "s3://other/t/a"):
        with pytest.raises(UnsupportedFeatureError, match="outside of its folder"):
            storage.resolve_external(outside)


def test_many_files_are_a_note_of_bounded_length_and_memory():
    storage = Storage("/t")
    for number in range(10_050):
        storage.resolve_external(f"file:///mnt/{number % 7}/{'x' * 200}/{number}")

    assert storage.outside == "more than 10,000 files outside of the table's folder, below /mnt"
    storage.resolve_external("/other/f")
    few = Storage("/t")
    few.resolve_external("/a/f")
    few.resolve_external("/b/f")
    assert few.outside == "2 files outside of the table's folder, in several places"


def test_a_rule_that_is_none_is_refused(clone):
    with pytest.raises(InvalidArgumentError, match="external_files must be 'allow' or 'refuse', got 'never'."):
        open_table(clone.root, external_files="never")
