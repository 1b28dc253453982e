"""Splits of row changes: the changelog of a version, and the changes of a range of versions.

Source: paimon docs, "Incremental Query"; paimon IncrementalDeltaStartingScanner, IncrementalDiffStartingScanner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.core.errors import (
    InvalidArgumentError,
    SnapshotNotFoundError,
)
from snapshot_explorer.core.hints import Hint, Message
from snapshot_explorer.core.records import ROW_KIND, ChangeMode, Predicate, Split
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.features import CHANGE_COLUMN_CONFLICT, refusal
from snapshot_explorer.formats.paimon import features
from snapshot_explorer.formats.paimon.changes.events import Difference, PaimonEvents
from snapshot_explorer.formats.paimon.files.deletion_vectors import Vectors
from snapshot_explorer.formats.paimon.merge.rules import merge_rules
from snapshot_explorer.formats.paimon.metadata.contents import read_changes, read_state
from snapshot_explorer.formats.paimon.metadata.manifests import DELETE
from snapshot_explorer.formats.paimon.metadata.partitions import partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, Schemas
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.metadata.supported import check_single_branch, check_table
from snapshot_explorer.formats.paimon.scan.data_skipping import (
    keys_might_match,
    manifests_with,
    partitions_might_match,
    rows_might_match,
)
from snapshot_explorer.formats.paimon.scan.native_files import split_by_file
from snapshot_explorer.formats.paimon.scan.planning import unmerged_splits
from snapshot_explorer.formats.paimon.scan.plans import PaimonFiles, PaimonPlan
from snapshot_explorer.formats.paimon.scan.scans import file_paths, file_schemas, vectors_in
from snapshot_explorer.formats.paimon.scan.visibility import applied_vectors, is_included
from snapshot_explorer.formats.settings import parse_flag, parse_keyword
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_ABOUT_MERGING = frozenset(("merge-engine", "deletion-vectors.enabled", "bucket", "sequence.snapshot-ordering"))
"""Options that change how rows are merged. They do not affect events."""
_KEY = ("partition", "bucket", "level", "file_name")


def producer_of(options: Mapping[str, str]) -> str:
    """Return the changelog producer: none, input, lookup or full-compaction."""
    return parse_keyword(options, "changelog-producer", "none")


def changelog_splits(
    storage: Storage, schemas: Schemas, snapshot: PaimonSnapshot, predicate: Predicate | None
) -> list[Split]:
    """Return splits of a version's changelog rows, under its own schema, without files that cannot match."""
    options = schemas.newest(snapshot.schema_id).options
    if snapshot.changelog_manifest_list is None:
        producer = producer_of(options)
        changes = Hint("table.row_changes", {"a": ..., "b": snapshot.id})
        why = (
            Message(
                "The table has changelog-producer=none: its commits write none. ",
                changes,
                " returns the rows that commits wrote, ",
                Hint("snapshot.file_changes", {"ref": snapshot.id}),
                " the files.",
            )
            if producer == "none"
            else Message(
                f"With changelog-producer={producer} not every commit has one; ",
                changes,
                " returns the changes of a range of versions.",
            )
        )
        raise InvalidArgumentError(Message(f"Version {snapshot.id} ({snapshot.kind}) has no changelog. ", why))
    schema = schemas.by_id([snapshot.schema_id])[snapshot.schema_id]
    return _of_versions(storage, schemas, [snapshot], "changelog", schema, predicate)


def by_file(splits: Sequence[Split]) -> list[Split]:
    """Return a split per file of splits of changelog rows."""
    return [
        replace(part, detail=PaimonEvents(plan=_plan(part)))
        for split in splits
        if isinstance(split.detail, PaimonEvents)
        for part in split_by_file(replace(split, detail=split.detail.plan))
    ]


def splits_between(
    storage: Storage,
    schemas: Schemas,
    snapshots: Sequence[PaimonSnapshot],
    mode: ChangeMode,
    predicate: Predicate | None,
) -> list[Split]:
    """Return splits of the rows that versions changed, under the newest schema.

    Args:
        snapshots: For `diff` the earlier and the later snapshot, otherwise the snapshots of the range, ascending.
        mode: The mode; `auto` is changelog if the table has a changelog producer, otherwise delta.
        predicate: The condition on the rows. Files without matching rows are left out.
    """
    schema = schemas.newest(snapshots[-1].schema_id if snapshots else 0)
    if mode == "auto":
        mode = "delta" if producer_of(schema.options) == "none" else "changelog"
    match mode:
        case "diff":
            return _differences(storage, schemas, snapshots[0], snapshots[1], predicate)
        case "delta":
            chosen, kind = [snapshot for snapshot in snapshots if snapshot.kind == "APPEND"], "delta"
        case _:
            chosen, kind = [snapshot for snapshot in snapshots if snapshot.kind != "OVERWRITE"], "changelog"
    return _of_versions(storage, schemas, chosen, kind, schema, predicate)


def _of_versions(
    storage: Storage,
    schemas: Schemas,
    snapshots: Sequence[PaimonSnapshot],
    kind: str,
    schema: PaimonSchema,
    predicate: Predicate | None,
) -> list[Split]:
    """Return splits of the files in the delta or changelog lists of versions: by version, then by bucket."""
    if not snapshots:
        return []
    options = schemas.newest(snapshots[-1].schema_id).options
    _check_schema(schema, options, snapshots[0].id)
    changes = read_changes(storage, snapshots, kind, keep=manifests_with(schema, predicate, storage))
    for snapshot, known in zip(snapshots, changes.known, strict=True):
        if not known:
            raise SnapshotNotFoundError(
                f"The changes of version {snapshot.id} cannot be read: the files of its {kind} manifest list have "
                "expired. Start at a newer version."
            )
    splits: list[Split] = []
    for index, snapshot in enumerate(snapshots):
        entries = changes.entries.filter(pa.array(changes.commits == index))
        entries = _checked(entries, snapshot, kind, schema, options)
        files = _files(storage, schemas, entries, schema)
        if predicate is not None:
            files = files.where(rows_might_match(files, predicate))
        added = _splits(storage, files, snapshot.id, {})
        splits.extend(replace(split, detail=PaimonEvents(plan=_plan(split))) for split in added)
    return splits


def _check_schema(schema: PaimonSchema, options: Mapping[str, str], version: int) -> None:
    """Raise for features of the rows that are not supported, other than merging."""
    check_table(schema, {name: value for name, value in options.items() if name not in _ABOUT_MERGING}, version)
    check_single_branch(options, version)
    if parse_flag(options, "data-evolution.enabled"):
        raise refusal(features.CHANGES_OF_EVOLUTION, version=version)
    if any(field.name == ROW_KIND for field in schema.fields):
        raise refusal(CHANGE_COLUMN_CONFLICT, column=ROW_KIND)


def _checked(
    entries: pa.Table, snapshot: PaimonSnapshot, kind: str, schema: PaimonSchema, options: Mapping[str, str]
) -> pa.Table:
    if pc.any(pc.equal(entries.column("kind"), DELETE), min_count=0).as_py():
        raise refusal(features.UPDATES_WITH_REMOVALS, version=snapshot.id, kind=snapshot.kind)
    if not schema.primary_keys:
        return entries
    if pc.any(pc.less(entries.column("bucket"), 0), min_count=0).as_py():
        raise refusal(features.CHANGES_OF_POSTPONED_BUCKETS, version=snapshot.id)
    first_row = parse_keyword(options, "merge-engine") == "first-row"
    if not first_row and not parse_flag(options, "deletion-vectors.enabled"):
        return entries
    upper = entries.filter(pc.greater(entries.column("level"), 0))
    if kind == "changelog" and len(upper) < len(entries):
        raise refusal(features.CHANGELOG_OF_LEVEL_0, version=snapshot.id)
    return upper


def _files(storage: Storage, schemas: Schemas, entries: pa.Table, schema: PaimonSchema) -> PaimonFiles:
    return PaimonFiles(
        entries=entries,
        partitions=partitions_of(entries.column("partition"), schema),
        schema=schema,
        file_schemas=file_schemas(schemas, entries),
        options=schemas.newest().options,
        storage=storage,
    )


def _splits(storage: Storage, files: PaimonFiles, version: int, vectors: Vectors) -> list[Split]:
    """Return a split per partition and bucket."""
    return unmerged_splits(files, vectors, file_paths(storage, files), version)


def _plan(split: Split) -> PaimonPlan:
    if not isinstance(split.detail, PaimonPlan):
        raise InvalidArgumentError("The split is not from a Paimon table.")
    return split.detail


def _differences(
    storage: Storage, schemas: Schemas, first: PaimonSnapshot, last: PaimonSnapshot, predicate: Predicate | None
) -> list[Split]:
    """Return a split per bucket whose files differ between two versions.

    Files in both versions are excluded, as in Paimon, even if their deletion vectors changed: a key that was rewritten
    with the same values is returned as changed, and a row that only a deletion vector removes is not returned. The
    other files of each version are merged by the table's rules. Files without a key that matches the condition are
    left out.
    """
    schema = schemas.newest(last.schema_id)
    options = schema.options
    check_table(schema, options, last.id)
    _check_schema(schema, options, last.id)
    before, after = (_batch_state(storage, schemas, item, predicate) for item in (first, last))
    _check_buckets(before.entries, after.entries)
    _warn_of_vectors(before, after, first.id, last.id, storage)
    removed, new = _only_in(before.entries, after.entries), _only_in(after.entries, before.entries)
    files = [_files(storage, schemas, entries, schema) for entries in (removed, new)]
    if predicate is not None:
        might_match = keys_might_match if schema.primary_keys else partitions_might_match
        files = [side.where(might_match(side, predicate)) for side in files]
    old = {_bucket(split): split for split in _splits(storage, files[0], first.id, before.vectors)}
    now = {_bucket(split): split for split in _splits(storage, files[1], last.id, after.vectors)}
    if not schema.primary_keys:
        return _appended_files(old, now, first.id, last.id)
    rules = merge_rules(schema, options, last.id)
    result = []
    for bucket in dict.fromkeys([*now, *old]):
        sides = [side.get(bucket) for side in (old, now)]
        present = [side for side in sides if side]
        plans = [_plan(side) if side else None for side in sides]
        result.append(
            replace(
                present[-1],
                files=tuple(path for side in present for path in side.files),
                rows=sum(side.rows or 0 for side in present),
                size_bytes=sum(side.size_bytes for side in present),
                detail=Difference(before=plans[0], after=plans[1], rules=rules),
            )
        )
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _BatchState:
    entries: pa.Table
    """The live entries that a batch read includes."""
    vectors: Vectors


def _batch_state(
    storage: Storage, schemas: Schemas, snapshot: PaimonSnapshot, predicate: Predicate | None
) -> _BatchState:
    schema, newest = schemas.with_newest(snapshot.schema_id)
    options = newest.options
    state = read_state(storage, snapshot, keep=manifests_with(schema, predicate, storage))
    if schema.primary_keys and pc.any(pc.less(state.entries.column("bucket"), 0), min_count=0).as_py():
        raise refusal(features.DIFFERENCE_OF_POSTPONED_BUCKETS, version=snapshot.id)
    entries = state.entries.filter(is_included(state.entries, schema, options, snapshot.id))
    vectors = vectors_in(storage, state.indexes, schema, options, strict=True)
    vectors = applied_vectors(vectors, entries, schema, options, snapshot.id, storage)
    return _BatchState(entries=entries, vectors=vectors)


def _warn_of_vectors(before: _BatchState, after: _BatchState, first: int, last: int, storage: Storage) -> None:
    """Log a warning if deletion vectors deleted rows of files in both versions."""
    if not before.vectors and not after.vectors:
        return
    names = ("partition", "bucket", "file_name")
    sides = [
        set(zip(*(side.entries.column(name).to_pylist() for name in names), strict=True)) for side in (before, after)
    ]
    changed = [key for key in sides[0] & sides[1] if before.vectors.get(key) != after.vectors.get(key)]
    if changed:
        storage.warn_once(
            log,
            "between versions %d and %d deletion vectors deleted rows of %d files that both versions have, such as "
            "%s: like Paimon's, the difference excludes these files and these deleted rows",
            first,
            last,
            len(changed),
            min(name for _, _, name in changed),
        )


def _appended_files(
    old: Mapping[tuple[object, ...], Split], now: Mapping[tuple[object, ...], Split], first: int, last: int
) -> list[Split]:
    """Return the added files of a table without keys. Raise if files were removed: their rows cannot be matched."""
    for split in old.values():
        raise refusal(features.DIFFERENCE_OF_REMOVED_FILES, first=first, last=last, path=split.files[0])
    return [replace(split, detail=PaimonEvents(plan=_plan(split))) for split in now.values()]


def _bucket(split: Split) -> tuple[object, ...]:
    plan = _plan(split)
    # Typed values: null, "" and blanks share a folder, but not a partition.
    values = () if plan.partition is None else tuple(map(repr, plan.partition.to_pylist()))
    return *values, split.bucket


def _only_in(entries: pa.Table, others: pa.Table) -> pa.Table:
    present = set(zip(*(others.column(name).to_pylist() for name in _KEY), strict=True))
    keys = zip(*(entries.column(name).to_pylist() for name in _KEY), strict=True)
    kept = np.fromiter((key not in present for key in keys), bool, len(entries))
    return entries.drop_columns(["is_new"]).filter(pa.array(kept))


def _check_buckets(before: pa.Table, after: pa.Table) -> None:
    """Raise if the number of buckets of a partition changed between the versions."""
    counts: dict[bytes, int] = {}
    for entries in (before, after):
        columns = (entries.column(name).to_pylist() for name in ("partition", "total_buckets"))
        for partition, count in zip(*columns, strict=True):
            if counts.setdefault(partition, count) != count:
                raise refusal(features.DIFFERENCE_OF_BUCKET_COUNTS, before=counts[partition], after=count)
