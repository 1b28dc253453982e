"""A stream of changes for Spark as its driver and its executors compute it. Needs PySpark, but no Java."""

import json
from uuid import uuid4

import fsspec
import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import InvalidArgumentError, PositionError, SnapshotNotFoundError
from tests.support.delta.table_builder import DeltaTable, metadata
from tests.support.iceberg.table_builder import IcebergTable
from tests.support.paimon.table_builder import PaimonTable
from tests.support.scenarios import SCENARIOS, played

pytest.importorskip("pyspark.sql.datasource")

from snapshot_explorer.spark import describe, initial_offset, latest_offset, plan_stream, reading, stream_reading
from tests.inner.engines_spark import run

SECRET = "hush-hush"


class Query:
    """A query as Spark runs it: its options, and the offsets of its checkpoint."""

    def __init__(self, url, offset=None, **options):
        self.described, self.schema = describe({"path": url, "changes": "true"} | options, {})
        self.function = stream_reading(self.described, self.schema)
        self.offset = offset or initial_offset(self.described)

    def batch(self, end=None):
        """Return the rows of the next micro-batch."""
        start, self.offset = self.offset, json.loads(json.dumps(end or latest_offset(self.described)))
        tasks = plan_stream(self.described, start, self.offset)
        self.tasks = len(tasks)
        batches = [batch for task in tasks for batch in run(self.function, task)]
        assert all(batch.schema.names == self.schema.names for batch in batches)
        return [row for batch in batches for row in batch.to_pylist()]


@pytest.fixture(params=SCENARIOS, ids=[scenario.format for scenario in SCENARIOS])
def scenario(request, memory_root):
    return played(request.param(*memory_root))


@pytest.fixture
def delta():
    table = DeltaTable(fsspec.filesystem("memory"), f"/{uuid4()}")
    for number in (1, 2, 3):
        table.append([(number, "a")], name=f"data-{number}.parquet")
    return table


def test_the_changes_are_those_of_a_cursor_in_every_format(scenario):
    expected = [row for batch in open_table(scenario.url).changes_since() for row in batch.to_pylist()]

    query = Query(scenario.url)

    assert query.batch() == expected
    assert query.tasks == 2  # the rows at the beginning, and all commits together, which are small
    assert query.batch() == []
    scenario.append([(9, "z")])
    assert [row["id"] for row in query.batch()] == [9]


def test_a_batch_that_is_planned_again_has_the_same_rows(delta):
    query = Query(delta.url)
    start = query.offset
    first = query.batch()
    end = query.offset
    delta.append([(4, "a")], name="data-4.parquet")

    again = Query(delta.url, start)

    assert again.batch(end) == first
    assert [row["id"] for row in again.batch()] == [4]


@pytest.mark.parametrize(
    ("options", "versions"),
    [
        ({}, {1, 2, 3}),  # version 0 has no rows
        ({"startingVersion": "0"}, {1, 2, 3}),
        ({"startingVersion": "2"}, {2, 3}),
        ({"startingVersion": "latest^"}, {2, 3}),
        ({"startingVersion": "latest"}, set()),
        ({"startingTimestamp": "2020-01-01"}, {1, 2, 3}),
        ({"startingTimestamp": "2999-01-01"}, set()),
        ({"startingVersion": "2", "where": "id = 3", "columns": "name"}, {3}),
    ],
)
def test_the_start_is_a_version_or_a_time_both_included(delta, options, versions):
    assert {row["_commit_version"] for row in Query(delta.url, **options).batch()} == versions


def test_the_first_version_begins_with_its_rows(memory_root):
    table = PaimonTable(*memory_root)
    for number in (1, 2, 3):
        table.commit([(number, "a")])
    url = f"memory://{memory_root[1]}"

    assert len(Query(url, startingVersion="1").batch()) == 3
    table.expire(3)
    assert {row["_commit_version"] for row in Query(url, startingVersion="3").batch()} == {3}
    with pytest.raises(SnapshotNotFoundError):
        Query(url, startingVersion="2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": "1", "startingTimestamp": "2020-01-01"}, "exclude each other"),
        ({"version": "1"}, "The option version is for one version. A stream of changes is spark.readStream"),
        ({"key": ","}, "option key must contain column names"),
        ({"changes": "yes"}, "must be true or false"),
        ({"columns": "nope"}, "nope"),
    ],
)
def test_options_that_do_not_fit_are_refused(delta, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Query(delta.url, **options)


def test_options_of_a_stream_are_refused_for_a_version(delta):
    with pytest.raises(InvalidArgumentError, match="The option startingVersion is for changes"):
        describe({"path": delta.url, "startingVersion": "1"}, {})
    described, schema = describe({"path": delta.url, "changes": "false"}, {})
    with pytest.raises(InvalidArgumentError, match="Rows of versions are not a stream"):
        stream_reading(described, schema)
    described, schema = describe({"path": delta.url, "changes": "true"}, {})
    with pytest.raises(InvalidArgumentError, match="Changes are read as a stream, by spark.readStream"):
        reading(described, schema)
    with pytest.raises(InvalidArgumentError, match="Leave out the schema"):
        stream_reading(described, schema[:1])


def test_columns_have_the_names_that_the_newest_version_gives_them(memory_root):
    table = IcebergTable(*memory_root)
    table.commit([(1, "a")])
    first, url = open_table(f"memory://{memory_root[1]}").changes_since("latest").position, f"memory://{memory_root[1]}"
    schema = table.metadata["schemas"][-1]
    fields = [*schema["fields"][:1], schema["fields"][1] | {"name": "title"}]
    fields.append({"id": 9, "name": "extra", "required": False, "type": "long"})
    table.metadata["schemas"].append(schema | {"schema-id": 1, "fields": fields})
    table.metadata["current-schema-id"] = 1
    table.write_metadata()
    table.commit([(2, "b")])

    query = Query(url)

    assert [(row["title"], row["extra"], row["_commit_version"]) for row in query.batch()] == [
        ("a", None, 1),
        ("b", None, 2),
    ]
    assert [row["title"] for row in Query(url, {"position": first}, columns="title").batch()] == ["b"]


def test_a_column_that_is_added_while_a_query_runs_ends_it_until_it_starts_again(delta):
    query = Query(delta.url)
    query.batch()
    position = query.offset
    delta.commit(metadata([*delta.fields, ("extra", "long")]))
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("extra", pa.int64())])
    delta.commit(delta.data("data-9.parquet", [{"id": 9, "name": "z", "extra": 7}], schema=schema))

    with pytest.raises(
        InvalidArgumentError, match="column 'extra' was added or .*Start the query again, with the same"
    ):
        query.batch()

    assert [(row["id"], row["extra"]) for row in Query(delta.url, position).batch()] == [(9, 7)]


def test_an_end_that_is_gone_is_named(delta):
    query = Query(delta.url)
    end = latest_offset(query.described)
    delta.commit(delta.data("other.parquet", [(7, "b")]), version=3)

    with pytest.raises(PositionError, match="Version 3 is not the one"):
        query.batch(end)


def test_an_offset_has_no_option(delta):
    described, _ = describe({"path": delta.url, "changes": "true"}, {"key": SECRET})

    assert SECRET not in json.dumps(initial_offset(described)) + json.dumps(latest_offset(described))
