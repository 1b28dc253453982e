"""Requests for views, their results, and the cache of snapshots and comparisons that views read."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, TypeVar

import pyarrow as pa

from snapshot_explorer.analysis.compare import Comparison
from snapshot_explorer.analysis.diff import RowDiff, RowDiffPlan, row_diff
from snapshot_explorer.analysis.health import Health
from snapshot_explorer.analysis.health.symptoms import Symptom
from snapshot_explorer.analysis.retention import Orphans, Verification
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.text import format_utc
from snapshot_explorer.history import history_of
from snapshot_explorer.jupyter.explorer.contents.grid_rows import GridRows
from snapshot_explorer.lake.pair_diff import diff
from snapshot_explorer.lake.table_twins import Twins, twins
from snapshot_explorer.results import Frame
from snapshot_explorer.table import Snapshot, Table, open_table
from snapshot_explorer.view import Drawing

_Result = TypeVar("_Result")

DRAWN = 50
"""Rows that are drawn where no grid scrolls, and offered for blame."""
_KEPT = 6
"""Cached snapshots, comparisons and other results: each may hold the files of a whole version."""
_TIMES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRequest:
    """A request for a view: the values of the state when it was made."""

    name: str
    """The variable that holds the table, for lines of code."""
    values: dict[str, Any]
    """The traits of the state that the view depends on."""
    commit: pa.Table | None = None
    """COMMITS of B, as far as it has been read."""
    commits: pa.Table | None = None
    """COMMITS of all versions, newest first."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewResult:
    """The content of a view."""

    drawing: Drawing
    """Its content as a drawing."""
    code: str
    """The Python that returns the same."""
    source: str
    """Its origin: path, version, time."""
    answer: str = ""
    """The text that the page shows in place of the title of the drawing: the answer first."""
    suggested_key: str | None = None
    """A column that may identify the rows that were compared without a key."""
    shares: tuple[tuple[str, int], ...] = ()
    """The parts of a bar above the rest, with how many files each counts."""
    headline: Mapping[str, Any] | None = None
    """The record that the page shows in place of the title, for a commit by `commit_list.commit_rows`."""
    findings: tuple[Symptom, ...] = ()
    """What went wrong, which the page lists in place of the first two parts of the drawing for each."""
    choices: tuple[tuple[str, str], ...] = ()
    """The items that can be selected for details, such as manifests or rows: label and value."""
    grid: GridRows | None = None
    """The rows of its grid, which a page can scroll, sort and filter."""
    columns: tuple[tuple[str, str, bool], ...] = ()
    """The columns to choose from: name, type, whether it is shown."""
    tiles: Sequence[Mapping[str, Any]] = ()
    """How the values of columns moved; see `distributions`."""
    picture: str = ""
    """A picture as SVG, whose texts are escaped; empty without one."""
    is_live: bool = False
    """Whether reading is so fast that a condition filters while it is typed."""
    is_announcement: bool = False
    """Whether it only announces how much would be read: a button reads it."""

    @property
    def page_drawing(self) -> Drawing:
        """Return the drawing without the findings, which the page lists itself."""
        return replace(self.drawing, parts=self.drawing.parts[2 * len(self.findings) :])


@dataclass(slots=True)
class SnapshotCache:
    """A table, with the snapshots and comparisons used last. Safe from several threads."""

    table: Table
    """The table."""
    variables: Mapping[str, object] | None = None
    """The notebook's variables, which may hold other tables; None without a notebook."""
    _kept: OrderedDict[Hashable, Any] = field(default_factory=OrderedDict)
    _row_diff: tuple[Hashable, RowDiff] | None = None
    _times: dict[int, str] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    def at(self, version: int) -> Snapshot:
        """Return the snapshot of a version, which keeps the metadata that it has read."""
        current = self.table.current
        return current if version == current.version else self._keep(("at", version), lambda: self.table.at(version))

    def compare(self, a: int, b: int) -> Comparison:
        """Return the comparison of two versions, which caches its reads."""
        return self._keep(("compare", a, b), lambda: self.table.compare(a, b))

    def health(self, version: int) -> Health:
        """Return the health of a version, read again after files were looked for."""
        checked = history_of(self.table).cached.readability

        def read() -> tuple[pa.Table, Health]:
            # What was found is kept with it, so that no later one has its address.
            return checked, self.table.health(version, metadata_only=True)

        return self._keep(("health", version, id(checked)), read)[1]

    def row_count(self, version: int) -> int:
        """Return the number of rows of a version; reads them if they are merged."""
        return self._keep(("rows", version), self.at(version).count)

    def files_read(self, part: str, arguments: tuple[Any, ...], times: int) -> Verification | Orphans | Frame:
        """Return the result of `verify`, `orphans` or `duplicates` of a version, read again when `times` increases."""

        def read() -> Verification | Orphans | Frame:
            if part == "duplicates":
                return self.at(arguments[0]).duplicates(list(arguments[1]) or None)
            result: Verification | Orphans = getattr(self.table, part)(*arguments)
            return result

        return self._keep((part, arguments, times), read)

    def other(self, text: str) -> Snapshot:
        """Return a version of another table: of a variable or a path, with a ref behind @; else the newest."""

        def open_other() -> Snapshot:
            table, ref = self._other_table(text)
            return table.at(ref or "latest")

        return self._keep(("other", text), open_other)

    def _other_table(self, text: str) -> tuple[Table, str]:
        name, at, ref = text.rpartition("@")
        if not at or "/" in ref:
            name, ref = text, ""
        table = (self.variables or {}).get(name)
        return table if isinstance(table, type(self.table)) else open_table(name), ref

    def twins(self, text: str) -> Twins:
        """Return which versions of another table name the same files; by default of the other tree in the folder."""
        return self._keep(
            ("twins", text, self.table.current.version),
            lambda: twins(self.table, self._other_table(text)[0] if text else None),
        )

    def diff_plan(self, a: int, b: int, key: tuple[str, ...], other: str = "") -> RowDiffPlan:
        """Return the plan of a row diff of two versions, or of B and another table; by default by the primary key."""

        def planned() -> RowDiffPlan:
            if other:
                return diff(self.at(b), self.other(other), key or None, preview=True)
            return self.table.diff_rows(a, b, key or None, preview=True)

        return self._keep(("plan", a, b, key, other), planned)

    def known_row_diff(self, a: int, b: int, key: tuple[str, ...], other: str = "") -> RowDiff | None:
        """Return the row diff if it is cached. Only the last one is, since its rows may be many."""
        kept = self._row_diff
        return kept[1] if kept is not None and kept[0] == (a, b, key, other) else None

    def row_diff(self, a: int, b: int, key: tuple[str, ...], other: str = "") -> RowDiff:
        """Return the row diff that `diff_plan` plans; reads rows unless it is kept."""
        known = self.known_row_diff(a, b, key, other)
        if known is None:
            self._row_diff = None  # before the rows of another are held
            known = row_diff(self.diff_plan(a, b, key, other))
            self._row_diff = ((a, b, key, other), known)
        return known

    def forget(self) -> None:
        """Clear the cache."""
        with self._lock:
            self._row_diff = None
            self._kept.clear()
            self._times.clear()

    def cited(self, *versions: int | None) -> str:
        """Return the origin of a view: the table's path, the versions, and when they were committed."""
        versions_text = []
        for version in dict.fromkeys(version for version in versions if version is not None):
            time = self._times.get(version) or self._time(version)
            versions_text.append(f"version {version}" + (f" of {time}" if time else ""))
        return ", ".join([self.table.path, " and ".join(versions_text)] if versions_text else [self.table.path])

    def _time(self, version: int) -> str:
        """Return when a version was committed; empty if that is unknown."""
        try:
            time = history_of(self.table).committed_at([version])[0]
        except SnapshotExplorerError:
            return ""
        text = format_utc(time)
        if len(self._times) < _TIMES:
            self._times[version] = text
        return text

    def _keep(self, key: Hashable, make: Callable[[], _Result]) -> _Result:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                kept: _Result = self._kept[key]
                return kept
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made
