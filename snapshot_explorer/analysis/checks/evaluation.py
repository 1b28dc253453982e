"""The evaluation of rules on one table. A rule that cannot be evaluated is not checked, and never passes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from snapshot_explorer.analysis.checks.result import CheckLine, State
from snapshot_explorer.analysis.checks.rules import MEASURES, PREVIOUS, CheckCondition
from snapshot_explorer.analysis.compare.schemas import compare_schemas
from snapshot_explorer.analysis.health import RHYTHM_COMMITS, rhythm
from snapshot_explorer.analysis.profile import table_anomalies
from snapshot_explorer.analysis.profile.column_numbers import read_totals, rows_note
from snapshot_explorer.analysis.retention import read_readability
from snapshot_explorer.analysis.rows.duplicates import duplicates
from snapshot_explorer.core.errors import (
    CorruptTableError,
    MissingFileError,
    SnapshotExplorerError,
    SnapshotNotFoundError,
)
from snapshot_explorer.core.records import MAINTENANCE_KINDS, capitalized, gaps_text
from snapshot_explorer.core.refs import Version
from snapshot_explorer.core.safe_text import sanitize
from snapshot_explorer.core.single_flight import cached_property
from snapshot_explorer.core.text import list_names, pluralize
from snapshot_explorer.formats.unread_versions import unread_notes
from snapshot_explorer.history import CommitFilter, expected_reasons, naming_renamed_columns, read_history

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa

    from snapshot_explorer.analysis.checks.rules import Rule
    from snapshot_explorer.analysis.checks.settings import CheckSettings
    from snapshot_explorer.core.records import Gap
    from snapshot_explorer.history import History

_NAMED = 3
"""The most findings that a sentence names."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    is_ok: bool | None
    """None if the rule could not be evaluated."""
    found: str
    version: int | None = None


def check_table(name: str, history: History, settings: CheckSettings) -> tuple[CheckLine, ...]:
    """Return a line for each rule of the settings.

    Args:
        name: The name of the table in the lines.
        history: The history of the table.
        settings: The rules, and the time at which they are judged.
    """
    judged = _CheckedTable(history, settings)
    with history.table_format.storage.keeping_immutable():
        return tuple(_line(name, judged, rule) for rule in settings.rules)


def failed_opening(name: str, error: SnapshotExplorerError, settings: CheckSettings) -> tuple[CheckLine, ...]:
    """Return a line for each rule of a table that cannot be opened: `unreadable` fails, nothing else was checked."""
    return tuple(
        CheckLine(table=name, rule=str(rule), state="failed" if rule == "unreadable" else None, found=error.message)
        for rule in settings.of_table(name).rules
    )


def _line(name: str, judged: _CheckedTable, rule: Rule) -> CheckLine:
    try:
        finding = judged.find(rule)
    except (CorruptTableError, MissingFileError) as error:
        finding = _Finding(is_ok=False if rule == "unreadable" else None, found=error.message)
    except SnapshotExplorerError as error:
        finding = _Finding(is_ok=None, found=error.message)
    state: State | None = None if finding.is_ok is None else "passed" if finding.is_ok else "failed"
    return CheckLine(table=name, rule=str(rule), state=state, found=finding.found, version=finding.version)


class _CheckedTable:
    """A table at a time, what was committed in the window before, and the last commit before the window."""

    def __init__(self, history: History, settings: CheckSettings) -> None:
        self._history = history
        self._settings = settings

    def _commits(
        self, since: datetime | None = None, *, until: datetime, limit: int | None = None, maintenance: bool = True
    ) -> pa.Table:
        """Return COMMITS of a time span, newest first."""
        versions = self._history.between(None, since, until)
        chosen = CommitFilter(maintenance=maintenance)
        commits, _ = read_history(self._history.table_format, versions, chosen, limit)
        return self._history.open_branch.keep_commits(commits)

    def find(self, rule: Rule) -> _Finding:
        if isinstance(rule, CheckCondition):
            return self._of_condition(rule)
        if not len(self._newest):
            raise SnapshotNotFoundError("Nothing had been committed by then.")
        return {
            "late": self._lateness,
            "anomaly": self._anomalies,
            "schema-change": self._schema_changes,
            "unreadable": self._unreadable,
            "duplicates": self._duplicates,
        }[rule]()

    def _lateness(self) -> _Finding:
        commits = self._commits(until=self._settings.at, limit=RHYTHM_COMMITS, maintenance=False)
        result = rhythm((time for time in commits["committed_at"].to_pylist() if time is not None), self._settings.at)
        is_ok = None if result.pace is None else result.pace != "late"
        return _Finding(is_ok=is_ok, found=f"{_sentence(str(result))}", version=self._newest_version)

    def _anomalies(self) -> _Finding:
        if not self._window:
            return self._nothing_committed
        rules = self._settings.anomaly
        needed, known = rules.min_changes + 2, len(self._history.listing.reachable)
        if known < needed:
            return _Finding(
                is_ok=None, found=f"{pluralize(known, 'version')}, but a jump needs {needed} to compare with."
            )
        past = self._history.with_newest_state(is_newest_state=True)
        frame = table_anomalies(past, None, None, rules, None)
        unread = self._window & past.lifetimes().unread.keys()
        rows, expected = self._unexpected(
            [
                row
                for row in frame.to_arrow().to_pylist()
                if row["version"] in self._window and row["kind"] not in MAINTENANCE_KINDS
            ]
        )
        unknown = frame.title.partition("; ")[2]
        notes = [_sentence(unknown)] * bool(unknown) + list(frame.notes)
        notes += expected
        other = " other" if expected else ""
        jumping = f"No{other} number jumps in {pluralize(len(self._window) - len(unread), 'commit')}."
        if rows:
            # What happened to rows is named before what happened to their files.
            rows = sorted(rows, key=lambda row: (-row["version"], row["measure"] in ("files", "size_bytes")))
            jumping = _named([f"Version {row['version']}: {row['rule']}" for row in rows], "jump")
        is_ok = None if unread and not rows else not rows
        return _Finding(is_ok=is_ok, found=" ".join([jumping, *notes]), version=_first(rows))

    def _schema_changes(self) -> _Finding:
        if not self._window:
            return self._nothing_committed
        versions = sorted([*self._window, *(version for version in [self._before] if version is not None)])
        schemas = self._history.schemas(versions)
        changes = []
        for version, (a, b) in zip(versions[1:], pairwise(schemas), strict=True):
            changes += [{"version": version} | row for row in compare_schemas(a, b).to_pylist()]
        changes, expected = self._unexpected(changes[::-1])
        compared = [] if expected else [f"The schema is the same at {pluralize(len(versions), 'version')}."]
        if changes:
            compared = [_named([_change(row) for row in changes], "change")]
        return _Finding(is_ok=not changes, found=" ".join([*compared, *expected]), version=_first(changes))

    def _unreadable(self) -> _Finding:
        rows = read_readability(self._history).to_arrow().to_pylist()
        judged = {*self._window, self._newest_version}
        rows = [row for row in rows if row["version"] in judged]
        lost, expected = self._unexpected([row for row in rows if row["readable"] in ("no", "metadata")])
        unknown = [row for row in rows if row["readable"] is None]
        missing = [version for gap in self._gaps for first, last in gap.missing for version in range(first, last + 1)]
        if missing and not lost:
            return _Finding(is_ok=False, found=f"{capitalized(gaps_text(self._gaps))}.", version=missing[0])
        if lost or unknown:
            outcome = _named([f"Version {row['version']}: {row['reason']}" for row in lost or unknown], "version")
            outcome = " ".join([outcome, *expected])
            return _Finding(is_ok=False if lost else None, found=outcome, version=_first(lost or unknown))
        whole = sum(row["readable"] == "yes" for row in rows)
        outcome = " ".join([f"The files of {pluralize(whole, 'version')} exist.", *expected])
        return _Finding(is_ok=True, found=outcome)

    def _duplicates(self) -> _Finding:
        version = self._newest_version
        loaded, key = self._history.load(Version(number=version)).version, self._settings.key
        with naming_renamed_columns(self._history.table_format, lambda: loaded):
            frame = duplicates(loaded, key, None, title="Duplicates")
        return _Finding(is_ok=not frame.num_rows, found=frame.notes[0], version=version)

    def _of_condition(self, rule: CheckCondition) -> _Finding:
        numbers = self._numbers(rule.names)
        shown = ", ".join(f"{name} {_number(numbers[name])}" for name in rule.names)
        unknown = [name for name in rule.names if numbers[name] is None]
        counts = {"rows", f"{PREVIOUS}_rows", "added_rows", "removed_rows"} & set(rule.names)
        notes = rows_note(self._history.format, [self._newest_version]) if counts and len(self._newest) else ()
        if unknown:
            because = f", as {gaps_text(self._gaps)}" if self._gaps else ""
            judged = {*self._window, self._newest_version, self._before}
            reasons = {at: why for at, why in self._history.lifetimes().unread.items() if at in judged}
            sentences = (f"Unknown: {', '.join(unknown)}{because}.", *unread_notes(reasons))
            return _Finding(is_ok=None, found=" ".join(sentences))
        outcome = " ".join([_sentence(shown), *notes])
        return _Finding(is_ok=not rule.holds(numbers), found=outcome, version=self._newest_version)

    def _unexpected(self, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the rows of versions that the user does not expect, and a sentence on the others."""
        reasons = self._reasons
        expected = sorted({row["version"] for row in rows} & reasons.keys())
        named = list_names([f"version {version} ({sanitize(reasons[version])})" for version in expected], _NAMED)
        return [row for row in rows if row["version"] not in reasons], [f"Expected: {named}."] * bool(expected)

    @cached_property
    def _reasons(self) -> Mapping[int, str]:
        """The reasons of the versions that the user expects to stand out."""
        expectations = (*self._history.open_branch.expected, *self._settings.expected)
        times = {
            item.version: next(iter(self._history.committed_at([item.version])))
            for item in expectations
            if item.version in self._history.listing.versions
        }
        return expected_reasons(expectations, times)

    def _numbers(self, names: Sequence[str]) -> Mapping[str, float | None]:
        is_whole = not self._gaps
        numbers: dict[str, float | None] = {"commits": len(self._window) if is_whole else None}
        for name in ("added_rows", "removed_rows"):
            values = self._window_commits[name].to_pylist()
            numbers[name] = sum(values) if is_whole and None not in values else None
        time = self._newest["committed_at"][0].as_py() if len(self._newest) else None
        numbers["age_hours"] = None if time is None else (self._settings.at - time) / _HOUR
        newest = self._newest_version if len(self._newest) else None
        for prefix, version in (("", newest), (f"{PREVIOUS}_", self._before)):
            for measure in MEASURES:
                if prefix + measure in names:
                    numbers[prefix + measure] = None if version is None else self._total(version, measure)
        return numbers

    def _total(self, version: int, measure: str) -> int | None:
        if measure == "rows":
            commit = self._history.format.commits([version])["total_rows"].to_pylist()[0]
            if commit is not None:
                return int(commit)
        totals = self._totals
        known = [] if totals is None else totals["version"].to_pylist()
        if totals is None or version not in known:
            return None
        value = totals["size_bytes" if measure == "bytes" else measure][known.index(version)].as_py()
        return None if value is None else int(value)

    @cached_property
    def _totals(self) -> pa.Table | None:
        return read_totals(self._history.format, self._history.lifetimes, self._history.versions())

    @cached_property
    def _window_commits(self) -> pa.Table:
        """The commits since the time of the settings: COMMITS, newest first."""
        return self._commits(self._settings.since, until=self._settings.at)

    @cached_property
    def _window(self) -> frozenset[int]:
        return frozenset(self._window_commits["version"].to_pylist())

    @cached_property
    def _gaps(self) -> tuple[Gap, ...]:
        """The gaps between the commits of the window, and before the first of them."""
        versions = self._history.listing.versions
        index = min((versions.index(version) for version in self._window if version in versions), default=len(versions))
        last = max(self._window, default=0)
        return self._history.gaps([version for version in versions[max(0, index - 1) :] if version <= last])

    @cached_property
    def _before(self) -> int | None:
        """The last version before the window."""
        until = self._settings.since - timedelta(milliseconds=1)
        versions = self._commits(until=until, limit=1)["version"].to_pylist()
        return versions[0] if versions else None

    @cached_property
    def _newest(self) -> pa.Table:
        """The newest commit at the time, if there is one."""
        if len(self._window_commits):
            return self._window_commits.slice(0, 1)
        return self._commits(until=self._settings.at, limit=1)

    @property
    def _newest_version(self) -> int:
        return int(self._newest["version"][0].as_py())

    @property
    def _nothing_committed(self) -> _Finding:
        return _Finding(is_ok=True, found="Nothing was committed in this time.", version=None)


def _named(findings: Sequence[str], noun: str) -> str:
    more = len(findings) - _NAMED
    return "; ".join(findings[:_NAMED]) + (f"; and {pluralize(more, f'more {noun}')}" if more > 0 else "") + "."


def _change(row: Mapping[str, object]) -> str:
    types = " to ".join(str(row[name]) for name in ("before", "after") if row[name] is not None)
    return f"Version {row['version']}: {row['column'] or ''} {row['change']}".replace("  ", " ") + (
        f", {types}" if types else ""
    )


def _first(rows: Sequence[Mapping[str, object]]) -> int | None:
    return int(rows[0]["version"]) if rows else None  # type: ignore[call-overload]  # a version


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
