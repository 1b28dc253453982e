"""Splits for readers on other machines, and for readers other than this package's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.records import NativeFile, NativeRows, Split
from snapshot_explorer.formats.capabilities import NativeFiles
from snapshot_explorer.formats.hudi.metadata.types import HudiType
from snapshot_explorer.formats.hudi.scan.plans import HudiPlan
from snapshot_explorer.storage import Storage


def split_by_file(split: Split) -> Sequence[Split]:
    """Return one split per file for a split of base files; a slice with log files unchanged."""
    plan = split.detail
    if not isinstance(plan, HudiPlan) or plan.merge is not None:
        return (split,)
    return [
        replace(
            split,
            files=(file.path,),
            rows=file.rows,
            size_bytes=file.size_bytes or 0,
            live_rows=file.rows,
            detail=plan.for_file(index),
        )
        for index, file in enumerate(plan.bases)
    ]


@dataclass(frozen=True)
class HudiNativeFiles(NativeFiles):
    """The base files of splits, which other readers of Parquet and ORC may read."""

    storage: Storage

    def of(self, split: Split) -> NativeRows | None:
        """Return the files of a split for other readers; None if they would return other rows."""
        plan = split.detail
        if not split.raw or not isinstance(plan, HudiPlan):
            return None
        constants = dict(plan.partition)
        fields = [field for field in plan.fields if field.name not in constants]
        if any(_may_differ(field.type) for field in fields):
            return None
        names = {field.name: field.name for field in fields}
        partition = pa.table({name: pa.array([value.as_py()], value.type) for name, value in plan.partition})
        return NativeRows(
            files=tuple(
                NativeFile(
                    address=self.storage.local_address(file.path),
                    kind="orc" if file.is_orc else "parquet",
                    rows=file.rows,
                    names=names,
                    size_bytes=file.size_bytes,
                )
                for file in plan.bases
            ),
            partition=partition if plan.partition else None,
        )

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:  # noqa: ARG002 - none
        """Return no positions: base files without log files have no deleted rows."""
        return [NOTHING] * len(parts)


def _may_differ(data_type: HudiType) -> bool:
    """Return whether values of a type may be stored in representations that readers convert differently."""
    is_plain = not data_type.fields and data_type.element is None and data_type.logical != "vector"
    return not is_plain or data_type.logical.startswith("timestamp-millis")
