"""State in a sentence what the metadata of two versions proves about their rows."""

from collections.abc import Collection

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.compare.files import FileDifference, total, total_deleted
from snapshot_explorer.render.cells import counted

_REARRANGING_KINDS = {"compact", "analyze"}
"""Kinds of commits that change no data."""


def proven(
    difference: FileDifference, files: pa.Table, changes: pa.Table | None, kinds: Collection[str] | None, *, keyed: bool
) -> str:
    """Return a sentence on how many rows of two versions can differ, under one schema.

    A row that differs is in a file that only one version has, or a changed vector deletes it. In a table with a primary
    key, it may also be in a file that left level 0, since readers may skip that level. A commit that only rearranged a
    file proves nothing alone: the file may contain rows of an earlier commit.

    Args:
        files: COMPARED_FILES.
        changes: CHANGES of the commits between; None if they are not all known.
        kinds: Kinds of the commits between; None if they are not all known.
        keyed: Whether rows are merged by a primary key.
    """
    shared = len(difference.shared)
    total_files = shared + len(difference.removed) + len(difference.added)
    if not total_files:
        return "Neither version has a file."
    if shared < total_files:
        prefix = f"{shared:,} of {total_files:,} files are shared"
    else:
        prefix = "The only file is shared" if shared == 1 else f"All {shared:,} files are shared"
    if not files.num_rows:
        return f"{prefix}: the rows are the same."
    may_reveal_rows = keyed and _involves_level_0(files)
    if (
        kinds is not None
        and _REARRANGING_KINDS.issuperset(kinds)
        and not may_reveal_rows
        and _keeps_rows(files, changes, keyed=keyed)
    ):
        return f"{prefix}; only compactions lie between: the rows are the same."
    rows = _max_changed_rows(difference, files, changes, may_reveal_rows=may_reveal_rows)
    if rows is None:
        return f"{prefix}; the metadata does not contain the number of changed rows."
    if not rows:
        return f"{prefix}: the rows are the same."
    return f"{prefix}, at most {counted(rows, 'row')} changed."


def _involves_level_0(files: pa.Table) -> bool:
    """Return whether files of level 0, or in a postponed bucket, are among those that differ."""
    level_0 = [pc.equal(files[name], 0) for name in ("level", "level_before")] + [pc.less(files["bucket"], 0)]
    return any(pc.any(item).as_py() for item in level_0)


def _keeps_rows(files: pa.Table, changes: pa.Table | None, *, keyed: bool) -> bool:
    """Return whether compactions kept all rows: in Paimon, a commit that only deletes by a vector is also a compaction.

    Without a primary key, they must add as many rows as they remove.
    """
    if pc.any(pc.equal(files["change"], "deletions")).as_py():
        return False
    if keyed:
        return True
    sums = [
        None if changes is None else total(changes.filter(pc.equal(changes["change"], word)), "rows")
        for word in ("remove", "add")
    ]
    return sums[0] is not None and sums[0] == sums[1]


def _max_changed_rows(
    difference: FileDifference, files: pa.Table, changes: pa.Table | None, *, may_reveal_rows: bool
) -> int | None:
    """Return the maximum number of rows that can have changed; None if unknown."""
    whole = pc.is_in(files["change"], pa.array(["removed", "added"]))
    if may_reveal_rows:
        # A file that moved and had rows deleted may have made all of its other rows visible.
        whole = pc.or_(whole, pc.fill_null(pc.not_equal(files["level"], files["level_before"]), fill_value=False))
    deleted = total_deleted(difference)
    if None in deleted:
        # An unknown number of deleted rows is at most all rows.
        deleted = (total(files.filter(pc.equal(files["change"], "deletions")), "rows"), 0)
    parts = [total(files.filter(whole), "rows"), *deleted]
    bounds = [sum(part for part in parts if part is not None)] if None not in parts else []
    if changes is not None and all(part["level"].null_count == len(part) for part in (difference.a, difference.b)):
        # Without levels, the log records every data change per file, including deletion vectors.
        data_changes = changes.filter(pc.fill_null(changes["data_change"], fill_value=True))
        changed_rows = total(data_changes, "rows")
        bounds += [] if changed_rows is None else [changed_rows]
    return min(bounds, default=None)
