"""Versions at which a number of the table or of a column jumps, each with the rule and the numbers that mark it.

One rule for all measures. A version is marked if its change from the version before

- is more than `factor` times the usual change, and
- is at least a share of the previous value: `share` of the value before for rows, files and bytes, `null_rate_step` for
  null rates, `range_share` of the range from minimum to maximum for bounds.

The usual change is the median, without signs, of the changes of the `window` versions before it that changed the
number; of all of them if fewer than `min_changes` did, unless all of those went the same way as this one. At least
`min_changes` must be known. So steady growth is not marked, a shift of level is marked once, and numbers that the log
does not record are never marked. Rows, files and bytes of commits that change no data (compact, analyze, maintenance)
are not marked: changing them is their purpose. The sentence of a mark names the change and the usual one; the
thresholds are those above.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.data_types import has_distances
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import Gap, gaps_note
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.core.safe_text import sanitize

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MAX_WINDOW = 1_000
"""The largest window: each version is compared with this many numbers, which are in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyRules:
    """The thresholds of a jump."""

    window: int = 10
    """The number of changes before a version that its change is compared with; at most 1,000."""
    min_changes: int = 3
    """The minimum number of known changes."""
    factor: float = 5.0
    """The multiple of the usual change that a jump must exceed."""
    share: float = 0.2
    """The minimum change of rows, files and bytes, as a share of the previous value."""
    null_rate_step: float = 0.05
    """The minimum change of a null rate."""
    range_share: float = 0.5
    """The minimum change of a minimum or maximum, as a share of the previous range of values."""

    @classmethod
    def of(cls, rules: "AnomalyRules | None") -> "AnomalyRules":
        """Return rules, the default ones for None; raise InvalidArgumentError for anything else."""
        if not isinstance(rules, cls | None):
            raise InvalidArgumentError(
                f"rules must be AnomalyRules of snapshot_explorer.analysis.rows, such as AnomalyRules(factor=10), "
                f"got {type(rules).__name__}."
            )
        return rules or cls()

    def __post_init__(self) -> None:
        for field in fields(self):
            value, is_whole = getattr(self, field.name), isinstance(field.default, int)
            if isinstance(value, bool) or not isinstance(value, Integral if is_whole else Real):
                needed = "a whole number" if is_whole else "a number"
                raise InvalidArgumentError(f"{field.name} must be {needed}, got {brief_repr(value)}.")
        if not 1 <= self.window <= _MAX_WINDOW:
            raise InvalidArgumentError(f"window must be 1 to {_MAX_WINDOW:,}, got {brief_repr(self.window)}.")
        if not 1 <= self.min_changes <= self.window:
            raise InvalidArgumentError(
                f"min_changes must be from 1 to window, which is {self.window}, got {brief_repr(self.min_changes)}."
            )
        for name in ("factor", "share", "null_rate_step", "range_share"):
            value = getattr(self, name)
            if not 0 <= value <= math.inf or (isinstance(value, int) and value > sys.float_info.max):  # NaN is neither
                raise InvalidArgumentError(f"{name} must be 0 or more, got {brief_repr(value)}.")


DEFAULT_RULES = AnomalyRules()


def jump_notes(gaps: Sequence[Gap]) -> tuple[str, ...]:
    """Return a sentence on gaps between the versions that are compared; nothing without gaps."""
    return gaps_note(gaps, "what jumps at the next version may have changed there")


def jumps(
    totals: Mapping[str, pa.Table],
    columns: Mapping[str, pa.Table],
    rules: AnomalyRules = DEFAULT_RULES,
    gaps: Sequence[Gap] = (),
) -> pa.Table:
    """Return the versions at which a number jumps: ANOMALIES, by version.

    Args:
        totals: By measure of the table (rows, files, size_bytes), a table of version, committed_at and value.
        columns: The numbers by column: version, committed_at, null_rate, min and max. All ascending by version.
        gaps: The gaps between the versions. The rule of a jump over one names it.
    """
    parts: list[pa.Table] = []
    with np.errstate(invalid="ignore", over="ignore"):  # values may be infinite, and the distance of the largest is
        for batch in _batches(_every_series(totals, columns, rules), _AT_ONCE // rules.window):
            parts += _marked_versions(batch, rules)
    if not parts:
        return frames.no_rows(frames.ANOMALIES)
    return _with_gaps(pa.concat_tables(parts).sort_by([("version", "ascending")]), gaps)


def _with_gaps(marked: pa.Table, gaps: Sequence[Gap]) -> pa.Table:
    """Return ANOMALIES whose rules name the versions that are missing before a marked one."""
    before = {gap.after: gap for gap in gaps}
    if not before:
        return marked
    rules = [
        f"{rule}; {before[version]}, and may have changed it" if version in before else rule
        for version, rule in zip(marked["version"].to_pylist(), marked["rule"].to_pylist(), strict=True)
    ]
    index = marked.schema.get_field_index("rule")
    return marked.set_column(index, marked.schema.field(index), pa.array(rules, pa.string()))


@dataclass(frozen=True, slots=True)
class _Series:
    """A measure over versions."""

    rows: pa.Table
    """The versions, with the measure."""
    measure: str
    column: str | None
    values: Floats
    """The values; NaN if unknown."""
    scale: Floats
    """The number that the minimum change is a share of, at each version."""
    share: float


_AT_ONCE = 2_000_000
"""Values of windows of series that are compared together."""


def _every_series(
    totals: Mapping[str, pa.Table], columns: Mapping[str, pa.Table], rules: AnomalyRules
) -> Iterator[_Series]:
    for measure, rows in totals.items():
        values = _floats(rows["value"])
        yield _Series(rows, measure, None, values, np.abs(values), rules.share)
    floats = {part: _floats_of(columns, part) for part in ("null_rate", "min", "max")}
    for name, rows in columns.items():
        rates = floats["null_rate"][name]
        yield _Series(rows, "null_rate", name, rates, np.ones(len(rates)), rules.null_rate_step)
        if name in floats["min"]:
            minimum, maximum = floats["min"][name], floats["max"][name]
            for measure, values in (("min", minimum), ("max", maximum)):
                yield _Series(rows, measure, name, values, np.abs(maximum - minimum), rules.range_share)


def _floats_of(columns: Mapping[str, pa.Table], part: str) -> dict[str, Floats]:
    """Return the floats of each column whose values have distances. Columns of one type are converted together."""
    by_type: dict[pa.DataType, list[str]] = {}
    for name, rows in columns.items():
        by_type.setdefault(rows.schema.field(part).type, []).append(name)
    result: dict[str, Floats] = {}
    for dtype, names in by_type.items():
        if has_distances(dtype):
            chunks = [chunk for name in names for chunk in columns[name][part].chunks]
            ends = np.cumsum([len(columns[name]) for name in names])
            result.update(zip(names, np.split(as_floats(pa.concat_arrays(chunks)), ends[:-1]), strict=True))
    return result


def _batches(every: Iterator[_Series], limit: int) -> Iterator[list[_Series]]:
    """Yield batches of series with the same number of versions, each of about `limit` values."""
    batch: list[_Series] = []
    for series in every:
        count = len(series.values)
        if batch and (len(batch[0].values) != count or len(batch) * count >= limit):
            yield batch
            batch = []
        batch.append(series)
    if batch:
        yield batch


def as_floats(values: pa.Array) -> Floats:
    """Return numbers, dates (in days) and times (in their unit) as floats, NaN for null."""
    dtype = values.type
    if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        values = values.cast(pa.int32() if pa.types.is_date32(dtype) else pa.int64())
    floats: Floats = pc.fill_null(values.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False)
    return floats


def _floats(column: pa.ChunkedArray) -> Floats:
    return as_floats(column.combine_chunks())


def _marked_versions(batch: Sequence[_Series], rules: AnomalyRules) -> Iterator[pa.Table]:
    """Yield the versions at which a measure jumps, for each series with jumps: ANOMALIES."""
    if len(batch[0].values) <= rules.min_changes:
        return
    changes = np.diff(np.stack([series.values for series in batch]), axis=1)
    sizes = np.abs(changes)
    minimum = np.stack([series.share * series.scale[:-1] for series in batch])
    is_large = (sizes >= minimum) & (sizes > 0)
    if not is_large[:, rules.min_changes :].any():
        return
    usual = _usual_before(changes, rules)
    is_jump = (sizes > rules.factor * usual) & is_large
    for number in np.flatnonzero(is_jump.any(axis=1)).tolist():
        indices = np.flatnonzero(is_jump[number])
        rule = [
            _sentence(batch[number], change=change, usual=before)
            for change, before in zip(*(part[number, indices].tolist() for part in (changes, usual)), strict=True)
        ]
        yield _lines(batch[number], indices, rule)


def _lines(series: _Series, indices: Ints, rule: Sequence[str]) -> pa.Table:
    """Return the versions after some positions, at which a measure jumps: ANOMALIES."""
    source = series.rows["value"] if series.column is None else series.rows[series.measure]
    before, after = (source.take(pa.array(indices + shift)).to_pylist() for shift in (0, 1))
    marked = series.rows.select(["version", "committed_at"]).take(pa.array(indices + 1))
    count = len(indices)
    arrays = [
        marked["version"],
        marked["committed_at"],
        pa.nulls(count, pa.string()),
        pa.nulls(count, pa.string()),
        pa.array([series.measure] * count, pa.string()),
        pa.array([series.column] * count, pa.string()),
        pa.array([_text(value) for value in before], pa.string()),
        pa.array([_text(value) for value in after], pa.string()),
        pa.array(rule, pa.string()),
    ]
    return pa.table(arrays, schema=frames.ANOMALIES)


def _usual_before(changes: Floats, rules: AnomalyRules) -> Floats:
    """Return for each change of each series, a row each, the usual change before it; NaN where too few are known."""
    sizes = np.abs(changes)
    changed, of_changed = _medians(np.where(sizes == 0, np.nan, sizes), rules.window)
    known, of_all = _medians(sizes, rules.window)
    rose, fell = (_medians(np.where(side, sizes, np.nan), rules.window)[0] for side in (changes > 0, changes < 0))
    is_one_way = (changed > 0) & np.where(changes > 0, fell == 0, rose == 0)
    return np.where(
        (changed >= rules.min_changes) | is_one_way & (known >= rules.min_changes),
        of_changed,
        np.where(known >= rules.min_changes, of_all, np.nan),
    )


def _medians(sizes: Floats, window: int) -> tuple[Ints, Floats]:
    """Return for each position in each row how many values in the window before it are known, and their median."""
    padded = np.concatenate([np.full((len(sizes), window), np.nan), sizes], axis=1)[:, :-1]
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(padded, window, axis=1), axis=2)
    known = np.count_nonzero(~np.isnan(windows), axis=2)  # NaN are sorted to the end
    indices = (np.maximum(known - 1 + shift, 0)[:, :, None] // 2 for shift in (0, 1))
    low, high = (np.take_along_axis(windows, index, axis=2)[:, :, 0] for index in indices)
    return known, low / 2 + high / 2


def _sentence(series: _Series, *, change: float, usual: float) -> str:
    measure = {"null_rate": "null rate", "size_bytes": "bytes"}.get(series.measure, series.measure)
    subject = measure if series.column is None else f"{measure} of {sanitize(series.column)}"
    before = f"usual change: {_amount(series, usual)}" if usual else "it usually does not change"
    return f"{subject} {'rose' if change > 0 else 'fell'} by {_amount(series, abs(change))} ({before})"


def _amount(series: _Series, change: float) -> str:
    """Return a change of a measure in its unit: null rates in points of a percentage, times in days or less."""
    if series.measure == "null_rate":
        return f"{change * 100:,.3g} points"
    seconds = None if series.column is None else _seconds(series.rows.schema.field(series.measure).type)
    if seconds is None:
        return f"{change:,.6g}"
    change *= seconds
    size, unit = next((item for item in _TIMES if abs(change) >= item[0]), _TIMES[-1])
    number = f"{change / size:,.3g}"
    return f"{number} {unit}" + ("" if number == "1" else "s")


_TIMES = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def _seconds(dtype: pa.DataType) -> float | None:
    """Return how long the unit of a date or a time is; None for another type."""
    if pa.types.is_date(dtype):
        return 86_400.0 if pa.types.is_date32(dtype) else _UNITS["ms"]
    return _UNITS[dtype.unit] if pa.types.is_timestamp(dtype) else None


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
