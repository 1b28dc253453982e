"""What is drawn of retention, usage, orphaned and verified files: what could be deleted, and what is missing."""

import re
from collections import Counter

import pyarrow as pa

from snapshot_explorer.analysis.retention.orphans import Orphans
from snapshot_explorer.analysis.retention.report import Retention
from snapshot_explorer.analysis.retention.verification import Verification
from snapshot_explorer.analysis.usage.freeing import FreeingExpiry, Removal
from snapshot_explorer.analysis.usage.report import Usage
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_total_size
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import runs_of, runs_text
from snapshot_explorer.core.text import format_size, format_utc, pluralize
from snapshot_explorer.formats.expiry import format_duration
from snapshot_explorer.results import Frame
from snapshot_explorer.view.dispatch import draw, drawing_of
from snapshot_explorer.view.drawing import Code, Drawing, Grid, Line, Pairs, Part

_MOST_NOTES = 5
_LINE = 100
"""The maximum length of a line of a command."""
_STRICTEST = Code(Message(Hint("table.retention", {"keep": "0d", "keep_last": 1})))


@draw.register
def _retention(retention: Retention) -> Drawing:
    """Return the drawing: the rule, what would be deleted, what prevents other deletions, and the command."""
    outcomes = Counter(retention.versions.to_arrow()["outcome"].to_pylist())
    rows: list[tuple[str, object]] = [
        *retention.expiry.rules,
        ("lost versions", _lost_range(retention)),
        ("kept versions", f"{outcomes['kept']:,} of {len(retention.versions):,}"),
        ("gone versions", f"{outcomes['gone']:,}, which cannot be loaded now" if outcomes["gone"] else None),
        ("freed", f"{pluralize(retention.freed_files, 'file')}, {_freed_size(retention)}{_parts(retention)}"),
        ("metadata", pluralize(len(retention.metadata_files), "file") if len(retention.metadata_files) else None),
    ]
    parts: list[Part] = [Pairs(tuple(row for row in rows if row[1] is not None))]
    if len(retention.holders):
        parts += [Line("What keeps files that the newest version no longer has:"), *drawing_of(retention.holders).parts]
    noted = [row for row in retention.expiry.holders.to_pylist() if row["note"]]
    parts += [Line(f"{row['holder'].capitalize()} {row['name']}: {row['note']}.") for row in noted]
    parts += _commands_drawn(retention)
    parts += [Line(note) for note in retention.notes]
    return Drawing(title=f"Retention of {retention.name}, dry run: what would be deleted", parts=tuple(parts))


def _commands_drawn(retention: Retention) -> list[Part]:
    if (
        retention.commands
        and not len(retention.unloadable)
        and not len(retention.freed)
        and not retention.expiry.unknown
    ):
        nothing = Line("Nothing would be lost and no file would go, so no command is shown.")
        return [nothing, Line("What the strictest rule would free:"), _STRICTEST] if retention.is_default else [nothing]
    parts: list[Part] = []
    for whom, command in retention.commands:
        parts += [Line(f"{whom}:"), Code("\n".join(_command_lines(command)))]
    return [*parts, *(Line(note) for note in retention.expiry.command_notes if retention.commands)]


def _lost_range(retention: Retention) -> str:
    outcomes = [row["outcome"] for row in retention.versions.to_arrow().to_pylist()]
    lost = retention.unloadable["version"].to_pylist()
    if len(lost) < 2:  # noqa: PLR2004 - a range
        return f"{lost[0]}" if lost else "none"
    newest = outcomes.index("lost")
    between = set(outcomes[newest : len(outcomes) - outcomes[::-1].index("lost")])
    gaps = "" if between == {"lost"} else "; some between are kept"
    return f"{lost[-1]} to {lost[0]} ({len(lost):,} versions{gaps})"


def _freed_size(retention: Retention) -> str:
    if retention.freed_bytes is not None:
        return format_size(retention.freed_bytes)
    sizes = retention.expiry.freed["size_bytes"]
    unknown = f"the size of {pluralize(sizes.null_count, 'file')} is unknown" if sizes.null_count else ""
    parts = [part for part in (unknown, "others may be deleted too" if retention.expiry.unknown else "") if part]
    return f"at least {format_size(pc.sum(sizes).as_py() or 0)}: {', and '.join(parts)}"


def _parts(retention: Retention) -> str:
    """Return the kinds of files that would be deleted, unless there are only data files."""
    by_kind = retention.expiry.freed.group_by("what", use_threads=False).aggregate(
        [("size_bytes", "sum", pc.ScalarAggregateOptions(skip_nulls=False)), ([], "count_all")]
    )
    parts = [
        f"{row['count_all']:,} {row['what']}"
        + (" (size unknown)" if row["size_bytes_sum"] is None else f" ({format_size(row['size_bytes_sum'])})")
        for row in by_kind.to_pylist()
    ]
    return "" if set(retention.expiry.freed["what"].to_pylist()) <= {"data"} else f": {', '.join(parts)}"


def _command_lines(command: str) -> list[str]:
    """Return a command in lines, broken between its arguments, so that it can be copied."""
    lines = [""]
    for part in re.split(r"(?<=[,;]) ", command):
        if lines[-1] and len(lines[-1]) + len(part) >= _LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".lstrip()
    return lines


@draw.register
def _orphans(orphans: Orphans) -> Drawing:
    """Return the result as a drawing: the verdict, the kinds of files, the engine's clean-up, and the files."""
    rows = orphans.files.to_arrow()
    young, under_way = (len(orphans.in_state(state)) for state in ("young", "under way"))
    facts: list[tuple[str, object]] = [
        ("listed", f"{format_utc(orphans.examined_at)}, {pluralize(len(orphans.listed), 'file')}"),
        ("older than", format_duration(orphans.older_than)),
        ("younger", f"{pluralize(young, 'file')} without a name in the metadata, left out" if young else None),
        ("under way", f"{pluralize(under_way, 'file')} of commits under way, left out" if under_way else None),
        ("by kind", _by(rows, "kind") or None),
        ("clean-up", _by(rows, "clean_up") or None),
    ]
    parts: list[Part] = [Line(orphans.verdict), Pairs(tuple(fact for fact in facts if fact[1] is not None))]
    parts += [Line(Message("Not read: ", reason)) for reason in orphans.not_read[:_MOST_NOTES]]
    if len(orphans.not_read) > _MOST_NOTES:
        parts.append(Line(f"Not read: {len(orphans.not_read) - _MOST_NOTES:,} more."))
    parts += [Line(orphans.undecided)] if orphans.undecided else []
    parts += map(Line, orphans.notes)
    if len(rows):
        parts += [*drawing_of(orphans.files).parts, Line(orphans.clean_up.rule)]
        for whom, command in orphans.commands:
            parts += [Line(f"{whom}:"), Code(command)]
    return Drawing(title=f"Orphaned files of {orphans.name}", parts=tuple(parts))


def _by(rows: pa.Table, column: str) -> str:
    whole = pc.ScalarAggregateOptions(skip_nulls=False)
    groups = rows.group_by(column, use_threads=False).aggregate([("size_bytes", "sum", whole), ([], "count_all")])
    listed = sorted(groups.to_pylist(), key=lambda row: -row["count_all"])
    return ", ".join(
        f"{row['count_all']:,} {row[column] or 'unknown'} "
        f"({'size unknown' if row['size_bytes_sum'] is None else format_size(row['size_bytes_sum'])})"
        for row in listed
    )


@draw.register
def _verification(verification: Verification) -> Drawing:
    """Return the result as a drawing: the verdict, and the files with problems."""
    rows = verification.files.to_arrow()
    facts = (
        ("level", verification.level),
        ("verified", format_utc(verification.verified_at)),
        ("files", f"{len(rows):,}"),
    )
    parts: list[Part] = [
        Line(verification.verdict),
        Pairs((*facts, ("size", format_total_size(rows["size_bytes"])))),
        Line(f"{verification.versions.title}."),
        *map(Line, verification.notes[:_MOST_NOTES]),
    ]
    bad = rows.filter(pc.fill_null(pc.not_equal(rows["state"], "ok"), fill_value=True))
    reasons = Counter(zip(bad["state"].to_pylist(), bad["reason"].to_pylist(), strict=True))
    parts += [
        Line(f"{pluralize(count, 'file')} {state or 'not checked'}: {str(reason).rstrip('.')}.")
        for (state, reason), count in reasons.most_common(_MOST_NOTES)
    ]
    shown = Frame(bad, title="", noun="files that are not ok")
    return Drawing(
        title=f"Verification of {verification.name}", parts=(*parts, *(drawing_of(shown).parts if len(bad) else ()))
    )


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
    return [
        Line(f"{frees} keeps {kept} and frees {sizes}. It loses {lost}:"),
        Code(Message(expiry.hint)),
        *_commands_drawn(expiry.retention),
        *([Line(expiry.retention.expiry.unknown)] if expiry.retention.expiry.unknown else []),
    ]


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
