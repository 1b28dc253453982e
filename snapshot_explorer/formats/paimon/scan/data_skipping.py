"""Data skipping: files in which no row can match a condition, found in metadata alone, and the reasons.

A partition or a bucket is skipped as a whole. A file of an append table is skipped by its statistics. A file of a
primary-key table is skipped by its key range, even if it overlaps others: all rows of a key have the same key. It is
skipped by other columns only if it is read without a merge. Otherwise an old row would reappear if the file with its
update or delete is skipped, and merged values might match although no single file does.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Bounds, Predicate, Split
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.contents import Keep
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonField
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema
from snapshot_explorer.formats.paimon.scan import buckets, statistics
from snapshot_explorer.formats.paimon.scan.plans import PaimonFiles, PaimonPlan
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.formats.skipped import Reasons, by_statistics, skipped_frame
from snapshot_explorer.storage import Storage

log = logger_of(__name__)

_ORC_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")


def by_partition(
    partitions: PaimonPartitions, schema: PaimonSchema, predicate: Predicate | None
) -> npt.NDArray[np.bool_]:
    """Return for each entry whether rows of its partition might match."""
    part = predicate.on(frozenset(schema.partition_keys)) if predicate and schema.partition_keys else None
    if part is None:
        return np.ones(len(partitions.of_rows), np.bool_)
    return _as_mask(part.mask(partitions.values).take(partitions.of_rows))


def manifests_with(schema: PaimonSchema, predicate: Predicate | None, storage: Storage) -> Keep | None:
    """Return a filter of the manifests whose partitions might match the predicate; None to read all manifests.

    The filter tests the bounds and null counts of the partition columns in a manifest list.

    Source: paimon ManifestsReader.
    """
    part = predicate.on(frozenset(schema.partition_keys)) if predicate and schema.partition_keys else None
    if part is None:
        return None
    fields = [schema.field(name) for name in schema.partition_keys]

    def keep(listed: pa.Table) -> npt.NDArray[np.bool_]:
        try:
            ends = [
                binary_row.decode(listed.column(name), fields, lenient=True)
                for name in ("partition_min", "partition_max")
            ]
        except CorruptTableError as error:
            storage.warn_once(log, "no manifest is skipped by its partitions: %s", error)
            return np.ones(len(listed), np.bool_)
        nulls = [statistics.null_counts(listed.column("partition_nulls"), index) for index in range(len(fields))]
        counts = pc.add(listed.column("added"), listed.column("deleted"))
        known = Bounds(
            lower=ends[0],
            upper=ends[1],
            null_count=pa.table(nulls, names=list(schema.partition_keys)),
            rows=single_chunk(counts),
        )
        return np.asarray(part.ruled_out(known).is_null().to_numpy(zero_copy_only=False), np.bool_)

    return keep


def before_planning(files: PaimonFiles, predicate: Predicate) -> Reasons:
    """Return the reasons to skip files before planning: their bucket and, without a primary key, their statistics."""
    reasons = _all_kept(len(files.entries))
    out = buckets.ruled_out(files.entries, files.schema, files.file_schemas, predicate)
    reasons[out] = "bucket"
    if not files.schema.primary_keys and _holds_whole_rows(files):
        reasons[~out] = _of_values(files.where(~out), predicate)
    return reasons


def after_planning(
    splits: Sequence[Split], files: PaimonFiles, paths: Sequence[str], predicate: Predicate
) -> tuple[list[Split], Reasons]:
    """Return the splits without the files of a primary-key table that cannot match, and the reasons to skip these.

    Which files are merged does not change: it was planned with all files.
    """
    reasons = _all_kept(len(files.entries))
    if not files.schema.primary_keys or not _holds_whole_rows(files):
        return list(splits), reasons
    by_key = dict(zip(paths, _of_keys(files, predicate), strict=True))
    by_value = dict(zip(paths, _of_values(files, predicate), strict=True))
    dropped: dict[str, str] = {}
    kept = []
    for split in splits:
        plan = split.detail
        if not isinstance(plan, PaimonPlan):
            continue
        by_value_unmerged = by_value if plan.merge is None else {}
        why = {path: by_key[path] or by_value_unmerged.get(path) for path in split.files}
        left = tuple(file for file in plan.files if not why[file.path])
        dropped |= {path: reason for path, reason in why.items() if reason}
        if len(left) == len(plan.files):
            kept.append(split)
        elif left:
            kept.append(
                replace(
                    split,
                    files=tuple(file.path for file in left),
                    rows=sum(file.rows for file in left),
                    size_bytes=sum(file.size_bytes for file in left),
                    live_rows=None,
                    detail=replace(plan, files=left),
                )
            )
    reasons[:] = [dropped.get(path) for path in paths]
    return kept, reasons


def partitions_might_match(files: PaimonFiles, predicate: Predicate) -> npt.NDArray[np.bool_]:
    """Return for each file whether rows of its partition and bucket might match."""
    kept = by_partition(files.partitions, files.schema, predicate).copy()
    kept[kept] = ~buckets.ruled_out(files.where(kept).entries, files.schema, files.file_schemas, predicate)
    return kept


def keys_might_match(files: PaimonFiles, predicate: Predicate) -> npt.NDArray[np.bool_]:
    """Return for each file of a primary-key table whether it might contain a key that matches.

    Other files can be left out of a merge: they contain no row of a matching key.
    """
    kept = partitions_might_match(files, predicate)
    kept[kept] = [reason is None for reason in _of_keys(files.where(kept), predicate)]
    return kept


def rows_might_match(files: PaimonFiles, predicate: Predicate) -> npt.NDArray[np.bool_]:
    """Return for each file whether one of its rows, before any merge, might match."""
    kept = keys_might_match(files, predicate) if files.schema.primary_keys else partitions_might_match(files, predicate)
    if _holds_whole_rows(files):
        kept[kept] = [reason is None for reason in _of_values(files.where(kept), predicate)]
    return kept


def _all_kept(count: int) -> Reasons:
    return np.full(count, None, np.object_)


def _as_mask(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)


def _holds_whole_rows(files: PaimonFiles) -> bool:
    """Return whether each file contains all columns of its rows. Otherwise its statistics do not describe the rows."""
    if parse_flag(files.options, "data-evolution.enabled") or parse_flag(
        files.schema.options, "data-evolution.enabled"
    ):
        return False
    written = files.entries.column("write_columns")
    if written.null_count == len(written):
        return True
    pairs = {
        (number, tuple(names))
        for number, names in zip(files.entries.column("schema_id").to_pylist(), written.to_pylist(), strict=True)
        if names is not None
    }
    return all({field.name for field in files.file_schemas[number].fields} <= set(names) for number, names in pairs)


def _of_keys(files: PaimonFiles, predicate: Predicate) -> list[str | None]:
    """Return the reasons to skip files by the part of the condition on the primary key and partition columns."""
    keys = {*files.schema.primary_keys, *files.schema.partition_keys}
    part = predicate.on(frozenset(keys))
    if part is None or not len(files.entries):
        return [None] * len(files.entries)
    try:
        known = statistics.key_bounds(files.entries, files.schema, files.file_schemas)
    except CorruptTableError as error:
        return _log_unused_statistics(files, error)
    first, *others = [files.schema.field(name) for name in files.schema.trimmed_primary_keys]
    # The writer computes the minimum and maximum whole keys, which bound the first column, not the file's format.
    judged = _without_orc_bounds(known, others if first.type.root in _ORC_TIMES else [first, *others], files)
    ruling_columns = part.ruled_out(_with_partition(judged, files))
    return [None if columns is None else "key range" for columns in ruling_columns.to_pylist()]


def _of_values(files: PaimonFiles, predicate: Predicate) -> list[str | None]:
    fields = [field for field in files.schema.fields if field.name in predicate.columns]
    if not len(files.entries):
        return []
    try:
        known = statistics.bounds(files.entries, fields, files.file_schemas)
    except CorruptTableError as error:
        return _log_unused_statistics(files, error)
    return by_statistics(predicate, _with_partition(_without_orc_bounds(known, fields, files), files))


def _log_unused_statistics(files: PaimonFiles, error: CorruptTableError) -> list[str | None]:
    # The rows do not depend on statistics: a table readable without a condition is readable with one.
    files.storage.warn_once(log, "no file is skipped by its statistics: %s", error)
    return [None] * len(files.entries)


def _without_orc_bounds(known: Bounds, fields: Sequence[PaimonField], files: PaimonFiles) -> Bounds:
    """Return bounds without the bounds of timestamps and CHAR columns in ORC files.

    Bounds of TIMESTAMP_LTZ are in the writer's local time, and some writers store upper bounds of TIMESTAMP that are
    less than the maximum. Bounds of CHAR have trailing blanks, which the values do not.
    """
    is_orc = _as_mask(pc.match_substring(files.entries.column("file_name"), ".orc"))
    lower, upper = known.lower, known.upper
    for field in fields:
        if field.type.root in (*_ORC_TIMES, "CHAR") and is_orc.any():
            lower, upper = (_mask(ends, field.name, is_orc) for ends in (lower, upper))
    return replace(known, lower=lower, upper=upper)


def _mask(ends: pa.Table, name: str, hidden: npt.NDArray[np.bool_]) -> pa.Table:
    index = ends.column_names.index(name)
    field = ends.schema.field(index)
    return ends.set_column(index, field, pc.if_else(pa.array(hidden), pa.scalar(None, field.type), ends.column(index)))


def _with_partition(known: Bounds, files: PaimonFiles) -> Bounds:
    lower, upper, nulls = known.lower, known.upper, known.null_count
    for name in files.schema.partition_keys:
        values = files.partitions.values.column(name).take(files.partitions.of_rows)
        count = pc.if_else(pc.is_null(values), known.rows, pa.scalar(0, pa.int64()))
        lower, upper, nulls = (
            _with_column(table, name, new) for table, new in ((lower, values), (upper, values), (nulls, count))
        )
    return replace(known, lower=lower, upper=upper, null_count=nulls)


def _with_column(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, values)
    return table.append_column(name, values) if table.num_columns else pa.table({name: values})


def without_partitions(skipped: pa.Table, *, files: int | None, rows: int | None) -> pa.Table:
    """Return SKIPPED with one row for all files skipped by partition, for a scan that skipped manifests.

    Args:
        skipped: SKIPPED of the manifests that were read.
        files: The number of files skipped by partition, those in unread manifests included; None if unknown.
        rows: The number of their rows; None if unknown.
    """
    others = skipped.filter(pc.not_equal(skipped.column("skipped"), "partition"))
    row = {"partition": None, "bucket": None, "files": files, "rows": rows, "size_bytes": None, "skipped": "partition"}
    return pa.concat_tables([others, pa.Table.from_pylist([row], frames.SKIPPED)])


def skipped_files(files: PaimonFiles, reasons: Reasons) -> pa.Table:
    """Return the SKIPPED frame: the skipped files by partition, bucket and reason."""
    return skipped_frame(
        files.entries,
        reasons,
        partitions=files.partitions.texts,
        of_files=files.partitions.of_rows,
        buckets=files.entries.column("bucket"),
    )
