"""The rows that a commit changed: as a sentence, and as the two sides of its bar."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.value_text import MINUS
from snapshot_explorer.core.records import MAINTENANCE_KINDS
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.view.figures import numbers

_Mask = npt.NDArray[np.bool_]
_Numbers = npt.NDArray[np.int64]


_NOT_COUNTED = "rows not counted"


def row_change_text(commit: Mapping[str, object]) -> str:
    """Return what a commit did to the rows of the table, such as `-10 rows (690 rewritten in 1 file)`, as text.

    Args:
        commit: A row of COMMITS, with `rows_inserted` and the columns after it, and the counts of its files.
    """
    inserted, updated, deleted, rewritten, added, removed, files = (
        value if isinstance(value := commit.get(name), int) else None
        for name in (
            *("rows_inserted", "rows_updated", "rows_deleted", "rows_rewritten"),
            *("added_rows", "removed_rows", "added_files"),
        )
    )
    text = row_counts_text(inserted, updated, deleted)
    if text is None:
        return _uncounted_text(commit.get("rows_source"), added, removed)
    if not rewritten:
        return text
    where = f" in {pluralize(files, 'file')}" if files and not inserted else ""
    return f"{text} ({rewritten:,} rewritten{where})"


def row_counts_text(inserted: int | None, updated: int | None, deleted: int | None) -> str | None:
    """Return counts of rows as text, such as `+7 -2 rows, 3 updated`; None if one is unknown."""
    if inserted is None or updated is None or deleted is None:
        return None
    sides = [(sign, count) for sign, count in (("+", inserted), (MINUS, deleted)) if count]
    if not sides:
        return f"{pluralize(updated, 'row')} updated" if updated else "no row changed"
    noun = "row" if len(sides) == 1 and sides[0][1] == 1 else "rows"
    signed = " ".join(f"{sign}{count:,}" for sign, count in sides)
    return f"{signed} {noun}" + (f", {updated:,} updated" if updated else "")


def _uncounted_text(source: object, added: int | None, removed: int | None) -> str:
    if source == "contradicted":
        return f"{_NOT_COUNTED}: the writer's counts and the files disagree"
    if source != "net" or added is None or removed is None:
        return f"{_NOT_COUNTED} ({added:,} written)" if added else _NOT_COUNTED
    net, both = added - removed, min(added, removed)
    signed = f"{'+' if net > 0 else MINUS if net < 0 else ''}{abs(net):,}"
    return f"{signed} rows net" + (f" (at most {both:,} rewritten)" if both else "")


def with_row_changes(commits: pa.Table, *, is_whole: bool = True) -> pa.Table:
    """Return COMMITS with a further column `rows`: what each commit did to rows, as text; null if it was not read.

    Args:
        is_whole: Whether the text is wrapped, and never truncated.
    """
    known = commits.drop_columns([name for name in ("details",) if name in commits.column_names]).to_pylist()
    texts = [None if row["kind"] is None else row_change_text(row) for row in known]
    meaning = "rows of the table that the commit inserted, updated and deleted, and those it only rewrote"
    return commits.append_column(
        pa.field("rows", pa.string(), metadata={"meaning": meaning} | ({"wraps": "yes"} if is_whole else {})),
        pa.array(texts, pa.string()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBars:
    """What commits changed, as the sides of bars. Arrays have a value per commit."""

    up: _Numbers
    """Rows inserted or updated, or files or bytes added; 0 if unknown."""
    down: _Numbers
    """Rows deleted or updated, or files or bytes removed; 0 if unknown."""
    unknown: _Mask
    """Whether the change is not known: of rows, whether they are not counted."""
    quiet: _Mask
    """Whether the commit only rewrites rows, so that its bar is of what it rewrote."""


def commit_bars_of(commits: pa.Table, measure: str) -> CommitBars:
    """Return the bars of COMMITS.

    Rows that are not counted have a bar of their net change, or, if that is unknown too, of the rows in files.

    Args:
        commits: COMMITS, in any order.
        measure: Rows, files or bytes.
    """
    added, removed = (numbers(commits[f"{side}_{measure}"]) for side in ("added", "removed"))
    unknown = commits[f"added_{measure}"].is_null().to_numpy() | commits[f"removed_{measure}"].is_null().to_numpy()
    inserted, updated, deleted = (numbers(commits[f"rows_{name}"]) for name in ("inserted", "updated", "deleted"))
    is_counted = commits["rows_inserted"].is_valid().to_numpy()
    changes_rows = is_counted & (inserted + updated + deleted > 0)
    is_rewrite = is_counted & (numbers(commits["rows_rewritten"]) > 0)
    is_maintenance = pc.is_in(commits["kind"], value_set=pa.array(MAINTENANCE_KINDS, pa.string())).to_numpy()
    quiet: _Mask = (is_maintenance | is_rewrite) & ~changes_rows
    if measure == "rows":
        is_net = pc.fill_null(pc.equal(commits["rows_source"], "net"), fill_value=False).to_numpy()
        net = np.where(is_net, added - removed, 0)
        sides = zip((inserted, deleted), (net, -net), (added, removed), strict=True)
        added, removed = (
            np.where(
                quiet, physical, np.where(is_counted, side + updated, np.where(is_net, np.maximum(change, 0), physical))
            )
            for side, change, physical in sides
        )
        unknown = ~is_counted & ~quiet
    return CommitBars(up=added, down=removed, unknown=unknown, quiet=quiet)
