"""What changed between Delta versions: change data where it was written, otherwise what files and vectors tell."""

import io
import uuid
from collections import Counter

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer import open_table
from snapshot_explorer.errors import (
    CorruptTableError,
    InvalidArgumentError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.history import history_of
from tests.support.delta.table_builder import DeltaTable, add, cdc, inline_vector, metadata, protocol, remove

RECORDED = {"delta.enableChangeDataFeed": "true"}
FIELDS = (("id", "long"), ("name", "string"))


@pytest.fixture
def table(memory_root):
    return DeltaTable(*memory_root, configuration=RECORDED)


def change_file(table, name, rows, schema=None, **options):
    """Write (change type, id, name) rows as a change data file, and return its action."""
    kinds = schema or pa.schema([("id", pa.int64()), ("name", pa.string()), ("_change_type", pa.string())])
    dicts = [dict(zip(kinds.names, (*values, kind), strict=True)) for kind, *values in rows]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(dicts, kinds), out)
    table.write(name, out.getvalue())
    return cdc(name, size=len(out.getvalue()), **options)


def changes(table, a="earliest^", b="latest", **options):
    """Return changes as sorted tuples: kind, then values."""
    found = open_table(table.url).row_changes(a, b, **options)
    return sorted(zip(*found.to_pydict().values(), strict=True), key=repr)


def kinds(table, a="earliest^", b="latest", **options):
    return [(row[0], row[1]) for row in changes(table, a, b, **options)]


def test_added_files_are_inserts_and_removed_ones_deletes(table):
    table.append([(1, "a"), (2, "b")], name="a.parquet")
    table.commit(remove("a.parquet"))

    assert changes(table, 0, 1) == [("+I", 1, "a"), ("+I", 2, "b")]
    assert changes(table, 1, 2) == [("-D", 1, "a"), ("-D", 2, "b")]
    assert changes(table, 2, 2) == []


def test_the_changes_of_version_0_come_after_what_is_before_it(memory_root):
    table = DeltaTable(*memory_root, first=None)
    table.commit(protocol(), metadata(), table.data("a.parquet", [(1, "a")]))
    table.append([(2, "b")])

    assert kinds(table, "earliest^", 0) == [("+I", 1)]
    assert kinds(table, "earliest", "latest") == [("+I", 2)]


def test_change_data_counts_where_it_was_written(table):
    table.append([(1, "a"), (2, "b")], name="a.parquet")
    rows = [("update_preimage", 1, "a"), ("update_postimage", 1, "A"), ("delete", 2, "b"), ("insert", 3, "c")]
    table.commit(
        remove("a.parquet"),
        table.data("b.parquet", [(1, "A"), (3, "c")]),
        change_file(table, "_change_data/c.parquet", rows),
        operation="MERGE",
    )

    assert changes(table, 1, 2) == [("+I", 3, "c"), ("+U", 1, "A"), ("-D", 2, "b"), ("-U", 1, "a")]
    assert changes(table, 1, 2, mode="changelog") == changes(table, 1, 2)
    assert changes(table, 1, 2, mode="delta") == [
        ("+I", 1, "A"),
        ("+I", 3, "c"),
        ("-D", 1, "a"),
        ("-D", 2, "b"),
    ]


def test_what_only_rearranges_rows_is_not_a_change(table):
    table.append([(1, "a")], name="a.parquet")
    table.commit(
        remove("a.parquet", data_change=False),
        table.data("b.parquet", [(1, "a")], data_change=False),
        operation="OPTIMIZE",
    )

    assert changes(table, 1, 2) == []


def test_an_action_that_does_not_say_whether_it_changes_data_does(table):
    action = table.data("a.parquet", [(1, "a")])
    del action["add"]["dataChange"]
    table.commit(action)

    assert kinds(table, 0, 1) == [("+I", 1)]


@pytest.mark.parametrize(
    ("metrics", "is_reported"),
    [
        ({"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}, False),
        ({"numTargetRowsInserted": 0, "numTargetRowsUpdated": 0, "numTargetRowsDeleted": 0}, False),
        ({"numTargetRowsInserted": "0", "numTargetRowsUpdated": "1", "numTargetRowsDeleted": "0"}, True),
        ({"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0"}, True),
        (None, True),
    ],
)
def test_a_merge_that_found_nothing_to_do_is_not_a_change(table, metrics, is_reported):
    table.append([(1, "a")], name="a.parquet")
    table.commit(
        remove("a.parquet"),
        table.data("b.parquet", [(1, "a")]),
        operation="MERGE",
        info={} if metrics is None else {"operationMetrics": metrics},
    )

    assert changes(table, 1, 2) == ([("+I", 1, "a"), ("-D", 1, "a")] if is_reported else [])


def test_a_deletion_vector_that_grows_deletes_and_one_that_shrinks_inserts(table):
    rows = [(number, str(number)) for number in range(6)]
    table.commit(table.data("a.parquet", rows))
    plain = {"path": "a.parquet", "size": 500, "rows": 6}
    first, second, third = table.vector([0, 3]), inline_vector([0, 3, 5]), table.vector([3])
    table.commit(remove("a.parquet"), add(**plain, vector=first), operation="DELETE")
    table.commit(remove("a.parquet", vector=first), add(**plain, vector=second), operation="DELETE")
    table.commit(add(**plain, vector=third), remove("a.parquet", vector=second), operation="RESTORE")
    table.commit(add(**plain), remove("a.parquet", vector=third), operation="RESTORE")
    table.commit(remove("a.parquet"), add(**plain, vector=first), operation="DELETE")
    table.commit(remove("a.parquet", vector=first), operation="DELETE")

    assert kinds(table, 1, 2) == [("-D", 0), ("-D", 3)]
    assert kinds(table, 2, 3) == [("-D", 5)]
    assert kinds(table, 3, 4) == [("+I", 0), ("+I", 5)]
    assert kinds(table, 4, 5) == [("+I", 3)]
    assert kinds(table, 6, 7) == [("-D", 1), ("-D", 2), ("-D", 4), ("-D", 5)]


def test_a_vector_that_takes_rows_away_and_gives_others_back_does_both(table):
    table.commit(table.data("a.parquet", [(number, "x") for number in range(4)]))
    old, new = inline_vector([0, 1]), inline_vector([1, 2])
    table.commit(remove("a.parquet"), add("a.parquet", rows=4, vector=old))
    table.commit(remove("a.parquet", vector=old), add("a.parquet", rows=4, vector=new))

    assert kinds(table, 2, 3) == [("+I", 0), ("-D", 2)]


def test_partition_values_come_from_the_log(memory_root):
    table = DeltaTable(*memory_root, partition_by=["name"])
    table.append([(1,)], name="name=x/a.parquet", partition={"name": "x"})
    table.append([(2,)], name="name=__HIVE_DEFAULT_PARTITION__/b.parquet", partition={"name": None})
    table.commit(remove("name=x/a.parquet", size=table.sizes["name=x/a.parquet"], partition={"name": "x"}))
    table.commit(remove("name=__HIVE_DEFAULT_PARTITION__/b.parquet"))

    assert changes(table, 0, 3) == [("+I", 1, "x"), ("+I", 2, None), ("-D", 1, "x")]
    # The last remove is an old writer's: only the add tells the partition.
    assert changes(table, 3, 4) == [("-D", 2, None)]
    table.append([(5,)], name="name=y/c.parquet", partition={"name": "y"})
    table.commit(remove("name=y/c.parquet", partitionValues={}))
    assert changes(table, 5, 6) == [("-D", 5, "y")]


def test_a_remove_without_partition_of_a_file_that_nobody_added_is_refused(memory_root):
    table = DeltaTable(*memory_root, partition_by=["name"])
    table.commit(remove("name=x/a.parquet"))

    with pytest.raises(CorruptTableError, match="removes name=x/a.parquet without its partition values"):
        changes(table, 0, 1)


def test_change_data_files_have_partitions_too(memory_root):
    table = DeltaTable(*memory_root, partition_by=["name"])
    schema = pa.schema([("id", pa.int64()), ("_change_type", pa.string())])
    table.commit(
        change_file(table, "_change_data/name=x/c.parquet", [("delete", 7)], schema, partition={"name": "x"}),
    )

    assert changes(table, 0, 1) == [("-D", 7, "x")]


def test_the_change_columns_of_delta_are_returned_on_request(table):
    table.append([(1, "a")])
    table.commit(change_file(table, "c.parquet", [("update_preimage", 1, "a"), ("update_postimage", 1, "b")]))
    columns = ["_commit_version", "_change_type", "name", "_commit_timestamp"]
    found = open_table(table.url).row_changes(0, 2, columns)

    assert found.schema == pa.schema(
        [
            pa.field("rowkind", pa.string(), nullable=False),
            pa.field("_commit_version", pa.int64(), nullable=False),
            pa.field("_change_type", pa.string(), nullable=False),
            ("name", pa.string()),
            pa.field("_commit_timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        ]
    )
    assert found.to_pydict() == {
        "rowkind": ["+I", "-U", "+U"],
        "_commit_version": [1, 2, 2],
        "_change_type": ["insert", "update_preimage", "update_postimage"],
        "name": ["a", "a", "b"],
        "_commit_timestamp": [table.committed_at(version) for version in (1, 2, 2)],
    }
    assert open_table(table.url).row_changes(0, 2).column_names == ["rowkind", "id", "name"]


def test_changes_of_a_commit_of_unknown_time_have_no_time(table):
    table.commit(table.data("a.parquet", [(1, "a")]), info=False)

    assert changes(table, 0, 1) == [("+I", 1, "a")]
    with pytest.raises(
        CorruptTableError, match="when version 1 was committed is unknown: .* Leave _commit_timestamp out"
    ):
        changes(table, 0, 1, columns=["_commit_timestamp"])


def test_a_condition_may_read_what_is_not_requested(table):
    table.append([(1, "a")])
    table.append([(2, "b")])
    opened = open_table(table.url)

    assert opened.row_changes(0, 2, ["id"], "_commit_version = 2 and rowkind = '+I'").to_pydict() == {
        "rowkind": ["+I"],
        "id": [2],
    }
    assert opened.row_changes(0, 2, []).to_pydict() == {"rowkind": ["+I", "+I"]}
    with pytest.raises(InvalidArgumentError, match="_commit_versions"):
        opened.row_changes(0, 2, ["_commit_versions"])


def test_a_change_type_in_a_data_file_is_passed_over(table):
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("_change_type", pa.string())])
    table.append([{"id": 1, "name": "a", "_change_type": None}], schema=schema)

    assert changes(table, 0, 1) == [("+I", 1, "a")]


def test_a_snapshots_changelog_is_that_of_its_version_under_its_schema(table):
    table.append([(1, "a")])
    table.commit(metadata((*FIELDS, ("more", "long")), configuration=RECORDED))
    opened = open_table(table.url)

    assert opened.at(1).changelog().to_pydict() == {"rowkind": ["+I"], "id": [1], "name": ["a"]}
    assert opened.at(2).changelog().column_names == ["rowkind", "id", "name", "more"]
    assert opened.at(1).changelog(["_commit_version"], limit=1).to_pydict() == {
        "rowkind": ["+I"],
        "_commit_version": [1],
    }
    assert opened.row_changes(0, 1).column_names == ["rowkind", "id", "name", "more"]


def test_rows_of_before_a_column_was_added_lack_it(table):
    table.append([(1, "a")])
    table.commit(metadata((*FIELDS, ("more", "long")), configuration=RECORDED))

    assert changes(table, 0, 2) == [("+I", 1, "a", None)]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ((("id", "long"),), "the column name was dropped or renamed"),
        ((("id", "long"), ("title", "string")), "the column name was dropped or renamed"),
        ((("id", "string"), ("name", "string")), "the type of the column id is another"),
        ((("id", "integer"), ("name", "string")), "the type of the column id is another"),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "changelog", "delta"])
def test_a_range_without_a_common_schema_is_refused(table, fields, what, mode):
    table.append([(1, "a")])
    table.commit(metadata(fields, configuration=RECORDED))

    message = rf"from version 1 on cannot be read with the schema of version 2 .*INCOMPATIBLE_SCHEMA_CHANGE.*{what}"
    with pytest.raises(UnsupportedFeatureError, match=message):
        changes(table, 0, 1, mode=mode)
    assert open_table(table.url).at(1).changelog().num_rows == 1


def mapped(*fields, mode="name"):
    """The metadata of a table with mapped columns: (name, type, id)."""
    described = [
        (name, kind, {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"})
        for name, kind, number in fields
    ]
    return metadata(described, configuration=RECORDED | {"delta.columnMapping.mode": mode})


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_have_the_names_of_the_last_version(memory_root, mode):
    table = DeltaTable(
        *memory_root, first=(protocol(2, 5), mapped(("id", "long", 1), ("name", "string", 2), mode=mode))
    )

    def stored(number, kind, name):
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    schema = pa.schema([stored(1, pa.int64(), "col-1"), stored(2, pa.string(), "col-2")])
    data = pa.table([pa.array([5]), pa.array(["a"])], schema=schema)
    changed = data.append_column(pa.field("_change_type", pa.string()), pa.array(["update_postimage"]))
    out = io.BytesIO()
    pq.write_table(changed, out)
    table.write("c.parquet", out.getvalue())
    table.commit(table.data("a.parquet", data.to_pylist(), schema=schema))
    table.commit(cdc("c.parquet"))
    table.commit(mapped(("id", "long", 1), ("title", "string", 2), mode=mode))

    found = open_table(table.url).row_changes(0, 2)
    assert found.to_pydict() == {"rowkind": ["+I", "+U"], "id": [5, 5], "name": ["a", "a"]}
    with pytest.raises(UnsupportedFeatureError, match="the column name was renamed to title"):
        changes(table, 0, 3)


def test_files_of_another_partitioning_are_refused(memory_root):
    table = DeltaTable(*memory_root)
    table.append([(1, "a")], name="a.parquet")
    table.commit(
        metadata(partition_by=["name"]),
        remove("a.parquet", size=5),
        add("name=x/b.parquet", partition={"name": "x"}),
    )

    with pytest.raises(UnsupportedFeatureError, match="the partition columns are others"):
        changes(table, 0, 2)
    with pytest.raises(UnsupportedFeatureError, match=r"file a.parquet, .* with other partition columns \(none\)"):
        changes(table, 1, 2)


def test_the_mode_changelog_needs_changes_to_be_recorded_all_along(memory_root):
    table = DeltaTable(*memory_root)
    table.append([(1, "a")])
    table.commit(metadata(configuration=RECORDED))
    table.append([(2, "b")])
    table.commit(metadata())

    assert changes(table, 1, 3, mode="changelog") == [("+I", 2, "b")]
    for first, last, version in ((0, 3, 1), (1, 4, 4)):
        with pytest.raises(
            InvalidArgumentError, match=rf"Version {version} did not record .*DELTA_MISSING_CHANGE_DATA"
        ):
            changes(table, first, last, mode="changelog")
    assert kinds(table, 0, 4) == [("+I", 1), ("+I", 2)]


def test_the_old_name_of_the_property_counts(memory_root):
    table = DeltaTable(*memory_root, configuration={"delta.enableChangeDataCapture": "TRUE"})
    table.append([(1, "a")])

    assert kinds(table, 0, 1, mode="changelog") == [("+I", 1)]


def test_the_mode_diff_is_refused_with_what_there_is_instead(table):
    table.append([(1, "a")])

    with pytest.raises(UnsupportedFeatureError, match="primary key, and Delta tables have none. Use mode='auto'"):
        changes(table, 0, 1, mode="diff")


def test_a_version_in_the_range_that_is_not_there_is_refused(table):
    for number in range(4):
        table.append([(number, "x")])
    table.checkpoint(3)
    table.clean(2)

    assert kinds(table, 2, 4) == [("+I", 2), ("+I", 3)]
    assert kinds(table, 3, 4) == [("+I", 3)]
    with pytest.raises(SnapshotNotFoundError):
        changes(table, 0, 4)
    with pytest.raises(InvalidArgumentError, match="Version 3 comes before 4"):
        changes(table, 4, 3)


def test_a_missing_file_is_named(table):
    table.append([(1, "a")], name="a.parquet")
    table.commit(change_file(table, "_change_data/c.parquet", [("insert", 1, "a")]))
    table.remove_file("a.parquet")
    table.remove_file("_change_data/c.parquet")

    with pytest.raises(CorruptTableError, match="a.parquet does not exist"):
        changes(table, 0, 1)
    with pytest.raises(SnapshotNotFoundError, match="_change_data/c.parquet does not exist"):
        changes(table, 1, 2)


@pytest.mark.parametrize("said", ["upsert", None, ""])
def test_an_unknown_change_is_refused(table, said):
    table.commit(change_file(table, "c.parquet", [("insert", 1, "a"), (said, 2, "b")]))

    with pytest.raises(
        CorruptTableError, match=r"c.parquet, or one read with it, has .* in _change_type; known values are"
    ):
        changes(table, 0, 1)


def test_a_change_data_file_that_does_not_say_what_became_of_rows_is_refused(table):
    table.append([(1, "a")], name="a.parquet")
    table.commit(cdc("a.parquet"))

    with pytest.raises(CorruptTableError, match="has None in _change_type"):
        changes(table, 1, 2)


def test_a_truncated_file_is_named(table):
    table.append([(1, "a")], name="a.parquet")
    table.write("a.parquet", table.read("a.parquet")[:-9])

    with pytest.raises(CorruptTableError, match="a.parquet"):
        changes(table, 0, 1)


@pytest.mark.parametrize("name", ["rowkind", "_change_type"])
def test_a_column_of_the_tables_own_called_like_ours_is_refused(memory_root, name):
    table = DeltaTable(*memory_root, fields=(("id", "long"), (name, "string")))
    table.append([(1, "a")])

    with pytest.raises(UnsupportedFeatureError, match=f"its own column '{name}'"):
        changes(table, 0, 1)
    with pytest.raises(UnsupportedFeatureError, match=f"its own column '{name}'"):
        open_table(table.url).at(1).changelog()


def test_a_feature_that_is_not_read_is_refused_before_any_row(table):
    table.append([(1, "a")])
    table.commit(protocol(features=["somethingNew"]))

    with pytest.raises(UnsupportedFeatureError, match="somethingNew"):
        changes(table, 0, 2)


def test_commits_are_read_once_and_no_file_before_it_is_needed(counted, table):
    for number in range(10):
        table.append([(number, "x")], name=f"{number}.parquet")
    opened = open_table(f"counted://{table.root}")
    counted.requests.clear()

    splits = history_of(opened).table_format.row_changes(3, 10, "auto").splits(None)

    asked = Counter(one.path.rsplit("/", 1)[1] for one in counted.requests if one.path.endswith(".json"))
    assert not [one for one in counted.requests if one.path.endswith(".parquet")]
    assert max(asked[f"{version:020}.json"] for version in range(4, 11)) <= 3
    assert len(splits) == 7
    assert [split.rows for split in splits] == [1] * 7


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "delete", "mark", "unmark", "optimize"]), st.integers(0, 50)),
        min_size=1,
        max_size=8,
    )
)
def test_what_changed_is_the_difference_of_the_states(steps):
    """Whatever commits do, the rows of a version are those of an earlier one and what changed since."""
    table = DeltaTable(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}")
    live = {}
    for number, (step, choice) in enumerate(steps):
        name = f"{number}.parquet"
        if step == "append" or not live:
            rows = [(10 * number + place, "x") for place in range(4)]
            table.commit(table.data(name, rows))
            live[name] = (rows, frozenset())
            continue
        target = sorted(live)[choice % len(live)]
        rows, gone = live.pop(target)
        removal = remove(target, vector=inline_vector(gone) if gone else None)
        if step == "delete":
            table.commit(removal)
        elif step == "optimize":
            kept = [row for place, row in enumerate(rows) if place not in gone]
            action = table.data(name, kept, data_change=False)
            removal["remove"]["dataChange"] = False
            table.commit(removal, action)
            live[name] = (kept, frozenset())
        else:
            place = frozenset([choice % len(rows)]) if rows else frozenset()
            now = gone | place if step == "mark" else gone - place
            if now == gone:
                live[target] = (rows, gone)
                table.commit()
                continue
            table.commit(removal, add(target, rows=len(rows), vector=inline_vector(now) if now else None))
            live[target] = (rows, now)
    opened = open_table(table.url)

    before = Counter()
    for version in opened.versions():
        for kind, *row in opened.at(version).changelog().select(["rowkind", "id", "name"]).to_pandas().to_numpy():
            before[tuple(row)] += 1 if kind == "+I" else -1
        assert +before == Counter(map(tuple, opened.at(version).to_pandas().to_numpy()))
        assert not -before
