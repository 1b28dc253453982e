"""What is drawn of usage: what holds the bytes, what could be freed, and what was not counted."""

from snapshot_explorer.analysis.usage.removal import Removal
from snapshot_explorer.analysis.usage.report import Usage
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Drawing, Grid, Line, Part


@draw.register
def _usage(usage: Usage) -> Drawing:
    """Return the drawing: each file once by what holds it, the groups, and what would be freed."""
    summary = usage.summary.to_arrow().select(["group", "files", "size_bytes"])
    parts: list[Part] = [Grid(summary, noun="kinds of holders")]
    parts += [Line(f"By {usage.by}:"), *drawing_of(usage.groups).parts]
    if usage.removal is not None:
        parts += _removal_parts(usage.removal)
    parts += [Line(note) for note in (*usage.unread, *usage.notes)]
    version = "which has no version yet" if usage.version is None else f"newest version {usage.version}"
    return Drawing(title=f"Usage of {usage.name}, {version}", parts=tuple(parts))


def _removal_parts(removal: Removal) -> list[Part]:
    names = [*([runs_text(runs_of(removal.versions))] if removal.versions else []), *removal.others]
    what = f"Without {', '.join(names) or 'nothing'}"
    if removal.freed_files is None:
        return [Line(f"{what}: unknown.")]
    size = "of unknown size" if removal.freed_bytes is None else format_size(removal.freed_bytes)
    verb = "nothing holds" if removal.freed_files else "something holds"
    count = pluralize(removal.freed_files, "file") if removal.freed_files else "every file"
    sized = f", {size}" if removal.freed_files else ""
    parts: list[Part] = [Line(f"{what}, {verb} {count}{sized}.")]
    return [*parts, *(drawing_of(removal.freed).parts if removal.freed_files else ())]
