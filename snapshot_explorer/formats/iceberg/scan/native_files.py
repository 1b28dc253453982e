"""Data files for readers other than this package's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from snapshot_explorer.arrow.roaring import Positions
from snapshot_explorer.core.records import NativeFile, NativeRows, Split
from snapshot_explorer.formats.capabilities import NativeFiles
from snapshot_explorer.formats.iceberg.metadata.data_types import walk
from snapshot_explorer.formats.iceberg.scan.plans import IcebergPlan
from snapshot_explorer.formats.iceberg.scan.read import RowReader, plan_of
from snapshot_explorer.storage import Storage


@dataclass(frozen=True, kw_only=True)
class IcebergNativeFiles(NativeFiles):
    """The data files of splits, which other readers of Parquet and ORC may read."""

    storage: Storage
    reader: RowReader

    def of(self, split: Split) -> NativeRows | None:
        """Return the file of a split for other readers; None if they would return other rows.

        They find columns by exact name, check the field ids, and return every row not at one of `deleted_positions`.
        """
        plan = split.detail
        if not isinstance(plan, IcebergPlan) or not plan.context.names_are_stored:
            return None
        return _files(self.storage, plan)

    def by_names(self, split: Split) -> NativeRows | None:
        """Return the file of a split whose columns are found by exact names if it stores no ids; None otherwise."""
        plan = split.detail
        if not isinstance(plan, IcebergPlan) or not plan.context.names_are_mapped:
            return None
        rows = _files(self.storage, plan)
        return None if rows is None else replace(rows, files=(replace(rows.files[0], ids=None),))

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:  # noqa: ARG002 - the metadata has the same numbers
        return [self.reader.positions(plan_of(part)) for part in parts]


def _files(storage: Storage, plan: IcebergPlan) -> NativeRows | None:
    deleted = _deleted_rows(plan)
    if plan.deletes.equality or deleted is None:
        return None
    fields = plan.context.schema.fields
    if any(field.type.spatial is not None for field in walk(fields)):
        return None
    constants = {field.name: plan.constants[field.id] for field in fields if field.id in plan.constants}
    nested = {field.id for field in walk(fields)} - {field.id for field in fields}
    if nested.intersection(plan.constants) or plan.file.format == "avro":
        return None
    stored = [field for field in fields if field.name not in constants]
    file = NativeFile(
        address=storage.local_address(plan.file.location),
        kind="orc" if plan.file.format == "orc" else "parquet",
        rows=plan.file.rows,
        names={field.name: None if field.type.root == "unknown" else field.name for field in stored},
        ids={field.name: field.id for field in stored if field.type.root != "unknown"},
        deleted=deleted,
        size_bytes=plan.file.size_bytes,
    )
    partition = pa.table({name: pa.array([value.as_py()], value.type) for name, value in constants.items()})
    return NativeRows(files=(file,), partition=partition if constants else None)


def _deleted_rows(plan: IcebergPlan) -> int | None:
    """Return the maximum number of rows that are deleted by their positions; None if it is unknown."""
    if plan.deletes.vector is not None:
        return plan.deletes.vector.cardinality
    rows = [file.rows for file in plan.deletes.positions]
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None
