"""How long rows take: ours against the plain pyarrow read of the same files, in the same run.

    python tests/benchmarks/paimon_rows.py [ROWS]

Prints a table and judges nothing: the ratio says what opening, casting and merging cost beyond reading bytes.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from snapshot_explorer.engines import local
from snapshot_explorer.engines.scan import scan_of
from snapshot_explorer.formats.paimon.scan import read
from snapshot_explorer.storage import Storage

sys.path.append(str(Path(__file__).parents[2]))

from tests.support.paimon.splits import entry, schema, splits, text_row

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = 4
FIELDS = [("k", "BIGINT"), ("name", "STRING"), ("amount", "DOUBLE"), ("at", "TIMESTAMP(6)")]


class Reader:
    """Just what the engine asks of a format."""

    def __init__(self, folder: str) -> None:
        self.storage = Storage(folder)

    def read(self, split, columns, predicate=None):
        return read.read(self.storage, split, columns)


def long_row(value: int) -> bytes:
    """A serialized BinaryRow of one BIGINT."""
    return struct.pack(">i", 1) + bytes(8) + struct.pack("<q", value)


def values(keys: np.ndarray, chance: np.random.Generator) -> dict[str, pa.Array]:
    return {
        "k": pa.array(keys),
        "name": pa.array([f"name {number}" for number in keys % 1000]),
        "amount": pa.array(chance.random(len(keys))),
        "at": pa.array(keys * 1000, pa.timestamp("us")),
    }


def write(folder: Path, rows: int, *, keyed: bool, text: bool = False) -> list[dict]:
    """Write files whose keys overlap by half with those of the next."""
    chance = np.random.default_rng(1)
    entries = []
    for number in range(FILES):
        keys = np.arange(number * rows // 2, number * rows // 2 + rows, dtype=np.int64)
        columns = values(keys, chance)
        ends: dict[str, object] = {}
        if text:
            columns["k"] = pa.array([f"{key:012d}" for key in keys])
        if keyed:
            kinds = np.where(keys % 50 == number, 3, 0).astype(np.int8)
            sequence = keys + number * 10 * rows
            system = {"_SEQUENCE_NUMBER": pa.array(sequence), "_VALUE_KIND": pa.array(kinds)}
            columns = {"_KEY_k": columns["k"], **system, **columns}
            ends = {"min_sequence": int(sequence[0]), "max_sequence": int(sequence[-1]), **_ends(keys, text=text)}
        name = f"data-{number}.parquet"
        pq.write_table(pa.table(columns), folder / name, compression="zstd")
        size = (folder / name).stat().st_size
        entries.append(entry(name, rows=rows, size_bytes=size, deleted_rows=1 if keyed else 0, **ends))
    return entries


def _ends(keys: np.ndarray, *, text: bool) -> dict[str, bytes]:
    if text:  # all files overlap, whatever the keys are
        return {"min_key": text_row("0"), "max_key": text_row("1")}
    return {"min_key": long_row(int(keys[0])), "max_key": long_row(int(keys[-1]))}


def timed(task: Callable[[], int], rounds: int = 5) -> tuple[float, int]:
    task()
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        rows = task()
        found.append(time.perf_counter() - started)
    return statistics.median(found), rows


def case(label: str, rows: int, columns: list[str] | None, *, keyed: bool, text: bool = False) -> None:
    with tempfile.TemporaryDirectory() as folder:
        entries = write(Path(folder), rows, keyed=keyed, text=text)
        fields = [("k", "STRING" if text else "BIGINT"), *FIELDS[1:]]
        parts = splits(schema(fields, keys=["k"] if keyed else ()), entries, folder="")
        arrow = pa.schema([pa.field(name, kind) for name, kind in _types(text=text)])
        reader = Reader(folder)

        def ours() -> int:
            found = local.to_arrow(reader, parts, scan_of(arrow, columns))
            return found.num_rows

        def plain() -> int:
            names = (
                None if columns is None else [*columns, *(["k", "_SEQUENCE_NUMBER", "_VALUE_KIND"] if keyed else [])]
            )
            return sum(pq.ParquetFile(Path(folder) / item["file_name"]).read(names).num_rows for item in entries)

        ours_seconds, ours_rows = timed(ours)
        plain_seconds, plain_rows = timed(plain)
        print(
            f"{label:44} {plain_rows:>10,} {ours_rows:>10,} {plain_seconds:8.3f} s {ours_seconds:8.3f} s "
            f"{ours_seconds / plain_seconds:6.1f}"
        )


def _types(*, text: bool) -> list[tuple[str, pa.DataType]]:
    return [
        ("k", pa.string() if text else pa.int64()),
        ("name", pa.string()),
        ("amount", pa.float64()),
        ("at", pa.timestamp("us")),
    ]


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    print(f"{'':44} {'rows there':>10} {'rows given':>10} {'pyarrow':>10} {'ours':>10} {'ratio':>6}")
    case("append, all columns", rows, None, keyed=False)
    case("append, one column", rows, ["amount"], keyed=False)
    case("merge of 4 files by a number, all columns", rows, None, keyed=True)
    case("merge of 4 files by a number, one column", rows, ["amount"], keyed=True)
    case("merge of 4 files by text, all columns", rows, None, keyed=True, text=True)


if __name__ == "__main__":
    main()
