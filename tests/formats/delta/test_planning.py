"""Which files are read together, which are spared, and that no row is lost by it."""

import json
import math
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import CorruptTableError, UnsupportedFeatureError
from snapshot_explorer.storage import Storage
from tests.inner.delta import DeltaPlan, arrow_schema, planning
from tests.inner.engines import parse_condition as condition_of
from tests.support.delta.log_reader import adds_of, metadata, plan_of, protocol, state, state_of, table_of
from tests.support.delta.table_builder import DeltaTable, add, inline_vector, schema_json

MEGABYTE = 2**20


def new(**more):
    return DeltaTable(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}/t", **more)


def planned(adds, table_metadata=None, said=None, where=None):
    table_metadata = table_metadata or metadata(schema_json())
    condition = None if where is None else condition_of(where, arrow_schema(table_metadata))
    version = state(adds_of(*adds), table_metadata, said)
    return planning.plan(Storage("memory://t"), condition, version.protocol, version.metadata, [version.adds])


def test_small_files_are_packed_and_large_ones_are_not():
    sizes = [1, 1, 100 * MEGABYTE, 27 * MEGABYTE, 200 * MEGABYTE, 1]

    splits = planned([{"path": str(i), "size_bytes": size} for i, size in enumerate(sizes)]).splits

    assert [split.files for split in splits] == [("0", "1", "2"), ("3",), ("4",), ("5",)]
    assert [split.size_bytes for split in splits] == [2 + 100 * MEGABYTE, 27 * MEGABYTE, 200 * MEGABYTE, 1]


def test_many_small_files_make_few_splits():
    splits = planned([{"path": str(number)} for number in range(1000)]).splits

    assert len(splits) == 32
    assert [file for split in splits for file in split.files] == [str(number) for number in range(1000)]


def test_a_split_is_of_one_partition():
    table_metadata = metadata(schema_json([("id", "long"), ("p", "integer")]), partition_by=["p"])
    adds = [{"path": str(i), "partition_values": [("p", value)]} for i, value in enumerate(["2", "1", "2", "", None])]

    splits = planned(adds, table_metadata).splits

    assert [(split.files, split.partition) for split in splits] == [
        (("0", "2"), {"p": "2"}),
        (("1",), {"p": "1"}),
        (("3", "4"), {"p": None}),
    ]
    assert [split.detail.partition.to_pylist() for split in splits] == [[{"p": 2}], [{"p": 1}], [{"p": None}]]


VECTOR = {"storage_type": "i", "path_or_inline": "0" * 40, "offset": None, "size_bytes": 32, "cardinality": 2}


def test_files_with_deletion_vectors_are_not_raw_and_stand_apart():
    stats = '{"numRecords":10}'
    adds = [
        {"path": "0", "stats": stats},
        {"path": "1", "stats": stats, "deletion_vector": VECTOR},
        {"path": "2", "stats": stats},
    ]

    splits = planned(adds, said=protocol(3, ["deletionVectors"])).splits

    assert [(split.files, split.raw, split.rows, split.live_rows) for split in splits] == [
        (("0", "2"), True, 20, 20),
        (("1",), False, 10, 8),
    ]


@pytest.mark.parametrize("stats", [None, '{"numRecords":1}'])
def test_rows_that_the_log_does_not_tell_are_unknown(stats):
    adds = [{"path": "0", "stats": stats, "deletion_vector": VECTOR}, {"path": "1"}]

    splits = planned(adds, said=protocol(3, ["deletionVectors"])).splits

    assert [(split.files, split.live_rows) for split in splits] == [(("1",), None), (("0",), None)]


PHYSICAL = "delta.columnMapping.physicalName"


@pytest.mark.parametrize(
    ("fields", "is_raw"),
    [
        ([("a", "long", {PHYSICAL: "a"})], True),
        ([("a", "long", {PHYSICAL: "col-1"})], False),
        ([("a", {"type": "array", "elementType": {"type": "struct", "fields": [
            {"name": "b", "type": "long", "nullable": True, "metadata": {PHYSICAL: "x"}}]}}, {PHYSICAL: "a"})], False),
        ([("a", "long", {"delta.typeChanges": [{"fromType": "integer", "toType": "long"}]})], False),
        ([("a", "variant")], False),
    ],
)  # fmt: skip
def test_a_split_is_raw_where_any_reader_finds_the_columns(fields, is_raw):
    table_metadata = metadata(schema_json(fields), configuration={"delta.columnMapping.mode": "name"})

    (split,) = planned([{"path": "f"}], table_metadata, protocol(2)).splits

    assert split.raw is is_raw
    assert isinstance(split.detail, DeltaPlan)


def test_what_can_not_be_read_is_refused_before_anything_is_planned():
    with pytest.raises(UnsupportedFeatureError, match="colorfulTables"):
        planned([{"path": "f"}], said=protocol(3, ["colorfulTables"]))
    with pytest.raises(UnsupportedFeatureError, match="has the unknown storage type"):
        planned([{"path": "f", "deletion_vector": VECTOR | {"storage_type": "z"}}])
    with pytest.raises(CorruptTableError, match="The log describes a deletion vector of f that is not valid"):
        planned([{"path": "f", "deletion_vector": VECTOR | {"size_bytes": -5}}])


def test_an_empty_version_has_no_splits():
    for where in (None, "id > 3"):
        plan = planned([], where=where)

        assert plan.splits == ()
        assert plan.skipped().num_rows == 0


def test_files_are_skipped_by_partition_and_by_statistics_and_it_is_reported():
    table_metadata = metadata(schema_json([("id", "long"), ("p", "date")]), partition_by=["p"])
    adds = [
        {"path": "0", "partition_values": [("p", "2020-01-01")], "stats": '{"numRecords":3}'},
        {
            "path": "1",
            "partition_values": [("p", "2020-01-02")],
            "stats": '{"numRecords":4,"minValues":{"id":1},"maxValues":{"id":5},"nullCount":{"id":0}}',
        },
        {"path": "2", "partition_values": [("p", "2020-01-02")]},
        {"path": "3", "partition_values": [("p", None)]},
    ]

    plan = planned(adds, table_metadata, where="p >= '2020-01-02' AND id > 5")

    assert [split.files for split in plan.splits] == [("2",)]
    assert [tuple(row.values()) for row in plan.skipped().to_pylist()] == [
        ([("p", "2020-01-01")], None, 1, 3, 10, "partition"),
        ([("p", "2020-01-02")], None, 1, 4, 10, "statistics of id"),
        ([("p", None)], None, 1, None, 10, "partition"),
    ]


@pytest.mark.parametrize(
    ("kind", "collations", "shown"),
    [
        ("string", {"c": "spark.UTF8_LCASE"}, "spark.UTF8_LCASE"),
        ("string collate UNICODE_CI", None, "UNICODE_CI"),
        ({"type": "array", "elementType": "string", "containsNull": True}, {"c.element": "icu.de"}, "icu.de"),
        (
            {
                "type": "struct",
                "fields": [{"name": "x", "type": "string", "metadata": {"__COLLATIONS": {"x": "icu.UNICODE_CI"}}}],
            },
            None,
            "icu.UNICODE_CI",
        ),
        ("string", {"c": "spark.UTF8_BINARY"}, None),
        ("string", None, None),
    ],
)
def test_a_condition_on_a_column_with_a_collation_is_refused(kind, collations, shown):
    more = {} if collations is None else {"__COLLATIONS": collations}
    collated = metadata(schema_json([("id", "long"), ("c", kind, more)]))

    assert planned([{"path": "0"}], collated, where="id = 1").splits
    if shown is None:
        assert planned([{"path": "0"}], collated, where="c = 'a'").splits
        return
    with pytest.raises(UnsupportedFeatureError, match=f"'c', which has the collation {shown}"):
        planned([{"path": "0"}], collated, where="c IS NOT NULL AND id = 1")


def test_planning_opens_no_data_file():
    table = new()
    table.commit(add("not-there", stats={"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 2}}))

    assert plan_of(table, "id = 2").splits
    assert not plan_of(table, "id = 3").splits


FIELDS = [
    ("n", "integer"),
    ("s", "string"),
    ("x", "double"),
    ("d", "decimal(20,4)"),
    ("t", "timestamp"),
    ("day", "date"),
    ("p", "string"),
]
ROW = st.tuples(
    st.none() | st.integers(-3, 3),
    st.none() | st.text(st.sampled_from("aZz\u007f\uffff😀"), max_size=3) | st.just("a" * 31 + "😀😀"),
    st.none() | st.sampled_from([-1.5, 0.0, 2.0, float("nan"), float("inf")]),
    st.none() | st.sampled_from([Decimal("-1.5"), Decimal(0), Decimal("1234567890123456.1234")]),
    st.none()
    | st.sampled_from([datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=n) for n in (0, 1, 999, 1000)]),
    st.none() | st.sampled_from([date(2020, 1, 1), date(1, 1, 1)]),
)
WHERE = st.sampled_from(
    [
        "n = 1",
        "n > 0 AND p = 'a'",
        "n IS NULL",
        "n IS NOT NULL OR p IS NULL",
        "n IN (2, 3)",
        "NOT (n < 2)",
        "s = 'a'",
        "s > 'z'",
        "s >= 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa😀'",
        "s LIKE 'a%'",
        "s < 'Z' OR x > 1",
        "x > 1.5",
        "x = 'NaN'::DOUBLE",
        "x <= 0",
        "d > 0.1",
        "d = 1234567890123456.1234",
        "d < -1",
        "t > '2020-01-01 00:00:00.0005+00'",
        "t = '2020-01-01 00:00:00.000999+00'",
        "t < '2020-01-01 00:00:00.000001+00'",
        "day < '1000-01-01'",
        "day = '2020-01-01' AND n >= 3",
        "p < 'b'",
        "p IS NULL AND n = 0",
    ]
)


def as_delta_writes(rows, deleted):
    """Return statistics of rows as Delta's own writer makes them: texts and times cut, NaN spelled, bounds wide."""
    stats = {"numRecords": len(rows), "minValues": {}, "maxValues": {}, "nullCount": {}}
    for place, (name, kind) in enumerate(FIELDS[:-1]):
        values = [row[place] for row in rows if row[place] is not None]
        stats["nullCount"][name] = len(rows) - len(values)
        if not values:
            continue
        if kind == "double":
            least, greatest = min(values, key=_order), max(values, key=_order)
        elif kind == "string":
            least, greatest = min(values, key=str.encode), max(values, key=str.encode)
        else:
            least, greatest = min(values), max(values)
        stats["minValues"][name] = _spelled(least, kind, is_upper=False)
        stats["maxValues"][name] = _spelled(greatest, kind, is_upper=True)
    if deleted:
        stats["tightBounds"] = False
    return _json(stats)


def _order(value):
    return (math.isnan(value), value)


def _spelled(value, kind, *, is_upper):
    if kind == "string":
        return value if len(value) <= 32 else value[:32] + ("\U0010ffff" if is_upper else "")
    if kind == "double":
        return "NaN" if math.isnan(value) else "Infinity" if value == float("inf") else value
    if kind == "timestamp":
        return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
    if kind == "date":
        return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    return value


def _json(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_json(part)}" for key, part in value.items()) + "}"
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


SCHEMA = pa.schema(
    {
        "n": pa.int32(),
        "s": pa.string(),
        "x": pa.float64(),
        "d": pa.decimal128(20, 4),
        "t": pa.timestamp("us", tz="UTC"),
        "day": pa.date32(),
    }
)
FILE = st.tuples(
    st.lists(ROW, min_size=1, max_size=5), st.sampled_from(["a", "b", None]), st.booleans(), st.sets(st.integers(0, 4))
)


@settings(max_examples=40, deadline=None)
@given(st.lists(FILE, min_size=1, max_size=4), WHERE)
def test_a_condition_gives_the_rows_that_it_gives_after_reading_all(files, where):
    table = new(fields=FIELDS, partition_by=["p"], features=["deletionVectors"])
    actions = []
    for number, (rows, value, has_stats, vector_difference) in enumerate(files):
        gone = {position for position in vector_difference if position < len(rows)}
        vector = inline_vector(gone) if gone else None
        stats = as_delta_writes(rows, gone) if has_stats else f'{{"numRecords":{len(rows)}}}'
        add = table.data(f"{number}.parquet", rows, partition={"p": value}, schema=SCHEMA, stats=stats, vector=vector)
        actions.append(add)
    table.commit(*actions)

    every = table_of(table)
    condition = condition_of(where, every.schema)
    wanted = every.filter(condition.mask(every))

    assert sorted(map(repr, table_of(table, where=where).to_pylist())) == sorted(map(repr, wanted.to_pylist()))
    assert state_of(table).version == 1
