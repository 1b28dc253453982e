"""`Removal`: the files that nothing would hold without some versions, tags and branches."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.usage.held_files import HeldFiles, Mask
from snapshot_explorer.analysis.usage.holders import Holders
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, SnapshotNotFoundError
from snapshot_explorer.core.refs import OfBranch, RefLike, Tag, parse_range, parse_ref
from snapshot_explorer.history import History
from snapshot_explorer.results import Frame, non_empty_columns

_QUOTED = re.compile(r'"(?:[^"]|"")*"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The effect of removing versions, tags and branches, if the engine then deletes what nothing holds."""

    versions: tuple[int, ...]
    """The versions, ascending."""
    others: tuple[str, ...]
    """The tags and branches, such as `tag v1`."""
    freed: Frame
    """FREED: the data files that nothing else holds; empty if `freed_files` is unknown."""
    freed_files: int | None
    """None if something that may hold the files could not be read."""
    freed_bytes: int | None
    """Their size; None if that is unknown."""


def removal_of(history: History, holders: Holders, without: RefLike | Sequence[RefLike]) -> Removal:
    """Return what would be freed without versions, ranges `A..B`, tags (`tag:v1`) and branches (`branch:dev`).

    Raises:
        InvalidArgumentError: The newest version is among them, or a ref with steps back from a tag or branch.
        SnapshotNotFoundError: One does not exist.
    """
    files = holders.files
    refs = without if isinstance(without, Sequence) and not isinstance(without, str) else [without]
    chosen = np.zeros(len(files.holders), np.bool_)
    for ref in refs:
        if isinstance(ref, str) and ".." in _QUOTED.sub("", ref):
            chosen[np.flatnonzero(np.isin(files.plain, list(history.between(parse_range(ref)))))] = True
            continue
        parsed = parse_ref(ref, tags=history.tags, branches=history.branch_names)
        if isinstance(parsed, Tag | OfBranch):
            chosen[_named_index(parsed, files)] = True
        else:
            chosen[_version_index(files, history.resolve(parsed))] = True
    names = [item.label for item, is_chosen in zip(files.holders, chosen, strict=True) if is_chosen]
    versions = files.plain[chosen[: len(files.plain)]]
    if len(versions) and versions[-1] == files.plain[-1]:
        raise InvalidArgumentError(
            f"{files.plain[-1]} is the newest version, which is not removed. Choose older versions, tags or branches."
        )
    number_chosen = files.holder_count(chosen)
    freed = (number_chosen > 0) & (number_chosen == files.holder_counts)
    rows = frames.no_rows(frames.FREED) if holders.unread else _freed_rows(files, freed)
    number, size = (None, None) if holders.unread else files.totals(freed)
    title = f"Files of {history.name} that nothing else holds"
    return Removal(
        versions=tuple(versions.tolist()),
        others=tuple(filter(None, names)),
        freed=Frame(rows, title=title, noun="files", drawn=tuple(non_empty_columns(rows))),
        freed_files=number,
        freed_bytes=size,
    )


def _version_index(files: HeldFiles, version: int) -> int:
    index = int(np.searchsorted(files.plain, version))
    if version not in files.plain:
        raise SnapshotNotFoundError(
            f"Version {version} holds no files by itself: it does not exist, or only a tag keeps it. "
            f"Versions: {len(files.plain):,}"
            + (f", from {files.plain[0]} to {files.plain[-1]}." if len(files.plain) else ".")
        )
    return index


def _named_index(ref: Tag | OfBranch, files: HeldFiles) -> int:
    """Return the index of a tag or branch among the holders."""
    if ref.back or (isinstance(ref, OfBranch) and ref.number is not None):
        raise InvalidArgumentError(
            f"{ref} is a version. Remove a tag or branch as a whole, or a version by its number."
        )
    label = f"{'tag' if isinstance(ref, Tag) else 'branch'} {ref.name}"
    labels = [item.label for item in files.holders]
    if label not in labels:
        known = ", ".join([*filter(None, labels)][:20]) or "none"
        raise SnapshotNotFoundError(f"There is no {label} beside the open branch. Tags and branches: {known}.")
    return labels.index(label)


def _freed_rows(files: HeldFiles, freed: Mask) -> pa.Table:
    """Return FREED of files, by removal and path."""
    parts = []
    positions = files.removal_positions()
    for index, history in enumerate(files.histories):
        chosen, rows = files.origins(index)
        chosen, rows = chosen[freed[chosen]], rows[freed[chosen]]
        intervals, versions = history.lifetimes.intervals, np.asarray(history.lifetimes.versions, np.int64)
        recorded = intervals.rows.take(pa.array(rows))
        at = positions[chosen]
        is_gone = (at >= 0) & (at < len(versions)) & (index == 0)
        columns = {
            "what": pa.repeat("data", len(rows)),
            "path": intervals.paths(recorded),
            "partition": intervals.partition(recorded),
            "size_bytes": pa.array(files.size_bytes[chosen], mask=files.is_size_unknown[chosen]),
            "removed_version": pa.array(versions[np.where(is_gone, at, 0)], mask=~is_gone)
            if len(versions)
            else pa.nulls(len(rows), pa.int64()),
        }
        parts.append(frames.table_of(frames.FREED, columns))
    return pa.concat_tables(parts).sort_by([("removed_version", "ascending"), ("path", "ascending")])
