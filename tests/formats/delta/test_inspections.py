"""The tables of metadata that Delta users know."""

import json
import uuid
from datetime import UTC, datetime

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.history import history_of
from tests.inner.delta import DETAIL, HISTORY, protocol_of, table_features
from tests.support.delta.table_builder import (
    BASE_MILLIS,
    DeltaTable,
    add,
    cdc,
    domain,
    lines,
    metadata,
    protocol,
    remove,
    txn,
)

NESTED = {
    "type": "struct",
    "fields": [
        {"name": "city", "type": "string", "nullable": True, "metadata": {"delta.columnMapping.physicalName": "c-2"}}
    ],
}


@pytest.fixture
def table(memory_root):
    return DeltaTable(*memory_root, configuration={"b": "2", "a": "1"})


def rows(table, name, ref=None):
    return open_table(table.url).inspect(name, ref).to_dict()


def test_the_names_are_offered_with_what_they_hold(table):
    offered = {one.name: one.at_version for one in history_of(open_table(table.url)).table_format.inspections}

    assert offered == {"history": False, "detail": True, "properties": True, "transactions": True, "domains": True}


def test_history_has_the_columns_of_describe_history(table):
    text, texts = pa.string(), pa.map_(pa.string(), pa.string())
    job = pa.struct([(name, text) for name in ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")])

    assert open_table(table.url).inspect("history").schema == pa.schema(
        [
            ("version", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("userId", text),
            ("userName", text),
            ("operation", text),
            ("operationParameters", texts),
            ("job", job),
            ("notebook", pa.struct([("notebookId", text)])),
            ("clusterId", text),
            ("readVersion", pa.int64()),
            ("isolationLevel", text),
            ("isBlindAppend", pa.bool_()),
            ("operationMetrics", texts),
            ("userMetadata", text),
            ("engineInfo", text),
        ]
    )


def test_history_is_newest_first_and_complete(table):
    table.commit(add("a"), info={"readVersion": 0, "isBlindAppend": True, "engineInfo": "spark", "userId": "7"})
    newest, oldest = rows(table, "history")

    assert [newest["version"], oldest["version"]] == [1, 0]
    assert newest["timestamp"] == table.committed_at(1)
    assert [newest[name] for name in ("operation", "readVersion", "isBlindAppend", "engineInfo", "userId")] == [
        "WRITE",
        0,
        True,
        "spark",
        "7",
    ]
    assert newest["job"] is None


def test_what_is_not_text_is_shown_as_json_and_null_is_null(table):
    table.commit(
        info={
            "operationParameters": {"mode": "Append", "n": 5, "flag": True, "none": None, "deep": {"x": [1]}},
            "operationMetrics": {"num_added_files": 3},
            "job": {"jobId": 12, "other": 1},
            "notebook": {"notebookId": "n"},
            "isBlindAppend": "yes",
            "readVersion": "none",
            "userMetadata": {"k": 1},
        }
    )
    row = rows(table, "history")[0]

    assert row["operationParameters"] == {
        "mode": "Append",
        "n": "5",
        "flag": "true",
        "none": None,
        "deep": '{"x":[1]}',
    }
    assert row["operationMetrics"] == {"num_added_files": "3"}
    assert row["job"]["jobId"] == "12"
    assert row["job"]["runId"] is None
    assert row["notebook"] == {"notebookId": "n"}
    assert (row["isBlindAppend"], row["readVersion"], row["userMetadata"]) == (None, None, '{"k":1}')


def test_a_commit_that_says_nothing_is_a_row_of_nulls(table):
    table.commit(add("a"), info=False)
    row = rows(table, "history")[0]

    assert row == dict.fromkeys(HISTORY.names) | {"version": 1}


def test_history_holds_versions_that_can_not_be_loaded(table):
    for number in range(5):
        table.commit(add(str(number)))
    table.checkpoint(3)
    table.clean(2)

    assert [row["version"] for row in rows(table, "history")] == [5, 4, 3, 2]


def test_history_has_what_was_committed_since_the_table_was_opened(table):
    opened = open_table(table.url)
    table.commit(add("a"))

    assert opened.inspect("history")["version"].to_pylist() == [1, 0]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
SAID = st.sampled_from(
    (
        *("timestamp", "operation", "operationParameters", "operationMetrics", "userId", "userName", "job", "notebook"),
        *("readVersion", "isBlindAppend", "txnId", "userMetadata", "inCommitTimestamp", "odd"),
    )
)


@settings(max_examples=60)
@given(st.dictionaries(SAID, JSON, max_size=6), st.sampled_from(["WRITE", "MERGE", "STREAMING UPDATE"]), JSON)
def test_the_history_is_read_whatever_a_writer_records_of_its_commit(info, operation, mode):
    table = DeltaTable(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}")
    said = {"operationParameters": {"mode": mode, "outputMode": mode}, "operation": operation} | info
    table.write("_delta_log/00000000000000000001.json", lines({"commitInfo": said}))
    opened = open_table(table.url)

    opened.inspect("history").to_arrow().validate(full=True)
    history = opened.history().to_arrow()
    history.validate(full=True)
    assert json.loads(history["details"][0].as_py()).keys() == said.keys()
    assert opened.row_changes(0, 1).num_rows == 0


def test_detail_has_the_columns_of_describe_detail(memory_root):
    table = DeltaTable(
        *memory_root, first=(protocol(), metadata(partition_by=["name"], name="orders", description="All."))
    )
    table.commit(add("a", size=10), add("b", size=5), cdc("_change_data/c", size=99))
    table.commit(remove("a"))
    frame = open_table(table.url).inspect("detail", 1)

    assert frame.schema == DETAIL
    assert frame.to_dict() == [
        {
            "format": "delta",
            "id": "table-0",
            "name": "orders",
            "description": "All.",
            "location": open_table(table.url).path,
            "createdAt": datetime.fromtimestamp(BASE_MILLIS / 1000, UTC),
            "lastModified": table.committed_at(1),
            "partitionColumns": ["name"],
            "clusteringColumns": [],
            "numFiles": 2,
            "sizeInBytes": 15,
            "properties": {},
            "minReaderVersion": 1,
            "minWriterVersion": 2,
            "tableFeatures": ["appendOnly", "invariants"],
        }
    ]
    assert open_table(table.url).inspect("detail").to_dict()[0]["numFiles"] == 1


def test_detail_of_a_version_that_is_not_there_is_refused(table):
    with pytest.raises(SnapshotNotFoundError, match="Version 9"):
        rows(table, "detail", 9)


@pytest.mark.parametrize(
    ("reader", "writer", "features"),
    [
        (1, 1, []),
        (1, 2, ["appendOnly", "invariants"]),
        (1, 4, ["appendOnly", "changeDataFeed", "checkConstraints", "generatedColumns", "invariants"]),
        (
            2,
            6,
            [
                "appendOnly",
                "changeDataFeed",
                "checkConstraints",
                "columnMapping",
                "generatedColumns",
                "identityColumns",
                "invariants",
            ],
        ),
    ],
)
def test_features_come_with_old_versions_of_the_protocol(reader, writer, features):
    assert table_features(protocol_of(protocol(reader, writer)["protocol"])) == features


def test_named_features_are_all_that_newer_protocols_have():
    named = protocol(features=["deletionVectors"], writer_features=["appendOnly"])

    assert table_features(protocol_of(named["protocol"])) == ["appendOnly", "deletionVectors"]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('{"clusteringColumns":[["c-1"],["address","c-2"]]}', ["day", "address.city"]),
        ('{"clusteringColumns":["c-1"]}', ["day"]),
        ('{"clusteringColumns":[{"physicalName":["c-1"]}]}', ["day"]),
        ('{"clusteringColumns":[["gone"]]}', ["gone"]),
        ('{"clusteringColumns":[]}', []),
        ('{"clusteringColumns":7}', []),
        ('{"clusteringColumns":[7,[8]]}', []),
        ("no json", []),
    ],
)
def test_clustering_columns_have_the_names_that_users_see(memory_root, stored, shown):
    fields = (("day", "date", {"delta.columnMapping.physicalName": "c-1"}), ("address", NESTED))
    table = DeltaTable(*memory_root, fields=fields)
    table.commit(domain("delta.clustering", stored))

    assert rows(table, "detail")[0]["clusteringColumns"] == shown


def test_properties_are_those_of_the_version(table):
    table.commit(metadata(configuration={"c": "3"}))

    assert rows(table, "properties", 0) == [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]
    assert rows(table, "properties") == [{"key": "c", "value": "3"}]


def test_transactions_and_domains_are_those_of_the_version(table):
    table.commit(txn("b", 4, BASE_MILLIS), txn("a", 9), domain("x", "{}"), domain("gone"))
    table.commit(txn("b", 3), domain("gone", removed=True))

    assert rows(table, "transactions", 1) == [
        {"appId": "a", "version": 9, "lastUpdated": None},
        {"appId": "b", "version": 4, "lastUpdated": datetime.fromtimestamp(BASE_MILLIS / 1000, UTC)},
    ]
    assert [row["version"] for row in rows(table, "transactions")] == [9, 3]
    assert rows(table, "domains") == [{"domain": "x", "configuration": "{}"}]


def test_a_name_that_is_not_offered_is_refused_with_those_that_are(table):
    with pytest.raises(InvalidArgumentError, match="called 'details'. Did you mean detail. Metadata tables: history, "):
        rows(table, "details")


def test_detail_tells_the_time_of_the_file_also_where_commits_carry_theirs(tmp_path):
    table = DeltaTable(None, tmp_path, first=None)
    carrying = metadata(configuration={"delta.enableInCommitTimestamps": "true"})
    table.commit(protocol(), carrying, info={"inCommitTimestamp": BASE_MILLIS - 5_000})
    table.commit(millis=BASE_MILLIS - 9_000, info={"inCommitTimestamp": BASE_MILLIS})

    assert rows(table, "detail")[0]["lastModified"] == datetime.fromtimestamp(BASE_MILLIS / 1000 - 9, UTC)
    assert rows(table, "history")[0]["timestamp"] == datetime.fromtimestamp(BASE_MILLIS / 1000, UTC)
