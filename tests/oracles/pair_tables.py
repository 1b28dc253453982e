"""Have the connectors of a format write tables that are alike in all formats: the sides of pairs to compare.

    python -m tests.oracles.pair_tables OUT FORMAT SEED FAMILIES

Tables of one family begin with the same rows in each format. Types, names and orders of columns differ, and so does
what becomes of the rows. Writes `OUT/pairs.json`: the family, format and folder of each table, whether `id` is unique,
and the file with the rows that Spark reads.
"""

from __future__ import annotations

import json
import logging
import math
import random
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import feather

from tests.support.oracles import lakes

_NO_ZONE = "TIMESTAMP_NTZ"
COLUMNS = {
    "whole": (("BIGINT", "INT", "DECIMAL(20, 2)", "SMALLINT"), [None, 0, 1, -1, 32767]),
    "price": (("DECIMAL(10, 2)", "DECIMAL(18, 4)", "DECIMAL(38, 10)"), [None, *map(Decimal, ("1.50", "-0.01", "2"))]),
    "ratio": (("DOUBLE", "FLOAT"), [None, 0.0, -0.0, math.nan, math.inf, 1.5]),
    "name": (("STRING", "STRING", "BINARY"), [None, "", "a", "A ", "\ta", "é", "É", "<b>", "O'Hara"]),
    "day": (("DATE",), [None, date(1900, 1, 1), date(1969, 12, 31), date(2026, 1, 2)]),
    "moment": (
        ("TIMESTAMP", _NO_ZONE),
        [None, datetime(2026, 3, 29, 1, 30, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)],
    ),
    "flag": (("BOOLEAN",), [None, True, False]),
    "part": (
        ("STRUCT<x: BIGINT, y: STRING>", "STRUCT<y: STRING, x: INT>"),
        [None, {"x": None, "y": None}, {"x": 1, "y": "a"}, {"x": 1, "y": None}],
    ),
    "items": (("ARRAY<DOUBLE>", "ARRAY<FLOAT>"), [None, [], [None], [0.0, math.nan], [-0.0, math.nan]]),
    "labels": (("MAP<STRING, BIGINT>",), [None, {}, {"a": 1, "b": None}, {"b": None, "a": 1}, {"a": 2}]),
}
"""For each column the types that it may have in Spark, and its values."""
_COMMITS = 3


def main() -> None:
    """Write the tables."""
    out, kind, seed, families = sys.argv[1:]
    logging.getLogger("py4j").setLevel(logging.WARNING)
    folder = Path(out).absolute()
    spark = lakes.session(kind, folder)
    write_all(spark, kind, folder, seed, int(families))
    spark.stop()


def write_all(spark: Any, kind: str, out: Path, seed: str, families: int) -> None:
    """Write a table of each family, and what they are: after each, so that a run that is stopped can be used."""
    tables = []
    for family in range(families):
        tables.append(_written(spark, kind, out, seed, family))
        (out / "pairs.json").write_text(json.dumps(tables, indent=1))


def _family(seed: str, number: int) -> tuple[bool, list[str], list[dict[str, Any]]]:
    """Return what the tables of a family have in common: whether `id` is unique, the columns, and the first rows."""
    choose = random.Random(f"{seed} {number}")
    is_keyed = number % 2 == 0
    names = choose.sample(list(COLUMNS), 5)
    rows = [_row(choose, names, place if is_keyed else choose.choice([1, 2])) for place in range(choose.randint(8, 24))]
    return is_keyed, names, rows


def _row(choose: random.Random, names: list[str], number: int) -> dict[str, Any]:
    return {"id": number, "grp": number % 3} | {name: choose.choice(COLUMNS[name][1]) for name in names}


def _written(spark: Any, kind: str, out: Path, seed: str, number: int) -> dict[str, Any]:
    is_keyed, chosen, rows = _family(seed, number)
    choose = random.Random(f"{seed} {number} {kind}")
    names = ["id", "grp", *chosen, *(["extra"] if choose.random() < 0.2 else [])]
    choose.shuffle(names)
    lacking = {_NO_ZONE} if kind == "hudi" else set()
    types = {name: choose.choice([one for one in COLUMNS[name][0] if one not in lacking]) for name in chosen}
    types |= {"id": choose.choice(("BIGINT", "INT")), "grp": choose.choice(("BIGINT", "INT")), "extra": "INT"}
    shown = {name: f"{name}_new" if name in chosen and choose.random() < 0.3 else name for name in names}
    table, path = lakes.location(kind, out, f"p{number}")
    spark.sql(_creation(kind, table, path, [(shown[name], types[name]) for name in names], choose, is_keyed=is_keyed))
    cut = choose.randint(1, len(rows))
    for part in (rows[:cut], rows[cut:]):
        if part:
            _insert(spark, table, part, [(name, shown[name], types[name]) for name in names])
    for step in range(1, _COMMITS):
        # Each step has ids of its own, which the tables of other formats may have with other rows.
        first = 100 * step + choose.randint(0, 2) if is_keyed else None
        _changed(spark, table, choose, chosen, [(name, shown[name], types[name]) for name in names], first)
    if kind == "iceberg" and choose.random() < 0.5:
        old = shown[chosen[0]]
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {chosen[0]}_late")
        spark.sql(f"DELETE FROM {table} WHERE id = 3")
    rows = out / f"p{number}.arrow"
    read = spark.table(table)
    feather.write_feather(
        _as_arrow(read.select([name for name in read.columns if not name.startswith("_hoodie_")])), rows
    )
    return {"family": number, "format": kind, "path": str(path), "is_keyed": is_keyed, "rows": str(rows)}


def _as_arrow(frame: Any) -> pa.Table:
    """Return the rows of a DataFrame. PySpark 3.5, which Hudi needs, has no public way."""
    return frame.toArrow() if hasattr(frame, "toArrow") else pa.Table.from_batches(frame._collect_as_arrow())


def _creation(
    kind: str, table: str, path: Path, columns: list[tuple[str, str]], choose: random.Random, *, is_keyed: bool
) -> str:
    fields = ", ".join(f"{name} {dtype}" for name, dtype in columns)
    merges = choose.random() < 0.5
    properties = {
        "delta": [f"'delta.enableDeletionVectors' = '{str(merges).lower()}'"],
        "iceberg": [
            f"'write.{word}.mode' = '{'merge-on-read' if merges else 'copy-on-write'}'"
            for word in ("delete", "update", "merge")
        ],
        "paimon": ["'primary-key' = 'id'", "'bucket' = '2'"] if is_keyed and merges else ["'file.format' = 'parquet'"],
        "hudi": [f"type = '{'mor' if merges else 'cow'}'", *(["primaryKey = 'id'"] if is_keyed else [])],
    }[kind]
    where = f"LOCATION '{path.as_uri()}'" if kind == "hudi" else ""
    partitions = "PARTITIONED BY (grp)" if kind != "paimon" and choose.random() < 0.4 else ""
    return f"CREATE TABLE {table} ({fields}) USING {kind} {partitions} {where} TBLPROPERTIES ({', '.join(properties)})"


def _insert(spark: Any, table: str, rows: list[dict[str, Any]], columns: list[tuple[str, str, str]]) -> None:
    schema = ", ".join(f"{shown} {dtype}" for _, shown, dtype in columns)
    order = spark.table(table).columns
    # Hudi's lists have no nulls.
    null_items = not order[0].startswith("_hoodie_")
    values = [tuple(_stored(row.get(name), dtype, null_items=null_items) for name, _, dtype in columns) for row in rows]
    spark.createDataFrame(values, schema).coalesce(1).createOrReplaceTempView("new_rows")
    # By position: Hudi has the columns of partitions last.
    names = ", ".join(name for name in order if not name.startswith("_hoodie_"))
    spark.sql(f"INSERT INTO {table} SELECT {names} FROM new_rows")


def _stored(value: Any, dtype: str, *, null_items: bool = True) -> Any:
    if dtype.startswith("ARRAY") and value == [None] and not null_items:
        return []
    if isinstance(value, str) and dtype == "BINARY":
        return bytearray(value.encode())
    if isinstance(value, datetime):
        return value.replace(tzinfo=None) if dtype == _NO_ZONE else value
    if isinstance(value, int) and dtype.startswith("DECIMAL"):
        return Decimal(value)
    return value


def _changed(
    spark: Any,
    table: str,
    choose: random.Random,
    chosen: list[str],
    columns: list[tuple[str, str, str]],
    first: int | None,
) -> None:
    """Make a commit: new rows with ids from `first` on, or all of one id; or rows that are deleted or updated."""
    match choose.randrange(3):
        case 0:
            rows = [_row(choose, chosen, 1 if first is None else first + place) for place in range(3)]
            _insert(spark, table, rows, columns)
        case 1:
            spark.sql(f"DELETE FROM {table} WHERE id % 7 = {choose.randrange(7)}")
        case 2:
            shown = {name: (own, dtype) for name, own, dtype in columns}
            name = next(name for name in chosen if name not in ("part", "items", "labels"))
            own, dtype = shown[name]
            value = {"BINARY": "X'61'", "DATE": "DATE '2026-01-02'", "BOOLEAN": "true"}.get(dtype, "NULL")
            spark.sql(f"UPDATE {table} SET {own} = {value} WHERE id % 5 = {choose.randrange(5)}")


if __name__ == "__main__":
    main()
