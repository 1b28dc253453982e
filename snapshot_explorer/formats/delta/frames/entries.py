"""Single files of the log: which data files they add and remove, the frame ENTRIES.

Source: delta PROTOCOL.md, "Add File and Remove File", "Checkpoints", "Sidecar Files".
"""

from collections.abc import Iterator, Sequence

import numpy as np
import orjson
import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.formats.delta.frames.files import entries_frame
from snapshot_explorer.formats.delta.metadata.actions import Parser
from snapshot_explorer.formats.delta.metadata.batches import check_size
from snapshot_explorer.formats.delta.metadata.checkpoints import FileActions, file_actions
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import Metadata
from snapshot_explorer.formats.delta.scan.partitions import partition_texts
from snapshot_explorer.formats.delta.scan.statistics import rows_of
from snapshot_explorer.storage import Storage


def entries_of(storage: Storage, log: DeltaLog, version: int, path: str) -> pa.Table:
    """Return the ENTRIES of a file of the log that a version is made of: a commit, a checkpoint's file or a sidecar.

    Entries are in the order of the file, without files of change data. A remove in a checkpoint is a tombstone: it
    removes nothing, but records that the file was removed before. Partitions have the columns in force at the commit
    or the checkpoint, as in CHANGES.

    Reads the file: a commit, or a checkpoint in JSON, whole, one in parquet a row group at a time. Of the checkpoint
    what is not a file action is read too, unless it is kept.

    Args:
        path: The file, as MANIFESTS spells it.
    """
    base = {file.path: file for file in log.checkpoint_files(version, adds=False)}
    segment = log.segment(version)
    sizes = {file.path: file.size_bytes for file in base.values()}
    sizes |= {commit.path: commit.size_bytes for commit in segment.commits}
    owners = {commit.path: commit.version for commit in segment.commits}
    owners |= dict.fromkeys(base, -1 if segment.checkpoint_version is None else segment.checkpoint_version)
    if path not in owners:
        raise InvalidArgumentError(
            f"Version {version} is not made of {path!r}. It is made of {len(owners):,} files of the log: "
            "those in its manifests()."
        )
    metadata = log.protocol_and_metadata(owners[path])[1]
    if path in base and not path.endswith(".json"):
        parts = file_actions(storage, path, base[path].size_bytes)
    else:
        parts = _of_lines(storage, path, sizes[path])
    return pa.concat_tables([frames.ENTRIES.empty_table(), *(_in_order(part, metadata) for part in parts)])


def _of_lines(storage: Storage, path: str, size_bytes: int | None) -> Iterator[list[FileActions]]:
    """Yield the file actions of a commit, or of a checkpoint in JSON, as one item."""
    content = storage.read(path)
    parser = Parser(infos=False, limits=storage.limits)
    parser.feed(None, path, content)
    actions = parser.actions()
    check_size(path, size_bytes, content)
    # The parser separates the kinds, in order: the kind of each line restores the order of all.
    kinds = [
        kind
        for line in content.split(b"\n")
        if line.strip()
        for kind, body in orjson.loads(line).items()
        if body is not None and kind in ("add", "remove")
    ]
    adds = np.array([kind == "add" for kind in kinds], np.bool_)
    yield [
        FileActions(kind="add", row_numbers=np.flatnonzero(adds), files=actions.adds),
        FileActions(kind="remove", row_numbers=np.flatnonzero(~adds), files=actions.removes),
    ]


def _in_order(actions: Sequence[FileActions], metadata: Metadata) -> pa.Table:
    entries = [
        entries_frame(
            action.files, action.kind, partitions=partition_texts(action.files, metadata), rows=rows_of(action.files)
        )
        for action in actions
    ]
    together = pa.concat_tables([frames.ENTRIES.empty_table(), *entries])
    if len(actions) <= 1:
        return together
    order = np.argsort(np.concatenate([action.row_numbers for action in actions]), kind="stable")
    return together.take(pa.array(order))
