"""The effect of Delta's VACUUM on a table: its rule, and the existing files that it would delete.

Source: delta VacuumCommand.gc, getValidFilesFromSnapshot; delta DeltaTableUtils.isHiddenDirectory; delta docs, "Remove
files no longer referenced by a Delta table".
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.milliseconds import from_millis, to_millis
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.formats.delta import features
from snapshot_explorer.formats.delta.expiry.log_cleanup import log_clean_up
from snapshot_explorer.formats.delta.expiry.presence import vector_files
from snapshot_explorer.formats.delta.files.deletion_vectors import vector_of
from snapshot_explorer.formats.delta.metadata.layout import LOG, DeltaLogFile
from snapshot_explorer.formats.delta.metadata.log import DeltaLog
from snapshot_explorer.formats.delta.metadata.records import DeltaState
from snapshot_explorer.formats.expiry import (
    Expiry,
    Mask,
    RetentionRule,
    check_age,
    format_duration,
    holder,
    live_at,
    parse_duration,
    paths_of,
    ranges,
)
from snapshot_explorer.formats.features import refusal
from snapshot_explorer.formats.named_files import CleanUp, FileCleanUp
from snapshot_explorer.formats.unread_versions import Reasons, read_apart
from snapshot_explorer.storage import Entry, Storage
from snapshot_explorer.storage.location import is_full_location, shorten
from snapshot_explorer.storage.same_files import match_files

_HOUR = timedelta(hours=1)
_AGE, _LOG_AGE = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
_DEFAULTS = {_AGE: "interval 1 week", _LOG_AGE: "interval 30 days"}
_CHECKED = timedelta(days=7)
_MARGIN = timedelta(hours=1)
"""The tolerated difference between the clocks of the storage and of the writers."""
_VISIBLE = ("_delta_index", "_change_data")
_ICEBERG = "delta.universalFormat.enabledFormats"


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _RemovedFiles:
    version: int
    deleted_at: int
    """When it was removed, by the writer's clock, in milliseconds since 1970; 0 if not recorded."""
    paths: tuple[str, ...]


class Vacuum:
    """Computes the effect of VACUUM on a table."""

    def __init__(
        self, storage: Storage, log: DeltaLog, committed_at: Callable[[Sequence[int]], Sequence[datetime]]
    ) -> None:
        self._storage = storage
        self._log = log
        self._committed_at = committed_at

    def expiry(
        self, rule: RetentionRule, lifetimes: pa.Table, newest: int | None, unread: Collection[int] = ()
    ) -> Expiry:
        """Return the effect of VACUUM with a rule.

        Lists every folder of the table, reads the newest state, and the commits younger than the rule.

        Args:
            rule: The rule. Without one, the table's own setting. Delta has no number of versions to keep: `keep_last`
                is converted to hours, and alone keeps only those versions.
            lifetimes: LIFETIMES of the table.
            newest: Their newest version.
            unread: Versions that are not in the LIFETIMES, because they cannot be read.
        """
        state = self._log.state(self._log.versions()[-1] if newest is None else newest)
        own = duration_of(state.metadata.configuration, _AGE)
        keep, removed, unknown = self._keep(rule, own)
        cutoff = to_millis(check_age(rule.now, keep))
        kept = {path for row in removed if row.deleted_at >= cutoff for path in row.paths}
        live = self._live(state)
        existing = list(self._files(state))
        listed = pa.array([item.path for item in existing], pa.string())
        needed = match_files(self._storage, listed, pa.array([*live, *kept], pa.string()))
        freed = [
            item
            for item, is_needed in zip(existing, needed.is_named.to_pylist(), strict=True)
            if item.modified_ms < cutoff and not is_needed
        ]
        lifetimes = self._as_listed(lifetimes, listed)
        if unknown:
            removed_paths = _certainly_removed(lifetimes)
            freed = [item for item in freed if item.path in removed_paths]
        versions = self._versions(lifetimes, state.version, existing, freed)
        if needed.note:
            freed, versions = [], _undecided_versions(versions)
        settings = state.metadata.configuration
        log = log_clean_up(self._log.listing(), settings, duration_of(settings, _LOG_AGE), rule.now)
        return Expiry(
            versions=versions,
            freed=_freed_frame(freed, lifetimes),
            holders=frames.HOLDERS.empty_table()
            if unknown or unread
            else _holders(lifetimes, state.version, existing, freed),
            rules=self._rules(rule, keep, state),
            commands=_commands(self._storage.root, keep, own),
            notes=(
                *([f"{needed.note} No file is listed."] if needed.note else []),
                *self._linked(needed.listed_as),
                *_notes(keep, own),
                *log.notes,
            ),
            metadata=log.files,
            unknown=unknown,
        )

    def _as_listed(self, lifetimes: pa.Table, listed: pa.Array) -> pa.Table:
        """Return LIFETIMES whose files below the root have the paths of the listing."""
        paths = single_chunk(lifetimes.column("path"))
        listed_as = match_files(self._storage, listed, paths).listed_as
        if not listed_as:
            return lifetimes
        renamed = pa.array([listed_as.get(path, path) for path in paths.to_pylist()], pa.string())
        index = lifetimes.schema.get_field_index("path")
        return lifetimes.set_column(index, lifetimes.schema.field(index), renamed)

    def _linked(self, listed_as: Mapping[str, str]) -> Iterator[str]:
        """Yield a warning about needed files that the log names by a path outside the folder, such as a link."""
        if not self._storage.is_local:
            return
        start = f"{self._storage.resolve_external(self._storage.root)}/"
        full = [path for path in listed_as if is_full_location(path)]
        linked = [path for path in full if not self._storage.resolve_external(path).startswith(start)]
        if linked:
            count = pluralize(len(linked), "file")
            yield (
                f"The log names {count} by another path to the folder, such as {shorten(linked[0])}. VACUUM compares "
                "paths as text and may delete what is in use: run it on that path only."
            )

    def clean_up(self, files: pa.Table, now: datetime) -> CleanUp:
        """Return the outcome of VACUUM, with the table's own setting, for files that the log does not name.

        Args:
            files: path and modified.
        """
        rule = RetentionRule(keep=None, keep_last=None, now=now)
        state = self._log.state(self._log.versions()[-1])
        own = duration_of(state.metadata.configuration, _AGE)
        kept: frozenset[str] | None = None
        reason = ""
        try:
            _, removed, unknown = self._keep(rule, own)
            cutoff = to_millis(check_age(now, own))
            kept = frozenset(path for row in removed if row.deleted_at >= cutoff for path in row.paths)
        except (UnsupportedFeatureError, CorruptTableError) as error:
            unknown = error.message
        if unknown:
            kept, reason = None, unknown
        hidden = self._hidden(state)
        rows = zip(files.column("path").to_pylist(), files.column("modified").to_pylist(), strict=True)
        return CleanUp(
            files=[
                _clean_up_of(path, is_young=modified >= now - own, is_hidden=hidden(path), kept=kept, reason=reason)
                for path, modified in rows
            ],
            rule=f"VACUUM deletes files older than {format_duration(own)} ({_AGE}) that the newest version does not "
            "use, except for those whose name, or whose folder's name, begins with _ or a dot.",
            commands=(
                ("Spark SQL, dry run", "VACUUM delta.`{}` DRY RUN".format(self._storage.root.replace("`", "``"))),
            ),
        )

    def _keep(self, rule: RetentionRule, own: timedelta) -> tuple[timedelta, Sequence[_RemovedFiles], str | None]:
        """Return the retention period, the files removed in it or shortly before, and why there may be other files.

        The last is None if all removed files are known.
        """
        keep = rule.keep if rule.keep is not None else own if rule.keep_last is None else timedelta(0)
        versions = self._log.versions()
        last = versions[-rule.keep_last :] if rule.keep_last else ()
        removed, unknown = self._removed(rule.now, keep, last)
        if last:
            # A version loses no file if the files that were removed after it are kept.
            later = [row.deleted_at for row in removed if row.version > last[0] and row.deleted_at]
            reach = max((rule.now - from_millis(item) for item in later), default=timedelta(0))
            if reach > keep:
                keep = math.ceil(reach / _HOUR) * _HOUR
                removed, unknown = self._removed(rule.now, keep, last)
        if keep > own:
            raise InvalidArgumentError(
                f"Keeping what was removed in the last {format_duration(keep)} is more than the table's {_AGE}, "
                f"{format_duration(own)}: VACUUM deletes older files with any argument. Set the property "
                "first, or keep less."
            )
        return keep, removed, unknown

    def _removed(
        self, now: datetime, keep: timedelta, last: Sequence[int]
    ) -> tuple[Sequence[_RemovedFiles], str | None]:
        commits = self._log.commits()
        begin = check_age(now, keep) - _MARGIN
        versions = [commit.version for commit in commits if _is_young(commit, begin) or commit.version in last]
        read = read_apart(lambda group: self._log.actions(group, infos=False).removes, versions, self._storage)
        unknown = _unknown_removes(commits, versions, read.unread, begin, keep)
        removes = pa.concat_tables([part for _, part in read.parts] or [self._log.actions([], infos=False).removes])
        rows = zip(
            *(removes.column(name).to_pylist() for name in ("version", "deleted_at", "path", "deletion_vector")),
            strict=True,
        )
        return [
            _RemovedFiles(version=version, deleted_at=deleted_at or 0, paths=self._paths(path, vector))
            for version, deleted_at, path, vector in rows
        ], unknown

    def _live(self, state: DeltaState) -> frozenset[str]:
        rows = zip(state.adds.column("path").to_pylist(), state.adds.column("deletion_vector").to_pylist(), strict=True)
        return frozenset(address for path, vector in rows for address in self._paths(path, vector))

    def _paths(self, path: str, vector: Mapping[str, object] | None) -> tuple[str, ...]:
        """Return the paths of a data file and of the file of its deletion vector."""
        try:
            vector_file = vector_of(vector, self._storage, path)
        except UnsupportedFeatureError:
            vector_file = None  # on another storage
        return (path,) if vector_file is None or vector_file.path is None else (path, vector_file.path)

    def _files(self, state: DeltaState) -> Iterator[_File]:
        """Yield the files below the root that VACUUM checks. One listing per folder, concurrent per depth."""
        is_hidden = self._hidden_names(state)
        folders = [""]
        while folders:
            deeper: list[str] = []
            for folder, entries in zip(folders, self._storage.list_many(folders), strict=True):
                for entry in entries:
                    if is_hidden(entry.name) or "/" in entry.name:
                        continue  # of a key such as `a//b`, which VACUUM does not see
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_folder:
                        deeper.append(path)
                    else:
                        yield _File(path, entry.size_bytes or 0, _modified(entry, path))
            folders = deeper

    @staticmethod
    def _hidden_names(state: DeltaState) -> Callable[[str], bool]:
        """Return a predicate on names: whether VACUUM skips a file or folder."""
        partitions = tuple(f"{name}=" for name in state.metadata.partition_columns)
        others = {"metadata"} if "iceberg" in state.metadata.configuration.get(_ICEBERG, "") else set[str]()
        return lambda name: _is_hidden(name, partitions) or name in others

    def _hidden(self, state: DeltaState) -> Callable[[str], bool]:
        is_hidden = self._hidden_names(state)
        return lambda path: any(map(is_hidden, path.split("/")))

    def _versions(
        self, lifetimes: pa.Table, newest: int, existing: Sequence[_File], freed: Sequence[_File]
    ) -> pa.Table:
        listing = self._log.listing()
        versions = [version for version in listing.versions if version <= newest]
        whole = listing.loadable
        present, freed_paths = {item.path for item in existing}, {item.path for item in freed}
        paths = [None if is_full_location(path) else path for path in lifetimes.column("path").to_pylist()]
        needs = list(zip(paths, vector_files(lifetimes), strict=True))
        gone = _count_at_versions(
            lifetimes, versions, [any(item is not None and item not in present for item in pair) for pair in needs]
        )
        lost = _count_at_versions(lifetimes, versions, [any(item in freed_paths for item in pair) for pair in needs])
        rows = []
        for index, (version, time) in enumerate(zip(versions, self._times(versions), strict=True)):
            outcome, because = "kept", "no file that it needs would be deleted"
            if version not in whole:
                outcome, because = "gone", "a part of its log is missing, or was cleaned away"
            elif gone[index]:
                outcome, because = "gone", f"{gone[index]:,} of its files do not exist"
            elif lost[index]:
                outcome, because = "lost", f"{lost[index]:,} of its files would be deleted"
            elif version == versions[-1]:
                because = "the newest"
            rows.append({"version": version, "committed_at": time, "outcome": outcome, "because": because})
        return pa.Table.from_pylist(rows, frames.RETAINED)

    def _times(self, versions: Sequence[int]) -> Sequence[datetime | None]:
        """Return when versions were committed, None if only a checkpoint is left."""
        known = self._log.listing().commits
        committed = [version for version in versions if version in known]
        read = read_apart(self._committed_at, committed, self._storage)
        times = {version: time for group, part in read.parts for version, time in zip(group, part, strict=True)}
        return [times.get(version) for version in versions]

    @staticmethod
    def _rules(rule: RetentionRule, keep: timedelta, state: DeltaState) -> tuple[tuple[str, str], ...]:
        settings = state.metadata.configuration
        source = f"the table's {_AGE}" if _AGE in settings else f"Delta's default of {_AGE}"
        if rule.keep_last is not None:
            newest = "version keeps its" if rule.keep_last == 1 else f"{rule.keep_last:,} versions keep their"
            source = f"so that the newest {newest} files"
        elif rule.keep is not None:
            source = "as requested"
        log_age = "the table's own" if _LOG_AGE in settings else "Delta's default"
        return (
            ("keep", f"what was removed in the last {format_duration(keep)} ({source})"),
            ("log", f"kept {format_duration(duration_of(settings, _LOG_AGE))} ({log_age} {_LOG_AGE})"),
        )


def duration_of(settings: Mapping[str, str], name: str) -> timedelta:
    """Return an interval that is a property of the table, or Delta's default."""
    text = settings.get(name, _DEFAULTS[name])
    span = parse_duration(re.sub(r"^\s*interval\s", "", text, flags=re.IGNORECASE))
    if span is None:
        raise CorruptTableError(
            f"The table's property {name} is {text[:60]!r}, not an interval such as 'interval 7 days', so the effect "
            "of VACUUM is unknown. Set the property again."
        )
    return span


def _count_at_versions(lifetimes: pa.Table, versions: Sequence[int], lacks: Sequence[bool]) -> Sequence[int]:
    chosen: Mask = np.array(lacks, np.bool_)
    first, removed = ranges(lifetimes)
    begins = np.searchsorted(versions, first[chosen])
    ends = np.searchsorted(versions, removed[chosen])
    counts = np.zeros(len(versions) + 1, np.int64)
    np.add.at(counts, begins, 1)
    np.subtract.at(counts, ends, 1)
    result: list[int] = np.cumsum(counts)[:-1].tolist()
    return result


def _undecided_versions(versions: pa.Table) -> pa.Table:
    """Return RETAINED in which versions that may lose files are unknown instead of lost."""
    is_lost = pc.equal(versions["outcome"], "lost")
    names = versions.column_names
    for name, value in (("outcome", None), ("because", "not all could be decided: see the notes")):
        index = names.index(name)
        column = pc.if_else(is_lost, pa.scalar(value, pa.string()), versions[name])
        versions = versions.set_column(index, versions.schema.field(index), column)
    return versions


def _certainly_removed(lifetimes: pa.Table) -> frozenset[str]:
    """Return the files of LIFETIMES that were removed by known commits, with their deletion vectors."""
    names = zip(lifetimes.column("path").to_pylist(), vector_files(lifetimes), strict=True)
    paths: dict[str | None, bool] = {}
    for row, is_removed in zip(names, lifetimes.column("removed_at").is_valid().to_pylist(), strict=True):
        for path in row:
            paths[path] = is_removed and paths.get(path, True)
    return frozenset(path for path, is_removed in paths.items() if is_removed and path is not None)


def _freed_frame(freed: Sequence[_File], lifetimes: pa.Table) -> pa.Table:
    rows = lifetimes.select(["path", "partition", "removed_version"]).to_pylist()
    known = {row["path"]: row for row in rows}
    vectors = {item for item in vector_files(lifetimes) if item is not None}
    rows = []
    for file in sorted(freed, key=lambda file: file.path):
        row = known.get(file.path, {})
        content = "data" if row else "deletion vector" if file.path in vectors else "untracked"
        content = "change data" if file.path.startswith("_change_data/") else content
        rows.append({**row, "what": content, "path": file.path, "size_bytes": file.size_bytes})
    return pa.Table.from_pylist(rows, frames.FREED)


def _holders(lifetimes: pa.Table, newest: int, existing: Sequence[_File], freed: Sequence[_File]) -> pa.Table:
    """Return the HOLDERS frame: files that younger versions keep; Delta has no other holders in a table."""
    present = {item.path for item in existing} - {item.path for item in freed}
    held = frozenset(lifetimes.column("path").to_pylist()) - paths_of(lifetimes, live_at(lifetimes, newest))
    kept = held & present
    sizes = {item.path: item.size_bytes for item in existing}
    row = holder("kept versions", None, version=None, sizes=sizes, paths=kept, exclusive=kept)
    return pa.Table.from_pylist([row], frames.HOLDERS)


def _commands(root: str, keep: timedelta, own: timedelta) -> tuple[tuple[str, str], ...]:
    table = "delta.`{}`".format(root.replace("`", "``"))
    if keep == own:
        return (("Spark SQL", f"VACUUM {table}"),)
    if not keep:
        return (("Spark SQL", f"VACUUM {table} RETAIN 0 HOURS"),)
    hours = keep / _HOUR
    seconds = keep // timedelta(seconds=1)
    interval = f"{hours:.0f} hours" if hours == int(hours) else f"{seconds} seconds"
    newer = f"ALTER TABLE {table} SET TBLPROPERTIES ('{_AGE}' = 'interval {interval}'); VACUUM {table}"
    older = (
        (("Spark SQL, Delta before 4.1", f"VACUUM {table} RETAIN {hours:.0f} HOURS"),) if hours == int(hours) else ()
    )
    return (*older, ("Spark SQL, any Delta", newer))


def _notes(keep: timedelta, own: timedelta) -> tuple[str, ...]:
    notes = [
        "Files are counted by a listing, so files that are not in the log are included.",
        "Shallow clones of the table may need its files: they are not known.",
    ]
    if keep < own and keep < _CHECKED:
        notes.append(
            f"Delta refuses RETAIN below {format_duration(own)} ({own / _HOUR:.0f} hours), as running readers and "
            "writers may need the files, unless spark.databricks.delta.retentionDurationCheck.enabled is false."
        )
    if keep != own and keep:
        notes.append("Since Delta 4.1, VACUUM ignores RETAIN except for 0 hours, and uses the property.")
    return tuple(notes)


def _clean_up_of(
    path: str, *, is_young: bool, is_hidden: bool, kept: frozenset[str] | None, reason: str
) -> FileCleanUp:
    outcome: str | None = "deleted"
    because = "the newest version does not use it"
    if is_hidden:
        outcome, because = "ignored", "VACUUM skips names that begin with _ or a dot"
    elif is_young:
        outcome, because = "kept", f"it is younger than {_AGE}"
    elif kept is None:
        outcome, because = None, reason
    elif path in kept:
        outcome, because = "kept", f"it was removed from the table within {_AGE}"
    return FileCleanUp(kind=_kind_of(path), outcome=outcome, because=because)


def _kind_of(path: str) -> str:
    folder, _, name = path.rpartition("/")
    if name.startswith(".") or name.endswith(".tmp"):
        return "temporary"
    if f"{folder}/".startswith(f"{LOG}/"):  # also sidecars
        return "metadata"
    if folder.startswith("_change_data") or name.startswith("cdc-"):  # of tables with random prefixes of folders
        return "change data"
    if folder.startswith("_delta_index"):
        return "index"
    if name.startswith("deletion_vector") and name.endswith(".bin"):
        return "deletion vector"
    return "data" if name.endswith(".parquet") else "other"


def _is_hidden(name: str, partitions: tuple[str, ...]) -> bool:
    """Return whether VACUUM skips a file or folder.

    Source: delta DeltaTableUtils.isHiddenDirectory.
    """
    return name.startswith((".", "_")) and not name.startswith((*_VISIBLE, *partitions))


def _unknown_removes(
    commits: Sequence[DeltaLogFile], versions: Sequence[int], unread: Reasons, begin: datetime, keep: timedelta
) -> str | None:
    """Return why some files removed since a time may be unknown, in a sentence; None if all are known.

    Args:
        commits: Every commit, ascending.
        versions: The versions since the time, which were read.
    """
    effect = "Which other files VACUUM would delete is unknown"
    if not commits or (commits[0].version > 0 and _is_young(commits[0], begin)):
        begins = f"begins with version {commits[0].version}" if commits else "has no commits left"
        advice = "Keep less" if keep else "Run VACUUM with DRY RUN"
        return (
            f"{effect}: the log {begins}, not {format_duration(keep)} ago or earlier, and older removes are in a "
            f"checkpoint. {advice}."
        )
    if unread:
        return f"{effect}: {runs_text(runs_of(sorted(unread)))} cannot be read, and files removed there may be kept."
    known = frozenset(commit.version for commit in commits)
    # A missing commit is not younger than the next one.
    start = max((version for version in known if versions and version < versions[0]), default=commits[0].version)
    missing = [version for version in range(start, versions[-1]) if version not in known] if versions else []
    if missing:
        return f"{effect}: the log lacks {runs_text(runs_of(missing))}, and files removed there may be kept."
    return None


def _is_young(commit: DeltaLogFile, begin: datetime) -> bool:
    return commit.modified is None or commit.modified >= begin


def _modified(entry: Entry, path: str) -> int:
    if entry.modified is None:
        raise refusal(features.VACUUM_WITHOUT_TIMES, path=path)
    return to_millis(entry.modified)
