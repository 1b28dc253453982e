"""The tables `append_parquet`, `append_orc` and `append_avro`: a column of every type the format can hold."""

# ruff: noqa: FBT003 - Java knows no arguments by name

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# name, Java type, the values of four rows as Spark SQL
_COLUMNS = (
    ("id", "INT()", ("1", "2", "3", "4")),
    ("c_boolean", "BOOLEAN()", ("true", "false", "NULL", "true")),
    ("c_tinyint", "TINYINT()", ("127Y", "-128Y", "NULL", "0Y")),
    ("c_smallint", "SMALLINT()", ("32767S", "-32768S", "NULL", "0S")),
    ("c_int", "INT()", ("2147483647", "CAST(-2147483648 AS INT)", "NULL", "0")),
    ("c_bigint", "BIGINT()", ("9223372036854775807L", "-9223372036854775807L", "NULL", "0L")),
    ("c_float", "FLOAT()", ("1.5F", "CAST('NaN' AS FLOAT)", "NULL", "CAST('-Infinity' AS FLOAT)")),
    ("c_double", "DOUBLE()", ("-0.1D", "CAST('NaN' AS DOUBLE)", "NULL", "1e300D")),
    ("c_decimal", "DECIMAL(10,2)", ("99999999.99BD", "-0.01BD", "NULL", "0BD")),
    ("c_decimal_18", "DECIMAL(18,3)", ("999999999999999.999BD", "-1.001BD", "NULL", "0BD")),
    ("c_decimal_38", "DECIMAL(38,10)", (f"{'9' * 28}.{'9' * 10}BD", "-0.0000000001BD", "NULL", "0BD")),
    ("c_string", "STRING()", ("'plain'", "'ünïcødé 🦊'", "NULL", "''")),
    ("c_char", "CHAR(5)", ("'abcde'", "'ab'", "NULL", "''")),
    ("c_varchar", "VARCHAR(20)", ("'twenty characters 20'", "'x'", "NULL", "''")),
    ("c_bytes", "BYTES()", ("X'00FF10'", "X''", "NULL", "X'616263'")),
    ("c_varbinary", "VARBINARY(10)", ("X'0102'", "X''", "NULL", "X'FF'")),
    ("c_binary", "BINARY(4)", ("X'01020304'", "X'FFFFFFFF'", "NULL", "X'00000000'")),
    ("c_date", "DATE()", ("DATE '2026-11-21'", "DATE '1900-01-01'", "NULL", "DATE '9999-12-31'")),
    ("c_ntz_3", "TIMESTAMP(3)", ("'2026-11-21 01:02:03.123'", "'1960-01-01 00:00:00.001'", "NULL", "'1970-01-01'")),
    (
        "c_ntz_6",
        "TIMESTAMP(6)",
        ("'2026-11-21 01:02:03.123456'", "'1960-01-01 00:00:00.000001'", "NULL", "'1970-01-01'"),
    ),
    (
        "c_ntz_9",
        "TIMESTAMP(9)",
        ("'2026-11-21 01:02:03.123456'", "'1960-01-01 00:00:00.000001'", "NULL", "'1970-01-01'"),
    ),
    ("c_ltz_3", "LTZ(3)", ("'2026-11-21 01:02:03.123'", "'1960-01-01 00:00:00.001'", "NULL", "'1970-01-01'")),
    ("c_ltz_6", "LTZ(6)", ("'2026-11-21 01:02:03.123456'", "'1960-01-01 00:00:00.000001'", "NULL", "'1970-01-01'")),
    ("c_ltz_9", "LTZ(9)", ("'2026-11-21 01:02:03.123456'", "'1960-01-01 00:00:00.000001'", "NULL", "'1970-01-01'")),
    ("c_array", "ARRAY INT()", ("ARRAY(1, NULL, 3)", "CAST(ARRAY() AS ARRAY<INT>)", "NULL", "ARRAY(0)")),
    (
        "c_array_2",
        "ARRAY ARRAY STRING()",
        ("ARRAY(ARRAY('a', NULL), NULL)", "ARRAY(ARRAY('b'))", "NULL", "ARRAY(ARRAY('c'))"),
    ),
    ("c_map", "MAP", ("MAP('a', 1L, 'b', CAST(NULL AS BIGINT))", "MAP('', -1L)", "NULL", "MAP('ü', 0L)")),
    (
        "c_row",
        "ROW",
        (
            "NAMED_STRUCT('x', 1, 'y', 'one')",
            "NAMED_STRUCT('x', CAST(NULL AS INT), 'y', 'none')",
            "NULL",
            "NAMED_STRUCT('x', 0, 'y', CAST(NULL AS STRING))",
        ),
    ),
)
_WITHOUT = {"avro": ("c_ntz_9", "c_ltz_9"), "orc": (), "parquet": ()}


def types_table(name: str, file_format: str) -> list[str | Callable[[Any], object]]:
    """Return the steps: create the table through Java (SQL knows no precision of timestamps), and three inserts."""
    columns = [column for column in _COLUMNS if column[0] not in _WITHOUT[file_format]]

    def create(spark: Any) -> None:
        jvm = spark._jvm
        builder = jvm.org.apache.paimon.schema.Schema.newBuilder()
        for column, kind, _ in columns:
            builder = builder.column(column, _java_type(jvm, kind))
        builder = builder.option("bucket", "-1").option("file.format", file_format)
        catalog = spark._jsparkSession.sessionState().catalogManager().catalog("p").paimonCatalog()
        catalog.createTable(jvm.org.apache.paimon.catalog.Identifier.create("d", name), builder.build(), False)

    def insert(*rows: int) -> str:
        selects = [f"SELECT {', '.join(_typed(kind, values[row]) for _, kind, values in columns)}" for row in rows]
        return f"INSERT INTO {name} " + " UNION ALL ".join(selects)

    return [create, insert(0, 1), insert(2), insert(3, 0)]


def _typed(kind: str, value: str) -> str:
    if kind.startswith("TIMESTAMP"):
        return f"CAST({value} AS TIMESTAMP_NTZ)"
    return f"CAST({value} AS TIMESTAMP)" if kind.startswith("LTZ") else value


def _java_type(jvm: Any, kind: str) -> Any:
    types = jvm.org.apache.paimon.types.DataTypes
    if kind.startswith("ARRAY "):
        return types.ARRAY(_java_type(jvm, kind.removeprefix("ARRAY ")))
    if kind == "MAP":
        return types.MAP(types.STRING(), types.BIGINT())
    if kind == "ROW":
        fields = jvm.org.apache.paimon.types.RowType.builder().field("x", types.INT()).field("y", types.STRING())
        return fields.build()
    word, _, numbers = kind.partition("(")
    word = "TIMESTAMP_WITH_LOCAL_TIME_ZONE" if word == "LTZ" else word
    return getattr(types, word)(*(int(number) for number in numbers.rstrip(")").split(",") if number))
