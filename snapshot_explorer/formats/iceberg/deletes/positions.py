"""Position delete files: the positions of deleted rows, by data file.

Source: iceberg specification, "Position Delete Files".
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.files.field_columns import projection
from snapshot_explorer.formats.iceberg.files.columns import RULES
from snapshot_explorer.formats.iceberg.files.data_files import (
    File,
    IcebergOpenFile,
    batches,
    check_recorded_size,
    open_data_file,
)
from snapshot_explorer.formats.iceberg.files.field_ids import IdRules, MappedField
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergDataType, IcebergField
from snapshot_explorer.storage import Storage

FILE_PATH_ID, POSITION_ID = 2_147_483_546, 2_147_483_545
_PATH = IcebergField(id=FILE_PATH_ID, name="file_path", type=IcebergDataType(root="string"), required=True)
_POSITION = IcebergField(id=POSITION_ID, name="pos", type=IcebergDataType(root="long"), required=True)
_RULES = IdRules(
    mapping=(
        MappedField(id=FILE_PATH_ID, names=("file_path",), fields=()),
        MappedField(id=POSITION_ID, names=("pos",), fields=()),
    ),
    only_schema=None,
)
"""Some writers leave out the ids: the names are fixed."""
_BATCH_ROWS = 1 << 20
_Bounds = tuple[bytes, bytes, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDeletes:
    """The content of a position delete file."""

    ranges: Mapping[str, tuple[int, int]]
    """For each data file, by its recorded path, the start and end of its positions."""
    positions: Positions
    """Positions of all data files, ascending in each."""

    @property
    def size_bytes(self) -> int:
        """The memory that it takes."""
        return int(self.positions.nbytes) + sum(len(path) for path in self.ranges)

    def of(self, path: str) -> Positions:
        """Return the positions of a data file, ascending; a position may occur several times."""
        begin, end = self.ranges.get(path, (0, 0))
        return self.positions[begin:end]


def read_position_deletes(storage: Storage, file: File) -> PositionDeletes:
    """Return the content of a position delete file. Reads all of it except the column `row`.

    A file of another size than its manifest records is read if the manifest records its first and last path, without
    their folders, and its first and last position: releases of Iceberg before 1.12 that copy a table to another path
    (`rewrite_table_path`) rewrite the paths in its delete files, but leave the old sizes in manifests.

    Source: apache/iceberg issue 12554.
    """
    with open_data_file(storage, replace(file, size_bytes=None), _RULES, dictionary=(_PATH.name,)) as source:
        size_bytes = source.source.size()
        paths, positions = _content(source)
    if size_bytes != file.size_bytes and _bounds(paths, positions) != _recorded_bounds(file):
        check_recorded_size(file, size_bytes)
    if len(positions) and int(positions.min()) < 0:
        raise CorruptTableError(
            f"The delete file {file.location} has the position {positions.min()}. It is damaged; compare it with a "
            "copy of the table."
        )
    codes = np.asarray(paths.indices.to_numpy(zero_copy_only=False), np.int64)
    if not _is_sorted(codes, positions):
        order = np.lexsort((positions, codes))
        codes, positions = codes[order], positions[order]
    starts = np.searchsorted(codes, np.arange(len(paths.dictionary) + 1)).tolist()
    indices = {name: (starts[code], starts[code + 1]) for code, name in enumerate(paths.dictionary.to_pylist())}
    return PositionDeletes(ranges=indices, positions=positions)


def _bounds(paths: pa.DictionaryArray, positions: Positions) -> _Bounds | None:
    """Return the names of the files of the first and the last path, and the bounds of positions; None without rows."""
    texts = sorted(path.encode() for path in paths.dictionary.to_pylist())
    return (_name(texts[0]), _name(texts[-1]), int(positions.min()), int(positions.max())) if texts else None


def _recorded_bounds(file: File) -> _Bounds | tuple[()]:
    """Return these bounds as the manifest records them; None if it does not record all of them."""
    paths, positions = file.path_bounds, file.position_bounds
    if paths is None or positions is None:
        return ()
    first, last = (int.from_bytes(position, "little", signed=True) for position in positions)
    return _name(paths[0]), _name(paths[1]), first, last


def _name(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _content(source: IcebergOpenFile) -> tuple[pa.DictionaryArray, Positions]:
    """Return the paths and positions of a delete file. The dictionary contains each path once."""
    columns = projection(RULES, (_PATH, _POSITION), source.fields, {}, f"the file {source.file.location}")
    path_name, position_name = (stored.name for _, stored in columns.targets if stored is not None)
    paths, positions = [pa.array([], pa.string()).dictionary_encode()], [NOTHING]
    for batch in batches(source, columns, None, source.rows, size=_BATCH_ROWS):
        path, position = batch.column(path_name), batch.column(position_name)
        if path.null_count or position.null_count:
            # A row without path or position deletes nothing.
            valid = pc.and_(path.is_valid(), position.is_valid())
            path, position = path.filter(valid), position.filter(valid)
        encoded = path if isinstance(path, pa.DictionaryArray) else path.cast(pa.string()).dictionary_encode()
        paths.append(encoded.cast(paths[0].type))
        positions.append(np.asarray(position.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64))
    return single_chunk(pa.chunked_array(paths).unify_dictionaries()), np.concatenate(positions)


def _is_sorted(codes: npt.NDArray[np.int64], positions: Positions) -> bool:
    step = np.diff(codes)
    return bool(np.all(step >= 0) and np.all((np.diff(positions) >= 0) | (step > 0)))


def merge_positions(parts: list[Positions]) -> Positions:
    """Return the distinct positions of several deletes, ascending."""
    present = [positions for positions in parts if len(positions)]
    if not present:
        return NOTHING
    together = present[0] if len(present) == 1 else np.sort(np.concatenate(present))
    is_new = np.ones(len(together), np.bool_)
    is_new[1:] = together[1:] != together[:-1]
    return together if is_new.all() else together[is_new]


def bounds_of(field_id: int, lower_bounds: pa.Array, upper_bounds: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the lower and upper bound of a column of position delete files; null where unknown.

    Args:
        lower_bounds: Maps of field id to value.
    """
    return values_of(lower_bounds, field_id), values_of(upper_bounds, field_id)
