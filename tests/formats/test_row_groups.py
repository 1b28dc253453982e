"""Row groups are left out by their statistics only if no row in them matches, in every format."""

import math
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import snapshot_explorer
from snapshot_explorer.storage import Storage
from tests.inner.delta import read as delta
from tests.inner.engines import filter_rows, parse_condition
from tests.inner.formats import runs
from tests.inner.iceberg import RowReader
from tests.inner.paimon import PaimonVector
from tests.inner.paimon import read as paimon
from tests.support import vector_bytes
from tests.support.delta.log_reader import plan_of
from tests.support.delta.table_builder import DeltaTable, add, inline_vector
from tests.support.filesystems import counting
from tests.support.iceberg.live_files import RECORDED, Version, field
from tests.support.paimon import splits as paimon_files

TYPES = {
    "i": ("integer", "INT", pa.int32(), [-(2**31), -1, 0, 5, 2**31 - 1]),
    "l": ("long", "BIGINT", pa.int64(), [-(2**63), -1, 0, 5, 2**63 - 1]),
    "x": ("double", "DOUBLE", pa.float64(), [math.nan, -math.inf, -0.0, 0.0, 5.0]),
    "s": ("string", "STRING", pa.string(), ["", "a", "b", "é", "\U0001f600", "a" * 100, "a" * 99 + "b"]),
    "f": ("boolean", "BOOLEAN", pa.bool_(), [True, False]),
    "d": ("date", "DATE", pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(1970, 1, 1), date(9999, 12, 31)]),
    "m": (
        "timestamp_ntz",
        "TIMESTAMP(6)",
        pa.timestamp("us"),
        [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2026, 1, 1)],  # noqa: DTZ001
    ),
    "z": (
        "timestamp",
        "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        pa.timestamp("us", tz="UTC"),
        [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)],
    ),
    "p": ("decimal(12,2)", "DECIMAL(12, 2)", pa.decimal128(12, 2), [Decimal("-0.01"), Decimal("5.00"), Decimal("9e9")]),
}
SCHEMA = pa.schema([(name, kind) for name, (_, _, kind, _) in TYPES.items()])
CONDITIONS = [
    "i = 5",
    "i <> 5",
    "not (i < 0)",
    "i in (1, 5) or s is null",
    "l > 4 and i > -2",
    "l + 1 > 6",
    "x > 4",
    "x = 'nan'::double",
    "x <= 0",
    "x is null",
    "s >= 'a'",
    "s = repeat('a', 99) || 'b'",
    "s = 'é'",
    "s like 'a%'",
    "s not like 'a%'",
    "f",
    "not f or f is null",
    "d < date '1600-01-01'",
    "d is not null and d <> date '1970-01-01'",
    "m >= timestamp '1969-12-31 23:59:59.999999'",
    "z between timestamptz '2000-01-01 00:00:00+00' and timestamptz '2030-01-01 00:00:00+00'",
    "p > 0",
    "p = 5",
    "random() < 2 and i = 0",
]
ROWS = st.fixed_dictionaries(
    {
        name: st.lists(st.none() | st.sampled_from(values), min_size=12, max_size=12)
        for name, (_, _, _, values) in TYPES.items()
    }
)


WIDE = {"row_group_size": 2, "store_decimal_as_integer": True}


def in_delta(folder, rows, gone, **options):
    del folder
    table = DeltaTable(
        fsspec.filesystem("memory"),
        f"/{uuid.uuid4().hex}/t",
        fields=[(name, kind) for name, (kind, _, _, _) in TYPES.items()],
        features=["deletionVectors", "timestampNtz"],
        configuration={
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version-col",
        },
    )
    content = paimon_files.parquet(rows, **WIDE | options)
    table.write("f", content)
    vector = inline_vector(gone) if gone else None
    added = add("f", size=len(content), rows=len(rows), vector=vector, baseRowId=100, defaultRowCommitVersion=1)
    table.commit(added)
    (split,) = plan_of(table).splits
    return lambda predicate: delta.read(Storage(table.url), split, [*TYPES, "_row_id"], predicate)


def in_iceberg(folder, rows, gone, **options):
    names = {"integer": "int", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}
    kinds = [(name, names.get(kind, kind)) for name, (kind, _, _, _) in TYPES.items()]
    version = Version(folder, *(field(number, name, kind) for number, (name, kind) in enumerate(kinds, 1)))
    ids = [one.with_metadata({"PARQUET:field_id": str(number)}) for number, one in enumerate(rows.schema, 1)]
    name = f"{uuid.uuid4().hex}.parquet"
    pq.write_table(rows.cast(pa.schema(ids)), version.folder / name, **WIDE | options)
    version.data_files.append(version.entry(name, 0, len(rows), 1, (0, ())))
    if gone:
        version.position_deletes(f"of-{name}", [(RECORDED + name, place) for place in sorted(gone)])
    (split,) = version.plan().splits
    return lambda predicate: RowReader(Storage(version.folder)).read(split, [*TYPES, "_pos"], predicate)


def in_paimon(folder, rows, gone, **options):
    del folder
    body = b"\x01" + vector_bytes.vector_32(gone)
    content = paimon_files.parquet(rows, **WIDE | options)
    files = paimon_files.Files({"bucket-0/a.parquet": content, "i": body})
    entry = paimon_files.entry("a.parquet", len(rows), size_bytes=len(content), first_row_id=100)
    vector = PaimonVector(path="i", offset=1, length=None, cardinality=len(gone))
    schema = paimon_files.schema([(name, kind) for name, (_, kind, _, _) in TYPES.items()])
    (split,) = paimon_files.splits(
        schema,
        [entry],
        vectors={(entry["partition"], 0, "a.parquet"): vector} if gone else {},
        options={"deletion-vectors.enabled": "true", "row-tracking.enabled": "true"},
    )
    return lambda predicate: paimon.read(files, split, [*TYPES, "_ROW_ID"], predicate)


FORMATS = pytest.mark.parametrize("in_format", [in_delta, in_iceberg, in_paimon])


def rows_of(**columns):
    return pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in TYPES})


def ascending(count, **options):
    """Rows whose values ascend, as far as there are enough, and are null at the end."""
    del options
    columns = {name: sorted(values, key=repr)[:count] for name, (_, _, _, values) in TYPES.items()}
    columns |= {"i": list(range(count)), "l": list(range(count))}
    return rows_of(**{name: values + [None] * (count - len(values)) for name, values in columns.items()})


@FORMATS
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=ROWS, gone=st.sets(st.integers(0, 11)))
@example(columns={name: [None] * 12 for name in TYPES}, gone=set(range(12)))
def test_a_condition_leaves_out_only_row_groups_without_a_match(tmp_path, in_format, columns, gone):
    read = in_format(tmp_path, rows_of(**columns), gone)
    batches = list(read(None))
    whole = pa.Table.from_batches(batches, None if batches else SCHEMA)

    assert whole.num_rows == 12 - len(gone)
    for where in CONDITIONS:
        chosen = parse_condition(where, SCHEMA)
        found = [filter_rows(pa.Table.from_batches([batch]), chosen) for batch in read(chosen)]
        expected = filter_rows(whole, chosen).to_pylist()
        assert repr([row for part in found for row in part.to_pylist()]) == repr(expected), where


@FORMATS
@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("i = 5", {4, 5}),
        ("l >= 10", {10, 11}),
        ("s is not null and i > 7", set()),
        ("p is not null", {0, 1, 2, 3}),
        ("d < date '0100-01-01'", {0, 1}),
        ("i < 2 or l > 9", {0, 1, 10, 11}),
        ("x > 100", set(range(12)) - {6, 7, 8, 9, 10, 11}),
        ("i + 0 = 5", set(range(12))),
    ],
)
def test_row_groups_are_left_out_by_their_statistics(tmp_path, in_format, where, rows):
    read = in_format(tmp_path, ascending(12), {4, 11})

    found = [batch for batch in read(parse_condition(where, SCHEMA)) if batch.num_rows]

    assert {number for batch in found for number in batch.column("i").to_pylist()} == rows - {4, 11}
    for batch in found:  # positions count the rows that were left out
        places = np.asarray(batch.column(len(TYPES))) % 100
        assert places.tolist() == batch.column("i").to_pylist()


@FORMATS
@pytest.mark.parametrize("options", [{"write_statistics": False}, {"row_group_size": 100}, {"coerce_timestamps": "ms"}])
def test_files_without_statistics_or_in_other_units_are_read_whole(tmp_path, in_format, options):
    rows = ascending(12).set_column(6, "m", pa.array([datetime(2026, 1, 1)] * 12, pa.timestamp("us")))  # noqa: DTZ001
    read = in_format(tmp_path, rows, set(), **options)

    found = list(read(parse_condition("m < timestamp '2000-01-01 00:00:00'", SCHEMA)))

    assert sum(batch.num_rows for batch in found) == 12


def test_row_groups_that_are_left_out_are_not_requested_from_an_object_store(register):
    store = register(counting("rowgroups"))
    table = DeltaTable(fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}/t", fields=[("id", "long"), ("x", "double")])
    ids = np.arange(300_000)
    rows = pa.table({"id": ids, "x": np.random.default_rng(1).random(len(ids))})
    content = paimon_files.parquet(rows, row_group_size=30_000)
    table.write("f", content)
    table.commit(add("f", size=len(content), rows=len(rows)))
    current = snapshot_explorer.open_table(table.url.replace("memory://", "rowgroups://")).current

    def requested(where):
        store.requests.clear()
        found = current.to_arrow(where=where)
        return found.num_rows, sum(request.bytes for request in store.requests)

    whole, one = requested("id + 0 < 1000"), requested("id < 1000")

    assert whole[0] == one[0] == 1000
    assert one[1] < whole[1] / 4


@pytest.mark.parametrize(
    ("keep", "groups"),
    [([0], [0]), ([9], [0]), ([10], [1]), ([19], [1]), ([29], [2]), ([9, 10], [0, 1]), ([0, 29], [0, 2]), ([], [])],
)
def test_row_groups_with_the_first_or_the_last_requested_position_are_read(keep, groups):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(30)}), sink, row_group_size=10)
    metadata = pq.read_metadata(pa.BufferReader(sink.getvalue()))

    chosen = list(runs(metadata, np.array(keep, np.int64)))

    assert [group for run in chosen for group in run.groups] == groups
    assert all(run.start == 10 * run.groups[0] and run.rows == 10 * len(run.groups) for run in chosen)
