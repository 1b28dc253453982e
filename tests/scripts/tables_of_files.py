"""Tables whose rows depend on more than one kind of file: deletion vectors, column files, blobs, postponed buckets.

Written by `make_paimon_java.py`, which see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_VECTORS = {
    "bucket": "1",
    "deletion-vectors.enabled": "true",
    "commit.force-compact": "true",
    "manifest.compression": "null",
}


def dv_1_4(core: Any, name: str, **more: str) -> None:
    """Write a primary-key table whose compactions leave deletion vectors, and files of several levels."""
    core.create(name, {"k": "INT NOT NULL", "v": "STRING"}, "k", _VECTORS | more)
    core.write(name, [(number, f"first {number}") for number in range(40)])
    core.write(name, [(number, f"second {number}") for number in range(5, 15)])
    core.write(name, [(number, None) for number in (0, 7, 39)], delete=True)
    core.write(name, [(100, "new"), (8, "third 8")])


def dv_bitmap64(core: Any, name: str) -> None:
    """Write the same with vectors of 64 bits."""
    dv_1_4(core, name, **{"deletion-vectors.bitmap64": "true"})


def data_evolution(core: Any, name: str) -> None:
    """Write rows whose columns come in several commits; then columns that are renamed, widened and added."""
    options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    core.create(name, {"k": "INT", "v": "STRING", "n": "INT"}, "", options)
    core.write(name, [(1, "a", 10), (2, "b", None), (3, None, 30)])
    columns(core, name, ["v"], [("A",), (None,), ("C",)], 0)
    core.write(name, [(4, "d", 40), (5, "e", 50)])
    change, types = core.paimon.schema.SchemaChange, core.paimon.types.DataTypes
    core.alter(name, change.renameColumn("v", "w"))
    core.alter(name, change.updateColumnType("n", types.BIGINT()))
    core.alter(name, change.addColumn("v", types.STRING()))
    columns(core, name, ["n", "v"], [(5_000_000_041, "V4"), (5_000_000_051, None)], 3)


def blobs(core: Any, name: str) -> None:
    """Write a blob column: values, an empty one, nulls, and files that are cut small."""
    options = {"bucket": "-1", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    options |= {"blob.target-file-size": "100 b"}
    core.create(name, {"k": "INT", "b": "BLOB"}, "", options)
    core.write(name, [(1, b"one"), (2, b""), (3, None), (4, bytes(range(256))), (5, b"five")])
    core.write(name, [(6, b"six"), (7, b"seven" * 30)])
    columns(core, name, ["k", "b"], [(66, b"SIX"), (7, None)], 5)


def row_tracking(core: Any, name: str) -> None:
    """Write rows with ids, and compact their files into one that holds the ids itself."""
    core.create(name, {"k": "INT", "v": "STRING"}, "", {"bucket": "-1", "row-tracking.enabled": "true"})
    core.write(name, [(1, "a"), (2, "b")])
    core.write(name, [(3, "c")])
    core.tick()
    table = core.table(name)
    files = [file for split in splits(core, table) for file in split.dataFiles()]
    task = core.paimon.append.AppendCompactTask(core.paimon.data.BinaryRow.EMPTY_ROW, files)
    writer = table.store().newWrite("compaction")
    writer.withWriteType(core.paimon.table.SpecialFields.rowTypeWithRowTracking(table.rowType()))
    message = task.doCompact(table, writer)
    commit = core.paimon.table.sink.BatchWriteBuilderImpl(table).newCommit()
    commit.commit([message])
    commit.close()
    core.write(name, [(4, None)])


def splits(core: Any, table: Any) -> Sequence[Any]:
    """Return the splits of a table."""
    found: Sequence[Any] = core.paimon.table.source.ReadBuilderImpl(table).newScan().plan().splits()
    return found


def postponed(core: Any, name: str) -> None:
    """Write rows that wait for their bucket, then rows into a bucket."""
    core.create(name, {"k": "INT NOT NULL", "v": "STRING"}, "k", {"bucket": "-2"})
    core.write(name, [(1, "waits"), (2, "waits")])
    fixed = core.paimon.table.PostponeUtils.tableForFixBucketWrite(core.table(name))
    core.write(name, [(2, "is there"), (3, "is there")], table=fixed)
    core.write(name, [(3, "waits")])


def file_indexed(core: Any, name: str) -> None:
    """Write files with indexes of their own: beside them, in the manifest, of no values, and none at all."""
    options = {"bucket": "-1", "file-index.bsi.columns": "k,n", "file-index.bitmap.columns": "k,v"}
    options |= {"file-index.in-manifest-threshold": "1 b"}
    core.create(name, {"k": "INT", "v": "STRING", "n": "BIGINT", "p": "STRING"}, "", options, "p")
    core.write(name, [(1, "a", None, "x"), (2, "b", None, "x"), (3, "c", 5_000_000_000, None)])
    core.write(name, [(4, None, None, "y")], table=core.table(name, file_index__in_manifest_threshold="10 kb"))
    core.write(name, [(5, "e", None, "x")], table=core.table(name, file_index__read__enabled="false"))
    change = core.paimon.schema.SchemaChange
    core.alter(name, *(change.removeOption(option) for option in options if option.endswith(".columns")))
    core.write(name, [(6, "f", None, "x")])


def columns(core: Any, name: str, names: Sequence[str], rows: Sequence[tuple[Any, ...]], first_row_id: int) -> None:
    """Commit some columns of rows that are there."""
    core.tick()
    table = core.table(name)
    builder = core.paimon.table.sink.BatchWriteBuilderImpl(table)
    writer = builder.newWrite().withWriteType(table.rowType().project(names))
    writer.withIOManager(core.paimon.disk.IOManager.create(str(core.warehouse)))
    for row in rows:
        writer.write(core.row(row))
    messages = writer.prepareCommit()
    for message in messages:
        files = message.newFilesIncrement().newFiles()
        start = {False: first_row_id, True: first_row_id}
        for index in range(len(files)):
            file = files[index]
            is_blob = file.fileName().endswith(".blob")
            files[index] = file.assignFirstRowId(start[is_blob])
            start[is_blob] += file.rowCount()
    commit = builder.newCommit()
    commit.commit(messages)
    writer.close()
    commit.close()


TABLES: dict[str, tuple[str, Callable[[Any, str], None]]] = {
    "dv_1_4": ("UTC", dv_1_4),
    "dv_bitmap64": ("UTC", dv_bitmap64),
    "data_evolution": ("UTC", data_evolution),
    "blobs": ("UTC", blobs),
    "row_tracking": ("UTC", row_tracking),
    "postponed": ("UTC", postponed),
    "file_indexed": ("UTC", file_indexed),
}

TRACKED = ("data_evolution", "blobs", "row_tracking")
"""Tables whose rows have ids, which are written down as well."""
