"""The versions that can have changed rows of a condition, by the lifetimes and statistics of files."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.records import Bounds, TableSchema
from snapshot_explorer.engines.conditions import Condition
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.history import column_names
from snapshot_explorer.history.lifetimes import FileLifetimes, FileStatistics, delete_manifests, read_statistics

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class AffectedVersions:
    """The versions that can have changed rows of a condition."""

    lifetimes: FileLifetimes
    bounds: Bounds
    """The statistics of the condition's columns, a row per row of `lifetimes.intervals.rows`; null is unknown."""
    schemas: tuple[tuple[int, TableSchema], ...]
    """The versions at which schemas come into force, ascending, each with its schema."""
    indices: tuple[int, ...]
    """The positions of the affected versions among the versions of `lifetimes`, ascending; 0 is always included."""
    common: tuple[int, ...]
    """The indices at which rows of any file can have changed, even if the file did not; the first is included."""
    admits: Mask
    """Which of `lifetimes.intervals.rows` can have matching rows, or affect them."""
    files: int
    """The number of all data files of all versions."""
    admitted: int
    """The number of data files that can have matching rows, or affect them."""
    begins_with_first: bool
    """Whether the commit of the first version added all of its files that can have matching rows."""


def affected_versions(
    table_format: TableFormat, where: Condition | None, reference: int, *, last: int | None = None
) -> AffectedVersions:
    """Return the versions that can have changed rows of a condition. One pass over the log; opens no data file.

    If rows are merged by a primary key, a file affects a row if it can contain its key, whatever its other values: only
    conditions on the key rule out files. Every version counts if deletion vectors change during the lifetime of files
    (Paimon), or if the table also has rows of another branch or outside of files; in Iceberg each version whose delete
    files differ.

    Args:
        reference: The version whose columns the condition names.
        last: The last version to consider; by default the newest one.
    """
    version = table_format.version(reference)
    keys = frozenset(version.schema.primary_keys if version.schema.is_merged else ())
    part = where.on(keys) if keys and where is not None else where
    columns = [name for name in version.arrow_schema.names if where is not None and name in where.columns]
    known = read_statistics(table_format, columns, reference)
    lifetimes, count = known.lifetimes, len(known.lifetimes.versions)
    if last is not None:
        count = int(np.searchsorted(np.asarray(lifetimes.versions), last, side="right"))
    rows = lifetimes.intervals.rows
    has_defaults = part is not None and version.fills_missing_columns(part.columns)
    is_ruled = part is not None and not has_defaults
    admits = _admits(table_format, part, known, version) if part and is_ruled else np.ones(len(rows), np.bool_)
    first, end = (rows.column(name).to_numpy()[admits] for name in ("first", "last"))
    # Where the schema changes, files that lack a column may get a default.
    starts = [start for start, _ in known.schemas] if has_defaults else []
    schemas = np.searchsorted(np.asarray(lifetimes.versions, np.int64), np.asarray(starts, np.int64))
    deletes = delete_manifests(table_format, lifetimes.versions[:count])
    changed = [index for index in range(1, len(deletes)) if deletes[index] != deletes[index - 1]]
    every = np.arange(count if _every_version_counts(table_format, lifetimes) else 1)
    common = np.unique(np.concatenate([every, schemas, np.asarray(changed, np.int64)]))
    indices = np.unique(np.concatenate([common, first, end]))
    return AffectedVersions(
        lifetimes=lifetimes,
        bounds=known.bounds,
        schemas=known.schemas,
        indices=tuple(indices[indices < count].tolist()),
        common=tuple(common[common < count].tolist()),
        admits=admits,
        files=_paths(rows),
        admitted=_paths(rows.filter(pa.array(admits))),
        begins_with_first=_added_by_first(lifetimes, admits),
    )


def _admits(table_format: TableFormat, where: Condition, known: FileStatistics, reference: TableVersion) -> Mask:
    ruled_out = where.ruled_out(known.bounds)
    admits: Mask = ruled_out.is_null().to_numpy(zero_copy_only=False).astype(np.bool_)
    versions = np.asarray(known.lifetimes.versions, np.int64)
    first = known.lifetimes.intervals.rows.column("first").to_numpy()
    starts = [start for start, _ in known.schemas]
    called = column_names(table_format, starts, reference, sorted(where.columns))
    for start, after in zip(starts, [*starts[1:], None], strict=True):
        if _has_other_types(table_format.version(start), reference, called.at(start)):
            # Bounds in the reference version's types may not be compared as the condition compares these values.
            begin = np.searchsorted(versions, start)
            end = len(versions) if after is None else np.searchsorted(versions, after)
            admits |= (first >= begin) & (first < end)
    return admits


def _has_other_types(version: TableVersion, reference: TableVersion, names: Mapping[str, str | None]) -> bool:
    own, current = version.arrow_schema, reference.arrow_schema
    return any(
        own_name is not None and own.field(own_name).type != current.field(name).type
        for name, own_name in names.items()
    )


def _every_version_counts(table_format: TableFormat, lifetimes: FileLifetimes) -> bool:
    """Return whether every version can have changed rows, even without a change of its files."""
    if not table_format.row_modifiers().isdisjoint(("deletion vectors", "another branch", "rows outside of files")):
        return True
    rows = lifetimes.intervals.rows
    return all(rows.column(name).null_count < len(rows) for name in ("level", "deletion_vector"))


def _paths(rows: pa.Table) -> int:
    names = rows.select(["folder", "name"])
    return int(names.group_by(["folder", "name"]).aggregate([]).num_rows)


def _added_by_first(lifetimes: FileLifetimes, admits: Mask) -> bool:
    if not lifetimes.versions:
        return False
    rows = lifetimes.intervals.rows.filter(pa.array(admits))
    of_first = rows.filter(pc.equal(rows.column("first"), 0))
    added = single_chunk(of_first.column("added_version"))
    return bool(pc.all(pc.fill_null(pc.equal(added, lifetimes.versions[0]), False), min_count=0).as_py())  # noqa: FBT003
