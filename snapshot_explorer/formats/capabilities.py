"""What only some formats have, each part an object that a table or a version returns.

A base class with defaults stands for a format without the feature; where callers have to choose another way, a format
without the feature returns None instead. Creating such an object reads nothing.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.errors import UnsupportedFeatureError
from snapshot_explorer.core.limits import Limits
from snapshot_explorer.core.records import (
    Finding,
    MaintenanceSettings,
    NativeRows,
    PlannedPair,
    Predicate,
    Split,
)
from snapshot_explorer.formats.expiry import Expiry, Presence, RetentionRule
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck
from snapshot_explorer.formats.metadata_tasks import MetadataTask, Prefetch, StateTasks, TaskReader
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp, NamedFiles
from snapshot_explorer.formats.statistics import StatisticsFiles
from snapshot_explorer.storage import Storage

OpenedTable = TypeVar("OpenedTable")
_NO_NAME = re.compile("(?!)")


class CatalogTables(ABC, Generic[OpenedTable]):
    """The tables of a catalog that is a file or a database of a format: its tables have no folders of their own."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The path of the catalog, without secrets."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Return the names of the tables that exist now, as they are typed, sorted. Opens the catalog once."""

    @abstractmethod
    def at_one_instant(self) -> AbstractContextManager[object]:
        """Return a block in which all tables that were opened by this object are read at one state of the catalog."""

    @abstractmethod
    def open(self, name: str | None, relocate: Mapping[str, str]) -> tuple[str, OpenedTable]:
        """Return the full name of a table, and the table; without a name, the only one. Opens the catalog once.

        Args:
            relocate: The actual folder for each recorded folder.

        Raises:
            TableNotFoundError: The catalog has no such table; the message lists its tables.
            InvalidArgumentError: The name is not valid, or the table must be named.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogPath:
    """A path that may be a catalog of tables."""

    text: str
    """The path or URL, as it was typed."""
    make_storage: Callable[[str], Storage]
    """Returns the storage of a folder, with the options of the caller."""
    limits: Limits
    is_named: bool
    """Whether the caller names a table in it, so that the path must be a catalog."""


def _no_catalog(path: CatalogPath) -> None:  # noqa: ARG001 - as a format has it
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLayout:
    """Where the tables of a format have their metadata."""

    folders: frozenset[str]
    """Folders in a table's folder that contain its metadata; each table has at least one of them. None if tables are
    named in a catalog."""
    file_names: re.Pattern[str] = _NO_NAME
    """Names of files by which a metadata folder is recognized, even outside a table's folder."""
    first_file: str | None = None
    """A small file that opening reads first. Remote storage reads it while it lists the table's folder."""
    table_files: re.Pattern[str] = _NO_NAME
    """Names of metadata files by which a table can be opened in place of its folder."""
    catalog_files: re.Pattern[str] = _NO_NAME
    """Names of files that are surely catalogs, by which a search below a folder finds them."""
    catalog_at: Callable[[CatalogPath], CatalogTables[Any] | None] = _no_catalog
    """Returns the format's catalog at a path, or None. Reads at most a few bytes of a local file; a file on a store is
    recognized by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFacts:
    """How catalogs name the tables of a format."""

    file_query: str | None = None
    """The query for the metadata `file` that Spark's catalog names, with the field `table`; None without such files."""
    branch_sign: str | None = None
    """The sign between table and branch in a name in Spark's catalog; None if such names contain no branch."""
    rest_client: str | None = None
    """The package that reads REST catalogs of the format's own protocol; None if there is no such protocol."""


class CommitClock:
    """What commit times mean, and what commits lack. By default times are recorded, and their zone is known."""

    has_file_times: ClassVar[bool] = False
    """Whether commit times may be file times, which change when a table is copied, in addition to recorded times."""

    @property
    def note(self) -> str | None:
        """A sentence about commit times whose zone is not known, or None."""
        return None

    def notes_on(self, commits: pa.Table) -> tuple[str, ...]:
        """Return sentences on what the writers of COMMITS did not record."""
        return () if self.note is None else (self.note,)

    def with_recorded_times(self, commits: pa.Table) -> pa.Table:
        """Return COMMITS with recorded times in place of file times, in the same order."""
        return commits

    def copied_note(self, commits: pa.Table) -> str | None:
        """Return a sentence if the times of COMMITS show that the table was copied; otherwise None."""
        return None


class DeleteFiles(ABC):
    """Delete files that are listed apart from data files: CHANGES and LIFETIMES do not contain replaced deletions."""

    @abstractmethod
    def manifests(self, versions: Sequence[int]) -> Sequence[frozenset[str]]:
        """Return for each version the manifests of its delete files. Equal manifests mean equal deletes."""

    @abstractmethod
    def data_files(self, version: int) -> pa.Table:
        """Return the FILES of a version without their deletions, which are not read."""


class MergedManifests(ABC):
    """The manifests of a format whose commits may rewrite the manifests of earlier commits."""

    @abstractmethod
    def of_delta(self, versions: Sequence[int]) -> frozenset[str] | None:
        """Return the paths of the delta manifests of these commits; None if some no longer exist.

        Reads all delta lists at once.
        """

    def of_index(self, versions: Sequence[int]) -> Sequence[str | None]:
        """Return for each version the manifest of its deletion vectors; None if LIFETIMES contain them."""
        return [None] * len(versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """The statements with which an engine erases rows from all files of a table, as templates in their order."""

    steps: tuple[tuple[str, str], ...]
    """Each statement after a sentence on what it does. Fields: `name`; `where`; `tag` and its `version`, or `branch`,
    in statements for each one that holds matching rows; in procedures also `catalog`, `schema` and `table`."""
    settings: Mapping[str, tuple[str, str | None]] = field(default_factory=dict)
    """Properties that keep rows otherwise: the value for the time of the statements, and the engine's default."""


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """What the engine's own maintenance does to a table: which versions and files it deletes, and which it needs.

    By default nothing is known, and what must be exact is refused by name.
    """

    statistics_clean_up: ClassVar[str | None] = None
    """The operation that removes metadata files with statistics, as a clause; None if they expire with versions."""
    unsearched_values: ClassVar[str | None] = None
    """Other files of the format that may contain values of rows and are not searched, in a phrase."""

    format_name: str

    @property
    def erasure(self) -> Erasure | None:
        """Return the statements that erase rows; None if none are written for the format."""
        return None

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
            f"Retention of {self.format_name} tables is not supported. Use the engine that expires its versions."
        )

    def presence(self, lifetimes: pa.Table, versions: Sequence[int]) -> Presence:
        """Return which of the files that versions need exist: data files, and metadata files whose content is not read.

        One listing for each folder with data files, deletion vectors or manifests.
        """
        unchecked = np.ones(len(lifetimes), np.bool_)
        return Presence(gone=~unchecked, resized=~unchecked, unknown=unchecked, missing_metadata={}, via_tag={})

    def file_check(self) -> FileCheck:
        """Return the function that reads a data file to check it, with the reader of rows."""
        return lambda *_: CheckedFile(skip_reason=f"data files of {self.format_name} tables are not opened")

    def named_files(self, listed: pa.Array) -> NamedFiles:
        """Return the files that the metadata of all branches names, including the metadata files themselves.

        Metadata that cannot be read is returned as `unread`, not raised.

        Args:
            listed: The paths of all files below the table's root, from a listing that is older than this call.

        Raises:
            UnsupportedFeatureError: The format does not support it.
        """
        raise UnsupportedFeatureError(
            f"Orphaned files of {self.format_name} tables are not searched: the format does not list what its metadata "
            "names."
        )

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        """Return the outcome of the engine's own clean-up of unreferenced files, by its documented rules.

        Args:
            files: path, size_bytes and modified of each file.
        """
        nothing = FileCleanUp(kind="other", outcome="ignored", because="the format has no clean-up of such files")
        return CleanUp(files=[nothing] * len(files), rule="The format has no clean-up of such files.", commands=())

    def statistics_files(self, versions: Sequence[int], at: int, columns: Collection[str]) -> StatisticsFiles:
        """Return the metadata files that record statistics of data files, each with the versions that need it.

        They may still contain values of deleted rows. Reads the metadata that names them. Unreadable metadata is
        returned as `unread`, not raised.

        Args:
            versions: The versions, ascending; some may have expired.
            at: The version that has the columns.
            columns: The columns whose statistics are returned.
        """
        return StatisticsFiles(files=())


class MetadataTasks(ABC):
    """The metadata of a table in independent tasks, which many machines read at once."""

    @abstractmethod
    def of_state(self, version: int, prefetch: Prefetch) -> StateTasks:
        """Return the tasks whose RECORDS contain the live files of a version.

        Raises: as `TableVersion.files`, except for errors in the files that the tasks read.
        """

    def of_lifetimes(self, version: int, prefetch: Prefetch) -> StateTasks:
        """Return the tasks whose RECORDS contain the files of the version with which LIFETIMES begin.

        If only the tasks find that some of the version's files are unknown, they return the RECORDS of the first later
        version whose files are all known, with its commit time.
        """
        return self.of_state(version, prefetch)

    @abstractmethod
    def of_changes(self, versions: Sequence[int], prefetch: Prefetch, *, lifetimes: bool) -> Sequence[MetadataTask]:
        """Return the tasks whose RECORDS contain the changes of commits; for lifetimes, with times and only data files.

        The versions ascend. A task covers versions without a gap.

        Raises: as `changes` and `committed_at`, except for errors in the files that the tasks read.
        """

    @abstractmethod
    def reader(self) -> TaskReader:
        """Return the function that reads a task. Picklable, including storage options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFacts:
    """What the health of a version is computed from, in addition to its manifests."""

    settings: MaintenanceSettings
    measured_files: Callable[[], pa.Table]
    """Reads FILES and `delete_records`: the number of rows in the file that delete others, null if not recorded."""
    own_findings: Callable[[], Sequence[Finding]] = tuple
    """Returns the findings that only this format has. Reads what `measured_files` and the manifests read."""


def without_delete_records(files: pa.Table) -> pa.Table:
    """Return FILES and `delete_records` for a format that does not record it: null."""
    return files.append_column("delete_records", pa.nulls(len(files), pa.int64()))


class NativeFiles:
    """The data files of splits, for other readers of Parquet and ORC. By default they would return other rows."""

    def of(self, split: Split) -> NativeRows | None:
        """Return the files of a split for other readers; None if they would return other rows. Reads nothing."""
        return None

    def by_names(self, split: Split) -> NativeRows | None:
        """Return files of a split without `of` whose columns are found by name if a file stores no ids.

        Otherwise None. Reads nothing: the reader finds in the footer whether a file stores ids.
        """
        return None

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        """Return the positions of the deleted rows of each part. Reads the deletion vectors.

        Args:
            parts: Results of `split_by_file`, one file each, for splits that have native files, or whose rows
                `RowIdentity.has_deleted_positions`.
            rows: The number of rows of each file.
        """
        if not parts:
            return []
        raise UnsupportedFeatureError("The format does not return the positions of deleted rows.")


class RowIdentity:
    """The identity of the rows of splits, by which the splits of two versions are compared. By default unknown."""

    def plan_pair(self, other: Self, predicates: Sequence[Predicate | None]) -> PlannedPair | None:
        """Return the splits of this version and of another one, without splits in both; None if both are to be planned.

        Each version has its own predicate. Faster if versions share many files, which are left out before planning.

        Raises:
            UnsupportedFeatureError: A version needs a feature that is not read; nothing has been read.
        """
        return None

    def without_vector(self, split: Split) -> Hashable | None:
        """Return a value that is equal for splits of one file that differ at most in its deletion vector.

        None for a split of several files, or whose rows are merged.
        """
        return None

    def in_columns(self, split: Split, columns: Sequence[str | None], absent: frozenset[str]) -> Hashable | None:
        """Return a value that is equal for splits of one file whose rows are equal in these columns, in this order.

        None if unknown. A column that is None or absent is null in every row.
        """
        return None

    def columns_added_since(self, other: Self) -> frozenset[str]:
        """Return columns that certainly no file of another version has."""
        return frozenset()

    def deletes_of(self, split: Split) -> frozenset[Hashable]:
        """Return identities of the files that delete rows of a split, equal for the same file in several splits."""
        return frozenset({split.identity})

    def rows_deleted(self, before: Split, after: Split) -> Split | None:
        """Return a split of the rows that are live in `before` and deleted in `after`; None if there are none.

        Reads nothing. Both are splits of the same file that differ in its deletion vector, with an equal
        `without_vector`. `TableVersion.read` accepts the result and reads only these rows; `Split.rows` is the maximum
        number of them.
        """
        raise UnsupportedFeatureError("The format does not compare the deletion vectors of a file.")

    def stored_rows(self, split: Split) -> Split | None:
        """Return a split of all rows that a data file stores, also deleted ones, for a split of one file.

        None if that is not supported: the rows of the split are merged, or its file has rows that delete others.
        """
        return None

    def has_deleted_positions(self, split: Split) -> bool:
        """Return whether the rows of a split are its `stored_rows` without those at `NativeFiles.deleted_positions`."""
        return False
