"""Write a Paimon table of many small commits, for the benchmarks of whole histories.

    python tests/benchmarks/paimon_history.py FOLDER [snapshots] [entries] [compacted]

Only its metadata is there, no data file. Entries are as Paimon 1.x writes them, manifests are compressed with
zstandard, and the base is merged every 30 commits. With `compacted`, every tenth commit is a compaction: it takes away
what the nine before it added, and adds as many files of its own as the others.
"""

import io
import json
import sys
from pathlib import Path
from typing import Any

import fastavro

sys.path.append(str(Path(__file__).parents[2]))

from tests.benchmarks.paimon_manifests import entry, manifest
from tests.support.paimon.avro_schemas import MANIFEST_LIST

LIST = MANIFEST_LIST | {"name": "org.apache.paimon.avro.generated.record"}
_MERGED_EVERY = 30
_COMPACTED_EVERY = 10
_MINUTE = 60_000
_BEGIN = 1_767_225_600_000


def write_manifest(folder: Path, name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Write a manifest; return its row in a manifest list."""
    content = manifest(entries)
    (folder / "manifest" / name).write_bytes(content)
    days = [one["_PARTITION"] for one in entries]
    return {
        "_VERSION": 2,
        "_FILE_NAME": name,
        "_FILE_SIZE": len(content),
        "_NUM_ADDED_FILES": sum(1 - one["_KIND"] for one in entries),
        "_NUM_DELETED_FILES": sum(one["_KIND"] for one in entries),
        "_PARTITION_STATS": {"_MIN_VALUES": min(days), "_MAX_VALUES": max(days), "_NULL_COUNTS": [0]},
        "_SCHEMA_ID": 0,
    }


def write_list(folder: Path, name: str, rows: list[dict[str, Any]]) -> tuple[str, int]:
    """Write a manifest list; return its name and size."""
    out = io.BytesIO()
    fastavro.writer(out, LIST, rows, codec="deflate")
    (folder / "manifest" / name).write_bytes(out.getvalue())
    return name, len(out.getvalue())


class Metadata:
    """The metadata of a table with partitions by day, which grows snapshot by snapshot."""

    def __init__(self, folder: Path, types: dict[str, str], primary_keys: list[str], buckets: int) -> None:
        self.folder = folder
        self.base: list[dict[str, Any]] = []
        self.rows = 0
        for name in ("schema", "snapshot", "manifest"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        schema = {
            "version": 3,
            "id": 0,
            "fields": [{"id": index, "name": name, "type": types[name]} for index, name in enumerate(types)],
            "highestFieldId": len(types) - 1,
            "partitionKeys": ["day"],
            "primaryKeys": primary_keys,
            "options": {"bucket": str(buckets)},
            "timeMillis": 0,
        }
        (folder / "schema" / "schema-0").write_text(json.dumps(schema))

    def add_snapshot(self, version: int, entries: list[dict[str, Any]], kind: str, manifest_name: str) -> None:
        """Write a snapshot of these changes, and the manifest of them."""
        delta = write_manifest(self.folder, manifest_name, entries)
        lists = [
            write_list(self.folder, f"manifest-list-{version:032x}-{part}", rows)
            for part, rows in enumerate((self.base, [delta]))
        ]
        self.base = [*self.base, delta]
        changed = sum(one["_FILE"]["_ROW_COUNT"] * (1 - 2 * one["_KIND"]) for one in entries)
        self.rows += changed
        snapshot = {
            "version": 3,
            "id": version,
            "schemaId": 0,
            "baseManifestList": lists[0][0],
            "baseManifestListSize": lists[0][1],
            "deltaManifestList": lists[1][0],
            "deltaManifestListSize": lists[1][1],
            "changelogManifestList": None,
            "commitUser": "benchmark",
            "commitIdentifier": version,
            "commitKind": kind,
            "timeMillis": _BEGIN + version * _MINUTE,
            "totalRecordCount": self.rows,
            "deltaRecordCount": changed,
            "watermark": -(2**63),
        }
        (self.folder / "snapshot" / f"snapshot-{version}").write_text(json.dumps(snapshot, indent=2))
        (self.folder / "snapshot" / "LATEST").write_text(str(version))
        if version == 1:
            (self.folder / "snapshot" / "EARLIEST").write_text("1")


class Written(Metadata):
    """A table that grows commit by commit."""

    def __init__(self, folder: Path, *, compacted: bool) -> None:
        types = {"day": "INT"} | {f"c{number}": "BIGINT" for number in range(1, 10)}
        super().__init__(folder, types, ["day", "c1"], 8)
        self.compacted = compacted
        self.live: dict[str, dict[str, Any]] = {}
        self.young: list[str] = []

    def commit(self, version: int, added: list[dict[str, Any]]) -> None:
        """Add a snapshot."""
        compacts = self.compacted and version % _COMPACTED_EVERY == 0
        entries = [self.live.pop(name) | {"_KIND": 1} for name in (self.young if compacts else ())]
        self.young = [] if compacts else [*self.young, *(one["_FILE"]["_FILE_NAME"] for one in added)]
        self.live |= {one["_FILE"]["_FILE_NAME"]: one for one in added}
        entries += added
        self.add_snapshot(version, entries, "COMPACT" if compacts else "APPEND", f"manifest-{version:032x}-0")
        if version % _MERGED_EVERY == 0:
            self.base = [write_manifest(self.folder, f"manifest-{version:032x}-1", list(self.live.values()))]


def write(folder: Path, snapshots: int = 2_000, entries: int = 20_000, *, compacted: bool = False) -> None:
    """Write the table: so many snapshots, which add so many files together."""
    table = Written(folder, compacted=compacted)
    each = max(1, entries // snapshots)
    for version in range(1, snapshots + 1):
        begin = (version - 1) * each
        table.commit(version, [entry(number) for number in range(begin, begin + each)])


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:4]), compacted="compacted" in sys.argv)
