"""Commits over versions as columns of bytes, for a page that draws them itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.view.commits import MAX_NAMES, name_line, with_totals
from snapshot_explorer.view.figures import clean_text, numbers, numbers_with_gaps
from snapshot_explorer.view.palette import page_color
from snapshot_explorer.view.row_changes import with_row_changes
from snapshot_explorer.view.timeline.flags import bars_top
from snapshot_explorer.view.timeline.marks import TimelineMarks, timeline_marks

Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.float64] | npt.NDArray[np.uint8]


_READABLE = {"metadata": 1, "no": 2}
_EXACT = 2**50
"""Numbers up to this are exact in a browser, and so are their differences, and the differences of these."""
_FEW = 20
"""Gaps are listed if at most one number in this many begins or ends one."""
_LONGEST_RULE = 300
_MAX_WORDS = 1_000
"""The maximum number of different operations, and of users, that are included."""
_MAX_FULL_NAMES = 1_000
"""The maximum number of commits with tags or branches whose names are included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """Facts of a table in addition to its commits."""

    branches: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The names of the branches that begin with a version, by version."""
    totals: pa.Table | None = None
    """The size of the table at versions: version, files, rows, size_bytes."""
    anomalies: pa.Table | None = None
    """ANOMALIES, to be marked."""
    notes: Sequence[str] = ()
    """Sentences on what is missing from the commits, such as a version."""


def timeline_columns(commits: pa.Table, *, y: str, facts: TableFacts) -> dict[str, object]:
    """Return commits as columns, oldest first: the content of `timeline` as numbers of `pack_numbers`.

    `total` and `time`, in milliseconds, are NaN if unknown; `kind` is an index into `kinds`, `unknown`, `quiet` and
    `schema` are 0 or 1, `readable` is 0 (yes, or not checked), 1 (metadata) or 2 (no), and
    `shades` has the first and the last index of each range of these. `operations` and `users` each contain the
    distinct words and, for each commit, the index of its word. `names` are the lines of tags and branches.

    Args:
        commits: COMMITS, in any order.
        y: The measure: rows, files or bytes.
        facts: The other facts to draw.

    Raises:
        InvalidArgumentError: `y` is not a measure.
    """
    known = with_totals(commits, facts.totals)
    marks = timeline_marks(known, y, branches=facts.branches, anomalies=facts.anomalies, sizes=facts.totals)
    kinds = list(marks.of_kinds())
    kind = np.zeros(len(marks.rows), np.uint8)
    for index, (_, _, chosen) in enumerate(kinds):
        kind[chosen] = min(index, 255)
    total, line = marks.total_line
    readable = marks.rows["readable"].to_pylist()
    columns: dict[str, Numbers] = {
        "version": numbers(marks.rows["version"]),
        "added": marks.bars.up,
        "removed": marks.bars.down,
        "total": total.astype(np.float64),
        "kind": kind,
        "unknown": marks.bars.unknown.astype(np.uint8),
        "quiet": marks.bars.quiet.astype(np.uint8),
        "schema": marks.schema_changes.astype(np.uint8),
        "readable": np.array([_READABLE.get(word, 0) for word in readable], np.uint8),
        "time": numbers_with_gaps(marks.rows["committed_at"].cast("int64")).astype(np.float64),
    }
    return {
        **{name: pack_numbers(values) for name, values in columns.items()},
        "measure": y,
        "sides": marks.sides,
        "unknownWord": marks.unknown_word,
        "isCounted": marks.counted_versions is not None,
        "shades": [[shade.first, shade.last, _READABLE[shade.readable]] for shade in marks.shades],
        "line": line,
        "room": bars_top(marks.flags),
        "kinds": [
            {"name": clean_text(name), "color": page_color(look.color), "pattern": look.pattern, "sign": look.sign}
            # A kind is gray if none of its commits changes rows.
            for name, look in (
                (name, style.quiet() if marks.bars.quiet[of_kind].all() else style) for name, style, of_kind in kinds
            )
        ],
        "flags": _flags(marks),
        "notes": list(facts.notes),
        "jumps": _jumps(marks),
        "operations": _words(marks.rows["operation"]),
        "users": _words(marks.rows["user"]),
        "changes": _words(with_row_changes(marks.rows)["rows"]),
        "names": _names(marks.rows),
    }


def pack_numbers(values: Numbers) -> dict[str, object]:
    """Return numbers in few little-endian bytes.

    Without `first`, `data` contains the numbers as `type`, int64 or float64. With it, `data` contains for each number
    but the first its difference from the one before, less `step`; empty data are zeros, so that versions without a gap
    need no bytes. `gaps` contains, alternately, the positions at which numbers become unknown and known again.
    """
    known = ~np.isnan(values.astype(np.float64))
    gaps = np.flatnonzero(np.diff(known, prepend=True))
    indices = np.maximum.accumulate(np.where(known, np.arange(len(values)), 0))
    filled = np.where(known, values, 0)[indices]
    is_raw = (
        len(gaps) > len(values) / _FEW or not len(values) or float(np.abs(filled.astype(np.float64)).max()) > _EXACT
    )
    if is_raw or (filled.astype(np.int64) != filled).any():
        dtype = np.dtype("<f8" if values.dtype.kind == "f" else "<i8")
        return {"type": dtype.name, "data": values.astype(dtype).tobytes(), "count": len(values)}
    whole = filled.astype(np.int64)
    steps = np.diff(whole)
    step = int(steps.min()) if len(steps) else 0
    above = steps - step
    most = int(above.max(initial=0))
    dtype = next((np.dtype(item) for item in ("u1", "<u2", "<u4") if most <= np.iinfo(item).max), np.dtype("<f8"))
    return {
        "type": dtype.name,
        "data": above.astype(dtype).tobytes() if most else b"",
        "count": len(whole),
        "first": int(whole[0]),
        "step": step,
        "gaps": gaps.tolist(),
    }


def _flags(marks: TimelineMarks) -> list[dict[str, object]]:
    """Return the flags of each kind, with their indices among the commits."""
    return [
        {
            "noun": flags.flag.noun,
            "color": page_color(flags.flag.color),
            "at": np.searchsorted(marks.x, flags.x).tolist(),
            "y": flags.y.tolist(),
            "labels": flags.labels if flags.has_labels else None,
        }
        for flags in marks.flags
    ]


def _words(texts: pa.ChunkedArray) -> dict[str, object]:
    """Return the distinct texts, and the index of each; only empty text if there are too many."""
    encoded = pc.fill_null(texts, "").combine_chunks().dictionary_encode()
    if len(encoded.dictionary) > _MAX_WORDS:
        return {"words": [""], "at": pack_numbers(np.zeros(len(texts), np.int64))}
    return {
        "words": [clean_text(text) for text in encoded.dictionary.to_pylist()],
        "at": pack_numbers(encoded.indices.to_numpy().astype(np.int64)),
    }


def _jumps(marks: TimelineMarks) -> list[dict[str, object]]:
    """Return the anomalies of each commit as text, with its place."""
    return [
        {"at": index, "text": "\n".join(clean_text(f"anomaly: {rule}", _LONGEST_RULE) for rule in rules[:MAX_NAMES])}
        for index, rules in marks.jumps
    ]


def _names(rows: pa.Table) -> dict[str, list[str]]:
    """Return the lines that name the tags and branches of a commit, by its place as text."""
    result: dict[str, list[str]] = {}
    for noun in ("tags", "branches"):
        has_names = pc.fill_null(pc.greater(pc.list_value_length(rows[noun]), 0), False).to_numpy()  # noqa: FBT003 - the value that null becomes
        indices = np.flatnonzero(has_names)
        most = MAX_NAMES if len(indices) <= _MAX_FULL_NAMES else 1
        for index, names in zip(indices.tolist(), rows[noun].take(indices).to_pylist(), strict=True):
            result.setdefault(str(index), []).append(name_line(noun, names, most))
    return result
