"""`Trace`: the places of rows of a condition, the evidence for them, and gaps in the search. Draws itself."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer.analysis.retention import retention_of
from snapshot_explorer.analysis.rows.trace import trace_history
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import UNREADABLE, SnapshotExplorerError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.records import capitalized, gaps_note, runs_of, runs_text
from snapshot_explorer.core.refs import MAIN
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import format_utc, pluralize
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.results import Frame, non_empty_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from snapshot_explorer.analysis.retention import Retention
    from snapshot_explorer.analysis.rows.trace import TracedFile, TracedHistory, TracedVersion
    from snapshot_explorer.history import History

_YEARS = 10
"""How far ahead retention is evaluated."""
_MOST_TIMED_FILES = 50_000
"""The maximum number of data files for which retention is evaluated, a few dozen times."""
_MOST_REASONS = 5


class Trace(Shown):
    """The places of rows of a condition: versions, files, changelogs and metadata. Draws itself.

    `verdict` covers only what was examined: a version or a file that could not be read never counts as one without
    matching rows.
    """

    def __init__(  # noqa: PLR0913 - the parts of the search
        self,
        source: History,
        where: str,
        histories: Mapping[str | None, TracedHistory],
        *,
        examined_at: datetime,
        refs: Mapping[tuple[str | None, int], Sequence[str]],
        retention: Retention | None,
        waiting: Callable[[], str],
        own_branch: str | None,
        notes: Sequence[str],
        is_complete: bool,
    ) -> None:
        """Create a result. Use `Table.trace` to get one.

        Args:
            source: The table, or its branch that is open.
            histories: By branch; None in a format without branches.
            refs: The tags and branches that name a version.
            retention: The effect of the table's own retention settings; None if unknown.
            waiting: Returns when they will remove the rest, as a sentence; empty if unknown.
            own_branch: The branch that `retention` is about.
            notes: Sentences on what could not be examined.
            is_complete: Whether everything else was examined.
        """
        self.source = source
        self.where = where
        self.notes = tuple(notes)
        self.traced_versions = [
            (branch, version) for branch, history in histories.items() for version in history.versions
        ]
        self.histories = histories
        outcomes = (
            {} if retention is None else {row["version"]: row for row in retention.versions.to_arrow().to_pylist()}
        )
        self._outcomes = {(own_branch, number): row for number, row in outcomes.items()}
        self._retention = retention
        self._waiting = waiting
        self._storing = _storing(histories)
        self._refs = refs
        self.examined_at = examined_at
        """When the table was examined, aware, UTC."""
        unknown = any(version.rows is None or version.stored_rows is None for _, version in self.traced_versions)
        self.versions = self._versions()
        """TRACED_VERSIONS: every version, oldest first."""
        self.files = self._files()
        """TRACED_FILES: every data file that a version has."""
        self.changelogs = self._changelogs()
        """TRACED_CHANGELOGS: every file of row changes that a version's commit wrote."""
        self.metadata = self._metadata()
        """TRACED_METADATA: the metadata files whose statistics name a matching value, or could not be examined."""
        unread = any(frame.to_arrow()["reason"].null_count < len(frame) for frame in (self.changelogs, self.metadata))
        self.is_complete = is_complete and not unknown and not unread
        """Whether every version, and every data file, changelog and metadata file with statistics, was examined."""

    @property
    def is_found(self) -> bool:
        """Whether a version, a data file, a changelog or a metadata file is known to have a matching row or value."""
        return bool(self._storing or self._elsewhere() or any(version.rows for _, version in self.traced_versions))

    @property
    def stored_files(self) -> int:
        """The number of data files that are known to store matching rows, deleted ones included."""
        return sum(bool(rows) for rows in self.files.to_arrow()["stored_rows"].to_pylist())

    @property
    def verdict(self) -> str:
        """The result in a sentence or two."""
        live = [version for _, version in self.traced_versions if version.rows]
        storing = [row for row in self.files.to_arrow().to_pylist() if row["stored_rows"]]
        elsewhere = self._elsewhere()
        if live:
            numbers = runs_text(runs_of(sorted({version.number for version in live})))
            is_one = len({version.number for version in live}) == 1
            verb = "returns" if is_one else "return"
            rest = f" {capitalized(elsewhere)} too." if elsewhere else ""
            rest += "" if self.is_complete else " Other versions or files could not be examined."
            return f"{capitalized(numbers)} {verb} matching rows. {self._since(live)}{rest}"
        versions = "No version" if self.is_complete else "No version that could be examined"
        if storing:
            files = pluralize(len(storing), "data file")
            verb = "stores" if len(storing) == 1 else "store"
            rest = f" {capitalized(elsewhere)} too." if elsewhere else ""
            return (
                f"{versions} returns a matching row, but {files} {verb} some that are deleted or cannot be read back."
                f"{rest}"
            )
        if elsewhere:
            return f"{versions} returns a matching row, and no data file stores one, but {elsewhere}."
        if not self.is_complete:
            return "No matching row was found, but not everything could be examined: this proves nothing."
        return "No version returns a matching row, and no data file of a version stores one."

    @property
    def not_covered(self) -> str:
        """A sentence on what a trace does not look at, in any table of the format."""
        unsearched = self.source.format.maintenance.unsearched_values
        others = "" if unsearched is None else f"{unsearched}, "
        return f"Not looked at: {others}files that no version names, and copies of the table elsewhere."

    def _elsewhere(self) -> str:
        """Return which other files contain or name a value, as a clause; empty if none does."""
        changelogs = sum(bool(rows) for rows in self.changelogs.to_arrow()["rows"].to_pylist())
        naming = self.metadata.to_arrow()["columns"].drop_null()
        parts = []
        if changelogs:
            verb = "contains" if changelogs == 1 else "contain"
            parts.append(f"{pluralize(changelogs, 'changelog file')} {verb} matching rows")
        if len(naming):
            parts.append(f"the statistics in {pluralize(len(naming), 'metadata file')} name a matching value")
        return " and ".join(parts)

    def _since(self, live: Sequence[TracedVersion]) -> str:
        first = min(live, key=lambda version: version.number)
        history = next(history for history in self.histories.values() if first in history.versions)
        before = [version for version in history.versions if version.number < first.number]
        time = "" if first.committed_at is None else f", of {format_utc(first.committed_at)}"
        is_certain = before[-1].rows == 0 if before else history.begins_with_first
        return f"They have been there since version {first.number}{time}{'' if is_certain else ', or earlier'}."

    @cached_property
    def holds(self) -> str:
        """A sentence on what keeps matching rows from being removed, or on what would remove them.

        The time of a later clean-up is computed at the first use, from the files that exist then.
        """
        storing = self._storing
        holding = [(branch, version) for branch, version in self.traced_versions if version.rows or version.stored_rows]
        if not storing and not holding:
            return "No file with matching rows is known."
        if self._retention is None:
            return "What the table's retention settings would remove is unknown."
        freed = _freed(self._retention)
        if storing and storing <= freed:
            return "The next clean-up by the table's own settings removes every known file with matching rows."
        kept: dict[str, list[int]] = {}
        for branch, version in holding:
            if self._outcomes.get((branch, version.number), {}).get("outcome") != "lost":
                kept.setdefault(f"{self._of(branch)} ({self._because(branch, version.number)})", []).append(
                    version.number
                )
        reasons = [f"{runs_text(runs_of(sorted(numbers)))}{reason}" for reason, numbers in kept.items()]
        more = f" and {len(reasons) - _MOST_REASONS:,} more reasons" if len(reasons) > _MOST_REASONS else ""
        stays = f"{', '.join(reasons[:_MOST_REASONS])}{more}." if reasons else ""
        if not storing:
            return f"Which files store the matching rows is unknown.{stays and f' What keeps these rows: {stays}'}"
        removed = f"{len(storing & freed):,} of {pluralize(len(storing), 'file')} with matching rows"
        others = stays and f" What keeps the others: {stays}"
        return f"The next clean-up by the table's own settings removes {removed}.{others}{self._waiting()}"

    def _of(self, branch: str | None) -> str:
        return f" of {_history_name(branch, self.source)}" if branch and len(self.histories) > 1 else ""

    def _because(self, branch: str | None, number: int) -> str:
        row = self._outcomes.get((branch, number))
        refs = ", ".join(self._refs.get((branch, number), ()))
        reason = "not covered by the settings" if row is None else row["because"] or row["outcome"]
        return f"{reason}; {refs}" if refs and refs not in reason else reason

    @property
    def digest(self) -> str:
        """SHA-256, as hexadecimal text, of the request and of all numbers and evidence, without the time."""
        content = {
            "path": self.source.path,
            "where": self.where,
            "versions": [
                {name: str(value) for name, value in row.items()} for row in self.versions.to_arrow().to_pylist()
            ],
            "files": self.files.to_arrow().to_pylist(),
            "changelogs": self.changelogs.to_arrow().to_pylist(),
            "metadata": [
                {name: str(value) for name, value in row.items()} for row in self.metadata.to_arrow().to_pylist()
            ],
            "notes": self.notes,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

    def _versions(self) -> Frame:
        rows = []
        for branch, version in self.traced_versions:
            outcome = self._outcomes.get((branch, version.number), {})
            rows.append(
                {
                    "branch": branch,
                    "version": version.number,
                    "committed_at": version.committed_at,
                    "rows": version.rows,
                    "stored_rows": version.stored_rows,
                    "refs": list(self._refs.get((branch, version.number), ())),
                    "reason": version.reason,
                    "outcome": outcome.get("outcome"),
                    "because": outcome.get("because"),
                }
            )
        return self._frame(rows, frames.TRACED_VERSIONS, "Versions", "versions")

    def _files(self) -> Frame:
        known: dict[str, TracedFile] = {}
        named: dict[str, bool | None] = {}
        for history in self.histories.values():
            for path, file in history.files.items():
                if path not in known or (known[path].stored_rows or 0) < (file.stored_rows or 0):
                    known[path] = file
            named |= {path: value for path, value in history.bounds_name_value.items() if not named.get(path)}
        rows = [
            {
                "path": path,
                "evidence": file.evidence,
                "stored_rows": file.stored_rows,
                "bounds_name_value": named.get(path),
                "reason": file.reason,
            }
            for path, file in sorted(known.items())
        ]
        return self._frame(rows, frames.TRACED_FILES, "Data files", "files")

    def _changelogs(self) -> Frame:
        rows = [
            {
                "branch": branch,
                "version": file.version,
                "path": file.path,
                "rows": file.rows,
                "reason": file.reason,
                **self._clean_up(file.path, branch, [file.version]),
            }
            for branch, history in self.histories.items()
            for file in history.changelogs
        ]
        return self._frame(rows, frames.TRACED_CHANGELOGS, "Changelog files", "changelog files")

    def _metadata(self) -> Frame:
        times = {(branch, version.number): version.committed_at for branch, version in self.traced_versions}
        clean_up = self.source.format.maintenance.statistics_clean_up
        rows = []
        for branch, history in self.histories.items():
            numbers = [version.number for version in history.versions]
            for traced in history.metadata:
                file = traced.file
                if traced.columns == ():
                    continue
                needing = [number for number in numbers if file.first <= number <= file.last]
                rows.append(
                    {
                        "branch": branch,
                        "path": file.path,
                        "what": file.what,
                        "columns": traced.columns,
                        "first_version": file.first,
                        "last_version": file.last,
                        "since": times.get((branch, file.first)),
                        "reason": traced.reason,
                        **self._clean_up(file.path, branch, needing, by=clean_up),
                    }
                )
        return self._frame(rows, frames.TRACED_METADATA, "Metadata files", "metadata files")

    def _clean_up(
        self, path: str, branch: str | None, versions: Sequence[int], *, by: str | None = None
    ) -> dict[str, str | None]:
        """Return the outcome and its reason for a file that versions need, which the next clean-up may remove.

        Args:
            by: The name of the process that removes the file instead.
        """
        if by is not None:
            return {"outcome": None, "because": f"removed by {by}"}
        if self._retention is None:
            return {"outcome": None, "because": None}
        if path in _freed(self._retention):
            return {"outcome": "removed", "because": None}
        kept = [
            number
            for number in versions
            if self._outcomes.get((branch, number), {}).get("outcome") not in ("lost", None)
        ]
        if kept:
            return {"outcome": "kept", "because": f"version {kept[-1]}: {self._because(branch, kept[-1])}"}
        is_lost = bool(versions) and all((branch, number) in self._outcomes for number in versions)
        return {"outcome": "removed" if is_lost else None, "because": None}

    def _frame(self, rows: Sequence[Mapping[str, object]], schema: pa.Schema, title: str, noun: str) -> Frame:
        table = pa.Table.from_pylist(rows, schema)
        return Frame(
            table,
            title=f"{title} of {self.source.name} and rows where {self.where}",
            noun=noun,
            drawn=drawn_columns(table),
        )

    @property
    def unknown_reasons(self) -> Sequence[str]:
        """Return why rows of versions are unknown, a sentence for each reason."""
        versions: defaultdict[tuple[str, str | None], list[int]] = defaultdict(list)
        for branch, version in self.traced_versions:
            if version.reason:
                versions[version.reason, branch].append(version.number)
        reasons = [
            f"Not known in {runs_text(runs_of(numbers))}{self._of(branch)}: {reason.rstrip('.')}."
            for (reason, branch), numbers in versions.items()
        ]
        more = [f"Not known for {pluralize(len(reasons) - _MOST_REASONS, 'more reason')}; see `versions`."]
        return [*reasons[:_MOST_REASONS], *(more if len(reasons) > _MOST_REASONS else ())]


def trace(source: History, where: str, *, engine: str | SparkSession | None = None) -> Trace:
    """Return the places of rows of a condition; see `Table.trace`.

    Args:
        source: The table, or its branch that is open.
        engine: Reads the data files; as in `history_by`.
    """
    spark = sessions.session_of(engine, "trace rows")
    branches = source.format.branches
    own_branch = None if branches.main is None else source.branch or MAIN
    names = [*branches.names(), *branches.detached_heads()]

    def retention(now: datetime) -> Retention:
        """Return the effect of the table's own retention settings at a time, if nothing is committed before."""
        return retention_of(source.format, lifetimes, keep=None, keep_last=None, name=source.name, now=now)

    examined_at = datetime.now(UTC)
    sources: dict[str | None, History] = {own_branch: source}
    histories = {own_branch: trace_history(source, where, spark)}
    notes: list[str] = []
    for name in (name for name in names if name != own_branch):
        try:
            histories[name] = trace_history(branch := source.on_branch(name), where, spark)
        except SnapshotExplorerError as error:
            reason = without_period(error.message)
            notes.append(Message(f"The {_history_name(name, source)} could not be examined: ", reason, "."))
        else:
            sources[name] = branch
    refs, unknown_tags, unread_tags = _refs(sources, histories)
    notes += dict.fromkeys(unread_tags)
    notes += [
        f"In {runs_text(runs_of(numbers))}"
        f"{'' if branch in (None, own_branch) else f' of the {_history_name(branch, source)}'} "
        f"another column is called {name}; it was dropped or renamed, and its values were not examined."
        for branch, history in histories.items()
        for name, numbers in history.namesakes.items()
    ]
    notes += [
        f"The tag {tag} names version {version}, which is in no history that was examined."
        for tag, version in unknown_tags
    ]
    gaps = gaps_note(source.gaps(source.versions()), "their rows are unknown")
    notes += [] if source.listing.before_note is None else [source.listing.before_note]
    notes += [note for history in histories.values() for note in history.unread]
    is_complete = not notes and not gaps
    outcomes: Retention | None = None
    waiting: Callable[[], str] = str
    try:
        with source.format.storage.reading_once():
            lifetimes = source.lifetimes()
            outcomes = retention(examined_at)
    except SnapshotExplorerError as error:
        notes.append(Message("What retention would remove is unknown: ", without_period(error.message), "."))
    else:
        rest = _storing(histories) - _freed(outcomes)
        if rest and sum(len(history.files) for history in histories.values()) <= _MOST_TIMED_FILES:
            waiting = partial(_waiting, source, retention, rest, examined_at)
    return Trace(
        source,
        where,
        histories,
        examined_at=examined_at,
        refs=refs,
        retention=outcomes,
        waiting=waiting,
        own_branch=own_branch,
        notes=(*notes, *gaps),
        is_complete=is_complete,
    )


def _storing(histories: Mapping[str | None, TracedHistory]) -> frozenset[str]:
    """Return the data files and changelogs that store matching rows."""
    files = {path for history in histories.values() for path, file in history.files.items() if file.stored_rows}
    return frozenset(
        files.union(file.path for history in histories.values() for file in history.changelogs if file.rows)
    )


def _freed(retention: Retention) -> frozenset[str]:
    return frozenset(retention.freed.to_arrow()["path"].to_pylist())


def _waiting(source: History, retention: Callable[[datetime], Retention], files: frozenset[str], now: datetime) -> str:
    """Return a sentence on the first time at which retention removes all of these files, to the minute.

    A file that it removes at one time is also removed later. Empty if unknown.
    """
    minutes = _YEARS * 365 * 24 * 60

    def removes_all(minute: int) -> bool:
        return files <= _freed(retention(now + timedelta(minutes=minute)))

    try:
        with source.format.storage.reading_once():
            if not removes_all(minutes):
                return f" Without further commits, no clean-up of the next {_YEARS} years removes the last of them."
            first = bisect_left(range(minutes), x=True, key=removes_all)
    except SnapshotExplorerError:
        return ""
    time = format_utc(now + timedelta(minutes=first))
    return f" Without further commits, a clean-up from {time} on removes the last of them."


def _refs(
    sources: Mapping[str | None, History], histories: Mapping[str | None, TracedHistory]
) -> tuple[Mapping[tuple[str | None, int], Sequence[str]], Sequence[tuple[str, int]], Sequence[str]]:
    """Return the tags and branches that name each version, by branch, and the tags of versions in no history.

    The last are sentences on tags that cannot be read.
    """
    refs: defaultdict[tuple[str | None, int], list[str]] = defaultdict(list)
    known: set[tuple[str, int]] = set()
    unknown: set[tuple[str, int]] = set()
    unread: list[str] = []
    for branch, history in histories.items():
        numbers = {version.number for version in history.versions}
        try:
            tags = sources[branch].format.tags()
        except UNREADABLE as error:
            unread.append(Message("The tags could not all be read: ", without_period(error.message), "."))
            tags = {}
        for tag, version in tags.items():
            if version in numbers:
                refs[branch, version].append(f"tag {tag}")
            (known if version in numbers else unknown).add((tag, version))
        if branch is not None and history.versions:
            refs[branch, history.versions[-1].number].append(_history_name(branch, sources[branch]))
    return refs, sorted(unknown - known), unread


def _history_name(branch: str, source: History) -> str:
    """Return the name of a history: a branch, or the snapshot that no branch leads to."""
    return f"{'snapshot' if branch in source.format.branches.detached_heads() else 'branch'} {branch}"


def drawn_columns(rows: pa.Table) -> tuple[str, ...]:
    """Return the columns to draw: columns with values, and columns whose nulls mean that nothing was checked."""
    filled = frozenset(non_empty_columns(rows))
    return tuple(name for name in rows.column_names if name in filled or name in _NUMBERS)


_NUMBERS = ("rows", "stored_rows", "bounds_name_value")
