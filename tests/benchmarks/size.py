"""Measure plans and listings of very large tables: seconds and peak memory of ours and of the peers, in turns.

    python tests/benchmarks/size.py [delta] [iceberg] [paimon] [hudi] [ducklake] [--entries 100000 ...]
        [--peers PYTHON ...] [--rounds 2]
    python tests/benchmarks/size.py [...] --growth

The tables are metadata only: a Delta table with a classic checkpoint of so many files with statistics in 16 parts and
100 commits after it, and an Iceberg table of manifests with 2,000 entries each. Without a peer: an append-only Paimon
table of manifests with 20,000 entries and a commit that removes a thousandth of the files; a Hudi table of 100 commits
and 100 partitions, and commits that rewrite a few files; a DuckLake catalog in a DuckDB file with 100 snapshots, the
statistics of three columns, and deletes of a thousandth of the files. They are written once per size, from fixed
numbers, into a folder of the system's temporary folder. Every measurement has a process of its own; the import is not
timed, and the peak is that of the whole process. The condition selects one file, of Hudi, whose metadata has only
partitions, one partition. `--growth` measures only plans with a condition, of 10,000 to 5,000,000 files: how time and
memory grow. Asserts nothing.
"""

# ruff: noqa: T201 - it prints what it measured
from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.delta_open import add, first_actions, info
from tests.benchmarks.iceberg_metadata import _Table, data_file
from tests.benchmarks.paimon_history import Metadata, write_manifest
from tests.benchmarks.paimon_manifests import binary_row
from tests.benchmarks.paimon_manifests import entry as paimon_entry
from tests.benchmarks.report import record
from tests.benchmarks.scale_tables import hudi_files
from tests.support.iceberg.table_builder import ADDED, entry

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTS, COMMITS, GROUP = 16, 100, 50_000
PER_MANIFEST, PER_PAIMON_MANIFEST = 2_000, 20_000
FEW = 200
SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
ROWS = 1_000
"""Rows of a file, whose ids follow each other."""
CATALOG = "lake.ducklake"
_OPEN = "import snapshot_explorer as sx; open_it = lambda: sx.open_table(path).at('latest')"
_OPEN_CATALOG = _OPEN.replace("(path)", f"(path + '/{CATALOG}')")
_DELTALAKE = "import deltalake; open_it = lambda: deltalake.DeltaTable(path)"
_PYICEBERG = (
    "from pyiceberg.table import StaticTable; "
    "open_it = lambda: StaticTable.from_metadata(path + '/metadata/v1.metadata.json')"
)
WORKS = {
    "open": "open_it()",
    "list the files": "len(open_it().files())",
    "plan with id = ...": "open_it().plan(f'id = {key}')",
}
"""What ours does, by its name."""
_OF_HUDI = {"plan with day = ...": "open_it().plan(\"day = '2026-02-03'\")"}
"""In place of the last: the metadata of Hudi that is read has no statistics."""
PEERS = {
    "delta": (
        "deltalake",
        _DELTALAKE,
        ("open_it()", "len(open_it().get_add_actions())", "open_it().get_add_actions()"),
    ),
    "iceberg": (
        "pyiceberg",
        _PYICEBERG,
        ("open_it()", "len(list(open_it().scan().plan_files()))", "list(open_it().scan(f'id = {key}').plan_files())"),
    ),
}
"""By format the peer, how it opens a table, and how it does each of the works."""
DUCKLAKE = """
create table ducklake_metadata as from (values ('version', '1.0', null::varchar, null::bigint),
    ('data_path', 'data/', null, null), ('encrypted', 'false', null, null)) t(key, value, scope, scope_id);
create table ducklake_snapshot as select i as snapshot_id, timestamptz '2026-01-01 00:00:00+00' + to_minutes(i)
    as snapshot_time, 1 as schema_version, 2 as next_catalog_id, i * {entries} // {snapshots} as next_file_id
    from range({snapshots} + 1) t(i);
create table ducklake_snapshot_changes as select snapshot_id, if(snapshot_id < {snapshots}, 'inserted_into_table:1',
    'deleted_from_table:1') as changes_made from ducklake_snapshot where snapshot_id > 0;
create table ducklake_schema as select 0 as schema_id, 0 as begin_snapshot, null::bigint as end_snapshot,
    'main' as schema_name, 'main/' as path, true as path_is_relative;
create table ducklake_table as select 1 as table_id, 'uuid-of-rows' as table_uuid, 1 as begin_snapshot,
    null::bigint as end_snapshot, 0 as schema_id, 'rows' as table_name, 'rows/' as path, true as path_is_relative;
create table ducklake_column as select c as column_id, 1 as begin_snapshot, null::bigint as end_snapshot,
    1 as table_id, c as column_order, ['id', 'name', 'day'][c] as column_name,
    ['int64', 'varchar', 'date'][c] as column_type, true as nulls_allowed from range(1, 4) t(c);
create table ducklake_data_file as select i as data_file_id, 1 as table_id,
    1 + i * ({snapshots} - 1) // {entries} as begin_snapshot, null::bigint as end_snapshot,
    'ducklake-' || md5(i::varchar) || '.parquet' as path, true as path_is_relative, 'parquet' as file_format,
    {rows} as record_count, 1000000 + i as file_size_bytes, i * {rows} as row_id_start from range({entries}) t(i);
create table ducklake_delete_file as select {entries} + i as delete_file_id, 1 as table_id,
    {snapshots} as begin_snapshot, null::bigint as end_snapshot, i as data_file_id,
    'delete-' || i || '.parquet' as path, true as path_is_relative, 'parquet' as format, 10 as delete_count,
    1000 as file_size_bytes from range(0, {entries}, 1000) t(i);
create table ducklake_file_column_stats as select i as data_file_id, 1 as table_id, c as column_id, 0 as null_count,
    [(i * {rows})::varchar, printf('name-%012d', i), (date '2026-01-01' + (i % 100)::int)::varchar][c] as min_value,
    [(i * {rows} + {rows} - 1)::varchar, printf('name-%012d', i + 1), (date '2026-01-01' + (i % 100)::int)::varchar][c]
    as max_value, false as contains_nan from range({entries}) t(i), range(1, 4) u(c);
"""
"""The statements that write a DuckLake catalog, with the columns that have values."""
RUN = """
import logging, resource, sys, time
logging.disable(logging.WARNING)
key = int(sys.argv[3])
for path in sys.argv[1:3]:
    {opening}
    start, busy = time.perf_counter(), time.process_time()
    {work}
    clock, processor = time.perf_counter() - start, time.process_time() - busy
print(clock, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def write_delta(folder: Path, entries: int) -> None:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    protocol, metadata = first_actions({"id": "long", "name": "string", "day": "string"}, str(uuid.UUID(int=1)), 0)
    ends = np.linspace(0, entries, PARTS + 1).astype(np.int64).tolist()
    for part, (begin, end) in enumerate(itertools.pairwise(ends), 1):
        adds = _adds(np.arange(begin, end))
        rows = pa.table({"add": adds})
        if part == 1:
            rows = pa.concat_tables([_first_rows(protocol, metadata), rows], promote_options="default")
        name = f"{0:020d}.checkpoint.{part:010d}.{PARTS:010d}.parquet"
        pq.write_table(rows, log / name, row_group_size=GROUP)
    (log / "_last_checkpoint").write_text(json.dumps({"version": 0, "size": entries + 2, "parts": PARTS}))
    for version in range(COMMITS + 1):
        gone = [{"remove": {"path": _path(2 * version), "deletionTimestamp": 0, "dataChange": True}}] if version else []
        actions = [info(version), *gone, *(_later(version, place) for place in range(10) if version)]
        (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def _first_rows(protocol: dict[str, Any], metadata: dict[str, Any]) -> pa.Table:
    texts, text, number = pa.map_(pa.string(), pa.string()), pa.string(), pa.int64()
    fields = {"id": text, "format": pa.struct({"provider": text, "options": texts}), "schemaString": text}
    fields |= {"partitionColumns": pa.list_(text), "configuration": texts, "createdTime": number}
    versions = pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()})
    schema = pa.schema({"protocol": versions, "metaData": pa.struct(fields)})
    return pa.Table.from_pylist([protocol, metadata], schema)


def _path(number: int) -> str:
    return f"day=2026-01-{number % 28 + 1:02d}/part-00000-{uuid.UUID(int=number)}.c000.snappy.parquet"


def _later(version: int, place: int) -> dict[str, Any]:
    action = add(version, place)
    action["add"]["path"] = f"day=x/later-{version}-{place}.parquet"
    return action


def _adds(numbers: np.ndarray) -> pa.StructArray:
    days = [f"2026-01-{number % 28 + 1:02d}" for number in numbers.tolist()]
    stats = [
        f'{{"numRecords":{ROWS},"minValues":{{"id":{low},"name":"name-{low:012d}"}},'
        f'"maxValues":{{"id":{low + ROWS - 1},"name":"name-{low + ROWS - 1:012d}"}},"nullCount":{{"id":0,"name":0}}}}'
        for low in (numbers * ROWS).tolist()
    ]
    columns = {
        "path": pa.array(map(_path, numbers.tolist()), pa.string()),
        "partitionValues": pa.array([[("day", day)] for day in days], pa.map_(pa.string(), pa.string())),
        "size": pa.array(1_000_000 + numbers),
        "modificationTime": pa.array(1_700_000_000_000 + numbers),
        "dataChange": pa.array(np.zeros(len(numbers), np.bool_)),
        "stats": pa.array(stats, pa.string()),
    }
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def write_iceberg(folder: Path, entries: int) -> None:
    (folder / "metadata").mkdir(parents=True)
    chance = random.Random(1)
    table = _Table(fsspec.filesystem("file"), str(folder), location=str(folder))
    table.sequence, snapshot_id, manifests = 1, 1, []
    for begin in range(0, entries, PER_MANIFEST):
        files = [_data_file(table, chance, number) for number in range(begin, min(begin + PER_MANIFEST, entries))]
        manifests.append(table.manifest(snapshot_id, [entry(ADDED, file) for file in files]))
        table.entries.clear()
        table.entries.update(dict.fromkeys(range(len(manifests))))  # names are numbered by them
    table.manifests[snapshot_id] = manifests
    summary = {"operation": "append", "total-records": str(entries * ROWS), "total-data-files": str(entries)}
    table.add_snapshot(snapshot_id, None, summary, millis=1_767_225_600_000)
    table.finish()


def _data_file(table: _Table, chance: random.Random, number: int) -> dict[str, Any]:
    result = data_file(table, chance)
    ends = (number * ROWS, number * ROWS + ROWS - 1)
    for name, end in zip(("lower_bounds", "upper_bounds"), ends, strict=True):
        result[name][0] = {"key": 1, "value": end.to_bytes(8, "little")}
    for pair in result["value_counts"]:
        pair["value"] = ROWS
    return result | {"record_count": ROWS, "file_path": table.path(f"data/{number:032x}-00001.parquet")}


def write_paimon(folder: Path, entries: int) -> None:
    table = Metadata(
        folder, {"id": "BIGINT", "day": "INT"} | {f"c{number}": "BIGINT" for number in range(2, 10)}, [], -1
    )
    for begin in range(0, entries, PER_PAIMON_MANIFEST):
        files = [_paimon_entry(number) for number in range(begin, min(begin + PER_PAIMON_MANIFEST, entries))]
        table.base.append(write_manifest(folder, f"manifest-{begin}", files))
    table.rows = entries * ROWS
    removed = [_paimon_entry(number) | {"_KIND": 1} for number in range(0, entries, 1_000)]
    table.add_snapshot(1, [*removed, _paimon_entry(entries)], "OVERWRITE", "manifest-delta")


def _paimon_entry(number: int) -> dict[str, Any]:
    result = paimon_entry(number)
    low, day = number * ROWS, number // PER_PAIMON_MANIFEST
    others = range(2, 10)
    stats = {
        "_MIN_VALUES": binary_row(low, day, *others),
        "_MAX_VALUES": binary_row(low + ROWS - 1, day, *others),
        "_NULL_COUNTS": [0] * 10,
    }
    none = {"_MIN_VALUES": binary_row(), "_MAX_VALUES": binary_row(), "_NULL_COUNTS": []}
    file = {"_ROW_COUNT": ROWS, "_MIN_KEY": binary_row(), "_MAX_KEY": binary_row(), "_KEY_STATS": none, "_LEVEL": 0}
    place = {"_PARTITION": binary_row(day), "_BUCKET": 0, "_TOTAL_BUCKETS": -1}
    return result | place | {"_FILE": result["_FILE"] | file | {"_VALUE_STATS": stats}}


def write_ducklake(folder: Path, entries: int) -> None:
    import duckdb

    folder.mkdir(parents=True)
    with duckdb.connect(str(folder / CATALOG)) as connection:
        connection.execute(DUCKLAKE.format(entries=entries, snapshots=COMMITS, rows=ROWS))


WRITERS = {
    "delta": write_delta,
    "iceberg": write_iceberg,
    "paimon": write_paimon,
    "hudi": hudi_files,
    "ducklake": write_ducklake,
}


def made(table_format: str, entries: int) -> Path:
    """Return the folder of a table, which is written if it is not there."""
    path = Path(tempfile.gettempdir()) / "snapshot-explorer-size" / f"{table_format}-{entries}"
    done = path.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(path, ignore_errors=True)
        WRITERS[table_format](path, entries)
        done.touch()
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a piece of work costs."""

    clock: float
    processor: float
    peak: int
    """The process's peak of memory in MiB."""

    def __str__(self) -> str:
        return f"{self.clock:7.2f} s, processor {self.processor:7.2f} s, {self.peak:5,} MiB"


def run(python: str, opening: str, work: str, *, paths: Sequence[Path], key: int) -> Cost:
    """Return the cost of work on the last table in a process of its own, after the same work on the others."""
    command = [python, "-W", "ignore", "-c", RUN.format(opening=opening, work=work), *map(str, paths), str(key)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{work}: {done.stderr.strip()[-1000:]}")
    clock, processor, peak = done.stdout.splitlines()[-1].split()  # DuckDB may draw a progress bar before
    return Cost(clock=float(clock), processor=float(processor), peak=int(peak))


def works(table_format: str) -> dict[str, str]:
    return dict([*WORKS.items()][:-1]) | _OF_HUDI if table_format == "hudi" else WORKS


def run_own(table_format: str, work: str, paths: Sequence[Path], key: int) -> Cost:
    opening = _OPEN_CATALOG if table_format == "ducklake" else _OPEN
    return run(sys.executable, opening, work, paths=paths, key=key)


def measure(table_format: str, entries: int, python: str | None, rounds: int) -> None:
    paths, key = (made(table_format, FEW), made(table_format, entries)), entries * ROWS // 3
    peer, peer_opening, peer_works = PEERS.get(table_format, ("peer", "", tuple(WORKS)))
    for (name, work), peer_work in zip(works(table_format).items(), peer_works, strict=True):
        own, other = [], []
        for _ in range(rounds):
            own.append(run_own(table_format, work, paths, key))
            if python is not None:
                other.append(run(python, peer_opening, peer_work, paths=paths, key=key))
        title = f"{table_format.capitalize()}, {entries:,} files: {name}"
        mine, theirs = _best(own), _best(other) if other else None
        print(f"{title}\n{'ours':>12} {mine}\n{peer:>12} {theirs or 'not measured'}", flush=True)
        peaks = f"{mine.peak:,} MiB" + (f" and {theirs.peak:,} MiB" if theirs else "")
        record(title, mine.clock, {peer: theirs.clock} if theirs else None, note=peaks)


def measure_growth(table_format: str) -> None:
    """Measure plans with a condition that leaves one file, of tables of several sizes."""
    name, work = list(works(table_format).items())[-1]
    points = []
    for entries in SIZES:
        paths = (made(table_format, FEW), made(table_format, entries))
        cost = run_own(table_format, work, paths, key=entries * ROWS // 3)
        print(f"{table_format.capitalize()}, {entries:,} files: {name} {cost}", flush=True)
        points.append({"files": entries, "seconds": cost.processor, "mib": cost.peak})
    title = f"{table_format.capitalize()}, {SIZES[0]:,} to {SIZES[-1]:,} files: {name}"
    record(title, points[-1]["seconds"], processor=True, growth=points)


def _best(costs: Sequence[Cost]) -> Cost:
    return Cost(**{name: min(getattr(cost, name) for cost in costs) for name in ("clock", "processor", "peak")})


def _with_package(pythons: Sequence[str], package: str) -> str | None:
    for python in (*pythons, sys.executable):
        if not subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False).returncode:
            return python
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=sys.modules[__name__].__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", default=list(WRITERS), metavar="FORMAT", help=", ".join(WRITERS))
    parser.add_argument("--entries", nargs="*", type=int, default=[100_000])
    parser.add_argument("--peers", nargs="*", default=[], metavar="PYTHON", help="interpreters that have peers")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--growth", action="store_true", help="measure how plans with a condition grow")
    options = parser.parse_args()
    for table_format in options.formats:
        if options.growth:
            measure_growth(table_format)
            continue
        python = _with_package(options.peers, PEERS[table_format][0]) if table_format in PEERS else None
        for entries in options.entries:
            measure(table_format, entries, python, options.rounds)


if __name__ == "__main__":
    main()
