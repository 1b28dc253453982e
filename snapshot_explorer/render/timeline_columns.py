"""Commits over versions as columns of bytes, for a page that draws them itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from snapshot_explorer.render.commits import MAX_NAMES, OTHER, STYLES, commit_lines, name_line
from snapshot_explorer.render.figures import gaps, legible, numbers
from snapshot_explorer.render.flags import below
from snapshot_explorer.render.timeline import changed_schema, commit_records, history_of, total_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from snapshot_explorer.render.timeline import History

_READABLE = {"metadata": 1, "no": 2}
_MAX_FULL_NAMES = 1_000
"""The maximum number of commits with tags or branches whose names are included."""


def timeline_columns(
    commits: pa.Table, *, y: str, branches: Mapping[int, Sequence[str]] | None = None
) -> dict[str, object]:
    """Return commits as columns, oldest first: what `timeline` draws, in little-endian bytes.

    `version`, `added` and `removed` are int64, `total` is float64 with NaN where it is not known; `kind` (an index
    into `kinds`), `unknown`, `schema` and `readable` (0 yes, 1 metadata, 2 no) are one byte each. `told` contains the
    tooltip of each commit; for many commits it is null, and the page formats `time` (float64, ms) and `names`.

    Args:
        commits: COMMITS, in any order.
        y: What to count: rows, files or bytes.
        branches: The names of the branches that begin with a version, by version.

    Raises:
        InvalidArgumentError: Nothing is counted by that name.
    """
    history = history_of(commits, y, branches or {})
    kinds = list(history.of_kinds())
    kind = np.zeros(len(history.rows), np.uint8)
    for place, (_, _, chosen) in enumerate(kinds):
        kind[chosen] = min(place, 255)
    total, line = total_line(history)
    readable = history.rows["readable"].to_pylist()
    columns = {
        "version": numbers(history.rows["version"]),
        "added": history.added,
        "removed": history.removed,
        "total": total.astype(np.float64),
        "kind": kind,
        "unknown": history.unknown.astype(np.uint8),
        "schema": changed_schema(history.rows).astype(np.uint8),
        "readable": np.array([_READABLE.get(word, 0) for word in readable], np.uint8),
    }
    return {
        **{name: np.ascontiguousarray(values).tobytes() for name, values in columns.items()},
        "measure": y,
        "line": line,
        "room": below(history.flags),
        "kinds": [
            {"name": legible(name), "colour": look.colour, "pattern": look.pattern, "sign": look.sign}
            for name, look in ((name, STYLES.get(name, OTHER)) for name, _, _ in kinds)
        ],
        "flags": _flags(history),
        **_commit_texts(history),
    }


def _flags(history: History) -> list[dict[str, object]]:
    """Return the flags of each sort, at places among the commits."""
    return [
        {
            "noun": flags.flag.noun,
            "colour": flags.flag.colour,
            "at": np.searchsorted(history.x, flags.x).tolist(),
            "y": flags.y.tolist(),
            "labels": flags.labels if flags.has_labels else None,
        }
        for flags in history.flags
    ]


def _commit_texts(history: History) -> dict[str, object]:
    """Return the tooltip of each commit; for many commits, the values that the page formats."""
    if not history.is_long:
        return {"told": ["\n".join(commit_lines(row, schema)) for row, schema in commit_records(history)]}
    time = gaps(history.rows["committed_at"].cast("int64")).astype(np.float64)
    return {"told": None, "time": time.tobytes(), "names": _names(history.rows)}


def _names(rows: pa.Table) -> dict[str, list[str]]:
    """Return the lines that name the tags and branches of a commit, by its place as text."""
    found: dict[str, list[str]] = {}
    for noun in ("tags", "branches"):
        has_names = pc.fill_null(pc.greater(pc.list_value_length(rows[noun]), 0), False).to_numpy()  # noqa: FBT003 - the value that null becomes
        places = np.flatnonzero(has_names)
        most = MAX_NAMES if len(places) <= _MAX_FULL_NAMES else 1
        for place, names in zip(places.tolist(), rows[noun].take(places).to_pylist(), strict=True):
            found.setdefault(str(place), []).append(name_line(noun, names, most))
    return found
