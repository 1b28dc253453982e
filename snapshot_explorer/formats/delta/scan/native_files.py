"""Splits for readers on other machines, and for readers other than this package's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.records import NativeFile, NativeRows, Split
from snapshot_explorer.formats.capabilities import NativeFiles
from snapshot_explorer.formats.delta.files.absent_columns import required_columns
from snapshot_explorer.formats.delta.files.deletion_vectors import read_deleted_positions
from snapshot_explorer.formats.delta.files.missing_files import Removals
from snapshot_explorer.formats.delta.metadata.data_types import DeltaDataType, parts
from snapshot_explorer.formats.delta.scan.plans import DeltaPlan, plan_of_file
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


@dataclass(frozen=True, kw_only=True)
class DeltaNativeFiles(NativeFiles):
    """The data files of splits, which other readers of Parquet may read."""

    storage: Storage
    removals: Removals

    def of(self, split: Split) -> NativeRows | None:
        """Return the files of a split for other readers; None if they would return other rows.

        They find columns by exact name, and return every row except the rows at `deleted_positions`. Old files may
        contain a column with a narrower type.
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
                    address=self.storage.local_address(file.path),
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

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        files = [plan.files[0] for part in parts if (plan := plan_of_file(part)) is not None]
        read = partial(read_deleted_positions, self.storage, removals=self.removals)
        return [
            NOTHING if file.vector is None else read(file.vector, file.path, n)
            for file, n in zip(files, rows, strict=True)
        ]


def _alike(data_type: DeltaDataType) -> bool:
    """Return whether all fields in a type are stored under their own names, with ordinary types."""
    if data_type.root in ("variant", *SPATIAL) or data_type.char_length is not None:
        return False
    if any(field.stored != field.name or field.type.root == "void" for field in data_type.fields):
        return False
    return all(_alike(part) for part in parts(data_type))
