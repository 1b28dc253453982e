"""What is drawn of usage: what holds the bytes, what could be freed, and what was not counted."""

from snapshot_explorer.analysis.usage.freeing import FreeingExpiry, Removal
from snapshot_explorer.analysis.usage.report import Usage
from snapshot_explorer.core.hints import Message
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, Part


@draw.register
def _usage(usage: Usage) -> Drawing:
    """Return the drawing: each file once by what holds it, the groups, and what would be freed."""
    parts: list[Part] = [Line(usage.verdict)]
    if usage.removal is not None:
        parts += _removal_parts(usage.removal)
    if usage.expiry is not None:
        parts += _expiry_parts(usage.expiry)
    rows = usage.summary.to_arrow()
    shown = [name for name in rows.column_names if name in ("group", "files", "size_bytes") or name[:5] == "cost_"]
    parts += [Grid(rows.select(shown), noun="kinds of holders"), Line(f"By {usage.by}:")]
    parts += drawing_of(usage.groups).parts
    parts += [Line(note) for note in usage.notes]
    version = "which has no version yet" if usage.version is None else f"newest version {usage.version}"
    return Drawing(title=f"Usage of {usage.name}, {version}", parts=tuple(parts))


def _expiry_parts(expiry: FreeingExpiry) -> list[Part]:
    sizes = f"{format_size(expiry.freed_bytes)}, {format_size(expiry.needed_bytes)} requested"
    lost = pluralize(len(expiry.retention.unloadable), "version")
    frees = "The mildest expiry that frees enough" if expiry.is_enough else "Not enough: the strictest expiry"
    kept = "only the newest version" if expiry.keep_last == 1 else f"the newest {expiry.keep_last:,} versions"
    parts: list[Part] = [Line(f"{frees} keeps {kept} and frees {sizes}. It loses {lost}:"), Code(Message(expiry.hint))]
    for whom, command in expiry.retention.commands:
        parts += [Line(f"{whom}:"), Code(command)]
    notes = (*expiry.retention.expiry.command_notes, expiry.retention.expiry.unknown)
    return [*parts, *(Line(note) for note in notes if note)]


def _removal_parts(removal: Removal) -> list[Part]:
    names = [*([runs_text(runs_of(removal.versions))] if removal.versions else []), *removal.others]
    what = f"Without {', '.join(names) or 'nothing'}"
    if removal.freed_files is None:
        return [Line(f"{what}: unknown.")]
    if not removal.freed_files:
        return [Line(f"{what}, something holds every file.")]
    size = "of unknown size" if removal.freed_bytes is None else format_size(removal.freed_bytes)
    files = pluralize(removal.freed_files, "file")
    return [Line(f"{what}, nothing holds {files}, {size}."), *drawing_of(removal.freed).parts]
