"""The groups of `Table.usage`: by holder and version, and by attributes of the commits that added the files."""

from collections.abc import Sequence

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
    kinds = {
        "older versions": files.plain_holders > 0,
        "tags": files.tag_holders + _others(files, "tags") > 0,
        "branches": _others(files, "branches") > 0,
        "versions on no branch": _others(files, "versions on no branch") > 0,
    }
    number = sum(held.astype(np.int64) for held in kinds.values())
    rows = [newest]
    for name, held in kinds.items():
        if name == "older versions" or held.any():
            rows.append(_row(files, f"only {name}", held & (number == 1) & ~files.is_live))
    several = (number > 1) & ~files.is_live
    return [*rows, *([_row(files, "several of these", several)] if several.any() else [])]


def _others(files: HeldFiles, kind: HolderKind) -> Ints:
    result = np.zeros(files.count, np.int64)
    for other in files.others:
        result += other.holds & (other.kind == kind)
    return result


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
    files = holders.files
    is_older = np.arange(len(files.plain)) < len(files.plain) - 1
    no_tag, no_other = np.zeros(len(files.tags), np.bool_), [False] * len(files.others)
    older = files.holder_count(is_older, no_tag, no_other)
    rows = [
        _row(files, "newest version", files.is_live),
        _row(files, "older versions", older > 0) | _exclusive(holders, (older == files.holders) & (older > 0)),
    ]
    others = [
        _row(files, other.label, other.holds)
        | _exclusive(holders, other.holds & (files.holders == 1))
        | {"version": other.version}
        for other in files.others
    ]
    parts = [pa.Table.from_pylist(rows, frames.USAGE), _tag_rows(holders), pa.Table.from_pylist(others, frames.USAGE)]
    return pa.concat_tables(parts), ()


def _tag_rows(holders: Holders) -> pa.Table:
    files = holders.files
    number, size = files.totals_by(files.only_tag(), len(files.tags), np.ones(files.count, np.bool_))
    columns = _at_versions(files, np.array([version for _, version in files.tags], np.int64))
    columns["group"] = pa.array([f"tag {name}" for name, _ in files.tags], pa.string())
    if not holders.unread:
        columns |= {"exclusive_files": pa.array(number), "exclusive_bytes": size}
    return frames.table_of(frames.USAGE, columns)


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


def _exclusive(holders: Holders, chosen: Mask) -> dict[str, object]:
    """Return the columns on what would be freed; null if something that may hold the files could not be read."""
    number, size = (None, None) if holders.unread else holders.files.totals(chosen)
    return {"exclusive_files": number, "exclusive_bytes": size}


def by_version(holders: Holders) -> Grouped:
    """Return USAGE of each version of the open history, the newest first."""
    files = holders.files
    versions = files.histories[0].versions[::-1]
    tags: dict[int, list[str]] = {}
    for name, version in files.tags:
        tags.setdefault(version, []).append(f"tag {name}")
    columns = _at_versions(files, versions)
    columns["group"] = pa.array(
        [", ".join(tags.get(version, ())) or None for version in versions.tolist()], pa.string()
    )
    if not holders.unread:
        # The newest version is not removed, and a version that only a tag keeps goes with the tag.
        is_removable = np.isin(versions, files.plain[:-1])
        at = pa.array(np.searchsorted(files.plain, versions), mask=~is_removable)
        number, size = files.totals_by(files.only_version(), len(files.plain), np.ones(files.count, np.bool_))
        columns |= {"exclusive_files": pa.array(number).take(at), "exclusive_bytes": size.take(at)}
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
