"""The logical counts of Delta commits: what the writer recorded in `operationMetrics`, compared with the files."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa

from snapshot_explorer.formats.delta.frames.counts import Counts
from snapshot_explorer.formats.row_counts import RECORDED, RowChanges, logical_counts

_METRICS: Mapping[str, tuple[Sequence[str], ...]] = {
    "MERGE": (
        ("numTargetRowsInserted", "num_target_rows_inserted"),
        ("numTargetRowsUpdated", "num_target_rows_updated"),
        ("numTargetRowsDeleted", "num_target_rows_deleted"),
    ),
    "UPDATE": ((), ("numUpdatedRows", "num_updated_rows"), ()),
    "DELETE": ((), (), ("numDeletedRows", "num_deleted_rows")),
    "WRITE": (("numOutputRows", "num_added_rows"), (), ()),
    "STREAMING UPDATE": (("numOutputRows",), (), ()),
}
"""The metrics with the inserted, updated and deleted rows of an operation, by Delta for Spark and by delta-rs. An
operation without a metric for a count never changes rows in that way."""
_APPENDING = ("WRITE", "STREAMING UPDATE")
_DELETING = ("DELETE", "TRUNCATE")
_GROWING = ("DELETE", "UPDATE", "MERGE")
"""Operations whose deletion vectors contain the vectors that they replace."""
_MAX_DIGITS = 18


def logical_columns(
    versions: Sequence[int],
    commit_infos: Mapping[int, Mapping[str, object]],
    counts: Mapping[int, Counts],
    rearranging: Collection[int],
) -> dict[int, dict[str, object]]:
    """Return the logical counts of versions, by the names of columns of COMMITS.

    Metrics may be wrong: they count rows of repeated tasks twice, delta-rs records 0 for a delete of whole partitions
    and counted change data as rows. So they only count where the files do not contradict them.

    Args:
        rearranging: The versions whose file actions all leave the data unchanged.

    Source: delta DeltaOperations.scala, DeltaOperationMetrics; delta-rs `DeleteMetrics`, `UpdateMetrics`,
    `MergeMetrics`; delta issues 712, 5864; delta-rs issues 4353, 4379.
    """
    infos = [commit_infos.get(version, {}) for version in versions]
    operations = [info.get("operation") for info in infos]
    recorded = list(zip(*map(_recorded, infos), strict=True)) or [()] * len(RECORDED)
    sizes = [counts[version] for version in versions]
    columns = logical_counts(
        RowChanges(
            added=_integers([size.added_rows for size in sizes]),
            removed=_integers([size.removed_rows for size in sizes]),
            removes_files=np.array([size.removed_files > 0 for size in sizes], np.bool_),
            keeps_rows=np.array([version in rearranging for version in versions], np.bool_),
            is_plain=np.array(
                [
                    not size.repeats_files and (not size.replaces_vectors or operation in _GROWING)
                    for size, operation in zip(sizes, operations, strict=True)
                ],
                np.bool_,
            ),
            deletes_only=np.array([operation in _DELETING for operation in operations], np.bool_),
            recorded={name: _integers(values) for name, values in zip(RECORDED, recorded, strict=True)},
        )
    )
    rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    return {version: dict(zip(columns, row, strict=True)) for version, row in zip(versions, rows, strict=True)}


def _recorded(info: Mapping[str, object]) -> tuple[int | None, ...]:
    """Return the counts in RECORDED that a commit's metrics contain; all None unless all are known."""
    nothing = (None,) * len(RECORDED)
    operation, metrics, parameters = (
        info.get(name) for name in ("operation", "operationMetrics", "operationParameters")
    )
    names = _METRICS.get(operation) if isinstance(operation, str) else None
    if names is None or not isinstance(metrics, dict):
        return nothing
    mode = [parameters.get(name) for name in ("mode", "outputMode")] if isinstance(parameters, dict) else []
    if operation in _APPENDING and "Append" not in mode:
        return nothing
    found = [
        next((_number(metrics[name]) for name in synonyms if name in metrics), None) if synonyms else 0
        for synonyms in names
    ]
    return nothing if None in found else tuple(found)


def _number(value: object) -> int | None:
    """Return a metric, which is a number or its text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < 10**_MAX_DIGITS else None
    is_digits = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS
    return int(value) if is_digits else None  # type: ignore[call-overload]  # it is text


def _integers(values: Sequence[int | None]) -> pa.Array:
    return pa.array(values, pa.int64())
