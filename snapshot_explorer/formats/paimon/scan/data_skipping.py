"""Data skipping: files in which no row can match a condition, found in metadata alone, and the reasons.

A partition or a bucket is skipped as a whole. A file of an append table is skipped by its statistics. A file of a
primary-key table is skipped by its key range, even if it overlaps others: all rows of a key have the same key. It is
skipped by other columns only if no other file that its key range does not rule out is merged with it. Otherwise an old
row would reappear if the file with its update or delete is skipped, and merged values might match although no single
file does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import CorruptTableError
from snapshot_explorer.core.records import Bounds, Predicate
from snapshot_explorer.core.safe_text import logger_of
from snapshot_explorer.formats.paimon.metadata import binary_row
from snapshot_explorer.formats.paimon.metadata.contents import Keep, Select
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonField
from snapshot_explorer.formats.paimon.metadata.manifests import PLAN_COLUMNS
from snapshot_explorer.formats.paimon.metadata.partitions import PaimonPartitions, partitions_of
from snapshot_explorer.formats.paimon.metadata.schema import PaimonSchema, Schemas
from snapshot_explorer.formats.paimon.scan import buckets, statistics
from snapshot_explorer.formats.paimon.scan.plans import PaimonFiles
from snapshot_explorer.formats.paimon.scan.visibility import is_shown
from snapshot_explorer.formats.settings import parse_flag
from snapshot_explorer.formats.skipped import Reasons, add_groups, by_statistics, frame_of, skipped_groups
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


class Pruning:
    """The selection of the files that a condition does not rule out, and the counts of the others."""

    def __init__(
        self, schema: PaimonSchema, options: Mapping[str, str], schemas: Schemas, storage: Storage, predicate: Predicate
    ) -> None:
        self._schema = schema
        self._options = options
        self._schemas = schemas
        self._storage = storage
        self._predicate = predicate
        self.begin()

    def begin(self) -> Select:
        """Return a selection that has not counted any file yet."""
        self.files = self.rows = 0
        """The files whose partition might match, and their rows."""
        self._positions: dict[bytes, int] = {}
        self._texts: list[Mapping[str, str | None]] = []
        self._skipped: list[pa.Table] = []
        return self._select

    def _select(self, entries: pa.Table) -> pa.Table:
        """Return PLAN_COLUMNS of the files in which a row might match.

        For a primary-key table also `ruled_out`: the reason to skip a file if it is read without a merge.
        """
        partitions = partitions_of(entries.column("partition"), self._schema)
        kept = by_partition(partitions, self._schema, self._predicate)
        candidates = PaimonFiles(
            entries=entries.filter(pa.array(kept)),
            partitions=partitions.where(kept),
            schema=self._schema,
            file_schemas=self._schemas.by_id(pc.unique(entries.column("schema_id").filter(pa.array(kept))).to_pylist()),
            options=self._options,
            storage=self._storage,
        )
        self.files += len(candidates.entries)
        self.rows += pc.sum(candidates.entries.column("rows")).as_py() or 0
        reasons, by_value = _all_kept(len(entries)), _all_kept(len(entries))
        reasons[~kept] = "partition"
        reasons[kept], by_value[kept] = before_planning(candidates, self._predicate)
        self.skip(entries, partitions, reasons)
        left = pa.array(_is_kept(reasons))
        chosen = entries.filter(left).select([*PLAN_COLUMNS, "is_new"])
        if not self._schema.primary_keys:
            return chosen
        return chosen.append_column("ruled_out", pa.array(by_value, pa.string()).filter(left))

    def skip(self, entries: pa.Table, partitions: PaimonPartitions, reasons: Reasons) -> None:
        """Count the files that there is a reason to skip."""
        if _is_kept(reasons).all():
            return
        for row, text in zip(partitions.rows.to_pylist(), partitions.texts, strict=True):
            if row not in self._positions:
                self._positions[row] = len(self._texts)
                self._texts.append(text)
        positions = np.array([self._positions[row] for row in partitions.rows.to_pylist()], np.int64)
        of_files = positions[partitions.of_rows.to_numpy()]
        more = skipped_groups(entries, reasons, of_files=of_files, buckets=entries.column("bucket"))
        add_groups(self._skipped, more)

    def skipped(self) -> pa.Table:
        """Return the SKIPPED frame: the skipped files by partition, bucket and reason."""
        return frame_of(self._skipped, self._texts)


def before_planning(files: PaimonFiles, predicate: Predicate) -> tuple[Reasons, Reasons]:
    """Return the reasons to skip files, and the reasons to skip those of a primary-key table that are not merged.

    Files of a primary-key table that cannot contain a matching key are left out of merges: no other file has a matching
    row of their keys.
    """
    reasons, unmerged = _all_kept(len(files.entries)), _all_kept(len(files.entries))
    reasons[buckets.ruled_out(files.entries, files.schema, files.file_schemas, predicate)] = "bucket"
    if not _holds_whole_rows(files):
        return reasons, unmerged
    if files.schema.primary_keys:
        left = _is_kept(reasons) & is_shown(files.entries, files.schema, files.options)
        reasons[left] = _of_keys(files.where(left), predicate)
    left = _is_kept(reasons)
    (unmerged if files.schema.primary_keys else reasons)[left] = _of_values(files.where(left), predicate)
    return reasons, unmerged


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


def _is_kept(reasons: Reasons) -> npt.NDArray[np.bool_]:
    return np.asarray(reasons == None, np.bool_)  # noqa: E711 - element by element


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
