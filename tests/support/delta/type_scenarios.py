"""Scenarios of Delta tables that hold every type, as columns, as partitions, widened and as variants."""

from __future__ import annotations

from tests.support.delta.connector import Scenario
from tests.support.delta.feature_scenarios import create

_TYPES = {
    "c_byte": ("TINYINT", "-128", "127"),
    "c_short": ("SMALLINT", "-32768", "32767"),
    "c_int": ("INT", "-2147483648", "2147483647"),
    "c_long": ("BIGINT", "-9223372036854775807 - 1", "9223372036854775807"),
    "c_float": ("FLOAT", "'-Infinity'", "'NaN'"),
    "c_double": ("DOUBLE", "'-1.7976931348623157e308'", "'4.9e-324'"),
    "c_decimal_small": ("DECIMAL(5, 2)", "-999.99", "0.01"),
    "c_decimal_long": ("DECIMAL(18, 4)", "-99999999999999.9999", "99999999999999.9999"),
    "c_decimal_wide": ("DECIMAL(38, 10)", "'-9999999999999999999999999999.9999999999'", "'0.0000000001'"),
    "c_decimal_whole": ("DECIMAL(38, 0)", "'99999999999999999999999999999999999999'", "0"),
    "c_boolean": ("BOOLEAN", "true", "false"),
    "c_string": ("STRING", "''", "'naïve ☃ 𝄞 \\u0000 \\n end'"),
    "c_varchar": ("VARCHAR(5)", "'abcde'", "''"),
    "c_char": ("CHAR(4)", "'ab  '", "'abcd'"),
    "c_binary": ("BINARY", "X''", "X'00FF80'"),
    "c_date": ("DATE", "'0001-01-01'", "'9999-12-31'"),
    "c_timestamp": ("TIMESTAMP", "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"),
    "c_ntz": ("TIMESTAMP_NTZ", "'0001-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"),
    "c_array": ("ARRAY<INT>", "array()", "array(1, NULL, 3)"),
    "c_map": ("MAP<STRING, DECIMAL(10, 1)>", "map()", "map('a', 1.5, 'b', NULL)"),
    "c_struct": (
        "STRUCT<a: DATE, b: STRUCT<c: BINARY>>",
        "named_struct('a', NULL, 'b', NULL)",
        "named_struct('a', '2026-11-01', 'b', named_struct('c', X'01'))",
    ),
    "c_deep": (
        "ARRAY<MAP<INT, ARRAY<STRUCT<x: TIMESTAMP, y: TIMESTAMP_NTZ>>>>",
        "array(map(1, array()), NULL)",
        "array(map(1, array(named_struct('x', '2026-11-01 12:00:00', 'y', '1969-12-31 23:59:59.5'), NULL), 2, NULL))",
    ),
}


def _row(place: int) -> str:
    return "SELECT " + ", ".join(f"CAST({row[place]} AS {row[0]})" for row in _TYPES.values())


_PARTS = {
    "p_string": ("STRING", "'x'", "'NULL'"),
    "p_byte": ("TINYINT", "-128", "127"),
    "p_short": ("SMALLINT", "-1", "0"),
    "p_int": ("INT", "-2147483648", "7"),
    "p_long": ("BIGINT", "9223372036854775807", "0"),
    "p_float": ("FLOAT", "1.5", "'NaN'"),
    "p_double": ("DOUBLE", "'-Infinity'", "1e10"),
    "p_decimal": ("DECIMAL(20, 6)", "-12345678901234.567800", "0"),
    "p_boolean": ("BOOLEAN", "true", "false"),
    "p_date": ("DATE", "'1582-10-04'", "'9999-12-31'"),
    "p_timestamp": ("TIMESTAMP", "'2026-11-01 12:34:56.123456'", "'1900-01-01 00:00:00'"),
    "p_ntz": ("TIMESTAMP_NTZ", "'2026-11-01 12:34:56.000001'", "'0001-01-01 00:00:00'"),
    "p_binary": ("BINARY", "X'616263'", "X'01'"),
}

_ODD = (
    "a b",
    "a/b",
    "50%",
    "%25",
    "a=b",
    "a:b",
    "a#b?c",
    "+plus",
    "quo'te",
    'quo"te',
    "back\\slash",
    "ünï☃𝄞",
    "null",
    "a,b",
    "{x}[y]*",
    " ",
    "tab\tnew\nline",
    "__HIVE_DEFAULT_PARTITION__x",
    "~",
    "&<b>",
)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\t", "\\t") + "'"


_TIMES = (
    "timestamps AS (SELECT explode(array('0001-01-01 00:00:00', '1582-10-15 00:00:00.5', '1969-12-31 23:59:59.999999', "
    "'2026-11-01 12:00:00.123456', '9999-12-31 23:59:59.999999')) t)"
)

_WIDER = (
    ("b_s", "TINYINT", "SMALLINT"),
    ("b_i", "TINYINT", "INT"),
    ("b_l", "TINYINT", "BIGINT"),
    ("b_d", "TINYINT", "DOUBLE"),
    ("b_m", "TINYINT", "DECIMAL(12, 2)"),
    ("s_i", "SMALLINT", "INT"),
    ("s_l", "SMALLINT", "BIGINT"),
    ("s_d", "SMALLINT", "DOUBLE"),
    ("s_m", "SMALLINT", "DECIMAL(10, 0)"),
    ("i_l", "INT", "BIGINT"),
    ("i_d", "INT", "DOUBLE"),
    ("i_m", "INT", "DECIMAL(15, 5)"),
    ("l_m", "BIGINT", "DECIMAL(20, 0)"),
    ("l_n", "BIGINT", "DECIMAL(38, 18)"),
    ("f_d", "FLOAT", "DOUBLE"),
    ("d_n", "DATE", "TIMESTAMP_NTZ"),
    ("m_small", "DECIMAL(4, 2)", "DECIMAL(9, 2)"),
    ("m_long", "DECIMAL(9, 2)", "DECIMAL(18, 5)"),
    ("m_wide", "DECIMAL(18, 4)", "DECIMAL(38, 24)"),
)


def _value(kind: str, sign: int) -> str:
    if kind == "DATE":
        return "DATE '0001-01-01'" if sign < 0 else "DATE '2026-11-01'"
    if kind == "TIMESTAMP_NTZ":
        return "TIMESTAMP_NTZ '2026-11-01 12:00:00.000001'"
    whole = {"TINYINT": 127, "SMALLINT": 32767, "INT": 2147483647, "BIGINT": 9223372036854775807}
    if kind in whole:
        return f"CAST({sign * whole[kind]} AS {kind})"
    return f"CAST({sign * 12.25} AS {kind})"


def _widened(place: int, sign: int) -> str:
    return "INSERT INTO {t} SELECT " + ", ".join(_value(column[place], sign) for column in _WIDER)


_NESTED = (
    "id INT, s STRUCT<a: TINYINT, b: DATE>, l ARRAY<INT>, m MAP<SMALLINT, FLOAT>, "
    "d ARRAY<STRUCT<x: DECIMAL(6, 2)>>, p INT"
)
_NESTED_ALTERS = (
    ("s.a", "BIGINT"),
    ("s.b", "TIMESTAMP_NTZ"),
    ("l.element", "BIGINT"),
    ("m.key", "INT"),
    ("m.value", "DOUBLE"),
    ("d.element.x", "DECIMAL(10, 4)"),
    ("p", "BIGINT"),
)

_VARIANTS = (
    "1",
    "null",
    '"text"',
    '{"a": 1, "b": {"c": [1.5, true, null]}}',
    "[]",
    "12345678901234567890123456789.5",
    "-9223372036854775808",
    '{"é": "☃"}',
)


def _variants(first: int) -> str:
    rows = [
        (
            f"({first + number}, parse_json('{text}'), named_struct('v', parse_json('{text}')), "
            f"array(parse_json('{text}'), NULL))"
        )
        for number, text in enumerate(_VARIANTS)
    ]
    return (
        "INSERT INTO {t} SELECT * FROM VALUES "
        + ", ".join([*rows, f"({first + 90}, NULL, NULL, NULL)"])
        + " AS r(id, v, s, l)"
    )


_VARIANT_COLUMNS = "id INT, v VARIANT, s STRUCT<v: VARIANT>, l ARRAY<VARIANT>"

SCENARIOS = (
    Scenario(
        name="types",
        kept=True,
        steps=(
            create(", ".join(f"{name} {row[0]}" for name, row in _TYPES.items())),
            f"INSERT INTO {{t}} {_row(1)}",
            f"INSERT INTO {{t}} {_row(2)}",
            "INSERT INTO {t} SELECT " + ", ".join("NULL" for _ in _TYPES),
            "OPTIMIZE {t}",
        ),
    ),
    Scenario(
        name="types_vectors_mapped",
        steps=(
            create(
                ", ".join(f"{name} {row[0]}" for name, row in _TYPES.items()),
                "'delta.enableDeletionVectors' = 'true'",
                "'delta.columnMapping.mode' = 'id'",
            ),
            f"INSERT INTO {{t}} {_row(1)} UNION ALL {_row(2)}",
            "DELETE FROM {t} WHERE c_byte = -128",
        ),
    ),
    Scenario(
        name="partition_types",
        kept=True,
        steps=(
            create(
                "id INT, " + ", ".join(f"{name} {row[0]}" for name, row in _PARTS.items()),
                more=f"PARTITIONED BY ({', '.join(_PARTS)})",
            ),
            "INSERT INTO {t} SELECT 1, " + ", ".join(f"CAST({row[1]} AS {row[0]})" for row in _PARTS.values()),
            "INSERT INTO {t} SELECT 2, " + ", ".join(f"CAST({row[2]} AS {row[0]})" for row in _PARTS.values()),
            "INSERT INTO {t} SELECT 3, " + ", ".join("NULL" for _ in _PARTS),
            "SET spark.databricks.delta.write.utcTimestampPartitionValues = false",
            "INSERT INTO {t} SELECT 4, " + ", ".join(f"CAST({row[1]} AS {row[0]})" for row in _PARTS.values()),
        ),
    ),
    Scenario(
        name="partition_texts",
        kept=True,
        steps=(
            create("id INT, p STRING, `q%` STRING", more="PARTITIONED BY (p, `q%`)"),
            "INSERT INTO {t} SELECT * FROM VALUES "
            + ", ".join(f"({number}, {_text(text)}, {_text(text[::-1])})" for number, text in enumerate(_ODD)),
            "INSERT INTO {t} VALUES (100, '', 'x'), (101, NULL, ''), (102, 'x', NULL)",
            "DELETE FROM {t} WHERE p = '50%' OR p LIKE 'ü%'",
        ),
    ),
    Scenario(
        name="times_stored",  # INT96, milliseconds and microseconds in one table
        kept=True,
        steps=(
            create("t TIMESTAMP, l ARRAY<TIMESTAMP>"),
            *(
                step
                for kind in ("INT96", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS")
                for step in (
                    f"SET spark.sql.parquet.outputTimestampType = {kind}",
                    (
                        f"INSERT INTO {{t}} WITH {_TIMES} SELECT CAST(t AS TIMESTAMP), array(CAST(t AS TIMESTAMP)) "
                        "FROM timestamps"
                    ),
                )
            ),
        ),
    ),
    Scenario(
        name="zoneless_times",
        steps=(
            create(
                "n TIMESTAMP_NTZ, s STRUCT<n: TIMESTAMP_NTZ>, l ARRAY<TIMESTAMP_NTZ>, p TIMESTAMP_NTZ",
                "'delta.columnMapping.mode' = 'name'",
                more="PARTITIONED BY (p)",
            ),
            (
                f"INSERT INTO {{t}} WITH {_TIMES} SELECT CAST(t AS TIMESTAMP_NTZ), named_struct('n', CAST(t AS "
                "TIMESTAMP_NTZ)), array(CAST(t AS TIMESTAMP_NTZ)), CAST(t AS TIMESTAMP_NTZ) FROM timestamps"
            ),
            "ALTER TABLE {t} RENAME COLUMN n TO moment",
            "INSERT INTO {t} VALUES (NULL, NULL, NULL, NULL)",
        ),
    ),
    Scenario(
        name="widened",
        kept=True,
        steps=(
            create(
                ", ".join(f"{name} {before}" for name, before, _ in _WIDER),
                "'delta.feature.timestampNtz' = 'supported'",
                "'delta.enableTypeWidening' = 'true'",
            ),
            _widened(1, -1),
            "ALTER TABLE {t} ALTER COLUMN " + ", ".join(f"{name} TYPE {after}" for name, _, after in _WIDER),
            _widened(2, 1),
            "INSERT INTO {t} SELECT " + ", ".join("NULL" for _ in _WIDER),
        ),
    ),
    Scenario(
        name="widened_nested",
        kept=True,
        steps=(
            create(
                _NESTED,
                "'delta.enableTypeWidening' = 'true'",
                "'delta.feature.timestampNtz' = 'supported'",
                "'delta.columnMapping.mode' = 'name'",
                "'delta.enableDeletionVectors' = 'true'",
                more="PARTITIONED BY (p)",
            ),
            (
                "INSERT INTO {t} SELECT 1, named_struct('a', 127Y, 'b', DATE '2026-11-01'), array(1, NULL), map(1S, "
                "1.5F), array(named_struct('x', 1.25)), 7"
            ),
            "ALTER TABLE {t} ALTER COLUMN " + ", ".join(f"{name} TYPE {after}" for name, after in _NESTED_ALTERS),
            (
                "INSERT INTO {t} SELECT 2, named_struct('a', 1L << 40, 'b', TIMESTAMP_NTZ '2026-11-01 01:02:03'), "
                "array(1L << 40), map(1 << 20, 1e300D), array(named_struct('x', 123456.7891)), 1L << 40"
            ),
            "ALTER TABLE {t} RENAME COLUMN l TO longs",
            "DELETE FROM {t} WHERE id = 1",
        ),
    ),
    Scenario(
        name="variants",
        kept=True,
        steps=(
            create(_VARIANT_COLUMNS, "'delta.enableVariantShredding' = 'false'"),
            _variants(0),
            _variants(10),
            "DELETE FROM {t} WHERE id < 5",
        ),
    ),
    Scenario(
        name="variants_shredded",
        steps=(
            "SET spark.sql.variant.writeShredding.enabled = true",
            "SET spark.sql.variant.allowReadingShredded = true",
            "SET spark.sql.variant.inferShreddingSchema = true",
            create("id BIGINT, v VARIANT", "'delta.enableVariantShredding' = 'true'"),
            """INSERT INTO {t} SELECT id, parse_json('{"a": ' || id || ', "b": "x"}') FROM range(0, 50, 1, 1)""",
        ),
    ),
)
