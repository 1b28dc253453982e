"""What bounds rule out: never a file with a row that passes, and the files that obviously have none."""

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot_explorer.errors import InvalidArgumentError
from tests.inner.core import Bounds
from tests.inner.engines import parse_condition
from tests.support.old_libraries import is_older

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("m", pa.timestamp("ms")),
        ("e", pa.decimal128(10, 2)),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.int32())),
    ]
)


def bounds_of(*files, schema=SCHEMA):
    """Return the exact bounds of some files' rows; NaN is left out of them, as writers of parquet do."""
    lower, upper, nulls = ({name: [] for name in schema.names} for _ in range(3))
    for rows in files:
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            nulls[name].append(column.null_count)
            values = column.filter(pc.invert(pc.is_nan(column).fill_null(False))) if name == "f" else column  # noqa: FBT003
            ends = {"min": None, "max": None} if pa.types.is_list(column.type) else pc.min_max(values).as_py()
            lower[name].append(ends["min"])
            upper[name].append(ends["max"])
    return Bounds(
        lower=pa.table(lower, schema=schema),
        upper=pa.table(upper, schema=schema),
        null_count=pa.table({name: pa.array(counts, pa.int64()) for name, counts in nulls.items()}),
        rows=pa.array([rows.num_rows for rows in files], pa.int64()),
    )


def rows_of(**columns):
    count = len(next(iter(columns.values())))
    return pa.table([pa.array(columns.get(f.name, [None] * count), f.type) for f in SCHEMA], schema=SCHEMA)


FILE = rows_of(
    i=[3, 7, None],
    f=[1.5, 2.5, 2.0],
    s=["abd", "abz", "aby"],
    d=[dt.date(2026, 1, 1), dt.date(2026, 1, 9), None],
    m=[dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2), None],  # noqa: DTZ001 - without zone
    e=[Decimal("1.50"), Decimal("2.50"), None],
    b=[True, True, None],
)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("i = 8", "i"),
        ("8 < i", "i"),
        ("i < 3", "i"),
        ("i <= 2.5", "i"),
        ("i IN (1, 9)", "i"),
        ("i BETWEEN 8 AND 20", "i"),
        ("i > 7 OR s = 'x'", "i, s"),
        ("i > 0 AND s = 'x'", "s"),
        ("NOT (i >= 3)", "i"),
        ("NOT (i > 0 AND s > 'a')", "i, s"),
        ("s IS NULL", "s"),
        ("l IS NOT NULL", "l"),
        ("s LIKE 'b%'", "s"),
        ("s LIKE 'abe%f_'", None),
        ("s LIKE 'aa%f_'", "s"),
        ("s NOT LIKE 'ab%'", "s"),
        ("starts_with(s, 'aa')", "s"),
        ("d >= '2026-02-01'", "d"),
        ("d < TIMESTAMP '2025-06-01 12:00:00'", "d"),
        ("m > '2026-01-02'", "m"),
        ("e > 2.5", "e"),
        ("e IN (1, 3.75)", "e"),
        ("f < 1.5", "f"),
        ("f = 7", "f"),
        ("f BETWEEN 3 AND 4", "f"),
        ("NOT b", "b"),
        ("b = false", "b"),
        # What is true of some row, or may be.
        ("i = 3", None),
        ("i <> 3", None),
        ("i IS NULL", None),
        ("f > 100", None),  # NaN is greater than all else, and bounds may leave it out
        ("f = 'nan'::DOUBLE", None),
        ("f BETWEEN 3 AND 'nan'::DOUBLE", None),
        ("b", None),
        # What would be cast, computed or compared with another column.
        ("s = CAST(99 AS VARCHAR) || 'x'", None),
        ("i + 1 > 100", None),
        ("i > length(s)", None),
        ("i IN (99, 100::DOUBLE)", None),
        ("s COLLATE NOCASE = 'zzz'", None),
        ("i IS DISTINCT FROM 3", None),
        ("i = NULL", None),
        ("1 = 2", None),
    ],
)
def test_a_file_is_ruled_out_by(text, columns):
    found = parse_condition(text, SCHEMA).ruled_out(bounds_of(FILE))

    assert found.to_pylist() == [columns]
    assert parse_condition(text, SCHEMA).mask(FILE).true_count == 0 or columns is None


def test_what_is_unknown_rules_nothing_out():
    unknown = pa.nulls(1, pa.int64())
    none = SCHEMA.empty_table()
    nulls = pa.table({field.name: pa.nulls(1, field.type) for field in SCHEMA})
    nothing = Bounds(
        lower=nulls, upper=nulls, null_count=pa.table(dict.fromkeys(SCHEMA.names, unknown)), rows=pa.array([3])
    )
    absent = Bounds(lower=none.select([]), upper=none.select([]), null_count=none.select([]), rows=pa.array([3]))

    for text in ("i = 8", "i IS NULL", "i IS NOT NULL", "s LIKE 'b%'", "NOT b", "f < 0", "i IN (1, 2)"):
        for bounds in (nothing, absent):
            assert parse_condition(text, SCHEMA).ruled_out(bounds).to_pylist() == [None]


def test_a_column_of_nulls_passes_no_comparison():
    found = parse_condition("i > 0 OR NOT (i > 0)", SCHEMA).ruled_out(bounds_of(rows_of(i=[None, None])))

    assert found.to_pylist() == ["i"]


def test_a_bound_that_can_not_be_compared_rules_nothing_out():
    schema = pa.schema([("n", pa.decimal128(38, 0))])
    bounds = Bounds(
        lower=pa.table({"n": pa.array([Decimal(10**37)], pa.decimal128(38, 0))}),
        upper=pa.table({"n": pa.array([Decimal(10**37)], pa.decimal128(38, 0))}),
        null_count=pa.table({"n": [0]}),
        rows=pa.array([1]),
    )

    assert parse_condition("n < 1.0000000000000000000000000001", schema).ruled_out(bounds).to_pylist() in (
        [None],
        ["n"],
    )


def test_a_text_with_a_null_character_is_not_compared_by_its_beginning():
    rows = rows_of(s=["a\0b", "c"])
    if is_older("duckdb", "2.0"):
        with pytest.raises(InvalidArgumentError, match="unterminated quoted string"):
            parse_condition("s = 'a\0b'", SCHEMA)
        return

    for text in ("s = 'a\0b'", "s = 'a\0b' AND i IS NULL", "s LIKE 'a\0b%'"):
        found = parse_condition(text, SCHEMA)

        assert found.mask(rows).to_pylist() == [True, False]
        assert found.on(frozenset("si")).mask(rows).to_pylist() == [True, False]
        assert found.ruled_out(bounds_of(rows.slice(0, 1))).to_pylist() == [None]
        assert found.points(pa.schema([SCHEMA.field("s")])) is None


def test_points_are_the_values_that_must_be_there():
    found = parse_condition("s = 'x' AND i IN (1, 2) AND f > 0", SCHEMA).points(
        SCHEMA.field("i") and pa.schema(list(SCHEMA)[:1])
    )

    assert [values.to_pylist() for values in found] == [[1, 2]]
    assert found[0].type == pa.int32()


@pytest.mark.parametrize("text", ["i > 1", "i = 1 OR s = 'x'", "i = 1.5", "i = 1e0", "i = 99999999999", "i = NULL"])
def test_points_are_not_guessed(text):
    assert parse_condition(text, SCHEMA).points(pa.schema([SCHEMA.field("i")])) is None


NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
FLOATS = st.one_of(st.none(), st.sampled_from([-1.5, -0.0, 0.0, 1.5, math.nan, math.inf]))
TEXTS = st.one_of(st.none(), st.text(alphabet="ab%é", max_size=3))
TRUTHS = st.one_of(st.none(), st.booleans())
ATOMS = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["i", "f", "e"]),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        st.sampled_from(["-1", "0", "1", "0.5", "1e0", "'nan'::DOUBLE"]),
    ),
    st.builds("s {} '{}'".format, st.sampled_from(["=", "<", ">", "LIKE", "NOT LIKE"]), st.text("ab%_", max_size=3)),
    st.builds("i IN ({}, {})".format, st.integers(-3, 3), st.integers(-3, 3)),
    st.builds("f BETWEEN {} AND {}".format, st.integers(-2, 2), st.integers(-2, 2)),
    st.builds("{} IS {}NULL".format, st.sampled_from(["i", "f", "s", "b"]), st.sampled_from(["", "NOT "])),
    st.sampled_from(["b", "b = false", "i + 1 = 2"]),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("(NOT {})".format, inner),
    ),
    max_leaves=5,
)
ROWS = st.lists(st.tuples(NUMBERS, FLOATS, TEXTS, NUMBERS, TRUTHS), min_size=1, max_size=3)


@settings(deadline=None, max_examples=60)
@given(st.lists(ROWS, min_size=1, max_size=3), st.lists(CONDITIONS, min_size=1, max_size=3))
def test_no_file_with_a_row_that_passes_is_ruled_out(files, texts):
    tables = [
        rows_of(
            i=[r[0] for r in rows],
            f=[r[1] for r in rows],
            s=[r[2] for r in rows],
            e=[r[3] for r in rows],
            b=[r[4] for r in rows],
        )
        for rows in files
    ]
    bounds = bounds_of(*tables)

    for text in texts:
        found = parse_condition(text, SCHEMA)
        for rows, reason in zip(tables, found.ruled_out(bounds).to_pylist(), strict=True):
            assert reason is None or found.mask(rows).true_count == 0, text
