"""Statistics of data files by column, from the bounds and counts of manifest entries.

Source: iceberg specification, "Manifests"; `InclusiveMetricsEvaluator`.
"""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.maps import values_of
from snapshot_explorer.core.errors import SnapshotExplorerError
from snapshot_explorer.core.records import Bounds
from snapshot_explorer.formats.iceberg.metadata.contents import Source, entries_of
from snapshot_explorer.formats.iceberg.metadata.data_types import IcebergField, arrow_type, is_nested, is_read
from snapshot_explorer.formats.iceberg.metadata.entries import known_rows
from snapshot_explorer.formats.iceberg.metadata.manifest_lists import read_manifest_lists
from snapshot_explorer.formats.iceberg.metadata.table_metadata import IcebergSnapshot
from snapshot_explorer.formats.iceberg.metadata.values import single_values
from snapshot_explorer.formats.spatial import SPATIAL
from snapshot_explorer.formats.statistics import StatisticsFile, StatisticsFiles, bounds_from, by_path

NEEDED = ("null_value_counts", "lower_bounds", "upper_bounds")
"""The columns of STATISTICS from which bounds are made."""
_UNORDERED = ("uuid", "variant", "unknown", *SPATIAL)
"""Types whose bounds are not used: Java does not order uuids by their text, and bounds of WKB are points."""


def bounds(files: pa.Table, fields: Sequence[IcebergField]) -> Bounds:
    """Return the bounds of columns in data files; null where unknown.

    Bounds of text and binary may be truncated: a lower bound is at most the minimum, an upper bound at least the
    maximum. Deleted rows are included.

    Args:
        files: LIVE, with NEEDED of STATISTICS.
    """
    columns = {field.name: _of(files, field) for field in fields if is_read(field.type)}
    return bounds_from(columns, known_rows(files))


def _of(files: pa.Table, field: IcebergField) -> tuple[pa.Array, pa.Array, pa.Array]:
    nulls = values_of(files.column("null_value_counts"), field.id)
    nulls = pc.if_else(pc.less(nulls, 0), pa.scalar(None, pa.int64()), nulls)
    if is_nested(field.type) or field.type.root in _UNORDERED:
        unknown = pa.nulls(len(files), arrow_type(field.type))
        return unknown, unknown, nulls
    ends = (
        _without_nan(single_values(values_of(files.column(name), field.id), field.type))
        for name in ("lower_bounds", "upper_bounds")
    )
    lower, upper = ends
    return lower, upper, nulls


def _without_nan(values: pa.Array) -> pa.Array:
    """Return values, NaN as unknown: early writers used it as a bound."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


def statistics_files(
    source: Source, snapshots: Sequence[tuple[int, IcebergSnapshot]], fields: Sequence[IcebergField]
) -> StatisticsFiles:
    """Return the manifests of snapshots, of data files and of deletes. Reads the manifest lists concurrently.

    Args:
        snapshots: By version, ascending.
        fields: The columns whose statistics are returned.
    """
    lists = source.storage.together(*(partial(_manifests_of, source, snapshot) for _, snapshot in snapshots))
    manifests = {
        (version, location): listed.slice(row, 1)
        for (version, _), listed in zip(snapshots, lists, strict=True)
        if isinstance(listed, pa.Table)
        for row, location in enumerate(listed.column("location").to_pylist())
    }
    files = [StatisticsFile(path=path, what="manifest", first=version, last=version) for version, path in manifests]
    unread = [
        f"The manifest list of version {version} could not be read: {error}"
        for (version, _), error in zip(snapshots, lists, strict=True)
        if isinstance(error, SnapshotExplorerError)
    ]
    return StatisticsFiles(
        files=by_path(files),
        read=lambda chosen: source.storage.together(
            *(partial(_recorded_bounds, source, manifests[file.first, file.path], fields) for file in chosen)
        ),
        unread=unread,
    )


def _manifests_of(source: Source, snapshot: IcebergSnapshot) -> pa.Table | SnapshotExplorerError:
    try:
        return read_manifest_lists(source.storage, source.locations, [snapshot])
    except SnapshotExplorerError as error:
        return error


def _recorded_bounds(source: Source, manifest: pa.Table, fields: Sequence[IcebergField]) -> Sequence[Bounds]:
    return [bounds(entries_of(source, manifest, statistics=NEEDED).rows, fields)]
