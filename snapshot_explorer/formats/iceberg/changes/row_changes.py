"""The rows that changed between two versions, from their data files and the deletes that apply to them.

The files before and after each commit are compared. Files in both with the same deletes are not read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import ChangeMode, Predicate, Split
from snapshot_explorer.formats.features import CHANGE_COLUMN_CONFLICT, refusal
from snapshot_explorer.formats.iceberg import features
from snapshot_explorer.formats.iceberg.changes.events import HIDDEN, ROW_KIND, IcebergEvents, Part
from snapshot_explorer.formats.iceberg.metadata.contents import Source, changed_files, version_metadata
from snapshot_explorer.formats.iceberg.metadata.entries import LIVE, STATISTICS, IcebergLiveFiles, Select
from snapshot_explorer.formats.iceberg.metadata.history import IcebergHistory
from snapshot_explorer.formats.iceberg.metadata.manifests import ADDED
from snapshot_explorer.formats.iceberg.metadata.schema import parse_schema
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot
from snapshot_explorer.formats.iceberg.scan.planning import plan
from snapshot_explorer.formats.iceberg.scan.plans import FIRST_WITH_ROW_IDS, IcebergPlan
from snapshot_explorer.formats.iceberg.scan.read import plan_of

_REPLACE, _APPEND = "replace", "append"
"""Operations: `replace` only rearranges rows; `append` only adds files."""


def splits_between(
    source: Source, history: IcebergHistory, first: int, last: int, mode: ChangeMode, predicate: Predicate | None = None
) -> list[Split]:
    """Return splits of the rows that changed after `first` up to `last`, under the table's current schema.

    They are ordered by version, then by partition, deletes before inserts. Neither a row that a commit only rewrote nor
    a compaction is a change. Reads the manifests of each version and its predecessor; for an append only its own.

    Args:
        first: The version before the first included one.
        last: The last included version.
        mode: `auto` and `delta`: by commit. `diff`: the rows of `last` compared with the rows of `first`.
        predicate: The rows to return; files without any are left out.
    """
    if mode == "changelog":
        raise no_changelog()
    range_read = _range_read(source, predicate)
    if mode == "diff":
        before, after = (_state(source, history.snapshots.get(version), range_read) for version in (first, last))
        return list(_difference(before, after, _commit(history, last, 0)))
    result: list[Split] = []
    changing = [version for version in history.versions if first < version <= last]
    changing = [item for item in changing if history.snapshots[item].summary.get("operation") != _REPLACE]
    known: tuple[int, _State] | None = None
    for ordinal, version in enumerate(changing):
        snapshot, previous = history.snapshots[version], _before(history, version)
        commit = _commit(history, version, ordinal)
        if snapshot.summary.get("operation") == _APPEND and (previous is None or snapshot.parent_id == previous.id):
            result += _appended_splits(source, snapshot, range_read, commit)
            continue
        before = known[1] if known and previous and known[0] == previous.id else _state(source, previous, range_read)
        known = snapshot.id, _state(source, snapshot, range_read)
        result += _difference(before, known[1], commit)
    return result


def no_changelog() -> InvalidArgumentError:
    """Return the error for a changelog that is requested."""
    return InvalidArgumentError(
        Message(
            "Iceberg tables have no changelog: commits do not record the rows that they changed. Use ",
            Hint("", {"mode": "delta"}),
            ", which finds them by the data files and deletes that commits added and removed.",
        )
    )


_State = Mapping[str, Split]
"""The splits of a version by the recorded paths of their files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RangeRead:
    """The settings for reading rows that all commits of a range share."""

    schema: Mapping[str, Any]
    """The schema of the rows, JSON."""
    predicate: Predicate | None
    """The part of the condition that reads columns of the table; None for all rows."""


def _range_read(source: Source, predicate: Predicate | None) -> _RangeRead:
    raw = source.metadata.current_schema
    schema = parse_schema(raw)
    names = frozenset(field.name for field in schema.fields)
    conflicts = sorted(names.intersection((ROW_KIND, *HIDDEN.names)))
    if conflicts:
        raise refusal(CHANGE_COLUMN_CONFLICT, column=conflicts[0])
    # Row ids on both sides distinguish updates from deletes and inserts, so neither side may lack files.
    is_safe = source.metadata.format_version < FIRST_WITH_ROW_IDS
    return _RangeRead(schema=raw, predicate=predicate.on(names) if predicate is not None and is_safe else None)


def _before(history: IcebergHistory, version: int) -> IcebergSnapshot | None:
    """Return the snapshot before a version in a history; None if the table was empty."""
    index = history.versions.index(version)
    before = history.snapshots[history.versions[index - 1]] if index else None
    parent = history.snapshots[version].parent_id
    if parent is not None and (before is None or before.id != parent):
        raise refusal(features.CHANGES_ACROSS_EXPIRY, version=version)
    return before


def _commit(history: IcebergHistory, version: int, ordinal: int) -> IcebergEvents:
    return IcebergEvents(
        removed=(),
        added=(),
        ordinal=ordinal,
        snapshot_id=history.snapshots[version].id,
        version=version,
        committed_at=history.time_of(version),
    )


def _state(source: Source, snapshot: IcebergSnapshot | None, range_read: _RangeRead) -> _State:
    """Return the splits of a version; none for None. Reads its manifests."""
    if snapshot is None:
        return {}
    metadata = version_metadata(source, snapshot, range_read.schema)
    return {plan_of(split).path: split for split in plan(metadata, range_read.predicate).splits}


def _appended_splits(
    source: Source, snapshot: IcebergSnapshot, range_read: _RangeRead, commit: IcebergEvents
) -> Iterator[Split]:
    """Yield splits of the rows that an append added. Reads the manifests that it wrote."""
    has_condition = range_read.predicate is not None
    changed = changed_files(source, [snapshot], statistics=has_condition)
    rows = changed.data.filter(pc.equal(changed.data.column("status"), ADDED))

    def live(statistics: Sequence[str], select: Select) -> IcebergLiveFiles:
        return IcebergLiveFiles(
            data=select(rows.select([*LIVE.names, *statistics]), changed.partitions),
            deletes=pa.schema([*LIVE, *STATISTICS]).empty_table(),
            partitions=changed.partitions.arrays(),
        )

    metadata = replace(version_metadata(source, snapshot, range_read.schema), live=live)
    for split in plan(metadata, range_read.predicate).splits:
        yield _split([split], replace(commit, added=(Part(live=plan_of(split)),)))


def _difference(before: _State, after: _State, commit: IcebergEvents) -> Iterator[Split]:
    """Yield splits of the rows by which two versions differ: by partition, deletes before inserts.

    Rows of a partition on both sides form one split, because some may only have been rewritten.
    """
    removed = [
        _Side(split=split, part=part) for path, split in before.items() for part in _gone(split, after.get(path))
    ]
    added = [_Side(split=split, part=part) for path, split in after.items() for part in _gone(split, before.get(path))]
    # A row stays in its partition unless the spec changed.
    is_uniform = len({side.part.live.spec_id for side in (*removed, *added)}) == 1
    groups: dict[object, tuple[list[_Side], list[_Side]]] = {}
    for index, sides in enumerate((removed, added)):
        for side in sides:
            key = tuple(sorted(side.split.partition.items())) if is_uniform else None
            groups.setdefault(key, ([], []))[index].append(side)
    for gone, new in groups.values():
        if gone and new:
            before_parts, after_parts = (tuple(side.part for side in sides) for sides in (gone, new))
            events = replace(commit, removed=before_parts, added=after_parts)
            yield _split([side.split for side in (*gone, *new)], events)
            continue
        for side in gone:
            yield _split([side.split], replace(commit, removed=(side.part,)))
        for side in new:
            yield _split([side.split], replace(commit, added=(side.part,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Rows of a data file that one version has and the other lacks."""

    split: Split
    part: Part


def _gone(split: Split, other: Split | None) -> Iterator[Part]:
    """Yield the rows of a file that another version lacks; nothing if the deletes show that it lacks no row."""
    live = plan_of(split)
    if other is None:
        yield Part(live=live)
    elif not covers(live, plan_of(other)):
        yield Part(live=live, deleted=plan_of(other))


def covers(live: IcebergPlan, other: IcebergPlan) -> bool:
    """Return whether the deletes of `other` keep all rows that the deletes of `live` keep, by their files alone."""
    mine, theirs = live.deletes, other.deletes
    if theirs.vector is not None and theirs.vector != mine.vector:
        return False
    if mine.vector is not None and theirs.vector is None and theirs.positions:
        return False
    my_positions, their_positions = ({file.location for file in item.positions} for item in (mine, theirs))
    my_rows, their_rows = (
        {(item.ids, location) for item in plan.deletes.equality for location in item.after(plan.sequence_number)}
        for plan in (live, other)
    )
    return their_positions <= my_positions and their_rows <= my_rows


def _split(splits: Sequence[Split], events: IcebergEvents) -> Split:
    parts = (*events.removed, *events.added)
    is_whole = len(parts) == 1 and parts[0].deleted is None
    rows = [split.rows for split in splits]
    return replace(
        splits[0],
        files=tuple(dict.fromkeys(path for split in splits for path in split.files)),
        raw=False,
        rows=None if None in rows else sum(count for count in rows if count is not None),
        size_bytes=sum(split.size_bytes for split in splits),
        live_rows=splits[0].live_rows if is_whole else None,
        detail=events,
    )
