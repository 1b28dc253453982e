"""Commits into columns: what is read, what is ignored, what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, SnapshotExplorerError
from tests.inner.delta import ADDS, CDC, REMOVES, parse_commits
from tests.inner.delta import actions as parsing
from tests.support.delta.table_builder import add, cdc, domain, inline_vector, lines, metadata, protocol, remove, txn

NAME = "_delta_log/00000000000000000007.json"


def parsed(*actions):
    return parse_commits([(7, NAME, lines(*actions))])


def test_each_kind_of_action_has_its_table():
    vector = inline_vector([1, 2])
    found = parsed(
        add(
            "a%20b",
            partition={"day": "1", "none": None},
            size=5,
            rows=3,
            vector=vector,
            baseRowId=10,
            defaultRowCommitVersion=2,
            clusteringProvider="liquid",
            tags={"x": "y"},
        ),
        remove("c", size=4, partition={"day": "2"}, millis=99),
        remove("old"),
        cdc("_change_data/d", partition={"day": "3"}),
    )

    assert found.adds.schema == ADDS
    assert found.removes.schema == REMOVES
    assert found.cdc.schema == CDC
    assert found.adds.to_pylist() == [
        {
            "version": 7,
            "path": "a b",
            "partition_values": [("day", "1"), ("none", None)],
            "size_bytes": 5,
            "data_change": True,
            "deletion_vector": {
                "storage_type": "i",
                "path_or_inline": vector["pathOrInlineDv"],
                "offset": None,
                "size_bytes": vector["sizeInBytes"],
                "cardinality": 2,
            },
            "stats": '{"numRecords": 3}',
            "base_row_id": 10,
            "default_row_commit_version": 2,
            "tags": [("x", "y")],
            "modified_at": 1_767_225_600_000,
            "clustering_provider": "liquid",
        }
    ]
    assert found.removes.column("partition_values").to_pylist() == [[("day", "2")], None]
    assert found.removes.column("deleted_at").to_pylist() == [99, 1_767_225_600_000]
    assert found.removes.column("extended").to_pylist() == [True, None]
    assert found.cdc.column("path").to_pylist() == ["_change_data/d"]


def test_protocol_metadata_transactions_and_domains_are_records():
    found = parsed(
        {"commitInfo": {"operation": "WRITE", "operationParameters": {"n": 1}}},
        protocol(features=["columnMapping"]),
        metadata(partition_by=["day"], configuration={"a": "b"}, name="orders"),
        txn("app", 3, 5),
        txn("other", 1),
        domain("d", "{}"),
    )

    assert found.commit_infos[7]["operationParameters"] == {"n": 1}
    assert found.protocols[7].reader_features == {"columnMapping"}
    assert (found.metadatas[7].name, found.metadatas[7].partition_columns) == ("orders", ("day",))
    assert [(one.app_id, one.version, one.last_updated) for one in found.transactions[7]] == [
        ("app", 3, 5),
        ("other", 1, None),
    ]
    assert [one.domain for one in found.domains[7]] == ["d"]


def test_only_the_first_commit_info_counts_and_it_can_be_shortened():
    info = {"operation": "WRITE", "operationParameters": {"mode": "Append", "predicate": "x"}, "a": 1}
    both = lines({"commitInfo": info}, {"commitInfo": {"a": 2}})
    brief = {"operation": "WRITE", "operationParameters": {"mode": "Append"}}

    assert parse_commits([(0, "x", both)]).commit_infos == {0: info}
    assert parse_commits([(0, "x", both)], infos=False).commit_infos == {0: brief}


def test_what_old_writers_leave_out_is_null_or_the_default():
    found = parsed({"add": {"path": "a"}}, {"remove": {"path": "a"}}, {"metaData": {"id": "x"}})

    assert found.adds.to_pylist()[0]["partition_values"] == []
    assert found.adds.to_pylist()[0]["size_bytes"] is None
    assert found.removes.to_pylist()[0]["data_change"] is True
    assert found.metadatas[7].schema_json is None
    assert found.metadatas[7].provider == "parquet"


def test_unknown_actions_and_fields_are_ignored():
    found = parsed({"some_new_action": {"a": 1}}, {"other": [1]}, {"add": {"path": "a", "new": {"x": 1}}, "new": 1})

    assert found.adds.column("path").to_pylist() == ["a"]


@pytest.mark.parametrize(("content", "why"), [(b"", "empty"), (b"\n \r\n\n", "blank"), (b"{}\n", "contains no action")])
def test_a_commit_without_actions_is_refused(content, why):
    with pytest.raises(CorruptTableError, match=f"x is damaged: it .*{why}"):
        parse_commits([(0, "x", content)])


def test_blank_lines_between_actions_are_passed_over():
    assert parse_commits([(0, "x", b'\n{"add": {"path": "a"}}\r\n \n')]).adds.num_rows == 1


def test_a_line_ends_only_at_a_line_feed():
    path = "a\u2028b\u2029c\x85d"
    content = json.dumps({"add": {"path": path}}, ensure_ascii=False).encode() + b"\r\n"

    assert parse_commits([(0, "x", content)]).adds.column("path").to_pylist() == [path]


def test_numbers_may_be_text():
    found = parsed(
        {"add": {"path": "a", "size": "12", "modificationTime": 5}},
        {"add": {"path": "b", "size": 13}},
        {"protocol": {"minReaderVersion": "1", "minWriterVersion": "2"}},
    )

    assert found.adds.column("size_bytes").to_pylist() == [12, 13]
    assert found.protocols[7].min_reader_version == 1


def test_the_same_protocol_twice_is_one_but_two_that_differ_are_refused():
    assert parsed(protocol(), protocol()).protocols[7].min_reader_version == 1
    with pytest.raises(CorruptTableError, match=f"{NAME} is damaged: it contains two protocol actions that differ"):
        parsed(protocol(1, 2), protocol(2, 5))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"add":{"path":"a"}}\n{"add":{"pa', "line 2 is not an action: unexpected end"),
        (b"\n\n[1]\n", "line 3 is not an action: it is not an object"),
        (b"7\n", "line 1 is not an action"),
        (b'{"add":{"path":"\xff"}}', "line 1 is not an action"),
        (b'{"add":{}}', "one of its add actions has no path"),
        (b'{"add":"x"}', "one of its add actions has 'x' in place of an object"),
        (b'{"add":{"path":7}}', "one of its add actions has path '7', which is not valid"),
        (b'{"remove":{"path":"a","size":"x"}}', "one of its remove actions has size 'x'"),
        (b'{"add":{"path":"a","size":1.5}}', "size '1.5'"),
        (b'{"add":{"path":"a","size":99999999999999999999}}', "size '1e+20'"),
        (b'{"add":{"path":"a","dataChange":"true"}}', "dataChange 'true'"),
        (b'{"add":{"path":"a","partitionValues":["x"]}}', "partitionValues that are not a map of texts"),
        (b'{"add":{"path":"a","partitionValues":{"x":1}}}', "partitionValues that are not a map of texts"),
        (b'{"add":{"path":"a","deletionVector":{}}}', "a deletionVector that is not described"),
        (b'{"add":{"path":"a","deletionVector":"x"}}', "a deletionVector that is not described"),
        (
            b'{"add":{"path":"a","deletionVector":{"storageType":"i","pathOrInlineDv":"","offset":4294967296}}}',
            "offset '4294967296'",
        ),
        (b'{"protocol":{"minReaderVersion":1}}', "a protocol without minReaderVersion or minWriterVersion"),
        (b'{"protocol":[]}', "a protocol that is not an object"),
        (
            b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":"x"}}',
            "features that are not a list of texts",
        ),
        (b'{"metaData":{"schemaString":{}}}', "schemaString"),
        (b'{"metaData":{"configuration":[1]}}', "a configuration that is not an object"),
        (b'{"txn":{"appId":"a"}}', "a txn without appId or version"),
        (b'{"domainMetadata":{}}', "a domainMetadata without domain"),
    ],
)
def test_what_is_not_a_commit_is_refused_with_the_name_of_its_file(content, message):
    with pytest.raises(CorruptTableError) as raised:
        parse_commits([(6, "_delta_log/6.json", lines(add("fine"))), (7, NAME, content)])

    assert str(raised.value).startswith(f"{NAME} is damaged: ")
    assert message in str(raised.value)


def test_many_actions_come_in_the_order_of_their_commits(monkeypatch):
    monkeypatch.setattr(parsing, "_AT_ONCE", 4)
    contents = [(version, f"{version}", lines(*(add(f"{version}-{n}") for n in range(3)))) for version in range(20)]

    found = parse_commits(contents).adds

    assert found.column("version").to_pylist() == [version for version in range(20) for _ in range(3)]
    assert found.column("path").to_pylist() == [f"{version}-{n}" for version in range(20) for n in range(3)]


def test_as_many_names_are_not_the_same_names():
    found = parsed(
        {"add": {"path": "a", "new": 1}}, {"add": {"path": "b", "size": 2}}, {"add": {"size": 3, "path": "c"}}
    )

    assert found.adds.column("size_bytes").to_pylist() == [None, 2, 3]
    assert found.adds.column("path").to_pylist() == ["a", "b", "c"]


MAPS = st.none() | st.dictionaries(st.text(max_size=2), st.none() | st.text(max_size=2), max_size=2)
BODIES = st.fixed_dictionaries(
    {"path": st.text("ab", min_size=1, max_size=2)},
    optional={"size": st.none() | st.integers(0, 9), "partitionValues": MAPS, "tags": MAPS, "unknown": st.booleans()},
)


@given(st.lists(BODIES, max_size=9), st.integers(1, 4), st.integers(1, 4))
def test_however_many_are_taken_at_once_the_columns_are_the_same(bodies, taken, at_once):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "_TAKEN_AT_ONCE", taken)
        patch.setattr(parsing, "_AT_ONCE", at_once)
        found = parse_commits([(version, "x", lines({"add": body})) for version, body in enumerate(bodies)]).adds

    assert [(row["path"], row["size_bytes"], row["partition_values"], row["tags"]) for row in found.to_pylist()] == [
        (
            body["path"],
            body.get("size"),
            list((body.get("partitionValues") or {}).items()),
            None if body.get("tags") is None else list(body["tags"].items()),
        )
        for body in bodies
    ]


@pytest.mark.parametrize("broken", [{"path": "x", "tags": 7}, {"path": "x", "partitionValues": {"a": []}}, "x", 7])
def test_of_many_commits_the_one_that_is_damaged_is_named(broken):
    contents = [(version, f"{version}.json", lines(add(f"{version}"))) for version in range(150)]
    contents[130] = (130, "130.json", lines({"add": broken}))

    with pytest.raises(CorruptTableError, match=r"^130\.json is damaged: one of its add actions has "):
        parse_commits(contents)


WHOLE = lines(
    protocol(features=["deletionVectors"]),
    metadata(),
    add("a%20b", partition={"day": None}, rows=3, vector=inline_vector([0])),
    remove("c", size=1),
    txn("app", 1),
    domain("d"),
    cdc("x"),
)


@given(st.integers(0, len(WHOLE) - 1))
def test_a_commit_that_was_cut_short_is_refused_or_read_up_to_a_line(end):
    try:
        parse_commits([(0, "commit", WHOLE[:end])])
    except CorruptTableError as error:
        assert "commit is damaged" in str(error)  # noqa: PT017 - it may also be whole


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_commits_raise_our_errors_only(changes):
    content = bytearray(WHOLE)
    for place, byte in changes:
        content[place] = byte
    try:
        parse_commits([(0, "commit", bytes(content))])
    except SnapshotExplorerError as error:
        assert "commit is damaged" in str(error)  # noqa: PT017 - it may also be readable


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.sampled_from(
    [
        *(
            "path",
            "partitionValues",
            "size",
            "dataChange",
            "deletionVector",
            "stats",
            "tags",
            "baseRowId",
            "id",
            "appId",
        ),
        *("version", "format", "configuration", "partitionColumns", "minReaderVersion", "minWriterVersion", "domain"),
        *("storageType", "pathOrInlineDv", "readerFeatures", "schemaString", "modificationTime", "removed"),
    ]
)
KINDS = st.sampled_from(["add", "remove", "cdc", "metaData", "protocol", "txn", "domainMetadata", "commitInfo", "x"])


@given(st.lists(st.dictionaries(KINDS, VALUES | st.dictionaries(FIELDS, VALUES, max_size=6), max_size=2), max_size=4))
def test_any_json_is_read_or_refused_with_our_errors(objects):
    content = "\n".join(json.dumps(one) for one in objects).encode()
    try:
        parse_commits([(0, "commit", content)])
    except SnapshotExplorerError as error:
        assert "commit is damaged" in str(error)  # noqa: PT017 - it may also be readable
