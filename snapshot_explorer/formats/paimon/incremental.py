"""Which files hold what changed: the changelog of a version, and the files of a range of versions.

Source: paimon docs, "Incremental Query"; paimon IncrementalDeltaStartingScanner, IncrementalDiffStartingScanner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.errors import (
    BadReferenceError,
    SnapshotNotFoundError,
    UnsupportedFeatureError,
)
from snapshot_explorer.formats.paimon.contents import State, read_changes, read_state
from snapshot_explorer.formats.paimon.events import ROW_KIND, Difference, Events
from snapshot_explorer.formats.paimon.manifests import DELETE
from snapshot_explorer.formats.paimon.merge_rules import merge_rules
from snapshot_explorer.formats.paimon.partitions import data_paths, folders_of, partitions_of
from snapshot_explorer.formats.paimon.planning import unmerged_splits
from snapshot_explorer.formats.paimon.plans import Plan
from snapshot_explorer.formats.paimon.refusals import check_table, flag, refused
from snapshot_explorer.formats.paimon.schema import Schema
from snapshot_explorer.formats.paimon.schemas import Schemas
from snapshot_explorer.formats.paimon.snapshots import Snapshot
from snapshot_explorer.model import ChangeMode, Split
from snapshot_explorer.storage import Storage

_ABOUT_MERGING = frozenset(("merge-engine", "deletion-vectors.enabled", "bucket", "sequence.snapshot-ordering"))
"""Options that change how rows are merged, which matters to no event."""
_KEY = ("partition", "bucket", "level", "file_name")


def producer_of(options: Mapping[str, str]) -> str:
    """Return what writes changelogs: none, input, lookup or full-compaction."""
    return options.get("changelog-producer", "none").strip().lower()


def changelog_splits(storage: Storage, schemas: Schemas, snapshot: Snapshot) -> list[Split]:
    """Return splits of the changelog rows of a version, under its own schema.

    Raises:
        BadReferenceError: Its commit wrote no changelog.
        SnapshotNotFoundError: The changelog has expired.
        UnsupportedFeatureError: A file is of a format that is not read.
    """
    options = schemas.newest().options
    if snapshot.changelog_manifest_list is None:
        producer = producer_of(options)
        why = (
            "The table has changelog-producer=none, so that writers keep none; changes_between(a, b) gives what "
            "commits wrote, and changes() the files."
            if producer == "none"
            else f"With changelog-producer={producer} not every commit has one; changes_between(a, b) gives those of a "
            "range of versions."
        )
        raise BadReferenceError(f"Version {snapshot.id} ({snapshot.kind}) has no changelog. {why}")
    schema = schemas.by_id([snapshot.schema_id])[snapshot.schema_id]
    return _of_versions(storage, schemas, [snapshot], "changelog", schema, options)


def splits_between(storage: Storage, schemas: Schemas, snapshots: Sequence[Snapshot], mode: ChangeMode) -> list[Split]:
    """Return splits of the rows that versions changed, under the newest schema.

    Args:
        storage: The table's storage.
        schemas: The branch's schemas.
        snapshots: For `diff` the earlier and the later one, otherwise those of the range, ascending.
        mode: How to tell; `auto` is changelog where the table has a producer of it, otherwise delta.

    Raises:
        SnapshotNotFoundError: Of a version is not left what the mode reads.
        UnsupportedFeatureError: The mode needs a feature that is not read.
    """
    schema = schemas.newest()
    if mode == "auto":
        mode = "delta" if producer_of(schema.options) == "none" else "changelog"
    match mode:
        case "diff":
            return _differences(storage, schemas, snapshots[0], snapshots[1])
        case "delta":
            chosen, kind = [one for one in snapshots if one.kind == "APPEND"], "delta"
        case _:
            chosen, kind = [one for one in snapshots if one.kind != "OVERWRITE"], "changelog"
    return _of_versions(storage, schemas, chosen, kind, schema, schema.options)


def _of_versions(
    storage: Storage,
    schemas: Schemas,
    snapshots: Sequence[Snapshot],
    kind: str,
    schema: Schema,
    options: Mapping[str, str],
) -> list[Split]:
    """Return splits of the files that versions added to a kind of list: by version, then by bucket."""
    if not snapshots:
        return []
    _check_schema(schema, options, snapshots[0].id)
    changes = read_changes(storage, snapshots, kind)
    for snapshot, known in zip(snapshots, changes.known, strict=True):
        if not known:
            raise SnapshotNotFoundError(
                f"What version {snapshot.id} changed cannot be read: the files of its {kind} manifest list have "
                "expired. Begin at a newer version."
            )
    splits: list[Split] = []
    for index, snapshot in enumerate(snapshots):
        entries = changes.entries.filter(pa.array(changes.commits == index))
        entries = _checked(entries, snapshot, kind, schema, options)
        found = _splits(storage, schemas, entries, schema, options, snapshot.id)
        splits.extend(replace(split, detail=Events(plan=_plan(split))) for split in found)
    return splits


def _check_schema(schema: Schema, options: Mapping[str, str], version: int) -> None:
    """Refuse what the rows may need that is not read, apart from merging."""
    check_table(schema, {name: value for name, value in options.items() if name not in _ABOUT_MERGING}, version)
    if flag(options, "data-evolution.enabled"):
        where = "the option data-evolution.enabled=true"
        raise refused(version, "changes of rows that are spread over several files", where)
    if any(field.name == ROW_KIND for field in schema.fields):
        raise UnsupportedFeatureError(
            f"The table has a column of its own called {ROW_KIND!r}, which is what the kind of a change is called; its "
            "changes are not read. changes() shows the files."
        )


def _checked(entries: pa.Table, snapshot: Snapshot, kind: str, schema: Schema, options: Mapping[str, str]) -> pa.Table:
    """Return the entries that Paimon's batch reads take; refuse those whose meaning is not sure."""
    if pc.any(pc.equal(entries.column("kind"), DELETE), min_count=0).as_py():
        raise UnsupportedFeatureError(
            f"Version {snapshot.id} is an {snapshot.kind} that removes files, as Paimon 0.9 records an UPDATE; "
            "which rows it changed cannot be told from its files, and Paimon refuses it too. Leave it out of "
            "the range, or compare to_arrow() of both versions."
        )
    if not schema.primary_keys:
        return entries
    if pc.any(pc.less(entries.column("bucket"), 0), min_count=0).as_py():
        raise UnsupportedFeatureError(
            f"Version {snapshot.id} wrote to postponed buckets (bucket=-2), whose changes are not read."
        )
    first_row = options.get("merge-engine", "").strip().lower() == "first-row"
    if not first_row and not flag(options, "deletion-vectors.enabled"):
        return entries
    upper = entries.filter(pc.greater(entries.column("level"), 0))
    if kind == "changelog" and len(upper) < len(entries):
        raise UnsupportedFeatureError(
            f"The changelog of version {snapshot.id} has files of level 0, which Paimon passes over in tables with "
            "deletion vectors or merge-engine=first-row; it is not read."
        )
    return upper


def _splits(
    storage: Storage,
    schemas: Schemas,
    entries: pa.Table,
    schema: Schema,
    options: Mapping[str, str],
    version: int,
) -> list[Split]:
    partitions = partitions_of(entries.column("partition"), schema)
    folders = folders_of(partitions, entries.column("bucket"), schema, options)
    return unmerged_splits(
        schema=schema,
        options=options,
        entries=entries,
        partitions=[partitions.texts[position] for position in partitions.of_rows.to_pylist()],
        paths=data_paths(entries, folders, storage, strict=True).to_pylist(),
        file_schemas=schemas.by_id(pc.unique(entries.column("schema_id")).to_pylist()),
        version=version,
    )


def _plan(split: Split) -> Plan:
    if not isinstance(split.detail, Plan):
        raise BadReferenceError("The split is not one of a Paimon table.")
    return split.detail


def _differences(storage: Storage, schemas: Schemas, first: Snapshot, last: Snapshot) -> list[Split]:
    """Return a split per bucket in which two versions have other files.

    Files that both have are set aside, as Paimon sets them aside: a key that was written again with the same values
    is told as changed.
    """
    schema = schemas.newest()
    options = schema.options
    check_table(schema, options, last.id)
    _check_schema(schema, options, last.id)
    _check_engine(options, last.id)
    before, after = (read_state(storage, one) for one in (first, last))
    for one, state in ((first, before), (last, after)):
        if schema.primary_keys and pc.any(pc.less(state.entries.column("bucket"), 0), min_count=0).as_py():
            raise refused(one.id, "the difference of postponed buckets", "a bucket below 0")
        if pc.any(pc.equal(state.indexes.column("index_type"), "DELETION_VECTORS"), min_count=0).as_py():
            raise UnsupportedFeatureError(f"Version {one.id} has deletion vectors; its difference is not read.")
    _check_buckets(before, after)
    gone, new = _apart(before.entries, after.entries), _apart(after.entries, before.entries)
    old = {_bucket(split): split for split in _splits(storage, schemas, gone, schema, options, first.id)}
    now = {_bucket(split): split for split in _splits(storage, schemas, new, schema, options, last.id)}
    if not schema.primary_keys:
        return _appended(old, now, first.id, last.id)
    rules = merge_rules(schema, options, last.id)
    found = []
    for bucket in dict.fromkeys([*now, *old]):
        sides = [side.get(bucket) for side in (old, now)]
        there = [side for side in sides if side]
        plans = [_plan(side) if side else None for side in sides]
        found.append(
            replace(
                there[-1],
                files=tuple(path for side in there for path in side.files),
                rows=sum(side.rows or 0 for side in there),
                size_bytes=sum(side.size_bytes for side in there),
                detail=Difference(before=plans[0], after=plans[1], rules=rules),
            )
        )
    return found


def _check_engine(options: Mapping[str, str], version: int) -> None:
    engine = options.get("merge-engine", "deduplicate").strip().lower()
    if engine != "deduplicate" or flag(options, "deletion-vectors.enabled"):
        what = f"merge-engine={engine}" if engine != "deduplicate" else "deletion-vectors.enabled=true"
        raise UnsupportedFeatureError(
            f"The difference of two versions is not read where a table has {what} (version {version}). Use "
            "mode='delta' for what was written, or compare to_arrow() of both versions."
        )


def _appended(
    old: Mapping[tuple[object, ...], Split], now: Mapping[tuple[object, ...], Split], first: int, last: int
) -> list[Split]:
    """Return the added files of a table without keys; refuse where files were taken away, as rows cannot be matched."""
    for split in old.values():
        raise UnsupportedFeatureError(
            f"Between versions {first} and {last} the file {split.files[0]} was removed, by a compaction, an overwrite "
            "or a delete, and the table has no primary key by which rows could be told apart. Use mode='delta'."
        )
    return [replace(split, detail=Events(plan=_plan(split))) for split in now.values()]


def _bucket(split: Split) -> tuple[object, ...]:
    plan = _plan(split)
    # Typed values: null, "" and blanks are one folder, but not one partition.
    values = () if plan.partition is None else tuple(map(repr, plan.partition.to_pylist()))
    return *values, split.bucket


def _apart(entries: pa.Table, others: pa.Table) -> pa.Table:
    """Return the entries whose file, at its level, the others have not."""
    there = set(zip(*(others.column(name).to_pylist() for name in _KEY), strict=True))
    mine = zip(*(entries.column(name).to_pylist() for name in _KEY), strict=True)
    kept = np.fromiter((key not in there for key in mine), bool, len(entries))
    return entries.drop_columns(["is_new"]).filter(pa.array(kept))


def _check_buckets(before: State, after: State) -> None:
    """Refuse versions between which a partition's number of buckets changed."""
    counts: dict[bytes, int] = {}
    for state in (before, after):
        columns = (state.entries.column(name).to_pylist() for name in ("partition", "total_buckets"))
        for partition, count in zip(*columns, strict=True):
            if counts.setdefault(partition, count) != count:
                raise UnsupportedFeatureError(
                    f"A partition's number of buckets changed from {counts[partition]} to {count} between the "
                    "versions, so that their keys cannot be matched. Compare to_arrow() of both versions."
                )
