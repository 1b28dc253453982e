"""`Scan`: which columns and rows to read, checked against a schema once, for every engine."""

import operator
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import pyarrow as pa

from snapshot_explorer.core import frames
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.records import ReadPlan, Split
from snapshot_explorer.engines.conditions import Condition, parse_condition, unknown_column
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.storage import Storage

_MAX_LIMIT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Which columns and rows to read. Picklable; `scan_of` makes it."""

    columns: pa.Schema
    """The columns to return, in order."""
    needed: pa.Schema
    """The columns to read: the columns to return, in table order, then others that the condition needs."""
    condition: Condition | None = None
    """Which rows to keep; None for all."""
    limit: int | None = None
    """The maximum number of rows to return; None for all."""


def scan_of(
    schema: pa.Schema, columns: Sequence[str] | None = None, where: str | None = None, limit: int | None = None
) -> Scan:
    """Return a scan of rows with this schema. Reads nothing.

    Args:
        schema: The Arrow schema of the rows, including metadata columns.
    """
    predicate = None if where is None else parse_condition(where, schema)
    chosen = _chosen(schema, columns)
    check_limit(limit, "rows")
    kept = frozenset(chosen.names)
    names = [name for name in schema.names if name in kept]
    names += sorted(predicate.columns - set(names)) if predicate else []
    return Scan(
        columns=chosen, needed=pa.schema([schema.field(name) for name in names]), condition=predicate, limit=limit
    )


def check_limit(limit: object, noun: str) -> None:
    """Raise InvalidArgumentError unless a limit on the number of `noun` is None or a whole number, 0 or more."""
    is_valid = isinstance(limit, SupportsIndex) and not isinstance(limit, bool) and operator.index(limit) >= 0
    if limit is not None and not is_valid:
        raise InvalidArgumentError(f"limit must be 0 or more, got {limit!r}. Leave it out for all {noun}.")
    if isinstance(limit, SupportsIndex) and operator.index(limit) > _MAX_LIMIT:
        raise InvalidArgumentError(f"limit must be below 2**63, got {limit!r}. Leave it out for all {noun}.")


def _chosen(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema.remove_metadata()
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise InvalidArgumentError(f"columns must be a list of names, got {columns!r}. Write [{str(columns)!r}].")
    known, seen = set(schema.names), set[str]()
    names: Iterable[object] = columns
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise unknown_column(str(name), schema.names)
        if name in seen:
            raise InvalidArgumentError(f"columns contains {name!r} twice. Write each column once.")
        seen.add(name)
    return pa.schema([schema.field(name) for name in columns])


def plan_rows(plan: ReadPlan) -> pa.Table:
    """Return PLAN: one row per split that is read, then rows for skipped files."""
    splits = plan.splits
    columns = {
        "partition": [tuple(split.partition.items()) for split in splits],
        "bucket": [split.bucket for split in splits],
        "raw": [split.raw for split in splits],
        "files": [len(split.files) for split in splits],
        "rows": [split.rows for split in splits],
        "size_bytes": [split.size_bytes for split in splits],
        "skipped": pa.nulls(len(splits), pa.string()),
    }
    rows = pa.table([pa.array(columns[field.name], field.type) for field in frames.PLAN], schema=frames.PLAN)
    skipped = plan.skipped()
    if not skipped.num_rows:
        return rows
    skipped = skipped.add_column(2, frames.PLAN.field("raw"), pa.nulls(skipped.num_rows, pa.bool_()))
    return pa.concat_tables([rows, skipped.cast(frames.PLAN)])


def missing_files(storage: Storage, splits: Sequence[Split]) -> Sequence[str]:
    """Return the files of splits that do not exist. Checks none if many files are on remote storage."""
    deletes = dict.fromkeys(path for split in splits for path in split.delete_files)
    return [*storage.missing([path for split in splits for path in split.files]), *storage.missing(list(deletes))]


def check_files(version: TableVersion, splits: Sequence[Split]) -> None:
    """Raise the format's error for the first missing file, where a check is fast; see `missing_files`."""
    missing = set(missing_files(version.storage, splits))
    for split in splits if missing else ():
        for piece in version.split_by_file(split) if missing.intersection(split.files + split.delete_files) else ():
            if missing.intersection(piece.files + piece.delete_files):
                deque(version.read(piece, []), maxlen=0)
