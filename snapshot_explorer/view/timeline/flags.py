"""Flags on a timeline: the tags of a version, and the branches that begin with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.view.commits import MAX_NAMES, name_line
from snapshot_explorer.view.figures import clean_text, escape_plotly
from snapshot_explorer.view.palette import BLUE, GRAY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import plotly.graph_objects as go

_MAX_NAMED = 12
"""The maximum number of versions with flags for names in the figure; with more, names are in tooltips."""
_LONGEST_NAME = 16
_MAX_FULL_HOVER = 1_000
"""The maximum number of versions with flags for complete tooltips."""
_TOP = 0.97
"""The height of the first line, 1 being the top of the bars' part of the figure."""
_LINES, _LINE = 3, 0.08
"""The number of lines for names, so that neighbors do not overlap, and the height of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A kind of flag."""

    noun: str
    """The plural noun for the flags; the column with the names."""
    word: str
    """The prefix of a name."""
    symbol: str
    color: str
    width: int


FLAGS = (
    Flag(noun="tags", word="", symbol="triangle-right", color=BLUE, width=1),
    Flag(noun="branches", word="branch ", symbol="y-down-open", color=GRAY, width=2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagLayer:
    """The flags of one kind."""

    flag: Flag
    x: npt.NDArray[np.int64]
    y: npt.NDArray[np.float64]
    """Their heights, 1 being the top of the bars' part of the figure."""
    names: Sequence[Sequence[str]]
    """The names at each, at least one."""

    @property
    def has_labels(self) -> bool:
        """Return whether there are few enough flags for names in the figure."""
        return len(self.names) <= _MAX_NAMED

    @property
    def labels(self) -> list[str]:
        """Return the label of each flag: its first name, and the number of others."""
        more = [f" +{len(names) - 1}" if len(names) > 1 else "" for names in self.names]
        return [
            self.flag.word + clean_text(names[0], _LONGEST_NAME) + rest
            for names, rest in zip(self.names, more, strict=True)
        ]


def place_flags(rows: pa.Table, x: npt.NDArray[np.int64]) -> list[FlagLayer]:
    """Return the flags of commits at their positions, tags first.

    Flags with names alternate between some lines, below flags without names, which have one line per kind.
    """
    flagged = [(flag, _has_names(rows[flag.noun])) for flag in FLAGS]
    flagged = [(flag, chosen) for flag, chosen in flagged if chosen.any()]
    unnamed = [flag for flag, chosen in flagged if chosen.sum() > _MAX_NAMED]
    named = np.concatenate([np.empty(0, np.int64), *(x[chosen] for flag, chosen in flagged if flag not in unnamed)])
    turns = len(unnamed) + np.argsort(np.argsort(named, kind="stable"), kind="stable") % _LINES
    result = []
    for flag, chosen in flagged:
        count = int(chosen.sum())
        if flag in unnamed:
            lines = np.full(count, unnamed.index(flag))
        else:
            lines, turns = turns[:count], turns[count:]
        names = rows[flag.noun].filter(pa.array(chosen)).to_pylist()
        result.append(FlagLayer(flag=flag, x=x[chosen], y=_TOP - _LINE * lines, names=names))
    return result


def bars_top(flags: Sequence[FlagLayer]) -> float:
    """Return the height that bars may reach, 1 being the top: names are not legible on a bar."""
    return min((float(flag.y.min()) - _LINE / 2 for flag in flags), default=1.0)


def draw_flags(flags: FlagLayer, tooltip: Mapping[str, str]) -> go.Scatter | go.Scattergl:
    """Return flags as a part of a figure, with the first of their names where there are few.

    Args:
        tooltip: The properties of their tooltips, whose `customdata` is the names.
    """
    import plotly.graph_objects as go

    flag, names = flags.flag, flags.names
    most = MAX_NAMES if len(names) <= _MAX_FULL_HOVER else 1
    trace = go.Scatter if len(names) <= _MAX_FULL_HOVER else go.Scattergl
    return trace(
        x=flags.x,
        y=flags.y,
        yaxis="y3",
        mode="markers+text" if flags.has_labels else "markers",
        text=[escape_plotly(label) for label in flags.labels] if flags.has_labels else None,
        textposition="middle right",
        customdata=[escape_plotly(name_line(flag.noun, at, most)) for at in names],
        marker={"symbol": flag.symbol, "size": 10, "color": flag.color, "line": {"width": flag.width, "color": GRAY}},
        name=flag.noun,
        **tooltip,
    )


def _has_names(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    has: npt.NDArray[np.bool_] = pc.fill_null(pc.greater(pc.list_value_length(column), 0), False).to_numpy()  # noqa: FBT003 - the value that null becomes
    return has
