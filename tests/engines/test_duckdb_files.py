"""DuckDB reads files itself where their footers prove that it returns the rows of the version."""

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import snapshot_explorer
from snapshot_explorer import results
from snapshot_explorer.engines import duckdb_files
from snapshot_explorer.errors import CorruptTableError, InvalidArgumentError
from snapshot_explorer.table import parts_of
from tests.inner.engines import filter_rows, parse_condition, scan_of
from tests.support.delta.table_builder import DeltaTable, add

FIELDS = [
    ("id", "long"),
    ("small", "short"),
    ("x", "double"),
    ("y", "float"),
    ("name", "string"),
    ("raw", "binary"),
    ("flag", "boolean"),
    ("day", "date"),
    ("moment", "timestamp"),
    ("local", "timestamp_ntz"),
    ("price", "decimal(12,2)"),
]
TYPES = {
    "id": pa.int64(),
    "small": pa.int16(),
    "x": pa.float64(),
    "y": pa.float32(),
    "name": pa.string(),
    "raw": pa.binary(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "moment": pa.timestamp("us", tz="UTC"),
    "local": pa.timestamp("us"),
    "price": pa.decimal128(12, 2),
}
MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - a time without a zone
VALUES = {
    "id": [-(2**63), -1, 0, 1, 5, 2**63 - 1],
    "small": [-32768, 0, 5, 32767],
    "x": [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, 5.0],
    "y": [math.nan, 0.0, 2.5],
    "name": ["", "a", "b", "é", "\U0001f600", "a" * 100, "a" * 99 + "b", "it's"],
    "raw": [b"", b"\x00", b"\xff" * 70, b"a"],
    "flag": [True, False],
    "day": [date(1, 1, 1), date(1582, 10, 4), date(1970, 1, 1), date(9999, 12, 31)],
    "moment": [MOMENT.replace(tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)],
    "local": [MOMENT, MOMENT + timedelta(microseconds=1), datetime(9999, 12, 31)],  # noqa: DTZ001 - likewise
    "price": [Decimal("0.00"), Decimal("-0.01"), Decimal("9999999999.99"), Decimal("5.00")],
}
CONDITIONS = [
    "x > 5",
    "x <= 5",
    "not (x < 1)",
    "x = 'nan'::double",
    "isnan(y)",
    "x in (5.0, 'nan'::double)",
    "x between -0.0 and 0.0",
    "greatest(x, 1) > 100",
    "y >= x",
    "name >= 'a'",
    "name = repeat('a', 99) || 'b'",
    "name like 'a%'",
    "name < 'é' or flag",
    "raw > '\\x00'::blob",
    "flag is null",
    "day < date '1600-01-01'",
    "moment >= timestamptz '1970-01-01 00:00:00+00'",
    "local <> timestamp '1969-12-31 23:59:59.999999'",
    "price > 0 and id < 5",
    "id = 5",
    "id + 0 = 5",
    "small in (5, 7)",
    "coalesce(x, 6) > 5",
    "true",
    "1 = 2",
]


def rows_of(columns):
    return pa.table({name: pa.array(columns[name], TYPES[name]) for name in TYPES})


def table_of(folder, parts, **options):
    table = DeltaTable(None, folder, fields=FIELDS)
    for number, rows in enumerate(parts):
        path = folder / f"part-{number}.parquet"
        pq.write_table(rows, path, **options)
        table.commit(add(path.name, size=path.stat().st_size, rows=rows.num_rows))
    return snapshot_explorer.open_table(str(folder)).current


def by_files(snapshot, columns=None, where=None, limit=None):
    scan = scan_of(snapshot.arrow_schema, columns, where, limit)
    return duckdb_files.select_rows(
        parts_of(snapshot).loaded.version, parts_of(snapshot).loaded.version.plan(scan.condition).splits, scan
    )


def same(left, right):
    """Whether tables have the same types and values, NaN being equal to NaN and -0.0 not to 0.0."""
    return left.schema.equals(right.schema) and repr(left.to_pylist()) == repr(right.to_pylist())


COLUMNS = st.fixed_dictionaries(
    {name: st.lists(st.none() | st.sampled_from(values), min_size=7, max_size=7) for name, values in VALUES.items()}
)


@settings(max_examples=4, deadline=None)
@given(parts=st.lists(COLUMNS, min_size=1, max_size=3))
def test_each_condition_matches_the_rows_that_it_matches_in_memory(tmp_path_factory, parts):
    tables = [rows_of(part) for part in parts]
    snapshot = table_of(tmp_path_factory.mktemp("table"), tables, row_group_size=3)
    whole = snapshot.to_arrow()

    for where in CONDITIONS:
        wanted = filter_rows(whole, parse_condition(where, whole.schema))
        found = by_files(snapshot, where=where)
        assert found is not None
        assert same(found, wanted), where
        assert snapshot.count(where) == wanted.num_rows, where


@settings(max_examples=4, deadline=None)
@given(parts=st.lists(COLUMNS, min_size=1, max_size=2))
def test_queries_over_files_return_what_they_return_over_rows_in_memory(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("table")
    whole = table_of(folder, [rows_of(part) for part in parts], row_group_size=3).to_arrow()
    table = snapshot_explorer.open_table(str(folder))

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", whole)
        connection.execute("CREATE TABLE this AS FROM rows")  # older ones compare NaN otherwise in Arrow data
        for where in CONDITIONS:
            query = (
                f"select count(*) n, count(x), max(x + 0), min(y), bool_or(x > 5), max(name) from this where {where}"
            )
            assert repr(table.sql(query).to_dict("list")) == repr(as_pandas(connection.sql(query)).to_dict("list")), (
                where
            )


def as_pandas(relation):
    return results.as_pandas(relation.to_arrow_table())


def test_rows_come_in_the_order_of_files_up_to_a_limit(tmp_path):
    parts = [pa.table({"id": pa.array(range(start, start + 50), pa.int64())}) for start in (100, 0, 50)]
    snapshot = table_of(tmp_path, [with_nulls(part) for part in parts])

    found = by_files(snapshot, ["id"], "id % 2 = 0", 30)

    assert found["id"].to_pylist() == [*range(100, 150, 2), *range(0, 10, 2)]


def test_rows_without_columns_are_counted_up_to_a_limit(tmp_path):
    parts = [pa.table({"id": pa.array(range(start, start + 50), pa.int64())}) for start in (0, 50)]
    snapshot = table_of(tmp_path, [with_nulls(part) for part in parts])

    assert by_files(snapshot, [], "id >= 40").num_rows == 60
    assert by_files(snapshot, [], "id >= 40", 20).num_rows == 20


def with_nulls(rows):
    return pa.table(
        {name: rows[name] if name in rows.column_names else pa.nulls(len(rows), TYPES[name]) for name in TYPES}
    )


def partitioned(tmp_path):
    table = DeltaTable(None, tmp_path, fields=[('a "b"', "long"), ("day", "date")], partition_by=["day"])
    for number, day in enumerate(["2026-01-01", "2026-01-02", None]):
        name = f"day={day}/part-{number}.parquet"
        (tmp_path / name).parent.mkdir()
        pq.write_table(pa.table({'a "b"': pa.array([number, 7], pa.int64())}), tmp_path / name)
        table.commit(add(name, partition={"day": day}, size=(tmp_path / name).stat().st_size, rows=2))
    return snapshot_explorer.open_table(str(tmp_path)).current


def test_files_are_read_without_the_partition_columns(tmp_path):
    assert by_files(partitioned(tmp_path), ['a "b"']).to_pylist() == [{'a "b"': value} for value in (0, 7, 1, 7, 2, 7)]


def test_partition_values_and_odd_names_are_those_of_the_table(tmp_path):
    found = by_files(partitioned(tmp_path), where='"a ""b""" = 7 and (day > \'2026-01-01\' or day is null)')

    assert found.to_pylist() == [{'a "b"': 7, "day": date(2026, 1, 2)}, {'a "b"': 7, "day": None}]


def written(folder, rows, **options):
    table = DeltaTable(None, folder, fields=[("id", "long")])
    path = folder / "part-0.parquet"
    pq.write_table(rows, path, **options)
    table.commit(add(path.name, size=path.stat().st_size, rows=rows.num_rows))
    return snapshot_explorer.open_table(str(folder)).current


def test_files_whose_pages_carry_checksums_are_read_if_these_are_right(tmp_path):
    rows = pa.table({"id": pa.array(range(10_000), pa.int64())})
    plain = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    snapshot = written(tmp_path, rows, row_group_size=5_000, **plain)
    path = tmp_path / "part-0.parquet"

    assert by_files(snapshot, where="id >= 5000").num_rows == 5_000

    content = bytearray(path.read_bytes())
    content[content.find((4_000).to_bytes(8, "little"))] ^= 1
    path.write_bytes(content)

    assert by_files(snapshot, where="id >= 5000").num_rows == 5_000
    assert by_files(snapshot, where="id < 5000") is None
    with pytest.raises(CorruptTableError, match=r"part-0\.parquet"):
        snapshot.to_arrow(where="id < 5000")


def test_files_in_a_narrower_type_are_left_to_the_reader_of_the_format(tmp_path):
    snapshot = written(tmp_path, pa.table({"id": pa.array([1, 2], pa.int32())}))

    assert by_files(snapshot, where="id = 2") is None
    assert snapshot.to_arrow(where="id = 2")["id"].to_pylist() == [2]


def test_a_file_that_lacks_a_column_is_left_to_the_reader_of_the_format(tmp_path):
    snapshot = written(tmp_path, pa.table({"other": pa.array([1, 2])}))

    assert by_files(snapshot, where="id = 2") is None


def test_a_damaged_file_is_named(tmp_path):
    snapshot = written(tmp_path, pa.table({"id": pa.array(range(10_000), pa.int64())}), compression="snappy")
    path = tmp_path / "part-0.parquet"
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(content)

    with pytest.raises(CorruptTableError, match=r"part-0\.parquet"):
        snapshot.to_arrow(where="id = 2")


def test_a_condition_that_fails_at_a_value_says_so(tmp_path):
    snapshot = table_of(tmp_path, [with_nulls(pa.table({"name": ["1", "one"]}))])

    with pytest.raises(InvalidArgumentError, match="TRY_CAST"):
        snapshot.to_arrow(where="cast(name as integer) = 1")


def test_a_query_over_files_reaches_no_other_file(tmp_path):
    (tmp_path / "table").mkdir()
    secret = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"a": [1]}), secret)
    written(tmp_path / "table", pa.table({"id": pa.array([1, 2], pa.int64())}))
    table = snapshot_explorer.open_table(str(tmp_path / "table"))

    assert table.sql("select sum(id) s from this")["s"].to_list() == [3]
    for query in (f"select * from read_parquet('{secret}')", f"select id from this, '{secret}'"):
        with pytest.raises(InvalidArgumentError):
            table.sql(query)
