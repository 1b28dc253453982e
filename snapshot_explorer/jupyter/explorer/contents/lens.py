"""The manifest lens: the lists base, delta and changelog of A and B beside each other, down to entries; no widget."""

from collections.abc import Mapping, Sequence
from typing import Any

from snapshot_explorer.core.text import format_size
from snapshot_explorer.jupyter.explorer.contents.grid_rows import grid_rows
from snapshot_explorer.jupyter.explorer.contents.view_requests import DRAWN, SnapshotCache, ViewRequest, ViewResult
from snapshot_explorer.results import non_empty_columns
from snapshot_explorer.view import Drawing, Grid, Item, Lane, LaneDiagram, Line

_Row = Mapping[str, Any]


SIGNS = {
    "carried over": "=",
    "added": "+",
    "removed": "-",
    "merged away": "-",
    "left behind": "-",
    "rewritten": "~",
    None: "?",
}
"""Whether a manifest was added, removed or carried over, as a sign."""
_LISTS = ("base", "delta", "changelog", "index")
_ALWAYS = _LISTS[:3]
_FEW = 5
"""Manifests of a lane that are shown though they are carried over."""
_MOST = 300
"""The maximum number of lines of a lane; the line of code has all manifests."""
_LEGEND = "Signs: = carried over, + added, - merged away or left behind, ~ rewritten."
_LEGEND_BACK = "Signs: = carried over, + added, - removed."


def manifests(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the manifests of A and B by list, with whether each was added, removed or carried over."""
    a, b = request["a"], request["b"]
    rows = cache.compare(a, b).manifests.to_arrow().to_pylist()
    by_lane = {name: _lane(rows, name) for name in _LISTS}
    carried = {name: 0 if request["carried"] else _count_carried(pairs) for name, pairs in by_lane.items()}
    listed = {name: pairs[: len(pairs) - carried[name]] for name, pairs in by_lane.items()}
    lanes = []
    for name, pairs in by_lane.items():
        if pairs or name in _ALWAYS:
            items = tuple((_item(left), _item(right)) for left, right in listed[name][:_MOST])
            items += _summary(pairs[-carried[name] :]) if carried[name] else ()
            total = max(len(listed[name]), len(items))
            lanes.append(Lane(name=name if pairs else f"{name}: no manifest", rows=items, total=total))
    words, legend = (_WORDS, _LEGEND) if a <= b else (_WORDS_BACK, _LEGEND_BACK)
    signs = [SIGNS[row["status"]] for row in rows]
    summary = ", ".join(f"{signs.count(sign):,} {word}" for word, sign in words.items() if sign in signs)
    drawing = Drawing(
        title=f"Manifests of version {a} and version {b}",
        parts=(
            Line(f"{summary or 'Neither version has a manifest'}. {legend}"),
            Line(direction(a, b)),
            LaneDiagram(heads=(f"A: version {a}", f"B: version {b}"), lanes=tuple(lanes), noun="manifests"),
        ),
    )
    drawn = [right or left for pairs in listed.values() for left, right in pairs[:_MOST]]
    return ViewResult(
        drawing=drawing,
        code=f"{request.name}.compare({a}, {b}).manifests",
        source=cache.cited(a, b),
        choices=tuple((f"{SIGNS[row['status']]} {_name(row['path'])}", row["path"]) for row in drawn if row),
    )


_WORDS = {"carried over": "=", "added": "+", "merged away": "-", "rewritten": "~", "not known": "?"}
_WORDS_BACK = {"carried over": "=", "added": "+", "removed": "-"}
"""The words for an older B."""


def direction(a: int, b: int) -> str:
    """Return the direction in which A and B are compared, as a sentence."""
    if a == b:
        return f"A and B are both version {a}."
    if a < b:
        return f"Forward from version {a} (A) to version {b} (B): + is new in B, - is gone from B."
    return f"Back from version {a} (A) to the older version {b} (B): + is only in B, - is only in A."


def _count_carried(pairs: Sequence[tuple[_Row | None, _Row | None]]) -> int:
    """Return the number of lines at the end of a lane that are carried over and only counted, since they are many."""
    count = sum(1 for pair in pairs if _is_carried(pair))
    return count if count > _FEW else 0


def _is_carried(pair: tuple[_Row | None, _Row | None]) -> bool:
    return all(SIGNS[row["status"]] == "=" for row in pair if row is not None)


def _summary(pairs: Sequence[tuple[_Row | None, _Row | None]]) -> tuple[tuple[Item | None, Item | None], ...]:
    """Return the line that counts manifests that are carried over."""
    left, right = (sum(pair[side] is not None for pair in pairs) for side in (0, 1))
    items = [
        Item(sign="=", name=f"{count:,} carried over", description="") if count else None for count in (left, right)
    ]
    return ((items[0], items[1]),)


def _lane(rows: Sequence[_Row], name: str) -> Sequence[tuple[_Row | None, _Row | None]]:
    """Return the manifests that A and B list, common ones in one line; manifests that are carried over come last."""
    both = [(row, row) for row in rows if row["list_a"] == name == row["list_b"]]
    only_a = [row for row in rows if row["list_a"] == name != row["list_b"]]
    only_b = [row for row in rows if row["list_b"] == name != row["list_a"]]
    longest = max(len(only_a), len(only_b))
    rest = [
        (only_a[at] if at < len(only_a) else None, only_b[at] if at < len(only_b) else None) for at in range(longest)
    ]
    return sorted([*both, *rest], key=_is_carried)


def _item(row: _Row | None) -> Item | None:
    if row is None:
        return None
    counts = [f"{sign}{row[name]:,}" for sign, name in (("+", "added_files"), ("-", "removed_files")) if row[name]]
    parts = [*counts, *([format_size(row["size_bytes"])] if row["size_bytes"] is not None else [])]
    return Item(sign=SIGNS[row["status"]], name=_name(row["path"]), description="  ".join(parts), opens=row["path"])


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def entries(cache: SnapshotCache, request: ViewRequest) -> ViewResult:
    """Return the entries of the chosen manifest."""
    a, b, manifest = request["a"], request["b"], request["manifest"]
    frame = cache.compare(a, b).entries(manifest)
    rows = frame.to_arrow()
    drawn = rows.select(non_empty_columns(rows))
    return ViewResult(
        drawing=Drawing(
            title=f"{frame.title.replace(manifest, _name(manifest))}: {len(rows):,}",
            parts=(Grid(drawn, noun="entries", limit=DRAWN),),
        ),
        code=f"{request.name}.compare({a}, {b}).entries({_name(manifest)!r})",
        source=f"{cache.table.path}, {manifest}",
        grid=grid_rows(drawn, noun="entries"),
    )
