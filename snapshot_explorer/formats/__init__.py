"""What every table format provides, and which formats there are.

Everything that is peculiar to a format lives below `TableFormat`. A third format is one folder and one word
in `FORMATS`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from snapshot_explorer.errors import BadReferenceError, TableNotFoundError
from snapshot_explorer.formats.delta import Delta
from snapshot_explorer.formats.paimon import Paimon
from snapshot_explorer.formats.retained import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.roaring import Positions
from snapshot_explorer.formats.units import Look, Reader, Unit
from snapshot_explorer.model import (
    Branch,
    ChangeMode,
    Examined,
    Inspection,
    Listing,
    Predicate,
    ReadPlan,
    Split,
    StoredRows,
    TableSchema,
    Upkeep,
)
from snapshot_explorer.storage import Storage


class TableFormat(Protocol):
    """A table on storage as its format sees it, bound to one branch. Safe to use from several threads."""

    name: ClassVar[str]
    """What the format is called in messages and in `--format`."""
    inspections: ClassVar[tuple[Inspection, ...]]
    """The tables of metadata that it offers under the names its own users know."""

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table; reads nothing but what tells that the branch exists."""
        ...

    @classmethod
    def recognises(cls, storage: Storage) -> bool:
        """Return whether the folder is a table of this format, in at most two requests."""
        ...

    def listing(self, start: int | None = None) -> Listing:
        """Return which versions there are.

        Without `start`, the format's hint is used and a number of requests that does not grow with the
        history; the versions hold at least the newest. With `start`, every version from there on.
        """
        ...

    def examine(self, version: int) -> Examined:
        """Return what a version that is about to be shown stands on, read as far as tells that it can be shown.

        Raises:
            SnapshotExplorerError: It can not: its metadata is damaged or missing.
        """
        ...

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed, aware, UTC. Reads at most one small file per version."""
        ...

    def searched(self, time: datetime, versions: Sequence[int]) -> Sequence[int]:
        """Return the run of these versions in which the last one committed by a time is to be looked for.

        All of them, unless the format tells older versions by another clock than newer ones.
        """
        ...

    def check_reachable(self, version: int) -> None:
        """Do nothing if a version is there to be loaded. A request or two.

        Raises:
            SnapshotNotFoundError: It is not; the message says which are.
        """
        ...

    def commits(self, versions: Sequence[int]) -> pa.Table:
        """Return the COMMITS frame of the versions, in the order asked for."""
        ...

    def manifests(self, version: int) -> pa.Table:
        """Return the MANIFESTS frame of a version: base, delta, changelog, index, in list order."""
        ...

    def manifest_entries(self, version: int, path: str) -> pa.Table:
        """Return the ENTRIES of a manifest that the version's MANIFESTS names, in order. Reads it and what names it.

        Raises:
            BadReferenceError: The version does not name it, or it holds no data files.
        """
        ...

    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:
        """Return the CHANGES frame of the versions, in one pass; without `changelog` some may be left out."""
        ...

    def files(self, version: int, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame of a version, of the partitions that the predicate may match.

        With `statistics`, the columns `lower`, `upper` and `null_count`, structs with a field per column of
        the table, and `min_key` and `max_key` where the format has keys.
        """
        ...

    def schema(self, version: int | None) -> TableSchema:
        """Return the schema in force at a version; the newest one for None."""
        ...

    def properties(self, version: int | None) -> Mapping[str, str]:
        """Return the table's properties in force at a version; the newest ones for None."""
        ...

    def tags(self) -> Mapping[str, int]:
        """Return each tag's version, sorted by name."""
        ...

    def branches(self) -> Sequence[str]:
        """Return the names of the branches, sorted, without the main one."""
        ...

    def forks(self) -> Sequence[Branch]:
        """Return the branches, sorted, with the version of this history that each begins with.

        A listing and two small files per branch, and once the tags where versions have expired. Of more than 100
        branches, and of one that is broken, there is only the name.
        """
        ...

    def inspect(self, name: str, version: int | None) -> pa.Table:
        """Return the table of metadata of that name, with the columns its own users know.

        Args:
            name: One of `inspections`.
            version: For one that tells of a version; None gives no rows then.

        Raises:
            BadReferenceError: There is no such table, or a version is given where none makes sense.
        """
        ...

    def arrow_schema(self, version: int | None) -> pa.Schema:
        """Return the Arrow schema of the rows at a version; of the newest schema for None."""
        ...

    def hidden_columns(self, names: Sequence[str], version: int | None) -> pa.Schema:
        """Return those of the names that are columns which a version gives only when they are asked for.

        They are no part of any schema; `read` takes them like others.

        Raises:
            BadReferenceError: The format has such a column, but the table does not keep it at the version.
        """
        ...

    def splits(self, version: int, predicate: Predicate | None = None) -> Sequence[Split]:
        """Return the units of reading the rows of a version that the predicate may match: those of its `plan`."""
        ...

    def plan(self, version: int, predicate: Predicate | None = None) -> ReadPlan:
        """Return the units of reading the rows of a version, and the files that the predicate spares.

        Only files in which no row can pass are spared; their rows are judged by metadata, no data file is opened.

        Raises:
            UnsupportedFeatureError: The version needs a feature that is not read; nothing has been read.
        """
        ...

    def changelog(self, version: int, predicate: Predicate | None = None) -> Sequence[Split]:
        """Return the units of reading the changelog of a version: rows with a column `rowkind` (+I, -U, +U, -D).

        With a predicate, which may use `rowkind`, files may be left out in which no row can pass.

        Raises:
            BadReferenceError: The version has no changelog.
        """
        ...

    def row_changes(
        self, first: int, last: int, mode: ChangeMode, predicate: Predicate | None = None
    ) -> Sequence[Split]:
        """Return the units of reading what changed after `first` up to `last`: rows with a column `rowkind`.

        With a predicate, which may use `rowkind`, files may be left out in which no row can pass.

        Raises:
            UnsupportedFeatureError: The mode needs a feature that is not read.
            SnapshotNotFoundError: What the mode reads of a version has expired.
        """
        ...

    def change_schema(self, first: int, last: int) -> pa.Schema:
        """Return the Arrow schema under which `row_changes` tells its rows, without `rowkind`."""
        ...

    def hidden_change_columns(self) -> pa.Schema:
        """Return the columns that `row_changes` and `changelog` give only when they are asked for, beside `rowkind`."""
        ...

    def read(self, split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as the format means them, with these columns in this order.

        On another machine too: a format and its splits are picklable.
        """
        ...

    def missing(self, splits: Sequence[Split]) -> Sequence[str]:
        """Return the data files of splits that are not there; of many on a remote storage none is asked for."""
        ...

    def pieces(self, split: Split) -> Sequence[Split]:
        """Return a split cut into parts that may be read alone, in order; itself where its files belong together."""
        ...

    def stored(self, split: Split) -> StoredRows | None:
        """Return where other readers of parquet and ORC find the rows of a split; None where they would not give them.

        Reads nothing: whether a file really holds what it should is for who reads it.
        """
        ...

    def deleted(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        """Return for each part, a file each, the positions of the rows that do not count. Reads the deletion vectors.

        Args:
            parts: What `pieces` returned, of splits that have something `stored`.
            rows: How many rows each file has.
        """
        ...


@runtime_checkable
class Recorded(Protocol):
    """What a format tells of its own records, where it does: not every one is asked for it."""

    def delta_manifests(self, versions: Sequence[int]) -> frozenset[str] | None:
        """Return the paths of the manifests that these commits wrote as their deltas; None if some are gone.

        Reads the delta lists of all of them at once.
        """
        ...

    def recorded_properties(self, version: int) -> Mapping[str, str]:
        """Return the properties that were recorded with a version, whether or not they are in force."""
        ...


@runtime_checkable
class Maintained(Protocol):
    """What a format tells of the upkeep of its tables, where it does: not every one is asked for it."""

    def upkeep(self, version: int) -> Upkeep:
        """Return what the table's settings in force at a version say of its upkeep. Reads its schema."""
        ...

    def measured_files(self, version: int) -> pa.Table:
        """Return FILES and a column `delete_records`: rows in the file that delete others, null where not known.

        Costs what `files` costs.
        """
        ...


@runtime_checkable
class Retained(Protocol):
    """What a format tells of the files that its engines keep and delete, where it does."""

    def expiry(self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None) -> Expiry:
        """Return what the engine's own command would take from the table as it is at its newest known version.

        Args:
            rule: What to keep.
            lifetimes: LIFETIMES of the table.
            newest: The newest version that they know; None if there is none. Later ones are not heeded.

        Raises:
            UnsupportedFeatureError: It cannot be told exactly; the message says why.
            BadReferenceError: The rule makes no sense for the table.
        """
        ...

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        """Return what is there of what versions need: data files and what else is known without reading.

        One listing for each folder that holds data files or deletion vectors, and for Paimon one of the manifests.
        """
        ...


@runtime_checkable
class Distributed(Protocol):
    """What a format gives to have its metadata read in many places at once: units, each read apart from the others."""

    keeps_last_add: ClassVar[bool]
    """Of a file that a state's records add several times, whether the last one of the highest rank stands for all."""

    def state_units(self, version: int, look: Look) -> Sequence[Unit]:
        """Return the units whose RECORDS tell the live files of a version.

        Raises: as `TableFormat.files`, but for what is read only with the units.
        """
        ...

    def change_units(self, versions: Sequence[int], look: Look, *, lifetimes: bool) -> Sequence[Unit]:
        """Return the units whose RECORDS tell what commits changed; for lifetimes with times, and files of rows alone.

        The versions ascend. A unit is of versions without a gap.

        Raises: as `TableFormat.changes` and `committed_at`, but for what is read only with the units.
        """
        ...

    def unit_reader(self) -> Reader:
        """Return what reads a unit. Picklable, storage options included."""
        ...


FORMATS: tuple[type[TableFormat], ...] = (Paimon, Delta)


def detect(storage: Storage, name: str | None = None) -> type[TableFormat]:
    """Return the format of the table at the storage's root.

    Args:
        storage: The table's folder.
        name: Insist on this format.

    Raises:
        TableNotFoundError: The folder is missing, is no table, or is a table of another format.
        BadReferenceError: There is no format of that name.
    """
    known = {candidate.name: candidate for candidate in FORMATS}
    if name is not None and name not in known:
        raise BadReferenceError(f"No format is called {name!r}. Formats: {', '.join(known)}.")
    found = next((candidate for candidate in FORMATS if candidate.recognises(storage)), None)
    if found is None:
        raise TableNotFoundError(_what_is_there(storage, name))
    if name is not None and found.name != name:
        raise TableNotFoundError(
            f"{storage.root} is no {name} table but a {found.name} table. "
            f"Open it without --format, or with --format {found.name}."
        )
    return found


def _what_is_there(storage: Storage, name: str | None) -> str:
    wanted = f"{name or 'Paimon or Delta'} table"
    entries = storage.list("")
    if not entries:
        return f"No {wanted} at {storage.root}: the folder is missing or empty. Check the path and the options."
    names = {entry.name for entry in entries}
    some = ", ".join(sorted(names)[:5])
    return (
        f"No {wanted} at {storage.root}: a Paimon table has a folder schema/, and a Delta table _delta_log/. "
        f"Found: {some}. Give the path of the table's own folder."
    )
