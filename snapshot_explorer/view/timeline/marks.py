"""What a timeline draws, as data: bars of commits, marks above and behind them, and the line of totals.

`timeline` draws it with plotly, `timeline_columns` sends it to the explorer's page, and `commit_bars` draws the bars of
the newest commits for pages without scripts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import Measure
from snapshot_explorer.history.anomaly_marks import with_marks
from snapshot_explorer.view.commits import OTHER, STYLES, UNREADABLE
from snapshot_explorer.view.figures import Style, numbers, numbers_with_gaps, version_positions
from snapshot_explorer.view.grid import heading_of
from snapshot_explorer.view.row_changes import CommitBars, commit_bars_of
from snapshot_explorer.view.timeline.flags import FlagLayer, place_flags

_Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]


_USUAL, _OUTLIER, _ROOM = 0.95, 4, 1.5
"""Bars end at `_ROOM` times their quantile `_USUAL` if one is higher than `_OUTLIER` times it."""
_FEWEST_BARS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """Versions next to each other that cannot be loaded, for the same reason."""

    readable: str
    """The word of `readable`."""
    first: int
    """The index of the first of these commits."""
    last: int
    """The index of the last of these commits."""


@dataclass(frozen=True)
class TimelineMarks:
    """What is drawn of COMMITS, oldest first, as arrays."""

    rows: pa.Table
    """COMMITS, the names of the branches that begin with each, and the columns of `with_marks`."""
    y: Measure
    """The measure: rows, files or bytes."""
    sizes: pa.Table | None = None
    """The size of the table at versions, for the line of files or bytes; None for the sums over these commits."""

    @cached_property
    def x(self) -> _Numbers:
        """The position of each commit."""
        return version_positions(numbers(self.rows["version"]))[0]

    @cached_property
    def counted_versions(self) -> _Numbers | None:
        """The versions, if `x` counts them."""
        return version_positions(numbers(self.rows["version"]))[1]

    @cached_property
    def bars(self) -> CommitBars:
        """What each commit changed."""
        return commit_bars_of(self.rows, self.y)

    @cached_property
    def heights(self) -> tuple[_Numbers, _Numbers]:
        """The heights of bars up and down that set the scale: 0 for a commit that only rewrites rows, unless all do."""
        up, down, quiet = self.bars.up, self.bars.down, self.bars.quiet
        loud = ~quiet & (up + down > 0)
        return (np.where(quiet, 0, up), np.where(quiet, 0, down)) if loud.any() else (up, down)

    @cached_property
    def tops(self) -> tuple[float, float]:
        """The maximum height of bars up and down: a few bars that are far higher than all others are cut."""
        up, down = map(_top, self.heights)
        return up, down

    @property
    def drawn_sides(self) -> tuple[_Numbers, _Numbers]:
        """The bars up and down: of a commit that only rewrites rows, no higher than all others."""
        up, down = (most.max(initial=0) for most in self.heights)
        return np.minimum(self.bars.up, up), np.minimum(self.bars.down, down)

    @property
    def sides(self) -> str:
        """The name of the axis of bars."""
        return "rows inserted, deleted" if self.y == "rows" else f"{self.y} added, removed"

    @property
    def unknown_word(self) -> str:
        """What is said of the changes that `bars.unknown` marks."""
        return "not counted" if self.y == "rows" else "not known"

    @cached_property
    def kinds(self) -> npt.NDArray[np.object_]:
        """The kind of each commit."""
        kinds: npt.NDArray[np.object_] = self.rows["kind"].to_numpy()
        return kinds

    @cached_property
    def flags(self) -> list[FlagLayer]:
        """The flags of tags and branches."""
        return place_flags(self.rows, self.x)

    @cached_property
    def schema_changes(self) -> _Mask:
        """A mask of commits that change the schema: by their kind, or by another schema id than the commit before."""
        ids = self.rows["schema_id"].combine_chunks()
        changed: _Mask = self.rows["kind"].to_numpy() == "schema"
        if len(ids) > 1:
            differs = pc.fill_null(pc.not_equal(ids[1:], ids[:-1]), False)  # noqa: FBT003 - unknown values are not shown
            changed = changed | np.concatenate([[False], differs.to_numpy(zero_copy_only=False)])
        return changed

    @cached_property
    def shades(self) -> list[Shade]:
        """The versions that cannot be loaded, by reason, in ranges without a gap."""
        readable = self.rows["readable"].to_numpy()
        shades = []
        for word, _, _ in UNREADABLE:
            gone = np.flatnonzero(readable == word)
            cuts = np.flatnonzero(np.diff(self.x[gone]) != 1) + 1
            shades += [
                Shade(readable=word, first=int(part[0]), last=int(part[-1]))
                for part in np.split(gone, cuts)
                if len(part)
            ]
        return shades

    @cached_property
    def jumps(self) -> list[tuple[int, list[str]]]:
        """The index of each commit at which a number jumps, with the rules."""
        return [(index, rules) for index, rules in enumerate(self.rows["rules"].to_pylist()) if rules is not None]

    @cached_property
    def total_line(self) -> tuple[npt.NDArray[np.int64] | npt.NDArray[np.float64], str]:
        """The totals and the name of their line: from the table's sizes, as recorded, or summed over the commits."""
        if self.sizes is not None and self.y != "rows":
            return self._total_of_sizes(self.sizes), f"total {self.y}"
        totals = self.rows["total_rows"]
        if self.y == "rows" and (self.bars.unknown.any() or not totals.null_count):
            return numbers_with_gaps(totals), heading_of(self.rows.schema.field("total_rows"))
        net = np.cumsum(self.bars.up - self.bars.down)
        if not self.bars.unknown.any():
            return net, f"net {self.y} of these commits"
        # After the first commit without counts, the total is unknown.
        known = np.cumsum(self.bars.unknown) == 0
        return np.where(known, net.astype(np.float64), np.nan), f"net {self.y} of these commits"

    def _total_of_sizes(self, sizes: pa.Table) -> npt.NDArray[np.float64]:
        known, versions = numbers(sizes["version"]), numbers(self.rows["version"])
        if not len(known):
            return np.full(len(versions), np.nan)
        at = np.minimum(np.searchsorted(known, versions), len(known) - 1)
        values = numbers_with_gaps(sizes[{"bytes": "size_bytes"}.get(self.y, self.y)]).astype(np.float64)
        return np.where(known[at] == versions, values[at], np.nan)

    def of_kinds(self) -> Iterator[tuple[str, Style, _Mask]]:
        """Yield each kind that occurs, in a fixed order, with its style and a mask of its commits."""
        present = set(self.kinds.tolist())
        for kind in [*STYLES, *sorted(present - set(STYLES), key=str)]:
            if kind in present:
                yield str(kind), STYLES.get(kind, OTHER), self.kinds == kind


def _top(values: _Numbers) -> float:
    others = values[values > 0]
    most = float(others.max(initial=0))
    usual = float(np.quantile(others, _USUAL, method="lower")) if len(others) >= _FEWEST_BARS else most
    return _ROOM * usual if most > _OUTLIER * usual else most


def short_number(value: float) -> str:
    """Return a number in few letters, such as 90k."""
    for limit, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:g}"


def timeline_marks(
    commits: pa.Table,
    y: str,
    *,
    branches: Mapping[int, Sequence[str]] | None = None,
    anomalies: pa.Table | None = None,
    sizes: pa.Table | None = None,
) -> TimelineMarks:
    """Return what is drawn of commits.

    Args:
        commits: COMMITS, in any order.
        y: The measure: rows, files or bytes.
        branches: The names of the branches that begin with a version, by version.
        anomalies: ANOMALIES: the versions to mark, with their rules.
        sizes: The size of the table at versions: version, files, rows, size_bytes.

    Raises:
        InvalidArgumentError: `y` is not a measure.
    """
    rows = with_marks(_with_branches(commits, branches or {}), anomalies)
    return TimelineMarks(rows.sort_by([("version", "ascending")]), _measure(y), sizes)


def _measure(y: str) -> Measure:
    if y not in get_args(Measure):
        raise InvalidArgumentError(f"A timeline counts {', '.join(get_args(Measure))}, not {y!r}.")
    measure: Measure = y  # type: ignore[assignment]  # just checked
    return measure


def _with_branches(commits: pa.Table, branches: Mapping[int, Sequence[str]]) -> pa.Table:
    """Return commits with another column, the names of the branches that begin with each."""
    dtype = pa.list_(pa.string())
    names = [branches.get(version, ()) for version in commits["version"].to_pylist()] if branches else None
    return commits.append_column("branches", pa.nulls(len(commits), dtype) if names is None else pa.array(names, dtype))
