"""Reads the rows of a split: opens files, converts their columns to the read schema and merges keys."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.corruption import CorruptBytesError
from snapshot_explorer.arrow.positions import filter_rows, kept_mask, rows_without_columns, without_deleted
from snapshot_explorer.arrow.roaring import NOTHING, Positions
from snapshot_explorer.core.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from snapshot_explorer.core.records import Predicate, Split
from snapshot_explorer.formats.paimon.files import blobs, column_groups, data_files, evolution
from snapshot_explorer.formats.paimon.files.column_groups import BLOB, ColumnGroup
from snapshot_explorer.formats.paimon.files.data_files import PaimonDataFile
from snapshot_explorer.formats.paimon.files.deletion_vectors import read_deleted_positions
from snapshot_explorer.formats.paimon.merge.key_groups import (
    FileSequences,
    MergedRows,
    columns_needed,
    merge,
    merge_all,
    merge_by_files,
    takes_newest,
)
from snapshot_explorer.formats.paimon.merge.rules import Rules
from snapshot_explorer.formats.paimon.merge.steps import RETRACTS
from snapshot_explorer.formats.paimon.metadata.data_types import PaimonDataType, PaimonField, arrow_field, arrow_type
from snapshot_explorer.formats.paimon.scan import metadata_columns
from snapshot_explorer.formats.paimon.scan.metadata_columns import SEQUENCE_NUMBER
from snapshot_explorer.formats.paimon.scan.plans import PaimonPlan
from snapshot_explorer.formats.split_requests import named_fields
from snapshot_explorer.storage import Storage

_BATCH_ROWS = 65_536
_MAX_KIND = 3
_SEQUENCE = replace(SEQUENCE_NUMBER, type=PaimonDataType(root="BIGINT", nullable=False))
_KIND = PaimonField(id=2_147_483_645, name="_VALUE_KIND", type=PaimonDataType(root="TINYINT", nullable=False))


def read(
    storage: Storage, split: Split, columns: Sequence[str], predicate: Predicate | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split with these columns, in this order, in the Arrow types of the version's schema.

    Files that need no merge are streamed. A section of overlapping files is merged in memory: all its rows, with
    the requested columns and the key columns, are in memory at once.

    Args:
        split: A split from `splits`, on this or another machine.
        columns: Names of the version's columns, and of hidden columns if the table has row tracking. Without names the
            batches have rows but no columns.
        predicate: Row groups of files that need no merge may be left out if no row in them matches it.
    """
    plan = split.detail
    if not isinstance(plan, PaimonPlan):
        raise InvalidArgumentError("The split is not from a Paimon table. Use a split of its own plan.")
    fields = _fields(plan, columns)
    blobs.check_limit(sum(plan.blob_bytes.get(field.id, 0) for field in fields if field.type.root == BLOB))
    reader = _SplitReader(storage, plan)
    if plan.merge is not None:
        yield from reader.merge_section(plan.merge, fields)
    elif plan.groups:
        for group in plan.groups:
            yield from reader.read_group(group, fields)
    else:
        yield from reader.stream(fields, predicate)


def read_only(storage: Storage, plan: PaimonPlan, columns: Sequence[str], keep: Positions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the single file of a plan at some positions, ascending, even if its deletion vector has them.

    Rows of kind -D and -U are left out. Row groups of a Parquet file without one of the rows are not read.
    """
    (file,) = plan.files
    others = np.ones(file.rows, bool)
    others[keep] = False
    deleted_positions = {file.path: np.flatnonzero(others).astype(np.int64)}
    yield from _SplitReader(storage, plan, deleted_positions).stream(_fields(plan, columns), keep)


def _fields(plan: PaimonPlan, columns: Sequence[str]) -> list[PaimonField]:
    descriptors = blobs.descriptor_fields(columns, plan.schema)
    own = {field.name for field in (*plan.schema.fields, *descriptors)}
    unknown = [name for name in columns if name not in own]
    hidden = metadata_columns.metadata_fields(unknown, tracked=plan.row_tracking)
    return named_fields(columns, plan.schema.fields, [*hidden, *descriptors])


def _schema(fields: Sequence[PaimonField]) -> pa.Schema:
    return pa.schema([arrow_field(field) for field in fields])


class _Target:
    """The columns to which files are converted. Caches the mapping of files with the same schema and columns."""

    def __init__(self, plan: PaimonPlan, fields: Sequence[PaimonField], system: Sequence[PaimonField] = ()) -> None:
        values = plan.partition
        self.plan = plan
        self.fields = fields
        self.system = [field.name for field in system]
        self.schema = _schema(fields)
        self.constants = {} if values is None else {name: values.column(name)[0] for name in values.column_names}
        self.hidden = frozenset(field.name for field in fields if field in metadata_columns.HIDDEN)
        self.stored = [field for field in fields if field.name not in self.constants and field.name not in self.hidden]
        self._system = system
        self._known_sources: dict[tuple[int, tuple[str, ...] | None], _Sources] = {}

    def sources(self, file: PaimonDataFile) -> "_Sources":
        key = file.schema_id, file.write_columns
        result = self._known_sources.get(key)
        if result is None:
            mapping = evolution.mapping(self.stored, self.plan.file_schemas[file.schema_id].fields, file.write_columns)
            physical = [*mapping.sources, *self._system, *metadata_columns.stored_columns(self.fields, file)]
            is_exact = evolution.is_exact(mapping)
            are_requested = is_exact and not self._system and len(self.stored) == len(self.fields)
            result = self._known_sources[key] = _Sources(
                mapping=mapping,
                unchanged=evolution.unchanged_names(mapping),
                columns=data_files.PaimonColumns(physical, self.schema if are_requested else None, target=self.schema),
                is_exact=is_exact,
                are_requested=are_requested,
            )
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """The sources of the requested columns in files with the same schema and columns."""

    mapping: evolution.ColumnMapping
    """The mapping of the columns that are read from files."""
    unchanged: Mapping[str, str]
    """The file's names of the columns whose values are returned as stored in the file."""
    columns: data_files.PaimonColumns
    is_exact: bool
    """Whether the columns to read begin with the columns that the mapping returns."""
    are_requested: bool
    """Whether the columns to read are the requested ones, in order, with the same values."""


def _is_of_blob(field: PaimonField, plan: PaimonPlan) -> bool:
    """Return whether a column contains blobs or their descriptors, which have the id of the blob column."""
    return any(column.id == field.id and column.type.root == BLOB for column in plan.schema.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    table: pa.Table
    system: pa.Table
    files: FileSequences
    file_levels: npt.NDArray[np.int32]

    @property
    def sequence(self) -> npt.NDArray[np.int64]:
        result: npt.NDArray[np.int64] = self.system.column(_SEQUENCE.name).to_numpy()
        return result

    @property
    def kinds(self) -> npt.NDArray[np.int8]:
        result: npt.NDArray[np.int8] = self.system.column(_KIND.name).to_numpy()
        return result

    @property
    def levels(self) -> npt.NDArray[np.int32]:
        return np.repeat(self.file_levels, self.files.rows)


class _SplitReader:
    """Reads the files of a plan without the rows that deletion vectors remove."""

    def __init__(
        self, storage: Storage, plan: PaimonPlan, deleted_positions: Mapping[str, Positions] | None = None
    ) -> None:
        """Read the deletion vectors of the files, unless the deleted positions are known."""
        self.storage = storage
        self.plan = plan
        if deleted_positions is None:
            vectors = ((file.path, file.vector, file.rows) for file in self.plan.files if file.vector)
            deleted_positions = read_deleted_positions(storage, vectors)
        self.deleted_positions = deleted_positions

    def stream(self, fields: Sequence[PaimonField], only: Positions | Predicate | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files that need no merge, without retract rows, which the writer may not have counted."""
        keyed = bool(self.plan.schema.primary_keys)
        target = _Target(self.plan, fields)
        with_kinds = _Target(self.plan, fields, (_KIND,)) if keyed else target
        for file in self.plan.files:
            if not keyed or file.deleted_rows == 0:
                for batch, _ in self.live_rows(file, target, only):
                    yield batch
                continue
            for batch, kinds in self.live_rows(file, with_kinds, only):
                yield filter_rows(batch, pc.invert(pc.is_in(kinds.column(0), pa.array(RETRACTS, pa.int8()))))

    def live_rows(
        self, file: PaimonDataFile, target: _Target, only: Positions | Predicate | None = None
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield the rows of a file that no deletion vector removes: columns of the read schema, and system columns."""
        rows = self._evolved(file, target, only)
        if file.path in self.deleted_positions:
            return without_deleted(rows, self.deleted_positions[file.path])
        return ((batch, own) for _, batch, own in rows)

    def read_group(self, group: ColumnGroup, fields: Sequence[PaimonField]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files that contain columns of the same rows, without rows that their vector deletes."""
        streams: list[Iterator[pa.RecordBatch]] = [
            (batch for _, batch, _ in self._evolved(file, _Target(self.plan, own_fields)))
            for file, own_fields in column_groups.sources(
                group, [field for field in fields if not _is_of_blob(field, self.plan)], self.plan.file_schemas
            )
        ]
        streams += [self._blobs(group, field) for field in fields if _is_of_blob(field, self.plan)]
        firsts = self.storage.together(*(partial(next, stream, None) for stream in streams))
        streams = [
            stream if first is None else chain((first,), stream) for first, stream in zip(firsts, streams, strict=True)
        ]
        schema, gone = _schema(fields), self.deleted_positions.get(group.anchor.path, NOTHING)
        start = 0
        for parts in column_groups.side_by_side(streams):
            columns = {name: part.column(name) for part in parts for name in part.schema.names}
            batch = _batch([columns[field.name] for field in fields], schema, parts[0].num_rows)
            yield filter_rows(batch, kept_mask(gone, start, batch.num_rows)) if len(gone) else batch
            start += batch.num_rows

    def _blobs(self, group: ColumnGroup, field: PaimonField) -> Iterator[pa.RecordBatch]:
        values = blobs.column(
            self.storage,
            [file for file in group.blobs if column_groups.holds(file, field, self.plan.file_schemas)],
            first_row_id=group.first_row_id,
            rows=group.rows,
            dtype=arrow_type(field.type),
            described=field.type.root != BLOB,
        )
        yield from blobs.batches(values, field.name, _BATCH_ROWS)

    def _evolved(
        self, file: PaimonDataFile, target: _Target, only: Positions | Predicate | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch, pa.RecordBatch]]:
        """Yield the rows of a file: the position of the first one, columns of the read schema, and system columns."""
        sources = target.sources(file)
        if target.stored and not sources.mapping.sources:
            # The requested columns were added later, if the file has the columns of its schema.
            data_files.check_schema(self.storage, file, self.plan.file_schemas[file.schema_id].fields)
        chosen = None
        if only is not None:
            chosen = data_files.RowGroupSelection(
                keep=only if isinstance(only, np.ndarray) else None,
                predicate=None if isinstance(only, np.ndarray) else only,
                names=sources.unchanged,
            )
        numbered_batches = data_files.batches(
            self.storage, file, sources.columns, legacy_zones=self.plan.legacy_zones, chosen=chosen
        )
        for start, batch in numbered_batches:
            requested = batch if sources.are_requested else _select_columns(batch, file, target, start)
            yield start, requested, batch.select(target.system)

    def merge_section(self, rules: Rules, fields: Sequence[PaimonField]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a section after merging, in the order of its files.

        Sequence numbers of rows are read only if the files' numbers do not determine the newest row of each key.
        """
        names = [field.name for field in fields] or list(rules.keys[:1])  # counts rows without columns
        by_files = takes_newest(rules) and _have_ages(self.plan.files)
        system = (_KIND,) if by_files else (_SEQUENCE, _KIND)
        rows = self.read_rows(columns_needed(rules, names), system)
        if rows is None:
            return
        merged = merge_by_files(rows.table, names, rules, kinds=rows.kinds, files=rows.files) if by_files else None
        if merged is None:
            ordered = self.read_rows((), [_SEQUENCE]) if by_files else None
            sequence = (ordered or rows).sequence
            with _naming_files(self.plan):
                merged = merge(rows.table, names, rules, sequence=sequence, kinds=rows.kinds, levels=rows.levels)
        if not fields:
            yield _batch((), pa.schema([]), merged.num_rows)
            return
        yield from merged.to_batches(max_chunksize=_BATCH_ROWS)

    def read_rows(self, columns: Sequence[str], system: Sequence[PaimonField]) -> _Rows | None:
        """Return all rows of the files except those in deletion vectors; None if there are none."""
        target = _Target(self.plan, [self.plan.schema.field(name) for name in columns], system)
        rows: list[pa.RecordBatch] = []
        own_rows: list[pa.RecordBatch] = []
        counts = np.zeros(len(self.plan.files), np.int64)

        def read_file(file: PaimonDataFile) -> list[tuple[pa.RecordBatch, pa.RecordBatch]]:
            return list(self.live_rows(file, target))

        rows_by_file = self.storage.together(*(partial(read_file, file) for file in self.plan.files))
        for number, (file, batches) in enumerate(zip(self.plan.files, rows_by_file, strict=True)):
            for batch, own in batches:
                _check_system(own, file)
                rows.append(batch)
                own_rows.append(own)
                counts[number] += batch.num_rows
        if not rows:
            return None
        return _Rows(
            table=pa.Table.from_batches(rows),
            system=pa.Table.from_batches(own_rows),
            files=FileSequences(
                rows=counts,
                lowest=np.array([file.min_sequence for file in self.plan.files], np.int64),
                highest=np.array([file.max_sequence for file in self.plan.files], np.int64),
            ),
            file_levels=np.array([file.level for file in self.plan.files], np.int32),
        )


def _select_columns(batch: pa.RecordBatch, file: PaimonDataFile, target: _Target, start: int) -> pa.RecordBatch:
    sources = target.sources(file)
    stored = iter((batch if sources.is_exact else evolution.evolve(batch, sources.mapping, file.path)).columns)
    arrays = [
        metadata_columns.values(field, batch, file, start)
        if field.name in target.hidden
        else pa.repeat(target.constants[field.name], batch.num_rows)
        if field.name in target.constants
        else next(stored)
        for field in target.fields
    ]
    return _batch(arrays, target.schema, batch.num_rows)


def _batch(arrays: Sequence[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    if len(schema):
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return rows_without_columns(rows)


def _have_ages(files: Sequence[PaimonDataFile]) -> bool:
    """Return whether each file seems to be older or newer than all others, except files of its own level above 0."""
    by_age = sorted(files, key=lambda file: file.max_sequence)
    return all(
        older.max_sequence < newer.min_sequence or older.level == newer.level > 0 for older, newer in pairwise(by_age)
    )


def last_events(
    storage: Storage, plan: PaimonPlan, rules: Rules, names: Sequence[str]
) -> tuple[MergedRows | None, npt.NDArray[np.int64]]:
    """Return the last row per key, deleted keys included, and the sequence number of each; None without rows.

    All rows are in memory at once.
    """
    rows = _SplitReader(storage, plan).read_rows(columns_needed(rules, names), (_SEQUENCE, _KIND))
    if rows is None:
        return None, np.zeros(0, np.int64)
    sequence = rows.sequence
    with _naming_files(plan):
        merged = merge_all(rows.table, names, rules, sequence=sequence, kinds=rows.kinds, levels=rows.levels)
    return merged, sequence[merged.input_rows]


@contextmanager
def _naming_files(plan: PaimonPlan) -> Iterator[None]:
    try:
        yield
    except CorruptBytesError as error:
        raise CorruptTableError(
            f"The rows of {_named(plan.files)} cannot be merged: {error}. Paimon 2.0 and newer also fails "
            "on them. Leave the column out, or repair the table with Paimon."
        ) from error
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"Merging {_named(plan.files)}: {error}") from error


def _named(files: Sequence[PaimonDataFile]) -> str:
    more = len(files) - 1
    return files[0].path + (f" and {more} more in its bucket" if more else "")


def _check_system(own: pa.RecordBatch, file: PaimonDataFile) -> None:
    """Raise for rows without a sequence number or with an unknown kind, if these columns were read."""
    is_known = not any(column.null_count for column in own.columns)
    if is_known and own.num_rows and _KIND.name in own.schema.names:
        minimum, maximum = pc.min_max(own.column(_KIND.name)).values()
        is_known = minimum.as_py() >= 0 and maximum.as_py() <= _MAX_KIND
    if not is_known:
        raise CorruptTableError(
            f"The data file {file.path} has rows without a sequence number or with an unknown kind. "
            "It may have been overwritten; compare it with a copy of the table."
        )


def read_unmerged(
    storage: Storage, plan: PaimonPlan, file: PaimonDataFile, columns: Sequence[str]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Yield the rows of a file without a merge, retract rows included, with these columns in the read schema's types.

    Each batch is paired with a batch of the columns `_SEQUENCE_NUMBER` and `_VALUE_KIND`, None for a table without a
    primary key. Rows in the file's deletion vector are left out.
    """
    fields = [plan.schema.field(name) for name in columns]
    keyed = bool(plan.schema.primary_keys)
    deleted_positions = read_deleted_positions(storage, ((file.path, file.vector, file.rows),)) if file.vector else {}
    reader = _SplitReader(storage, plan, deleted_positions)
    target = _Target(plan, fields, (_SEQUENCE, _KIND) if keyed else ())
    for batch, own in reader.live_rows(file, target):
        if keyed:
            _check_system(own, file)
        yield batch, own if keyed else None
