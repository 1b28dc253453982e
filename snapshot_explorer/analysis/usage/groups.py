"""The groups of `Table.usage`: by holder and version, over time, and by attributes of the commits that added files."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import get_args

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.retention import find_orphans
from snapshot_explorer.analysis.row_history.affected_versions import affected_versions
from snapshot_explorer.analysis.usage.held_files import (
    Grouped,
    HeldFiles,
    HolderKind,
    HoldingHistory,
    Ints,
    Sums,
    sums_at,
)
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.group_ids import group_ids
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError, ResourceError, SnapshotExplorerError
from snapshot_explorer.core.hints import Message, without_period
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import MAINTENANCE_KINDS
from snapshot_explorer.core.text import pluralize
from snapshot_explorer.engines.conditions import parse_condition
from snapshot_explorer.formats.file_checks import CheckedFile, FileCheck, RecordedFile
from snapshot_explorer.formats.unread_versions import unread_notes
from snapshot_explorer.history import History
from snapshot_explorer.storage.same_files import match_files

ONLY_OLDER = "only older versions"
_KINDS = {"data": "other data files", "deletes": "delete files"}
_SIZES = (1, 8, 32, 128, 512)
"""The bounds of the size classes, in MB."""
_LABELS = pa.schema([frames.USAGE.field(name) for name in ("group", "version", "committed_at")])
_OF_GROUPS = ("kind", "operation", "user")
_LARGEST_FIRST = (("size_bytes", "descending"), ("group", "ascending"))

_AT_ONCE = 512
"""Files whose columns are in memory at the same time."""
_COLUMN, _ONLY_FILES, _REST, _NOT_CHECKED = _PARTS = ("column", "only in files", "rest of the files", "not checked")
_Part = tuple[str, str | None]
"""What the bytes are, and the name of the column."""


def summary_rows(files: HeldFiles) -> pa.Table:
    """Return USAGE that counts each file once: live, held by holders of one kind only, or of several.

    If something that may hold files could not be read, all files that are not live are in one row.
    """
    masks = {"newest version": files.is_live}
    if files.unread:
        masks["others, as far as known"] = ~files.is_live
    else:
        kinds = {kind: files.count_holders(files.kinds == kind)[0] > 0 for kind in get_args(HolderKind)}
        number = sum(held.astype(np.int64) for held in kinds.values())
        for kind, held in kinds.items():
            if kind == "older versions" or held.any():
                masks[f"only {kind}"] = held & (number == 1) & ~files.is_live
        several = (number > 1) & ~files.is_live
        masks |= {"several of these": several} if several.any() else {}
    return frames.table_of(frames.USAGE, {"group": list(masks), **files.sums_of(list(masks.values()))})


def rows_beside(files: HeldFiles) -> tuple[pa.Table, Sequence[str]]:
    """Return USAGE of the other files in the table's folder, each once, by kind, and what could not be read.

    The kind is found from names and folders. Lists each folder once, and reads all metadata, as `Table.orphans`.
    """
    history, now = files.histories[0].source, datetime.now(UTC)
    table_format = history.table_format
    orphans = find_orphans(table_format, table_format.storage, older_than="3d", name=history.name, now=now)
    if not orphans.is_complete:
        return frames.table_of(frames.USAGE, {"group": ["all other files"]}), orphans.unread
    named = orphans.in_state("named")
    data = [item.lifetimes.intervals.paths(item.lifetimes.intervals.rows) for item in files.histories]
    matched = match_files(table_format.storage, named["path"].combine_chunks(), pa.concat_arrays(data))
    named = named.filter(pc.invert(matched.is_named))
    # The time does not matter for the kind.
    dated = named.set_column(named.column_names.index("modified"), "modified", pa.array([now] * len(named)))
    kinds = pa.array([file.kind for file in table_format.maintenance.clean_up(dated, now).files], pa.string())
    groups = {
        _KINDS.get(kind, f"{kind} files"): named.filter(pc.equal(kinds, kind))
        for kind in sorted(kinds.unique().to_pylist())
    }
    groups["orphaned files"] = orphans.files.to_arrow()
    young = pa.concat_tables([orphans.in_state("under way"), orphans.in_state("young")])
    groups |= {"unnamed files of the last 3 days": young} if len(young) else {}
    sizes = [pc.sum(rows["size_bytes"], skip_nulls=False, min_count=0).as_py() for rows in groups.values()]
    columns = {"group": list(groups), "files": list(map(len, groups.values())), "size_bytes": sizes}
    return frames.table_of(frames.USAGE, columns), ()


def _by_holder(files: HeldFiles) -> Grouped:
    """Return USAGE of the newest version, the older ones together, each tag, each branch, and versions on no branch."""
    is_older = files.kinds == "older versions"
    is_older[len(files.plain) - 1 :] = False
    older, _ = files.count_holders(is_older)
    only_older = files.sums_of([(older > 0) & (older == files.holder_counts)])
    alone = _exclusive(files, files.sums_by(files.only_holder, len(files.kinds)))
    at_tags, first, last = files.tag_positions, len(files.plain), len(files.plain) + len(files.tags)
    parts: list[dict[str, object]] = [
        {"group": ["newest version"], **files.sums_of([files.is_live])},
        {"group": ["older versions"], **files.sums_of([older > 0]), **_exclusive(files, only_older)},
        {
            "group": files.labels[: len(files.tags)],
            "version": [tag.version for tag in files.tags],
            "committed_at": files.committed_at.take(pa.array(at_tags)),
            **files.sums_at(at_tags),
            **{name: column[first:last] for name, column in alone.items()},
        },
        {
            "group": files.labels[len(files.tags) :],
            **files.sums_of(files.held_by_others),
            **{name: column[last:] for name, column in alone.items()},
        },
    ]
    return pa.concat_tables([frames.table_of(frames.USAGE, columns) for columns in parts]), ()


def _exclusive(files: HeldFiles, sums: Sums) -> Sums:
    """Return the columns on files that nothing else holds; none if what may hold files could not be read."""
    return {} if files.unread else {"exclusive_files": sums["files"], "exclusive_bytes": sums["size_bytes"]}


def _by_version(files: HeldFiles) -> Grouped:
    """Return USAGE of each version of the open history, the newest first."""
    versions = files.histories[0].versions[::-1]
    positions = files.histories[0].positions(versions)
    tags: dict[int, list[str]] = {}
    for tag in files.tags:
        tags.setdefault(tag.position, []).append(tag.label)
    # The newest version is not removed, and a version that only a tag keeps goes with the tag.
    is_removable = np.isin(versions, files.plain[:-1])
    numbers = pa.array(np.searchsorted(files.plain, versions), mask=~is_removable)
    alone = _exclusive(files, files.sums_by(files.only_holder, len(files.kinds)))
    columns = {
        "group": [", ".join(tags.get(position, ())) or None for position in positions.tolist()],
        "version": pa.array(versions),
        "committed_at": files.committed_at.take(pa.array(positions)),
        **files.sums_at(positions),
        **{name: column.take(numbers) for name, column in alone.items()},
    }
    return frames.table_of(frames.USAGE, columns), ()


def _by_commits(files: HeldFiles, by: str) -> Grouped:
    """Return USAGE of the files by the commit that added each, or its operation, user or day. Reads these commits.

    Files that only another branch or versions on no branch have are counted by the commits of these.
    """
    result, notes = _grouped(files, partial(_commit_labels, by=by))
    order = {"commit": [("version", "descending")], "day": [("group", "descending")]}
    return result.sort_by(order.get(by, _LARGEST_FIRST)), notes


def _commit_labels(history: HoldingHistory, rows: pa.Table, by: str) -> Grouped:
    """Return the group, version and time of each file by the commit that added it, and what could not be read."""
    added = rows["added_version"].combine_chunks()
    distinct = sorted(set(added.unique().to_pylist()).intersection(history.source.listing.versions))
    commits, unread = history.source.open_branch.commit_columns(distinct, _OF_GROUPS)
    notes = unread_notes(unread, "the commit of")
    at = pc.index_in(added, commits["version"].combine_chunks())
    if by == "day":
        group = pc.strftime(commits["committed_at"], format="%Y-%m-%d")
    else:
        group = commits["user"] if by == "user" else pc.coalesce(commits["operation"], commits["kind"])
    columns: dict[str, object] = {"group": group.combine_chunks().take(at)}
    if by == "commit" and history.label:  # the versions of another history may have the same numbers
        columns["group"] = [f"any commit of {history.label}"] * len(added)
    elif by == "commit":
        columns |= {"version": added, "committed_at": commits["committed_at"].combine_chunks().take(at)}
    return frames.table_of(_LABELS, columns), notes


def _by_partition(files: HeldFiles) -> Grouped:
    """Return USAGE of the files by partition, the largest first; columns have their names when a file was added."""
    result, _ = _grouped(files, _partition_labels)
    if not any(result["group"].to_pylist()):
        raise InvalidArgumentError("The table has no partitions. Group its usage by version, commit, day or size.")
    return result.sort_by(_LARGEST_FIRST), ()


def _partition_labels(history: HoldingHistory, rows: pa.Table) -> Grouped:
    texts = [
        ", ".join(f"{name}={'null' if value is None else value}" for name, value in items or ()) or None
        for items in history.lifetimes.intervals.partitions.to_pylist()
    ]
    group = pa.array(texts, pa.string()).take(rows["partition"].combine_chunks())
    return frames.table_of(_LABELS, {"group": group}), ()


def _by_size(files: HeldFiles) -> Grouped:
    """Return USAGE of the files by size class, the smallest first; null for files of unknown size."""
    between = [f"{lower} MB to {upper} MB" for lower, upper in pairwise(_SIZES)]
    names = [f"below {_SIZES[0]} MB", *between, f"{_SIZES[-1]} MB and more", None]
    index = np.searchsorted(np.array(_SIZES) * 1_000_000, files.size_bytes, side="right")
    groups = np.where(files.is_size_unknown, len(names) - 1, index)
    rows = frames.table_of(frames.USAGE, {"group": names, **files.sums_by(groups, len(names))})
    return rows.filter(pc.greater(rows["files"], 0)), ()


def _grouped(files: HeldFiles, labels_of: Callable[[HoldingHistory, pa.Table], Grouped]) -> Grouped:
    """Return USAGE of files by labels, and what could not be read for them.

    Args:
        labels_of: Returns a row of labels for each of some intervals of a history.
    """
    labels, indices = [], []
    notes: list[str] = []
    for index, history in enumerate(files.histories):
        chosen, rows = files.origins(index, files.counted)
        part, unread = labels_of(history, rows)
        labels.append(part)
        indices.append(chosen)
        notes += unread
    joined = pa.concat_tables(labels)
    codes = group_ids([joined["group"], joined["version"]])
    _, firsts, inverse = np.unique(codes, return_index=True, return_inverse=True)
    groups = np.full(files.count, -1, np.int64)
    groups[np.concatenate(indices)] = inverse
    columns = {name: joined[name].take(pa.array(firsts)) for name in _LABELS.names}
    return frames.table_of(frames.USAGE, {**columns, **files.sums_by(groups, len(firsts))}), notes


def over_time(files: HeldFiles, where: Sequence[str] = ()) -> Grouped:
    """Return USAGE_OVER_TIME of the versions of the open history, newest first, and the commits that cannot be read.

    Held files are files of versions that still exist. What expired before is unknown, and not counted.

    Args:
        where: Conditions on columns of the newest version, whose files to read are counted. Reads statistics once each.
    """
    own = files.histories[0]
    versions, positions = own.versions, own.positions(own.versions)
    added_here, live = files.sums_by(files.first_indices(positions), len(versions)), files.sums_at(positions)
    count, total = (_cumulated(added_here[name]) for name in ("files", "size_bytes"))
    known = [version for version in versions.tolist() if version in own.source.listing.versions]
    commits, unread = own.source.open_branch.commit_columns(known, (*_OF_GROUPS, "added_bytes", "removed_bytes"))
    commits = commits.take(pc.index_in(pa.array(versions), commits["version"].combine_chunks()))
    kind, added = commits["kind"].combine_chunks(), commits["added_bytes"].combine_chunks()
    nothing = pa.scalar(None, pa.int64())
    rewritten = pc.if_else(pc.is_in(kind, pa.array(MAINTENANCE_KINDS)), added, pc.multiply(added, 0))
    rewritten = pc.if_else(kind.is_valid(), rewritten, nothing)
    new = _cumulated(pc.subtract(added, rewritten))
    columns = {
        "version": pa.array(versions),
        "committed_at": files.committed_at.take(pa.array(positions)),
        "kind": kind,
        "operation": commits["operation"],
        "files": count,
        "size_bytes": total,
        "live_files": live["files"],
        "live_bytes": live["size_bytes"],
        "held_files": pc.subtract(count, live["files"]),
        "held_bytes": pc.subtract(total, live["size_bytes"]),
        "added_bytes": added,
        "rewritten_bytes": rewritten,
        "write_amplification": pc.divide(
            _cumulated(added).cast(pa.float64()), pc.if_else(pc.equal(new, 0), nothing, new)
        ),
        "removed_bytes": commits["removed_bytes"],
        **(_read_files(own.source, where, versions) if where and len(versions) else {}),
    }
    rows = frames.table_of(frames.USAGE_OVER_TIME, columns).take(pa.array(np.arange(len(versions))[::-1]))
    return rows, unread_notes(unread, "the commit of")


def _cumulated(values: pa.Array) -> pa.Array:
    """Return sums up to each value; null from the first null on."""
    return pc.cumulative_sum(values, skip_nulls=False)


def _read_files(source: History, where: Sequence[str], versions: Ints) -> dict[str, pa.Array]:
    """Return the columns on the files that readers with these conditions cannot skip, at each version."""
    newest = int(versions[-1])
    reference = source.format.version(newest)
    sums = np.zeros((3, len(versions)), np.int64)
    for text in where:
        condition = parse_condition(text, reference.arrow_schema)
        affected = affected_versions(source.format, condition, newest)
        known = np.asarray(affected.lifetimes.versions)
        rows = affected.lifetimes.intervals.rows.filter(pa.array(affected.admits))
        before = np.searchsorted(np.searchsorted(known, versions), np.arange(len(known) + 1))
        first, after = before[rows["first"].to_numpy()], before[np.minimum(rows["last"].to_numpy(), len(known))]
        sizes = rows["size_bytes"].combine_chunks()
        summands = np.stack([np.ones(len(rows), np.int64), sizes.fill_null(0).to_numpy(), sizes.is_null()])
        sums += sums_at(first, after, summands, len(versions))
    return {"read_files": pa.array(sums[0]), "read_bytes": pa.array(sums[1], mask=sums[2] > 0)}


def _by_column(held: HeldFiles) -> Grouped:
    """Return USAGE_BY_COLUMN of the newest version, and a sentence on files that were not checked.

    Reads the footer of each live data file, of an ORC file also the footer of each stripe.
    """
    source = held.histories[0].source.with_newest_state(is_newest_state=True)
    version = source.format.version(int(held.plain[-1]) if len(held.plain) else None)
    numbers: Counter[_Part] = Counter({(_COLUMN, name): 0 for name in version.arrow_schema.names})
    sizes: Counter[_Part] = Counter()
    unsized: set[_Part] = set()
    first = ""
    files = version.files().select(["path", "size_bytes", "rows", "schema_id"])
    names = {item.id: name for name, item in version.field_ids.items()}
    read = partial(_read_columns, source.table_format.maintenance.file_check())
    with step("Reading footers", total=len(files)) as reading:
        for start in range(0, len(files), _AT_ONCE):
            recorded = [RecordedFile(**row) for row in files.slice(start, _AT_ONCE).to_pylist()]
            for file, found in zip(recorded, source.table_format.storage.each(read, recorded), strict=True):
                sizes_of_file = _parts_of(file, found, names)
                numbers.update(sizes_of_file.keys())
                sizes.update(sizes_of_file)
                if found.skip_reason is not None:
                    first = first or Message(f"{file.path}: ", without_period(found.skip_reason))
                    unsized.update(sizes_of_file if file.size_bytes is None else ())
            reading.advance(len(recorded))
    parts = sorted(numbers, key=lambda part: (_PARTS.index(part[0]), -sizes[part], part[1] or ""))
    columns = {
        "column": [name for _, name in parts],
        "what": [what for what, _ in parts],
        "files": [numbers[part] for part in parts],
        "size_bytes": [None if part in unsized else sizes[part] for part in parts],
    }
    which = f"The columns of {pluralize(numbers[_NOT_CHECKED, None], 'file')} were not checked. The first is "
    return frames.table_of(frames.USAGE_BY_COLUMN, columns), [Message(which, first, ".")] if first else []


def _read_columns(check: FileCheck, file: RecordedFile) -> CheckedFile:
    try:
        return check(file, "columns")
    except ResourceError:
        raise  # the error is not about the file
    except SnapshotExplorerError as error:
        return CheckedFile(skip_reason=error.message)


def _parts_of(file: RecordedFile, found: CheckedFile, names: Mapping[int | str | None, str]) -> Mapping[_Part, int]:
    """Return the parts of a file, each with its size; 0 if the size of one that was not checked is unknown.

    Args:
        names: The columns by their ids, or by their names in files.
    """
    if found.skip_reason is not None:
        return {(_NOT_CHECKED, None): file.size_bytes or 0}
    result: Counter[_Part] = Counter()
    for column in found.columns:
        name = names.get(column.id, names.get(column.name))
        result[(_ONLY_FILES, column.name) if name is None else (_COLUMN, name)] += column.size_bytes
    result[_REST, None] = found.size_bytes - result.total()
    return result


GROUPS: Mapping[str, tuple[str, Callable[[HeldFiles], Grouped]]] = {
    "holder": ("holders", _by_holder),
    "version": ("versions", _by_version),
    "commit": ("commits", partial(_by_commits, by="commit")),
    "operation": ("operations", partial(_by_commits, by="operation")),
    "user": ("users", partial(_by_commits, by="user")),
    "day": ("days", partial(_by_commits, by="day")),
    "partition": ("partitions", _by_partition),
    "size": ("size classes", _by_size),
    "column": ("columns", _by_column),
    "time": ("versions", over_time),
}
"""What usage can be grouped by: what the groups are, and the function that returns them."""
