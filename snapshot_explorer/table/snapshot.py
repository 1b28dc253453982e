"""`Snapshot`: a table at one version."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, overload

import pyarrow as pa

from snapshot_explorer.analysis.compare import entries_of, find_manifest
from snapshot_explorer.analysis.rows import duplicates
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import gaps_note
from snapshot_explorer.core.refs import OfBranch, Ref, Version, parse_ref
from snapshot_explorer.core.resources import reporting_lacking_resources
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.url_secrets import hide_url_secrets
from snapshot_explorer.engines import local
from snapshot_explorer.engines.local import read_changes
from snapshot_explorer.engines.scan import Scan, plan_rows, scan_of
from snapshot_explorer.engines.spark import metadata
from snapshot_explorer.formats.unread_versions import readable_changes, unread_notes
from snapshot_explorer.history import History, KnownReadability, OpenBranch, commit_of, naming_renamed_columns
from snapshot_explorer.results import Frame, check_types, non_empty_columns, rows_as_pandas

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.core.records import Commit, TableSchema
    from snapshot_explorer.core.refs import RefLike
    from snapshot_explorer.core.single_flight import SingleFlight
    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.history import LoadedVersion
    from snapshot_explorer.results import PandasTypes


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotParts:
    """What a snapshot is made of."""

    table_format: TableFormat
    """The table, on the branch of the version."""
    loaded: LoadedVersion
    """The version with the metadata that was read."""
    name: str
    """The name of the table."""
    branch: str | None = None
    """The branch; None for the main one."""
    readability: KnownReadability = field(default_factory=KnownReadability)
    """What is known about which versions can be loaded."""

    @classmethod
    def of(cls, branch: OpenBranch, loaded: LoadedVersion) -> SnapshotParts:
        """Return the parts for a version of a branch."""
        return cls(
            table_format=branch.format,
            loaded=loaded,
            name=branch.name,
            branch=branch.branch,
            readability=branch.readability,
        )


def parts_of(snapshot: Snapshot) -> SnapshotParts:
    """Return the parts of a snapshot."""
    return snapshot._parts  # noqa: SLF001 - for this package: users have `Snapshot` itself


@reporting_lacking_resources
class Snapshot(Shown):
    """A table at one version. Contains no rows; caches metadata until a newer snapshot replaces it.

    Methods raise the errors that `Table` describes; `SnapshotNotFoundError` if the version has expired.
    """

    def __init__(self, parts: SnapshotParts) -> None:
        self._parts = parts
        self._path = parts.loaded.path
        self._name = parts.name
        self._format = parts.table_format
        self.version = parts.loaded.version.number
        """Paimon's snapshot id, Delta's version, Iceberg's sequence number or Hudi's instant; None without versions."""
        self.branch = parts.branch
        """The branch whose history has the version; None for the main one."""

    @property
    def _version(self) -> TableVersion:
        return self._parts.loaded.version

    @property
    def _cache(self) -> SingleFlight:
        return self._parts.loaded.cache

    @property
    def _schema_key(self) -> str:
        return self._parts.loaded.schema_key

    @property
    def commit(self) -> Commit:
        """Return the commit that created the version.

        Reads the files that the commit wrote. Paimon: the snapshot, its delta manifest list and manifests. Iceberg:
        only the table's metadata file. Delta: the commit file, and enough of the log to determine whether the version
        can still be loaded; see `frames.COMMITS`.
        """
        version = self._existing()
        rows = self._cache.get("commit", lambda: self._format.commits([version]))
        record = commit_of(self._parts.readability.applied_to(rows))
        if None in (record.added_files, record.added_rows, record.removed_rows, record.total_rows):
            self._cache.forget("commit")  # a file may have been missing; it may exist at the next call
        return record

    @property
    def schema(self) -> TableSchema:
        """Return the schema of the version: columns, types, keys. Reads one small file, or Delta's checkpoint, once."""
        return self._cache.get(self._schema_key, lambda: self._version.schema)

    @property
    def properties(self) -> Mapping[str, str]:
        """Return the table properties in force at the version. Cost and errors as `schema`.

        The secrets of URLs in them are hidden.
        """
        return self._cache.get("properties", self._read_properties)

    def _read_properties(self) -> Mapping[str, str]:
        return {name: hide_url_secrets(value) for name, value in self._version.properties.items()}

    @property
    def arrow_schema(self) -> pa.Schema:
        """Return the Arrow schema of the rows that `to_arrow` returns. Cost and errors as `schema`."""
        return self._cache.get(f"arrow {self._schema_key}", lambda: self._version.arrow_schema)

    @property
    def ref(self) -> Ref | None:
        """Return the ref of the version that is valid whichever branch is open; None for a table without versions."""
        main = self._format.branches.main
        if self.version is None or main is None:
            return None if self.version is None else Version(number=self.version)
        return OfBranch(name=self.branch or main, number=self.version)

    @property
    def label(self) -> str:
        """Return the version for people, with its branch: Paimon's branches use the same numbers."""
        return f"version {self.version}{f' of branch {self.branch}' if self.branch else ''}"

    @property
    def committed_at(self) -> datetime:
        """Return when the version was committed, aware, in UTC. Reads at most one small file."""
        return self._format.committed_at([self._existing()])[0]

    def manifests(self) -> Frame:
        """Return the MANIFESTS frame: base, delta, changelog and index, in list order.

        Paimon: reads only the manifest lists. Delta: base contains the files of the checkpoint and delta the commits
        after it; reads both. Iceberg: base contains the manifests of earlier snapshots, delta the manifests of this one
        and index the manifests of delete files; reads the manifest list.
        """
        rows = self._cache.get("manifests", self._version.manifests)
        drawn = non_empty_columns(rows, exclude=("version", "list_path"))
        return Frame(rows, title=self._title("Manifests"), noun="manifests", drawn=drawn)

    def entries(self, manifest: str) -> Frame:
        """Return the ENTRIES of a manifest, in order: the data files that it adds and removes.

        Delta: a manifest is a commit, a file of the checkpoint or a sidecar; a remove in a checkpoint is a tombstone.
        Iceberg: a manifest of data files or of delete files. Reads the manifest, and what `manifests` reads.

        Args:
            manifest: The path, as in `manifests`, the file name, or an unambiguous suffix.
        """
        version, paths = self._existing(), self.manifests()["path"].to_pylist()
        return entries_of(self._version, find_manifest(str(manifest), paths, owner=f"version {version}"))

    @overload
    def file_changes(self, *, since: RefLike | None = None, engine: Literal["local"] = "local") -> Frame: ...
    @overload
    def file_changes(
        self, *, since: RefLike | None = None, engine: Literal["spark"], spark: SparkSession | None = None
    ) -> DataFrame: ...
    def file_changes(
        self, *, since: RefLike | None = None, engine: str = "local", spark: SparkSession | None = None
    ) -> Frame | DataFrame:
        """Return the CHANGES frame: the data files that this version's commit added and removed.

        Args:
            since: Also what the commits before it did, from this ref on, oldest first. One listing. `earliest` begins
                at the first version whose changes are known.
            engine: `local` or `spark`. On Spark, a DataFrame of the same rows, in no order; see `Table.lifetimes`. A
                warning names missing versions, since it has no notes.
            spark: The session. By default the active one; if there is none, a local session is started.
        """
        if since is not None:
            return self._file_changes(parse_ref(since), engine, spark)
        if metadata.is_spark(engine):
            return metadata.changes(self._format, self._versions(), spark)
        rows = self._cache.get("changes", lambda: self._format.changes(self._versions()))
        drawn = ("change", "list", *_file_columns(rows))
        return Frame(rows, title=self._title("Changes"), noun="changes", drawn=drawn)

    def _file_changes(self, since: Ref, engine: str, spark: SparkSession | None) -> Frame | DataFrame:
        is_spark = metadata.is_spark(engine)
        # Quiet about what the table it comes from has warned of.
        branch = OpenBranch(self._path, self._format, name=self._name, branch=self.branch, note_level=logging.INFO)
        history = History(branch)
        versions: Sequence[int] = ()
        if self.version is not None:
            first = history.version_of(since)
            if first is not None and first > self.version:
                chosen = Hint("", {"since": str(since)})
                raise InvalidArgumentError(Message(chosen, f" is version {first}, after version {self.version}."))
            versions = history.changed((since, Version(number=self.version)))
        notes = (
            *gaps_note(history.gaps(versions), "what changed there is not among these rows"),
            *history.edge_notes(versions),
        )
        if is_spark:
            return metadata.changes(self._format, versions, spark, notes=notes)
        changes, unread = readable_changes(self._format, versions)
        notes = (*notes, *unread_notes(unread, "the changes of"))
        return Frame(changes, title=f"Changes of {self._name}", noun="changes", notes=notes)

    @overload
    def files(
        self,
        partition: Mapping[str, str | None] | None = None,
        *,
        statistics: bool = False,
        engine: Literal["local"] = "local",
    ) -> Frame: ...
    @overload
    def files(
        self,
        partition: Mapping[str, str | None] | None = None,
        *,
        engine: Literal["spark"],
        spark: SparkSession | None = None,
    ) -> DataFrame: ...
    def files(
        self,
        partition: Mapping[str, str | None] | None = None,
        *,
        statistics: bool = False,
        engine: str = "local",
        spark: SparkSession | None = None,
    ) -> Frame | DataFrame:
        """Return the FILES frame: the data files that are live at the version.

        Args:
            partition: Keep files whose partition has these values, as text; None is the null partition.
            statistics: Add the column statistics: `lower`, `upper` and `null_count`, structs with a field per column,
                and `min_key` and `max_key` if the table has a primary key. Not on Spark.
            engine: `local` or `spark`. On Spark, a DataFrame of the same rows, in no order; see `Table.lifetimes`.
            spark: The session. By default the active one; if there is none, a local session is started.

        Raises:
            UnsupportedFeatureError: Statistics are requested on Spark.
        """
        self._check_partition({} if partition is None else partition)
        if metadata.is_spark(engine):
            return metadata.files(self._format, self.version, spark, partition=partition, statistics=statistics)
        key = f"files with statistics in {self._schema_key}" if statistics else "files"
        rows = self._cache.get(key, lambda: self._version.files(statistics=statistics))
        drawn = _file_columns(rows) if not statistics else ()
        shown = _in_partition(rows, partition) if partition else rows
        total = rows.num_rows if shown.num_rows != rows.num_rows else None
        return Frame(shown, title=self._title("Files"), noun="files", total=total, drawn=drawn)

    def plan(self, where: str | None = None) -> Frame:
        """Return the plan of a read: what is read and what is skipped. Reads only metadata.

        One row per split that is read, then one row per partition, bucket and reason for what is skipped. The PLAN
        frame: partition (map), bucket, raw, files, rows (in the files), size_bytes, and skipped: null for splits
        that are read, otherwise `partition`, `bucket`, `key range` or `statistics of COLUMN`. If the condition skips
        whole manifests, everything skipped by partition is one row, without partition, bucket and size.

        Args:
            where: A condition in SQL; see `to_arrow`.
        """
        rows = plan_rows(self._version.plan(self._scan(None, where).condition))
        empty = {name for name in ("partition",) if not self.schema.partition_keys}
        empty |= {"skipped"} if rows["skipped"].null_count == len(rows) else set()
        drawn = tuple(name for name in frames.PLAN.names if name not in empty)
        return Frame(rows, title=self._title("Plan"), noun="splits", drawn=drawn)

    def to_arrow(
        self, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
    ) -> pa.Table:
        """Return the rows of the version as an Arrow table, in the schema of the version.

        Args:
            columns: The columns to return, in order; by default all. Metadata columns, such as `_ROW_ID`, are returned
                only if they are named. So is `b$descriptor`, which contains the locations of the values of a blob
                column `b` instead of the values.
            where: A condition in DuckDB's SQL. Partitions, buckets and files that cannot match are not opened; `plan`
                lists them.
            limit: Return at most this many rows; which ones is undefined.

        Raises:
            UnsupportedFeatureError: The version needs a feature that is not supported, or the condition reads a column
                with a collation; raised before any row is read.
        """
        scan = self._scan(columns, where, limit)
        return local.to_arrow(self._version, self._version.plan(scan.condition).splits, scan)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows as a stream of Arrow data, which pandas 3, polars, DuckDB and narwhals take as it is.

        Rows are read as they are asked for; only the rows of a few splits are in memory (Arrow PyCapsule Interface).
        """
        scan = self._scan()
        batches = local.batches(self._version, self._version.plan().splits, scan)
        reader = pa.RecordBatchReader.from_batches(scan.columns, batches)
        return reader.__arrow_c_stream__(requested_schema)

    def changelog(
        self, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
    ) -> pa.Table:
        """Return the rows that the version's commit changed, under the version's schema.

        The first column, `rowkind`, is +I (inserted), -U and +U (updated: before and after) or -D (deleted).

        Paimon: the changelog of a table with a `changelog-producer`, unmerged, in the order of files and rows; also the
        long-lived changelog of an expired version. Delta: the result of `Table.row_changes` for this version alone,
        which is the written change data, or else changes derived from added and removed files and deletion vectors.
        Hudi: likewise, derived by comparing file slices.

        Args:
            columns: The columns to return after `rowkind`, in order; by default all. For Delta also `_change_type`,
                `_commit_version` and `_commit_timestamp`.
            where: A condition in DuckDB's SQL. It may use `rowkind`. Files that cannot contain a matching row are not
                opened.
            limit: Return at most the first rows, this many.
        """
        self._existing()
        with naming_renamed_columns(self._format, lambda: self._version):
            return read_changes(self._version.changelog(), columns, where, limit=limit)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        *,
        types: PandasTypes = "arrow",
    ) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame, by default with lossless Arrow dtypes.

        Args:
            columns: As for `to_arrow`.
            where: As for `to_arrow`.
            limit: As for `to_arrow`.
            types: `arrow` loses nothing, but decimals are objects to NumPy: a merge with floats matches nothing, and
                ufuncs, `describe` and `cumsum` fail. `numpy`: decimals become the nearest float64, as do integers with
                nulls; dates become datetime64, and booleans with nulls objects. `nullable`: Int64, Float64, boolean and
                string, with NA; decimals become the nearest Float64. Nested values stay as they are in both.

        Raises: as `to_arrow`, and
            InvalidArgumentError: `types` is unknown, or NumPy's cannot hold an integer exactly.
        """
        known = check_types(types)
        return rows_as_pandas(self.to_arrow(columns, where, limit), known)

    def to_spark(
        self,
        spark: SparkSession | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
    ) -> DataFrame:
        """Return the rows as a lazy Spark DataFrame.

        The read is planned now; each action reads the rows again, and nothing is cached. Types and nullability are
        the table's. Spark has no type for a time of day and for timestamps finer than microseconds: they are
        ISO 8601 text.

        Args:
            spark: The session, classic or Connect. By default the active one; if there is none, a local session starts.
            columns: As for `to_arrow`. Name them: files that Spark does not read itself are read in all columns.
            where: As for `to_arrow`.
            limit: As for `to_arrow`.

        Raises:
            MissingDependencyError: PySpark is not installed, or there is no Java to start a session.
        """
        from snapshot_explorer.engines.spark import rows  # noqa: PLC0415 - only for Spark

        scan = self._scan(columns, where, limit)
        return rows.to_spark(self._version, self._version.plan(scan.condition).splits, scan, spark=spark)

    def count(self, where: str | None = None) -> int:
        """Return the number of rows, after any merge. Reads no data file if the metadata contains the number.

        Args:
            where: As for `to_arrow`: count only the rows that match.
        """
        scan = self._scan([], where)
        return local.count(self._version, self._version.plan(scan.condition).splits, scan)

    def duplicates(self, key: str | Sequence[str] | None = None, where: str | None = None) -> Frame:
        """Return the keys that several rows have, most frequent first: the number of rows, then the key.

        Reads the columns of the key, of all rows that match, into memory. Nulls are equal.

        Args:
            key: The columns that identify a row; by default the primary key, or all columns where there is none.
            where: As for `to_arrow`.

        Raises: as `to_arrow`, and
            InvalidArgumentError: The values of a column of the key are nested.
        """
        keyed = [key] if isinstance(key, str) else key
        with naming_renamed_columns(self._format, lambda: self._version):
            return duplicates(self._version, keyed, where, title=self._title("Duplicates"))

    def __repr__(self) -> str:
        return f"Snapshot(path={self._path!r}, version={self.version})"

    def __str__(self) -> str:
        return repr(self)

    def _title(self, content: str) -> str:
        return f"{content} of {self._name}, no version yet" if self.version is None else f"{content} of {self.label}"

    def _existing(self) -> int:
        if self.version is None:
            raise SnapshotNotFoundError(f"{self._path} has no version yet: nothing has been committed to it.")
        return self.version

    def _versions(self) -> list[int]:
        return [] if self.version is None else [self.version]

    def _scan(self, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None) -> Scan:
        """Return a scan of the version. Metadata columns that are named are added to the schema."""
        schema = self.arrow_schema
        named: Iterable[object] = columns if isinstance(columns, Iterable) and not isinstance(columns, str) else ()
        known = frozenset(schema.names)
        unknown = [name for name in named if isinstance(name, str) and name not in known]
        if unknown:
            schema = pa.schema([*schema, *self._version.metadata_columns(unknown)])
        with naming_renamed_columns(self._format, lambda: self._version):
            return scan_of(schema, columns, where, limit)

    def _check_partition(self, partition: Mapping[str, str | None]) -> None:
        """Raise InvalidArgumentError if it is not a dict, or a name in it is not a partition key."""
        if not isinstance(partition, Mapping):
            raise InvalidArgumentError(
                f"partition must be a dict such as {{'dt': '2026-11-01'}}, got {type(partition).__name__}."
            )
        for name in partition:
            keys = self.schema.partition_keys
            if name not in keys:
                have = f"Partition keys: {', '.join(keys)}" if keys else "The table is not partitioned"
                raise InvalidArgumentError(f"{name!r} is not a partition key. {have}.")


def _file_columns(rows: pa.Table) -> tuple[str, ...]:
    """Return the columns to draw of FILES or CHANGES: those that are not empty."""
    names = ("path", "partition", "bucket", "level", "rows", "size_bytes", "schema_id", "deleted_rows")
    return non_empty_columns(rows.select(names))


def _in_partition(rows: pa.Table, partition: Mapping[str, str | None]) -> pa.Table:
    for name, value in partition.items():
        values = values_of(rows["partition"], name)
        rows = rows.filter(pc.is_null(values) if value is None else pc.equal(values, value))
    return rows
