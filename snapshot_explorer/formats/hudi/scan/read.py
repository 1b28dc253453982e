"""Rows of a split: reads base files, merges log files into them, and brings columns to the version's schema."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

import pyarrow as pa

from snapshot_explorer.arrow.positions import rows_without_columns
from snapshot_explorer.core.records import Predicate, Split
from snapshot_explorer.formats.hudi.files.data_files import read_base
from snapshot_explorer.formats.hudi.files.log_files import read_logs
from snapshot_explorer.formats.hudi.metadata.types import HudiField, arrow_field
from snapshot_explorer.formats.hudi.scan.merge import SliceMerge
from snapshot_explorer.formats.hudi.scan.meta_columns import FIELDS, IS_DELETED, OPERATION
from snapshot_explorer.formats.hudi.scan.plans import HudiPlan, LogMerge
from snapshot_explorer.formats.split_requests import detail_of, named_fields
from snapshot_explorer.storage import Storage


def read(
    storage: Storage, split: Split, columns: Sequence[str], predicate: Predicate | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a split with these columns, in this order, in the Arrow types of the version's schema.

    Args:
        split: A split from `planning`, maybe from another machine.
        columns: Names of the version's columns, and of `_hoodie_*` columns; without names the batches contain rows
            without columns.
        predicate: Row groups in which no row matches it may be left out, except in slices with log files: statistics of
            the base file do not describe their rows.
    """
    plan = detail_of(split, HudiPlan, "Hudi")
    fields = named_fields(columns, plan.fields, FIELDS.values())
    constants = dict(plan.partition)
    stored = [field for field in fields if field.name not in constants]
    if plan.merge is not None:
        batches = _merge(storage, plan, plan.merge, stored)
    else:
        if predicate is not None:
            predicate = predicate.on(frozenset(field.name for field in stored))
        batches = (batch for file in plan.bases for batch in read_base(storage, file, stored, predicate))
    for batch in batches:
        yield complete_columns(batch, fields, plan)


def _merge(storage: Storage, plan: HudiPlan, merge: LogMerge, fields: Sequence[HudiField]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice with log files, with at least these columns."""
    by_name = {field.name: field for field in plan.fields}
    rules = merge.rules
    names = [*rules.ordering_fields, IS_DELETED, rules.delete_field]
    needed = [*merge.keys.columns, *(by_name[name] for name in names if name in by_name), FIELDS[OPERATION]]
    every = {field.name: field for field in (*fields, *needed)}
    work = SliceMerge(rules, merge.keys, tuple(every.values()), names=[*every][: max(1, len(fields))])
    base = (batch for file in plan.bases for batch in read_base(storage, file, tuple(every.values())))
    logged, first = storage.together(
        partial(read_logs, storage, merge.logs, tuple(every.values())), lambda: [*islice(base, 1)]
    )
    work.add(logged)
    yield from work.merge_into(chain(first, base))


def complete_columns(batch: pa.RecordBatch, fields: Sequence[HudiField], plan: HudiPlan) -> pa.RecordBatch:
    """Return columns of files as the version's columns, with the partition columns from the path."""
    if not fields:
        return rows_without_columns(batch.num_rows)
    constants = dict(plan.partition)
    arrays = []
    for field in fields:
        if field.name in constants:
            arrays.append(pa.repeat(constants[field.name], batch.num_rows))
            continue
        arrays.append(batch.column(batch.schema.names.index(field.name)))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([arrow_field(field) for field in fields]))
