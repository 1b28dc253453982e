"""Partition values as text."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from snapshot_explorer.errors import UnsupportedFeatureError
from tests.inner.paimon import arrow_type, legacy_text, parse_type, sql_text

NOON = 1_700_000_000_000


@pytest.mark.parametrize(
    ("kind", "value", "sql", "legacy"),
    [
        ("BOOLEAN", True, "true", "true"),
        ("INT", -7, "-7", "-7"),
        ("STRING", "a b", "a b", "a b"),
        ("DATE", date(2022, 1, 8), "2022-01-08", "19000"),
        ("TIME(0)", 3_723_000, "01:02:03", "3723000"),
        ("TIME(3)", 3_723_004, "01:02:03.004", "3723004"),
        ("DECIMAL(10, 2)", Decimal("12.30"), "12.30", "12.30"),
        ("DECIMAL(38, 10)", Decimal("0.0000000001"), "0.0000000001", "0.0000000001"),
        ("FLOAT", 1.1, "1.1", "1.1"),
        ("DOUBLE", 1e20, "1.0E20", "1.0E20"),
        ("DOUBLE", 0.0001, "1.0E-4", "1.0E-4"),
        ("DOUBLE", 1234567.5, "1234567.5", "1234567.5"),
        ("DOUBLE", float("inf"), "Infinity", "Infinity"),
        ("DOUBLE", float("nan"), "NaN", "NaN"),
        ("TIMESTAMP(3)", NOON + 123, "2023-11-14 22:13:20.123", "2023-11-14T22:13:20.123"),
        ("TIMESTAMP(0)", NOON, "2023-11-14 22:13:20", "2023-11-14T22:13:20"),
        ("TIMESTAMP(6)", NOON * 1_000 + 123_456, "2023-11-14 22:13:20.123456", "2023-11-14T22:13:20.123456"),
        ("TIMESTAMP(6)", (NOON - 20_000) * 1_000, "2023-11-14 22:13:00.000000", "2023-11-14T22:13"),
        ("TIMESTAMP_LTZ(9)", NOON * 10**6 + 1, "2023-11-14 22:13:20.000000001", "2023-11-14T22:13:20.000000001"),
        ("TIMESTAMP(3)", 253_402_300_800_000, "10000-01-01 00:00:00.000", "+10000-01-01T00:00"),
    ],
)
def test_a_value_as_sql_prints_it_and_as_java_does(kind, value, sql, legacy):
    parsed = parse_type(kind)
    stored = pa.int32() if kind.startswith("TIME(") else pa.int64() if kind.startswith("TIMESTAMP") else None
    values = pa.array([value, None], stored).cast(arrow_type(parsed))

    assert sql_text(values, parsed) == [sql, None]
    assert legacy_text(values, parsed) == [legacy, None]


def test_bytes_are_hexadecimal_but_name_no_folder():
    values = pa.array([b"\x01\xff"])

    assert sql_text(values, parse_type("BYTES")) == ["01ff"]
    with pytest.raises(
        UnsupportedFeatureError, match="Folder names of partitions by a VARBINARY column are not supported"
    ):
        legacy_text(values, parse_type("BYTES"))
