"""Write parquet files of variants, shredded in several ways, with Spark; and what Spark reads of them.

    python -m tests.scripts.make_variants

Writer and reader: PySpark 4.1.4 and Java 17, in the environment that `.ci/oracles` makes. Leaves in tests/data/variants
NAME.parquet, with the columns `id` and `v`, and `expected.json`: by name and id what `to_json` makes of the variant.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tests.support.delta import connector

DATA = Path(__file__).parents[1] / "data" / "variants"
_VALUES = (
    '{"a":1,"b":"x","c":{"d":[1,2,3],"e":1.5}}',
    '{"a":2,"b":"y","c":{"d":[4],"e":2.25},"extra":true,"A":0,"zz":{"y":1,"x":2}}',
    '{"a":"text","b":null,"c":5,"z":{"q":[]}}',
    "{}",
    '[1,"two",null]',
    "null",
    None,
    "12345678901234567890.5",
    '{"a":9,"b":"longer than sixty-three characters so that it is not a short string at all","c":{"d":[],"e":-1}}',
    '{"b":"é","c":{"d":[null,"x",[1],{"k":1}],"f":1}}',
    '{"c":{"d":null}}',
    '"é"',
    '{"c":{}}',
    json.dumps({"c": {"d": list(range(300))}}),
    json.dumps({f"k{number}": number for number in range(300)}),
)
_TEXTS = ", ".join(f"({number}, {'NULL' if text is None else repr(text)})" for number, text in enumerate(_VALUES))
_SAMPLES = f"SELECT id, parse_json(v) AS v FROM VALUES {_TEXTS} AS t(id, v)"
_TYPES = (
    "SELECT 1 AS id, to_variant_object(named_struct('b', true, 'y', CAST(-5 AS TINYINT), 's', CAST(300 AS SMALLINT), "
    "'i', 70000, 'l', 9999999999, 'f', CAST(1.1 AS FLOAT), 'd', 2.5D, 'dc', CAST(12.34 AS DECIMAL(9, 2)), 'dl', "
    "CAST(-12345678901.234 AS DECIMAL(18, 3)), 'dh', CAST(1234567890123456789012.5 AS DECIMAL(30, 1)), 'dt', "
    "DATE '1969-12-31', 'ts', TIMESTAMP '2026-11-01 01:02:03.000004Z', 'tn', TIMESTAMP_NTZ '1900-01-01 00:00:00', "
    "'bin', X'00ff10', 't', 'text', 'n', CAST(NULL AS INT))) AS v "
    "UNION ALL SELECT 2, to_variant_object(named_struct('b', false))"
)
_EVERY_TYPE = (
    "b boolean, y tinyint, s smallint, i int, l long, f float, d double, dc decimal(9,2), dl decimal(18,3), "
    "dh decimal(30,1), dt date, ts timestamp, tn timestamp_ntz, bin binary, t string"
)
FILES = {
    "plain": (_SAMPLES, ""),
    "objects": (_SAMPLES, "a int, b string, c struct<d array<int>, e decimal(9,2)>"),
    "lists": (_SAMPLES, "array<string>"),
    "longs": (_SAMPLES, "long"),
    "deep": (_SAMPLES, "c struct<d array<struct<k int>>, f long>, z struct<q array<string>>, k7 short, k300 string"),
    "decimals": (_SAMPLES, "decimal(30,3)"),
    "types": (_TYPES, _EVERY_TYPE),
    "other_types": (_TYPES, "b struct<x int>, i long, t array<int>, dc decimal(18,4)"),
}
"""What is written to each file, and the type that it is shredded into."""


def main() -> None:
    """Write the files and what is expected of them."""
    spark, expected = connector.session([]), {}
    spark.sql("SET spark.sql.variant.allowReadingShredded = true")
    spark.sql("SET spark.sql.variant.inferShreddingSchema = false")
    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, (query, kind) in FILES.items():
            spark.sql(f"SET spark.sql.variant.writeShredding.enabled = {'true' if kind else 'false'}")
            spark.sql(f"SET spark.sql.variant.forceShreddingSchemaForTest = {kind}")
            path = Path(folder) / name
            frame = spark.sql(query).coalesce(1)
            frame.write.option("compression", "zstd").parquet(str(path))
            rows = spark.read.parquet(str(path)).selectExpr("id", "to_json(v) AS v").orderBy("id").collect()
            expected[name] = {row["id"]: row["v"] for row in rows}
            shutil.copyfile(next(path.glob("*.parquet")), DATA / f"{name}.parquet")
    (DATA / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=0) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
