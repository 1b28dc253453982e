"""Plans of splits of a DuckLake table."""

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass

from snapshot_explorer.formats.ducklake.files.columns import MappedName
from snapshot_explorer.formats.ducklake.files.deletes import DeleteFile
from snapshot_explorer.formats.ducklake.metadata.data_types import LakeField
from snapshot_explorer.formats.ducklake.metadata.table_metadata import InlinedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The columns of the table, which all splits of a version share. Picklable."""

    fields: tuple[LakeField, ...]
    key: str
    """A text that is equal for equal columns."""


def context_of(fields: tuple[LakeField, ...]) -> Context:
    """Return the context of a version with these columns."""
    return Context(fields=fields, key=hashlib.sha256(repr(fields).encode()).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """The rows of a data file that a version sees: by default all."""

    deletes: tuple[DeleteFile, ...] = ()
    inlined_deletes: tuple[int, ...] = ()
    """Positions that the catalog deletes."""
    up_to: int | None = None
    """Only rows of snapshots up to this one are visible; None for all."""
    first_rows: int | None = None
    """Only so many rows at the start of the file are visible; None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan:
    """The plan of a split of a data file. Picklable."""

    path: str
    """The path for `Storage`."""
    location: str
    """The recorded path, whose folders added files may have values in."""
    size_bytes: int
    begin: int
    """The snapshot that wrote its rows, unless the file has the snapshot of each."""
    row_id_start: int | None
    """The id of its first row, unless the file has an id for each; None if its rows have none."""
    visible: Visible
    mapping: tuple[MappedName, ...] | None
    positions: tuple[LakeField, ...]
    """The columns by position, for a file without ids and without a mapping."""
    context: Context

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal if the same rows are read; see `Split.identity`."""
        return self.path, self.begin, self.row_id_start, self.visible, self.mapping, self.context.key


@dataclass(frozen=True, slots=True, kw_only=True)
class InlinedPlan:
    """The plan of the split of all inlined rows. Picklable."""

    tables: tuple[InlinedTable, ...]
    """The live rows of each inlined table."""
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
