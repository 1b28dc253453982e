"""The frames FILES and CHANGES of Delta versions."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.formats.delta.metadata.records import Actions


def files_frame(adds: pa.Table, *, partitions: pa.Array, rows: pa.Array) -> pa.Table:
    """Return the FILES frame of live files, in the order of the log.

    `added_version` is the version since which a file is live. It and `data_change` are null for files of a checkpoint,
    which does not contain them.

    Args:
        adds: ADDS of the live files.
        partitions: Their partitions, by logical name.
        rows: The rows of each file before deletions; null where its statistics omit them.
    """
    columns = file_columns(adds, partitions, rows) | {"added_version": adds.column("version")}
    return frames.table_of(frames.FILES, columns)


def changes_frame(
    actions: Actions,
    versions: Sequence[int],
    *,
    partitions: Mapping[str, pa.Array],
    rows: Mapping[str, pa.Array],
) -> pa.Table:
    """Return the CHANGES frame: in the given order of versions; per version removes, adds, then change data.

    Args:
        partitions: The partitions of the removes, adds and change data files, by logical name.
        rows: The row counts of the removes and adds.
    """
    tables = [
        _changes(actions.removes, "remove", "delta", partitions["remove"], rows["remove"]),
        _changes(actions.adds, "add", "delta", partitions["add"], rows["add"]),
        _changes(actions.cdc, "add", "changelog", partitions["cdc"], pa.nulls(actions.cdc.num_rows, pa.int64())),
    ]
    together = pa.concat_tables(tables)
    if not together.num_rows:
        return together
    numbers = np.array(versions, np.int64)
    order = np.argsort(numbers)
    indices = order[np.searchsorted(numbers[order], together.column("version").to_numpy())]
    if (indices[1:] >= indices[:-1]).all():
        return together  # as of commits that only add
    return together.take(pa.array(np.argsort(indices, kind="stable")))


def vector_texts(vectors: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return deletion vectors as text: kind, `:`, its location, and `@` with the offset in a file; null without one.

    `u:` is a file below the table's root by its UUID, `p:` an absolute path, `i:` a vector inline in the log.
    """
    flat = single_chunk(vectors)
    if flat.null_count == len(flat):
        return pa.nulls(len(flat), pa.string())
    storage_type, where, offset = (
        pc.struct_field(flat, [name]) for name in ("storage_type", "path_or_inline", "offset")
    )
    at = pc.fill_null(pc.binary_join_element_wise("@", pc.cast(offset, pa.string()), ""), "")
    texts = pc.binary_join_element_wise(storage_type, ":", where, at, "")
    return pc.if_else(pc.is_valid(flat), texts, pa.scalar(None, pa.string()))


def _changes(files: pa.Table, change: str, list_kind: str, partitions: pa.Array, rows: pa.Array) -> pa.Table:
    columns = file_columns(files, partitions, rows) | {
        "version": files.column("version"),
        "change": change,
        "list": list_kind,
    }
    return frames.table_of(frames.CHANGES, columns)


def file_columns(files: pa.Table, partitions: pa.Array, rows: pa.Array) -> dict[str, object]:
    """Return the columns that FILES, CHANGES and ENTRIES share."""
    has_vectors = "deletion_vector" in files.column_names
    vectors = single_chunk(files.column("deletion_vector")) if has_vectors else None
    return {
        "path": files.column("path"),
        "partition": partitions,
        "rows": rows,
        "size_bytes": files.column("size_bytes"),
        "deletion_vector": None if vectors is None else vector_texts(vectors),
        "deleted_rows": None if vectors is None else pc.struct_field(vectors, ["cardinality"]),
        "data_change": files.column("data_change"),
    }
