"""`PaimonRowIdentity`: which splits of two versions of a Paimon table have the same rows."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from snapshot_explorer.core.records import PlannedPair, Predicate, Split
from snapshot_explorer.formats.capabilities import RowIdentity
from snapshot_explorer.formats.paimon import fallback
from snapshot_explorer.formats.paimon.changes.events import PaimonVectorDifference
from snapshot_explorer.formats.paimon.metadata.branch_metadata import BranchMetadata
from snapshot_explorer.formats.paimon.metadata.contents import ManifestLists
from snapshot_explorer.formats.paimon.metadata.snapshots import PaimonSnapshot
from snapshot_explorer.formats.paimon.scan.plans import plan_of_file
from snapshot_explorer.formats.paimon.scan.scans import scan_pair


@dataclass(frozen=True, kw_only=True)
class PaimonRowIdentity(RowIdentity):
    """The identity of the rows of a version."""

    metadata: BranchMetadata
    snapshot: PaimonSnapshot | None
    to_read: Callable[[], PaimonSnapshot]
    """Returns the snapshot with the schema to read under."""
    lists: Callable[[], ManifestLists]

    def plan_pair(self, other: Self, predicates: Sequence[Predicate | None]) -> PlannedPair | None:
        """Return the splits of two versions, without the partitions and buckets in which they have equal files.

        None for a predicate or a fallback branch, or if the versions are on two branches.
        """
        sides = (self, other)
        existing = max((side.snapshot.schema_id for side in sides if side.snapshot is not None), default=0)
        is_one_branch = self.metadata.name == other.metadata.name
        is_simple = is_one_branch and fallback.fallback_link(self.metadata, existing) is None
        has_predicate = any(predicate is not None for predicate in predicates)
        if self.snapshot is None or other.snapshot is None or has_predicate or not is_simple:
            return None
        to_read = [side.to_read() for side in sides]
        return scan_pair(self.metadata.storage, self.metadata.schemas, to_read, [side.lists for side in sides])

    def stored_rows(self, split: Split) -> Split | None:
        plan = plan_of_file(split)
        if plan is None or (plan.schema.primary_keys and plan.files[0].deleted_rows != 0):
            return None
        files = (plan.files[0]._replace(vector=None),)
        return replace(split, raw=True, live_rows=None, detail=replace(plan, files=files))

    def has_deleted_positions(self, split: Split) -> bool:
        return self.stored_rows(split) is not None and split.rows is not None

    def without_vector(self, split: Split) -> Hashable | None:
        plan = plan_of_file(split)
        if plan is None:
            return None
        (file,), schema = plan.files, plan.schema
        key = tuple(sorted(split.partition.items())), split.bucket, file.path, file.schema_id
        return *key, schema.fields, schema.partition_keys, schema.primary_keys, file.first_row_id

    def in_columns(self, split: Split, columns: Sequence[str | None], absent: frozenset[str]) -> Hashable | None:
        # The schemas of the versions may differ: a column is read as stored in the file, by its id.
        plan = plan_of_file(split)
        if plan is None:
            return None
        (file,) = plan.files
        known = {field.name: field for field in plan.schema.fields}
        stored = {field.id: field for field in plan.file_schemas[file.schema_id].fields}
        if file.write_columns is not None:
            stored = {number: field for number, field in stored.items() if field.name in file.write_columns}
        read: list[Hashable] = []
        for name in columns:
            field = None if name is None or name in absent else known[name]
            is_partition = field is not None and field.name in plan.schema.partition_keys
            if field is None or (field.id not in stored and not is_partition):
                read.append(None)
            else:
                source = None if is_partition else stored[field.id]
                read.append((field.id, replace(field.type, nullable=True), source))
        key = tuple(sorted(split.partition.items())), split.bucket, file.path, file.schema_id, file.vector
        return *key, bool(plan.schema.primary_keys), plan.legacy_zones, tuple(read)

    def rows_deleted(self, before: Split, after: Split) -> Split | None:
        plan, later = plan_of_file(before), plan_of_file(after)
        if plan is None or later is None:
            return None
        (file,), (other,) = plan.files, later.files
        if other.vector is None or other.vector == file.vector:
            return None
        detail = PaimonVectorDifference(plan=plan, deleted_by=other.vector, not_deleted_by=file.vector)
        deleted = file.rows if other.vector.cardinality is None else other.vector.cardinality
        return replace(before, raw=False, rows=deleted, live_rows=None, detail=detail)
