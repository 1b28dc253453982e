"""`Profile`: row count, nulls, minimum and maximum of columns at every version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.profile.anomalies import DEFAULT_RULES, AnomalyRules, jump_notes, jumps
from snapshot_explorer.analysis.profile.column_numbers import (
    LACKING,
    UNORDERED,
    ColumnNumbers,
    FileRanges,
    is_sortable,
    lacking_columns,
    ranges_of,
    rows_note,
    rows_over,
)
from snapshot_explorer.analysis.profile.exact_numbers import read_ranges
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import MAINTENANCE_KINDS, Gap
from snapshot_explorer.core.text import list_names
from snapshot_explorer.engines.collations import collation_of
from snapshot_explorer.engines.conditions import unknown_column
from snapshot_explorer.engines.spark import sessions
from snapshot_explorer.formats.unread_versions import Reasons, read_apart, readable_times, unread_notes
from snapshot_explorer.history import History, unread_commit_notes
from snapshot_explorer.history.lifetimes import delete_manifests, read_statistics
from snapshot_explorer.results import Frame, non_empty_columns
from snapshot_explorer.results.frame_result import FrameResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from snapshot_explorer.formats import TableFormat, TableVersion

_Numbers = tuple[tuple[int, ...], dict[str, pa.Table], tuple[str, ...]]
"""Versions, the numbers of each column at them, and notes on versions that cannot be read."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Profile(FrameResult):
    """The numbers of columns at versions. Draws itself as the PROFILE frame. Reads nothing."""

    columns: Mapping[str, pa.Table] = field(repr=False)
    """The numbers by column at each version: version, committed_at, rows, null_count, null_rate, min and max in the
    column's type, and bounds, as in PROFILE. Ascending by version."""
    call: str
    """The Python call that returns this result."""
    rules: AnomalyRules
    """The thresholds of a jump."""
    gaps: tuple[Gap, ...]
    """The gaps between the versions."""
    unread: tuple[str, ...] = ()
    """Why versions cannot be read; sentences."""

    @cached_property
    def frame(self) -> Frame:
        """Return the PROFILE frame, newest version first; of a version in the order of the columns."""
        parts = [_as_text(name, rows) for name, rows in self.columns.items()]
        rows = pa.concat_tables(parts) if parts else frames.PROFILE.empty_table()
        count = len(self.versions)
        indices = np.arange(len(rows)).reshape(-1, count) if count else np.zeros((0, 0), np.int64)
        rows = rows.take(pa.array(indices.T[::-1].ravel(), pa.int64()))
        bounds = pc.unique(rows["bounds"]).to_pylist()
        is_constant = len(bounds) == 1 and bounds[0] is not None
        drawn = non_empty_columns(rows, exclude=("bounds",) if is_constant else ())
        title = f"Columns of {self.name} over its versions"
        noun = "versions" if len(parts) == 1 else "rows, one for each column at each version"
        notes = (*jump_notes(self.gaps), *self.unread, *([f"Everywhere: {bounds[0]}."] if is_constant else []))
        return Frame(rows, title=title, noun=noun, drawn=drawn, notes=notes)

    @cached_property
    def anomalies(self) -> pa.Table:
        """Return the versions at which a number jumps, by `rules`: ANOMALIES, oldest first."""
        first = next(iter(self.columns.values()), None)
        totals = (
            {}
            if first is None
            else {"rows": first.select(["version", "committed_at"]).append_column("value", first["rows"])}
        )
        return jumps(totals, self.columns, self.rules, self.gaps)

    def __len__(self) -> int:
        return len(self.frame)


def profile_over(
    source: History,
    columns: Sequence[str] | None,
    between: Sequence[int] | None,
    *,
    exact: bool,
    call: str,
    rules: AnomalyRules = DEFAULT_RULES,
    engine: str | SparkSession | None = None,
) -> Profile:
    """Return the numbers of columns at versions; see `Table.profile_over`."""
    if sessions.is_spark(engine) and not exact:
        raise InvalidArgumentError(
            Message(
                "Spark reads the rows of a profile, and without ",
                Hint("", {"exact": True}),
                " numbers come from metadata, on this machine. Add it, or leave out ",
                Hint("", {"engine": "spark"}),
                ".",
            )
        )
    spark = sessions.session_of(engine, "read the rows of a profile")
    versions = source.versions_among(between)
    newest = source.format.version(versions[-1])
    names = _names(columns, newest.arrow_schema)
    numbers = partial(_from_rows, spark) if exact else _from_statistics
    versions, profiles, unread = numbers(source, versions, newest, names)
    if not versions:
        raise source.vanished()
    return Profile(
        path=source.path,
        name=source.name,
        versions=versions,
        columns=profiles,
        format=source.format.name,
        span=source.span_text(versions),
        call=call,
        rules=rules,
        gaps=source.gaps(versions),
        unread=unread,
    )


def _from_rows(
    spark: SparkSession | None, source: History, versions: Sequence[int], newest: TableVersion, names: Sequence[str]
) -> _Numbers:
    ranges, whys = read_ranges(source, versions, newest, names, spark)
    times: pa.Array = pa.array(readable_times(source.format, versions), frames.UTC_MILLIS)
    return tuple(versions), _of_columns(ranges, versions, times, whys), ()


def _from_statistics(source: History, versions: Sequence[int], newest: TableVersion, names: Sequence[str]) -> _Numbers:
    """Return the numbers of columns from the metadata, at the versions whose files are known."""
    known = read_statistics(source.format, names, versions[-1])
    every, times = known.lifetimes.versions, known.lifetimes.committed_at
    indices = np.flatnonzero(np.isin(np.asarray(every, np.int64), np.asarray(versions, np.int64)))
    ranges = ranges_of(known)
    lacking = lacking_columns(source, known, newest, names)
    deleting = [bool(deletes) for deletes in delete_manifests(source.format, every)]
    of_table = _of_table(source.format, newest)
    whys = {name: _why(ranges, name, newest, lacking[name], deleting=deleting, of_table=of_table) for name in names}
    profiles = _of_columns(ranges, every, times, whys)
    if len(indices) < len(every):
        profiles = {name: rows.take(pa.array(indices)) for name, rows in profiles.items()}
    requested = frozenset(versions)
    unread = {version: error for version, error in known.lifetimes.unread.items() if version in requested}
    before = known.lifetimes.before_note
    notes = unread_notes(unread) if before is None or versions[0] > every[0] else (before, *unread_notes(unread))
    return tuple(every[index] for index in indices.tolist()), profiles, notes


def _names(columns: Sequence[str] | None, schema: pa.Schema) -> list[str]:
    if columns is None:
        return list(schema.names)
    if isinstance(columns, str):
        columns = [columns]
    if not isinstance(columns, Iterable):
        raise InvalidArgumentError(f"columns must be a name or a list of names, got {columns!r}.")
    known = set(schema.names)
    for name in columns:
        if name not in known:
            raise unknown_column(str(name), schema.names)
    return list(dict.fromkeys(columns))


_OTHER_ROWS = "unknown: files alone do not determine the rows"


def unrecorded_columns(columns: Mapping[str, pa.Table], *, everywhere: bool) -> str:
    """Return as text the columns whose numbers are missing at versions with rows; empty if there are none.

    Args:
        everywhere: Whether to name only columns without a number at any version, rather than at one version.
    """
    names = [name for name, rows in columns.items() if _is_unrecorded(rows, everywhere=everywhere)]
    return list_names(names, _NAMED)


def _is_unrecorded(rows: pa.Table, *, everywhere: bool) -> bool:
    if not rows["null_count"].null_count:
        return False
    nothing = reduce(pc.and_, (pc.is_null(rows[name]) for name in ("null_count", "min", "max")))
    lacks = pc.fill_null(pc.equal(rows["bounds"], LACKING), False)  # noqa: FBT003 - pyarrow's
    of_rows = nothing.filter(pc.and_not(pc.greater(rows["rows"], 0), lacks))
    return bool((pc.all if everywhere else pc.any)(of_rows).as_py()) and len(of_rows) > 0


_OF_COMMITS = ("kind", "operation")
"""The facts of a commit that are named beside a jump."""
_NAMED = 5
"""The maximum number of columns that a note names."""


def _of_columns(
    ranges: FileRanges, versions: Sequence[int], times: pa.Array, whys: Mapping[str, Sequence[str | None]]
) -> dict[str, pa.Table]:
    known: dict[tuple[str | None, ...], _Bounds] = {}
    heads = {"version": pa.array(versions, pa.int64()), "committed_at": times}
    profiles: dict[str, pa.Table] = {}
    for name, numbers in ranges.numbers(list(whys)):
        why = tuple(whys[name])
        if why not in known:
            known[why] = _Bounds(pa.array(why, pa.string()), ranges.rows)
        profiles[name] = known[why].with_numbers(numbers, heads)
    return {name: profiles[name] for name in whys}


class _Bounds:
    """Which numbers of a column are bounds or unknown at each version."""

    def __init__(self, bounds: pa.Array, rows: pa.Array) -> None:
        unknown, has_no_ends, has_no_rows = (
            pc.is_in(bounds, pa.array(reasons))
            for reasons in ([LACKING, _OTHER_ROWS], [LACKING, _OTHER_ROWS, UNORDERED], [_OTHER_ROWS])
        )
        self._bounds = bounds
        self._unknown, self._has_no_ends = (
            mask if pc.any(mask, min_count=0).as_py() else None for mask in (unknown, has_no_ends)
        )
        self._rows = _nullify(rows, has_no_rows)
        self._some = _nullify(self._rows, pc.equal(self._rows, 0)).cast(pa.float64())

    def with_numbers(self, numbers: ColumnNumbers, heads: Mapping[str, pa.Array]) -> pa.Table:
        nulls = _nullify(numbers.null_count, self._unknown)
        columns = {
            **heads,
            "rows": self._rows,
            "null_count": nulls,
            "null_rate": pc.divide(nulls.cast(pa.float64()), self._some),
            "min": _nullify(numbers.minimum, self._has_no_ends),
            "max": _nullify(numbers.maximum, self._has_no_ends),
            "bounds": self._bounds,
        }
        return pa.Table.from_arrays(list(columns.values()), list(columns))


def _nullify(values: pa.Array, mask: pa.Array | None) -> pa.Array:
    """Return values with null if a mask is true; the mask itself is null if the values are."""
    return values if mask is None else pc.if_else(mask, pa.scalar(None, values.type), values)


def _why(
    ranges: FileRanges,
    name: str,
    newest: TableVersion,
    lacking: Sequence[tuple[int, int]],
    *,
    deleting: Sequence[bool],
    of_table: str | None,
) -> list[str | None]:
    """Return for each version which numbers of a column are bounds or unknown, and why; None if all are exact.

    Args:
        lacking: The ranges of positions of versions that lack it.
        deleting: For each version whether it has delete files.
        of_table: The reason that holds for every version and column.
    """
    if of_table == _OTHER_ROWS:
        return [of_table] * ranges.count
    field = newest.arrow_schema.field(name)
    dtype = field.type
    is_cut = f"min, max: {_CUT[str(dtype.id)]}" if str(dtype.id) in _CUT else None
    fixed = "; ".join(reason for reason in (of_table, is_cut) if reason) or None
    whys: list[str | None] = [fixed] * ranges.count
    for index in np.flatnonzero(deleting).tolist():
        whys[index] = "rows, null_count, min, max: with rows that delete files remove"
    if not of_table and is_cut is None and is_sortable(dtype):
        for index in np.flatnonzero(ranges.has_vectors).tolist():
            whys[index] = "min, max: of rows too that deletion vectors remove"
    if collation_of(field) is not None:
        whys = [UNORDERED] * ranges.count
    for begin, end in lacking:
        whys[begin:end] = [LACKING] * (end - begin)
    return whys


_CUT = {
    **{str(kind.id): "text may be cut" for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())},
    str(pa.timestamp("us").id): "times may be cut",
    str(pa.decimal128(20, 0).id): "decimals may be rounded",
}
"""Types whose minimum and maximum a writer may have truncated or rounded."""


def _of_table(table_format: TableFormat, version: TableVersion) -> str | None:
    """Return why the rows in files differ from the rows of the table; None if they are the same."""
    modifiers = table_format.row_modifiers()
    if not modifiers.isdisjoint(("another branch", "rows outside of files")):
        return _OTHER_ROWS
    if version.schema.is_merged:
        return "rows, null_count, min, max: unmerged"
    if "deletion vectors" in modifiers:
        return "rows, null_count, min, max: with rows that deletion vectors remove"
    return "rows, null_count, min, max: with rows that are spread over files" if modifiers else None


_DIGITS = 6
"""Digits of a null rate in the frame."""


def _as_text(name: str, rows: pa.Table) -> pa.Table:
    ends = {end: _texts(rows[end]) for end in ("min", "max")}
    columns = {other: rows[other] for other in rows.column_names} | ends
    columns["null_rate"] = pc.round(rows["null_rate"], _DIGITS)
    columns["column"] = pa.array([name] * len(rows), pa.string())
    return pa.table([columns[field.name] for field in frames.PROFILE], schema=frames.PROFILE)


def _texts(values: pa.ChunkedArray) -> pa.Array:
    """Return values as text: distinct ones are few, however many versions there are. Nested values have no order."""
    if pa.types.is_nested(values.type):
        return pa.nulls(len(values), pa.string())
    encoded = values.combine_chunks().dictionary_encode()
    words = pa.array([None if value is None else str(value) for value in encoded.dictionary.to_pylist()], pa.string())
    return words.take(encoded.indices)


def table_anomalies(
    source: History,
    columns: Sequence[str] | None,
    between: Sequence[int] | None,
    rules: AnomalyRules,
    doubled: Frame | None = None,
    *,
    profile: Profile | None = None,
) -> Frame:
    """Return the versions of a table at which a number jumps: ANOMALIES, newest first, with their commits.

    Args:
        profile: The numbers of the columns at all versions, from metadata, if they are known; otherwise they are read.
        between: The versions to mark; None for all. The others are only compared with.
        doubled: The versions at which several rows begin to have the same key: ANOMALIES, ascending; None if not read.
    """
    if profile is None:
        profile = profile_over(source, columns, None, exact=False, call="", rules=rules)
    lifetimes = source.lifetimes()
    totals = lifetimes.totals()
    head = totals.select(["version", "committed_at"])
    values = {"rows": rows_over(lifetimes), "files": totals["files"], "size_bytes": totals["size_bytes"]}
    of_table = {name: head.append_column("value", item) for name, item in values.items()}
    gaps = lifetimes.gaps
    marked = jumps(of_table, profile.columns, rules, gaps)
    if doubled is not None:
        marked = pa.concat_tables([marked, doubled.to_arrow()]).sort_by([("version", "ascending")])
    if between is not None:
        marked = marked.filter(pc.is_in(marked["version"], pa.array(list(between), pa.int64())))
        gaps = tuple(gap for gap in gaps if gap.after in set(between))
    unread: Reasons = {}
    if len(marked):
        marked, unread = _with_commits(source, marked, frozenset(gap.after for gap in gaps))
    rows = marked.take(pa.array(np.arange(len(marked))[::-1]))
    unrecorded = unrecorded_columns(profile.columns, everywhere=True)
    return Frame(
        rows,
        title=f"Anomalies of {source.name}"
        + (f"; the metadata has no statistics of {unrecorded}" if unrecorded else ""),
        noun="anomalies",
        # The rule names the measure and the column, and stays visible in narrow drawings.
        drawn=non_empty_columns(rows.select(["version", "committed_at", "kind", "rule", "before", "value"])),
        limit=len(rows),
        notes=(
            *jump_notes(gaps),
            *dict.fromkeys((*profile.unread, *lifetimes.unread_notes)),
            *unread_commit_notes(unread),
            *rows_note(source.format, profile.versions),
            *(() if doubled is None else doubled.notes),
        ),
    )


def _with_commits(source: History, marked: pa.Table, after_gaps: frozenset[int]) -> tuple[pa.Table, Reasons]:
    """Return marks with the commits behind them, without marks of the table at maintenance commits.

    Also which of these commits cannot be read, and why.

    A mark after a gap has no commit: a missing one may have made the change.
    """
    unknown = after_gaps | set(source.listing.without_commit)
    versions = [version for version in pc.unique(marked["version"]).to_pylist() if version not in unknown]
    read = read_apart(partial(source.format.commits, columns=_OF_COMMITS), versions, source.format.storage)
    commits = pa.concat_tables([frames.COMMITS.empty_table(), *(part for _, part in read.parts)])
    indices = pc.index_in(marked["version"], commits["version"].combine_chunks())
    for name in _OF_COMMITS:
        index = marked.schema.get_field_index(name)
        marked = marked.set_column(index, marked.schema.field(name), commits[name].combine_chunks().take(indices))
    is_expected = pc.and_(pc.is_in(marked["kind"], pa.array(MAINTENANCE_KINDS)), marked["column"].is_null())
    return marked.filter(pc.invert(is_expected)), read.unread
