"""The log's facade: what is read, how often, what is kept, what happens when files go or are damaged."""

import threading

import pytest

from snapshot_explorer.errors import CorruptTableError, SnapshotNotFoundError, StorageError
from snapshot_explorer.storage import Storage
from tests.inner.delta import DeltaLog, batches, removed_in
from tests.support.delta.table_builder import DeltaTable, add, commit_name, metadata, protocol, remove


def log_of(table):
    return DeltaLog(Storage(table.url if table.filesystem is not None else table.root))


def paths(state):
    return sorted(state.adds.column("path").to_pylist())


def grown(table, commits):
    """Commit so many times: each adds a file and removes the one before."""
    for _ in range(commits):
        number = table.version + 1
        gone = [] if number == 1 else [remove(f"f{number - 1}", size=500)]
        table.commit(add(f"f{number}"), *gone)
    return table


@pytest.fixture
def table(tmp_path):
    return grown(DeltaTable(None, tmp_path), 5)


def test_each_version_has_the_files_of_its_own(table):
    log = log_of(table)

    assert [paths(log.state(version)) for version in range(6)] == [[], *([f"f{number}"] for number in range(1, 6))]
    assert log.earliest() == 0
    assert [commit.version for commit in log.commits()] == [0, 1, 2, 3, 4, 5]


def test_states_come_the_same_from_those_that_are_kept_and_from_nothing(table):
    table.checkpoint(3)
    table.commit(add("g"))
    kept = log_of(table)

    for version in (2, 3, 4, 6, 5, 0, 6, 1):
        fresh = log_of(table).state(version)
        found = kept.state(version)
        assert paths(found) == paths(fresh)
        assert (found.version, found.protocol, found.metadata) == (version, fresh.protocol, fresh.metadata)


def test_small_batches_change_nothing(table, monkeypatch):
    whole = paths(log_of(table).state(5))
    monkeypatch.setattr(batches, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr("snapshot_explorer.formats.delta.metadata.log.REPLAYED_BYTES", 1)

    assert paths(log_of(table).state(5)) == whole
    assert log_of(table).actions(range(6)).adds.num_rows == 5


def test_the_actions_of_some_versions_come_in_order(table):
    found = log_of(table).actions([4, 2])

    assert found.adds.column("version").to_pylist() == [2, 4]
    assert found.commit_infos[4]["operation"] == "WRITE"
    assert log_of(table).actions([]).adds.num_rows == 0


def test_a_version_that_came_after_the_listing_is_found(table):
    log = log_of(table)
    assert log.segment().version == 5
    table.commit(add("new"))

    assert log.segment(6).version == 6
    assert paths(log.state(6)) == ["f5", "new"]
    with pytest.raises(SnapshotNotFoundError, match=r"Version 7 .*0 to 6"):
        log.state(7)


def test_a_commit_that_was_cleaned_after_the_listing_is_reported(table):
    log = log_of(table)
    log.refresh()
    table.checkpoint(4)
    table.clean(4)

    assert paths(log.state(5)) == ["f5"]
    with pytest.raises(SnapshotNotFoundError, match=r"Version 2 .*4 to 5"):
        log.state(2)
    with pytest.raises(SnapshotNotFoundError, match=r"0{19}2\.json does not exist.*the commit of version 2"):
        log.actions([2, 3])


def test_a_table_that_was_made_anew_is_read_anew(table):
    log = log_of(table)
    assert paths(log.state(2)) == ["f2"]
    before = log.generation
    table.commit(add("other"), version=2)
    log.refresh()

    assert log.generation == before + 1
    assert paths(log.state(2)) == ["f1", "other"]


@pytest.mark.parametrize("wrong", [b"", b"PAR1", b"x" * 100, None])
def test_a_damaged_checkpoint_is_passed_over_for_an_earlier_one(table, wrong, caplog):
    table.checkpoint(2)
    (path,) = table.checkpoint(4)
    if wrong is None:
        table.remove_file(path)
    else:
        table.write(path, wrong)
    log = log_of(table)

    assert paths(log.state(5)) == ["f5"]
    assert log.segment(5).checkpoint_version == 2
    assert [file.path for file in log.checkpoint_files(5)] == [f"_delta_log/{2:020d}.checkpoint.parquet"]
    said = "Failed to create a snapshot from log segment" in caplog.text
    assert said == (wrong not in (None, b""))


def test_a_checkpoint_that_goes_after_the_listing_is_passed_over(table):
    log = log_of(table)
    (path,) = table.checkpoint(4)
    log.refresh()
    table.remove_file(path)

    assert paths(log.state(5)) == ["f5"]


def test_if_no_checkpoint_can_be_read_the_first_error_counts(table):
    for version in (2, 4):
        (path,) = table.checkpoint(version)
        table.write(path, b"x" * 100)
    table.clean(5)

    with pytest.raises(CorruptTableError, match=r"0{19}4\.checkpoint\.parquet is damaged"):
        log_of(table).state(5)


def test_a_sidecar_that_is_gone_makes_the_whole_checkpoint_unusable(table):
    paths_written = table.checkpoint(4, form="parquet", sidecars=2)
    table.remove_file(paths_written[0])

    assert paths(log_of(table).state(5)) == ["f5"]


@pytest.mark.parametrize("missing", ["protocol", "metadata"])
def test_a_log_without_protocol_or_metadata_is_refused(tmp_path, missing):
    there = metadata() if missing == "protocol" else protocol()
    table = DeltaTable(None, tmp_path, first=(there,))

    for ask in (lambda log: log.state(0), lambda log: log.protocol_and_metadata(0)):
        with pytest.raises(CorruptTableError, match=f"The {missing} of your Delta table couldn't be recovered"):
            ask(log_of(table))


def test_a_line_that_was_cut_short_is_refused_with_its_file(table):
    table.write(commit_name(3), table.read(commit_name(3))[:-5])

    with pytest.raises(CorruptTableError, match=r"^_delta_log/0{19}3\.json is damaged: line 3 is not an action"):
        log_of(table).state(5)
    assert paths(log_of(table).state(2)) == ["f2"]


def test_the_checksum_file_is_compared_with_the_log(table, caplog):
    table.checksum()
    assert log_of(table).validate(5) == ("table-0", [])

    table.checksum(numFiles=7, metadata={"id": "other"}, protocol={"minReaderVersion": 9, "minWriterVersion": 9})
    _, notes = log_of(table).validate(5)

    name = f"_delta_log/{5:020d}.crc"
    assert [note.split(" is ")[0] for note in notes] == [
        f"{name} contradicts the log: its protocol",
        f"{name} contradicts the log: its table id",
        f"{name} contradicts the log: its number of files",
    ]
    assert notes[2].endswith("is 7, that of the log 1. The log is used.")


def test_counts_of_a_checksum_are_compared_once_the_files_are_known(table, caplog):
    table.checkpoint()
    table.checksum(tableSizeBytes=1)
    log = log_of(table)

    assert log.validate(5)[1] == []
    log.state(5)

    assert "its bytes of files is 1, that of the log 500" in caplog.text


def test_a_damaged_checksum_file_harms_nothing(table):
    table.write(f"_delta_log/{5:020d}.crc", b"{")

    assert log_of(table).validate(5) == ("table-0", [])


def test_who_removed_a_file_is_found(table):
    log = log_of(table)

    assert [removed_in(log._storage, log, path) for path in ("f3", "f5")] == [4, None]


def test_a_storage_that_fails_is_not_taken_for_a_damaged_checkpoint(register, memory_root, monkeypatch):
    filesystem, root = memory_root
    table = grown(DeltaTable(filesystem, root), 3)
    table.checkpoint()
    log = log_of(table)
    log.refresh()

    def refuse(self, paths):
        raise StorageError("no permission")

    monkeypatch.setattr(Storage, "read_many", refuse)
    with pytest.raises(StorageError, match="no permission"):
        log.state(3)


def asked(counted, question):
    counted.requests.clear()
    answer = question()
    return [(request.kind, request.path.rsplit("/", 1)[-1]) for request in counted.requests], answer


def test_with_a_checkpoint_only_it_and_the_commits_after_it_are_read(counted, memory_root):
    filesystem, root = memory_root
    table = grown(DeltaTable(filesystem, root), 203)
    for version in (100, 200):
        table.checkpoint(version)
    log = DeltaLog(Storage(f"counted://{root}"))

    requests, state = asked(counted, lambda: log.state(203))

    assert paths(state) == ["f203"]
    assert sorted(requests) == [
        ("get", f"{200:020d}.checkpoint.parquet"),
        *(("get", f"{version:020d}.json") for version in (201, 202, 203)),
        ("list", "_delta_log"),
    ]
    table.commit(add("next"))
    requests, _ = asked(counted, lambda: (log.refresh(), log.state(204)))
    assert sorted(requests) == [("get", f"{204:020d}.json"), ("list", "_delta_log")]


def test_protocol_and_metadata_of_a_large_checkpoint_cost_no_list_of_its_files(counted, memory_root):
    filesystem, root = memory_root
    table = grown(DeltaTable(filesystem, root), 3)
    table.checkpoint(form="json", sidecars=2)
    log = DeltaLog(Storage(f"counted://{root}"))

    requests, (_, found) = asked(counted, lambda: log.protocol_and_metadata(3))

    assert found.id == "table-0"
    assert [kind for kind, _ in requests] == ["list", "get"]


def test_sidecars_are_read_at_the_same_time(register, memory_root):
    from tests.support import filesystems

    filesystem, root = memory_root
    table = grown(DeltaTable(filesystem, root), 40)
    table.commit(*(add(f"more{number}") for number in range(40)))
    table.checkpoint(form="parquet", sidecars=8)
    slow = register(filesystems.counting("slow", in_rounds=True))

    state = DeltaLog(Storage(f"slow://{root}")).state(41)

    assert state.adds.num_rows == 41
    assert slow.most_at_once >= 4


@pytest.mark.parametrize("at_once", [1 << 20, 1])
def test_memory_is_in_proportion_to_the_live_files_and_to_what_may_be_kept(tmp_path, monkeypatch, at_once):
    import pyarrow as pa

    monkeypatch.setattr(batches, "BYTES_KEPT", 2_000)
    monkeypatch.setattr("snapshot_explorer.formats.delta.metadata.log.REPLAYED_BYTES", at_once)
    table = grown(DeltaTable(None, tmp_path), 300)
    log = log_of(table)
    before = pa.total_allocated_bytes()

    state = log.state(300)

    assert state.adds.num_rows == 1
    assert pa.total_allocated_bytes() - before < 300 * 100


@pytest.fixture
def dated(register):
    """The class of dated://, which is counted:// with the times of files."""
    from tests.support import filesystems

    class Dated(filesystems.counting("dated")):
        def ls(self, path, detail=True, **more):  # noqa: FBT002 - fsspec's
            return [one | {"mtime": one.get("created")} for one in super().ls(path, detail=detail, **more)]

    return register(Dated)


def test_the_actions_that_made_a_state_are_not_read_again(dated, memory_root):
    table = grown(DeltaTable(*memory_root), 20)
    log = DeltaLog(Storage(f"dated://{table.root}"))
    fresh = log_of(table)
    log.state(20)

    for versions in (range(21), range(5, 9), [0], [20], range(7, 21)):
        requests, found = asked(dated, lambda some=versions: log.actions(some, infos=False))
        assert requests == []
        assert found == fresh.actions(versions, infos=False)
    requests, found = asked(dated, lambda: log.actions([3, 4]))

    assert len(requests) == 2
    assert set(found.commit_infos) == {3, 4}


def test_actions_that_are_not_all_kept_are_read(dated, memory_root):
    table = grown(DeltaTable(*memory_root), 12)
    table.checkpoint(6)
    log = DeltaLog(Storage(f"dated://{table.root}"))
    log.state(12)

    for versions, reads in ((range(7, 13), 0), (range(6, 13), 7), ([8, 10], 2)):
        requests, found = asked(dated, lambda some=versions: log.actions(some, infos=False))
        assert len(requests) == reads
        assert found == log_of(table).actions(versions, infos=False)


def test_of_a_table_that_was_made_anew_nothing_is_kept(tmp_path):
    table = grown(DeltaTable(None, tmp_path), 3)
    log = log_of(table)
    log.state(3)

    table.commit(add("other name, other size"), version=2)
    log.refresh()

    assert log.actions([2], infos=False).adds["path"].to_pylist() == ["other name, other size"]


def test_without_times_of_files_nothing_is_kept(counted, memory_root):
    table = grown(DeltaTable(*memory_root), 3)
    log = DeltaLog(Storage(f"counted://{table.root}"))
    log.state(3)

    requests, _ = asked(counted, lambda: log.actions([1, 2], infos=False))

    assert len(requests) == 2


def test_many_threads_see_whole_states(table):
    log = log_of(table)
    wrong = []

    def ask(mine):
        for turn in range(20):
            version = (mine + turn) % 6
            state = log.state(version)
            if paths(state) != ([f"f{version}"] if version else []) or state.version != version:
                wrong.append(version)
            log.refresh()

    threads = [threading.Thread(target=ask, args=(mine,)) for mine in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert not wrong


@pytest.mark.parametrize(
    ("gone", "asked", "advice"),
    [
        ((1,), (0, 1, 2), "Read from version 2 on, the next one whose commit exists."),
        ((0, 2), (0, 1, 2, 3), "Read from version 3 on, the next one whose commit exists."),
        ((3,), (2, 3), "Read up to version 2, the last one whose commit exists."),
        ((0, 1, 2, 3), (3,), "No commit is left: read the files of a version instead."),
    ],
)
def test_a_commit_that_is_gone_is_named_with_where_to_go_on(tmp_path, gone, asked, advice):
    table = DeltaTable(None, tmp_path)
    for name in "abc":
        table.commit(add(name))
        table.checkpoint(table.version)
    for version in gone:
        table.remove_file(commit_name(version))

    with pytest.raises(SnapshotNotFoundError) as raised:
        DeltaLog(Storage(str(tmp_path))).actions(asked)

    missing = min(set(gone).intersection(asked))
    assert str(raised.value) == (
        f"{commit_name(missing)} does not exist in {tmp_path}: the commit of version {missing} was cleaned up "
        f"or removed by hand. {advice}"
    )
