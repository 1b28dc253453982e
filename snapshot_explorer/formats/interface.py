"""The interface of table formats: `TableFormat`, a table's history, and `TableVersion`, one version of it.

A format implements the abstract methods. The other methods have defaults for formats without the feature;
a format overrides the methods of the features it supports.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from snapshot_explorer.core.records import (
    Branch,
    ChangeMode,
    ChangesWithStatistics,
    FieldIds,
    Finding,
    Inspection,
    Listing,
    MaintenanceSettings,
    NativeRows,
    PlannedPair,
    Predicate,
    ReadPlan,
    RowModifier,
    Split,
    TableSchema,
    Validation,
)
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck
from snapshot_explorer.formats.metadata_tasks import MetadataTask, Prefetch, StateTasks, TaskReader
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp, NamedFiles
from snapshot_explorer.formats.statistics import StatisticsFiles
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairSyntax:
    """The statements with which Spark and the format's connector restore versions and rows."""

    time_travel: str | None = None
    """The clause behind a table's name that reads a version, with the fields of `TableFormat.restore_command`; None if
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


class TableFormat(ABC):
    """A table's history, bound to one branch. Safe to use from several threads, and picklable."""

    name: ClassVar[str]
    """The name of the format in messages and in `--format`."""
    title: ClassVar[str]
    """The name of the format in sentences, such as Delta Lake."""
    metadata_folders: ClassVar[frozenset[str]]
    """Folders in a table's folder that contain its metadata; each table has at least one of them."""
    metadata_names: ClassVar[re.Pattern[str]] = re.compile("(?!)")
    """Names of files by which a metadata folder is recognized, even outside a table's folder."""
    first_file: ClassVar[str | None] = None
    """A small file that opening reads first. Remote storage reads it while it lists the table's folder."""
    main_branch: ClassVar[str | None] = None
    """The name of the branch that is opened without `branch`; None if tables have no branches."""
    branch_folder: ClassVar[str | None] = None
    """The folder in a table's folder that contains the metadata of branches; None if they have no folders."""
    restore_command: ClassVar[str]
    """The engine's own command that restores a version, with the fields `name`, `version` and `identifier`."""
    repairs: ClassVar[RepairSyntax | None] = None
    """The syntax of statements that repair a table; None if they are not generated."""
    inspections: ClassVar[tuple[Inspection, ...]] = ()
    """The format's metadata tables, under their names in the format."""
    catalog_file_query: ClassVar[str | None] = None
    """The query for the metadata `file` that Spark's catalog names, with the field `table`; None without such files."""
    catalog_branch_sign: ClassVar[str | None] = None
    """The sign between table and branch in a name in Spark's catalog; None if such names contain no branch."""
    rest_catalog_client: ClassVar[str | None] = None
    """The package that reads REST catalogs of the format's own protocol; None if there is no such protocol."""
    has_file_times: ClassVar[bool] = False
    """Whether commit times may be file times, which change when a table is copied, in addition to recorded times."""
    has_ordered_times: ClassVar[bool] = True
    """Whether versions are committed in their order. Otherwise `committed_at` reads nothing."""
    has_exact_row_counts: ClassVar[bool] = False
    """Whether metadata counts the rows of a version. Otherwise it counts those in files, before merges and deletes."""
    commits_are_in_one_file: ClassVar[bool] = False
    """Whether reading the commits of all versions costs the same requests as reading one."""
    merges_manifests: ClassVar[bool] = False
    """Whether a commit may rewrite the manifests of earlier commits; if so, `delta_manifests` is implemented."""
    lifetimes_have_deletions: ClassVar[bool] = True
    """Whether CHANGES contain replaced deletions, so that a file's lifetime is of the file with its deletions."""
    has_changelogs: ClassVar[bool] = False
    """Whether commits may write files of row changes; if so, `TableVersion.changelog_files` is implemented."""
    statistics_clean_up: ClassVar[str | None] = None
    """The operation that removes metadata files with statistics, as a clause; None if they expire with versions."""
    unsearched_values: ClassVar[str | None] = None
    """Other files of the format that may contain values of rows and are not searched, in a phrase."""

    other_formats: tuple[str, ...] = ()
    """The names of other formats whose metadata was detected in the table's folder too."""
    root_folders: Collection[str] = ()
    """The folders that the format's detection found in the table's folder; empty if it did not list them."""

    # Versions.

    @property
    def clock_note(self) -> str | None:
        """Return a sentence about commit times whose zone is not known, or None."""
        return None

    @abstractmethod
    def __init__(self, storage: Storage, *, branch: str | None = None) -> None:
        """Bind to a table and a branch, the main one for None. Only checks that the branch exists.

        Raises:
            TableNotFoundError: The branch does not exist; the message lists the existing ones.
        """

    @classmethod
    @abstractmethod
    def recognizes(cls, storage: Storage, folders: Collection[str]) -> bool:
        """Return whether the folder, which contains these folders, is a table of this format. At most two requests."""

    @classmethod
    def is_metadata_file(cls, name: str) -> bool:
        """Return whether a file of this name is metadata by which a table can be opened in place of its folder."""
        return False

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
    @abstractmethod
    def storage(self) -> Storage:
        """The storage of the table."""

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

    @abstractmethod
    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed, aware, UTC. Reads at most one small file per version."""

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

    def branch_at(self, time: datetime) -> str | None:
        """Return the branch with the version that was current at a time, by a name for `on_branch`.

        None if that version is in this history, or if it is not recorded. It may have been rolled back since.
        """
        return None

    def version_named(self, number: int) -> int:
        """Return the version with a number or a snapshot id; otherwise the number itself. Reads nothing."""
        return number

    # Commits and their changes.

    @abstractmethod
    def commits(self, versions: Sequence[int]) -> pa.Table:
        """Return the COMMITS frame of the versions, in the given order."""

    @classmethod
    def with_recorded_times(cls, commits: pa.Table) -> pa.Table:
        """Return COMMITS with recorded times in place of file times, in the same order; see `has_file_times`."""
        return commits

    @classmethod
    def copied_note(cls, commits: pa.Table) -> str | None:
        """Return a sentence if the times of COMMITS show that the table was copied; otherwise None."""
        return None

    def commit_details(self, versions: Sequence[int]) -> pa.Table:
        """Return version, committed_at and details of COMMITS, with as few requests as possible."""
        return self.commits(versions).select(["version", "committed_at", "details"])

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

    @abstractmethod
    def row_changes(self, first: int, last: int, mode: ChangeMode) -> "RowChanges":
        """Return the rows that changed after `first` up to `last`, not yet planned.

        Raises:
            UnsupportedFeatureError: The mode needs a feature that is not read.
            SnapshotNotFoundError: A file that the mode reads has expired.
        """

    # Metadata for lifetimes and comparisons, in addition to the changes.

    def lifetime_files(self, version: int) -> pa.Table:
        """Return the FILES of a version, without deletions if CHANGES do not contain replaced deletions."""
        return self.version(version).files()

    def delta_manifests(self, versions: Sequence[int]) -> frozenset[str] | None:
        """Return the paths of the delta manifests of these commits; None if some no longer exist.

        Reads all delta lists at once. Called only if the format `merges_manifests`.
        """
        return None

    def delete_manifests(self, versions: Sequence[int]) -> Sequence[frozenset[str]]:
        """Return for each version the manifests of its delete files. Equal manifests mean equal deletes."""
        return [frozenset()] * len(versions)

    def index_manifests(self, versions: Sequence[int]) -> Sequence[str | None]:
        """Return for each version the manifest of its deletion vectors; None if LIFETIMES contain them."""
        return [None] * len(versions)

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

    def branches(self) -> Sequence[Branch]:
        """Return the other branches, sorted, with the version of this history that each begins with.

        A listing and two small files per branch, and once the tags if versions have expired. For more than 100
        branches, and for a corrupt branch, only the name is returned.
        """
        return ()

    def branch_names(self) -> Sequence[str]:
        """Return the names of all branches, the main one included, sorted. At most one listing."""
        return ()

    def detached_heads(self) -> Sequence[str]:
        """Return the newest versions that are on no branch, such as after a rollback, by names for `on_branch`."""
        return ()

    def has_history(self, name: str) -> bool:
        """Return whether `on_branch` accepts this name for a history of versions that are on no branch."""
        return False

    def on_branch(self, name: str) -> Self:
        """Return the same table, bound to another branch that exists."""
        raise TableNotFoundError(f"{self.storage.root} has no branch {name!r}: {self.name} tables have no branches.")

    def shared_versions(self, other: Self) -> Mapping[int, int]:
        """Return the versions of this history that another branch of the table also has, each with its number there."""
        return {}

    def check_comparable(self, other: Self, versions: tuple[int, int]) -> None:
        """Check that columns of versions of this and of another branch can be matched by their field ids.

        Raises:
            UnsupportedFeatureError: They cannot; the message names the columns.
        """

    # Maintenance.

    def inspect(self, name: str) -> pa.Table:
        """Return a metadata table of the whole table, with the format's own columns.

        Raises:
            InvalidArgumentError: No metadata table has that name.
        """
        raise InvalidArgumentError(f"{self.name} tables have no metadata table {name!r}.")

    def expiry(
        self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None, unread: Collection[int] = ()
    ) -> Expiry:
        """Return the versions and files that the engine's own command would delete at the newest known version.

        A file that a kept version may need is not included.

        Args:
            rule: What to keep.
            lifetimes: LIFETIMES of the table.
            newest: The newest version in the lifetimes or among the unread ones, or None. Later ones are ignored.
            unread: Versions whose files are not in the lifetimes, because they cannot be read.

        Raises:
            UnsupportedFeatureError: The result cannot be computed exactly. The message contains the reason.
            InvalidArgumentError: The rule does not fit the table.
        """
        raise UnsupportedFeatureError(
            f"Retention of {self.name} tables is not supported. Use the engine that expires its versions."
        )

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        """Return which of the files that versions need exist: data files, and metadata files whose content is not read.

        One listing for each folder with data files, deletion vectors or manifests.
        """
        unchecked = np.ones(len(lifetimes), np.bool_)
        return Presence(gone=~unchecked, resized=~unchecked, unknown=unchecked, missing_metadata={}, via_tag={})

    def file_check(self) -> FileCheck:
        """Return the function that reads a data file to check it, with the reader of rows."""
        return lambda *_: CheckedFile(skip_reason=f"data files of {self.name} tables are not opened")

    def named_files(self, listed: pa.Array) -> NamedFiles:
        """Return the files that the metadata of all branches names, including the metadata files themselves.

        Metadata that cannot be read is returned as `unread`, not raised.

        Args:
            listed: The paths of all files below the table's root, from a listing that is older than this call.

        Raises:
            UnsupportedFeatureError: The format does not support it.
        """
        raise UnsupportedFeatureError(
            f"Orphaned files of {self.name} tables are not searched: the format does not list what its metadata names."
        )

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        """Return the outcome of the engine's own clean-up of unreferenced files, by its documented rules.

        Args:
            files: path, size_bytes and modified of each file.
        """
        nothing = FileCleanUp(kind="other", outcome="ignored", because="the format has no clean-up of such files")
        return CleanUp(files=[nothing] * len(files), rule="The format has no clean-up of such files.", commands=())

    # Metadata that may still contain values of deleted rows.

    def statistics_files(self, versions: Sequence[int], at: int) -> StatisticsFiles:
        """Return the metadata files that record statistics of data files, each with the versions that need it.

        Reads the metadata that names them. Unreadable metadata is returned as `unread`, not raised.

        Args:
            versions: The versions, ascending; some may have expired.
            at: The version whose columns the statistics have.
        """
        return StatisticsFiles(files=())

    # Metadata read on many machines at once, in independent tasks.

    def state_tasks(self, version: int, prefetch: Prefetch) -> StateTasks:
        """Return the tasks whose RECORDS contain the live files of a version.

        Raises: as `TableVersion.files`, except for errors in the files that the tasks read.
        """
        raise self._no_tasks()

    def lifetime_tasks(self, version: int, prefetch: Prefetch) -> StateTasks:
        """Return the tasks whose RECORDS contain the `lifetime_files` of a version.

        If only the tasks find that some of the version's files are unknown, they return the RECORDS of the first later
        version whose files are all known, with its commit time.
        """
        return self.state_tasks(version, prefetch)

    def change_tasks(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:
        """Return the tasks whose RECORDS contain the changes of commits; for lifetimes, with times and only data files.

        The versions ascend. A task covers versions without a gap.

        Raises: as `changes` and `committed_at`, except for errors in the files that the tasks read.
        """
        raise self._no_tasks()

    def task_reader(self) -> TaskReader:
        """Return the function that reads a task. Picklable, including storage options."""
        raise self._no_tasks()

    def _no_tasks(self) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"engine='spark' cannot read the metadata of {self.name} tables: the format does not split it into tasks. "
            "Leave out engine='spark'."
        )


class TableVersion(ABC):
    """One version of a table. Immutable and picklable; its schema and properties are read once, when first used.

    The version of a table without commits has the number None, the newest schema, no files and no rows.
    """

    # Schema and properties in force at the version.

    @property
    @abstractmethod
    def number(self) -> int | None:
        """The version's number; None for a table that has no version yet."""

    @property
    @abstractmethod
    def storage(self) -> Storage:
        """The storage of the table."""

    def in_own_schema(self) -> "TableVersion":
        """Return the version with the schema of its commit; the version itself if it already has that schema."""
        return self

    @property
    @abstractmethod
    def schema(self) -> TableSchema:
        """The schema in force at the version."""

    @property
    @abstractmethod
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""

    @property
    @abstractmethod
    def field_ids(self) -> Mapping[str, FieldIds]:
        """A column's id and its nested fields' ids, for each column."""

    @property
    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """The table's properties in force at the version."""

    @property
    def recorded_properties(self) -> Mapping[str, str]:
        """The properties recorded with the version, which may differ from the properties in force."""
        return self.properties

    @property
    def format_version(self) -> str | None:
        """The format's version and the features in use; None if it has none. No request once the schema was read."""
        return None

    def repair_obstacle(self, *, of_rows: bool) -> str | None:
        """Return why statements may fail to restore rows of this version, in a sentence; None if they do not.

        Args:
            of_rows: Whether some rows are restored; otherwise the table is restored as a whole.
        """
        return None

    def repair_settings(self, *, merges: bool) -> Sequence[str]:
        """Return the settings of a Spark session, `name = value`, without which statements fail or miss rows.

        Args:
            merges: Whether one of the statements is a MERGE.

        Raises:
            UnsupportedFeatureError: The engine does not run such a statement on the table.
        """
        return ()

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

    @abstractmethod
    def manifests(self) -> pa.Table:
        """Return the MANIFESTS frame: base, delta, changelog, index, in list order."""

    @abstractmethod
    def entries(self, manifest: str) -> pa.Table:
        """Return the ENTRIES of a manifest of MANIFESTS, in order. Reads it and the files that name it.

        Raises:
            InvalidArgumentError: The version has no such manifest, or it contains no data files.
        """

    @abstractmethod
    def files(self, predicate: Predicate | None = None, *, statistics: bool = False) -> pa.Table:
        """Return the FILES frame, restricted to partitions that might match the predicate.

        With `statistics`, the columns `lower`, `upper` and `null_count`, structs with a field per column of the table,
        and `min_key` and `max_key` if the format has keys.

        Raises:
            SnapshotNotFoundError: The version cannot be reconstructed any more.
            CorruptTableError: A file is missing or damaged; the message contains its path.
        """

    def file_count(self) -> int | None:
        """Return the number of live data files; None if what `manifests` reads does not contain it."""
        return len(self.files())

    def measured_files(self) -> pa.Table:
        """Return FILES and `delete_records`: the number of rows in the file that delete others, null if not recorded.

        Costs the same as `files`.
        """
        files = self.files()
        return files.append_column("delete_records", pa.nulls(len(files), pa.int64()))

    def maintenance_settings(self) -> MaintenanceSettings:
        """Return the table's settings for maintenance. Reads its schema.

        Raises:
            UnsupportedFeatureError: The format has no settings for maintenance.
        """
        raise UnsupportedFeatureError(
            "Health is not supported for this format, which has no settings for maintenance. "
            "Snapshot.files() has the sizes, rows and partitions of the files of a version."
        )

    def own_findings(self) -> Sequence[Finding]:
        """Return the health findings that only this format has. Reads what `measured_files` and `manifests` read."""
        return ()

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

    @abstractmethod
    def changelog(self) -> "RowChanges":
        """Return the rows that the version's commit changed, under the version's own schema.

        Raises:
            InvalidArgumentError: The version has no changelog.
        """

    def changelog_files(self) -> "RowChanges | None":
        """Return the rows in the files of row changes that the version's commit wrote; None if it wrote none.

        Each split is of one such file, the first of `Split.files`. Called only if the format `has_changelogs`.
        """
        return None

    def missing_files(self, splits: Sequence[Split]) -> Sequence[str]:
        """Return the data files of splits that do not exist. Checks none if many files are on remote storage."""
        return self.storage.missing([path for split in splits for path in split.files])

    def split_by_file(self, split: Split) -> Sequence[Split]:
        """Return one split per file, in order; the split itself if its files must be read together."""
        return (split,)

    # Its data files, for other readers of Parquet and ORC.

    def native_files(self, split: Split) -> NativeRows | None:
        """Return the files of a split for other readers; None if they would return other rows. Reads nothing."""
        return None

    def files_by_names(self, split: Split) -> NativeRows | None:
        """Return files of a split without `native_files` whose columns are found by name if a file stores no ids.

        Otherwise None. Reads nothing: the reader finds in the footer whether a file stores ids.
        """
        return None

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        """Return the positions of the deleted rows of each part. Reads the deletion vectors.

        Args:
            parts: Results of `split_by_file`, one file each, for splits that have `native_files`.
            rows: The number of rows of each file.
        """
        raise UnsupportedFeatureError("The format does not return the positions of deleted rows.")

    # Comparing its splits with another version's splits.

    def plan_pair(self, other: Self, predicates: Sequence[Predicate | None]) -> PlannedPair:
        """Return the splits of this version and of another one, each for its own predicate.

        Splits in both versions may be left out before they are planned, which is faster if versions share many files.

        Raises:
            UnsupportedFeatureError: A version needs a feature that is not read; nothing has been read.
        """
        of_first, of_last = predicates
        first, last = self.storage.together(lambda: self.plan(of_first), lambda: other.plan(of_last))
        return PlannedPair(splits=(first.splits, last.splits), shared_files=0)

    def identity_without_vector(self, split: Split) -> Hashable | None:
        """Return a value that is equal for splits of one file that differ at most in its deletion vector.

        None for a split of several files, or whose rows are merged.
        """
        return None

    def deletes_of(self, split: Split) -> frozenset[Hashable]:
        """Return identities of the files that delete rows of a split, equal for the same file in several splits."""
        return frozenset({split.identity})

    def rows_deleted(self, before: Split, after: Split) -> Split | None:
        """Return a split of the rows that are live in `before` and deleted in `after`; None if there are none.

        Reads nothing. Both are splits of the same file that differ in its deletion vector, with an equal
        `identity_without_vector`. `read` accepts the result and reads only these rows; `Split.rows` is the maximum
        number of them.
        """
        raise UnsupportedFeatureError("The format does not compare the deletion vectors of a file.")

    def stored_rows(self, split: Split) -> Split | None:
        """Return a split of all rows that a data file stores, also deleted ones, for a split of one file.

        None if that is not supported: the rows of the split are merged, or its file has rows that delete others.
        """
        return None

    def identity_in(self, split: Split, columns: Sequence[str | None], absent: frozenset[str]) -> Hashable | None:
        """Return a value that is equal for splits of one file whose rows are equal in these columns, in this order.

        None if unknown. A column that is None or absent is null in every row.
        """
        return None

    def columns_added_since(self, other: Self) -> frozenset[str]:
        """Return columns that certainly no file of another version has."""
        return frozenset()


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


def inspection_schema(columns: str, **types: pa.DataType) -> pa.Schema:
    """Return the schema of `name type, name type`, where a type is one of these or has Arrow's name."""
    pairs = (column.split() for column in columns.split(","))
    return pa.schema([(name, types[dtype] if dtype in types else pa.type_for_alias(dtype)) for name, dtype in pairs])


def unknown_inspection(
    name: str, inspections: Sequence[Inspection], noun: str = "metadata table"
) -> InvalidArgumentError:
    """Return the error for a metadata table that a format lacks, with a similar name and those that exist.

    Args:
        noun: What the format calls such a table.
    """
    names = [item.name for item in inspections]
    near = get_close_matches(name, names, 1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return InvalidArgumentError(f"No {noun} is called {name!r}.{hint} {noun.capitalize()}s: {', '.join(names)}.")
