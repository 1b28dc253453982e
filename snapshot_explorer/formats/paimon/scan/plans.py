"""The read plan of a split, and the checks whether any reader can read its files."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.core.records import Split
from snapshot_explorer.formats.paimon.files import evolution
from snapshot_explorer.formats.paimon.files.column_groups import ColumnGroup
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.merge.rules import Rules
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.storage import Storage


class DataFiles(Sequence[PaimonDataFile]):
    """Some files of a version, as records that are created on access: a plan may have a million files.

    Equal to other sequences of equal files. Pickled as a tuple of the files.
    """

    __slots__ = ("_columns", "_indices")

    def __init__(self, columns: Sequence[npt.NDArray[Any] | None], indices: npt.NDArray[np.int64]) -> None:
        """Choose files.

        Args:
            columns: For each field of DataFile the values of all files; None for nulls.
            indices: The indices of the chosen files.
        """
        self._columns = columns
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __iter__(self) -> Iterator[PaimonDataFile]:
        fields = (repeat(None) if column is None else column[self._indices].tolist() for column in self._columns)
        return map(PaimonDataFile._make, zip(*fields))  # noqa: B905 - repeated nulls have no end

    @overload
    def __getitem__(self, key: int) -> PaimonDataFile: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[PaimonDataFile, ...]: ...
    def __getitem__(self, key: int | slice) -> PaimonDataFile | tuple[PaimonDataFile, ...]:
        return tuple(self)[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataFiles | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[PaimonDataFile, ...]], tuple[list[PaimonDataFile]]]:
        return tuple, (list(self),)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonFiles:
    """Files of a version, with the metadata that planning and data skipping need."""

    entries: pa.Table
    partitions: PaimonPartitions
    schema: PaimonSchema
    file_schemas: Mapping[int, PaimonSchema]
    """Each schema that an entry names, by id."""
    options: Mapping[str, str]
    """The newest options, which Paimon applies to every version."""
    storage: Storage = field(repr=False)
    """The table's storage, for warnings."""

    def where(self, kept: npt.NDArray[np.bool_]) -> "PaimonFiles":
        """Return the selected files."""
        return replace(self, entries=self.entries.filter(pa.array(kept)), partitions=self.partitions.where(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonPlan:
    """How to read a split. `Split.detail` of a Paimon split; picklable."""

    files: Sequence[PaimonDataFile]
    """The files, in the order to read. Hashable."""
    schema: PaimonSchema
    """The version's schema, without options."""
    file_schemas: Mapping[int, PaimonSchema]
    """The schemas that the files were written with, by id, without options."""
    partition: pa.Table | None
    """One row: the typed value of each partition column. None for a table without partitions."""
    merge: Rules | None
    legacy_zones: bool
    """Whether ORC files store TIMESTAMP_LTZ in the writer's local time."""
    row_tracking: bool
    groups: tuple[ColumnGroup, ...]
    """The files by row id range, if the columns of a row are in several files. Empty if files have whole rows."""
    blob_bytes: Mapping[int, int]
    """The size of all files of each blob column in the version, by field id."""

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for plans that return the same rows; see `Split.identity`.

        Levels and sequence numbers are part of it only if rows are merged: a compaction may move a file to another
        level without rewriting it.
        """
        # Rules contain mappings, which are not hashable; their repr has the same values in the same order.
        rules = None if self.merge is None else repr(self.merge)
        files: tuple[Hashable, ...] = tuple(self.files)
        if self.merge is None:
            files = tuple((file.path, file.schema_id, file.vector, file.first_row_id) for file in self.files)
        return files, self.schema.fields, self.schema.partition_keys, rules, self.groups, self.row_tracking


def has_plain_columns(file: PaimonDataFile, schema: PaimonSchema, file_schema: PaimonSchema) -> bool:
    """Return whether a file contains the version's columns, under the version's names and in its types.

    The result is the same for all files with the same schema, format and written columns.
    """
    if file.write_columns is not None and not {field.name for field in schema.fields} <= set(file.write_columns):
        return False
    fields = {field.id: field for field in schema.fields}
    if {field.id for field in file_schema.fields} != set(fields):
        return False
    return all(
        field.name == fields[field.id].name
        and evolution.same(field.type, fields[field.id].type)
        and not differs_in_other_readers(field.type, file.format)
        for field in file_schema.fields
    )


def differs_in_other_readers(data_type: PaimonDataType, file_format: str) -> bool:
    """Return whether other readers return another type or value for a stored type.

    INT96 has no zone. ORC stores a TIME as an integer, a TIMESTAMP_LTZ in the writer's local time, and a CHAR with
    trailing blanks, which its readers and filters treat differently. Not every reader puts shredded variants together.
    Vectors are stored as lists of any length.
    """
    if data_type.root in ("VARIANT", "VECTOR"):
        return True
    if file_format == "parquet" and data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and (data_type.precision or 0) > 6:  # noqa: PLR2004 - microseconds
        return True
    if file_format == "orc" and data_type.root in ("TIME", "TIMESTAMP_LTZ", "CHAR"):
        return True
    return any(differs_in_other_readers(part, file_format) for part in data_type.parts)


def plan_of_file(split: Split) -> PaimonPlan | None:
    """Return the plan of a split of one file; None for several files, or merged rows or parts of rows."""
    plan = split.detail
    if not isinstance(plan, PaimonPlan) or plan.merge is not None or plan.groups or len(plan.files) != 1:
        return None
    return plan
