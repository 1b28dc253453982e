"""Actions whose values are of other types than they must be: read as unknown, or refused by name."""

import copy
import json
import os

import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, SnapshotExplorerError
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import (
    DeltaTable,
    add,
    commit_name,
    domain,
    inline_vector,
    lines,
    metadata,
    protocol,
    remove,
    txn,
)

DEEP = 1_000
ODD = (
    "true",
    str(2**64),
    "1e999",
    '"x"',
    "[1]",
    '{"a": null}',
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
)
"""Values of every type, as JSON."""
ACTIONS = (
    protocol(features=["deletionVectors"]),
    metadata(configuration={"delta.checkpointInterval": "5"}, name="n", description="d"),
    txn("app", 1, 2),
    domain("d"),
    add("a.parquet", rows=2, stats={"numRecords": 2, "nullCount": {"id": 0}}, tags={"k": "v"}, baseRowId=0),
    remove("b.parquet", size=5),
    add("c.parquet", rows=2, vector=inline_vector([1])),
)
INFO = {
    "inCommitTimestamp": 5,
    **dict.fromkeys(("userId", "userName", "operation", "engineInfo", "txnId", "isolationLevel"), "x"),
    "timestamp": 5,
    "readVersion": 0,
    "isBlindAppend": True,
    "operationMetrics": {"numFiles": "1"},
    "operationParameters": {"mode": "Append"},
    "job": {"jobId": "1"},
    "notebook": {"notebookId": "2"},
}
CALLS = (
    repr,
    lambda table: table._repr_mimebundle_(),
    lambda table: table.history()._repr_mimebundle_(),
    lambda table: table.inspect("history")._repr_mimebundle_(),
    lambda table: repr(table.at(1).commit),
    lambda table: table.current.files(statistics=True)._repr_mimebundle_(),
    lambda table: table.at("latest").schema._repr_mimebundle_(),
    lambda table: table.at("latest").file_changes(since="earliest"),
    lambda table: table.lifetimes(),
    lambda table: table.compare(0, 1)._repr_mimebundle_(),
    lambda table: table.inspect("detail"),
    lambda table: table.retention(),
    lambda table: history_of(table).committed_at([0, 1]),
)


def places(value, at=()):
    """Yield where the values of JSON are, each as the keys that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from places(inner, (*at, key))


def with_value(value, at, odd):
    """Return a line of a commit with some JSON in place of one of its values."""
    changed = copy.deepcopy(value)
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = "@"
    return json.dumps(changed).replace('"@"', odd).encode() + b"\n"


def refused_or_read(root):
    """Run the calls; an error of another package passes through."""
    try:
        table = open_table(root)
    except SnapshotExplorerError:
        return
    for call in CALLS:
        try:
            call(table)
        except SnapshotExplorerError:
            continue


CASES = [(number, at) for number, action in enumerate([{"commitInfo": INFO}, *ACTIONS]) for at in places(action)]
EVERY = os.environ.get("SNAPSHOT_EXPLORER_LONG") == "1"
"""Whether each place gets each value, in place of one in turn."""


@pytest.mark.parametrize(("number", "at"), CASES, ids=[".".join(map(str, at)) for _, at in CASES])
def test_a_value_of_another_type_is_unknown_or_refused(tmp_path, number, at):
    actions = [{"commitInfo": INFO}, *ACTIONS]
    table = DeltaTable(None, tmp_path, first=None)
    table.commit(protocol(), metadata())
    turn = CASES.index((number, at))

    for odd in ODD if EVERY else [ODD[turn % len(ODD)]]:
        changed = with_value(actions[number], at, odd)
        content = lines(*actions[:number]) + changed + lines(*actions[number + 1 :])
        table.write(commit_name(1), content)
        refused_or_read(tmp_path)


def test_values_of_a_commit_that_are_too_deep_are_cut(tmp_path):
    table = DeltaTable(None, tmp_path)
    content = with_value({"commitInfo": {"operation": "WRITE", "timestamp": 5}}, ("commitInfo", "timestamp"), ODD[-2])
    table.write(commit_name(1), content)

    opened = open_table(tmp_path)

    assert opened.history()["operation"].to_pylist() == ["WRITE", "CREATE TABLE"]
    assert json.loads(opened.at(1).commit.details)["operation"] == "WRITE"


@pytest.mark.parametrize("number", [2**63, "1e999", [], 1.5])
@pytest.mark.parametrize("mode", ["none", "id"])
def test_an_id_of_a_column_that_is_none_is_refused(tmp_path, number, mode):
    column = {"name": "id", "type": "long", "nullable": True, "metadata": {"delta.columnMapping.id": number}}
    table_metadata = metadata(
        json.dumps({"type": "struct", "fields": [column]}), configuration={"delta.columnMapping.mode": mode}
    )
    DeltaTable(None, tmp_path, first=[protocol(2, 5), table_metadata])

    with pytest.raises(CorruptTableError, match="schema in the table's metaData action is not readable"):
        open_table(tmp_path).at("latest").schema._repr_mimebundle_()
