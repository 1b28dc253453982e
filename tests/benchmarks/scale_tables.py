"""Large tables for the benchmark of scale: metadata of very many files, commits or partitions.

Data files exist only in the tables of partitions.

Each function writes one table into an empty folder. The live files of a table of files were all there before its first
version that can be loaded; ten commits follow, which add and remove a few. The tables of commits keep few live files.
"""

import io
import json
import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.delta_open import commit_info, first_actions
from tests.benchmarks.paimon_history import Metadata, write_manifest
from tests.benchmarks.paimon_manifests import binary_row

DAYS = 100
BUCKETS = 8
YOUNG_COMMITS = 10
"""How many commits a table of files has after the version that holds nearly all of them."""
_LIVE = 30
"""How many live files a table of commits has."""
_WIDE_COMMITS = 12
_COLUMNS = 10
_BEGIN = 1_767_225_600_000
_MINUTE = 60_000
_PART_ROWS = 100_000
_HUDI = Path(__file__).parents[1] / "data" / "hudi" / "v9_cow_basic"
"""A table that Hudi wrote, whose properties and commits the written ones repeat."""


def delta_files(folder: Path, files: int, days: int = DAYS) -> None:
    """Write a Delta table: a checkpoint of so many adds with statistics, then commits."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    first = YOUNG_COMMITS
    _write_checkpoint(log / f"{first:020d}.checkpoint.parquet", files, days)
    (log / "_last_checkpoint").write_text(json.dumps({"version": first, "size": files + 2}))
    _write_commit(log, first, [_info(first)])
    some = max(1, files // 10_000)
    for young in range(YOUNG_COMMITS):
        version = first + 1 + young
        actions = [_info(version)]
        for number in range(some):
            added = _add(files + young * some + number, version, days)
            actions += [added, _remove(young * some + number, version, days)]
        _write_commit(log, version, actions)


def delta_partitions(folder: Path, partitions: int) -> None:
    """Write a Delta table of one file in each of so many partitions; the files exist, and contain zeros."""
    delta_files(folder, partitions, days=partitions)
    some = YOUNG_COMMITS * max(1, partitions // 10_000)
    for number in range(partitions + some):
        added = _add(number, 0, partitions)["add"]
        _write_zeros(folder / added["path"], added["size"])


def paimon_partitions(folder: Path, partitions: int) -> None:
    """Write a Paimon table of one file in each of so many partitions; the files exist, and contain zeros."""
    table = paimon_files(folder, partitions, keyed=False, days=partitions)
    some = (YOUNG_COMMITS + 1) * max(1, partitions // 10_000)
    for number in range(partitions + some):
        file = table.entry(number)["_FILE"]
        day = np.datetime64("2026-01-01") + np.timedelta64(number % partitions, "D")
        _write_zeros(folder / f"day={day}" / "bucket-0" / file["_FILE_NAME"], file["_FILE_SIZE"])


def _write_zeros(path: Path, size: int) -> None:
    """Write a file of zeros, which takes no space on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def delta_commits(folder: Path, commits: int, checkpoint_every: int | None = None) -> None:
    """Write a Delta table of so many commits; each adds a file and, from the 30th on, removes one."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    for version in range(commits):
        actions = [_info(version), *(_delta_first() if version == 0 else ()), _add(version, version)]
        if version >= _LIVE:
            actions.append(_remove(version - _LIVE, version))
        _write_commit(log, version, actions)
        if checkpoint_every and version and version % checkpoint_every == 0:
            live = [_add(number, number)["add"] for number in range(max(0, version + 1 - _LIVE), version + 1)]
            rows = [{"add": one} for one in live] + _delta_first()
            _write_checkpoint_rows(log / f"{version:020d}.checkpoint.parquet", rows)
            (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": len(rows)}))


def delta_growth(folder: Path, files: int, commits: int) -> None:
    """Write a Delta table of so many files in so many commits; each 20th removes a quarter of the files of an older."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    each = files // commits
    for version in range(commits):
        actions = [_info(version), *(_delta_first() if version == 0 else ())]
        actions += [_add(version * each + number, version) for number in range(each)]
        if version % 20 == 19:
            actions += [_remove(version // 2 * each + number, version) for number in range(each // 4)]
        _write_commit(log, version, actions)


def delta_columns(folder: Path, columns: int) -> None:
    """Write a Delta table of so many columns; each of twelve commits adds a file of 100 rows, and its statistics."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    names = [f"column_{number}" for number in range(columns)]
    fields = [{"name": name, "type": "double", "nullable": True, "metadata": {}} for name in names]
    protocol, first = _delta_first()
    first["metaData"] |= {"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": []}
    for version in range(_WIDE_COMMITS):
        values = pa.array(np.arange(100) * (version + 1.5))
        path = folder / f"part-{version:05d}.parquet"
        pq.write_table(pa.table([values] * columns, names=names), path)
        low, high = values[0].as_py(), values[-1].as_py()
        statistics = {"minValues": low, "maxValues": high, "nullCount": 0}
        stats = {"numRecords": 100} | {name: dict.fromkeys(names, value) for name, value in statistics.items()}
        added = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "dataChange": True}
        added |= {"modificationTime": _BEGIN + version * _MINUTE, "stats": json.dumps(stats)}
        _write_commit(log, version, [_info(version), *((protocol, first) if not version else ()), {"add": added}])


def paimon_files(folder: Path, files: int, *, keyed: bool, days: int = DAYS) -> "_Paimon":
    """Write a Paimon table: 100 manifests with so many entries together, then commits with a manifest each.

    With a primary key the files of a bucket are runs of disjoint keys and, one of ten, files of level 0.
    """
    table = _Paimon(folder, keyed=keyed, days=days)
    each = max(1, files // 100)
    for begin in range(0, files, each):
        table.base.append(table.manifest([table.entry(number) for number in range(begin, begin + each)]))
        table.rows += 1000 * each
    some = max(1, files // 10_000)
    for young in range(YOUNG_COMMITS + 1):
        added = [table.entry(files + young * some + number) for number in range(some)]
        removed = [table.entry(young * some + number) | {"_KIND": 1} for number in range(some)]
        table.commit(young + 1, [*removed, *added])
    return table


def paimon_commits(folder: Path, commits: int) -> None:
    """Write a Paimon table of so many snapshots; each adds a file and, from the 30th on, removes one."""
    table = _Paimon(folder, keyed=True)
    for version in range(1, commits + 1):
        removed = [table.entry(version - _LIVE) | {"_KIND": 1}] if version > _LIVE else []
        table.commit(version, [*removed, table.entry(version)])
        if version % _LIVE == 0:
            live = [table.entry(number) for number in range(version - _LIVE + 1, version + 1)]
            table.base = [table.manifest(live)]


def _delta_first() -> list[dict[str, Any]]:
    columns = {"id": "long", "name": "string", "amount": "double", "day": "string"}
    return first_actions(columns, "2d3c9f0e-0000-4000-8000-000000000000", _BEGIN)


def _info(version: int) -> dict[str, Any]:
    return commit_info(_BEGIN + version * _MINUTE, uuid.UUID(int=version), 1)


def _delta_path(number: int, days: int) -> tuple[str, str]:
    day = str(np.datetime64("2026-01-01") + np.timedelta64(number % days, "D"))
    return day, f"day={day}/part-{number % 1000:05d}-{uuid.UUID(int=number * 2**64)}.c000.snappy.parquet"


def _stats(number: int) -> str:
    low = number * 100
    return (
        f'{{"numRecords":100,"minValues":{{"id":{low},"name":"a{number}","amount":0.5}},'
        f'"maxValues":{{"id":{low + 99},"name":"z{number}","amount":9999.5}},"nullCount":{{"id":0,"name":0}}}}'
    )


def _add(number: int, version: int, days: int = DAYS) -> dict[str, Any]:
    day, path = _delta_path(number, days)
    return {
        "add": {
            "path": path,
            "partitionValues": {"day": day},
            "size": 12_345 + number % 1_000_000,
            "modificationTime": _BEGIN + version * _MINUTE,
            "dataChange": True,
            "stats": _stats(number),
        }
    }


def _remove(number: int, version: int, days: int = DAYS) -> dict[str, Any]:
    day, path = _delta_path(number, days)
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": _BEGIN + version * _MINUTE,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {"day": day},
            "size": 12_345 + number % 1_000_000,
        }
    }


def _write_commit(log: Path, version: int, actions: list[dict[str, Any]]) -> None:
    path, seconds = log / f"{version:020d}.json", (_BEGIN + version * _MINUTE) // 1000
    path.write_bytes(b"\n".join(orjson.dumps(action) for action in actions) + b"\n")
    os.utime(path, (seconds, seconds))


_TEXTS = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema(
    {
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
            }
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": pa.list_(pa.string()),
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
    }
)


def _write_checkpoint(path: Path, files: int, days: int) -> None:
    with pq.ParquetWriter(path, _CHECKPOINT) as writer:
        writer.write_table(pa.Table.from_pylist([_as_arrow(one) for one in _delta_first()], _CHECKPOINT))
        for begin in range(0, files, _PART_ROWS):
            rows = [_add(number, 0, days) for number in range(begin, min(begin + _PART_ROWS, files))]
            writer.write_table(pa.Table.from_pylist([_as_arrow(one) for one in rows], _CHECKPOINT))


def _write_checkpoint_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist([_as_arrow(one) for one in rows], _CHECKPOINT), path)


def _as_arrow(action: dict[str, Any]) -> dict[str, Any]:
    """Return an action with pairs in place of its maps, as Arrow takes them."""
    maps = {"partitionValues", "configuration", "options"}

    def converted(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: list(inner.items()) if name in maps else converted(inner) for name, inner in value.items()}

    return converted(action)


def hudi_files(folder: Path, files: int) -> None:
    """Write a Hudi table: 100 commits of so many base files, then commits that write new ones in place of a few."""
    table = _Hudi(folder)
    for first in range(0, files, files // 100):
        table.commit(range(first, min(first + files // 100, files)))
    some = max(1, files // 10_000)
    for young in range(YOUNG_COMMITS):
        table.commit(range(young * some, (young + 1) * some))


def hudi_commits(folder: Path, commits: int, files: int = 1) -> list[str]:
    """Write a Hudi table of so many commits, each of so many new file groups; return the paths of the base files."""
    table = _Hudi(folder)
    return [path for number in range(commits) for path in table.commit(range(number * files, (number + 1) * files))]


class _Hudi:
    """Writes commits as Hudi 1.1 does: the record of one that it wrote, with other files."""

    def __init__(self, folder: Path) -> None:
        self.timeline = folder / ".hoodie" / "timeline"
        (self.timeline / "history").mkdir(parents=True)
        properties = (_HUDI / ".hoodie" / "hoodie.properties").read_text()
        properties = properties.replace("partition.fields=p", "partition.fields=day").replace("LOCAL", "UTC")
        (folder / ".hoodie" / "hoodie.properties").write_text(properties)
        with min((_HUDI / ".hoodie" / "timeline").glob("*_*.commit")).open("rb") as file:
            reader = fastavro.reader(file)
            self.schema, self.record = fastavro.parse_schema(reader.writer_schema), next(reader)
        (self.stat,) = self.record["partitionToWriteStats"]["p=x"]
        extra = self.record["extraMetadata"]
        extra["schema"] = extra["schema"].replace('"name":"p"', '"name":"day"')
        self.commits = 0
        self.written: dict[int, str] = {}
        """The instant of the newest base file of each file group."""

    def commit(self, groups: range) -> list[str]:
        """Write a commit of a base file in each of some file groups; return the paths of these."""
        begun = datetime.fromtimestamp((_BEGIN + self.commits * _MINUTE) / 1000, UTC)
        instant, completed = (f"{at:%Y%m%d%H%M%S}000" for at in (begun, begun + timedelta(seconds=2)))
        stats: dict[str, list[dict[str, Any]]] = {}
        for group in groups:
            day = f"day={np.datetime64('2026-01-01') + np.timedelta64(group % DAYS, 'D')}"
            stats.setdefault(day, []).append(self._stat(group, day, instant))
            self.written[group] = instant
        operation = (
            "INSERT" if all(one["prevCommit"] == "null" for some in stats.values() for one in some) else "UPSERT"
        )
        record = self.record | {"partitionToWriteStats": stats, "operationType": operation}
        content = io.BytesIO()
        fastavro.writer(content, self.schema, [record], codec="null")
        (self.timeline / f"{instant}_{completed}.commit").write_bytes(content.getvalue())
        (self.timeline / f"{instant}.commit.requested").touch()
        (self.timeline / f"{instant}.inflight").touch()
        self.commits += 1
        return [str(one["path"]) for some in stats.values() for one in some]

    def _stat(self, group: int, day: str, instant: str) -> dict[str, Any]:
        file_id = f"{uuid.UUID(int=group * 2**64 + 7)}-0"
        previous = self.written.get(group)
        size = 1_000_000 + group
        return self.stat | {
            "fileId": file_id,
            "path": f"{day}/{file_id}_0-{self.commits}-{group}_{instant}.parquet",
            "prevCommit": previous or "null",
            "partitionPath": day,
            "numWrites": 1000,
            "numInserts": 0 if previous else 1000,
            "numUpdateWrites": 100 if previous else 0,
            "totalWriteBytes": size,
            "fileSizeInBytes": size,
        }


class _Paimon(Metadata):
    """A table that grows snapshot by snapshot."""

    def __init__(self, folder: Path, *, keyed: bool, days: int = DAYS) -> None:
        types = {"day": "DATE NOT NULL", "c1": "BIGINT NOT NULL"}
        types |= {f"c{number}": "BIGINT" for number in range(2, _COLUMNS)}
        super().__init__(folder, types, ["day", "c1"] if keyed else [], BUCKETS if keyed else -1)
        self.keyed = keyed
        self.days = [binary_row(20_454 + day) for day in range(days)]
        self.manifests = 0

    def entry(self, number: int) -> dict[str, Any]:
        """Return the ADD entry of a file, as Paimon 1.x writes it."""
        days = len(self.days)
        day, least = number % days, number * 1000
        young = number // days % 10 == 0
        low = binary_row(20_454 + day, *[least] * (_COLUMNS - 1))
        high = binary_row(20_454 + day, *[least + 999] * (_COLUMNS - 1))
        key_low, key_high = (binary_row(least), binary_row(least + 999)) if self.keyed else (binary_row(), binary_row())
        nulls = [0] if self.keyed else []
        return {
            "_VERSION": 2,
            "_KIND": 0,
            "_PARTITION": self.days[day],
            "_BUCKET": number // days % BUCKETS if self.keyed else 0,
            "_TOTAL_BUCKETS": BUCKETS if self.keyed else -1,
            "_FILE": {
                "_FILE_NAME": f"data-{uuid.UUID(int=number * 2**64 + 7)}-{number % 10}.parquet",
                "_FILE_SIZE": 1_000_000 + number,
                "_ROW_COUNT": 1000,
                "_MIN_KEY": key_low,
                "_MAX_KEY": key_high,
                "_KEY_STATS": {"_MIN_VALUES": key_low, "_MAX_VALUES": key_high, "_NULL_COUNTS": nulls},
                "_VALUE_STATS": {"_MIN_VALUES": low, "_MAX_VALUES": high, "_NULL_COUNTS": [0] * _COLUMNS},
                "_MIN_SEQUENCE_NUMBER": least,
                "_MAX_SEQUENCE_NUMBER": least + 999,
                "_SCHEMA_ID": 0,
                "_LEVEL": 0 if young or not self.keyed else 5,
                "_EXTRA_FILES": [],
                "_CREATION_TIME": _BEGIN + number,
                "_DELETE_ROW_COUNT": 0,
                "_EMBEDDED_FILE_INDEX": None,
                "_FILE_SOURCE": 0 if young or not self.keyed else 1,
                "_VALUE_STATS_COLS": None,
                "_EXTERNAL_PATH": None,
                "_FIRST_ROW_ID": None,
                "_WRITE_COLS": None,
            },
        }

    def commit(self, version: int, entries: list[dict[str, Any]]) -> None:
        self.add_snapshot(version, entries, "COMPACT" if version % 10 == 0 else "APPEND", self._next_manifest())

    def manifest(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        """Write a manifest; return its row in a manifest list."""
        return write_manifest(self.folder, self._next_manifest(), entries)

    def _next_manifest(self) -> str:
        self.manifests += 1
        return f"manifest-{uuid.UUID(int=self.manifests - 1)}-0"
