"""The interface of table formats: `TableFormat`, a table's history, and `TableVersion`, one version of it.

A format implements the abstract methods. The other methods have defaults for formats without the feature;
a format overrides the methods of the features it supports. What only some formats have is in objects that both
classes return: `capabilities`, and here those that return tables or versions themselves.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import ClassVar, Self

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import (
    Branch,
    ChangeMode,
    ChangesWithStatistics,
    Column,
    FieldIds,
    Inspection,
    Listing,
    Predicate,
    ReadPlan,
    RowModifier,
    Split,
    TableSchema,
    Validation,
)
from snapshot_explorer.core.text import did_you_mean
from snapshot_explorer.formats.capabilities import (
    CatalogFacts,
    CommitClock,
    DeleteFiles,
    HealthFacts,
    Maintenance,
    MergedManifests,
    MetadataLayout,
    MetadataTasks,
    NativeFiles,
    RowIdentity,
)
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """What the detection of a table's format found in its folder."""

    other_formats: tuple[str, ...] = ()
    """The names of other formats whose metadata is in the folder too."""
    folders: Collection[str] = ()
    """The folders in the table's folder; empty if they were not listed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairs:
    """The statements with which Spark and the format's connector restore versions and rows."""

    restore_command: str
    """The engine's own command that restores a version, with the fields `name`, `version` and `identifier`."""

    time_travel: str | None = None
    """The clause behind a table's name that reads a version, with the fields of `restore_command`; None if
    no statements on rows are written."""
    path_schema: str | None = None
    """The schema whose tables are paths; None if a table needs a name in a catalog."""
    replaces_rows_at_once: bool = False
    """Whether INSERT with REPLACE WHERE replaces the rows of any condition in one commit."""
    deletes_unknown: bool = False
    """Whether DELETE also removes rows for which its condition is null."""
    restores_schema: bool = False
    """Whether restoring a version brings its schema back."""
    restores_only_tags: bool = False
    """Whether only versions with a tag can be restored."""
    restore_note: str
    """The effect of a restore on later versions, in a sentence."""
    flink_restore_command: str | None = None
    """Flink's statement that restores a version, with the same fields."""

    def obstacle(self, version: "TableVersion", *, of_rows: bool) -> str | None:
        """Return why statements may fail to restore rows of a version, in a sentence; None if they do not.

        Args:
            of_rows: Whether some rows are restored; otherwise the table is restored as a whole.
        """
        return None

    def settings(self, version: "TableVersion", *, merges: bool) -> Sequence[str]:
        """Return the settings of a Spark session, `name = value`, without which statements fail or miss rows.

        Args:
            merges: Whether one of the statements is a MERGE.

        Raises:
            UnsupportedFeatureError: The engine does not run such a statement on the table.
        """
        return ()


class Branches:
    """The branches of a table, beside the one it is bound to. By default there are none."""

    main: ClassVar[str | None] = None
    """The name of the branch that is opened without `branch`; None if tables have no branches."""
    folder: ClassVar[str | None] = None
    """The folder in a table's folder that contains the metadata of branches; None if they have no folders."""

    def others(self) -> Sequence[Branch]:
        """Return the other branches, sorted, with the version of this history that each begins with.

        A listing and two small files per branch, and once the tags if versions have expired. For more than 100
        branches, and for a corrupt branch, only the name is returned.
        """
        return ()

    def names(self) -> Sequence[str]:
        """Return the names of all branches, the main one included, sorted. At most one listing."""
        return ()

    def detached_heads(self) -> Sequence[str]:
        """Return the newest versions that are on no branch, such as after a rollback, by names for `table_on`."""
        return ()

    def has_history(self, name: str) -> bool:
        """Return whether `table_on` accepts this name for a history of versions that are on no branch."""
        return False

    def table_on(self, name: str) -> "TableFormat":
        """Return the same table, bound to another branch that exists. Called only for tables with branches."""
        raise TableNotFoundError(f"There is no branch {name!r}: the format has no branches.")

    def holding(self, time: datetime) -> str | None:
        """Return the branch with the version that was current at a time, by a name for `table_on`.

        None if that version is in this history, or if it is not recorded. It may have been rolled back since.
        """
        return None

    def shared_versions(self, other: Self) -> Mapping[int, int]:
        """Return the versions of this history that another branch of the table also has, each with its number there."""
        return {}

    def check_comparable(self, other: Self, versions: tuple[int, int]) -> None:
        """Check that columns of versions of this and of another branch can be matched by their field ids.

        Raises:
            UnsupportedFeatureError: They cannot; the message names the columns.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Changelogs:
    """The files of row changes that commits write."""

    of_version: Callable[[int], "RowChanges | None"]
    """Returns the rows in the files that a commit wrote, with a split for each file; None if it wrote none.

    The file is the first of `Split.files`. The reader of the rows is that version."""


class TableFormat(ABC):
    """A table's history, bound to one branch. Safe to use from several threads, and picklable."""

    name: ClassVar[str]
    """The name of the format in messages and in `--format`."""
    title: ClassVar[str]
    """The name of the format in sentences, such as Delta Lake."""
    metadata_layout: ClassVar[MetadataLayout]
    """Where the format's tables have their metadata."""
    catalog: ClassVar[CatalogFacts] = CatalogFacts()
    """How catalogs name the format's tables."""
    repairs: ClassVar[Repairs | None] = None
    """The statements that repair a table; None if they are not generated."""
    inspections: ClassVar[tuple[Inspection, ...]] = ()
    """The format's metadata tables, under their names in the format."""
    has_ordered_times: ClassVar[bool] = True
    """Whether versions are committed in their order. Otherwise `committed_at` reads nothing."""
    has_exact_row_counts: ClassVar[bool] = False
    """Whether metadata counts the rows of a version. Otherwise it counts those in files, before merges and deletes."""
    commits_are_in_one_file: ClassVar[bool] = False
    """Whether reading the commits of all versions costs the same requests as reading one."""

    detection: Detection = Detection()
    """What the detection of the format found."""

    # Versions.

    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table and a branch, the main one for None. Only checks that the branch exists.

        Raises:
            TableNotFoundError: The branch does not exist; the message lists the existing ones.
        """
        if branch is not None:
            raise TableNotFoundError(
                f"{storage.root} has no branch {branch!r}: {self.title} tables have no branches. Open it "
                "without a branch."
            )
        self._storage = storage

    @classmethod
    @abstractmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:
        """Return whether the folder, which contains these folders, is a table of this format. At most two requests."""

    @classmethod
    def at_metadata(
        cls, storage: Storage, *, branch: str | None, metadata_file: str | None, relocate: Mapping[str, str] | None
    ) -> "TableFormat":
        """Return a table at one of its metadata files, or with recorded folders that were moved.

        Args:
            metadata_file: The file to read, below the root, even if there are newer files; None for the current file.
            relocate: The actual folder for each recorded folder.

        Raises:
            InvalidArgumentError: Tables of the format are opened by their folder.
        """
        option = "relocate" if relocate else f"the metadata file {metadata_file}"
        raise InvalidArgumentError(
            f"{storage.root} is a {cls.name} table, which is not opened with {option}. Open the table's folder "
            "without it."
        )

    @property
    def storage(self) -> Storage:
        """The storage of the table."""
        return self._storage

    @abstractmethod
    def listing(self, start: int | None = None) -> Listing:
        """Return the versions in order, and the gaps between them.

        Without `start`, the format's hint is used. The number of requests does not grow with the history, and the
        versions contain at least the newest. With `start`, every version from there on.
        """

    def read_newest(self, count: int) -> None:
        """Read and cache the metadata of the newest versions that is probably needed next. Only for a few versions.

        For a remote table whose log is listed again at the same time.
        """

    @abstractmethod
    def version(self, number: int | None) -> "TableVersion":
        """Return one version, which is resolved once; the empty table for None. A request or two.

        Raises:
            SnapshotNotFoundError: The version cannot be loaded; the message lists the loadable versions.
        """

    def with_current_schema(self, listing: Listing) -> Self:
        """Return the same table, whose newest version has the table's current schema. Reads nothing.

        For formats whose schema can change without a commit. The newest state has the current schema. A version that is
        selected in any other way has the schema of its commit.

        Args:
            listing: The listing that contains the newest version.
        """
        return self

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed, aware, UTC. Reads at most one small file per version."""
        times: list[datetime] = self.commits(versions).column("committed_at").to_pylist()
        return times

    def candidates_at(self, time: datetime, versions: Sequence[int], *, follow_log: bool = True) -> Sequence[int]:
        """Return the range of these versions that contains the version at a time.

        That is the last version committed at or before the time. A format may record which version was current at which
        time, even after a rollback: then that version, unless `follow_log` is false.

        Raises:
            SnapshotNotFoundError: The version that was current at the time is not in this history.
        """
        if self.has_ordered_times:
            return versions
        times = self.committed_at(versions)
        committed = [version for version, at in zip(versions, times, strict=True) if at <= time]
        return committed[-1:] or versions[:1]

    def version_named(self, number: int) -> int:
        """Return the version with a number or a snapshot id; otherwise the number itself. Reads nothing."""
        return number

    # Commits and their changes.

    @abstractmethod
    def commits(self, versions: Sequence[int], *, columns: Collection[str] | None = None) -> pa.Table:
        """Return the COMMITS frame of the versions, in the given order.

        Args:
            columns: The columns that are needed, beside version and committed_at; others may be null. By default all.
                Less is read then, above all of commits whose changes have been read.
        """

    def fingerprint(self, version: int) -> str:
        """Return a hash that differs for another commit with the version's number, and is the same on every machine.

        It stays the same while the version exists. Reads as little as possible; by default the details of the commit.

        Raises:
            SnapshotNotFoundError: The version does not exist, or what identifies it is gone.
        """
        return digest_of(*self.commits([version]).column("details").to_pylist())

    @abstractmethod
    def changes(self, versions: Sequence[int], *, changelog: bool = True) -> pa.Table:
        """Return the CHANGES frame of the versions, in one pass; without `changelog` some may be left out."""

    def changes_with_statistics(
        self, versions: Sequence[int], columns: Sequence[str], at: int
    ) -> ChangesWithStatistics | None:
        """Return the changed files of versions, with statistics of columns of the schema at version `at`, in one pass.

        None if the format does not support it; its statistics are then read with `TableVersion.files`.
        """
        return None

    def schemas(self, versions: Sequence[int]) -> Sequence[TableSchema]:
        """Return the schema in force at each version."""
        return [self.version(version).schema for version in versions]

    def row_changes(self, first: int, last: int, mode: ChangeMode) -> "RowChanges":
        """Return the rows that changed after `first` up to `last`, not yet planned.

        Raises:
            UnsupportedFeatureError: The mode needs a feature that is not read.
            SnapshotNotFoundError: A file that the mode reads has expired.
        """
        raise UnsupportedFeatureError(
            Message(
                f"{self.title} tables record no changes of rows. ",
                Hint("table.diff_rows", {"a": first, "b": last}),
                " compares two versions.",
            )
        )

    def row_modifiers(self) -> frozenset[RowModifier]:
        """Return the options that make the rows of a version differ from the rows of its files.

        Files of such a table cannot be read independently. The newest options apply to every version. Reads the newest
        schema.
        """
        return frozenset()

    # Names of versions.

    def tags(self) -> Mapping[str, int]:
        """Return each tag's version, sorted by name."""
        return {}

    def inspect(self, name: str) -> pa.Table:
        """Return a metadata table of the whole table, with the format's own columns.

        Raises:
            InvalidArgumentError: No metadata table has that name.
        """
        raise InvalidArgumentError(f"{self.name} tables have no metadata table {name!r}.")

    # What only some formats have.

    @property
    def clock(self) -> CommitClock:
        """What the commit times of the table mean."""
        return CommitClock()

    @property
    def branches(self) -> Branches:
        """The branches of the table."""
        return Branches()

    @property
    def changelogs(self) -> Changelogs | None:
        """The files of row changes; None if commits of the format write none."""
        return None

    @property
    def delete_files(self) -> DeleteFiles | None:
        """The delete files that are listed apart from data files; None if CHANGES contain replaced deletions."""
        return None

    @property
    def merged_manifests(self) -> MergedManifests | None:
        """The manifests; None if commits do not rewrite manifests of earlier commits."""
        return None

    @property
    def maintenance(self) -> Maintenance:
        """What the engine's own maintenance does to the table."""
        return Maintenance(format_name=self.name)

    @property
    def metadata_tasks(self) -> MetadataTasks | None:
        """The metadata in tasks for many machines; None if the format does not split it."""
        return None


class TableVersion(ABC):
    """One version of a table. Immutable and picklable; its schema and properties are read once, when first used.

    The version of a table without commits has the number None, the newest schema, no files and no rows.
    """

    def __init__(self, storage: Storage, number: int | None) -> None:
        """Bind to a version. Reads nothing."""
        self._storage = storage
        self._number = number

    @property
    def number(self) -> int | None:
        """The version's number; None for a table that has no version yet."""
        return self._number

    @property
    def storage(self) -> Storage:
        """The storage of the table."""
        return self._storage

    # Schema and properties in force at the version.

    def in_own_schema(self) -> "TableVersion":
        """Return the version with the schema of its commit; the version itself if it already has that schema."""
        return self

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""

    @property
    def schema(self) -> TableSchema:
        """The schema in force at the version; by default the columns of the Arrow schema, without keys."""
        columns = tuple(
            Column(id=None, name=field.name, type=str(field.type), nullable=field.nullable, comment=None)
            for field in self.arrow_schema
        )
        return TableSchema(id=None, columns=columns, partition_keys=(), primary_keys=())

    @property
    def field_ids(self) -> Mapping[str, FieldIds]:
        """A column's id and its nested fields' ids, for each column; by default the name is the id."""
        return {name: FieldIds(id=name) for name in self.arrow_schema.names}

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties in force at the version."""
        return {}

    @property
    def recorded_properties(self) -> Mapping[str, str]:
        """The properties recorded with the version, which may differ from the properties in force."""
        return self.properties

    @property
    def format_version(self) -> str | None:
        """The format's version and the features in use; None if it has none. No request once the schema was read."""
        return None

    def metadata_columns(self, names: Sequence[str]) -> pa.Schema:
        """Return the metadata columns among the names, which rows have only when requested.

        They are not part of the schema; `read` accepts them like other columns.

        Raises:
            InvalidArgumentError: The format has such a column, but the table does not store it at the version.
        """
        return pa.schema([])

    def fills_missing_columns(self, names: Collection[str]) -> bool:
        """Return whether rows have values other than null in one of these columns if their file lacks the column.

        Statistics of files do not contain these values, which change with the schema. Reads the schema.
        """
        return False

    def validate(self) -> Validation:
        """Read enough metadata to prove that the version can be displayed.

        Raises:
            SnapshotExplorerError: The version cannot be displayed: its metadata is corrupt or missing.
        """
        return Validation(table_id=None, notes=())

    # Its metadata.

    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame: base, delta, changelog, index, in list order."""
        return frames.MANIFESTS.empty_table()

    def entries(self, manifest: str) -> pa.Table:
        """Return the ENTRIES of a manifest of MANIFESTS, in order. Reads it and the files that name it.

        Raises:
            InvalidArgumentError: The version has no such manifest, or it contains no data files.
        """
        raise InvalidArgumentError(f"Version {self.number} has no manifest {manifest}: the format has none.")

    @abstractmethod
    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame, restricted to partitions that might match the predicate.

        With `statistics`, the columns `lower`, `upper` and `null_count`, structs with a field per column of the table,
        and `min_key` and `max_key` if the format has keys; without these columns in a format without statistics.

        Raises:
            SnapshotNotFoundError: The version cannot be reconstructed any more.
            CorruptTableError: A file is missing or damaged; the message contains its path.
        """

    def file_count(self) -> int | None:
        """Return the number of live data files; None if what `manifests` reads does not contain it."""
        return len(self.files())

    def health_facts(self) -> HealthFacts:
        """Return the facts from which the health of the version is computed. Reads its schema.

        Raises:
            UnsupportedFeatureError: The format has no settings for maintenance.
        """
        raise UnsupportedFeatureError(
            Message(
                "Health is not supported for this format, which has no settings for maintenance. ",
                Hint("snapshot.files", {"ref": self.number}) if self.number is not None else Hint("snapshot.files"),
                " has the sizes, rows and partitions of the files of a version.",
            )
        )

    def inspect(self, name: str) -> pa.Table:
        """Return a metadata table of the version, with the format's own columns; empty without versions.

        Raises:
            InvalidArgumentError: No metadata table has that name.
        """
        raise InvalidArgumentError(f"A version has no metadata table {name!r}.")

    # Its rows.

    @abstractmethod
    def plan(self, predicate: Predicate | None = None) -> ReadPlan:
        """Return the splits of the rows, and the files that the predicate skips.

        Only files without matching rows are skipped, by metadata alone: no data file is opened.

        Raises:
            UnsupportedFeatureError: The version needs a feature that is not read; nothing has been read.
        """

    @abstractmethod
    def read(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split as the format defines them, with these columns in this order.

        Rows that do not match the predicate may be left out: row groups are skipped by their statistics.
        """

    def changelog(self) -> "RowChanges":
        """Return the rows that the version's commit changed, under the version's own schema.

        Raises:
            InvalidArgumentError: The version has no changelog.
        """
        raise InvalidArgumentError(f"Version {self.number} has no changelog: the format records no changes of rows.")

    def split_by_file(self, split: Split) -> Sequence[Split]:
        """Return one split per file, in order; the split itself if its files must be read together."""
        return (split,)

    # What only some formats have.

    @property
    def native_files(self) -> NativeFiles:
        """The data files of its splits, for other readers of Parquet and ORC."""
        return NativeFiles()

    @property
    def row_identity(self) -> RowIdentity:
        """The identity of the rows of its splits, to compare them with another version's."""
        return RowIdentity()


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChanges:
    """Changed rows, planned when `splits` is called. The first column is `rowkind`."""

    schema: pa.Schema
    """The columns after `rowkind`."""
    metadata_columns: pa.Schema
    """Columns that rows have only when requested."""
    splits: Callable[[Predicate | None], Sequence[Split]]
    """Plans the splits; a predicate, which may use `rowkind`, skips files without matching rows."""
    reader: TableVersion
    """Reads the splits."""


def digest_of(*values: object) -> str:
    """Return a hash of texts, bytes, numbers and lists of them, for `TableFormat.fingerprint`."""
    return blake2b(repr(values).encode(), digest_size=16).hexdigest()


def inspection_schema(columns: str, **types: pa.DataType) -> pa.Schema:
    """Return the schema of `name type, name type`, where a type is one of these or has Arrow's name."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, types[dtype] if dtype in types else pa.type_for_alias(dtype)) for name, dtype in pairs])


def unknown_manifest(number: int | None, manifest: str) -> InvalidArgumentError:
    """Return the error for a manifest that a version does not have."""
    known = Hint("snapshot.manifests", {} if number is None else {"ref": number})
    return InvalidArgumentError(Message(f"Version {number} has no manifest {manifest!r}. ", known, " lists them."))


def unknown_inspection(
    name: str, inspections: Sequence[Inspection], noun: str = "metadata table"
) -> InvalidArgumentError:
    """Return the error for a metadata table that a format lacks, with a similar name and those that exist.

    Args:
        noun: What the format calls such a table.
    """
    names = [item.name for item in inspections]
    near = did_you_mean(name, names)
    return InvalidArgumentError(f"No {noun} is called {name!r}.{near} {noun.capitalize()}s: {', '.join(names)}.")
