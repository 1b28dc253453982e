"""Plans and lists of files read a large checkpoint some files at a time, and keep only those that are needed."""

import weakref

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError
from snapshot_explorer.history import history_of
from snapshot_explorer.storage import Storage
from tests.inner.delta import DeltaLog, NeededColumns, checkpoints
from tests.inner.delta import log as logs
from tests.inner.engines import parse_condition
from tests.support.delta.table_builder import DeltaTable, add, remove

FILES = 20
FORMS = {
    "multi-part": {"form": "multi-part", "parts": 3},
    "sidecars": {"form": "json", "sidecars": 2},
}
OPERATORS = {
    "=": lambda low, high, value: low <= value <= high,
    "<": lambda low, high, value: low < value,
    ">": lambda low, high, value: high > value,
    ">=": lambda low, high, value: high >= value,
}


def file(number, **more):
    ends = {"minValues": {"id": 5 * number}, "maxValues": {"id": 5 * number + 4}, "nullCount": {"id": 0}}
    day = {"day": f"2026-01-{number % 3 + 1:02d}"}
    return add(f"f{number}", partition=day, size=100 + number, stats={"numRecords": 5} | ends, **more)


@pytest.fixture(scope="module", params=FORMS.values(), ids=FORMS)
def table(request):
    """A table whose newest version has files of a checkpoint, and of commits that remove some and add one again."""
    fields = [("id", "long"), ("day", "string")]
    written = DeltaTable(fsspec.filesystem("memory"), f"/streaming/{id(request)}", fields=fields, partition_by=["day"])
    written.commit(*map(file, range(FILES)))
    written.commit(remove("f3"))
    written.checkpoint(**request.param)
    written.commit(remove("f7"), file(FILES))
    written.commit(remove("f8"), file(9, dataChange=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "_LARGE", 0)
        patch.setattr(checkpoints, "_ROWS_AT_ONCE", 4)
        yield open_table(written.url)


LIVE = [number for number in range(FILES + 1) if number not in (3, 7, 8)]


@settings(max_examples=32)
@given(operator=st.sampled_from(sorted(OPERATORS)), value=st.integers(-1, 5 * FILES + 6), day=st.integers(0, 4))
def test_a_plan_has_the_files_that_a_condition_does_not_rule_out(table, operator, value, day):
    version = history_of(table).table_format.version(table.current.version)
    where = f"id {operator} {value}" + (f" and day = '2026-01-{day:02d}'" if day else "")
    in_partition = [number for number in LIVE if not day or number % 3 + 1 == day]
    read = [number for number in in_partition if OPERATORS[operator](5 * number, 5 * number + 4, value)]
    condition = parse_condition(where, version.arrow_schema)

    plan = version.plan(condition)

    assert sorted(path for split in plan.splits for path in split.files) == sorted(f"f{number}" for number in read)
    assert sum(split.rows for split in plan.splits) == 5 * len(read)
    skipped = plan.skipped().to_pylist()
    by_partition = [group for group in skipped if group["skipped"] == "partition"]
    assert sum(group["files"] for group in by_partition) == len(LIVE) - len(in_partition)
    assert sum(group["files"] for group in skipped) == len(LIVE) - len(read)
    assert sum(group["size_bytes"] for group in skipped) == sum(100 + number for number in set(LIVE) - set(read))
    listed = version.files(condition)
    assert sorted(listed["path"].to_pylist()) == sorted(f"f{number}" for number in in_partition)
    assert version.file_count() == len(LIVE)


def test_files_in_turn_are_those_of_the_state(table):
    version = table.current.version
    streamed = DeltaLog(Storage(table.path)).over_live_files(
        version, lambda _protocol, _metadata, batches: [adds for adds in batches if len(adds)], checkpoints.ALL_COLUMNS
    )
    state = DeltaLog(Storage(table.path)).state(version)

    assert max(map(len, streamed)) <= 4
    assert [row for adds in streamed for row in adds.select(state.adds.column_names).to_pylist()] == (
        state.adds.to_pylist()
    )


def test_earlier_files_are_gone_when_the_next_are_decoded(table):
    earlier, alive = [], []

    def count(_protocol, _metadata, batches):
        for adds in batches:
            alive.append(sum(batch() is not None for batch in earlier))
            earlier.append(weakref.ref(adds))
        return len(alive)

    log = DeltaLog(Storage(table.path))
    assert log.over_live_files(table.current.version, count, NeededColumns(names=frozenset())) > 3
    assert max(alive) <= 1  # the variable of the loop


def test_a_checksum_with_other_counts_is_reported_when_the_files_are_read_in_turn(monkeypatch, caplog):
    monkeypatch.setattr(logs, "_LARGE", 0)
    written = DeltaTable(fsspec.filesystem("memory"), "/streaming/checksum")
    written.commit(add("a"), add("b"))
    written.checkpoint()
    written.checksum(numFiles=3)

    assert len(open_table(written.url).current.files()) == 2
    assert "its number of files is 3, that of the log 2" in caplog.text


def test_a_damaged_part_is_left_for_an_earlier_checkpoint(monkeypatch):
    monkeypatch.setattr(logs, "_LARGE", 0)
    written = DeltaTable(fsspec.filesystem("memory"), "/streaming/damaged")
    written.commit(add("a"))
    written.checkpoint()
    written.commit(add("b"))
    (path,) = written.checkpoint()
    table = open_table(written.url)
    written.write(path, written.read(path)[:-40])

    assert sorted(table.current.files().to_arrow()["path"].to_pylist()) == ["a", "b"]

    written.remove_file("_delta_log/00000000000000000000.json")
    written.remove_file("_delta_log/00000000000000000001.checkpoint.parquet")
    with pytest.raises(CorruptTableError, match="is damaged"):
        open_table(written.url).current.files()
