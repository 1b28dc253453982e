"""What users hold: a table through time."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, overload

from snapshot_explorer import frames
from snapshot_explorer.compare import Comparison
from snapshot_explorer.engines.spark import metadata
from snapshot_explorer.errors import InvalidArgumentError
from snapshot_explorer.frames import Frame
from snapshot_explorer.health import Health, health_history, read_health
from snapshot_explorer.history import CommitFilter, Known, history_frame, read_history
from snapshot_explorer.lifetimes import keep_lifetimes, read_lifetimes
from snapshot_explorer.management import SnapshotManagement
from snapshot_explorer.overview import branches_frame, card, tags_frame
from snapshot_explorer.queries import sql
from snapshot_explorer.refs import Ref, parse_ref, resolve
from snapshot_explorer.render import Drawing, mimebundle
from snapshot_explorer.retention import Retention, readability_frame, retention_of
from snapshot_explorer.row_changes import read_changes
from snapshot_explorer.snapshot import Snapshot
from snapshot_explorer.version_resolver import VersionResolver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from os import PathLike

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.formats import TableFormat
    from snapshot_explorer.lifetimes import FileLifetimes
    from snapshot_explorer.model import ChangeMode, Inspection, Listing, TableSchema
    from snapshot_explorer.storage import Storage


class Table:
    """A table through time, bound to one branch; `opening.open_table` is the way to get one.

    Safe to use from several threads.
    """

    def __init__(
        self,
        path: str,
        table_format: TableFormat,
        *,
        branch: str | None,
        staleness_limit: timedelta,
        storage: Storage | None = None,
    ) -> None:
        """Load the newest snapshot."""
        self._storage = storage
        self._format = table_format
        self._versions: tuple[int, ...] = ()
        self._tags: Mapping[str, int] = {}
        self._columns: tuple[str, ...] = ()
        self._commits = frames.COMMITS.empty_table()
        self._lifetimes: FileLifetimes | None = None
        self.path = path
        """Where the table is, without secrets."""
        self.format = table_format.name
        """The format's name."""
        self.branch = branch
        """The branch that the table is bound to; None for the main one."""
        self.management = SnapshotManagement(
            table_format.listing,
            self._newest_snapshot,
            validate=lambda version: table_format.version(version).validate(),
            log_name=f"{table_format.name} log found for the {table_format.name.capitalize()} table at {path}",
            staleness_limit=staleness_limit,
        )
        """The snapshot core: current snapshot, update, staleness."""

    @property
    def current(self) -> Snapshot:
        """Return the most recently loaded snapshot, without asking the storage."""
        return self.management.current_snapshot

    def update(self, *, staleness_acceptable: bool = False) -> Snapshot:
        """Return the newest snapshot; the same object if nothing was committed since."""
        return self.management.update(staleness_acceptable=staleness_acceptable)

    def at(self, ref: int | str | datetime | Ref) -> Snapshot:
        """Return the snapshot that a ref names.

        Args:
            ref: A version, a ref such as `latest~2`, `tag:v1` or `@2026-11-01`, or a time.

        Raises:
            InvalidArgumentError: The text is not a valid ref.
            SnapshotNotFoundError: No version answers to it.
        """
        history = VersionResolver(self, self._format)
        version = resolve(parse_ref(ref, tags=history.tags), history)
        if version == self.current.version:
            return self.current
        return Snapshot(self.path, self._format, self._format.version(version))

    def versions(self) -> tuple[int, ...]:
        """Return the versions that can be loaded, ascending. One listing.

        Of Delta tables `history` has older ones too, whose commits are there but not the checkpoint that they need.
        """
        return self.listing().reachable

    def listing(self) -> Listing:
        """Return all versions, also those of which nothing but the commit is left. One listing."""
        found = self._format.listing(0)
        self._versions = found.reachable
        return found

    def history(  # noqa: PLR0913 - filters, which are combined freely
        self,
        between: str | None = None,
        *,
        limit: int | None = None,
        kind: str | None = None,
        operation: str | None = None,
        user: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        text: str | None = None,
        maintenance: bool = True,
        stat: bool = False,
    ) -> Frame:
        """Return the COMMITS frame, newest first, reading no more commits than it takes to fill it.

        Args:
            between: Two refs `A..B`, both included; a missing side means earliest or latest.
            limit: Return at most this many commits.
            kind: Only commits of this kind, such as compact.
            operation: Only commits with this word of the writer's own, such as MERGE.
            user: Only commits of a committer whose recorded name holds this text.
            since: Only commits at or after this time, a ref `@...` or a datetime.
            until: Only commits at or before this time.
            text: Only commits whose recorded details hold this text, upper and lower case alike.
            maintenance: Whether to return commits that change no data: compact, analyze, maintenance.
            stat: Draw files, rows and bytes added and removed; the data is the same.

        Raises:
            InvalidArgumentError: An argument is not a valid ref, no kind, or negative.
            SnapshotNotFoundError: A ref names no version.
        """
        chosen = CommitFilter(kind=kind, operation=operation, user=user, text=text, maintenance=maintenance)
        if limit is not None and limit < 0:
            raise InvalidArgumentError(f"limit must be 0 or more, got {limit}. Leave it out for all commits.")
        versions = VersionResolver(self, self._format).between(between, since, until)
        rows = self._commits = read_history(self._format, versions, chosen, limit)
        total = len(versions) if chosen.passes_all else None
        return history_frame(rows, stat=stat, path=self.path, total=total, limit=limit)

    @overload
    def lifetimes(
        self, *, cache_dir: str | PathLike[str] | None = None, engine: Literal["local"] = "local"
    ) -> FileLifetimes: ...
    @overload
    def lifetimes(self, *, engine: Literal["spark"], spark: SparkSession | None = None) -> DataFrame: ...
    def lifetimes(
        self, *, cache_dir: str | PathLike[str] | None = None, engine: str = "local", spark: SparkSession | None = None
    ) -> FileLifetimes | DataFrame:
        """Return when each data file came and went, over all versions whose files can be told.

        One pass over the log; asked again, only what is new is read. From it follow, without reading, the files of
        any version, the difference of any two, and sizes over time. Partition columns are called as they were when the
        file was added. Where commits were lost, files between them are known from the next checkpoint on.

        Args:
            cache_dir: A folder of the user's, outside of the table, to keep what was read in and find it again.
            engine: `local`, or `spark`: then the log is read on executors each time the rows are asked for, and they
                stay there, as a DataFrame of the LIFETIMES frame in no order.
            spark: The session; without it the active one, or a local one that is started.

        Raises:
            InvalidArgumentError: `cache_dir` is in the table, or is given with Spark, or there is no such engine.
            StorageError: `cache_dir` cannot be written.
            CorruptTableError: A file of the log is missing or damaged; it is named. On an executor Spark's own error
                holds the message.
        """
        if metadata.is_spark(engine):
            return metadata.lifetimes(self._format, spark, cache_dir=cache_dir)
        known, title = self._lifetimes, f"File lifetimes of {self.path}"
        if cache_dir is None:
            self._lifetimes = read_lifetimes(self._format, known, title=title)
        else:
            table = (self.path, self.format, self.branch)
            self._lifetimes = keep_lifetimes(self._format, known, cache_dir=cache_dir, table=table, title=title)
        return self._lifetimes

    @overload
    def file_changes(self, between: str | None = None, *, engine: Literal["local"] = "local") -> Frame: ...
    @overload
    def file_changes(
        self, between: str | None = None, *, engine: Literal["spark"], spark: SparkSession | None = None
    ) -> DataFrame: ...
    def file_changes(
        self, between: str | None = None, *, engine: str = "local", spark: SparkSession | None = None
    ) -> Frame | DataFrame:
        """Return the CHANGES frame of versions, oldest first: the data files that each commit added and removed.

        Args:
            between: Two refs `A..B`, both included; without A, the first version whose changes can be told.
            engine: `local`, or `spark`: then a DataFrame of the same rows in no order, as by `lifetimes`.
            spark: The session; without it the active one, or a local one that is started.

        Raises:
            InvalidArgumentError: `between` is no range, or there is no such engine.
            SnapshotNotFoundError: A ref names no version, or a commit is gone.
            CorruptTableError: A file of the log is missing or damaged; it is named.
        """
        is_spark, versions = metadata.is_spark(engine), VersionResolver(self, self._format).changed(between)
        if is_spark:
            return metadata.changes(self._format, versions, spark)
        return Frame(self._format.changes(versions), title=f"Changes of {self.path}", noun="changes")

    def compare(self, a: int | str | datetime | Ref, b: int | str | datetime | Ref = "latest") -> Comparison:
        """Return how version `b` differs from version `a`: manifests, files, schema, properties, partitions.

        Each part is read when it is first asked for. Either version may be the newer one.

        Raises:
            InvalidArgumentError: A text is not a valid ref.
            SnapshotNotFoundError: No version answers to one.
        """
        first, last = (self.at(ref).resolved for ref in (a, b))
        return Comparison(self.path, self._format, first, last, self._format.listing(0))

    def health(self, ref: int | str | datetime | Ref = "latest") -> Health:
        """Return how well a version is kept: file sizes, small files, skew, deletes, sorted runs, manifests.

        A verdict, findings with their thresholds and what to do, and sizes by partition, bucket and level. What is
        small or much is measured against the table's settings. Reads metadata only: what `Snapshot.files` and
        `Snapshot.manifests` read.

        Raises:
            InvalidArgumentError: The text is not a valid ref.
            SnapshotNotFoundError: No version answers to it, or its files cannot be told any more.
            CorruptTableError: A file of the metadata is missing or damaged; it is named.
        """
        return read_health(self.at(ref).resolved, path=self.path)

    def health_history(self, between: str | None = None) -> Frame:
        """Return the numbers of `health` at every version of a range `A..B`, or at all: HEALTH_HISTORY, newest first.

        From `lifetimes`, which are read as there; every version is measured against the newest settings.

        Raises:
            InvalidArgumentError: The text is no range.
            SnapshotNotFoundError: A ref names no version.
            CorruptTableError: A file of the log is missing or damaged; it is named.
        """
        versions = None if between is None else VersionResolver(self, self._format).between(between)
        return health_history(self._format, self.lifetimes(), versions, path=self.path)

    def retention(self, keep: str | timedelta | None = None, *, keep_last: int | None = None) -> Retention:
        """Return what a rule would take from the table and what holds the rest; nothing is deleted.

        As the engine's own command does it, which is told: Paimon's `sys.expire_snapshots`, Delta's VACUUM. What is not
        given is the table's own setting. Reads what `lifetimes` does. Of Paimon also tags and consumers, changelogs
        that would go, and what other branches use; of Delta the young commits, and a listing of every folder.

        Args:
            keep: Keep versions up to this age, such as `7d` or `36h`; Delta: what was removed in that time.
            keep_last: Keep at least so many of the newest versions; for Delta they become hours.

        Raises:
            InvalidArgumentError: The rule is not valid, or Delta would ignore it.
            UnsupportedFeatureError: It cannot be told exactly.
            CorruptTableError: A file of the log is missing or damaged; it is named.
        """
        return retention_of(self._format, self.lifetimes(), keep=keep, keep_last=keep_last, path=self.path)

    def readability(self) -> Frame:
        """Return READABILITY: for each version, newest first, whether it can be loaded, why not, and what is missing.

        `history` says the same as far as it costs little. Reads what `lifetimes` does, a listing for each folder of
        data files and, for Paimon, one of the manifests; no data file is opened.
        """
        lifetimes, listing = self.lifetimes(), self._format.listing(0)
        return readability_frame(self._format, lifetimes, listing, path=self.path)

    def schema(self, ref: int | str | datetime | Ref = "latest") -> TableSchema:
        """Return the schema in force at a ref."""
        return self.at(ref).schema

    def tags(self) -> Frame:
        """Return the tags, sorted by name: tag, version, committed_at. Reads one small file per tag."""
        tags = self.tag_versions()
        return tags_frame(tags, self.committed_at(list(tags.values())), path=self.path)

    def branches(self) -> Frame:
        """Return the branches other than the main one, sorted: branch, forked_version, newest_version.

        `forked_version` is the version of this table's history that the branch begins with, as the same commit; null
        where none is proven: it was made without a tag or of another branch, its first version has expired, it cannot
        be read, or it is the one that is open. `newest_version` counts in the branch's own history. Open one with
        `branch=`. A listing, and for each branch a listing and at most two small files, and the tags where versions
        have expired; of more than 100 branches there are only names.
        """
        return branches_frame(self._format.branches(), path=self.path)

    @property
    def inspections(self) -> tuple[Inspection, ...]:
        """Return what `inspect` offers: names, whether each tells of a version, and what its rows are."""
        return self._format.inspections

    def inspect(self, name: str, ref: int | str | datetime | Ref | None = None) -> Frame:
        """Return a table of metadata under the name, and with the columns, that the format's own users know.

        `inspections` tells which there are; columns, types and order are the format's own. Of Paimon its system
        tables, as `SELECT * FROM t$files` shows them: a TIMESTAMP(3) is timestamp[ms] without zone, the clock in UTC,
        where Paimon shows that of its JVM's zone. Of Delta `history` and `detail` as DESCRIBE shows them, newest
        first, and `properties`, `transactions` and `domains`. They cost metadata.

        Paimon's audit_log, binlog, ro and row_tracking hold the table's own rows, in no order: they are read whole,
        and held in memory, as by `to_arrow`. audit_log has the last event of every key with its `rowkind`, deleted
        keys too.

        Args:
            name: One of `inspections`.
            ref: The version, for one that tells of a version; the latest without it.

        Raises:
            InvalidArgumentError: There is no such table, or it tells of no version and a ref is given.
            SnapshotNotFoundError: No version answers to the ref, or only its changelog is left.
            UnsupportedFeatureError: Its rows need a feature that is not read; none has been read.
            CorruptTableError: A file is missing or damaged; it is named.
        """
        found = next((one for one in self.inspections if one.name == name), None)
        if found is None or not found.at_version:
            if found is not None and ref is not None:
                raise InvalidArgumentError(
                    f"{name} describes the table as a whole, not one version. Leave {self.at(ref).version} out."
                )
            return Frame(self._format.inspect(name), title=f"{name} of {self.path}")
        snapshot = self.update() if ref is None else self.at(ref)
        version = snapshot.version
        title = f"{name} of {self.path}" + ("" if version is None else f" at version {version}")
        rows = snapshot.resolved.inspect(name)
        is_whole = found.of_rows or snapshot.schema.partition_keys
        drawn = () if is_whole else tuple(column for column in rows.column_names if column != "partition")
        return Frame(rows, title=title, drawn=drawn)

    def row_changes(
        self,
        a: int | str | datetime | Ref,
        b: int | str | datetime | Ref,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        mode: ChangeMode = "auto",
    ) -> pa.Table:
        """Return the rows that changed after version `a`, up to and with `b`, unmerged, by version.

        The first column, `rowkind`, is +I, -U, +U or -D; then come the columns of the schema. What a commit only
        rearranged, such as a compaction, is no change.

        Paimon: as its `incremental-between`, read through audit_log, since 1.1, under the newest schema; of a version
        by bucket, in the order of files and rows. Delta: as `readChangeFeed` from the version after `a`, under the
        newest schema, with column mapping under that of `b`; of a version in no order. What no change data was
        written for is derived: a row that was rewritten as it was comes as -D and as +I.

        Args:
            a: The version before the first change; but for `diff` it may be one before the earliest: `earliest^`.
            b: The version of the last change.
            columns: The columns to return behind `rowkind`, in order; all without it. Of Delta also `_change_type`,
                `_commit_version` and `_commit_timestamp`, as its readers call them.
            where: A condition in SQL, as DuckDB understands it, which may use `rowkind`. Files in which no row can
                pass are not opened.
            mode: `auto`: Paimon: diff between two tags, otherwise changelog where the table has a changelog-producer,
                else delta. Delta: change data where it was written, otherwise derived.
                `delta`: what files tell. Paimon: rows of files that APPEND commits added; COMPACT and OVERWRITE
                commits are passed over, and level 0 too in tables with deletion vectors or merge-engine=first-row.
                Delta: rows of files that were added or removed, or whose deletion vector changed.
                `changelog`: what was recorded. Paimon: the changelogs of all commits but OVERWRITE. Delta: as `auto`,
                if delta.enableChangeDataFeed was set for all of the versions.
                `diff`, of Paimon: the state at `b` against that at `a` by primary key: rows that are new or other as
                they are at `b`, rows that are gone as -D. Files that both have are set aside, as Paimon does: a row
                written again with its old values is told, one that only a deletion vector took away is not. Holds
                both states of a bucket in memory.

        Raises:
            InvalidArgumentError: A ref or an argument is not valid, `b` is before `a`, or nothing was recorded.
            SnapshotNotFoundError: A version between does not exist, or what the mode reads of it has expired.
            UnsupportedFeatureError: The mode needs a feature that is not read; nothing has been read.
            CorruptTableError: A file is missing or damaged; it is named.
        """
        start, end, settled = VersionResolver(self, self._format).span(a, b, mode)
        changes = self._format.row_changes(start, end, settled)
        if start == end:
            changes = replace(changes, splits=lambda _: ())
        return read_changes(changes, columns, where)

    def sql(self, query: str, engine: str = "duckdb", *, spark: SparkSession | None = None) -> pd.DataFrame | DataFrame:
        """Return what a query gives, in which the table is called as its folder, or `this`; at any of its versions.

        `select * from this version as of 17 except select * from this`; `snapshot_explorer.sql` has all forms, takes
        several tables, and tells of engines, results and errors.
        """
        names = {"this": self} | {self.path.rstrip("/").rsplit("/", 1)[-1]: self}
        return sql(query, names, engine=engine, spark=spark)

    def tag_versions(self) -> Mapping[str, int]:
        """Return each tag's version, sorted by name. Reads one small file per tag."""
        self._tags = self._format.tags()
        return self._tags

    def committed_at(self, versions: Sequence[int]) -> Sequence[datetime]:
        """Return when each version was committed. Reads at most one small file per version."""
        return self._format.committed_at(versions)

    def changes(self, *args: Any, **options: Any) -> Frame | DataFrame:
        """Return `file_changes`; deprecated."""
        _renamed("changes", "file_changes")
        found: Frame | DataFrame = self.file_changes(*args, **options)
        return found

    def changes_between(self, *args: Any, **options: Any) -> pa.Table:
        """Return `row_changes`; deprecated."""
        _renamed("changes_between", "row_changes")
        return self.row_changes(*args, **options)

    def health_over(self, between: str | None = None) -> Frame:
        """Return `health_history`; deprecated."""
        _renamed("health_over", "health_history")
        return self.health_history(between)

    @property
    def cached(self) -> Known:
        """Return what is known of the table; asks the storage nothing."""
        current = self.current
        versions = self._versions or ((current.version,) if current.version is not None else ())
        if schema := current.cached_schema():
            self._columns = tuple(column.name for column in schema.columns)
        return Known(
            versions=versions,
            commits=self._commits,
            tags=tuple(self._tags),
            columns=self._columns,
        )

    def drawing(self) -> Drawing:
        """Return how the table looks, from what is known."""
        known, newest = self.cached, self.current.version
        facts = {
            "format": self.format,
            "branch": self.branch,
            "newest version": "none yet" if newest is None else newest,
            "versions": f"{len(known.versions):,}" if self._versions else None,
            "reads": None if self._storage is None else self._storage.outside,
        }
        return card(self.path, facts, known.columns)

    def __repr__(self) -> str:
        branch = f", branch={self.branch!r}" if self.branch else ""
        return f"Table(path={self.path!r}, format={self.format!r}{branch}, version={self.current.version})"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return mimebundle(self.drawing())

    def _newest_snapshot(self, listing: Listing) -> Snapshot:
        return Snapshot(self.path, self._format, self._format.version(listing.latest), listing)


def _renamed(old: str, new: str) -> None:
    """Warn of the name of an earlier release, which is kept for one more."""
    warnings.warn(f"Table.{old} is now Table.{new}.", DeprecationWarning, stacklevel=3)
