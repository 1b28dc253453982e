"""`Trace`: where rows of a condition still are, what that stands on, and what was not looked at. Draws itself."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from snapshot_explorer import frames
from snapshot_explorer.frames import Frame
from snapshot_explorer.model import capitalized, runs_of, runs_text
from snapshot_explorer.render import Code, Drawing, Line, Pairs, Part, mimebundle, text
from snapshot_explorer.render.cells import counted, moment
from snapshot_explorer.rows.trace import METADATA, MISSING, READ, UNREADABLE_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from snapshot_explorer.retention import Retention
    from snapshot_explorer.rows.trace import TracedFile, TracedHistory, TracedVersion

_NOT_COVERED = (
    "Not looked at: changelog and change data files, files that no version names, values in old metadata files, and "
    "copies of the table elsewhere."
)
_MOST_REASONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceContext:
    """What a trace was asked, and when."""

    path: str
    name: str
    format: str
    where: str
    call: str
    examined_at: datetime
    """Aware, UTC."""


class Trace:
    """Where rows of a condition still are. Draws itself.

    `verdict` says no more than was looked at: a version or a file that could not be read is never one without matching
    rows.
    """

    def __init__(
        self,
        context: TraceContext,
        histories: Mapping[str | None, TracedHistory],
        *,
        refs: Mapping[tuple[str | None, int], Sequence[str]],
        retention: Retention | None,
        own_branch: str | None,
        notes: Sequence[str],
        is_complete: bool,
    ) -> None:
        """Create a result. Use `Table.trace` to get one.

        Args:
            histories: By branch; None in a format without branches.
            refs: The tags and branches that name a version.
            retention: What the table's own settings would remove; None if unknown.
            own_branch: The branch that `retention` is about.
            notes: What could not be examined, a sentence each.
            is_complete: Whether everything else was examined.
        """
        self._context = context
        self._notes = tuple(notes)
        self._found = [(branch, version) for branch, history in histories.items() for version in history.versions]
        self._histories = histories
        outcomes = (
            {} if retention is None else {row["version"]: row for row in retention.versions.to_arrow().to_pylist()}
        )
        self._outcomes = {(own_branch, number): row for number, row in outcomes.items()}
        self._retention = retention
        self._refs = refs
        self.examined_at = context.examined_at
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
                where = f" of branch {branch}" if branch else ""
                kept.setdefault(f"{where} ({self._because(branch, version.number)})", []).append(version.number)
        reasons = [f"{runs_text(runs_of(sorted(numbers)))}{reason}" for reason, numbers in kept.items()]
        more = f" and {len(reasons) - _MOST_REASONS:,} more reasons" if len(reasons) > _MOST_REASONS else ""
        removed = f"{len(storing & freed):,} of {counted(len(storing), 'file')} with matching rows"
        stays = f" What keeps others: {', '.join(reasons[:_MOST_REASONS])}{more}." if reasons else ""
        return f"The next clean-up by the table's own settings removes {removed}.{stays}"

    def _because(self, branch: str | None, number: int) -> str:
        row = self._outcomes.get((branch, number))
        refs = ", ".join(self._refs.get((branch, number), ()))
        reason = "not covered by the settings" if row is None else row["because"] or row["outcome"]
        return f"{reason}; {refs}" if refs and refs not in reason else reason

    @property
    def digest(self) -> str:
        """SHA-256, as hexadecimal text, of what was asked and of all numbers and evidence, without the time."""
        content = {
            "path": self._context.path,
            "where": self._context.where,
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
            title=f"Versions of {self._context.name} and rows where {self._context.where}",
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
            title=f"Data files of {self._context.name} and rows where {self._context.where}",
            noun="files",
            drawn=_drawn(table),
        )

    def drawing(self) -> Drawing:
        """Return the result as a drawing: the verdict, what it stands on, and what was not looked at."""
        files = self.files.to_arrow().to_pylist()
        evidence = {word: sum(row["evidence"] == word for row in files) for word in _WORDS}
        named = [row["bounds_name_value"] for row in files]
        statistics = f"those of {counted(named.count(True), 'file')}"
        statistics += f"; not checked: {named.count(None):,}" if None in named else ""
        facts: list[tuple[str, object]] = [
            ("format", self._context.format),
            ("where", self._context.where),
            ("examined", moment(self.examined_at)),
            ("versions", f"{len(self._found):,}"),
            (
                "data files",
                ", ".join(f"{count:,} {_WORDS[word]}" for word, count in evidence.items() if count) or "none",
            ),
            ("statistics that name the value", statistics),
            ("retention", self.holds),
            ("digest", f"sha256:{self.digest}"),
            ("call", Code(self._context.call)),
        ]
        reasons = list(dict.fromkeys(version.reason for _, version in self._found if version.reason))
        unknown = [Line(f"Not known: {reason.rstrip('.')}.") for reason in reasons[:_MOST_REASONS]]
        notes = [Line(note) for note in (*self._notes, _NOT_COVERED)]
        versions = self.versions.to_arrow()
        holding = versions.filter(
            pa.array([bool(version.rows or version.stored_rows) for _, version in self._found], pa.bool_())
        )
        shown = Frame(holding, title="", noun="versions with matching rows", drawn=_drawn(holding))
        parts: list[Part] = [Line(self.verdict), Pairs(tuple(facts)), *unknown, *notes]
        return Drawing(
            title=f"Trace of rows in {self._context.name}",
            parts=(*parts, *shown.drawing().parts) if len(holding) else tuple(parts),
        )

    def __repr__(self) -> str:
        return text(self.drawing())

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return mimebundle(self.drawing())


def _drawn(rows: pa.Table) -> tuple[str, ...]:
    """Return the columns to draw: those with values, and those whose nulls mean that nothing was checked."""
    filled = frozenset(frames.non_empty_columns(rows))
    return tuple(name for name in rows.column_names if name in filled or name in _NUMBERS)


_NUMBERS = ("rows", "stored_rows", "bounds_name_value")
_WORDS = {READ: "read", METADATA: "ruled out by metadata", MISSING: "missing", UNREADABLE_FILE: "unreadable"}
