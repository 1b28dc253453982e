"""Log files of slices: which blocks count, damaged ones, and what is refused by name."""

import base64
import random
import struct
import zlib
from operator import itemgetter

import pyarrow as pa
import pytest

from snapshot_explorer import open_table
from snapshot_explorer.errors import CorruptTableError, SnapshotExplorerError, UnsupportedFeatureError
from tests.inner.hudi import HudiType, conform, log_format
from tests.support.hudi.table_builder import COLUMNS, SCHEMA, HudiTable, block, deletes, records, text

PROPERTIES = {"hoodie.table.type": "MERGE_ON_READ"}


@pytest.fixture
def table(memory_root):
    built = HudiTable(*memory_root, properties=PROPERTIES)
    built.insert([(1, "a"), (2, "b"), (3, "c")], action="deltacommit")
    return built


def rows(table):
    found = open_table(f"memory://{table.root}").current.to_arrow().to_pylist()
    return sorted((row["id"], row["name"]) for row in found)


def test_records_update_and_insert_and_deletes_delete(table):
    table.log("data-1", [records(2, [(2, "B"), (4, "D")]), deletes(2, [1])])

    assert rows(table) == [(2, "B"), (3, "c"), (4, "D")]
    assert open_table(f"memory://{table.root}").at(1).count() == 3


KEYS = ["1", "22", "", "x" * 63, "y" * 64, "z" * 200, "é", "aé中", "😀b", "é" * 70, "k:1,v:2"]
SERIALIZED = zlib.decompress(
    base64.b64decode(
        "eNpjZIj2yS9K10ssSEzOSNXLKE3J1EvOz83Nz9PLzU9JzdHzyM9PyUz1Tq3czcjDyEiU0p+MjI2MTYaMQFBg+4PRaBOQwcIC41ZQBH6A"
        "zGI8yFhJIYC55iRz1TAB4IBpOrwS5rOWxMMrn+xYCxZuebtg79sdDUkwueOMh1cOHgh2YraVoU6Z1SYAlG84+w=="
    )
)
"""These keys in half as many partitions, as SerializationUtils of Hudi 0.9 serialized an array of HoodieKey."""


@pytest.mark.parametrize("header", [{}, {log_format.IS_PARTIAL: "true"}])
def test_a_null_struct_whose_fields_are_required_is_read_and_compared(table, header):
    point = {"type": "record", "name": "point", "fields": [{"name": name, "type": "int"} for name in ("x", "y")]}
    columns = [*COLUMNS, {"name": "point", "type": ["null", point], "default": None}]
    table.schema = SCHEMA | {"fields": columns}
    value = {"x": 1, "y": 2}
    table.log("data-1", [records(2, [(2, "b", value), (4, "d", None)], columns=columns, header=header)])

    opened = open_table(f"memory://{table.root}")
    points = opened.current.to_arrow()
    required = pa.struct([pa.field(name, pa.int32(), nullable=False) for name in ("x", "y")])
    assert points.schema.field("point").type == required
    assert sorted(zip(points["id"].to_pylist(), points["point"].to_pylist(), strict=True), key=itemgetter(0)) == [
        (1, None),
        (2, value),
        (3, None),
        (4, None),
    ]
    assert opened.row_changes(1, 2)["rowkind"].to_pylist() == ["-U", "+U", "+I"]


def deleted(content):
    return block(2, struct.pack(">ii", 1, len(content)) + content, type_=1)


def test_keys_that_hudi_0_9_serialized_are_deleted(memory_root):
    table = HudiTable(*memory_root, properties=PROPERTIES)
    table.insert([(number, "a", key) for number, key in enumerate((*KEYS, "other"))], action="deltacommit")
    table.log("data-1", [deleted(SERIALIZED)])

    assert rows(table) == [(len(KEYS), "a")]


def test_serialized_keys_that_were_cut_short_or_changed_are_damaged(table):
    for content in (*(SERIALIZED[:end] for end in range(0, len(SERIALIZED), 9)), SERIALIZED + b"1", b"\xff" * 99):
        table.log("data-1", [deleted(content)])

        with pytest.raises(CorruptTableError, match="The block at byte 0 of the log file .* cannot be read"):
            rows(table)


def test_blocks_of_other_instants_do_not_count(table):
    table.log("data-1", [records(2, [(2, "B")]), records(9, [(3, "no")]), deletes(8, [1])])

    assert rows(table) == [(1, "a"), (2, "B"), (3, "c")]


def test_a_rolled_back_block_does_not_count(table):
    rollback = block(3, b"", type_=0, header={1: text(2), 3: "0"})
    table.log("data-1", [records(2, [(2, "B")]), rollback])

    assert rows(table) == [(1, "a"), (2, "b"), (3, "c")]


def test_a_damaged_block_is_skipped(table):
    damaged = records(2, [(3, "no")])[:-20]
    table.log("data-1", [damaged, records(2, [(2, "B")])])
    table.log("data-1", [records(3, [(1, "A")]), b"#HUDI#" + bytes(3)])

    assert rows(table) == [(1, "A"), (2, "B"), (3, "c")]


def test_the_magic_inside_of_a_block_is_content(table):
    table.log("data-1", [records(2, [(2, "#HUDI#")])])

    assert rows(table)[1] == (2, "#HUDI#")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (block(2, b"x", type_=4), "has a block of type HFile"),
        (block(2, b"x", type_=6), "has a block of type change data"),
        (deletes(2, [1], version=2), "has a delete block of version 2"),
        (block(2, struct.pack(">ii", 4, 0)), "has an Avro block of version 4"),
    ],
)
def test_a_block_that_is_not_read_is_refused_by_name(table, content, message):
    table.log("data-1", [content])

    with pytest.raises(UnsupportedFeatureError, match=message):
        rows(table)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"hoodie.record.merge.mode": "CUSTOM", "hoodie.compaction.payload.class": "com.example.Mine"},
            "are merged by 'Mine'",
        ),
        ({"hoodie.table.partial.update.mode": "SUM"}, "need the partial update mode 'SUM'"),
        ({"hoodie.table.ordering.fields": "a.b"}, "are merged by 'the nested column a.b'"),
    ],
)
def test_merges_that_are_not_known_are_refused_where_there_are_log_files(memory_root, properties, message):
    built = HudiTable(*memory_root, properties=PROPERTIES | properties)
    built.insert([(1, "a")], action="deltacommit")
    assert rows(built) == [(1, "a")]
    built.log("data-1", [records(2, [(1, "A")])])

    with pytest.raises(UnsupportedFeatureError, match=message):
        rows(built)
    assert open_table(f"memory://{built.root}").current.files().num_rows == 2


def test_damaged_log_files_raise_our_errors_or_are_read(table, memory_root):
    filesystem, root = memory_root
    table.log("data-1", [records(2, [(2, "B"), (4, "D")]), deletes(2, [1])])
    (path,) = filesystem.glob(f"{root}/.data-1_*")
    whole = filesystem.cat_file(path)
    draw = random.Random(7)
    for _ in range(300):
        content = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        filesystem.pipe_file(path, bytes(content))
        try:
            rows(table)
        except SnapshotExplorerError:
            continue


def test_event_time_decides_between_records_and_deletes(memory_root):
    properties = {"hoodie.record.merge.mode": "EVENT_TIME_ORDERING", "hoodie.table.ordering.fields": "id"}
    built = HudiTable(*memory_root, properties=PROPERTIES | properties)
    built.insert([(5, "a"), (6, "b"), (7, "c")], action="deltacommit")
    smaller, no_value = ("LongWrapper", {"value": 4}), ("IntWrapper", {"value": 0})
    built.log("data-1", [deletes(2, [5], ordering=smaller), deletes(2, [6], ordering=no_value)])

    assert rows(built) == [(5, "a"), (7, "c")]


def test_deletes_of_keys_whose_text_is_not_known_are_refused_by_name(memory_root):
    properties = {
        "hoodie.populate.meta.fields": "false",
        "hoodie.table.recordkey.fields": "name",
        "hoodie.table.keygenerator.type": "COMPLEX",
    }
    built = HudiTable(*memory_root, properties=PROPERTIES | properties)
    built.insert([(1, "a")], action="deltacommit")
    built.log("data-1", [deletes(2, ["a"])])

    with pytest.raises(UnsupportedFeatureError, match="the text of the key name in delete blocks is not known"):
        rows(built)


def test_types_that_cannot_be_read_without_loss_are_refused_by_name():
    with pytest.raises(UnsupportedFeatureError, match="values of the type double are not read as string"):
        conform(pa.array([1.5]), HudiType(root="string"))
    with pytest.raises(UnsupportedFeatureError, match="values of the type int64 are not read as array<int>"):
        conform(pa.array([1]), HudiType(root="array", element=HudiType(root="int")))


def test_integers_that_became_floats_are_rounded_as_java_rounds_them():
    assert conform(pa.array([2**24 + 1, 2**24 + 3, None]), HudiType(root="float")).to_pylist() == [
        2**24,
        2**24 + 4,
        None,
    ]
    assert conform(pa.array([2**53 + 1]), HudiType(root="double")).to_pylist() == [2**53]


def test_a_row_that_a_global_index_left_in_its_partition_has_the_value_of_the_path(memory_root):
    partitioned = {"hoodie.table.partition.fields": "name", "hoodie.table.ordering.fields": "name"}
    built = HudiTable(*memory_root, properties=PROPERTIES | partitioned)
    built.number = 1
    name, content = built.base([(1, "b"), (2, "a")], 1, "data-1")
    built.write(f"a/{name}", content)
    built.commit([built.stat("data-1", f"a/{name}", content, [(1, "b"), (2, "a")])], partition="a")

    assert rows(built) == [(1, "a"), (2, "a")]
    assert open_table(f"memory://{built.root}").current.to_arrow(where="name = 'a'").num_rows == 2

    built.number = 2
    logged, block_of_log = f"a/.data-1_{text(2)}.log.1_0-0-0", records(2, [(1, "c")])
    built.write(logged, block_of_log)
    built.commit([built.stat("data-1", logged, block_of_log, [None])], action="deltacommit", partition="a")

    assert rows(built) == [(1, "a"), (2, "a")]
