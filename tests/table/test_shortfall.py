"""A storage that shows less than before: refused, with what is known kept; never believed in silence."""

import threading

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, StorageError, TableNotFoundError
from tests.support.blocking import blocking
from tests.support.delta.table_builder import DeltaTable, commit_name, metadata, protocol
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable

FORMATS = ("paimon", "delta", "iceberg")
CALLS = {
    "update": lambda table: table.update(),
    "versions": lambda table: table.versions(),
    "history": lambda table: table.history(),
    "at": lambda table: table.at("latest~1"),
    "compare": lambda table: table.compare(2, 3),
    "lifetimes": lambda table: table.lifetimes(),
    "readability": lambda table: table.verify().versions,
    "retention": lambda table: table.retention(),
    "changes": lambda table: table.at("latest").file_changes(since="earliest"),
    "row_changes": lambda table: table.row_changes("earliest", "latest"),
    "health_history": lambda table: table.health(between=".."),
}


def write(kind, filesystem, root):
    """Return a table of versions 1 to 4; of Delta also 0."""
    if kind == "delta":
        written = DeltaTable(filesystem, root)
        for number in range(1, 5):
            written.append([(number, f"n{number}")])
        return written
    written = (PaimonTable if kind == "paimon" else IcebergTable)(filesystem, root)
    for number in range(1, 5):
        written.commit([(number, f"n{number}")])
    return written


def append(written, *rows):
    """Commit rows as the next version; return its number."""
    if isinstance(written, DeltaTable):
        return written.append(list(rows))
    written.commit(list(rows))
    return 5


@pytest.fixture(params=FORMATS)
def written(request, memory_root):
    return write(request.param, *memory_root)


def opened(written):
    return open_table(f"memory://{written.root}")


def log_of(written):
    names = {DeltaTable: "_delta_log", PaimonTable: "snapshot", IcebergTable: "metadata"}
    return f"{written.root}/{names[type(written)]}"


def file_of(written, version):
    names = {PaimonTable: f"snapshot/snapshot-{version}", IcebergTable: f"metadata/v{version}.metadata.json"}
    return f"{written.root}/{names.get(type(written)) or commit_name(version)}"


@pytest.mark.parametrize("call", CALLS)
def test_a_table_that_was_there_does_not_vanish_in_silence(written, call):
    table = opened(written)
    current = table.current
    written.filesystem.rm(log_of(written), recursive=True)

    with pytest.raises(TableNotFoundError, match=r"shows no version any more.* At 20.* UTC version 4 was the newest"):
        CALLS[call](table)
    assert table.current is current
    assert table.current.version == 4


@pytest.mark.parametrize("call", CALLS)
def test_a_newest_version_that_was_there_is_missed(written, call):
    table = opened(written)
    current = table.current
    written.filesystem.rm(file_of(written, 4))

    kind, said = StorageError, r"fewer versions than before: version 4 is missing, .* UTC; now it shows"
    if isinstance(written, IcebergTable):
        kind, said = CorruptTableError, "version-hint.text names version 4, but .* has no metadata file v4"

    with pytest.raises(kind, match=said):
        CALLS[call](table)
    assert table.current is current


@pytest.mark.parametrize("hints", [True, False], ids=["hint", "no hint"])
def test_an_older_metadata_file_is_not_believed(memory_root, hints):
    written = IcebergTable(*memory_root)
    written.hints = hints
    for number in range(1, 5):
        written.commit([(number, "a")])
    table = opened(written)
    current, newest = table.current, written.filesystem.cat_file(file_of(written, 4))
    written.filesystem.rm(file_of(written, 4))
    if hints:
        written.write("metadata/version-hint.text", b"3")

    for call in ("update", "versions", "lifetimes"):
        with pytest.raises(
            StorageError, match=r"older metadata file than before: metadata/v3\..* it showed metadata/v4\."
        ):
            CALLS[call](table)
    assert table.current is current
    written.write("metadata/v4.metadata.json", newest)
    assert table.update().version == 4


@pytest.mark.parametrize("written", ["paimon", "delta"], indirect=True)
@pytest.mark.parametrize("call", ["versions", "history", "lifetimes", "readability"])
def test_a_version_in_the_middle_that_was_there_is_missed(written, call):
    table = opened(written)
    table.versions()
    written.filesystem.rm(file_of(written, 2))

    with pytest.raises(StorageError, match="fewer versions than before: version 2 is missing"):
        CALLS[call](table)


def test_a_table_that_comes_back_is_read_on(written):
    table = opened(written)
    log, away = log_of(written), f"{written.root}/away"
    written.filesystem.mv(log, away, recursive=True)
    with pytest.raises(TableNotFoundError):
        table.update()
    written.filesystem.mv(away, log, recursive=True)

    version = append(written, (9, "z"))

    assert table.update().version == version
    assert sorted(table.current.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 9]


@pytest.mark.parametrize("written", ["paimon", "delta"], indirect=True)
def test_an_answer_that_is_behind_once_is_requested_again(written, register):
    slow = register(blocking())
    table = open_table(f"blocking://{written.root}")
    table.versions()
    behind = slow.hide_once(file_of(written, 4), file_of(written, 3))

    assert table.versions()[-1] == 4
    assert behind.is_set()


def test_versions_that_expire_are_no_loss(written):
    table = opened(written)
    table.versions()
    if isinstance(written, DeltaTable):
        written.checkpoint(3)
        written.clean(3)
    else:
        written.expire(3)

    assert table.update().version == 4
    assert table.versions() == (3, 4)
    assert table.history()["version"].to_pylist() == [4, 3]


def test_a_log_that_is_cleaned_up_in_no_order_is_read_on_and_a_warning_says_so(memory_root, caplog):
    written = write("delta", *memory_root)
    table = opened(written)
    table.versions()
    written.checkpoint(3)
    for version in (1, 2):
        written.remove_file(commit_name(version))

    assert table.update().version == 4
    assert table.versions() == (0, 3, 4)
    assert "versions 1, 2 are missing" in caplog.text


def test_a_table_that_was_rolled_back_is_followed_and_a_warning_says_so(memory_root, caplog):
    written = write("paimon", *memory_root)
    table = opened(written)
    table.versions()
    written.rollback(2)

    assert table.update().version == 2
    assert table.versions() == (1, 2)
    (warned,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "recreated: version 4, the newest before, is gone. The newest version is 2 now." in warned


def test_a_rollback_that_is_under_way_is_not_a_rollback_yet(memory_root):
    written = write("paimon", *memory_root)
    table = opened(written)
    written.write("snapshot/LATEST", b"2")
    written.remove("snapshot/snapshot-4")

    with pytest.raises(StorageError, match="version 4 is missing"):
        table.update()
    written.remove("snapshot/snapshot-3")

    assert table.update().version == 2


def test_a_hint_that_is_behind_does_not_hide_a_version(memory_root):
    written = write("paimon", *memory_root)
    table = opened(written)
    table.versions()
    written.write("snapshot/LATEST", b"2")

    assert table.update().version == 4


def test_history_that_was_written_again_is_reported(memory_root, caplog):
    written = write("paimon", *memory_root)
    table = opened(written)
    written.rollback(2)
    for number in (7, 8, 9):
        written.commit([(number, "again")], millis=1_800_000_000_000)

    assert table.update().version == 5
    assert sorted(table.current.to_arrow()["id"].to_pylist()) == [1, 2, 7, 8, 9]
    assert "recreated: version 4, the newest before, is another commit now." in caplog.text


def test_a_delta_table_that_was_made_anew_is_followed_and_reported(tmp_path, caplog):
    written = write("delta", None, tmp_path)
    table = open_table(tmp_path)
    for version in range(5):
        written.remove_file(commit_name(version))
    written.commit(protocol(), metadata(id="other"), version=0, millis=1_900_000_000_000)

    assert table.update().version == 0
    assert "shows other commits than before under the same numbers; the newest version was 4 and is 0" in caplog.text
    assert "Change in the table id detected" in caplog.text


def test_a_hint_to_snapshots_that_are_not_listed_is_not_an_empty_table(memory_root):
    written = write("paimon", *memory_root)
    for version in range(1, 5):
        written.remove(f"snapshot/snapshot-{version}")

    with pytest.raises(
        StorageError, match="shows no snapshot in snapshot, but its hint snapshot/LATEST names version 4"
    ):
        open_table(f"memory://{written.root}")


def test_a_listing_that_ends_late_is_not_a_shorter_one(written, register):
    slow = register(blocking())
    table = open_table(f"blocking://{written.root}")
    found = []
    held = {DeltaTable: "_delta_log", PaimonTable: "/snapshot", IcebergTable: "/metadata/v"}
    with slow.hold(held[type(written)], answered=True) as waits:
        late = threading.Thread(target=lambda: found.append(table.versions()[-1]))
        late.start()
        assert waits.wait(60)
        slow.let_others()
        version = append(written, (9, "z"))
        assert table.update().version == version
    late.join(60)

    assert found in ([4], [5])
    assert table.current.version == version
