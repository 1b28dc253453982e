"""Have Paimon, Delta and Iceberg list what their own clean-up of a table would delete.

    python -m tests.oracles.orphan_tables OUT

This writes the table of Paimon; `connector_tables.py` writes those of Delta and Iceberg. They are `OUT/planted/NAME/`,
with planted files, all of them ten days old, and `OUT/deleted/NAME.json`: the paths that a dry run lists.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

PLANTED = {
    "paimon": (
        "bucket-0/data-lost-0.parquet",
        "bucket-0/changelog-lost-0.parquet",
        "manifest/manifest-lost-0",
        "index/index-lost-0",
        "statistics/stat-lost-0",
        "snapshot/.snapshot-9.lost.tmp",
        "schema/.schema-9.lost.tmp",
        "lost/data-lost-1.parquet",
        "lost.txt",
    ),
    "delta": (
        "part-00000-lost.snappy.parquet",
        "part=9/part-00000-lost.snappy.parquet",
        "deletion_vector_11111111-1111-4111-8111-111111111111.bin",
        "_delta_log/.lost.json.tmp",
        "_hidden/lost.parquet",
        "_change_data/cdc-lost.parquet",
        "_delta_index/lost.parquet",
        ".lost/lost.parquet",
        "lost.txt",
    ),
    "iceberg": (
        "data/lost.parquet",
        "data/part=9/lost-deletes.parquet",
        "data/_lost.parquet",
        "metadata/lost-m0.avro",
        "metadata/lost.stats",
        "metadata/00000-lost.metadata.json",
        ".lost/lost.parquet",
        "lost.txt",
    ),
}
OLD_SECONDS = 10 * 24 * 60 * 60


def plant(root: Path, names: Iterable[str]) -> None:
    """Write files that no metadata names, and make every file old."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"lost")
    then = time.time() - OLD_SECONDS
    for path in root.rglob("*"):
        os.utime(path, (then, then))


def write_paimon(out: Path) -> None:
    """Write a table with a tag, a branch, deletion vectors and expired snapshots; list what Paimon would delete."""
    from tests.support.oracles import paimon_core

    core = paimon_core.Core(Path(sys.prefix) / "jars" / "paimon-1.4", out)
    (out / "planted").symlink_to(core.warehouse / "d.db")
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"}
    core.create("paimon", {"id": "BIGINT NOT NULL", "name": "STRING"}, "id", options)
    for number in range(4):
        core.write("paimon", [(1, f"{number}"), (number + 10, "b")])
        core.compact_all("paimon", full=False)
    table = core.table("paimon")
    table.createTag("kept", 2)
    table.createBranch("dev", "kept")
    plant(out / "planted" / "paimon", PLANTED["paimon"])
    clean = core.paimon.operation.LocalOrphanFilesClean
    millis = int((time.time() - 24 * 60 * 60) * 1000)
    deleted = clean(core.table("paimon"), millis, True).clean().getDeletedFilesPath()  # noqa: FBT003 - Java's
    record(out, "paimon", [str(path) for path in deleted], core.warehouse / "d.db" / "paimon")


def write_all(spark: Any, out: Path) -> None:
    """Write a table of Delta and one of Iceberg; list what VACUUM and remove_orphan_files would delete."""
    for name, using in (("delta", f"delta.`{out}/planted/delta`"), ("iceberg", "lake.planted.iceberg")):
        extra = "'delta.enableDeletionVectors' = 'true'" if name == "delta" else "'write.delete.mode' = 'merge-on-read'"
        spark.sql(
            f"CREATE TABLE {using} (id BIGINT, part INT) USING {name} PARTITIONED BY (part) TBLPROPERTIES ({extra})"
        )
        for number in range(3):
            spark.sql(f"INSERT INTO {using} SELECT id, id % 2 FROM range({number * 10}, {number * 10 + 10})")
        spark.sql(f"DELETE FROM {using} WHERE id = 3")
        root = out / "planted" / name
        plant(root, PLANTED[name])
        record(out, name, dry_run(spark, name, using), root)


def dry_run(spark: Any, name: str, table: str) -> list[str]:
    """Return the paths that the clean-up of a format would delete, folders included."""
    if name == "delta":
        return [row[0] for row in spark.sql(f"VACUUM {table} DRY RUN").collect()]
    call = f"CALL lake.system.remove_orphan_files(table => '{table.removeprefix('lake.')}', dry_run => true)"
    return [row[0] for row in spark.sql(call).collect()]


def record(out: Path, name: str, deleted: Iterable[str], root: Path) -> None:
    """Write the paths of files, relative to the table's folder."""
    plain = [path.removeprefix("file:") for path in deleted]
    relative = sorted(Path("/" + path.lstrip("/")).relative_to(root.absolute()).as_posix() for path in plain)
    folder = out / "deleted"
    folder.mkdir(exist_ok=True)
    files = [path for path in relative if (root / path).is_file()]
    (folder / f"{name}.json").write_text(json.dumps(files))


if __name__ == "__main__":
    write_paimon(Path(sys.argv[1]))
