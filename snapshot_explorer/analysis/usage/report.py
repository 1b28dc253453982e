"""`Usage`: who holds the bytes of a table, and what would be freed without some of them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.usage.freeing import FreeingExpiry, Removal, expiry_that_frees, parse_size, removal_of
from snapshot_explorer.analysis.usage.groups import GROUPS, ONLY_OLDER, over_time, rows_beside, summary_rows
from snapshot_explorer.analysis.usage.held_files import HeldFiles, read_held_files
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import format_total_size
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import gaps_note
from snapshot_explorer.core.refs import RefLike
from snapshot_explorer.core.refs.records import brief_repr
from snapshot_explorer.core.shown import Shown
from snapshot_explorer.core.text import did_you_mean, pluralize
from snapshot_explorer.history import History
from snapshot_explorer.results import Frame, non_empty_columns

Price = float | Mapping[str, float]
"""A price per GB (10^9 bytes) and month; or prices by their names: `gb_month`, and per 1,000 requests of two classes
that stores bill: `read` (GET; Google's class B) and `write` (PUT, COPY, POST and LIST; Google's class A)."""
_PRICES = {
    "gb_month": (1e9, "cost_per_month", "size_bytes at the price that was passed; null if the size is unknown"),
    "read": (1e3, "cost_to_read", "of a request for each file, or of read_files; readers of parts of a file need more"),
    "write": (1e3, "cost_to_write", "of a request for each file; uploads of large files in parts need more"),
}
"""How many each price is for, the column of its costs, and what that means."""
_OF_READS = frozenset(
    ("version", "committed_at", "kind", "operation", "live_files", "live_bytes", "read_files", "read_bytes")
)
"""The columns of USAGE_OVER_TIME that are drawn with conditions; others are left out for their number."""
BY = tuple(GROUPS)
"""What usage can be grouped by."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Usage(Shown):
    """The data files of a table by what holds them, each byte once. Displays itself."""

    name: str
    """The name of the table."""
    version: int | None
    """The newest version, whose files are live; None for a table without versions."""
    by: str
    """What `groups` are."""
    summary: Frame
    """USAGE: live files, and the others by the kind of what holds them; on request also all other files in the table's
    folder, by their kind. Each file is in one row."""
    groups: Frame
    """USAGE by holder, version, commit, operation, user, day, partition or size class; for time USAGE_OVER_TIME, for
    column USAGE_BY_COLUMN."""
    removal: Removal | None
    """What would be freed without the requested versions, tags and branches; None if none were requested."""
    expiry: FreeingExpiry | None
    """The expiry that frees the requested bytes; None if none were requested, or without versions."""
    unread: tuple[str, ...]
    """What could not be read and may hold files, a sentence each."""
    notes: tuple[str, ...]
    """Sentences on what was not counted, or not looked at."""

    @property
    def verdict(self) -> str:
        """Return how many bytes are live and how many only older versions hold, in a sentence or two."""
        if self.version is None:
            return "The table has no version yet."
        rows = self.summary.to_arrow()
        of_versions = rows.filter(rows["live_files"].is_valid())
        total = format_total_size(of_versions["size_bytes"])
        live, others = (format_total_size(rows.slice(index, 1)["size_bytes"]) for index in (0, 1))
        if rows["group"][1].as_py() != ONLY_OLDER:
            return f"The newest version has {live} in data files. Others are known of {others}, and there may be more."
        return f"The newest version has {live} of {total} in data files. Only older versions hold {others}."


def usage_of(
    history: History,
    *,
    by: str,
    without: RefLike | Sequence[RefLike] | None,
    to_free: int | str | None,
    price: Price | None,
    everything: bool,
    where: Sequence[str] | str | None,
) -> Usage:
    """Return who holds the bytes of a table; see `Table.usage`."""
    if by not in BY:
        raise InvalidArgumentError(f"by must be one of {', '.join(BY)}, got {by!r}.{did_you_mean(by, BY)}")
    if where is not None and by != "time":
        raise InvalidArgumentError(Message("where is counted at each version: use ", Hint("", {"by": "time"}), "."))
    conditions = () if where is None else where if isinstance(where, list | tuple) else (where,)
    prices = checked_prices(price)
    needed = None if to_free is None else parse_size(to_free)
    files = read_held_files(history)
    summary, unread = summary_rows(files), files.unread
    if everything:
        beside, unread_beside = rows_beside(files)
        summary, unread = pa.concat_tables([summary, beside]), tuple(dict.fromkeys([*unread, *unread_beside]))
    noun, group = GROUPS[by]
    groups, unread_commits = over_time(files, conditions) if by == "time" else group(files)
    title = f"Usage of {history.name}"
    return Usage(
        name=history.name,
        version=int(files.plain[-1]) if len(files.plain) else None,
        by=by,
        summary=usage_frame(summary, prices, title=title, noun="kinds of holders", notes=unread),
        groups=usage_frame(groups, prices, title=f"{title} by {by}", noun=noun, notes=(*unread, *unread_commits)),
        removal=None if without is None else removal_of(files, without),
        expiry=None if needed is None else expiry_that_frees(history, needed, len(files.plain)),
        unread=unread,
        notes=tuple(_notes(history, files, by=by, everything=everything)),
    )


def checked_prices(price: object) -> Mapping[str, float]:
    """Return prices by their names; none for None.

    Raises:
        InvalidArgumentError: A price is not a number of 0 or more, or has another name.
    """
    prices: dict[str, Any] = {} if price is None else dict(price) if isinstance(price, Mapping) else {"gb_month": price}
    for name, value in prices.items():
        if name not in _PRICES:
            raise InvalidArgumentError(f"The names of prices are {', '.join(_PRICES)}; got {brief_repr(name)}.")
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
            where = f"price[{name!r}]" if isinstance(price, Mapping) else "price"
            raise InvalidArgumentError(
                f"{where} must be a number of 0 or more, got {brief_repr(value)}. Pass a price per GB and month, or a "
                f"dict with some of {', '.join(_PRICES)}."
            )
    return prices


def usage_frame(
    rows: pa.Table,
    prices: Mapping[str, float],
    *,
    title: str,
    noun: str,
    notes: tuple[str, ...],
    limit: int | None = None,
) -> Frame:
    """Return rows of usage as a frame, with a column of costs for each price."""
    drawn = {"group", *non_empty_columns(rows)}
    drawn = drawn & _OF_READS if "read_files" in drawn else drawn
    for kind in (kind for kind in _PRICES if kind in prices):
        unit, name, meaning = _PRICES[kind]
        counted = "read_files" if kind == "read" and "read_files" in rows.column_names else "files"
        number = rows["size_bytes" if kind == "gb_month" else counted].cast(pa.float64())
        cost = pc.divide(pc.multiply(number, float(prices[kind])), unit)
        rows = rows.append_column(pa.field(name, pa.float64(), metadata={"meaning": meaning, "unit": "money"}), cost)
        drawn.add(name)
    shown = tuple(name for name in rows.column_names if name in drawn)
    return Frame(rows, title=title, noun=noun, drawn=shown, notes=notes, limit=limit)


def _notes(history: History, files: HeldFiles, *, by: str, everything: bool) -> list[str]:
    """Return what was not counted, and what was not looked at."""
    changelogs = "" if history.table_format.changelogs is None else "changelogs, "
    notes = [
        "Data files are counted from metadata, all other files from a listing of the table's folder."
        if everything
        else "Data files are counted, from metadata. Not counted: metadata, deletion vectors, delete files, "
        f"{changelogs}orphaned files."
    ]
    if files.unread:
        notes.append("What would be freed is unknown, because not everything that may hold files could be read.")
    if by == "column":
        notes.append("Columns are counted from the footers of the newest version's files.")
    notes += gaps_note(files.histories[0].lifetimes.gaps, "files that only they had are not counted")
    missing = history.open_branch.readability.missing
    if missing is None:
        which = "other files" if by == "column" else "the files"
        notes.append(Message(f"Whether {which} exist was not checked; ", Hint("table.verify"), " looks for them."))
    elif missing:
        which = "missing, or without a deletion vector, when the table was verified"
        notes.append(f"Counted too, although {which}: {pluralize(len(missing), 'file')}.")
    unknown = int(np.count_nonzero(files.is_size_unknown & files.counted))
    if unknown:
        notes.append(f"The size of {pluralize(unknown, 'file')} is not recorded, or recorded with several values.")
    return notes
