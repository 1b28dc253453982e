"""System tables of rows against what Paimon's own core reads of the same tables (tests/data/expected/inspect_rows)."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import snapshot_explorer
from snapshot_explorer.errors import CorruptTableError
from tests.support.canonical import canonical_rows

DATA = Path(__file__).parents[1] / "data"
CASES = [
    (file.stem, case)
    for file in sorted((DATA / "expected" / "inspect_rows").glob("*.json"))
    for case in json.loads(file.read_text())
]
TYPES = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "DATE": pa.date32(),
    "BOOLEAN": pa.bool_(),
    "DECIMAL(10, 2)": pa.decimal128(10, 2),
    "DECIMAL(12, 1)": pa.decimal128(12, 1),
    "TIMESTAMP(6)": pa.timestamp("us"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": pa.timestamp("us", "UTC"),
    "BLOB": pa.large_binary(),
}


def typed(spelled, kind):
    """Return whether an Arrow type is the one for Paimon's spelling; nested ones are looked at from outside."""
    plain = spelled.removesuffix(" NOT NULL")
    if plain.startswith("ARRAY<"):
        return pa.types.is_list(kind) and typed(plain[6:-1], kind.value_type)
    if plain.startswith("ROW<"):
        return pa.types.is_struct(kind)
    if plain.startswith("MAP<"):
        return pa.types.is_map(kind)
    return TYPES[plain] == kind


@pytest.mark.parametrize(
    ("table", "case"), CASES, ids=[f"{table}-{case['table']}-{case['version']}" for table, case in CASES]
)
def test_the_rows_are_what_paimon_reads(table, case):
    opened = snapshot_explorer.open_table(str(DATA / "paimon" / table))
    if case["rows"] is None:
        with pytest.raises(CorruptTableError, match="cannot be merged"):
            opened.inspect(case["table"], case["version"])
        return

    rows = opened.inspect(case["table"], case["version"]).to_arrow()

    rows.validate(full=True)
    assert rows.column_names == case["columns"]
    assert canonical_rows(rows) == case["rows"]
    assert all(map(typed, case["types"], rows.schema.types))
    assert [" NOT NULL" not in spelled for spelled in case["types"]] == [field.nullable for field in rows.schema]


def test_there_are_rows_to_compare():
    assert len(CASES) > 250
