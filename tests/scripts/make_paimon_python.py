"""Write tables with vectors, through pypaimon 2.1, and the rows that it reads.

    python -m tests.scripts.make_paimon_python

In an environment with `pypaimon==2.1.0` and, against its own pin, `pyarrow==26.0.0`: older ones can neither write nor
read null vectors in parquet files.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pypaimon import CatalogFactory, Schema

from tests.support.canonical import canonical_rows

DATA = Path(__file__).resolve().parents[1] / "data"
SOURCE = "pypaimon 2.1.0"
Rows = Sequence[Mapping[str, Any]]


def vector(item: pa.DataType, length: int) -> pa.DataType:
    """Return the type of a vector."""
    return pa.list_(pa.field("element", item), length)


ID = pa.field("id", pa.int32(), nullable=False)
PLAIN = pa.schema([ID, ("f", vector(pa.float32(), 3)), ("b", vector(pa.int8(), 2))])
NESTED = pa.schema(
    [
        ID,
        ("d", vector(pa.float64(), 2)),
        ("t", vector(pa.bool_(), 9)),
        ("l", vector(pa.int64(), 1)),
        ("s", pa.struct([("v", vector(pa.float32(), 2)), ("x", pa.int32())])),
        ("a", pa.list_(vector(pa.int32(), 2))),
        ("m", pa.map_(pa.string(), vector(pa.int16(), 2))),
    ]
)
FIRST: Rows = [
    {"id": 1, "f": [1.5, math.nan, -0.0], "b": [-128, 127]},
    {"id": 2, "f": [math.inf, -math.inf, 1e-45], "b": [0, 0]},
    {"id": 3, "f": None, "b": None},
]
SECOND: Rows = [{"id": 2, "f": None, "b": [9, 9]}, {"id": 4, "f": [0.0, 0.0, 0.0], "b": [1, 2]}]
PARTS: Rows = [
    {
        "id": 1,
        "d": [0.1, -0.2],
        "t": [True, False] * 4 + [True],
        "l": [2**63 - 1],
        "s": {"v": [1.0, 2.0], "x": 1},
        "a": [[1, 2], None, [3, 4]],
        "m": [("k", [1, 2])],
    },
    {"id": 2, "d": None, "t": None, "l": None, "s": {"v": None, "x": 2}, "a": [], "m": [("n", None)]},
    {"id": 3, "d": [math.nan, math.inf], "t": [False] * 9, "l": [-1], "s": None, "a": None, "m": None},
]
EVOLVING = {"data-evolution.enabled": "true", "row-tracking.enabled": "true", "file.format": "parquet"}
TABLES: Mapping[str, tuple[pa.Schema, Sequence[Rows], Sequence[str], Mapping[str, str]]] = {
    "vectors_orc": (PLAIN, [FIRST, SECOND], ["id"], {"file.format": "orc", "bucket": "1"}),
    "vectors_avro": (PLAIN, [FIRST, SECOND], [], {"file.format": "avro"}),
    "vectors_parquet": (PLAIN, [FIRST, SECOND], ["id"], {"file.format": "parquet", "bucket": "1"}),
    "vectors_nested": (NESTED, [PARTS], [], {"file.format": "parquet"}),
    "vectors_evolving": (PLAIN, [FIRST, SECOND], [], EVOLVING),
    "vectors_apart": (PLAIN, [FIRST], [], EVOLVING | {"vector.file.format": "parquet"}),
}
"""For each table its columns, the rows of each commit, its key and its options."""
REFUSED = {"vectors_apart": "its vectors are in files of their own"}


def main() -> None:
    """Write all tables and expectations anew."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = CatalogFactory.create({"warehouse": folder})
        catalog.create_database("vectors", ignore_if_exists=False)
        for name, (schema, commits, keys, options) in TABLES.items():
            identifier = f"vectors.{name}"
            definition = Schema.from_pyarrow_schema(schema, primary_keys=list(keys), options=dict(options))
            catalog.create_table(identifier, definition, ignore_if_exists=False)
            expected = DATA / "expected" / "paimon" / name
            shutil.rmtree(expected, ignore_errors=True)
            expected.mkdir(parents=True)
            for version, rows in enumerate(commits, 1):
                _commit(catalog.get_table(identifier), pa.Table.from_pylist(list(rows), schema))
                answer = _answer(name, catalog.get_table(identifier))
                (expected / f"{version}.json").write_text(json.dumps({"version": version} | answer), encoding="utf-8")
            shutil.rmtree(DATA / "paimon" / name, ignore_errors=True)
            shutil.copytree(Path(folder) / "vectors.db" / name, DATA / "paimon" / name)


def _commit(table: Any, rows: pa.Table) -> None:
    builder = table.new_batch_write_builder()
    write, commit = builder.new_write(), builder.new_commit()
    write.write_arrow(rows)
    commit.commit(write.prepare_commit())
    write.close()
    commit.close()


def _answer(name: str, table: Any) -> dict[str, Any]:
    if name in REFUSED:
        return {"outcome": "error", "message": REFUSED[name], "source": SOURCE}
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    return {"outcome": "rows", "columns": rows.column_names, "rows": canonical_rows(rows), "source": SOURCE}


if __name__ == "__main__":
    main()
