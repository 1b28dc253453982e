"""`Trace`: where rows of a condition still are, what that stands on, and what was not looked at. Draws itself."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.errors import SnapshotExplorerError
from snapshot_explorer.frames import Frame
from snapshot_explorer.model import capitalized, gaps_note, runs_of, runs_text
from snapshot_explorer.render import Code, Drawable, Drawing, Line, Pairs, Part
from snapshot_explorer.render.cells import counted, moment
from snapshot_explorer.rows.trace import METADATA, MISSING, READ, UNREADABLE_FILE, trace_history

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from snapshot_explorer.retention import Retention
    from snapshot_explorer.rows.source import Source
    from snapshot_explorer.rows.trace import TracedFile, TracedHistory, TracedVersion

_NOT_COVERED = (
    "Not looked at: changelog and change data files, files that no version names, values in old metadata files, and "
    "copies of the table elsewhere."
)
_MOST_REASONS = 5


class Trace(Drawable):
    """Where rows of a condition still are. Draws itself.

    `verdict` says no more than was looked at: a version or a file that could not be read is never one without matching
    rows.
    """

    def __init__(  # noqa: PLR0913 - what was examined, each part stated
        self,
        source: Source,
        where: str,
        histories: Mapping[str | None, TracedHistory],
        *,
        examined_at: datetime,
        refs: Mapping[tuple[str | None, int], Sequence[str]],
        retention: Retention | None,
        own_branch: str | None,
        notes: Sequence[str],
        is_complete: bool,
    ) -> None:
        """Create a result. Use `Table.trace` to get one.

        Args:
            source: The table, or its branch that is open.
            histories: By branch; None in a format without branches.
            refs: The tags and branches that name a version.
            retention: What the table's own settings would remove; None if unknown.
            own_branch: The branch that `retention` is about.
            notes: What could not be examined, a sentence each.
            is_complete: Whether everything else was examined.
        """
        self._source = source
        self._where = where
        self._notes = tuple(notes)
        self._found = [(branch, version) for branch, history in histories.items() for version in history.versions]
        self._histories = histories
        outcomes = (
            {} if retention is None else {row["version"]: row for row in retention.versions.to_arrow().to_pylist()}
        )
        self._outcomes = {(own_branch, number): row for number, row in outcomes.items()}
        self._retention = retention
        self._refs = refs
        self.examined_at = examined_at
        """When the table was examined, aware, UTC."""
        unknown = any(version.rows is None or version.stored_rows is None for _, version in self._found)
        self.is_complete = is_complete and not unknown
        """Whether every version and every data file of its histories was examined."""
        self.versions = self._versions()
        """TRACED_VERSIONS: every version, oldest first."""
        self.files = self._files()
        """TRACED_FILES: every data file that a version has."""

    @property
    def verdict(self) -> str:
        """What was found, in a sentence or two."""
        live = [version for _, version in self._found if version.rows]
        storing = [row for row in self.files.to_arrow().to_pylist() if row["stored_rows"]]
        files = counted(len(storing), "data file")
        if live:
            numbers = runs_text(runs_of(sorted({version.number for version in live})))
            is_one = len({version.number for version in live}) == 1
            rest = "" if self.is_complete else " Other versions or files could not be examined."
            verb = "returns" if is_one else "return"
            return f"{capitalized(numbers)} {verb} matching rows. {self._since(live)}{rest}"
        if storing:
            verb = "stores" if len(storing) == 1 else "store"
            versions = "No version" if self.is_complete else "No version that could be examined"
            return (
                f"{versions} returns a matching row, but {files} {verb} some that are deleted or cannot be read back."
            )
        if not self.is_complete:
            return "No matching row was found, but not everything could be examined: this proves nothing."
        return "No version returns a matching row, and no data file of a version stores one."

    def _since(self, live: Sequence[TracedVersion]) -> str:
        first = min(live, key=lambda version: version.number)
        history = next(history for history in self._histories.values() if first in history.versions)
        before = [version for version in history.versions if version.number < first.number]
        time = "" if first.committed_at is None else f", of {moment(first.committed_at)}"
        is_certain = before[-1].rows == 0 if before else history.begins_with_first
        return f"They are there since version {first.number}{time}{'' if is_certain else ', or earlier'}."

    @property
    def holds(self) -> str:
        """What keeps matching rows from being removed, in a sentence; or what would remove them."""
        storing = {row["path"] for row in self.files.to_arrow().to_pylist() if row["stored_rows"]}
        holding = [(branch, version) for branch, version in self._found if version.rows or version.stored_rows]
        if not storing and not holding:
            return "No file with matching rows is known."
        if self._retention is None:
            return "What the table's retention settings would remove is unknown."
        freed = set(self._retention.freed.to_arrow()["path"].to_pylist())
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
        removed = f"{len(storing & freed):,} of {counted(len(storing), 'file')} with matching rows"
        stays = f" What keeps others: {', '.join(reasons[:_MOST_REASONS])}{more}." if reasons else ""
        return f"The next clean-up by the table's own settings removes {removed}.{stays}"

    def _of(self, branch: str | None) -> str:
        return f" of branch {branch}" if branch and len(self._histories) > 1 else ""

    def _because(self, branch: str | None, number: int) -> str:
        row = self._outcomes.get((branch, number))
        refs = ", ".join(self._refs.get((branch, number), ()))
        reason = "not covered by the settings" if row is None else row["because"] or row["outcome"]
        return f"{reason}; {refs}" if refs and refs not in reason else reason

    @property
    def digest(self) -> str:
        """SHA-256, as hexadecimal text, of what was asked and of all numbers and evidence, without the time."""
        content = {
            "path": self._source.path,
            "where": self._where,
            "versions": [
                {name: str(value) for name, value in row.items()} for row in self.versions.to_arrow().to_pylist()
            ],
            "files": self.files.to_arrow().to_pylist(),
            "notes": self._notes,
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode()).hexdigest()

    def _versions(self) -> Frame:
        rows = []
        for branch, version in self._found:
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
        table = pa.Table.from_pylist(rows, frames.TRACED_VERSIONS)
        return Frame(
            table,
            title=f"Versions of {self._source.name} and rows where {self._where}",
            noun="versions",
            drawn=_drawn(table),
        )

    def _files(self) -> Frame:
        known: dict[str, TracedFile] = {}
        named: dict[str, bool | None] = {}
        for history in self._histories.values():
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
        table = pa.Table.from_pylist(rows, frames.TRACED_FILES)
        return Frame(
            table,
            title=f"Data files of {self._source.name} and rows where {self._where}",
            noun="files",
            drawn=_drawn(table),
        )

    @property
    def _unknown(self) -> Sequence[str]:
        """Return why rows of versions are unknown, a sentence for each reason."""
        versions: defaultdict[tuple[str, str | None], list[int]] = defaultdict(list)
        for branch, version in self._found:
            if version.reason:
                versions[version.reason, branch].append(version.number)
        reasons = [
            f"Not known in {runs_text(runs_of(numbers))}{self._of(branch)}: {reason.rstrip('.')}."
            for (reason, branch), numbers in versions.items()
        ]
        more = [f"Not known for {counted(len(reasons) - _MOST_REASONS, 'more reason')}; see `versions`."]
        return [*reasons[:_MOST_REASONS], *(more if len(reasons) > _MOST_REASONS else ())]

    def drawing(self) -> Drawing:
        """Return the result as a drawing: the verdict, what it stands on, and what was not looked at."""
        files = self.files.to_arrow().to_pylist()
        evidence = {word: sum(row["evidence"] == word for row in files) for word in _WORDS}
        named = [row["bounds_name_value"] for row in files]
        statistics = f"those of {counted(named.count(True), 'file')}"
        statistics += f"; not checked: {named.count(None):,}" if None in named else ""
        facts: list[tuple[str, object]] = [
            ("format", self._source.format.name),
            ("where", self._where),
            ("examined", moment(self.examined_at)),
            ("versions", f"{len(self._found):,}"),
            (
                "data files",
                ", ".join(f"{count:,} {_WORDS[word]}" for word, count in evidence.items() if count) or "none",
            ),
            ("statistics that name the value", statistics),
            ("retention", self.holds),
            ("digest", f"sha256:{self.digest}"),
            ("call", Code(f"{self._source.opened}.trace({self._where!r})")),
        ]
        notes = [Line(note) for note in (*self._unknown, *self._notes, _NOT_COVERED)]
        versions = self.versions.to_arrow()
        holding = versions.filter(
            pa.array([bool(version.rows or version.stored_rows) for _, version in self._found], pa.bool_())
        )
        # The lines above state reason and because.
        drawn = tuple(name for name in _drawn(holding) if name not in ("reason", "because"))
        shown = Frame(holding, title="", noun="versions with matching rows", drawn=drawn)
        parts: list[Part] = [Line(self.verdict), Pairs(tuple(facts)), *notes]
        return Drawing(
            title=f"Trace of rows in {self._source.name}",
            parts=(*parts, *shown.drawing().parts) if len(holding) else tuple(parts),
        )


def trace(
    source: Source,
    where: str,
    *,
    own_branch: str | None,
    branches: Mapping[str, Callable[[], Source]],
    retention: Callable[[], Retention],
) -> Trace:
    """Return where rows of a condition still are; see `Table.trace`.

    Args:
        source: The table, or its branch that is open.
        own_branch: The name of that branch; None in a format without branches.
        branches: The other branches, by name.
        retention: Returns what the table's own settings would remove.
    """
    examined_at = datetime.now(UTC)
    sources = {own_branch: source}
    histories = {own_branch: trace_history(source, where)}
    notes: list[str] = []
    for name, branch_source in branches.items():
        try:
            histories[name] = trace_history(branch := branch_source(), where)
        except SnapshotExplorerError as error:
            notes.append(f"The branch {name} could not be examined: {str(error).rstrip('.')}.")
        else:
            sources[name] = branch
    refs, unknown_tags = _refs(sources, histories)
    notes += [
        f"In {runs_text(runs_of(numbers))}{'' if branch in (None, own_branch) else f' of the branch {branch}'} another "
        f"column is called {name}; it was dropped or renamed, and its values were not examined."
        for branch, history in histories.items()
        for name, numbers in history.namesakes.items()
    ]
    notes += [
        f"The tag {tag} names version {version}, which is in no history that was examined."
        for tag, version in unknown_tags
    ]
    gaps = gaps_note(source.gaps(source.versions()), "their rows are unknown")
    is_complete = not notes and not gaps
    outcomes = None
    try:
        outcomes = retention()
    except SnapshotExplorerError as error:
        notes.append(f"What retention would remove is unknown: {str(error).rstrip('.')}.")
    return Trace(
        source,
        where,
        histories,
        examined_at=examined_at,
        refs=refs,
        retention=outcomes,
        own_branch=own_branch,
        notes=(*notes, *gaps),
        is_complete=is_complete,
    )


def _refs(
    sources: Mapping[str | None, Source], histories: Mapping[str | None, TracedHistory]
) -> tuple[Mapping[tuple[str | None, int], Sequence[str]], Sequence[tuple[str, int]]]:
    """Return the tags and branches that name each version, by branch, and the tags of versions in no history."""
    refs: defaultdict[tuple[str | None, int], list[str]] = defaultdict(list)
    known: set[tuple[str, int]] = set()
    unknown: set[tuple[str, int]] = set()
    for branch, history in histories.items():
        numbers = {version.number for version in history.versions}
        for tag, version in sources[branch].format.tags().items():
            if version in numbers:
                refs[branch, version].append(f"tag {tag}")
            (known if version in numbers else unknown).add((tag, version))
        if branch is not None and history.versions:
            refs[branch, history.versions[-1].number].append(f"branch {branch}")
    return refs, sorted(unknown - known)


def _drawn(rows: pa.Table) -> tuple[str, ...]:
    """Return the columns to draw: those with values, and those whose nulls mean that nothing was checked."""
    filled = frozenset(frames.non_empty_columns(rows))
    return tuple(name for name in rows.column_names if name in filled or name in _NUMBERS)


_NUMBERS = ("rows", "stored_rows", "bounds_name_value")
_WORDS = {READ: "read", METADATA: "ruled out by metadata", MISSING: "missing", UNREADABLE_FILE: "unreadable"}
