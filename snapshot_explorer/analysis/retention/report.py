"""`Retention`: the effect of a retention rule on a table, and what prevents other deletions."""

import operator
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import SupportsIndex

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message, without_period
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.formats import TableFormat
from snapshot_explorer.formats.expiry import Expiry, RetentionRule, parse_duration
from snapshot_explorer.formats.unread_versions import Reasons
from snapshot_explorer.history.lifetimes import FileLifetimes
from snapshot_explorer.results import Frame, non_empty_columns

_MAX_KEEP_LAST = 2**31 - 1


class Retention(Shown):
    """The versions, files and bytes that a rule would delete, and what prevents other deletions. Displays itself.

    Deletes nothing: `commands` contains the command for the engine.
    """

    def __init__(self, name: str, expiry: Expiry, *, notes: Sequence[str] = (), is_default: bool = False) -> None:
        """Create a report. Use `Table.retention` to get one."""
        self.name = name
        self.expiry = expiry
        self.is_default = is_default
        self.commands: tuple[tuple[str, str], ...] = expiry.commands
        """Pairs of engine and command, which this package never runs; none for a table without versions."""
        self.notes: tuple[str, ...] = (*expiry.notes, *([expiry.unknown] if expiry.unknown else []), *notes)
        """Sentences on what the report could not take into account, such as missing versions."""

    @cached_property
    def versions(self) -> Frame:
        """Return RETAINED: the fate of each version and the reason, newest first."""
        rows = self.expiry.versions.sort_by([("version", "descending")])
        return Frame(rows, title=f"Versions of {self.name}", noun="versions")

    @cached_property
    def unloadable(self) -> Frame:
        """Return the RETAINED rows of versions that can be loaded now, but not afterwards; newest first."""
        rows = self.versions.to_arrow()
        return Frame(rows.filter(pc.equal(rows["outcome"], "lost")), title="Versions lost", noun="versions")

    @cached_property
    def freed(self) -> Frame:
        """Return FREED: the files that would be deleted."""
        rows = self.expiry.freed
        return Frame(
            rows,
            title=f"Files of {self.name} that would be deleted",
            noun="files",
            drawn=non_empty_columns(rows),
        )

    @cached_property
    def metadata_files(self) -> Frame:
        """Return FREED: the metadata files that would be deleted; the notes state by which command."""
        rows = self.expiry.metadata
        return Frame(
            rows,
            title=f"Metadata files of {self.name} that would be deleted",
            noun="metadata files",
            drawn=non_empty_columns(rows),
        )

    @cached_property
    def holders(self) -> Frame:
        """Return HOLDERS: what keeps files that the newest version no longer has, and what its removal would free."""
        rows = self.expiry.holders
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
        sizes = self.expiry.freed["size_bytes"]
        return None if sizes.null_count or self.expiry.unknown else pc.sum(sizes).as_py() or 0


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
        rows[version] = known | {
            "outcome": "gone",
            "because": Message("it cannot be read: ", without_period(error.message)),
        }
    return pa.Table.from_pylist([row for _, row in sorted(rows.items())], frames.RETAINED)


def _age(keep: str | timedelta | None) -> timedelta | None:
    age = parse_duration(keep) if isinstance(keep, str) else keep
    if keep is not None and (not isinstance(age, timedelta) or age < timedelta(0)):
        hint = f"Did you mean {keep}d? " if isinstance(keep, str | int) and str(keep).isdecimal() else ""
        raise InvalidArgumentError(
            Message(
                Hint("", {"keep": keep}),
                f" is not a duration. {hint}Use a whole number with a unit: 0d, 36h, 7d, 2w or '1 day 12 hours'.",
            )
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
