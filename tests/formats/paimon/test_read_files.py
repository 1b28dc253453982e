"""Data files in every format, written by Paimon's own writers (probes/README.md), by pyarrow, and damaged."""

import json
import logging
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from snapshot_explorer.errors import CorruptTableError, SnapshotExplorerError, UnsupportedFeatureError
from tests.inner.arrow import writer_zone
from tests.inner.paimon import PaimonColumns, PaimonDataFile, PaimonField, arrow_type, batches, parse_type
from tests.support.paimon.avro_bytes import container, encoded, written
from tests.support.paimon.splits import Files, orc_file, parquet
from tests.support.parquet_footers import like_parquet_mr_1_11

PROBES = Path(__file__).parent / "probes"
NS = 1_732_603_136_123_456_789
BEFORE = -1_499_500_000
"""Half a second and some before 1970: nanoseconds below zero."""
COLUMNS = {
    "bool": ("BOOLEAN", [True, False, False]),
    "tiny": ("TINYINT", [-1, 0, 1]),
    "small": ("SMALLINT", [0, -300, -600]),
    "int": ("INT", [0, 100_000, 200_000]),
    "big": ("BIGINT", [0, -10_000_000_000, -20_000_000_000]),
    "float": ("FLOAT", [0.0, 1.5, 3.0]),
    "double": ("DOUBLE", [-0.0, -2.5, -5.0]),
    "dec5": ("DECIMAL(5, 2)", [Decimal("1.50"), Decimal("-999.99"), Decimal("1.50")]),
    "dec18": ("DECIMAL(18, 4)", [Decimal("0.0001"), Decimal("-99999999999999.9999"), Decimal("0.0001")]),
    "dec38": (
        "DECIMAL(38, 10)",
        [
            Decimal("12345678901234567890.5000000000"),
            Decimal("-9999999999999999999999999999.9999999999"),
            Decimal("12345678901234567890.5000000000"),
        ],
    ),
    "char": ("CHAR(5)", ["ab   ", "abcde", "abcde"]),
    "varchar": ("VARCHAR(5)", ["", "hé", "hé"]),
    "string": ("STRING", ["\U0001f6000", "\U0001f6001", "\U0001f6002"]),
    "binary": ("BINARY(3)", [b"\1\2\0", b"\1\2\1", b"\1\2\2"]),
    "bytes": ("BYTES", [b"", b"\xff\0", b"\xff\0"]),
    "date": ("DATE", [19_000, -719_162, 19_002]),
    "time": ("TIME(3)", [86_399_999, 86_399_998, 86_399_997]),
    "ts0": ("TIMESTAMP(0)", [1_732_603_136_000, -2_000, 0]),
    "ts3": ("TIMESTAMP(3)", [1_732_603_136_123, -1_500, 0]),
    "ts6": ("TIMESTAMP(6)", [1_732_603_136_123_456, -1_499_500, 0]),
    "ltz0": ("TIMESTAMP_LTZ(0)", [1_732_603_136_000, -2_000, 0]),
    "ltz3": ("TIMESTAMP_LTZ(3)", [1_732_603_136_123, -1_500, 0]),
    "ltz6": ("TIMESTAMP_LTZ(6)", [1_732_603_136_123_456, -1_499_500, 0]),
    "ts9": ("TIMESTAMP(9)", [NS, BEFORE, 0]),
    "ltz9": ("TIMESTAMP_LTZ(9)", [NS, BEFORE, 0]),
    "ints": ("ARRAY<INT>", [[1, None, 0], [1, None, 1], [1, None, 2]]),
    "by_number": ("MAP<INT NOT NULL, STRING>", [[(7 + i, "seven"), (-1, None)] for i in range(3)]),
    "bag": ("MULTISET<STRING NOT NULL>", [[("a", 2 + i)] for i in range(3)]),
}


def columns_of(form):
    return [
        PaimonField(id=index, name=name, type=parse_type(kind))
        for index, (name, (kind, _)) in enumerate(COLUMNS.items())
        if not (form == "avro" and name.endswith("9"))
    ]


def expected(field, form):
    """The column as Arrow, its times from their integers."""
    kind, values = arrow_type(field.type), [*COLUMNS[field.name][1], None]
    if form == "orc" and field.type.root == "CHAR":
        values = [value and value.rstrip(" ") for value in values]  # as Paimon reads it: ORC fills it up with blanks
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(values, kind)


def data_file(name, rows, **values):
    return PaimonDataFile(
        **{
            "path": name,
            "format": name.rsplit(".", 1)[-1],
            "schema_id": 0,
            "rows": rows,
            "size_bytes": None,
            "level": 0,
            "min_sequence": 0,
            "max_sequence": 0,
            "deleted_rows": 0,
            "write_columns": None,
            **values,
        }
    )


def read(content, name, rows, fields, **values):
    found = batches(Files({name: content}), data_file(name, rows, **values), PaimonColumns(fields), legacy_zones=True)
    table = pa.Table.from_batches([batch for _, batch in found])
    table.validate(full=True)
    return table


def field(name, kind):
    return PaimonField(id=0, name=name, type=parse_type(kind))


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_every_type_is_read_exactly_from_a_file_that_paimon_wrote(form):
    fields = columns_of(form)

    table = read((PROBES / f"all.{form}").read_bytes(), f"all.{form}", 4, fields)

    for item in fields:
        found = table.column(item.name).combine_chunks()
        assert found.type == arrow_type(item.type), item.name
        assert found.equals(expected(item, form)), item.name


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_times_and_decimals_inside_of_nested_types_are_read(form):
    fields = [
        field("by_name", "MAP<STRING NOT NULL, TIMESTAMP(3)>"),
        field("row", "ROW<x INT, y DECIMAL(20, 3), z ARRAY<TIME(3)>>"),
    ]

    table = read((PROBES / f"all.{form}").read_bytes(), f"all.{form}", 4, fields)

    moments = [entry and entry[0][1].timestamp() for entry in table.column("by_name").to_pylist()]
    assert table.column("by_name").type == arrow_type(fields[0].type)
    assert [entry and [key for key, _ in entry] for entry in table.column("by_name").to_pylist()] == [
        ["k", "n"]
    ] * 3 + [None]
    assert len(moments) == 4
    rows = table.column("row").to_pylist()
    assert rows[2:] == [None, None]
    assert [rows[1]["x"], rows[1]["y"], str(rows[1]["z"][0]), rows[1]["z"][1]] == [
        1,
        Decimal("-1.125"),
        "00:00:00.005000",
        None,
    ]


def test_only_the_requested_columns_are_returned_in_their_order():
    fields = [field("string", "STRING"), field("int", "INT")]

    table = read((PROBES / "all.parquet").read_bytes(), "all.parquet", 4, fields)

    assert table.column_names == ["string", "int"]


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_without_columns_there_are_rows(form):
    assert read((PROBES / f"all.{form}").read_bytes(), f"all.{form}", 4, []).num_rows == 4


def test_a_timestamp_that_nanoseconds_can_not_hold_is_refused_and_not_wrapped():
    content = (PROBES / "far.parquet").read_bytes()

    with pytest.raises(
        UnsupportedFeatureError, match="far.parquet contains a timestamp outside the years 1677 to 2262"
    ):
        read(content, "far.parquet", 1, [field("ts9", "TIMESTAMP(9)")])


def test_orc_times_that_nanoseconds_cannot_hold_are_read_as_microseconds():
    times = pa.array([-62_135_596_800_000_000, None, 253_402_300_799_999_999], pa.timestamp("us"))  # years 1 and 9999
    content = orc_file(pa.table({"t": times, "n": pa.array([1, 2, 3], pa.int32())}))

    table = read(content, "f.orc", 3, [field("n", "INT"), field("t", "TIMESTAMP(6)")])

    assert table.column("t").to_pylist() == times.to_pylist()
    with pytest.raises(UnsupportedFeatureError, match="f.orc contains a timestamp outside the years 1677 to 2262"):
        read(content, "f.orc", 3, [field("t", "TIMESTAMP(9)")])


def test_orc_times_by_another_clock_are_given_as_in_utc_and_warned_of(caplog):
    content = (PROBES / "shanghai.orc").read_bytes()

    with caplog.at_level(logging.WARNING):
        table = read(content, "shanghai.orc", 4, [field("ltz3", "TIMESTAMP_LTZ(3)"), field("ts3", "TIMESTAMP(3)")])

    # What Paimon 0.9's own reader gives in UTC for such a file (golden table timestamp_index).
    assert table.column("ltz3")[0].value == 1_732_603_136_123 - 8 * 3_600_000
    assert table.column("ts3")[0].value == 1_732_603_136_123
    assert "in the local time of Asia/Shanghai" in caplog.text


def test_an_orc_file_whose_writer_lived_in_a_fixed_offset_is_read():
    content = (PROBES / "fixed_offset.orc").read_bytes()
    assert writer_zone(pa.BufferReader(content)) == "GMT+08:00"

    table = read(content, "fixed_offset.orc", 6, [field("t", "TIMESTAMP(6)"), field("n", "INT")])

    micros = [1_732_603_136_123_456, 1_500_000, 0, -1_500_000, None, -2_208_988_800_000_000]
    assert table.column("t").cast(pa.int64()).to_pylist() == micros
    assert table.column("n").to_pylist() == [0, 1, 2, 3, 4, 5]


def test_an_orc_file_of_a_zone_that_is_not_known_is_refused():
    times = pa.table({"t": pa.array([1], pa.timestamp("us"))})
    content = orc_file(times, compression="uncompressed").replace(b"GMT", b"XYZ")

    with pytest.raises(UnsupportedFeatureError, match="f.orc was written in a time zone .*zoneinfo/XYZ does not"):
        read(content, "f.orc", 1, [field("t", "TIMESTAMP(6)")])


@pytest.mark.parametrize("packed", ["uncompressed", "zlib", "snappy", "lz4", "zstd"])
def test_the_writers_zone_is_found_in_an_orc_file_of_any_codec(packed):
    many = pa.table({f"column_{number}": [number] * 100 for number in range(40)})

    assert writer_zone(pa.BufferReader(orc_file(many, compression=packed))) in ("GMT", "UTC", "")


def test_dictionaries_views_and_large_text_become_text():
    table = pa.table(
        {
            "d": pa.array(["x", "y", "x"]).dictionary_encode(),
            "l": pa.array(["x", None, "z"], pa.large_string()),
            "v": pa.array(["x", None, "z"], pa.string_view()),
            "a": pa.array([[1], None, []], pa.large_list(pa.int32())),
        }
    )
    fields = [field("d", "STRING"), field("l", "STRING"), field("v", "STRING"), field("a", "ARRAY<INT>")]

    found = read(parquet(table), "f.parquet", 3, fields)

    assert found.schema.types == [pa.string(), pa.string(), pa.string(), arrow_type(parse_type("ARRAY<INT>"))]
    assert found.to_pydict() == {
        "d": ["x", "y", "x"],
        "l": ["x", None, "z"],
        "v": ["x", None, "z"],
        "a": [[1], None, []],
    }


def test_each_file_is_read_by_its_own_columns_whatever_was_found_in_the_one_before():
    fields = [field("c", "CHAR(4)"), field("t", "TIMESTAMP(9)"), field("n", "BIGINT")]
    times = pa.array([0, 1_700_000_000_123_456_789], pa.timestamp("ns"))
    alike = pa.table({"c": ["ab  ", "x"], "t": times, "n": [1, 2]})
    ids = {"PARQUET:field_id": "7"}
    others = alike.set_column(2, "n", pa.array([1, 2], pa.int32())).set_column(0, "c", alike["c"].dictionary_encode())
    files = {
        "alike.parquet": parquet(alike),
        "with_ids.parquet": parquet(alike.cast(pa.schema([one.with_metadata(ids) for one in alike.schema], ids))),
        "required.parquet": parquet(
            alike.cast(pa.schema([pa.field(one.name, one.type, nullable=False) for one in alike.schema]))
        ),
        "empty.parquet": parquet(alike.slice(0, 0)),
        "padded.orc": orc_file(alike),
        "int96.parquet": parquet(alike, use_deprecated_int96_timestamps=True),
        "others.parquet": parquet(others.select(["n", "t", "c"])),
        "back.parquet": parquet(alike),
        "short.parquet": parquet(alike.drop_columns("n")),
        "group.parquet": parquet(_in_a_required_group(alike, "n")),
    }
    columns = PaimonColumns(fields)

    def rows(name):
        found = batches(Files(files), data_file(name, 0 if name == "empty.parquet" else 2), columns, legacy_zones=True)
        stored = [batch for _, batch in found]
        assert all(batch.schema.equals(columns.schema, check_metadata=True) for batch in stored)
        table = pa.Table.from_batches(stored, columns.schema)
        assert table.schema.equals(pa.schema([(one.name, arrow_type(one.type)) for one in fields]), check_metadata=True)
        return table

    *same, short, group = files
    for name in same:
        trimmed = alike.set_column(0, "c", pa.array(["ab", "x"]))
        stored = {"padded.orc": trimmed, "empty.parquet": alike.slice(0, 0)}.get(name, alike)
        assert rows(name).equals(stored), name
    for name in (short, group):
        with pytest.raises(CorruptTableError, match=rf"{name} has no column 'n'"):
            rows(name)
        assert rows("back.parquet").equals(alike)


def _in_a_required_group(table, name):
    """The table with a column in a struct: its leaf is like that of the column itself."""
    group = pa.StructArray.from_arrays([table[name].combine_chunks()], fields=[table.schema.field(name)])
    kind = pa.field("group", group.type, nullable=False)
    return table.set_column(table.schema.names.index(name), kind, group)


@pytest.mark.parametrize("write", [parquet, orc_file])
def test_names_with_dots_are_names(write):
    table = pa.table({"a.b": [1, 2], "a": [{"b": 3}, {"b": 4}], "a.": [5, 6]})
    name = "f.parquet" if write is parquet else "f.orc"

    found = read(write(table), name, 2, [field("a.b", "BIGINT"), field("a.", "BIGINT")])

    assert found.to_pydict() == {"a.b": [1, 2], "a.": [5, 6]}


def test_maps_are_read_as_parquet_mr_1_11_writes_them():
    maps = pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32()))
    content = like_parquet_mr_1_11(parquet(pa.table({"m": maps})))

    found = read(content, "f.parquet", 3, [field("m", "MAP<STRING, INT>")])

    assert found["m"].to_pylist() == maps.to_pylist()


def test_a_file_with_another_number_of_rows_than_its_manifest_says_is_broken():
    with pytest.raises(CorruptTableError, match="f.parquet has 2 rows, but its manifest records 3"):
        read(parquet(pa.table({"a": [1, 2]})), "f.parquet", 3, [field("a", "BIGINT")])


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_a_column_that_the_schema_names_and_the_file_lacks_is_broken(form):
    with pytest.raises(CorruptTableError, match=f"all.{form}.* no column 'absent'"):
        read((PROBES / f"all.{form}").read_bytes(), f"all.{form}", 4, [field("absent", "INT")])


def test_a_column_of_another_type_than_the_schema_says_is_broken():
    with pytest.raises(CorruptTableError, match="column 'string' of the data file all.parquet cannot be read as INT"):
        read((PROBES / "all.parquet").read_bytes(), "all.parquet", 4, [field("string", "INT")])


def test_a_shredded_variant_is_put_together():
    shredded = pa.table({"v": [{"metadata": b"\1\0\0", "typed_value": 1}]})

    assert read(parquet(shredded), "f.parquet", 1, [field("v", "VARIANT")]).to_pydict() == {
        "v": [{"value": b"\x0c\1", "metadata": b"\1\0\0"}]
    }


def test_a_variant_in_a_type_that_variants_do_not_have_is_refused():
    kind = pa.struct({"metadata": pa.binary(), "typed_value": pa.uint64()})
    shredded = pa.table({"v": pa.array([{"metadata": b"\1\0\0"}], kind)})

    with pytest.raises(UnsupportedFeatureError, match="its variants are shredded into uint64"):
        read(parquet(shredded), "f.parquet", 1, [field("v", "VARIANT")])


def test_a_plain_variant_is_its_value_and_metadata():
    table = pa.table({"v": [{"metadata": b"m", "value": b"v"}, None]})

    assert read(parquet(table), "f.parquet", 2, [field("v", "VARIANT")]).to_pydict() == {
        "v": [{"value": b"v", "metadata": b"m"}, None]
    }


def damaged(content, chance):
    """Cut short, with bytes changed, or with a piece left out."""
    kind = chance.randrange(3)
    if kind == 0:
        return content[: chance.randrange(len(content))]
    if kind == 1:
        changed = bytearray(content)
        for _ in range(chance.randrange(1, 8)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        return bytes(changed)
    start = chance.randrange(len(content))
    return content[:start] + content[start + chance.randrange(1, 40) :]


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_a_damaged_file_is_read_or_raises_our_error_naming_it(form):
    whole = (PROBES / f"all.{form}").read_bytes()
    fields = columns_of(form)
    chance = random.Random(7)

    for _ in range(300):
        try:
            read(damaged(whole, chance), f"all.{form}", 4, fields)
        except SnapshotExplorerError as error:
            assert f"all.{form}" in str(error)  # noqa: PT017 - damage that changes a value only is not found


def test_damage_to_the_footer_of_a_file_with_int96_names_the_file():
    whole = (PROBES / "all.parquet").read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    chance = random.Random(11)

    for _ in range(300):
        changed = bytearray(whole)
        changed[chance.randrange(footer, len(whole) - 8)] = chance.randrange(256)
        try:
            read(bytes(changed), "all.parquet", 4, [field("ts9", "TIMESTAMP(9)")])
        except SnapshotExplorerError as error:
            assert "all.parquet" in str(error)  # noqa: PT017 - likewise


def test_an_encrypted_file_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="f.parquet is encrypted"):
        read(b"PARE" + bytes(100) + b"PARE", "f.parquet", 1, [field("a", "INT")])


def test_bytes_in_an_orc_file_that_are_not_text_are_damage():
    content = orc_file(pa.table({"t": ["before", "MARKED", "behind"], "n": [1, 2, 3]}), compression="uncompressed")
    assert content.count(b"MARKED") >= 1
    damaged = content.replace(b"MARKED", b"MA\xff\xfeED")

    with pytest.raises(CorruptTableError, match=r"file f\.orc cannot be read as orc: the column 't' is not valid"):
        read(damaged, "f.orc", 3, [field("t", "STRING")])
    assert read(damaged, "f.orc", 3, [field("n", "BIGINT")]).to_pydict() == {"n": [1, 2, 3]}


AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "t", "type": ["null", "string"]},
        {"name": "a", "type": ["null", {"type": "array", "items": ["null", "int"]}]},
        {"name": "m", "type": ["null", {"type": "map", "values": "int"}]},
    ],
}


@pytest.mark.parametrize(
    "change",
    [
        lambda schema: schema["fields"].clear(),
        lambda schema: schema.update(fields={}),
        lambda schema: schema.update(fields=["x"]),
        lambda schema: schema.update(name=1),
        lambda schema: schema.update(type="nothing"),
        lambda schema: schema["fields"][0].update(type="nothing"),
        lambda schema: schema["fields"][0].update(type=[]),
        lambda schema: schema["fields"][0].update(name=["t"]),
        lambda schema: schema["fields"][0].update(type={"type": "fixed", "name": "f", "size": "x"}),
        lambda schema: schema["fields"][1].update(type=["null", {"type": "array"}]),
        lambda schema: schema["fields"][1].update(type=["null", {"type": "array", "items": {}}]),
        lambda schema: schema["fields"][1].update(type="int"),
        lambda schema: schema["fields"][2].update(type=["null", {"type": "array", "items": ["null", "int"]}]),
        lambda schema: schema["fields"][2].update(type=["null", {"type": "map", "values": None}]),
        lambda schema: schema["fields"][2].update(type=None),
    ],
)
def test_an_avro_schema_that_was_altered_is_damage(change):
    rows = [{"t": "x", "a": [1, None], "m": {"k": 1}}]
    content = written(AVRO, rows)
    altered = json.loads(json.dumps(AVRO))
    change(altered)
    fields = [field("t", "STRING"), field("a", "ARRAY<INT>"), field("m", "MAP<STRING, INT>")]
    assert read(content, "f.avro", 1, fields).num_rows == 1

    with pytest.raises(CorruptTableError, match=r"f\.avro"):
        read(container(altered, [(1, encoded(AVRO, rows))]), "f.avro", 1, fields)
