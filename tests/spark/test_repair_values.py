"""Spark reads the literals of repairs as the values that they stand for, whatever its settings."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.inner.analysis import literal, spark_identifier

TEXTS = [
    "",
    "a",
    "it's",
    '"',
    "\\",
    "\\'",
    "'; drop table x --",
    "a\nb",
    "\r\t",
    "\0",
    "`",
    "${x}",
    "%",
    "日本",
    "\u202e",
    "😀",
]


@pytest.mark.parametrize("escaped", ["false", "true"])
def test_texts_and_names_are_read_back(spark, escaped):
    setting = "spark.sql.parser.escapedStringLiterals"
    spark.conf.set(setting, escaped)
    try:
        columns = [
            f"{literal(text, pa.string())} AS {spark_identifier(text or 'empty')}" for text in TEXTS if "${" not in text
        ]
        row = spark.sql(f"SELECT {literal('${x}', pa.string())} AS x, {', '.join(columns)}").collect()[0]
    finally:
        spark.conf.unset(setting)

    assert list(row) == ["${x}", *(text for text in TEXTS if "${" not in text)]
    assert row.__fields__[1:] == [text or "empty" for text in TEXTS if "${" not in text]


def test_values_are_read_back(spark):
    values = [
        (Decimal("-12.30"), pa.decimal128(10, 2)),
        (date(1500, 2, 28), pa.date32()),
        (datetime(2026, 11, 1, 1, 2, 3, 4, tzinfo=UTC), pa.timestamp("us", "UTC")),
        (datetime(1583, 1, 1, 12), pa.timestamp("us")),  # noqa: DTZ001 - without a zone
        (b"\x00'\xff", pa.binary()),
    ]
    row = spark.sql("SELECT " + ", ".join(literal(value, dtype) for value, dtype in values)).toArrow().to_pylist()[0]

    assert list(row.values()) == [value for value, _ in values]
