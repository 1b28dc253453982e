"""Checkpoints of every form give the state that the commits give; damaged ones are refused by name."""

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, SnapshotExplorerError
from snapshot_explorer.storage import Storage
from tests.inner.delta import DeltaLog, read_checkpoint
from tests.support.delta.table_builder import (
    ACTIONS,
    DeltaTable,
    add,
    domain,
    inline_vector,
    metadata,
    protocol,
    remove,
    txn,
)

FORMS = [
    {"form": "classic"},
    {"form": "multi-part", "parts": 3},
    {"form": "parquet"},
    {"form": "json"},
    {"form": "parquet", "sidecars": 2},
    {"form": "json", "sidecars": 2},
    {"form": "classic", "sidecars": 1},
]


def built(root, filesystem=None):
    """A log with a bit of everything, three versions."""
    table = DeltaTable(filesystem, root, partition_by=["name"], configuration={"a": "b"}, features=["deletionVectors"])
    table.commit(
        add("a%20b", partition={"name": None}, rows=3, vector=inline_vector([0]), tags={"x": "y"}, baseRowId=7),
        add("c", partition={"name": "é"}, stats={"numRecords": 1}),
        add("gone"),
        txn("app", 4, 5),
        domain("kept", "{}"),
        domain("dropped"),
    )
    table.commit(remove("gone", size=3), add("no statistics"), domain("dropped", removed=True))
    return table


def read(table, **options):
    log = DeltaLog(Storage(table.root))
    files = log.segment().checkpoint
    return read_checkpoint(Storage(table.root), files, **options)


def rows(adds):
    return sorted(adds.drop_columns(["version"]).to_pylist(), key=lambda row: row["path"])


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_of_a_checkpoint_gives_what_the_commits_give(tmp_path, form):
    table = built(tmp_path)
    expected = DeltaLog(Storage(table.root)).state(2)
    table.checkpoint(**form)

    found = read(table).replay_state

    assert [row | {"data_change": True} for row in rows(found.adds)] == rows(expected.adds)
    assert found.adds.column("version").null_count == 3
    assert (found.protocol, found.metadata) == (expected.protocol, expected.metadata)
    assert found.transactions == expected.transactions
    assert {name for name, one in found.domains.items() if not one.removed} == set(expected.domains) == {"kept"}
    assert DeltaLog(Storage(table.root)).segment().checkpoint_version == 2


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_without_files_a_checkpoint_still_tells_the_rest(tmp_path, form):
    table = built(tmp_path)
    table.checkpoint(**form)

    found = read(table, adds=False).replay_state

    assert found.adds.num_rows == 0
    assert found.metadata.configuration == {"a": "b"}


def test_the_files_of_a_checkpoint_are_reported_with_what_they_hold(tmp_path):
    table = built(tmp_path)
    paths = table.checkpoint(form="json", sidecars=2)

    found = read(table).files

    assert [file.path for file in found] == [paths[-1], *paths[:2]]
    assert [file.list_path for file in found] == [None, paths[-1], paths[-1]]
    assert [file.adds for file in found] == [0, 2, 1]
    assert all(file.size_bytes == (tmp_path / file.path).stat().st_size for file in found)


def test_statistics_as_a_struct_are_kept_where_there_is_no_text(tmp_path):
    table = built(tmp_path)
    parsed = pa.struct({"numRecords": pa.int64(), "minValues": pa.struct({"id": pa.int64()})})
    fields = [field for field in ACTIONS["add"] if field.name != "stats"]
    actions = [
        {"add": action["add"] | {"stats_parsed": {"numRecords": 5, "minValues": {"id": 1}}}}
        if "add" in action
        else action
        for action in table.state()
    ]
    table.checkpoint(actions=actions, columns={"add": pa.struct([*fields, pa.field("stats_parsed", parsed)])})
    table.commit(add("later", rows=8))

    adds = DeltaLog(Storage(table.root)).state(3).adds

    assert adds.column("stats_parsed").to_pylist() == [*([{"numRecords": 5, "minValues": {"id": 1}}] * 3), None]
    assert adds.column("stats").to_pylist() == [None, None, None, '{"numRecords": 8}']


def test_statistics_as_a_struct_are_not_read_where_all_have_them_as_text(tmp_path):
    table = DeltaTable(None, tmp_path)
    table.commit(add("a", rows=1))
    parsed = pa.struct([*ACTIONS["add"], pa.field("stats_parsed", pa.struct({"numRecords": pa.int64()}))])
    table.checkpoint(columns={"add": parsed})

    assert "stats_parsed" not in read(table).replay_state.adds.column_names


def test_row_groups_without_an_add_are_passed_over(tmp_path):
    table = DeltaTable(None, tmp_path)
    for number in range(3):
        table.commit(*(add(f"{number}-{place}") for place in range(700)))
    table.checkpoint()

    assert read(table).replay_state.adds.num_rows == 2100


def filled(kind):
    """Return some value of a type, texts that are no numbers."""
    if pa.types.is_struct(kind):
        return {field.name: filled(field.type) for field in kind}
    return "x" if pa.types.is_string(kind) else 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"add": pa.int64()}, "a column add without paths"),
        ({"add": pa.struct({"size": pa.int64()})}, "a column add without paths"),
        ({"add": pa.struct({"path": pa.string(), "size": pa.string()})}, "Failed to parse"),
        ({"add": pa.struct({"path": pa.string(), "partitionValues": pa.string()})}, "a map of type string"),
        ({"protocol": pa.string()}, "a column protocol of type string"),
    ],
)
def test_a_checkpoint_with_columns_of_other_types_is_refused_by_name(tmp_path, columns, message):
    table = DeltaTable(None, tmp_path)
    content = {name: pa.array([filled(kind)], kind) for name, kind in columns.items()}
    out = io.BytesIO()
    pq.write_table(pa.table(content), out)
    table.write(f"_delta_log/{0:020d}.checkpoint.parquet", out.getvalue())

    with pytest.raises(CorruptTableError, match=r"0\.checkpoint\.parquet is damaged: ") as raised:
        read(table)

    assert message in str(raised.value)


def test_a_sidecar_that_is_missing_or_leaves_the_table_makes_the_checkpoint_unusable(tmp_path):
    table = built(tmp_path)
    paths = table.checkpoint(form="json", sidecars=2)
    table.remove_file(paths[1])

    with pytest.raises(CorruptTableError, match="names a sidecar file that does not exist"):
        read(table)

    for path in ("../../../etc/passwd", "/etc/passwd/../x", None, ""):
        table.checkpoint(form="json", name="zzz", actions=[*table.state(), {"sidecar": {"path": path}}])
        with pytest.raises(CorruptTableError):
            read(table)


@pytest.mark.parametrize("form", [{"form": "classic"}, {"form": "json"}], ids=str)
def test_a_checkpoint_that_was_cut_short_is_refused_by_name(tmp_path, form):
    table = built(tmp_path)
    (path,) = table.checkpoint(**form)
    whole = table.read(path)
    for end in range(1, len(whole), max(1, len(whole) // 40)):
        table.write(path, whole[:end])
        try:
            found = read(table).replay_state
        except CorruptTableError as error:
            assert path in str(error)  # noqa: PT017 - JSON may also be whole up to a line
        else:
            assert form["form"] == "json"
            assert found.adds.num_rows <= 3


@settings(max_examples=60)
@given(
    st.sampled_from([{"form": "classic"}, {"form": "json", "sidecars": 1}]), st.integers(0, 2**32), st.integers(1, 30)
)
def test_mutated_checkpoints_raise_our_errors_only(tmp_path_factory, form, seed, count):
    table = built(tmp_path_factory.mktemp("t"))
    chance = random.Random(seed)
    for path in table.checkpoint(**form):
        content = bytearray(table.read(path))
        for _ in range(count):
            content[chance.randrange(len(content))] = chance.randrange(256)
        table.write(path, bytes(content))
    try:
        read(table)
    except SnapshotExplorerError as error:
        assert str(error)  # noqa: PT017 - a mutation may also do no harm


def test_a_protocol_that_is_none_in_a_checkpoint_is_refused_by_name(tmp_path):
    table = DeltaTable(None, tmp_path)
    broken = {"protocol": {"minReaderVersion": None, "minWriterVersion": 2}}
    (path,) = table.checkpoint(actions=[broken, metadata()])

    with pytest.raises(CorruptTableError, match=r"checkpoint\.parquet is damaged: its protocol has a protocol without"):
        read(table)
    assert path.endswith(".parquet")
    assert protocol()["protocol"]["minReaderVersion"] == 1
