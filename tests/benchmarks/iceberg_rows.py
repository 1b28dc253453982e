"""How long rows of Iceberg tables take: with each kind of deletes against pyarrow's bare read of the same files, and
of many small files against pyiceberg, which writes them, in one run.

    python tests/benchmarks/iceberg_rows.py [ROWS [PYTHON_WITH_PYICEBERG [FILES]]]

Prints seconds of the processor, and judges nothing. Deletes remove one row in a hundred; of equality deletes pyarrow
reads the delete file too.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import logging
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from snapshot_explorer import open_table
from snapshot_explorer.engines import local
from tests.inner.engines import scan_of
from tests.inner.iceberg import arrow_schema, parse_schema, planning

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.report import record
from tests.benchmarks.timing import timed
from tests.support.iceberg.live_files import RECORDED, Reader, Version, field, with_id

if TYPE_CHECKING:
    from collections.abc import Sequence


FILES = 4
REPEATS = 5
FIELDS = (
    field(1, "id", "long"),
    field(2, "name", "string"),
    field(3, "amount", "double"),
    field(4, "at", "timestamptz"),
    field(5, "day", "date"),
)
KINDS = ("none", "positions", "vectors", "equality of numbers", "equality of texts", "positions and equality")
EQUALITY = (("numbers", "id", 1), ("texts", "name", 2), ("and equality", "id", 1))
"""The columns of equality deletes, and their ids, by a word of the kind."""
PYICEBERG = """
import glob, sys, time
import numpy as np, pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
folder, files = sys.argv[1], int(sys.argv[2])
if len(sys.argv) > 3:
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("d")
    n = 20 * files
    rows = pa.table({"part": pa.array(np.arange(n) // 20, pa.int32()), "id": np.arange(n), "amount": np.arange(n) / 2,
                     "name": [f"n{i}" for i in range(n)]})
    table = catalog.create_table("d.t", schema=rows.schema)
    with table.update_spec() as update:
        update.add_identity("part")
    table.append(rows)
else:
    (newest,) = sorted(glob.glob(f"{folder}/**/00002-*.metadata.json", recursive=True))[-1:]
    table = StaticTable.from_metadata(f"file://{newest}")
    start = time.process_time()
    table.scan().to_arrow()
    print(time.process_time() - start)
"""


def rows_of(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count, dtype=np.int64)
    return pa.table(
        {
            "id": ids,
            "name": pc.binary_join_element_wise("name", pa.array(ids).cast(pa.string()), " "),
            "amount": np.random.default_rng(start).random(count),
            "at": pa.array(ids * 1000, pa.timestamp("us", tz="UTC")),
            "day": pa.array((ids % 10_000).astype(np.int32), pa.date32()),
        }
    )


def write(folder: Path, name: str, rows: pa.Table) -> None:
    schema = {"fields": list(FIELDS)}
    pq.write_table(rows.cast(pa.schema([with_id(one, schema) for one in rows.schema])), folder / name)


def version(folder: Path, kind: str, rows: int) -> Version:
    """The files of a table with one kind of deletes."""
    made = Version(folder, *FIELDS, format_version=3)
    paths = [RECORDED + f"{number}.parquet" for number in range(FILES)]
    for number in range(FILES):
        made.data_files.append(made.entry(f"{number}.parquet", 0, rows, 1, (0, ())))
    gone = rows_of(0, FILES * rows).take(pa.array(np.arange(7, FILES * rows, 100)))
    if "positions" in kind:
        made.position_deletes("p.parquet", [(paths[one // rows], one % rows) for one in gone["id"].to_pylist()])
    if "vectors" in kind:
        for path in paths:
            made.vector(f"{path[-9]}.puffin", path, range(7, rows, 100))
    for word, column, number in EQUALITY:
        if word in kind:
            write(folder, f"{column}.parquet", gone.select([column]))
            made.delete_files.append(made.entry(f"{column}.parquet", 2, len(gone), 2, (0, ()), equality_ids=[number]))
    return made


def measure_deletes(folder: Path, rows: int) -> None:
    for number in range(FILES):
        write(folder, f"{number}.parquet", rows_of(number * rows, rows))
    paths = [folder / f"{number}.parquet" for number in range(FILES)]
    schema = arrow_schema(parse_schema({"fields": list(FIELDS)}))

    for kind in KINDS:
        metadata = version(folder, kind, rows).metadata()
        deletes = [folder / f"{column}.parquet" for word, column, _ in EQUALITY if word in kind]

        def bare(deletes: Sequence[Path] = deletes) -> tuple[pa.Table, list[pa.Table]]:
            return pa.concat_tables([pq.read_table(path) for path in paths]), list(map(pq.read_table, deletes))

        def ours(metadata: object = metadata) -> pa.Table:
            splits = planning.plan(metadata).splits
            return local.to_arrow(Reader(folder), splits, scan_of(schema))

        ours(), bare()
        pairs = [(timed(ours, time.process_time), timed(bare, time.process_time)) for _ in range(REPEATS)]
        mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{kind:<24} ours {mine * 1000:7.0f} ms   pyarrow {theirs * 1000:7.0f} ms   ratio {mine / theirs:4.2f}")
        work = f"Iceberg, {FILES * rows / 10**6:g} million rows, deletes: {kind}"
        record(work, mine, {"pyarrow reading all rows": theirs}, processor=True)


def measure_small_files(folder: Path, python: str, files: int) -> None:
    command = [python, "-W", "ignore", "-c", PYICEBERG, str(folder), str(files)]
    subprocess.run([*command, "write"], check=True, capture_output=True)
    table = folder / "d" / "t"
    mine, theirs = [], []
    for _ in range(2):
        theirs.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        mine.append(timed(lambda: open_table(table).at("latest").to_arrow(), time.process_time))
    best, other = min(mine), min(theirs)
    print(f"{files} files of 20 rows   ours {best:6.2f} s   pyiceberg {other:6.2f} s   ratio {best / other:4.2f}")
    record(f"Iceberg: read {files:,} files of 20 rows", best, {"pyiceberg": other}, processor=True)


def main() -> None:
    logging.disable(logging.WARNING)
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        measure_deletes(Path(folder), rows // FILES)
    if len(sys.argv) > 2:
        files = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
        with tempfile.TemporaryDirectory() as folder:
            measure_small_files(Path(folder), sys.argv[2], files)


if __name__ == "__main__":
    main()
