"""Delete files and deletion vectors that apply to no live data file.

Source: iceberg specification, "Scan Planning"; iceberg RemoveDanglingDeletesSparkAction.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.formats.iceberg.deletes.index import PUFFIN, delete_rows, only_path
from snapshot_explorer.formats.iceberg.metadata.entries import EQUALITY_DELETES, IcebergLiveFiles

_Partition = tuple[int, int]


def unmatched_deletes(live: IcebergLiveFiles, unpartitioned: Collection[int]) -> tuple[int, int]:
    """Return the number of delete files and deletion vectors that apply to no live data file, and their total number.

    By the metadata alone: a position delete file whose statistics name no file counts as applying if a data file of its
    partition is old enough. Delete files with the sequence number 0 never apply.

    Args:
        unpartitioned: Ids of specs without partitions, whose equality deletes apply to all files.
    """
    data = _DataFiles(live.data)
    matched = 0
    for row in delete_rows(live.deletes):
        number, partition = row["sequence_number"], (row["spec_id"], row["partition"])
        if row["content"] == EQUALITY_DELETES:
            matched += data.has_older(None if row["spec_id"] in unpartitioned else partition, number - 1)
        elif (path := row["referenced_data_file"] if row["file_format"] == PUFFIN else only_path(row)) is not None:
            matched += data.numbers.get(path, number + 1) <= number
        elif row["file_format"] != PUFFIN:
            matched += data.has_between(partition, row["lower"], row["upper"], number)
    return len(live.deletes) - matched, len(live.deletes)


class _DataFiles:
    """The live data files by path and by partition."""

    def __init__(self, files: pa.Table) -> None:
        names = ("path", "spec_id", "partition", "sequence_number")
        self.numbers: dict[str, int] = {}
        """The sequence number of each file."""
        self._paths: dict[_Partition, list[tuple[bytes, int]]] = {}
        for path, spec_id, partition, number in zip(*(files[name].to_pylist() for name in names), strict=True):
            self.numbers[path] = number
            self._paths.setdefault((spec_id, partition), []).append((path.encode(), number))
        for paths in self._paths.values():
            paths.sort()
        self._oldest = {key: min(number for _, number in paths) for key, paths in self._paths.items()}
        self._first = min(self._oldest.values(), default=None)

    def has_older(self, partition: _Partition | None, number: int) -> bool:
        """Return whether a file of a partition, or any for None, has at most this sequence number."""
        oldest = self._first if partition is None else self._oldest.get(partition)
        return oldest is not None and oldest <= number

    def has_between(self, partition: _Partition, lower: bytes | None, upper: bytes | None, number: int) -> bool:
        """Return whether a file of at most this sequence number has a path within bounds; None is unbounded."""
        paths: Sequence[tuple[bytes, int]] = self._paths.get(partition, ())
        first = 0 if lower is None else bisect_left(paths, (lower, -1))
        for index in range(first, len(paths)):  # most often the first one has an answer
            path, own = paths[index]
            if upper is not None and path > upper:
                return False
            if own <= number:
                return True
        return False


def has_deletes(manifests: pa.Table, content: int) -> bool:
    """Return whether manifests with this content have live files, or may have."""
    chosen = manifests.filter(pc.equal(manifests["content"], content))
    counts = [pc.fill_null(chosen[name], 1) for name in ("added_files", "existing_files")]
    return bool(pc.any(pc.greater(pc.add(*counts), 0)).as_py())
