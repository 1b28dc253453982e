"""`%snapshot diff`: the differences between two versions."""

from snapshot_explorer.compare import Comparison
from snapshot_explorer.frames import Frame
from snapshot_explorer.jupyter.command import TABLE, Argument, Command, Invocation, Option
from snapshot_explorer.refs import parse_range

DIFF_PARTS = {
    "stat": "summary",
    "commits": "commits",
    "schema": "schema",
    "properties": "properties",
    "partitions": "partitions",
    "files": "files",
    "manifests": "manifests",
}
"""The flags of `diff`, and the part of the comparison that each selects."""


def _diff(invocation: Invocation) -> Comparison | Frame:
    """Return the differences of two versions, or one selected part."""
    arguments = invocation.arguments
    text = arguments.get("a..b") or "latest^..latest"
    a, b = parse_range(text if ".." in text else f"{text}..latest")
    _, table = invocation.table()
    comparison = table.compare(a, b)
    parts = [part for flag, part in DIFF_PARTS.items() if arguments.has(flag)]
    if len(parts) == 1:
        part: Frame = getattr(comparison, parts[0])
        return part
    return comparison.showing(*parts)


DIFF = Command(
    name="diff",
    summary="What differs between two versions",
    run=_diff,
    python='orders.compare(17, "latest").files',
    examples=(
        "%snapshot diff 17..latest",
        "%snapshot diff",
        "%snapshot diff tag:v1..latest --files",
        "%snapshot diff 17..18 --manifests",
        "c = %snapshot diff @2026-11-01..@2026-11-02",
    ),
    arguments=(
        Argument(
            name="A..B",
            value_type="range",
            meaning="from version A to version B; A alone means A..latest, nothing means latest^..latest",
        ),
    ),
    options=(
        Option(flags=("--stat",), meaning="shared, removed and added files, rows and bytes"),
        Option(flags=("--commits",), meaning="the commits between"),
        Option(flags=("--schema",), meaning="columns and keys: added, dropped, renamed, widened, ..."),
        Option(flags=("--properties",), meaning="properties that were set, changed or removed"),
        Option(flags=("--partitions",), meaning="differences by partition and bucket"),
        Option(flags=("--files",), meaning="data files that were added, removed, moved, or had rows deleted"),
        Option(
            flags=("--manifests",),
            meaning="each manifest: carried over, added, merged away or rewritten; removed if B is older",
        ),
        TABLE,
    ),
    notes="Returns a Comparison that shows the selected parts; with one flag, returns that part, a frame. "
    "Reads metadata only. For the entries of a manifest: c.entries(NAME).",
)
