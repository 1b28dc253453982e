"""The interface of table formats, and the list of formats.

Everything specific to a format is below `TableFormat`. A new format is one folder and one word in `FORMATS`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Protocol

import pyarrow as pa

from snapshot_explorer.errors import InvalidArgumentError, TableNotFoundError
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.formats.iceberg import Iceberg
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.model import (
    Branch,
    ChangeMode,
    FieldIds,
    Inspection,
    Listing,
    Predicate,
    ReadPlan,
    RowChanges,
    Split,
    TableSchema,
    Validation,
)
from snapshot_explorer.storage import Storage


class TableFormat(Protocol):
    """A table's history, bound to one branch. Safe to use from several threads."""

    name: ClassVar[str]
    """The name of the format in messages and in `--format`."""
    inspections: ClassVar[tuple[Inspection, ...]]
    """The format's metadata tables, under their names in the format."""

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table; reads only what proves that the branch exists."""
        ...

    @classmethod
    def recognises(cls, storage: Storage) -> bool:
        """Return whether the folder is a table of this format, in at most two requests."""
        ...

    def listing(self, start: int | None = None) -> Listing:
        """Return the versions in order, and where some are missing.

        Without `start`, the format's hint is used and a number of requests that does not grow with the
        history; the versions hold at least the newest. With `start`, every version from there on.
        """
        ...

    def version(self, number: int | None) -> "TableVersion":
        """Return one version, which is resolved once; the empty table for None. A request or two.

        Raises:
            SnapshotNotFoundError: The version cannot be loaded; the message lists those that can.
        """
        ...

    def commits(self, versions: Sequence[int]) -> pa.Table:
        """Return the COMMITS frame of the versions, in the given order."""
        ...

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:
        """Return the CHANGES frame of the versions, in one pass; without `changelog` some may be left out."""
        ...

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed, aware, UTC. Reads at most one small file per version."""
        ...

    def tags(self) -> Mapping[str, int]:
        """Return each tag's version, sorted by name."""
        ...

    def branches(self) -> Sequence[Branch]:
        """Return the branches, sorted, with the version of this history that each begins with.

        A listing and two small files per branch, and once the tags where versions have expired. Of more than 100
        branches, and of a corrupt one, only the name is known.
        """
        ...

    def inspect(self, name: str) -> pa.Table:
        """Return a metadata table of the whole table, with the format's own columns.

        Raises:
            InvalidArgumentError: No metadata table has that name.
        """
        ...

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> RowChanges:
        """Return the rows that changed after `first` up to `last`, not yet planned.

        Raises:
            UnsupportedFeatureError: The mode needs a feature that is not read.
            SnapshotNotFoundError: A file that the mode reads has expired.
        """
        ...


class TableVersion(Protocol):
    """One version of a table. Immutable and picklable; its schema and properties are read once, when first used.

    The version of a table without commits has the number None, the newest schema, no files and no rows.
    """

    @property
    def number(self) -> int | None:
        """Return the version's number; None for a table that has no version yet."""
        ...

    @property
    def schema(self) -> TableSchema:
        """Return the schema in force at the version."""
        ...

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows."""
        ...

    @property
    def field_ids(self) -> Mapping[str, FieldIds]:
        """Return the field ids of each column, those in its type included."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """Return the table's properties in force at the version."""
        ...

    def metadata_columns(self, names: Sequence[str]) -> pa.Schema:
        """Return the metadata columns among the names, which rows have only when requested.

        They are not part of the schema; `read` accepts them like other columns.

        Raises:
            InvalidArgumentError: The format has such a column, but the table does not store it at the version.
        """
        ...

    def validate(self) -> Validation:
        """Read enough metadata to prove that the version can be displayed.

        Raises:
            SnapshotExplorerError: It cannot: its metadata is corrupt or missing.
        """
        ...

    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame: base, delta, changelog, index, in list order."""
        ...

    def entries(self, manifest: str) -> pa.Table:
        """Return the ENTRIES of a manifest of MANIFESTS, in order. Reads it and the files that name it.

        Raises:
            InvalidArgumentError: The version has no such manifest, or it contains no data files.
        """
        ...

    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame, restricted to partitions that might match the predicate.

        With `statistics`, the columns `lower`, `upper` and `null_count`, structs with a field per column of
        the table, and `min_key` and `max_key` where the format has keys.
        """
        ...

    def inspect(self, name: str) -> pa.Table:
        """Return a metadata table of the version, with the format's own columns; empty without versions."""
        ...

    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        """Return the splits of the rows, and the files that the predicate skips.

        Only files without matching rows are skipped, by metadata alone: no data file is opened.

        Raises:
            UnsupportedFeatureError: The version needs a feature that is not read; nothing has been read.
        """
        ...

    def changelog(self) -> RowChanges:
        """Return the rows that the version's commit changed, under the version's own schema.

        Raises:
            InvalidArgumentError: The version has no changelog.
        """
        ...

    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as the format defines them, with these columns in this order.

        Rows that do not match the predicate may be left out: row groups are skipped by their statistics.
        """
        ...

    def missing_files(self, splits: Sequence[Split]) -> Sequence[str]:
        """Return the data files of splits that do not exist; checks none where many are on remote storage."""
        ...

    def split_by_file(self, split: Split) -> Sequence[Split]:
        """Return a split cut into one per file, in order; the split itself where its files belong together."""
        ...


FORMATS: tuple[type[TableFormat], ...] = (Paimon, Delta, Iceberg)
"""The formats, in the order in which they are looked for: Paimon and Delta tables may contain metadata of Iceberg."""


_INNER_FOLDERS = frozenset({"_delta_log", "manifest", "metadata", "schema", "snapshot"})
"""Folders inside of tables, whose paths are given in place of the table's own."""


def bind(
    storage: Storage,
    name: str | None = None,
    *,
    branch: str | None = None,
    metadata_file: str | None = None,
    relocate: Mapping[str, str] | None = None,
) -> TableFormat:
    """Return the table at the storage's root, bound to a branch.

    Args:
        storage: The table's folder.
        name: The required format.
        branch: The branch; the main one for None.
        metadata_file: The metadata file of an Iceberg table to read, below the root; the current one for None.
        relocate: Recorded folders of an Iceberg table that are now elsewhere, and where.

    Raises:
        TableNotFoundError: As `detect`, or there is no such branch.
        InvalidArgumentError: No format has that name, or the table is not one of Iceberg and an argument is for these.
    """
    found = Iceberg if metadata_file is not None and name in (None, Iceberg.name) else detect(storage, name)
    if found is Iceberg:
        return Iceberg(storage, branch=branch, metadata_file=metadata_file, relocate=relocate)
    if metadata_file is not None or relocate:
        given = "relocate" if relocate else f"the metadata file {metadata_file}"
        raise InvalidArgumentError(
            f"{storage.root} is a {found.name} table, and {given} is for Iceberg tables. Open the table's folder "
            "without it."
        )
    return found(storage, branch=branch)


def detect(storage: Storage, name: str | None = None) -> type[TableFormat]:
    """Return the format of the table at the storage's root.

    Args:
        storage: The table's folder.
        name: The required format: only this one is looked for. So the metadata of Iceberg in a Paimon or Delta table,
            as their compatibility options write it, is found by `iceberg`.

    Raises:
        TableNotFoundError: The folder is missing, is not a table, or is a table of another format.
        InvalidArgumentError: No format has that name.
    """
    known = {candidate.name: candidate for candidate in FORMATS}
    if name is not None and name not in list(known):
        raise InvalidArgumentError(f"No format is called {name!r}. Formats: {', '.join(known)}.")
    if name is not None and known[name].recognises(storage):
        return known[name]
    found = next((candidate for candidate in FORMATS if candidate.recognises(storage)), None)
    if found is None:
        raise TableNotFoundError(_what_is_there(storage, name))
    if name is not None:
        raise TableNotFoundError(
            f"{storage.root} is not a {name} table but a {found.name} table. "
            f"Leave the format out, or write {found.name}."
        )
    return found


def _what_is_there(storage: Storage, name: str | None) -> str:
    wanted = f"{name or 'Paimon, Delta or Iceberg'} table"
    entries = storage.list("")
    if not entries:
        return f"No {wanted} at {storage.root}: the folder is missing or empty. Check the path and the options."
    names = {entry.name for entry in entries}
    some = ", ".join(sorted(names)[:5])
    parent, _, last = storage.root.rpartition("/")
    own = f", such as {parent}" if last in _INNER_FOLDERS else ""
    return (
        f"No {wanted} at {storage.root}: a Paimon table has a folder schema/, a Delta table _delta_log/, and an "
        f"Iceberg table metadata/. Found: {some}. Use the path of the table's own folder{own}."
    )
