"""Metadata files as Arrow, judged by fastavro, an independent reader."""

import io
import json
import tracemalloc

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from snapshot_explorer.errors import CorruptTableError, LimitError, UnsupportedFeatureError
from snapshot_explorer.formats.avro import columns as avro_columns
from snapshot_explorer.formats.avro import rows as avro_rows
from tests.inner.formats import parse_shape
from tests.inner.paimon import record_files as avro
from tests.support.avro import array, record
from tests.support.paimon.avro_bytes import container, counted, encoded, number, written

CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2", "xz")
ROW = record(
    "row",
    version="int",
    kind="int",
    part="bytes",
    file=record(
        "file",
        name="string",
        rows="long",
        stats=record("inner", low="bytes", counts=["null", array(["null", "long"])]),
        extra=array("string"),
        columns=["null", array("string")],
        path=["null", "string"],
        time=["null", {"type": "long", "logicalType": "timestamp-millis"}],
        origin=["null", record("part", path=["null", "string"], sizes=["null", array(["null", "long"])])],
        parts=array("part"),
    ),
)
FILE_PART = pa.struct([("path", pa.string()), ("sizes", pa.list_(pa.int64()))])
STATS = pa.struct([("low", pa.binary()), ("counts", pa.list_(pa.int64()))])
WANTED = pa.schema(
    [
        ("version", pa.int32()),
        ("kind", pa.int8()),
        ("part", pa.binary()),
        (
            "file",
            pa.struct(
                [
                    ("name", pa.string()),
                    ("rows", pa.int64()),
                    ("stats", STATS),
                    ("extra", pa.list_(pa.string())),
                    ("columns", pa.list_(pa.string())),
                    ("path", pa.string()),
                    ("time", pa.int64()),
                    ("origin", FILE_PART),
                    ("parts", pa.list_(FILE_PART)),
                ]
            ),
        ),
    ]
)
LONGS = st.integers(-(2**63), 2**63 - 1)
PARTS = st.fixed_dictionaries(
    {"path": st.none() | st.text(max_size=9), "sizes": st.none() | st.lists(st.none() | LONGS, max_size=3)}
)
ROWS = st.fixed_dictionaries(
    {
        "version": st.just(2),
        "kind": st.integers(0, 1),
        "part": st.binary(max_size=12).map(lambda tail: b"\0\0\0\1" + tail),
        "file": st.fixed_dictionaries(
            {
                "name": st.text(max_size=20),
                "rows": LONGS,
                "stats": st.fixed_dictionaries(
                    {"low": st.binary(max_size=9), "counts": st.none() | st.lists(st.none() | LONGS, max_size=4)}
                ),
                "extra": st.lists(st.text(max_size=9), max_size=3),
                "columns": st.none() | st.lists(st.text(max_size=9), max_size=3),
                "path": st.none() | st.text(max_size=9),
                "time": st.none() | LONGS,
                "origin": st.none() | PARTS,
                "parts": st.lists(PARTS, max_size=3),
            }
        ),
    }
)


def read(*contents, schema=WANTED):
    return avro.rows([(f"manifest/manifest-{index}", content) for index, content in enumerate(contents)], schema)


def row(**changes):
    inside = {
        "name": "data-1",
        "rows": 5,
        "stats": {"low": b"", "counts": None},
        "extra": [],
        "columns": None,
        "path": None,
        "time": None,
        "origin": None,
        "parts": [],
    }
    return {"version": 2, "kind": 0, "part": bytes(12), "file": inside | changes}


@settings(deadline=None, max_examples=150)
@given(st.lists(ROWS, max_size=30), st.sampled_from(CODECS), st.integers(1, 12), st.booleans())
def test_rows_are_what_was_written_in_every_codec(rows, codec, per_block, in_a_union):
    content = written(["null", ROW] if in_a_union else ROW, rows, codec, per_block)

    table, counts = read(content)

    table.validate(full=True)
    assert table.to_pylist() == rows
    assert counts == [len(rows)]


@settings(deadline=None, max_examples=100)
@given(st.lists(ROWS, min_size=1, max_size=20))
def test_rows_read_side_by_side_are_those_read_one_after_another(rows):
    block, shape, wanted = encoded(fastavro.parse_schema(ROW), rows), parse_shape(ROW), pa.struct(list(WANTED))

    together = avro_columns.decode([(len(rows), block)], shape, wanted)
    each = avro_rows.decode([(len(rows), block)], shape, wanted)

    assert together is not None
    assert together.equals(each)


@pytest.mark.parametrize("most", [1, 400, 2**22])
def test_blocks_are_decoded_in_parts_of_few_bytes_in_their_order(monkeypatch, most):
    monkeypatch.setattr(avro_columns, "_PART_BYTES", most)
    rows = [row(name=f"data-{number}" * (number % 4)) for number in range(200)]

    table, counts = read(written(ROW, rows, "null", per_block=7))

    assert table.to_pylist() == rows
    assert counts == [200]
    assert read(written(ROW, [], "null", per_block=7))[0].num_rows == 0


def test_bytes_that_look_like_the_beginning_of_a_row_do_not_mislead():
    decoy = encoded(fastavro.parse_schema(ROW), [row(name="decoy")])
    rows = [
        row(name="a"),
        {**row(name="b"), "part": b"\0\0\0\0" + decoy * 3},
        row(name="c", stats={"low": decoy, "counts": []}),
    ]

    shape, wanted = parse_shape(ROW), pa.struct(list(WANTED))
    found = avro_columns.decode([(3, encoded(fastavro.parse_schema(ROW), rows))], shape, wanted)

    assert found is not None
    assert found.to_pylist() == rows


def test_rows_whose_beginning_cannot_be_guessed_are_read_all_the_same():
    rows = [{**row(), "version": version, "kind": kind} for version, kind in ((2, 0), (700, 1), (2, 100))]

    table, _ = read(written(ROW, rows))

    assert table.to_pylist() == rows


def test_many_files_of_several_writers_come_in_the_order_of_the_files():
    old = {**ROW, "fields": ROW["fields"][:3]}
    contents = [written(ROW if index % 2 else old, [{**row(), "kind": index}] * (index % 3)) for index in range(9)]

    table, counts = read(*contents)

    assert counts == [index % 3 for index in range(9)]
    assert table["kind"].to_pylist() == [index for index in range(9) for _ in range(index % 3)]


def test_a_field_that_an_older_writer_lacks_is_null_and_an_unknown_one_is_ignored():
    newer = {**ROW, "fields": [*ROW["fields"][:2], {"name": "_NEW", "type": ["null", "double"]}]}

    table, _ = read(written(newer, [{"version": 2, "kind": 1, "_NEW": 0.5}]))

    assert table.to_pylist() == [{"version": 2, "kind": 1, "part": None, "file": None}]


def test_every_kind_of_avro_value_can_be_passed_over():
    kinds = {
        "flag": ("boolean", True),
        "small": ("float", 0.5),
        "large": ("double", 0.25),
        "nothing": ("null", None),
        "id": ({"type": "fixed", "name": "id", "size": 3}, b"abc"),
        "word": ({"type": "enum", "name": "word", "symbols": ["A", "B"]}, "B"),
        "pairs": ({"type": "map", "values": "long"}, {"x": 1, "y": 2}),
        "many": (array(array("int")), [[1, 2], []]),
    }
    schema = record("r", **{name: kind for name, (kind, _) in kinds.items()}, kind="int")
    value = {name: value for name, (_, value) in kinds.items()} | {"kind": 7}

    table, _ = read(written(schema, [value, value]))

    assert table["kind"].to_pylist() == [7, 7]


def test_lists_written_in_blocks_with_their_size_are_read():
    schema = record("r", names=array("string"))
    first = counted(b"ab") + counted(b"c")
    block = number(-2) + number(len(first)) + first + number(1) + counted(b"d") + number(0)

    table, _ = read(container(schema, [(1, block)]), schema=pa.schema([("names", pa.list_(pa.string()))]))

    assert table.to_pylist() == [{"names": ["ab", "c", "d"]}]


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_orc_and_parquet_are_detected_by_their_first_bytes(form):
    table = pa.table({"kind": pa.array([0, 1], pa.int32()), "file": pa.array([{"name": "a", "new": 1}, None])})
    out = io.BytesIO()
    (orc if form == "orc" else pq).write_table(table, out)

    found, _ = read(out.getvalue())

    assert found["kind"].to_pylist() == [0, 1]
    assert [file and file["name"] for file in found["file"].to_pylist()] == ["a", None]
    assert found["version"].null_count == 2


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_cut_anywhere_is_broken_or_ends_at_a_block(codec):
    rows = [row(name=f"data-{index}") for index in range(6)]
    content = written(ROW, rows, codec, per_block=2)
    whole = []

    for size in range(len(content)):
        try:
            table, _ = read(content[:size])
        except CorruptTableError as error:
            assert "manifest/manifest-0" in str(error)  # noqa: PT017 - most lengths fail, a few end at a block
        else:
            whole.append(table.num_rows)
            assert table.to_pylist() == rows[: table.num_rows]

    assert whole == [0, 2, 4]


@pytest.mark.parametrize("codec", ["bzip2", "xz", "zstandard"])
def test_a_block_that_unpacks_to_more_than_a_block_may_hold_is_refused_early(codec):
    content = container(ROW, [(1, bytes(2**27))], codec)
    assert len(content) < 50_000
    tracemalloc.start()

    with pytest.raises(LimitError, match="has a block of 67108865 bytes or more; the limit is 67108864"):
        read(content)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * 2**26


@settings(deadline=None, max_examples=300)
@given(st.lists(ROWS, min_size=1, max_size=4), st.data())
def test_damaged_bytes_give_our_error_or_rows(rows, data):
    content = bytearray(written(ROW, rows))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))

    try:
        table, _ = read(bytes(content))
    except (CorruptTableError, UnsupportedFeatureError):
        return
    table.validate(full=True)


def test_of_several_files_the_broken_one_is_named():
    good = written(ROW, [row()])
    bad = container(ROW, [(1, encoded(fastavro.parse_schema(ROW), [row()])[:-1])])

    with pytest.raises(CorruptTableError, match="manifest/manifest-1 is not readable metadata.*compare it with a copy"):
        read(good, bad, good)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "manifest/manifest-0 is not readable metadata: it is empty"),
        (b"<html>not found</html>", "begins with b'<htm', which is not Avro, ORC or Parquet"),
        (b"ORC but no more", "manifest/manifest-0 is not readable metadata"),
        (b"PAR1 but no more", "manifest/manifest-0 is not readable metadata"),
        (b"Obj\x01", "manifest/manifest-0 cannot be read as an Avro file"),
    ],
)
def test_what_is_not_metadata_is_named(content, found):
    with pytest.raises(CorruptTableError, match=found):
        read(content)


def test_an_unknown_codec_is_refused_by_name():
    with pytest.raises(UnsupportedFeatureError, match="the Avro codec 'lz4', which is not supported"):
        read(container(ROW, [(0, b"")], "lz4"))


def test_more_rows_than_bytes_are_refused():
    with pytest.raises(CorruptTableError, match="implausible: 1000000000000 rows in 3 bytes"):
        read(container(ROW, [(10**12, b"abc")]))


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (record("r"), "its rows take no bytes"),
        (record("r", n=array("null")), "items of an array take no bytes"),
        (record("r", n="decimal"), "'decimal' is not an Avro type"),
        ({"type": "fixed", "name": "f", "size": -1}, "-1 bytes of fixed size"),
        ("int", "its field at the top is not of type record"),
    ],
)
def test_an_invalid_schema_is_broken(schema, found):
    with pytest.raises(CorruptTableError, match=found):
        read(container(schema, []))


def test_a_schema_that_refers_to_itself_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="refers to itself in 'r'"):
        read(container(record("r", n=["null", "r"]), []))


def test_a_schema_that_doubles_with_each_line_is_broken():
    fields = {"n": record("r0", n="int")}
    for depth in range(1, 30):
        fields[f"n{depth}"] = record(f"r{depth}", a=f"r{depth - 1}", b=f"r{depth - 1}")

    with pytest.raises(CorruptTableError, match="its schema is implausibly large"):
        read(container(record("r", **fields), []))


def test_a_field_of_another_type_is_broken():
    other = json.loads(json.dumps(ROW).replace('"long"', '"double"', 1))

    with pytest.raises(
        CorruptTableError,
        match="its field file.stats.counts is not of type int64|its field file.rows is not of type int64",
    ):
        read(written(other, [{**row(), "file": row()["file"] | {"rows": 0.5}}]))


def test_a_number_too_large_for_its_field_is_broken():
    with pytest.raises(CorruptTableError, match="300 (not in range|too large)"):
        read(written(ROW, [{**row(), "kind": 300}]))


def test_text_that_is_not_utf8_is_broken():
    block = encoded(fastavro.parse_schema(ROW), [row(name="data-1")]).replace(b"data-1", b"data-\xff")

    with pytest.raises(CorruptTableError, match="manifest/manifest-0 is not readable metadata"):
        read(container(ROW, [(1, block)]))


def test_records_in_lists_of_an_orc_manifest_may_lack_newer_fields():
    target = io.BytesIO()
    orc.write_table(pa.table({"ranges": [[{"f0": "a", "f1": 1}], None, []]}), target)
    wanted = pa.schema({"ranges": pa.list_(pa.struct({"f0": pa.string(), "f1": pa.int32(), "newer": pa.int64()}))})

    rows, counts = avro.rows([("m", target.getvalue())], wanted)

    assert rows["ranges"].to_pylist() == [[{"f0": "a", "f1": 1, "newer": None}], None, []]
    assert counts == [3]
