"""Existence of the files that versions need: data files with the recorded sizes, and deletion vectors."""

import re

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.delta.files.deletion_vectors import relative_file
from snapshot_explorer.formats.expiry import Presence, checked_files, presence_from
from snapshot_explorer.storage import Storage

_OFFSET = re.compile(r"@\d+$", re.ASCII)


def presence(storage: Storage, lifetimes: pa.Table) -> Presence:
    """Return which data files and deletion vectors exist, and which data files have another size."""
    paths, vectors = single_chunk(lifetimes.column("path")), pa.array(vector_files(lifetimes), pa.string())
    sizes = single_chunk(lifetimes.column("size_bytes"))
    # Early releases of delta-rs recorded 0 for each file. Source: delta-io/delta-rs pull request 625.
    sizes = pc.if_else(pc.equal(sizes, 0), pa.scalar(None, sizes.type), sizes)
    # The log does not record the size of a file with deletion vectors.
    sizes = pa.concat_arrays([sizes, pa.nulls(len(vectors), sizes.type)])
    checked = checked_files(storage, pa.concat_arrays([paths, vectors]), sizes)
    return presence_from(checked, paths, vectors)


def vector_files(lifetimes: pa.Table) -> list[str | None]:
    """Return the file below the root of the deletion vector of each of the LIFETIMES; None for a file without one."""
    column = lifetimes.column("deletion_vector")
    if column.null_count == len(column):
        return [None] * len(column)
    texts = column.to_pylist()
    return [_vector_file(text) for text in texts]


def _vector_file(text: str | None) -> str | None:
    if text is None or not text.startswith("u:"):
        return None
    try:
        return relative_file(_OFFSET.sub("", text.removeprefix("u:")))
    except CorruptBytesError as error:
        raise CorruptTableError(
            f"The log describes a deletion vector that is not valid: {error}. It may be damaged; compare it with a "
            "copy of the table."
        ) from error
