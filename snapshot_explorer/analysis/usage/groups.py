"""The groups of `Table.usage`: by holder and version, and by attributes of the commits that added the files."""

from collections.abc import Sequence
from typing import get_args

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.usage.held_files import HeldFiles, HolderKind, Ints, Mask
from snapshot_explorer.analysis.usage.holders import Holders
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.group_ids import group_ids
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.formats.unread_versions import unread_notes
from snapshot_explorer.history import History

ONLY_OLDER = "only older versions"
_MB = 1_000_000
_CLASSES = (
    (1 * _MB, "below 1 MB"),
    (8 * _MB, "1 MB to 8 MB"),
    (32 * _MB, "8 MB to 32 MB"),
    (128 * _MB, "32 MB to 128 MB"),
    (512 * _MB, "128 MB to 512 MB"),
)
_LARGEST = "512 MB and more"


def summary_rows(holders: Holders) -> list[dict[str, object]]:
    """Return rows of USAGE that count each file once: live, held by holders of one kind only, or of several.

    If something that may hold files could not be read, all files that are not live are in one row.
    """
    files = holders.files
    newest = _row(files, "newest version", files.is_live)
    if holders.unread:
        return [newest, _row(files, "others, as far as known", ~files.is_live)]
    kinds = {kind: files.holder_count(files.of_kind(kind)) > 0 for kind in get_args(HolderKind)}
    number = sum(held.astype(np.int64) for held in kinds.values())
    rows = [newest]
    for name, held in kinds.items():
        if name == "older versions" or held.any():
            rows.append(_row(files, f"only {name}", held & (number == 1) & ~files.is_live))
    several = (number > 1) & ~files.is_live
    return [*rows, *([_row(files, "several of these", several)] if several.any() else [])]


def _row(files: HeldFiles, group: str, held: Mask) -> dict[str, object]:
    """Return a row of USAGE for the files that something has, without exclusive ones."""
    row: dict[str, object] = {"group": group}
    for prefix, chosen in _parts_of(files):
        number, size = files.totals(held & chosen)
        row[f"{prefix}files"], row[f"{prefix}bytes" if prefix else "size_bytes"] = number, size
    return row


Grouped = tuple[pa.Table, Sequence[str]]
"""Rows of USAGE or USAGE_OVER_TIME, and what could not be read of their commits, a sentence each."""


def by_holder(holders: Holders) -> Grouped:
    """Return USAGE of the newest version, the older ones together, each tag, each branch, and versions on no branch."""
    files, (number, size) = holders.files, _exclusive(holders)
    is_older = files.of_kind("older versions")
    is_older[len(files.plain) - 1 :] = False
    older = files.holder_count(is_older)
    only_older = (None, None) if holders.unread else files.totals((older == files.holder_counts) & (older > 0))
    rows = [
        _row(files, "newest version", files.is_live),
        _row(files, "older versions", older > 0) | dict(zip(_EXCLUSIVE, only_older, strict=True)),
    ]
    at = np.flatnonzero(files.at_own_versions & files.of_kind("tags")).tolist()
    tags = _at_versions(files, np.array([files.holders[index].version for index in at], np.int64))
    tags |= {"group": pa.array([files.holders[index].label for index in at], pa.string())}
    tags |= dict(
        zip(_EXCLUSIVE, (number.take(pa.array(at, pa.int64())), size.take(pa.array(at, pa.int64()))), strict=True)
    )
    others = [
        _row(files, files.holders[index].label, held)
        | {"version": files.holders[index].version}
        | dict(zip(_EXCLUSIVE, (number[index], size[index]), strict=True))
        for index, held in files.held_elsewhere.items()
    ]
    parts = [pa.Table.from_pylist(part, frames.USAGE) for part in (rows, others)]
    return pa.concat_tables([parts[0], frames.table_of(frames.USAGE, tags), parts[1]]), ()


_EXCLUSIVE = ("exclusive_files", "exclusive_bytes")


def _exclusive(holders: Holders) -> tuple[pa.Array, pa.Array]:
    """Return the files that only each holder has, and their bytes; null if what may hold files could not be read."""
    files = holders.files
    if holders.unread:
        return (pa.nulls(len(files.holders), pa.int64()),) * 2
    number, size = files.totals_by(files.only_holder, len(files.holders), np.ones(files.count, np.bool_))
    return pa.array(number), size


def _at_versions(files: HeldFiles, versions: Ints) -> dict[str, object]:
    """Return columns of USAGE for versions of the open history, without exclusive files."""
    own = files.histories[0]
    columns: dict[str, object] = {
        "version": pa.array(versions),
        "committed_at": own.lifetimes.committed_at.take(pa.array(own.positions(versions))),
    }
    for prefix, chosen in _parts_of(files):
        number, size = files.at_versions(versions, chosen)
        columns[f"{prefix}files"], columns[f"{prefix}bytes" if prefix else "size_bytes"] = pa.array(number), size
    return columns


def _parts_of(files: HeldFiles) -> Sequence[tuple[str, Mask]]:
    """Return the prefixes of columns of USAGE, and the files that they count."""
    return ("", np.ones(files.count, np.bool_)), ("live_", files.is_live), ("held_", ~files.is_live)


def by_version(holders: Holders) -> Grouped:
    """Return USAGE of each version of the open history, the newest first."""
    files = holders.files
    versions = files.histories[0].versions[::-1]
    tags: dict[int | None, list[str]] = {}
    for holder in files.holders:
        if holder.kind == "tags" and not holder.history:
            tags.setdefault(holder.version, []).append(holder.label)
    columns = _at_versions(files, versions)
    names = [", ".join(tags.get(version, ())) or None for version in versions.tolist()]
    # The newest version is not removed, and a version that only a tag keeps goes with the tag.
    is_removable = np.isin(versions, files.plain[:-1])
    at = pa.array(np.searchsorted(files.plain, versions), mask=~is_removable)
    columns |= {"group": pa.array(names, pa.string())}
    columns |= dict(zip(_EXCLUSIVE, (item.take(at) for item in _exclusive(holders)), strict=True))
    return frames.table_of(frames.USAGE, columns), ()


def by_commits(holders: Holders, by: str) -> Grouped:
    """Return USAGE of the files by the commit that added each, or its operation, user or day. Reads these commits.

    Files that only another branch or versions on no branch have are counted by the commits of these.
    """
    files = holders.files
    parts, indices = [], []
    notes: list[str] = []
    for index, source in enumerate(holders.sources):
        chosen, rows = files.origins(index)
        chosen, rows = chosen[files.counted[chosen]], rows[files.counted[chosen]]
        intervals = files.histories[index].lifetimes.intervals.rows
        added = intervals.column("added_version").combine_chunks().take(pa.array(rows))
        labels, unread = _commit_labels(source, added, files.histories[index].label, by)
        parts.append(labels)
        notes += unread
        indices.append(chosen)
    result = _grouped(files, np.concatenate(indices), pa.concat_tables(parts))
    order = {"commit": [("version", "descending")], "day": [("group", "descending")]}
    return result.sort_by(order.get(by, [("size_bytes", "descending"), ("group", "ascending")])), notes


_LABELS = pa.schema([frames.USAGE.field(name) for name in ("group", "version", "committed_at")])


def _commit_labels(source: History, added: pa.Array, label: str, by: str) -> Grouped:
    """Return the group, version and time of each file by the version that added it, and what could not be read."""
    distinct = sorted(set(added.unique().to_pylist()).intersection(source.listing.versions))
    commits, unread = source.open_branch.commits(distinct)
    notes = unread_notes(unread, "the commit of")
    at = pc.index_in(added, commits["version"].combine_chunks())
    if by == "day":
        group = pc.strftime(commits["committed_at"], format="%Y-%m-%d")
    else:
        group = commits["user"] if by == "user" else pc.coalesce(commits["operation"], commits["kind"])
    group = group.combine_chunks().take(at)
    if by != "commit":
        return _labels(group), notes
    if label:  # the versions of another history may have the same numbers
        return _labels(pa.array([f"any commit of {label}"] * len(added), pa.string())), notes
    times = commits["committed_at"].combine_chunks().take(at)
    return frames.table_of(_LABELS, {"group": group, "version": added, "committed_at": times}), notes


def _labels(group: pa.Array) -> pa.Table:
    return frames.table_of(_LABELS, {"group": group})


def by_partition(holders: Holders) -> Grouped:
    """Return USAGE of the files by partition, the largest first; columns have their names when a file was added."""
    files = holders.files
    parts, indices = [], []
    for index, history in enumerate(files.histories):
        chosen, rows = files.origins(index)
        intervals = history.lifetimes.intervals
        texts = [_partition_text(item) for item in intervals.partitions.to_pylist()]
        code = intervals.rows.column("partition").combine_chunks().take(pa.array(rows))
        parts.append(pa.array(texts, pa.string()).take(code))
        indices.append(chosen)
    group = pa.concat_arrays(parts)
    if not any(group.unique().to_pylist()):
        raise InvalidArgumentError("The table has no partitions. Group its usage by version, commit, day or size.")
    result = _grouped(files, np.concatenate(indices), _labels(group))
    return result.sort_by([("size_bytes", "descending"), ("group", "ascending")]), ()


def _partition_text(items: Sequence[tuple[str, str | None]] | None) -> str | None:
    if not items:
        return None
    return ", ".join(f"{name}={'null' if value is None else value}" for name, value in items)


def by_size(holders: Holders) -> Grouped:
    """Return USAGE of the files by size class, the smallest first; null for files of unknown size."""
    files = holders.files
    bounds = [bound for bound, _ in _CLASSES]
    names = pa.array([*(name for _, name in _CLASSES), _LARGEST])
    index = pa.array(np.searchsorted(bounds, files.size_bytes, side="right"), mask=files.is_size_unknown)
    rows = _grouped(files, np.arange(files.count), _labels(names.take(index)))
    order = pc.index_in(rows["group"], names)
    return rows.take(pc.sort_indices(order)), ()


def _grouped(files: HeldFiles, indices: Ints, labels: pa.Table) -> pa.Table:
    """Return USAGE of files by their labels.

    Args:
        indices: The files that the rows of the labels are of.
    """
    codes = group_ids([labels["group"], labels["version"]])
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    groups = np.full(files.count, -1, np.int64)
    groups[indices] = inverse
    number = len(firsts)
    columns: dict[str, object] = {name: labels[name].take(pa.array(firsts)) for name in _LABELS.names}
    for prefix, chosen in _parts_of(files):
        count, size = files.totals_by(groups, number, chosen)
        columns[f"{prefix}files"], columns[f"{prefix}bytes" if prefix else "size_bytes"] = pa.array(count), size
    rows = frames.table_of(frames.USAGE, columns)
    return rows.filter(pc.greater(rows["files"], 0))
