"""The difference of two versions as a picture: files and bytes by part, and the partitions that differ most."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_cell
from snapshot_explorer.view.figures import ADDED, REMOVED, REWRITTEN, SHARED
from snapshot_explorer.view.palette import page_color
from snapshot_explorer.view.svg import plain, plot_svg, titled

_MAX_PARTITIONS = 20
"""The number of partitions and buckets that are drawn: the ones with the most files that differ."""
_PARTS = ("removed", "added", "rewritten: removed", "rewritten: added", "shared")
_COLORS = dict(zip(_PARTS, (REMOVED, ADDED, REWRITTEN, REWRITTEN, SHARED), strict=True))
_HIGH, _TOP = 20, 4
"""In pixels: a row, and the room above the first."""
_WIDE, _SECOND = 36.0, 52.0
"""The longest bar of a part, and where the bars of bytes begin, in percent of the plot."""


def difference_svg(summary: pa.Table, partitions: pa.Table, *, title: str) -> str:
    """Return the difference of two versions as SVG.

    Args:
        summary: COMPARED.
        partitions: COMPARED_PARTITIONS. The partitions with the most files that differ are drawn.
    """
    most = _largest_differences(partitions)
    plot = [*_part_bars(summary), _text(0, len(_PARTS) + 1, _caption(len(most), len(partitions)))]
    plot += _partition_bars(most, first=len(_PARTS) + 2)
    labels = ["", *_PARTS, "", *_names(most)]
    return plot_svg(plot, labels=labels, high=_HIGH, top=_TOP, keys=(), caption=title)


def _caption(shown: int, total: int) -> str:
    """Return the caption of the lower bars, with the number of bars that are not drawn."""
    if not total:
        return "no partition differs"
    note = f"; the {shown} of {total:,} partitions and buckets that differ most" if shown < total else ""
    return f"files removed (left) and added (right) by partition{note}"


def _part_bars(summary: pa.Table) -> Iterator[str]:
    """Yield bars of files and bytes, with rewritten files separate from removed and added ones."""
    counts = dict(zip(summary["part"].to_pylist(), summary.select(["files", "size_bytes"]).to_pylist(), strict=True))
    for start, name, unit in ((0.0, "files", "count"), (_SECOND, "size_bytes", "bytes")):
        values = _exclusive_parts({part: row[name] for part, row in counts.items()})
        most = max((value or 0 for value in values.values()), default=0)
        yield _text(start, 0, name.removeprefix("size_"))
        for row, (part, value) in enumerate(values.items(), 1):
            width = _WIDE * (value or 0) / max(1, most)
            text = "?" if value is None else format_cell(value, unit).text  # type: ignore[arg-type]  # one of the units
            yield _bar(start, width, row, _COLORS[part].color) + _text(start + width, row, text)


def _exclusive_parts(values: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return disjoint parts: removed and added files without rearranged ones; with them if these are unknown."""
    parts: dict[str, int | None] = dict.fromkeys(_PARTS, values["shared"])
    for side in ("removed", "added"):
        total, rearranged = values[side], values[f"{side}, rearranged"]
        parts[f"rewritten: {side}"] = rearranged
        parts[side] = None if total is None else total - (rearranged or 0)
    return parts


def _largest_differences(partitions: pa.Table) -> pa.Table:
    """Return the partitions with the most files that differ, the first of equals first."""
    weight = pc.add(partitions["removed_files"], partitions["added_files"])
    # A partition in which only deletion vectors differ has no file that differs.
    ranked = pa.table({"weight": weight, "place": pa.array(np.arange(len(partitions)))}).sort_by(
        [("weight", "descending"), ("place", "ascending")]
    )
    return partitions.take(ranked["place"].slice(0, _MAX_PARTITIONS))


def _partition_bars(most: pa.Table, *, first: int) -> Iterator[str]:
    """Yield a bar to the left for removed files and one to the right for added ones."""
    longest = max([pc.max(most[name]).as_py() or 0 for name in ("removed_files", "added_files")])
    for row, (partition, name) in enumerate(zip(most.to_pylist(), _names(most), strict=True), first):
        removed, added = (50 * (partition[f"{side}_files"] or 0) / max(1, longest) for side in ("removed", "added"))
        bars = _bar(50 - removed, removed, row, REMOVED.color) + _bar(50, added, row, ADDED.color)
        yield titled("\n".join([name, *_counts(partition)]), bars)


def _names(most: pa.Table) -> list[str]:
    names = []
    for partition, bucket in zip(most["partition"], most["bucket"].to_pylist(), strict=True):
        parts = [format_cell(partition).text] if len(partition) else []
        parts += [] if bucket is None else [f"bucket {bucket}"]
        names.append(" ".join(parts) or "the table")
    return names


def _counts(row: Mapping[str, object]) -> list[str]:
    """Return the counts of a partition, in lines."""
    units = {"net_bytes": "bytes"}
    return [
        f"{name.replace('_', ' ')}: {format_cell(value, units.get(name, 'count')).text if value is not None else '?'}"  # type: ignore[arg-type]  # one of the units
        for name, value in row.items()
        if name not in ("partition", "bucket")
    ]


def _bar(x: float, width: float, row: int, color: str) -> str:
    return (
        f'<rect x="{x:.2f}%" width="{width:.2f}%" y="{_TOP + _HIGH * row + 3}" height="{_HIGH - 6}" '
        f'fill="{page_color(color)}"/>'
    )


def _text(x: float, row: int, text: str) -> str:
    return f'<text x="{x:.2f}%" dx="4" y="{_TOP + _HIGH * (row + 0.5) + 4:g}">{plain(text)}</text>'
