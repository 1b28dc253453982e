"""`Retention`: the effect of a retention rule on a table, and what prevents other deletions."""

import operator
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import SupportsIndex

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.text import format_size, pluralize
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.formats.expiry import Expiry, RetentionRule, parse_duration
from snapshot_explorer.formats.unread_versions import Reasons
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.results import Frame, non_empty_columns
from snapshot_explorer.view import Code, Drawable, Drawing, Line, Pairs, Part

_MAX_KEEP_LAST = 2**31 - 1
_LINE = 100
"""The maximum length of a line of a command."""
_STRICTEST = Code("%snapshot retention --keep 0d --keep-last 1")


class Retention(Drawable):
    """The versions, files and bytes that a rule would delete, and what prevents other deletions. Displays itself.

    Deletes nothing: `commands` contains the command for the engine.
    """

    def __init__(self, name: str, expiry: Expiry, *, notes: Sequence[str] = (), is_default: bool = False) -> None:
        """Create a report. Use `Table.retention` to get one."""
        self._name = name
        self._expiry = expiry
        self._is_default = is_default
        self.commands: tuple[tuple[str, str], ...] = expiry.commands
        """Pairs of engine and command, which this package never runs; none for a table without versions."""
        self.notes: tuple[str, ...] = (*expiry.notes, *([expiry.unknown] if expiry.unknown else []), *notes)
        """Sentences on what the report could not take into account, such as missing versions."""

    @cached_property
    def versions(self) -> Frame:
        """Return RETAINED: the fate of each version and the reason, newest first."""
        rows = self._expiry.versions.sort_by([("version", "descending")])
        return Frame(rows, title=f"Versions of {self._name}", noun="versions")

    @cached_property
    def lost(self) -> Frame:
        """Return the RETAINED rows of versions that can be loaded now, but not afterwards; newest first."""
        rows = self.versions.to_arrow()
        return Frame(rows.filter(pc.equal(rows["outcome"], "lost")), title="Versions lost", noun="versions")

    @cached_property
    def freed(self) -> Frame:
        """Return FREED: the files that would be deleted."""
        rows = self._expiry.freed
        return Frame(
            rows,
            title=f"Files of {self._name} that would be deleted",
            noun="files",
            drawn=non_empty_columns(rows),
        )

    @cached_property
    def metadata_files(self) -> Frame:
        """Return FREED: the metadata files that would be deleted; the notes state by which command."""
        rows = self._expiry.metadata
        return Frame(
            rows,
            title=f"Metadata files of {self._name} that would be deleted",
            noun="metadata files",
            drawn=non_empty_columns(rows),
        )

    @cached_property
    def holders(self) -> Frame:
        """Return HOLDERS: what keeps files that the newest version no longer has, and what its removal would free."""
        rows = self._expiry.holders
        return Frame(
            rows,
            title="What holds files",
            noun="holders",
            drawn=non_empty_columns(rows, exclude=("note",)),
            limit=len(rows),
        )

    @property
    def freed_files(self) -> int:
        """Return the number of files that are known to be deleted; `notes` state whether others may be."""
        return len(self.freed)

    @property
    def freed_bytes(self) -> int | None:
        """Return the size in bytes of the files that would be deleted; None if one of them, or its size, is unknown."""
        sizes = self._expiry.freed["size_bytes"]
        return None if sizes.null_count or self._expiry.unknown else pc.sum(sizes).as_py() or 0

    @property
    def _freed_size(self) -> str:
        if self.freed_bytes is not None:
            return format_size(self.freed_bytes)
        sizes = self._expiry.freed["size_bytes"]
        unknown = f"the size of {pluralize(sizes.null_count, 'file')} is unknown" if sizes.null_count else ""
        parts = [part for part in (unknown, "others may be deleted too" if self._expiry.unknown else "") if part]
        return f"at least {format_size(pc.sum(sizes).as_py() or 0)}: {', and '.join(parts)}"

    def drawing(self) -> Drawing:
        """Return the drawing: the rule, what would be deleted, what prevents other deletions, and the command."""
        outcomes = Counter(self.versions.to_arrow()["outcome"].to_pylist())
        rows: list[tuple[str, object]] = [
            *self._expiry.rules,
            ("lost versions", self._lost_range),
            ("kept versions", f"{outcomes['kept']:,} of {len(self.versions):,}"),
            ("gone versions", f"{outcomes['gone']:,}, which cannot be loaded now" if outcomes["gone"] else None),
            ("freed", f"{pluralize(self.freed_files, 'file')}, {self._freed_size}{self._parts}"),
            ("metadata", pluralize(len(self.metadata_files), "file") if len(self.metadata_files) else None),
        ]
        parts: list[Part] = [Pairs(tuple(row for row in rows if row[1] is not None))]
        if len(self.holders):
            parts += [Line("What keeps files that the newest version no longer has:"), *self.holders.drawing().parts]
        noted = [row for row in self._expiry.holders.to_pylist() if row["note"]]
        parts += [Line(f"{row['holder'].capitalize()} {row['name']}: {row['note']}.") for row in noted]
        parts += self._commands_drawn()
        parts += [Line(note) for note in self.notes]
        return Drawing(title=f"Retention of {self._name}, dry run: what would be deleted", parts=tuple(parts))

    def _commands_drawn(self) -> list[Part]:
        if self.commands and not len(self.lost) and not len(self.freed) and not self._expiry.unknown:
            nothing = Line("Nothing would be lost and no file would go, so no command is shown.")
            return [nothing, Line("What the strictest rule would free:"), _STRICTEST] if self._is_default else [nothing]
        parts: list[Part] = []
        for whom, command in self.commands:
            parts += [Line(f"{whom}:"), Code("\n".join(_command_lines(command)))]
        return [*parts, *(Line(note) for note in self._expiry.command_notes if self.commands)]

    @property
    def _lost_range(self) -> str:
        outcomes = [row["outcome"] for row in self.versions.to_arrow().to_pylist()]
        lost = self.lost["version"].to_pylist()
        if len(lost) < 2:  # noqa: PLR2004 - a range
            return f"{lost[0]}" if lost else "none"
        newest = outcomes.index("lost")
        between = set(outcomes[newest : len(outcomes) - outcomes[::-1].index("lost")])
        gaps = "" if between == {"lost"} else "; some between are kept"
        return f"{lost[-1]} to {lost[0]} ({len(lost):,} versions{gaps})"

    @property
    def _parts(self) -> str:
        """Return the kinds of files that would be deleted, unless there are only data files."""
        by_kind = self._expiry.freed.group_by("what", use_threads=False).aggregate(
            [("size_bytes", "sum", pc.ScalarAggregateOptions(skip_nulls=False)), ([], "count_all")]
        )
        parts = [
            f"{row['count_all']:,} {row['what']}"
            + (" (size unknown)" if row["size_bytes_sum"] is None else f" ({format_size(row['size_bytes_sum'])})")
            for row in by_kind.to_pylist()
        ]
        return "" if set(self._expiry.freed["what"].to_pylist()) <= {"data"} else f": {', '.join(parts)}"


def retention_of(
    table_format: TableFormat,
    lifetimes: FileLifetimes,
    *,
    keep: str | timedelta | None,
    keep_last: int | None,
    name: str,
    now: datetime | None = None,
) -> Retention:
    """Return the effect of a retention rule on a table; see `Table.retention`."""
    rule = RetentionRule(keep=_age(keep), keep_last=_number(keep_last), now=now or datetime.now(UTC))
    newest = max((*lifetimes.versions, *lifetimes.unread), default=None)
    expiry = table_format.maintenance.expiry(rule, lifetimes.recorded(), newest, lifetimes.unread)
    expiry = replace(expiry, versions=_with_unread(expiry.versions, lifetimes.unread))
    return Retention(name, expiry, notes=lifetimes.notes, is_default=keep is None and keep_last is None)


def _with_unread(versions: pa.Table, unread: Reasons) -> pa.Table:
    """Return RETAINED in which versions that cannot be read are gone, with the reason."""
    if not unread:
        return versions
    rows = {row["version"]: row for row in versions.to_pylist()}
    for version, error in unread.items():
        known = rows.get(version, {"version": version, "committed_at": None})
        rows[version] = known | {"outcome": "gone", "because": f"it cannot be read: {str(error).rstrip('.')}"}
    return pa.Table.from_pylist([row for _, row in sorted(rows.items())], frames.RETAINED)


def _age(keep: str | timedelta | None) -> timedelta | None:
    age = parse_duration(keep) if isinstance(keep, str) else keep
    if keep is not None and (not isinstance(age, timedelta) or age < timedelta(0)):
        hint = f"Did you mean {keep}d? " if isinstance(keep, str | int) and str(keep).isdecimal() else ""
        raise InvalidArgumentError(
            f"keep={keep!r} is not a duration. {hint}Use a whole number with a unit: 0d, 36h, 7d, 2w or "
            "'1 day 12 hours'."
        )
    return age


def _number(keep_last: object) -> int | None:
    if keep_last is None:
        return None
    number = operator.index(keep_last) if isinstance(keep_last, SupportsIndex) else 0
    if not 0 < number <= _MAX_KEEP_LAST:
        raise InvalidArgumentError(
            f"keep_last must be 1 to {_MAX_KEEP_LAST:,}, got {keep_last!r}. The newest version is always kept."
        )
    return number


def _command_lines(command: str) -> list[str]:
    """Return a command in lines, broken between its arguments, so that it can be copied."""
    lines = [""]
    for part in re.split(r"(?<=[,;]) ", command):
        if lines[-1] and len(lines[-1]) + len(part) >= _LINE:
            lines.append("")
        lines[-1] = f"{lines[-1]} {part}".lstrip()
    return lines
