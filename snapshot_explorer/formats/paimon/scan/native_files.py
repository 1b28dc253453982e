"""Splits for distributed engines and for the native Parquet and ORC readers of other engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.records import NativeFile, NativeRows, Split
from snapshot_explorer.formats.capabilities import NativeFiles
from snapshot_explorer.formats.paimon.files import evolution
from snapshot_explorer.formats.paimon.files.column_groups import ColumnGroup
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.files.deletion_vectors import read_deleted_positions
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType
from snapshot_explorer.formats.paimon.scan.plans import PaimonPlan, differs_in_other_readers, plan_of_file
from snapshot_explorer.storage import Storage

_WIDER = {"TINYINT": 0, "SMALLINT": 1, "INT": 2, "BIGINT": 3}


def split_by_file(split: Split) -> Sequence[Split]:
    """Return a split per file of a split, or per group of files with columns of the same rows.

    The split itself if its files are merged.
    """
    plan = split.detail
    if not isinstance(plan, PaimonPlan) or plan.merge is not None:
        return (split,)
    if plan.groups:
        return [_of_group(split, plan, group) for group in plan.groups]
    return [
        replace(
            split,
            files=(file.path,),
            rows=None if split.rows is None else file.rows,
            size_bytes=file.size_bytes,
            live_rows=None,
            detail=replace(plan, files=(file,), file_schemas={file.schema_id: plan.file_schemas[file.schema_id]}),
        )
        for file in plan.files
    ]


def _of_group(split: Split, plan: PaimonPlan, group: ColumnGroup) -> Split:
    vector = group.anchor.vector
    deleted = 0 if vector is None else vector.cardinality or 0
    return replace(
        split,
        files=tuple(file.path for file in group.everything),
        rows=None if split.rows is None else group.rows,
        size_bytes=sum(file.size_bytes for file in group.everything),
        live_rows=None if split.live_rows is None else group.rows - deleted,
        detail=replace(plan, files=group.everything, groups=(group,)),
    )


@dataclass(frozen=True)
class PaimonNativeFiles(NativeFiles):
    """The data files of splits, which other readers of Parquet and ORC may read."""

    storage: Storage

    def of(self, split: Split) -> NativeRows | None:
        """Return the files from which other readers return the same rows; None if they would return other rows.

        These readers find columns by exact name, and return every row except the rows at `deleted_positions`. Old files
        may contain a column in a narrower type.
        """
        plan = split.detail
        if not isinstance(plan, PaimonPlan) or plan.merge is not None or plan.groups:
            return None
        known: dict[tuple[int, tuple[str, ...] | None, str], Mapping[str, str | None] | None] = {}
        files = []
        for file in plan.files:
            if file.format not in ("parquet", "orc") or (plan.schema.primary_keys and file.deleted_rows != 0):
                return None
            key = (file.schema_id, file.write_columns, file.format)
            if key not in known:
                known[key] = _names(plan, file)
            names = known[key]
            if names is None:
                return None
            files.append(
                NativeFile(
                    address=self.storage.local_address(file.path),
                    kind=cast("Literal['parquet', 'orc']", file.format),
                    rows=file.rows,
                    names=names,
                    present=frozenset(name for name in names.values() if name is not None),
                    deleted=_deleted_rows(file),
                    size_bytes=file.size_bytes,
                )
            )
        return NativeRows(files=tuple(files), partition=plan.partition)

    def deleted_positions(self, parts: Sequence[Split], rows: Sequence[int]) -> Sequence[Positions]:
        files = [plan.files[0] for part in parts if (plan := plan_of_file(part)) is not None]
        vectors = [(file.path, file.vector, n) for file, n in zip(files, rows, strict=True) if file.vector is not None]
        positions = read_deleted_positions(self.storage, vectors)
        return [positions.get(file.path, NOTHING) for file in files]


def _deleted_rows(file: PaimonDataFile) -> int:
    if file.vector is None:
        return 0
    return file.rows if file.vector.cardinality is None else file.vector.cardinality


def _names(plan: PaimonPlan, file: PaimonDataFile) -> Mapping[str, str | None] | None:
    """Return the name of each column in a file; None if a column needs a cast that other readers do not do."""
    fields = [field for field in plan.schema.fields if field.name not in plan.schema.partition_keys]
    mapping = evolution.mapping(fields, plan.file_schemas[file.schema_id].fields, file.write_columns)
    for target, source in mapping.targets:
        if source is not None and (
            differs_in_other_readers(source.type, file.format) or not _needs_no_cast(source.type, target.type)
        ):
            return None
    return {target.name: None if source is None else source.name for target, source in mapping.targets}


def _needs_no_cast(source: PaimonDataType, target: PaimonDataType) -> bool:
    """Return whether values of a file need no cast, or only widening to an integer or float of more bits."""
    if evolution.same(source, target):
        return True
    if source.root in _WIDER and target.root in _WIDER:
        return _WIDER[source.root] < _WIDER[target.root]
    return source.root == "FLOAT" and target.root == "DOUBLE"
