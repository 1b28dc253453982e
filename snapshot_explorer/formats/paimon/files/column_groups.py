"""Data evolution: groups of files that contain columns of the same rows, matched by their row id ranges."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonField
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema

BLOB = "BLOB"
BLOB_FORMAT = "blob"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGroup:
    """Files that contain columns of the same rows. Picklable."""

    files: tuple[PaimonDataFile, ...]
    """Files with the same number of rows, the newest first. At least one."""
    blobs: tuple[PaimonDataFile, ...] = ()
    """Blob files, each with one column of some of the rows, the newest first."""

    @property
    def first_row_id(self) -> int:
        """The id of the first row; 0 for the single file of a group whose manifest entry has none."""
        return self.files[0].first_row_id or 0

    @property
    def rows(self) -> int:
        """The number of rows of the group."""
        return self.files[0].rows

    @property
    def anchor(self) -> PaimonDataFile:
        """The oldest file: its deletion vector contains the deleted rows of the group.

        Source: pypaimon 2.1, `retrieve_anchor_file`.
        """
        return min(self.files, key=lambda file: (file.max_sequence, file.path.rpartition("/")[2]))

    @property
    def everything(self) -> tuple[PaimonDataFile, ...]:
        """All its files."""
        return self.files + self.blobs


def column_groups(files: Iterable[PaimonDataFile]) -> list[ColumnGroup]:
    """Return groups of files with overlapping row id ranges, in the order of the ids.

    Files without a first row id, which contain whole rows, come first.

    Source: paimon docs, "Data Evolution"; paimon DataEvolutionSplitGenerator, DataEvolutionSplitRead.
    """
    unplaced: list[ColumnGroup] = []
    placed: list[tuple[int, PaimonDataFile]] = []
    for file in files:
        if file.first_row_id is None:
            unplaced.append(_group([file]))
        else:
            placed.append((file.first_row_id, file))
    groups: list[list[PaimonDataFile]] = []
    end = 0
    for first, file in sorted(placed, key=lambda pair: (pair[0], pair[1].path)):
        if not groups or first >= end:
            groups.append([])
            end = first
        groups[-1].append(file)
        end = max(end, first + file.rows)
    return unplaced + [_group(members) for members in groups]


def _group(files: Sequence[PaimonDataFile]) -> ColumnGroup:
    newest_first = sorted(files, key=lambda file: -file.max_sequence)
    normal = [file for file in newest_first if file.format != BLOB_FORMAT]
    blobs = [file for file in newest_first if file.format == BLOB_FORMAT]
    if not normal:
        raise CorruptTableError(
            f"The blob file {blobs[0].path} contains rows that no data file contains. The table has lost a file; "
            "choose another version."
        )
    whole = normal[0]
    for file in normal:
        if (file.first_row_id, file.rows) != (whole.first_row_id, whole.rows):
            raise CorruptTableError(
                f"The data files {whole.path} and {file.path} overlap but do not contain the same rows: {whole.rows} "
                f"rows from {whole.first_row_id} on, and {file.rows} from {file.first_row_id} on. The table's "
                "metadata is damaged; choose another version."
            )
    first = whole.first_row_id or 0
    for file in blobs:
        start = file.first_row_id or 0
        if start < first or start + file.rows > first + whole.rows:
            raise CorruptTableError(
                f"The blob file {file.path} contains {file.rows} rows from {start} on, but its data file {whole.path} "
                f"contains {whole.rows} from {first} on. The table's metadata is damaged; choose another version."
            )
    return ColumnGroup(files=tuple(normal), blobs=tuple(blobs))


def holds(file: PaimonDataFile, field: PaimonField, schemas: Mapping[int, PaimonSchema]) -> bool:
    """Return whether a file contains a column, matched by field id."""
    return any(
        file_field.id == field.id and (file.write_columns is None or file_field.name in file.write_columns)
        for file_field in schemas[file.schema_id].fields
    )


def sources(
    group: ColumnGroup, fields: Sequence[PaimonField], schemas: Mapping[int, PaimonSchema]
) -> list[tuple[PaimonDataFile, list[PaimonField]]]:
    """Return the columns to read from each file: a column is read from the newest file that contains it.

    A column that no file contains is read from the newest file, as null. Blob columns are not handled here.

    Source: paimon DataEvolutionSplitRead.createUnionReader.
    """
    chosen: dict[int, list[PaimonField]] = {}
    for field in fields:
        indices = (index for index, file in enumerate(group.files) if holds(file, field, schemas))
        chosen.setdefault(next(indices, 0), []).append(field)
    if not chosen:
        return [(group.files[0], [])]
    return [(group.files[index], file_fields) for index, file_fields in chosen.items()]


def side_by_side(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[list[pa.RecordBatch]]:
    """Yield one batch per stream, sliced to the same rows. All streams have the same number of rows."""
    heads: list[pa.RecordBatch | None] = [None] * len(streams)
    while True:
        for index, stream in enumerate(streams):
            while heads[index] is None:
                batch = next(stream, None)
                if batch is None:
                    return
                heads[index] = batch if batch.num_rows else None
        current = [head for head in heads if head is not None]
        size = min(head.num_rows for head in current)
        yield [head.slice(0, size) for head in current]
        heads = [head.slice(size) if head.num_rows > size else None for head in current]
