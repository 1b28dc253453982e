"""Splits for readers on other machines, and for readers other than this package's own."""

from collections.abc import Sequence
from dataclasses import replace

from snapshot_explorer.core.records import NativeFile, NativeRows, Split
from snapshot_explorer.formats.delta.files.absent_columns import required_columns
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, parts
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan
from snapshot_explorer.formats.spatial import SPATIAL
from snapshot_explorer.storage import Storage


def split_by_file(split: Split) -> Sequence[Split]:
    """Return one split per file for a split of rows; a split of changes unchanged."""
    plan = split.detail
    if not isinstance(plan, DeltaPlan):
        return (split,)
    return [
        replace(
            split,
            files=(file.path,),
            rows=file.rows,
            size_bytes=file.size_bytes or 0,
            live_rows=None,
            detail=plan.for_file(index),
        )
        for index, file in enumerate(plan.files)
    ]


def native_files(storage: Storage, split: Split) -> NativeRows | None:
    """Return the files of a split for other readers; None if they would return other rows.

    They find columns by exact name, and return every row except the rows at `deleted_positions`. Old files may contain
    a column with a narrower type.
    """
    plan = split.detail
    if not isinstance(plan, DeltaPlan) or plan.schema.mode == "id":
        return None
    fields = [field for field in plan.schema.fields if field.name not in plan.schema.partition_columns]
    if any(not _alike(field.type) for field in fields):
        return None
    names = {field.name: None if field.type.root == "void" else field.stored for field in fields}
    looked_up = [name for name in names.values() if name is not None]
    return NativeRows(
        files=tuple(
            NativeFile(
                address=storage.local_address(file.path),
                kind="parquet",
                rows=file.rows,
                names=names,
                present=required_columns(plan.stats_of(index), looked_up),
                deleted=0 if file.vector is None else file.vector.cardinality,
                size_bytes=file.size_bytes or None,
            )
            for index, file in enumerate(plan.files)
        ),
        partition=plan.partition,
    )


def _alike(data_type: DeltaDataType) -> bool:
    """Return whether all fields in a type are stored under their own names, with ordinary types."""
    if data_type.root in ("variant", *SPATIAL) or data_type.char_length is not None:
        return False
    if any(field.stored != field.name or field.type.root == "void" for field in data_type.fields):
        return False
    return all(_alike(part) for part in parts(data_type))
