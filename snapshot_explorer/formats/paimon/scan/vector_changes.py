"""Files of two versions that differ only in their deletion vectors."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.files.deletion_vectors import PaimonVector, deleted
from snapshot_explorer.formats.paimon.scan.plans import PaimonPlan
from snapshot_explorer.formats.paimon.scan.read import read_only
from snapshot_explorer.model import Split
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class PaimonVectorDifference:
    """The rows of a file that are in one deletion vector and not in another. `Split.detail`; picklable."""

    plan: PaimonPlan
    deleted_by: PaimonVector
    not_deleted_by: PaimonVector | None

    @property
    def identity(self) -> Hashable:
        """Return a value that is equal for splits with the same rows."""
        return "vector difference", self.plan.identity, self.deleted_by, self.not_deleted_by


def identity_without_vector(split: Split) -> Hashable | None:
    """Return a value that is equal for splits of one file that differ at most in its vector.

    None for other splits: of several files, merged, or with parts of rows.
    """
    file = _only_file(split)
    if file is None or not isinstance(split.detail, PaimonPlan):
        return None
    schema = split.detail.schema
    key = tuple(sorted(split.partition.items())), split.bucket, file.path, file.schema_id
    return *key, schema.fields, schema.partition_keys, schema.primary_keys, file.first_row_id


def stored_rows(split: Split) -> Split | None:
    """Return a split of the rows of a file without its vector; None for other splits, and files with deletes."""
    file, plan = _only_file(split), split.detail
    if file is None or not isinstance(plan, PaimonPlan) or (plan.schema.primary_keys and file.deleted_rows != 0):
        return None
    files = (file._replace(vector=None),)
    return replace(split, raw=True, counted=None, detail=replace(plan, files=files))


def identity_in(split: Split, columns: Sequence[str | None]) -> Hashable | None:
    """Return a value that is equal for splits of one file whose rows are equal in these columns; else None.

    The schemas of the versions may differ: a column is read as the file has it, by its id. A column that is None stands
    for nulls, as does one that the file lacks.
    """
    file, plan = _only_file(split), split.detail
    if file is None or not isinstance(plan, PaimonPlan):
        return None
    known = {field.name: field for field in plan.schema.fields}
    stored = {field.id: field for field in plan.file_schemas[file.schema_id].fields}
    if file.write_columns is not None:
        stored = {number: field for number, field in stored.items() if field.name in file.write_columns}
    read: list[Hashable] = []
    for name in columns:
        field = None if name is None else known[name]
        if field is None or (field.id not in stored and field.name not in plan.schema.partition_keys):
            read.append(None)
        else:
            is_partition = field.name in plan.schema.partition_keys
            source = None if is_partition else stored[field.id]
            read.append((field.id, replace(field.type, nullable=True), source))
    key = tuple(sorted(split.partition.items())), split.bucket, file.path, file.schema_id, file.vector
    return *key, bool(plan.schema.primary_keys), plan.legacy_zones, tuple(read)


def rows_deleted(before: Split, after: Split) -> Split | None:
    """Return a split of the rows that the vector of `before` does not delete, and that of `after` does.

    None if there are none. Reads nothing. Both are splits of the same file.
    """
    file, other = _only_file(before), _only_file(after)
    if file is None or other is None or not isinstance(before.detail, PaimonPlan):
        return None
    if other.vector is None or other.vector == file.vector:
        return None
    detail = PaimonVectorDifference(plan=before.detail, deleted_by=other.vector, not_deleted_by=file.vector)
    deleted = file.rows if other.vector.cardinality is None else other.vector.cardinality
    return replace(before, raw=False, rows=deleted, counted=None, detail=detail)


def _only_file(split: Split) -> PaimonDataFile | None:
    plan = split.detail
    if not isinstance(plan, PaimonPlan) or plan.merge is not None or plan.groups or len(plan.files) != 1:
        return None
    return plan.files[0]


def read_difference(
    storage: Storage, detail: PaimonVectorDifference, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a difference with these columns, in file order. Rows of kind -D and -U are left out."""
    (file,) = detail.plan.files
    gone = deleted(storage, [(file.path, detail.deleted_by, file.rows)])[file.path]
    if detail.not_deleted_by is not None:
        before = deleted(storage, [(file.path, detail.not_deleted_by, file.rows)])[file.path]
        gone = np.setdiff1d(gone, before, assume_unique=True)
    if len(gone):
        yield from read_only(storage, detail.plan, columns, gone)
