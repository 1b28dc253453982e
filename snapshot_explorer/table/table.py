"""`Table`: a table and its versions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from snapshot_explorer.analysis.changes import ChangeBounds, ChangeCursor
from snapshot_explorer.analysis.checks import check_settings
from snapshot_explorer.analysis.compare import Comparison
from snapshot_explorer.analysis.diagnosis import diagnose
from snapshot_explorer.analysis.diff import DiffRequest, RowDiff, RowDiffPlan, count_rows, plan_diff, row_diff_by
from snapshot_explorer.analysis.health import Health, health_history, read_health
from snapshot_explorer.analysis.profile import AnomalyRules, Profile, profile_over, read_totals, table_anomalies
from snapshot_explorer.analysis.repair import Repair, RepairRequest, plan_repair, restored_version
from snapshot_explorer.analysis.retention import (
    Level,
    Orphans,
    Retention,
    Verification,
    VerifiedFiles,
    find_orphans,
    retention_of,
    verify,
)
from snapshot_explorer.analysis.row_history import (
    RowHistory,
    RowHistoryPlan,
    RowHistoryRequest,
    plan_row_history,
    row_history,
)
from snapshot_explorer.analysis.rows import (
    Bisection,
    BisectionReading,
    Blame,
    BlameRequest,
    Trace,
    bisect,
    blame,
    duplicate_key_versions,
    trace,
)
from snapshot_explorer.analysis.usage import Price, Usage, usage_of
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotExplorerError
from snapshot_explorer.core.hints import Hint, Message, join
from snapshot_explorer.core.refs import Ref, RefLike, is_newest_state, parse_ref
from snapshot_explorer.core.resources import reporting_lacking_resources
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.engines.local import read_changes
from snapshot_explorer.engines.scan import check_limit
from snapshot_explorer.engines.spark import metadata
from snapshot_explorer.formats.unread_versions import readable_commits
from snapshot_explorer.history import (
    CommitFilter,
    History,
    LoadedVersion,
    OpenBranch,
    call_text,
    history_frame,
    history_of,
    missing_notes,
    naming_renamed_columns,
    read_history,
    unread_commit_notes,
)
from snapshot_explorer.history.overview import (
    NEXT_CALLS,
    Card,
    branches_frame,
    inspections_frame,
    last_part,
    overview_facts,
    tags_frame,
)
from snapshot_explorer.results import Frame
from snapshot_explorer.table.queries import VersionedTable, sql
from snapshot_explorer.table.snapshot import Snapshot, SnapshotParts, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from os import PathLike

    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from snapshot_explorer.analysis.health.symptoms import Symptom
    from snapshot_explorer.core.records import ChangeMode
    from snapshot_explorer.formats import TableFormat, TableVersion
    from snapshot_explorer.formats.unread_versions import Reasons
    from snapshot_explorer.history import KnownReadability
    from snapshot_explorer.history.lifetimes import FileLifetimes

OVERVIEW_COMMITS = 50
"""The newest commits that `read_overview` reads."""
OVERVIEW_FILES = 10_000
"""The number of live files up to which `read_overview` reads their sizes."""
_NOTED_PATHS: set[str] = set()
"""Paths of tables whose card has stated that they are recorded elsewhere: no other table of the path repeats it."""


Call = TypeVar("Call", bound="Callable[..., Any]")


def _reads_metadata_once(call: Call) -> Call:
    """Decorate a method of `Table` that asks several questions about versions: manifests and commits are read once."""

    @wraps(call)
    def reading(table: Table, *args: Any, **kwargs: Any) -> Any:
        with history_of(table).table_format.storage.keeping_immutable():
            return call(table, *args, **kwargs)

    return cast("Call", reading)


@reporting_lacking_resources
class Table(VersionedTable, Shown):
    """A table and its versions, bound to one branch. Created by `open_table`.

    Safe to use from several threads. Methods raise `InvalidArgumentError` for an argument that is not valid,
    `SnapshotNotFoundError` for a version that does not exist or has expired, `UnsupportedFeatureError`, before any row
    is read, for a feature that is not supported, and `CorruptTableError`, which names the file, if one is missing or
    damaged. They list only what they raise beyond that.
    """

    def __init__(self, branch: OpenBranch) -> None:
        self.path = branch.path
        """The location of the table, without secrets."""
        self.name = branch.name
        """The name of the table: the last part of its path, or its name in a catalog."""
        self.format = branch.format.name
        """The name of the format."""
        self._open = branch
        self._has_note = False
        self._verified: VerifiedFiles = {}
        self._snapshot: Snapshot | None = None

    @property
    def _past(self) -> History:
        """The history for one call, which lists the log at most once."""
        return History(self._open)

    def _snapshot_of(self, loaded: LoadedVersion, branch: OpenBranch | None = None) -> Snapshot:
        """Return the snapshot of a version: the same one at each call for the current version."""
        known, owner = self._snapshot, branch or self._open
        if known is not None and parts_of(known).loaded is loaded:
            return known
        snapshot = Snapshot(SnapshotParts.of(owner, loaded))
        if loaded is self._open.current:
            self._snapshot = snapshot
        return snapshot

    @property
    def current(self) -> Snapshot:
        """Return the most recently loaded snapshot. No request."""
        return self._snapshot_of(self._open.current)

    def update(self, *, staleness_acceptable: bool = False) -> Snapshot:
        """Return the newest snapshot: the same object if nothing was committed since. One listing of the log.

        Args:
            staleness_acceptable: If the current snapshot is not older than the `staleness_limit` of `open_table`,
                return it at once and update in the background.

        Raises:
            TableNotFoundError: All versions are gone. The current snapshot is unchanged.
            SnapshotExplorerError: The log cannot be read, or has fewer versions than before. Likewise unchanged.
        """
        return self._snapshot_of(self._open.management.update(staleness_acceptable=staleness_acceptable))

    def at(self, ref: RefLike) -> Snapshot:
        """Return the snapshot at a ref. One listing of the log; a tag or a time costs a few small files more.

        `latest` and the name of a branch are the newest state, in the table's current schema, as a query without a
        version returns it. Every other ref, such as a number, a tag or a time, is a version in the schema of its
        commit, as the format's time travel returns it, also if it is the newest one. They differ if the schema was
        changed without a commit since, in Iceberg and Paimon.

        Args:
            ref: A version, a ref such as `latest~2`, `tag:v1`, `branch:audit` or `@2026-11-01`, or a time.
        """
        history, own_ref = self._past.in_branch(ref)
        return self._snapshot_of(history.load(own_ref), history.open_branch)

    def versions(self) -> tuple[int, ...]:
        """Return the versions that can be loaded, ascending. One listing.

        For Delta tables, `history` also returns older versions whose commits exist, but not the checkpoint before them.
        """
        return self._open.listing().reachable

    def history(  # noqa: PLR0913 - filters, which are combined freely
        self,
        between: str | tuple[Ref, Ref] | None = None,
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
        anomalies: bool = False,
        recorded_times: bool = False,
        exact: bool = False,
    ) -> Frame:
        """Return the COMMITS frame, newest first. Reads no more commits than needed.

        Args:
            between: Two refs `A..B`, both included; a missing side means earliest or latest.
            limit: Return at most this many commits.
            kind: Only commits of this kind, such as compact.
            operation: Only commits with this operation, in the writer's own word, such as MERGE.
            user: Only commits whose recorded user contains this text.
            since: Only commits at or after this time, a ref `@...` or a datetime.
            until: Only commits at or before this time.
            text: Only commits whose recorded details contain this text, ignoring case.
            maintenance: Whether to return commits that change no data: compact, analyze, maintenance.
            stat: Draw files, rows and bytes added and removed; the data is the same.
            anomalies: Add a column `anomalies`, which names what jumps at each version; `Table.anomalies` has the
                rules. Reads what that reads.
            recorded_times: Return the times that Delta's writers recorded in place of the times of the log's files,
                which differ after a copy, and order by them. Refs by time use the times of the files.
            exact: Count the rows that each commit inserted, updated and deleted also where metadata does not: read the
                rows that differ from the version before. Later calls return these counts too. Rows are compared by the
                primary key; without one, an updated row is a deleted and an inserted one.
        """
        chosen = CommitFilter(kind=kind, operation=operation, user=user, text=text, maintenance=maintenance)
        check_limit(limit, "commits")
        if recorded_times and not self._open.format.clock.has_file_times:
            raise InvalidArgumentError(
                f"The commit times of {self.format} are recorded ones. Leave recorded_times out."
            )
        past, bounds = self._past.of_range(between)
        branch, listed = past.open_branch, partial(past.between, bounds, since, until)
        is_newest = limit and bounds is None and since is None and until is None
        if limit and is_newest and not branch.format.storage.is_local:
            _, versions = branch.format.storage.together(partial(branch.format.read_newest, limit), listed)
        else:
            versions = listed()
        read, unread = read_history(branch.format, versions, chosen, limit)
        rows = branch.keep_commits(read)
        uncounted = count_rows(past, rows) if exact else ()
        rows = branch.keep_commits(rows)
        total = len(versions) if chosen.passes_all else None
        last = rows["version"][-1].as_py() if limit and len(rows) == limit else 0
        gaps = past.gaps([version for version in versions if version >= last])
        clock = self._open.format.clock
        unrecorded = clock.notes_on(rows)
        notes = (
            *missing_notes(gaps),
            *unread_commit_notes(unread),
            *past.edge_notes(versions),
            *unrecorded,
            *uncounted,
        )
        if not len(rows):
            total = len(past.listing.versions)  # none of them matches
        if recorded_times:
            rows = clock.with_recorded_times(rows).sort_by([("committed_at", "descending"), ("version", "descending")])
        return history_frame(
            rows,
            stat=stat,
            exact=exact,
            title=past.title,
            total=total,
            limit=limit,
            anomalies=_anomalies(past) if anomalies else None,
            notes=notes,
            totals=lambda: read_totals(branch.format, branch.lifetimes, past.listing.versions),
            readability=branch.readability,
        )

    @overload
    def lifetimes(
        self, *, cache_dir: str | PathLike[str] | None = None, engine: Literal["local"] = "local"
    ) -> FileLifetimes: ...
    @overload
    def lifetimes(self, *, engine: Literal["spark"], spark: SparkSession | None = None) -> DataFrame: ...
    @_reads_metadata_once
    def lifetimes(
        self, *, cache_dir: str | PathLike[str] | None = None, engine: str = "local", spark: SparkSession | None = None
    ) -> FileLifetimes | DataFrame:
        """Return the lifetime of each data file, over all versions whose files are known.

        Reads the log once; later calls read only new versions. The result contains, without further reads, the files
        of any version, the difference between any two, and sizes over time. Partition columns have the names that they
        had when the file was added. If commits were lost, files are known again from the next checkpoint on.

        Args:
            cache_dir: A folder outside of the table. What was read is stored there, and loaded by later calls.
            engine: `local` or `spark`. On Spark, executors read the log at each action; the result is a DataFrame of
                the LIFETIMES frame, in no order. It has no notes: a warning names missing versions.
            spark: The session. By default the active one; if there is none, a local session is started.

        Raises:
            StorageError: `cache_dir` cannot be written.
        """
        if metadata.is_spark(engine):
            return metadata.lifetimes(self._open.format, spark, cache_dir=cache_dir)
        return self._open.lifetimes(cache_dir)

    @_reads_metadata_once
    def compare(self, a: RefLike, b: RefLike = "latest") -> Comparison:
        """Return the differences from version `a` to version `b`: manifests, files, schema, properties, partitions.

        Each part is read at its first use. Either version may be the newer one.
        """
        pair = self._past.resolve_pair(a, b)
        readability, table_format = pair.b.open_branch.readability, pair.b.table_format
        (first, last), listing = table_format.storage.together(pair.versions, lambda: table_format.listing(0))
        return Comparison(
            self.name,
            table_format,
            first,
            last,
            listing,
            commits=lambda versions: _commits_of(table_format, readability, versions),
            divergence=pair.divergence(first, last),
        )

    @overload
    def health(
        self,
        ref: RefLike | None = None,
        *,
        metadata_only: bool = False,
        expect: Mapping[RefLike, str] | None = None,
        config: str | PathLike[str] | Mapping[str, Any] | None = None,
        key: str | Sequence[str] | None = None,
    ) -> Health: ...
    @overload
    def health(self, *, between: str) -> Frame: ...
    @_reads_metadata_once
    def health(
        self,
        ref: RefLike | None = None,
        *,
        between: str | None = None,
        metadata_only: bool = False,
        expect: Mapping[RefLike, str] | None = None,
        config: str | PathLike[str] | Mapping[str, Any] | None = None,
        key: str | Sequence[str] | None = None,
    ) -> Health | Frame:
        """Return what went wrong with the table, and the health of a version: file sizes, deletes, manifests.

        First what went wrong, a sentence for each finding with the command that shows the evidence: files that are
        missing, each version at which numbers jump, with the later one that took it back, and doubled rows; of all
        versions for `latest`, else of the version. What `expect` or `config` names is no problem. Then a verdict on the
        version, findings with thresholds and advice, and sizes by partition, bucket and level. Thresholds come from
        the settings of the table. Metadata that cannot be read is a problem and named; what is not supported is not
        checked.

        Reads what `lifetimes` reads, `Snapshot.files` and `Snapshot.manifests`, and lists each folder with data files;
        no rows without `key`. Rows are then doubled where exact statistics have more rows than values of the key of the
        schema, or of a column of whole numbers that is named `id`, or as the table with `_id`; else not checked.

        Args:
            ref: The version; by default the latest.
            between: Two refs `A..B`, both included, in place of a version: returns HEALTH_HISTORY, newest first, the
                numbers at each of these versions. Reads what `lifetimes` reads; uses the newest settings for all.
            metadata_only: Look for no file and read no other version, which is faster for large tables.
            expect: Versions whose findings are expected, with the reason, such as `{11: "a backfill"}`: from now on, in
                this open table, they are no problem for `health`, `check` and the explorer. Holds for the commit that
                the version is now.
            config: A TOML file, or its content as a dict, as `check` reads it: versions that are expected.
            key: The columns that identify a row: whether several rows of the version have the same values, and, for
                `latest`, at which versions this begins. Reads these columns, of all rows of all versions.

        Raises:
            InvalidArgumentError: A version that is expected has no reason; or `key` with `between` or `metadata_only`.
        """
        for expected, reason in (expect or {}).items():
            self._past.expect(expected, reason)
        if key is not None and (between is not None or metadata_only):
            raise InvalidArgumentError(
                "health reads the columns of a key for a version: leave out the range or the key."
            )
        if between is not None:
            if ref is not None:
                raise InvalidArgumentError(f"health takes a version or a range, got {parse_ref(ref)} and {between!r}.")
            past, versions = self._versions_of(between)
            return health_history(past.format, past.lifetimes(), versions, name=self.name)
        past, own_ref = self._past.in_branch("latest" if ref is None else ref)
        snapshot = self._snapshot_of(past.load(own_ref), past.open_branch)
        symptoms: tuple[Symptom, ...] = ()
        if not metadata_only and snapshot.version is not None:
            only = None if is_newest_state(own_ref) else snapshot.version
            settings = check_settings(None, since=None, at=None, key=None, config=config).of_table(self.name)
            keyed = [key] if isinstance(key, str) else key
            symptoms = diagnose(past.with_newest_state(is_newest_state=True), only, settings.expected, key=keyed)
        return read_health(
            parts_of(snapshot).loaded.version,
            name=self.name,
            readability=lambda: _known_readability(snapshot),
            symptoms=symptoms,
        )

    @_reads_metadata_once
    def retention(self, keep: str | timedelta | None = None, *, keep_last: int | None = None) -> Retention:
        """Return the versions and files that a retention rule would remove, and what keeps the others. Deletes nothing.

        Follows the engine's own command, which the result contains: Paimon's `sys.expire_snapshots`, Delta's VACUUM,
        Iceberg's `system.expire_snapshots`, Hudi's `run_clean`. Arguments default to the table's settings. Reads what
        `lifetimes` reads; for Paimon also tags, consumers, changelogs that would expire and files of other branches;
        for Delta recent commits and a listing of each folder.

        Args:
            keep: Keep versions up to this age, such as `7d` or `36h`. For Delta: files removed within this time.
            keep_last: Keep at least this many of the newest versions. For Delta it is converted to hours. For Hudi
                tables that are cleaned by file versions: this many slices of each file group.

        Raises:
            UnsupportedFeatureError: The result cannot be determined exactly.
        """
        return retention_of(self._open.format, self.lifetimes(), keep=keep, keep_last=keep_last, name=self.name)

    @_reads_metadata_once
    def usage(
        self,
        by: str = "holder",
        *,
        without: RefLike | Sequence[RefLike] | None = None,
        to_free: int | str | None = None,
        price: Price | None = None,
        everything: bool = False,
        where: Sequence[str] | str | None = None,
    ) -> Usage:
        """Return who holds the bytes of the table, each data file counted once, and what could be freed.

        A file is live if the newest version has it; others are held by older versions, tags, branches, or versions on
        no branch. Computed from metadata, but for `column`: whether the files exist is not looked at. What the engine's
        own expiry would delete is in `retention`. Reads what `lifetimes` reads, for each branch, the tags, and commits.

        Args:
            by: `holder`, or `version` (what only this version holds), or an attribute of files, by which each is in
                one group: `commit` that added it, its `operation`, `user` or `day` (UTC), `partition`, or `size`. With
                `time`, live and held bytes at each version, and write amplification; small files and delete files over
                time are in `health(between="..")`. With `column`, the compressed bytes of each column in the live
                files: reads their footers in a request or two each, for ORC also one per stripe; no rows.
            without: Versions, ranges `A..B`, tags (`tag:v1`) and branches (`branch:dev`): `removal` of the result has
                the files that nothing else holds.
            to_free: Bytes, or text such as `1.5 GB`: `expiry` of the result keeps the most of the newest versions of
                what frees at least as much, with the call of `retention`, whose cost it has, and the engine's command.
            price: Per GB (10^9 bytes) and month: adds a column `cost_per_month`. Or a dict with `gb_month`, and with
                prices of 1,000 requests, `read` (GET) and `write` (PUT): adds `cost_to_read` and `cost_to_write` of one
                request per file; with `time`, reading is of the files that `where` reads.
            everything: Also count all other files in the table's folder by their kind, such as metadata, delete files
                and orphaned files: `summary` has a row for each. Costs what `orphans` costs.
            where: With `time`, conditions such as `day = '2026-11-01'`, as a workload has them: also counts the files
                and bytes that they would have read at each version, which partitions and statistics do not rule out.

        Raises:
            InvalidArgumentError: `where` is passed without `time`, or is not a condition; or `without` has the newest
                version, or steps back from a tag or branch.
            SnapshotNotFoundError: Something in `without` does not exist.
            UnsupportedFeatureError: With `to_free`, as `retention`.
        """
        return usage_of(
            self._past, by=by, without=without, to_free=to_free, price=price, everything=everything, where=where
        )

    @_reads_metadata_once
    def verify(self, level: Level = "existence", *, resume: Verification | bool | None = None) -> Verification:
        """Return whether the data files of all versions of all branches are there, and are what the metadata records.

        Args:
            level: `existence`: each file exists and has the recorded size; costs one listing of each folder. `footers`:
                also the footer of each file that has one is read, and has the recorded number of rows. `bytes`: also
                each file is read as a whole, once, by the readers of rows, with the checksums of its pages if it has
                any, and so are deletion vectors and delete files, whose problems count as problems of the data
                files that need them.
            resume: An earlier result: files that it found in order at this level or a higher one are not opened again.
                True for all earlier calls on this table, also one that was interrupted.
        """
        past = self._past

        def history(branch: str | None) -> tuple[TableFormat, FileLifetimes]:
            own = past if branch is None else past.on_branch(branch)
            return own.table_format, own.lifetimes()

        return verify(
            self._open.format,
            self._open.branch,
            history,
            name=self.name,
            level=level,
            resume=resume,
            intact=self._verified,
            known=self._open.readability,
        )

    @_reads_metadata_once
    def orphans(self, older_than: str | timedelta = "3d") -> Orphans:
        """Return the files below the table's folder that no version, tag or branch names. Deletes nothing.

        Files of a commit under way are never among them: files younger than `older_than`, and for Hudi also files of
        requested and running instants. The folder is listed before the metadata is read, so a file whose commit lands
        meanwhile is named. If metadata that may name a file cannot be read, or is missing, no file is called an orphan:
        `is_orphan` is null, and `Orphans.unread` says why. Metadata of other formats in the same folder counts too.

        Lists each folder once, and reads all metadata: every commit, manifest list and manifest, each once. Opens no
        data file. Needs memory in proportion to the number of files: about 1 GB for a million.

        Args:
            older_than: The minimum age, such as `3d` or `12h`. It must be longer than any commit takes.

        Raises:
            StorageError: A folder cannot be listed.
        """
        storage = self._open.format.storage
        return find_orphans(self._open.format, storage, older_than=older_than, name=self.name, now=datetime.now(UTC))

    def tags(self) -> Frame:
        """Return the tags, sorted by name: tag, version, committed_at. Paimon: reads a small file per tag."""
        tags = self._open.tags()
        return tags_frame(tags, self._open.format.committed_at(list(tags.values())), name=self.name)

    def branches(self) -> Frame:
        """Return the branches other than the main one, sorted: branch, forked_version, newest_version.

        `forked_version` is the version of this table's history at which the branch starts, with the same commit. It is
        null if that is not certain: the branch was created without a tag or from another branch, its first version has
        expired, it cannot be read, or it is the open branch. `newest_version` is a version of the branch itself. Open a
        branch with `branch=`. Costs a listing; for each branch a listing and at most two small files; and the tags if
        versions have expired. For more than 100 branches, only names are returned.
        """
        return branches_frame(self._open.format.branches.others(), name=self.name, history=self._past)

    def inspect(self, name: str | None = None, ref: RefLike | None = None) -> Frame:
        """Return a metadata table of the format, with the format's own name and columns.

        Without a name, they are listed. Columns, types and order are the format's own. For Paimon: its system tables,
        as `SELECT * FROM t$files` returns them; a TIMESTAMP(3) is timestamp[ms] without zone, in UTC, where Paimon
        uses the zone of its JVM. For Delta: `history` and `detail` as DESCRIBE returns them, newest first, and
        `properties`, `transactions` and `domains`. For Iceberg: its metadata tables, as `SELECT * FROM t.files`
        returns them; partitions are maps of text. For Hudi, which has no such tables: `timeline`
        and `file_groups`, which have a `picture()`, and others. They read only metadata.

        Paimon's audit_log, binlog, ro and row_tracking contain the rows of the table, in no order. They are read as a
        whole into memory, like `to_arrow`. audit_log contains the last event of each key with its `rowkind`, also for
        deleted keys.

        Args:
            name: The name of the metadata table; without it, returns their names and meanings, whether each is of one
                version, and whether it has a `picture()`.
            ref: The version, for tables that describe one version; by default the latest.
        """
        if name is None:
            if ref is not None:
                raise InvalidArgumentError(
                    Message(
                        f"A version, {parse_ref(ref)}, needs the name of a metadata table. ",
                        Hint("table.inspect"),
                        " lists them.",
                    )
                )
            return inspections_frame(self._open.format.inspections, name=self.name)
        inspection = next((item for item in self._open.format.inspections if item.name == name), None)
        if inspection is None or not inspection.at_version:
            if inspection is not None and ref is not None:
                raise InvalidArgumentError(
                    f"{name} describes the table as a whole, not one version. Leave {parse_ref(ref)} out."
                )
            kind = "table" if inspection is None or inspection.picture is None else inspection.picture
            return Frame(self._open.format.inspect(str(name)), title=f"{name} of {self.name}", kind=kind)
        snapshot = self.update() if ref is None else self.at(ref)
        version = snapshot.version
        title = f"{name} of {self.name}" + ("" if version is None else f" at {snapshot.label}")
        rows = parts_of(snapshot).loaded.version.inspect(name)
        is_whole = inspection.of_rows or snapshot.schema.partition_keys
        drawn = () if is_whole else tuple(column for column in rows.column_names if column != "partition")
        return Frame(rows, title=title, drawn=drawn, of_rows=inspection.of_rows)

    @_reads_metadata_once
    def row_changes(
        self,
        a: RefLike,
        b: RefLike,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        mode: ChangeMode = "auto",
    ) -> pa.Table:
        """Return the rows that changed after version `a`, up to and including `b`, unmerged, by version.

        The first column, `rowkind`, is +I, -U, +U or -D; the columns of the schema follow. Commits that only rearrange
        rows, such as compactions, contain no changes.

        Paimon: like `incremental-between` through audit_log since 1.1, in the newest schema; within a version by
        bucket, in the order of files and rows. Delta: like `readChangeFeed` from the version after `a`, in the newest
        schema, or with column mapping in the schema of `b`; within a version in no order. If no change data was
        written, changes are derived from files: a row that was rewritten unchanged is returned as -D and +I. Iceberg:
        like Spark's changelog view, in the current schema, also for commits with delete files. A row that was rewritten
        unchanged is left out; if rows have ids, updates are -U and +U. Hudi: the rows of the file slices that a commit
        changed, compared by record key, in the schema of `b`; where change data was written, like Hudi's change query.

        Args:
            a: The version before the first change. Except for `diff`, it may be `earliest^`.
            b: The version of the last change.
            columns: The columns to return after `rowkind`, in order; by default all. For Delta also `_change_type`,
                `_commit_version` and `_commit_timestamp`, for Hudi `_hoodie_commit_time`.
            where: A condition in DuckDB's SQL. It may use `rowkind`. Files that cannot contain a matching row are not
                opened.
            mode: `auto`. Paimon: `diff` between two tags; otherwise `changelog` if the table has a
                changelog-producer, else `delta`. Delta, Hudi: change data if it was written, otherwise derived changes.
                `delta`: changes of files. Paimon: rows of files added by APPEND commits; COMPACT and OVERWRITE commits
                are skipped, and so is level 0 in tables with deletion vectors or merge-engine=first-row. Delta: rows
                of files that were added or removed, or whose deletion vector changed.
                `changelog`: recorded changes. Paimon: the changelogs of all commits except OVERWRITE. Delta: like
                `auto`, if delta.enableChangeDataFeed was set at all of the versions. Hudi: like `auto`, if
                hoodie.table.cdc.enabled is set.
                `diff`, Paimon: the state at `b` compared with that at `a` by primary key. New and changed rows
                are returned as they are at `b`, missing rows as -D. Files of both versions are ignored, as in Paimon:
                a row rewritten with its old values is returned, a row removed by a deletion vector alone is not.
                Keeps both states of a bucket in memory. Iceberg: exactly the rows of `b` compared with the rows of `a`;
                files that are in both with the same deletes are not read. Keeps the others of a partition in memory.
        """
        past, (first, last) = self._past.one_history(a, b)
        start, end, settled = past.span(first, last, mode)
        table_format = past.table_format
        changes = table_format.row_changes(start, end, settled)
        if start == end:
            changes = replace(changes, splits=lambda _: ())
        with naming_renamed_columns(table_format, lambda: table_format.version(end)):
            return read_changes(changes, columns, where)

    def changes_since(  # noqa: PLR0913 - which changes, and how many
        self,
        position: RefLike | None = None,
        key: Sequence[str] | str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        max_versions: int | None = None,
        max_rows: int | None = None,
        wait: float | None = None,
        memory_limit: int | None = None,
    ) -> ChangeCursor:
        """Return a cursor over the row changes after a position: an iterator of Arrow batches, commit by commit.

        The rows with their columns, then `_change_type` (insert, update_preimage, update_postimage, delete),
        `_commit_version` and `_commit_timestamp`, as in Delta's change data feed. The changes of a commit are those
        that `diff_rows` returns between the version before it and its own: replayed one after another over the rows at
        the start, they give the rows of every version. A commit that only rewrites rows has none. Columns are those of
        the commit's own schema, so batches before and after a schema change differ.

        `cursor.position` is text that continues the stream later, also on another machine. It moves over a whole
        commit, when its last batch is returned: to process each commit exactly once, store its rows and the position
        together. After an error it is unchanged, and the commit is returned again from its first batch.

        Each iteration lists the log and checks that the version at the position is still the same commit. Reads for
        each commit the metadata of two versions and the files in which they differ, when the iteration gets there.

        Args:
            position: The text of a position, or a ref or time after whose version changes begin, such as `latest` or
                `@2h`. By default begins with the oldest version after which no other is missing, all of whose rows
                count as inserted by it.
            key: The columns that identify a row, so that an update is a pair; by default the primary key. Without one,
                an updated row is deleted and inserted.
            columns: The columns of the rows, in addition to the key; by default all.
            where: A condition in DuckDB's SQL: the changes of the rows that match it.
            max_versions: Stop after this many commits.
            max_rows: Stop after the commit with which there are this many rows.
            wait: Seconds to wait for another commit when there is none; by default the iteration ends at once. Looks
                for one every second.
            memory_limit: As for `diff_rows`.

        Raises:
            InvalidArgumentError: The position is not valid, or of a table in another format or on another branch.
            PositionError: While iterating: the history does not continue from the position, because it has expired or
                was rolled back, the table was created again, files were removed, or an earlier commit was completed
                later (Hudi). Nothing is skipped: the message has the positions from which to go on.
        """
        request = DiffRequest(key=key, columns=columns, where=where, branch=self._open.branch, name=self.name)
        bounds = ChangeBounds(max_versions=max_versions, max_rows=max_rows, wait=wait)
        return ChangeCursor(lambda: self._past, position, request, bounds, memory_limit=memory_limit)

    def anomalies(
        self,
        columns: str | Sequence[str] | None = None,
        between: str | None = None,
        *,
        rules: AnomalyRules | None = None,
        key: str | Sequence[str] | None = None,
        engine: str | SparkSession | None = None,
    ) -> Frame:
        """Return the versions where a number jumps, newest first, with the rule and the numbers that mark each.

        The ANOMALIES frame, from metadata alone: rows, files and bytes of the table, and null rate, minimum and maximum
        of columns. A version is marked if its change is more than `factor` times the usual change, the median of
        the changes at the last `window` versions that changed the number, and at least a share of what was there. Rows,
        files and bytes of commits that change no data, such as a compaction, are not marked.

        Args:
            columns: A column or several; all without it, none for `[]`.
            between: Two refs `A..B`, both included: only marks of these versions, which are compared with older ones.
            rules: The thresholds.
            key: The columns that identify a row: versions at which several rows begin to have the same key are marked
                too. Reads these columns as `row_history`. A null in a key of one column is not counted.
            engine: With `key`, `local` (the default), or `spark` or a session: executors then read the rows.
        """
        source, versions = self._versions_of(between)
        chosen = AnomalyRules.of(rules)
        names, keys = ([value] if isinstance(value, str) else value for value in (columns, key))
        with _naming_renamed_columns(source):
            if keys is None and engine not in (None, "local"):
                raise InvalidArgumentError(
                    "Spark reads rows for anomalies of a key, and the rest is metadata. Name a key."
                )
            doubled = None if keys is None else duplicate_key_versions(source, keys, versions, engine=engine)
            return table_anomalies(source, names, versions, chosen, doubled)

    @_reads_metadata_once
    def blame(
        self,
        where: str | None = None,
        *,
        key: str | Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        between: str | None = None,
        engine: str | SparkSession | None = None,
    ) -> Blame:
        """Return every version that inserted, updated or deleted rows of a condition, with the rows before and after.

        Applied one after another, the lines give the matching rows of every version. So a row that an update takes out
        of the condition is deleted, and one that it brings in is inserted. A change is attributed to the first version
        that has it: rows that a restore brings back to the restore, a row that is deleted and inserted again to both
        commits. A compaction that rewrites rows unchanged, or a new column that is null in existing rows, is not a
        change. Columns are matched by field id; columns that the last version lacks are not compared.

        One pass over the log finds the versions that added or removed files which might contain matching rows, by
        partition and statistics; in primary-key tables only conditions on the key skip files. A change is where a state
        of the row history begins or ends: each of these files is read once (`row_history`). Changed rows are held in
        memory.

        Args:
            where: A condition in DuckDB's SQL, with the columns of the last version; by default all rows.
            key: The columns that identify a row, so that an update is one line; by default the primary key. Without a
                key (`[]`, or no primary key), an update is a delete and an insert.
            columns: The columns to compare and to return, in addition to the key; by default all.
            between: Two refs `A..B`, both included; by default all versions. Rows of the first version that its commit
                did not add are `present`, since then or earlier.
            engine: `local` (the default), or `spark` or a session: executors then read the rows, as in `row_history`,
                and the changes are collected.
        """
        source, versions = self._versions_of(between)
        keyed = [key] if isinstance(key, str) else key
        request = BlameRequest(where=where, key=keyed, columns=columns, between=between)
        with _naming_renamed_columns(source, versions):
            return blame(source, request, versions, engine=engine)

    @overload
    def row_history(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        between: str | None = None,
        engine: str | SparkSession | None = None,
        *,
        preview: Literal[False] = False,
        memory_limit: int | None = None,
    ) -> RowHistory: ...
    @overload
    def row_history(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        between: str | None = None,
        engine: str | SparkSession | None = None,
        *,
        preview: Literal[True],
        memory_limit: int | None = None,
    ) -> RowHistoryPlan: ...
    @_reads_metadata_once
    def row_history(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        between: str | None = None,
        engine: str | SparkSession | None = None,
        *,
        preview: bool = False,
        memory_limit: int | None = None,
    ) -> RowHistory | RowHistoryPlan:
        """Return each state that rows had once, with the versions that have it: the table over time as one relation.

        The columns of the rows, then `_from_version`, the first version that has the row, `_to_version`, the first
        later version without it, null while it is there, and their commit times `_from_time` and `_to_time`. The rows
        of version v are those with `_from_version <= v` and `_to_version > v` or null, as multisets.

        A row that a compaction, a copy-on-write or a restore of another row rewrites unchanged is one state; values
        are compared as in `diff_rows`. A row that is deleted and inserted again later is two states. Where a version
        removes some of several equal rows, those in the files that it removes end; where it also adds equal rows,
        the oldest states go on. Columns are matched by field id and have the names of the last version; a column is
        null before it was added, and columns that the last version lacks are left out.

        Each data file that can have matching rows is read once, however many versions have it; files that are merged
        by a primary key, and files with equality deletes, once for each state of the merge. Versions that are missing
        or cannot be read are left out and named in `RowHistory.plan.notes`: a row that is there before and after them
        is one state, and the time of a change behind them is null.

        Args:
            where: A condition in DuckDB's SQL, with the columns of the last version; by default all rows.
            columns: The columns of the states, in the order of the table; by default all.
            between: Two refs `A..B`, both included; by default all versions. Rows of the first one begin there, without
                a time unless its commit added them; rows of the last one have no end.
            engine: `local` (the default), or `spark` or a session: executors then read and compare the rows at their
                first use, each file once. `RowHistory.to_spark()` leaves them there; everything else collects them.
                A file that cannot be read then fails, unless it is local and missing.
            preview: Return what would be read: versions, files and bytes. Opens no data file.
            memory_limit: The maximum bytes in memory of rows that are compared and of the result, by default 1 GiB;
                more are spilled to temporary files. Of files that are merged, two states are in memory.
        """
        source, versions = self._versions_of(between)
        request = RowHistoryRequest(where=where, columns=columns, between=between)
        with _naming_renamed_columns(source, versions):
            if preview:
                return plan_row_history(source, request, versions)
            return row_history(source, request, versions, engine=engine, memory_limit=memory_limit)

    @_reads_metadata_once
    def trace(self, where: str, *, engine: str | SparkSession | None = None) -> Trace:
        """Return where rows of a condition still are: in versions, data files, changelogs and statistics.

        Covers every version of every branch, versions that no branch leads to any more (Iceberg, after a rollback), and
        rows that are deleted but still stored in a data file. A data file is opened only if metadata does not rule out
        that it has a matching row, and read once however many versions have it, as in `row_history`; all are read again
        in parts if one cannot be read. Every changelog file is read, and every metadata file that records statistics of
        the columns. `Trace.verdict` never claims that rows are gone where something could not be read. Rows that the
        merge of a primary-key table drops are not counted, and stated as unknown; so are versions in which a name of
        the condition belongs to another column.

        Args:
            where: A condition in DuckDB's SQL, with the columns of the newest version of each branch.
            engine: `local` (the default), or `spark` or a session: executors then read the data files.
        """
        source = self._past.with_newest_state(is_newest_state=True)
        return trace(source, where, engine=engine)

    @_reads_metadata_once
    def repair(
        self,
        to: RefLike | None = None,
        where: str | None = None,
        *,
        undo: RefLike | None = None,
        key: Sequence[str] | str | None = None,
        name: str | None = None,
    ) -> Repair:
        """Return the statement that puts back what a commit removed or changed, for the engine that writes the table.

        Nothing is run. `undo=10` undoes commit 10 alone: rows that it removed or changed are put back, and rows that it
        inserted are deleted, unless a later commit changed them too; those are left, and listed in `Repair.left`.
        `to=9` puts back all rows as at version 9, which undoes every later commit too; `Repair.warnings` says how many
        rows that concerns. `Repair.statement` is Spark SQL: with `to` and without `where`, the format's own restore or
        rollback; otherwise a MERGE, DELETE or INSERT of exactly these rows. With `to` and `where` but without a key,
        all rows that match are replaced. `Repair.rows` has the number of rows to expect, by row diffs, and
        `Repair.check` the call that proves the result afterwards.

        Reads the rows that differ, as `diff_rows`; with a key that is not enforced, also the columns of the key in
        each version; without a key, to undo a commit that inserted rows, the newest version.

        Args:
            to: The version whose rows are put back.
            where: A condition in DuckDB's SQL on the rows; None for all, and with `to` for the table as a whole.
            undo: The version whose commit is undone, in place of `to`.
            key: The columns that identify a row, unique and not null; by default the primary key. With `to`, only with
                `where`.
            name: The table's name in the engine, such as `lake.shop.orders`; by default the name by which it was
                opened, or for Delta its path.

        Raises:
            InvalidArgumentError: Neither `to` nor `undo` is given, or both; or the key does not identify rows.
            SnapshotNotFoundError: The version, or that before the commit to undo, does not exist.
            UnsupportedFeatureError: No statement is certain to be exact; the message says why.
        """

        def version_at(ref: RefLike) -> TableVersion:
            return parts_of(self.at(ref)).loaded.version

        undone = None if undo is None else version_at(undo)
        request = RepairRequest(
            source=self._past.with_newest_state(is_newest_state=True),
            now=parts_of(self.update()).loaded.version,
            then=restored_version(version_at, to, undone),
            undone=undone,
            where=where,
            key=key,
            engine_name=name,
            retention=self.retention,
        )
        return plan_repair(request)

    @_reads_metadata_once
    def bisect(
        self,
        condition: str | Callable[[Snapshot], object],
        good: RefLike | None = None,
        bad: RefLike | None = None,
        *,
        announce: Callable[[BisectionReading], object] | None = None,
        single_pass: bool | None = None,
        every: bool = False,
        engine: str | SparkSession | None = None,
    ) -> Bisection:
        """Return the first version where a condition holds, with its commit and the last version before it.

        A condition is one of three. SQL on the rows: on all of them, `count(*) filter (where amount < 0) > 0`, or on
        each, `amount < 0`, which holds at a version if some row passes. A Python function of a `Snapshot`. SQL on the
        metadata of a version: `rows`, `files`, `bytes`, `version`, `committed_at`, `columns` (a list of names), `types`
        (`types['amount'] = 'double'`), `null_count.COLUMN` and `null_rate.COLUMN`; `metadata.rows` where a column is
        called `rows`. Rows are those in files, before merges and deletes.

        Conditions on metadata are evaluated at every version, in one pass over the log, and conditions on the rows of
        small tables too: the answer says how often such a condition changes. For other conditions the last version is
        loaded, and then the middle of the rest: at most 11 of 1,000 versions, and only the columns of the condition.
        If the condition changed several times, this finds one of its changes, so the answer says "if it changes only
        once", and what evaluating every version would read. If it reads no more, the condition is evaluated at every
        version from the row history, in a single pass that reads each file once (`row_history`). It is possible for
        conditions on each row and for counts, `min`, `max`, `bool_or`, `bool_and` and sums of exact numbers, if the
        columns in the condition stayed the same. A function is called at few versions. Versions that are missing or
        cannot be read are skipped and named: the condition may hold first at one of them (`Bisection.gap`). The
        condition does not hold where it is null, or where the version lacks one of its columns.

        Args:
            condition: SQL as DuckDB understands it, with the columns of `bad`, or a function.
            good: A version where it does not hold, from which the search starts; by default the earliest version. If
                the condition already holds there, there is no answer.
            bad: A later version where it holds; by default the newest one.
            announce: Called with what will be read, before any rows are read.
            single_pass: Whether to read rows in a single pass. By default, if that reads no more bytes of data files
                and commits, by the metadata, or the table is small; False loads few versions also of a small table.
            every: Whether every version is evaluated, so that `Bisection.changes` has each one where the condition
                begins or ceases to hold. Loads every version unless the condition is on metadata, or a single pass can
                read less.
            engine: `local` (the default), or `spark` or a session: executors then read the rows in a single pass.

        Raises:
            InvalidArgumentError: The condition does not fit, the function raises, `good` is not before `bad`, or the
                condition does not hold at the given `bad`.
        """
        past, refs = self._past.one_history(*(ref for ref in (good, bad) if ref is not None))
        versions = iter([past.load(ref).version.number for ref in refs])
        bounds = [None if ref is None else next(versions) for ref in (good, bad)]
        source = past.with_newest_state(is_newest_state=bad is None or is_newest_state(refs[-1]))
        test = _of_version(condition, past.open_branch) if callable(condition) else condition
        with _naming_renamed_columns(source, [item for item in bounds[1:] if item is not None]):
            return bisect(source, test, *bounds, announce=announce, single_pass=single_pass, every=every, engine=engine)

    @_reads_metadata_once
    def profile_over(
        self,
        columns: str | Sequence[str] | None = None,
        between: str | None = None,
        *,
        exact: bool = False,
        rules: AnomalyRules | None = None,
        engine: str | SparkSession | None = None,
    ) -> Profile:
        """Return row count, nulls, minimum and maximum of columns at every version, as lines and as a frame.

        From the statistics of files in the metadata, in one pass over the log; a number is null if a live file has no
        statistics of it. `bounds` says which numbers are bounds instead of exact, and why: text and times may be
        truncated, deletion vectors and delete files remove rows that the statistics still include, and rows of
        Paimon's primary-key tables are counted before they are merged. `min` and `max` are then a lower and an upper
        bound of the values. NaN is not a value. Numbers of a Paimon table with rows of another branch are null.

        Args:
            columns: A column or several, of the last version; by default all.
            between: Two refs `A..B`, both included; by default all versions.
            exact: Read the rows: each file once for all versions that contain it, and merged files once for each state.
            rules: The thresholds of jumps; see `anomalies`.
            engine: With `exact`, `local` (the default), or `spark` or a session: executors then read the rows.
        """
        source, versions = self._versions_of(between)
        names = [columns] if isinstance(columns, str) else columns
        chosen = AnomalyRules.of(rules)
        arguments = () if columns is None else (columns,)
        call = f"{source.open_expression}.{call_text('profile_over', *arguments, between=between, exact=exact or None)}"
        with _naming_renamed_columns(source, versions):
            return profile_over(source, names, versions, exact=exact, call=call, rules=chosen, engine=engine)

    @overload
    def diff_rows(
        self,
        a: RefLike,
        b: RefLike = "latest",
        key: Sequence[str] | str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        engine: str | SparkSession | None = None,
        *,
        preview: Literal[False] = False,
        memory_limit: int | None = None,
    ) -> RowDiff: ...
    @overload
    def diff_rows(
        self,
        a: RefLike,
        b: RefLike = "latest",
        key: Sequence[str] | str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        engine: str | SparkSession | None = None,
        *,
        preview: Literal[True],
        memory_limit: int | None = None,
    ) -> RowDiffPlan: ...
    @_reads_metadata_once
    def diff_rows(  # noqa: PLR0913 - what is compared, how, and where
        self,
        a: RefLike,
        b: RefLike = "latest",
        key: Sequence[str] | str | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        engine: str | SparkSession | None = None,
        *,
        preview: bool = False,
        memory_limit: int | None = None,
    ) -> RowDiff | RowDiffPlan:
        """Return the rows that differ between versions `a` and `b`: inserted, deleted and updated.

        The rows of A less `RowDiff.before` plus `RowDiff.after` are the rows of B, as multisets. Either version may be
        the newer one. Reads only files that are not in both versions; if only the deletion vector of a file differs,
        only the rows that it names. Rows that a compaction rewrote unchanged cancel out.

        Columns are matched by field id, or by name in a table without ids, and have the names of B. A column that was
        added is null before. A column that B lacks is not compared. Types that were widened are compared in the wider
        type; other changes of type are refused, unless `columns` leaves them out.

        Values are compared as they are stored: nulls are equal, NaN equals NaN, -0.0 differs from 0.0, decimals are
        compared by value, times by instant, texts (whatever their collation) and binary by their bytes, lists and
        structs item by item, maps without order.

        Args:
            a: The version before the changes.
            b: The version after the changes.
            key: The columns that identify a row, unique and not null in each version; by default the primary key.
                Without a key (`[]`, or no primary key), whole rows are compared and none is updated. Nulls and
                duplicates are refused before rows are compared; on Spark, while they are. Only rows that are read are
                checked: those that match `where`, in files that are not in both versions. If such a key also occurs in
                a file of both versions, `before` and `after` are still right, but the row counts as deleted or
                inserted instead of updated.
            columns: The columns to compare, in addition to the key; by default all.
            where: A condition in DuckDB's SQL, with the names of B. Compares the rows of each version that match: a row
                that matches in A and not in B is deleted.
            engine: `local` (the default), or `spark` or a session: executors then read and compare the rows at their
                first use. `RowDiff.to_spark()` leaves them there; everything else collects them.
            preview: Return what would be read, and the most rows that can have changed. Opens no data file.
            memory_limit: The maximum bytes in memory of rows and of what matching them needs, by default 1 GiB; more
                are spilled to temporary files. The peak is up to 1 GiB above it.

        Raises:
            InvalidArgumentError: A ref, a column or the condition is not valid, the versions have no common column, or
                the key has nulls or is not unique.
        """
        plan = self._diff_plan(a, b, key, columns, where)
        return plan if preview else row_diff_by(engine, plan, memory_limit=memory_limit)

    def _diff_plan(
        self,
        a: RefLike,
        b: RefLike,
        key: Sequence[str] | str | None,
        columns: Sequence[str] | None,
        where: str | None,
    ) -> RowDiffPlan:
        pair = self._past.resolve_pair(a, b)
        first, last = pair.versions()
        divergence = pair.divergence(first, last)
        request = DiffRequest(
            key=key,
            columns=columns,
            where=where,
            branch=pair.b.branch if divergence is None else self._open.branch,
            refs=None if divergence is None else (str(parse_ref(a)), str(parse_ref(b))),
            name=self.name,
        )
        with naming_renamed_columns(pair.b.table_format, lambda: last):
            return plan_diff(self.path, pair.b.table_format, first, last, request, divergence=divergence)

    @_reads_metadata_once
    def sql(self, query: str, engine: str = "duckdb", *, spark: SparkSession | None = None) -> pd.DataFrame | DataFrame:
        """Return the result of a query over versions of the table. Its name is the folder's name, or `this`.

        `select * from this version as of 17 except select * from this`. `snapshot_explorer.sql` describes all forms,
        engines, results and errors, and accepts several tables.
        """
        names = {"this": self} | {last_part(self.path): self}
        return sql(query, names, engine=engine, spark=spark)

    def _card(self) -> Card:
        """Return the known facts about the table. No request."""
        known, current = self._open.cached, self.current
        newest, schema, files = (
            current.version,
            parts_of(current).loaded.cached_schema(),
            parts_of(current).loaded.cached_files(),
        )
        facts = {
            "format": self.format,
            "also": self._other_formats(),
            "format version": parts_of(current).loaded.cached_format_version(),
            "branch": self._open.branch or self._open.format.branches.main,
            "newest version": "none yet" if newest is None else newest,
            "versions": f"{len(known.versions):,}" if self._open.is_listed else None,
            **overview_facts(newest, commits=known.commits, schema=schema, files=files),
            "reads": None if self._open.storage is None else self._open.storage.outside,
            "commit times": self._open.format.clock.copied_note(known.commits),
        }
        listing = parts_of(current).loaded.listing
        return Card(
            name=self.name,
            path=self.path,
            facts={name: value for name, value in facts.items() if value is not None},
            columns=known.columns,
            notes=() if listing is None or listing.newest_note is None else (listing.newest_note,),
            location_note=self._location_note(),
            next_calls=() if newest is None else NEXT_CALLS,
        )

    def _location_note(self) -> str | None:
        """Return where the table is recorded if it was opened elsewhere. Only the first table of a path states it."""
        listing = parts_of(self.current).loaded.listing
        if listing is None or listing.location_note is None or (self.path in _NOTED_PATHS and not self._has_note):
            return None
        _NOTED_PATHS.add(self.path)
        self._has_note = True
        return listing.location_note

    def __repr__(self) -> str:
        branch = f", branch={self._open.branch!r}" if self._open.branch else ""
        return f"Table(path={self.path!r}, format={self.format!r}{branch}, version={self.current.version})"

    def __str__(self) -> str:
        return repr(self)

    def _versions_of(self, between: str | None) -> tuple[History, Sequence[int] | None]:
        """Return the history that has a range, and the versions of the range, newest first; None for all."""
        past, bounds = self._past.of_range(between)
        return past, None if bounds is None else past.between(bounds)

    def _other_formats(self) -> str | None:
        """Return which other formats have metadata in the folder, and how to read it; None if none is known."""
        others = self._open.format.detection.other_formats
        if not others:
            return None
        arguments = join(" or ", [Message(Hint("", {"format": name})) for name in others])
        comparing = Message(Hint("twins", {"path": self.path}), " compares both")
        return Message(f"{' and '.join(others)} metadata in this folder, read with ", arguments, "; ", comparing)


def card_of(table: Table) -> Card:
    """Return the known facts about a table. No request."""
    return table._card()  # noqa: SLF001 - for this package: users have `Table` itself


def read_overview(table: Table) -> None:
    """Read what the card of a table shows: the schema, one listing, the newest commit, the sizes of the live files.

    For a local table, reads the newest 50 commits and the names of branches, for completion. Sizes are left out where
    there are more than 10,000 live files, and so is what cannot be read.
    """
    branch, current = history_of(table).open_branch, table.current
    _ = current.schema
    with suppress(SnapshotExplorerError):
        versions = branch.listing().versions
        if versions and not set(versions[-1:]) <= set(branch.cached.commits["version"].to_pylist()):
            # On an object store each commit is one or more requests, and opening takes a handful.
            is_local = branch.storage is not None and branch.storage.local_address("") is not None
            branch.commits(versions[: -(OVERVIEW_COMMITS if is_local else 1) - 1 : -1])
            if is_local:
                branch.branch_names()
    with suppress(SnapshotExplorerError):
        live = None if current.version is None else parts_of(current).loaded.live_files()
        if live is not None and live <= OVERVIEW_FILES:
            current.files()


def _of_version(condition: Callable[[Snapshot], object], branch: OpenBranch) -> Callable[[int | None], object]:
    """Return a function of a snapshot as one of a version of a branch, with the same name."""

    def holds(version: int | None) -> object:
        loaded = LoadedVersion(path=branch.path, version=branch.format.version(version))
        return condition(Snapshot(SnapshotParts.of(branch, loaded)))

    holds.__name__ = str(getattr(condition, "__name__", type(condition).__name__))
    return holds


def _known_readability(snapshot: Snapshot) -> Mapping[str, object] | None:
    """Return the row of READABILITY of the commit of a snapshot, if its files were looked for."""
    readability = parts_of(snapshot).readability
    if snapshot.version is None or not len(readability.rows):
        return None
    return readability.of_commit(snapshot.version, snapshot.commit.committed_at)


def _anomalies(past: History) -> pa.Table:
    """Return ANOMALIES of all columns at all versions, by the default rules."""
    own = past.with_newest_state(is_newest_state=True)
    with _naming_renamed_columns(own):
        return table_anomalies(own, None, None, AnomalyRules(), None).to_arrow()


def _naming_renamed_columns(source: History, versions: Sequence[int] | None = None) -> AbstractContextManager[None]:
    """Name renamed columns in errors for unknown ones, with their names at the last of some versions, or at all."""
    return naming_renamed_columns(source.format, lambda: source.format.version(max(versions or source.versions())))


def _commits_of(
    table_format: TableFormat, readability: KnownReadability, versions: Sequence[int]
) -> tuple[pa.Table, Reasons]:
    """Return the COMMITS of versions that do not contradict a readability, and which cannot be read."""
    commits, unread = readable_commits(table_format, versions)
    return readability.applied_to(commits), unread
