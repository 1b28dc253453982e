"""The state of an explorer, as one object that needs no browser: markers A and B, the tab, filters, what to load."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, get_args

import pyarrow as pa
from traitlets import Any as AnyTrait
from traitlets import Bool, Bunch, Dict, Enum, Float, HasTraits, Int, List, TraitError, Unicode, observe, validate

from snapshot_explorer.analysis.retention import LEVELS
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import MAINTENANCE_KINDS, Kind, Measure
from snapshot_explorer.core.refs import parse_time_bound
from snapshot_explorer.history import CommitFilter
from snapshot_explorer.jupyter.cost import ENGINES
from snapshot_explorer.jupyter.tables import is_variable_name
from snapshot_explorer.jupyter.zones import zone_of
from snapshot_explorer.results import PandasTypes

TABS = ("commit", "manifests", "compare", "rows", "data", "files", "branches", "health")
MEASURES: tuple[str, ...] = get_args(Measure)
COMPARED = ("overview", "partitions", "files", "schema", "properties", "commits", "another table", "twins")
PARTS = ("rows", "bisect", "blame", "load")
"""What the tabs of rows and of data show: their rows, or a question about them. Changed rows are neither bisected nor
loaded."""
ROW_KINDS = ("all", "inserted", "deleted", "updated")
HEALTH = ("health", "problems", "readability", "retention", "duplicates", "verify", "orphans")
READS: Mapping[str, tuple[str, ...]] = {"verify": ("level",), "orphans": ("older_than",), "duplicates": ("b", "key")}
"""The parts of the health that read much, which a button starts, and the traits that each depends on."""
FILE_VIEWS = ("list", "lifetimes", "partitions", "usage", "actions", "slices")
"""Views of files; the last two are pictures of metadata tables, which few formats have."""
FILTERS = ("kind", "operation", "user", "text", "since", "until", "maintenance", "recorded_times")
SETTABLE = (
    *("pinned", "tab", "measure", "anomalies", "zone", *FILTERS, "carried", "part", "compared", "row_kind"),
    *("hide_unchanged", "key", "other", "rows_where", "repair_name", "health", "engine", "types", "columns", "where"),
    *("load_limit", "variable", "file_view", "missing", "partition", "statistics", "keep", "keep_last", "level"),
    *("older_than", "follow", "playing"),
)
"""The traits of the state that a page sets and shows."""
WINDOW = 300
"""Versions that the timeline shows at first, the newest ones."""


class ExplorerState(HasTraits):
    """The state of one explorer. A click only sets traits, and the views observe them.

    Nothing here reads: `set_versions` receives the versions that were read.
    """

    a = Int(None, allow_none=True, help="The version that B is compared with; the one before B until it is set.")
    b = Int(None, allow_none=True, help="The version that is shown.")
    pinned = Bool(default_value=False, help="Whether A stays when B moves; otherwise A is the version before B.")
    tab = Enum(TABS, "commit", help="The selected view.")
    measure = Enum(MEASURES, "rows", help="What the timeline's bars and line count.")
    anomalies = Bool(default_value=False, help="Whether versions where a number jumps are marked in the timeline.")
    zone = Unicode("UTC", help="The zone in which times are shown beside UTC, such as Europe/Berlin, or local.")
    window = AnyTrait(None, help="The first and the last version that the timeline shows; None where there is none.")
    kind = Enum((None, *get_args(Kind)), None, allow_none=True, help="Only commits of this kind.")
    operation = Unicode("", help="Only commits with this word of the writer's own.")
    user = Unicode("", help="Only commits of a user whose name contains this text.")
    text = Unicode("", help="Only commits whose details contain this text.")
    since = Unicode("", help="Only commits at or after this time, such as @2026-11-01 or @3d.")
    until = Unicode("", help="Only commits at or before this time.")
    maintenance = Bool(default_value=True, help="Whether commits that change no data are shown.")
    recorded_times = Bool(default_value=False, help="Whether the times of a copied Delta table are its writers' own.")
    manifest = Unicode("", help="The manifest whose entries are shown.")
    carried = Bool(default_value=False, help="Whether manifests that are carried over are shown, however many.")
    part = Enum(PARTS, "rows", help="What the tabs of rows and of data show: the rows, or a question about them.")
    compared = Enum(COMPARED, "overview", help="The part of the comparison that is shown.")
    row_kind = Enum(ROW_KINDS, "all", help="The kind of changed rows that the comparison of rows shows.")
    hide_unchanged = Bool(default_value=False, help="Whether columns that no updated row changes are hidden.")
    key = List(Unicode(), help="The columns that identify a row; the primary key if there are none.")
    rows_read = AnyTrait(None, help="The versions and key whose rows are compared though it is much; see read_rows.")
    rows_counted = Int(None, allow_none=True, help="The version whose changed rows are counted by reading them.")
    other = Unicode("", help="The table that B is compared with: a variable or a path, and a version, such as copy@3.")
    rows_where = Unicode("", help="The condition on rows to blame, to trace or to repair, in SQL.")
    repair_name = Unicode("", help="The table's name in the engine that repairs it, such as lake.shop.orders.")
    health = Enum(HEALTH, "health", help="The part of the table's health that is shown.")
    engine = Enum(ENGINES, "pandas", help="The engine that loads rows.")
    types = Enum(get_args(PandasTypes), "arrow", help="The types of the columns that pandas gets.")
    columns = List(Unicode(), help="The columns to load; all if there are none.")
    where = Unicode("", help="The condition on rows to load, in SQL.")
    sort = Unicode("", help="The column that rows are sorted by; empty for the order in which they are read.")
    sort_descending = Bool(default_value=False, help="Whether the largest values of that column come first.")
    load_limit = Int(0, min=0, help="The maximum number of rows to load; 0 for all.")
    variable = Unicode("df", help="The variable that rows are loaded into.")
    file_view = Enum(
        FILE_VIEWS,
        "list",
        help="Files of B, or of all versions: their lifetimes, changes of partitions, what holds them.",
    )
    missing = Bool(default_value=False, help="Whether files are looked for, to mark those that are missing.")
    partition = Unicode("", help="Only files of partitions that contain this text.")
    statistics = Bool(default_value=False, help="Whether files are shown with the bounds of their values.")
    keep = Unicode("7d", help="The age up to which the retention what-if keeps versions.")
    keep_last = Int(0, min=0, help="The number of newest versions that it keeps at least; 0 for the table's setting.")
    level = Enum(LEVELS, "existence", help="What is looked at of each file that is verified.")
    older_than = Unicode("3d", help="The minimum age of orphaned files.")
    files_read = Dict(help="What was requested to be read, by part of the health; see read_files.")
    follow = Bool(default_value=False, help="Whether new commits are looked for every now and then.")
    interval = Float(5.0, min=0.2, help="Seconds between two looks.")
    playing = Bool(default_value=False, help="Whether B moves on by itself.")
    versions = AnyTrait((), help="All versions that are known, ascending.")
    readable = AnyTrait((), help="Those of them that can be loaded, ascending.")
    commits = AnyTrait(frames.COMMITS.empty_table(), help="COMMITS of the versions, newest first.")
    with_recorded_times = AnyTrait(help="Returns COMMITS with the times that writers recorded.")
    note = Unicode("", help="What the last action could not do; empty where all went well.")

    def set_versions(self, versions: Sequence[int], readable: Sequence[int], commits: pa.Table) -> None:
        """Set the versions that were read. Existing markers remain; B on the newest version moves with it.

        Args:
            versions: All versions, ascending.
            readable: The versions that can be loaded, ascending.
            commits: COMMITS of the versions, newest first; of very many only the newest.
        """
        before = self.versions
        was_newest = self.b is None or self.b in before[-1:]
        was_open = not before or self.window is None or self.window[1] in before[-1:]
        with self.hold_trait_notifications():
            self.versions, self.readable, self.commits = tuple(versions), tuple(readable), commits
            if not versions:
                self.a = self.b = None
                self.window, self.playing, self.pinned = None, False, False
                return
            if was_newest or self.b not in self.versions:
                self.b = (self.readable or self.versions)[-1]
            if not self.pinned or self.a not in self.versions:
                self.a, self.pinned = self.before_b, False
            self.window = self._window(follows=was_open)

    def _window(self, *, follows: bool) -> tuple[int, int]:
        """Return the window within the versions. A window that ended with the newest version still does."""
        known = self.versions
        if self.window is None:
            return known[-WINDOW:][0], known[-1]
        first, last = self.window
        if follows:
            return max(first, known[0]), known[-1]
        return max(min(first, known[-1]), known[0]), min(max(last, known[0]), known[-1])

    @property
    def shown(self) -> pa.Table:
        """Return the COMMITS that pass the filters and lie in the window, newest first."""
        return self.in_window(self.listed)

    def in_window(self, commits: pa.Table) -> pa.Table:
        """Return the COMMITS that lie in the window."""
        if self.window is None:
            return commits
        first, last = self.window
        version = commits["version"]
        return commits.filter(pc.and_(pc.greater_equal(version, first), pc.less_equal(version, last)))

    @property
    def listed(self) -> pa.Table:
        """Return the COMMITS of all versions that pass the filters, newest first."""
        passing = self.passing(self.commits)
        return self.with_recorded_times(passing) if self.recorded_times and self.with_recorded_times else passing

    def passing(self, commits: pa.Table) -> pa.Table:
        """Return the COMMITS that pass the filters."""
        chosen = CommitFilter(
            kind=self.kind,
            operation=self.operation or None,
            user=self.user or None,
            text=self.text or None,
            maintenance=self.maintenance or self.kind in MAINTENANCE_KINDS,
        )
        for name, compared in (("since", pc.greater_equal), ("until", pc.less_equal)):
            if text := getattr(self, name):
                limit = pa.scalar(_time(name, text), pa.timestamp("us", "UTC"))
                commits = commits.filter(compared(commits["committed_at"], limit))
        return chosen.passing(commits)

    @property
    def history_call(self) -> str:
        """Return the call of `Table.history` that returns the commits shown."""
        is_all = self.window in (None, (*self.versions[:1], *self.versions[-1:]))
        arguments = [] if is_all else [repr("{}..{}".format(*self.window))]
        filters = {name: getattr(self, name) for name in ("kind", "operation", "user", "text")}
        filters |= {name: _time_text(text) for name in ("since", "until") if (text := getattr(self, name))}
        arguments += [f"{name}={value!r}" for name, value in filters.items() if value]
        arguments += [] if self.maintenance or self.kind in MAINTENANCE_KINDS else ["maintenance=False"]
        arguments += ["recorded_times=True"] if self.recorded_times else []
        return f"history({', '.join(arguments)})"

    @property
    def before_b(self) -> int | None:
        """Return the version before B; B itself if it is the first."""
        neighbor = self._beside(self.b, -1, self.versions)
        return self.b if neighbor is None else neighbor

    def reveal(self, version: int | None) -> None:
        """Move the window, at its width, so that a version is in it."""
        if version is None or self.window is None or self.window[0] <= version <= self.window[1]:
            return
        known = self.versions
        width = max(1, bisect_right(known, self.window[1]) - bisect_left(known, self.window[0]))
        first = max(0, min(bisect_left(known, version) - width // 2, len(known) - width))
        self.window = (known[first], known[first + width - 1])

    def previous(self) -> None:
        """Move B to the previous one of the listed versions."""
        self.step("b", -1)

    def next(self) -> None:
        """Move B to the next one of the listed versions; play ends with the last."""
        self.step("b", 1)

    def swap(self) -> None:
        """Exchange A and B."""
        with self.hold_trait_notifications():
            self.a, self.b = self.b, self.a

    def mark(self, marker: str, version: int | None) -> None:
        """Set a marker. Once A is set, it no longer moves with B."""
        self.set_trait(marker, version)
        if marker == "a":
            self.pinned = version is not None

    def read_rows(self) -> None:
        """Compare the announced rows, whatever the cost."""
        self.rows_read = (*self.values("a", "b", "key"), "" if self.tab == "rows" else self.other)

    def count_rows(self) -> None:
        """Count the rows that the commit of B changed, by reading those that differ."""
        self.rows_counted = self.b

    def read_files(self) -> None:
        """Verify files, or find orphans or duplicates, by the selected part of the health; again if already done."""
        _, times = self.files_read.get(self.health, (None, 0))
        if names := READS.get(self.health):
            self.files_read = {**self.files_read, self.health: (self.values(*names), times + 1)}

    def reset_filters(self) -> None:
        """Show all commits again."""
        with self.hold_trait_notifications():
            for name in FILTERS:
                self.set_trait(name, self.traits()[name].default_value)

    def commit(self, version: int | None) -> pa.Table:
        """Return the row of COMMITS of a version; no row if it has not been read."""
        return self.commits.filter(pc.equal(self.commits["version"], version))

    def step(self, marker: str, by: int) -> None:
        """Move a marker to the previous or next one of the listed versions."""
        version = getattr(self, marker)
        neighbor = self._beside(version, by, self.listed["version"].to_pylist()[::-1])
        if neighbor is None:
            self.note = f"No version listed is {'older' if by < 0 else 'newer'} than {version}."
            self.playing = False
            return
        self.note = ""
        self.mark(marker, neighbor)
        self.reveal(neighbor)

    @staticmethod
    def _beside(version: int | None, by: int, ascending: Sequence[int]) -> int | None:
        """Return the next smaller or larger version, or None."""
        if version is None:
            return None
        at = bisect_left(ascending, version) - 1 if by < 0 else bisect_right(ascending, version)
        return ascending[at] if 0 <= at < len(ascending) else None

    @observe("a")
    def _pin(self, _change: Bunch) -> None:
        if self.a != self.before_b:
            self.pinned = True

    @observe("b", "pinned")
    def _follow_b(self, _change: Bunch) -> None:
        if not self.pinned:
            self.a = self.before_b

    @validate("a", "b")
    def _check_version(self, proposal: Bunch) -> int | None:
        version: int | None = proposal.value
        if version is None:
            return None
        at = bisect_left(self.versions, version)
        if self.versions and self.versions[at : at + 1] != (version,):
            first, last = self.versions[0], self.versions[-1]
            raise TraitError(f"Version {version} does not exist. Available: {first} to {last}. Choose one of these.")
        return version

    @validate("window")
    def _check_window(self, proposal: Bunch) -> tuple[int, int] | None:
        if proposal.value is None:
            return None
        try:
            first, last = (int(item) for item in proposal.value)
        except (TypeError, ValueError, OverflowError) as error:
            raise TraitError(f"window must be two versions, such as (3, 17), got {proposal.value!r}.") from error
        if first > last:
            raise TraitError(f"A window from version {first} to {last} is empty. It must begin before it ends.")
        return first, last

    @validate("since", "until")
    def _check_time(self, proposal: Bunch) -> str:
        text: str = proposal.value.strip()
        if text:
            try:
                _time(proposal.trait.name, text)
            except InvalidArgumentError as error:
                raise TraitError(str(error)) from error
        return text

    @validate("zone")
    def _check_zone(self, proposal: Bunch) -> str:
        name: str = proposal.value.strip() or "UTC"
        try:
            zone_of(name)
        except InvalidArgumentError as error:
            raise TraitError(str(error)) from error
        return name

    @validate("variable")
    def _check_variable(self, proposal: Bunch) -> str:
        name: str = proposal.value.strip()
        if not is_variable_name(name):
            raise TraitError(f"{name!r} cannot be the name of a variable. Use letters, digits and _.")
        return name

    def values(self, *names: str) -> tuple[Any, ...]:
        """Return the values of traits in a form that can be compared and stored."""
        traits = (getattr(self, name) for name in names)
        return tuple(tuple(value) if isinstance(value, list) else value for value in traits)


def _time_text(text: str) -> str:
    """Return a time as a ref."""
    return text if text.startswith("@") else f"@{text}"


def _time(name: str, text: str) -> datetime:
    """Return the time of `since` or `until`, written as in refs; the @ is optional."""
    time = parse_time_bound(_time_text(text), start=name == "since")
    if time is None:
        raise InvalidArgumentError(f"{text!r} is not a time. Write a time such as @2026-11-01 or @3d.")
    return time
