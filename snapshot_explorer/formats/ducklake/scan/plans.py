"""Plans of splits of a DuckLake table."""

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass

import pyarrow as pa

from snapshot_explorer.core.records import Split
from snapshot_explorer.formats.ducklake.files.columns import MappedName
from snapshot_explorer.formats.ducklake.files.deletes import DeleteFile
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What all splits of a version share. Picklable."""

    fields: tuple[LakeField, ...]
    """The columns of the table."""
    key: str
    """A text that is equal for equal columns."""


def context_of(fields: tuple[LakeField, ...]) -> Context:
    """Return the context of a version with these columns."""
    return Context(fields=fields, key=hashlib.sha256(repr(fields).encode()).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan:
    """The plan of a split of a data file. Picklable."""

    path: str
    """The path for `Storage`."""
    location: str
    """The recorded path, whose folders added files may have values in."""
    file_id: int
    size_bytes: int
    begin: int
    """The snapshot that wrote its rows, unless the file has the snapshot of each."""
    row_id_start: int | None
    """The id of its first row, unless the file has an id for each; None if its rows have none."""
    deletes: tuple[DeleteFile, ...]
    inlined_deletes: tuple[int, ...]
    """Positions that the catalog deletes."""
    up_to: int | None
    """Only rows of snapshots up to this one are visible; None for all."""
    first_rows: int | None
    """Only so many rows at the start of the file are visible; None for all."""
    mapping: tuple[MappedName, ...] | None
    positions: tuple[LakeField, ...]
    """The columns by position, for a file without ids and without a mapping."""
    context: Context

    @property
    def is_whole(self) -> bool:
        """Whether every row of the file is visible."""
        return not self.deletes and not self.inlined_deletes and self.up_to is None and self.first_rows is None

    @property
    def base(self) -> Hashable:
        """A value that is equal for plans of a file that differ at most in their deletes and columns."""
        return self.path, self.file_id, self.up_to, self.first_rows, self.row_id_start, self.begin

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read; see `Split.identity`."""
        return self.base, self.deletes, self.inlined_deletes, self.mapping, self.context.key


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedRows:
    """Live rows of an inlined table."""

    name: str
    fields: tuple[LakeField, ...]
    """The columns under which they were written."""
    rows: pa.Table
    """row_id, begin_snapshot, end_snapshot, and the columns by their numbers as the catalog stores them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedPlan:
    """The plan of the split of all inlined rows. Picklable."""

    tables: tuple[InlinedRows, ...]
    is_native: bool
    """Whether values have their own types. Otherwise some are text."""
    context: Context

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read."""
        parts = []
        for table in self.tables:
            columns = [table.rows.column(name).to_numpy().tobytes() for name in ("row_id", "begin_snapshot")]
            parts.append((table.name, hashlib.sha256(b"".join(columns)).hexdigest(), len(table.rows)))
        return "inlined", tuple(parts), self.context.key


def plan_of_file(split: Split) -> FilePlan | None:
    """Return the plan of a split of a data file; None for another split."""
    return split.detail if isinstance(split.detail, FilePlan) else None
