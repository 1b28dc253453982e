"""Evaluate a condition at every version in one pass: each data file is read once, however many versions have it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.records import Predicate, Split
from snapshot_explorer.engines import local
from snapshot_explorer.engines.aggregates import PartialCondition
from snapshot_explorer.formats import TableVersion
from snapshot_explorer.formats.unread_versions import read_apart
from snapshot_explorer.history import History
from snapshot_explorer.history.lifetimes import delete_manifests

Ints = npt.NDArray[np.int64]

_HELD_BYTES = 64 * 2**20
"""Bytes of rows that are evaluated at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinglePass:
    """The splits that one pass reads; see `single_pass`."""

    reads: tuple[tuple[TableVersion, tuple[Split, ...]], ...]
    """The versions that are planned, each with its splits to read, one per file."""
    first: Ints
    """For each file, in this order, the position of the first version that has it."""
    last: Ints
    """For each file, the position of the first version after that without it."""
    count: int
    """The number of versions."""

    @property
    def files(self) -> int:
        """Return the number of files."""
        return len(self.first)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the files."""
        return sum(split.size_bytes for _, splits in self.reads for split in splits)

    def holds(self, condition: PartialCondition, columns: Sequence[str]) -> list[bool]:
        """Return whether a condition holds at each version. Reads each file once."""
        parts = _Parts(condition, columns)
        begin = 0
        for version, splits in self.reads:
            parts.read(version, splits, begin)
            begin += len(splits)
        return condition.over(parts.table(), self.first, self.last, self.count)


class _Parts:
    """The aggregates of files, from batches of their rows."""

    def __init__(self, condition: PartialCondition, columns: Sequence[str]) -> None:
        self._condition = condition
        self._columns = list(columns)
        self._part = "part"
        while self._part in {name.lower() for name in columns}:
            self._part += "_"
        self._lock = Lock()
        self._rows: list[pa.Table] = []
        self._aggregates: list[pa.Table] = []
        self._held = 0

    def read(self, version: TableVersion, splits: Sequence[Split], begin: int) -> None:
        def consume(order: tuple[int, int], batch: pa.RecordBatch) -> None:
            number = pa.array(np.full(batch.num_rows, begin + order[0], np.int64))
            with self._lock:
                self._rows.append(pa.Table.from_batches([batch]).append_column(self._part, number))
                self._held += batch.nbytes + number.nbytes
                if self._held > _HELD_BYTES:
                    self._evaluate()

        local.for_each_batch(version, splits, self._columns, consume)
        self._evaluate()  # the nullability may differ in the next version

    def _evaluate(self) -> None:
        if self._rows:
            self._aggregates.append(self._condition.of_parts(pa.concat_tables(self._rows), self._part))
        self._rows, self._held = [], 0

    def table(self) -> pa.Table:
        if self._aggregates:
            return pa.concat_tables(self._aggregates)
        schema = pa.schema([pa.field(name, pa.int64()) for name in [*self._columns, self._part]])
        return self._condition.of_parts(schema.empty_table(), self._part)


def single_pass(
    source: History, versions: Sequence[int], columns: Sequence[str], where: Predicate | None, *, max_plans: int
) -> SinglePass | str:
    """Return the splits of one pass over the rows of versions, or why it may not be exact. Opens no data file.

    Reads the log once, and plans the fewest versions that have every file. A pass is exact if files can be read
    independently: no merge, no deletion vector, no delete file, and the same columns at all versions.

    Args:
        where: Rules out files without a matching row.
    """
    if why := _why_not_exact(source, versions, columns):
        return why
    lifetimes = source.lifetimes()
    known = np.asarray(lifetimes.versions, np.int64)
    if not np.isin(np.asarray(versions, np.int64), known).all():
        return "the files of some versions are not known"
    begin, end = int(np.searchsorted(known, versions[0])), int(np.searchsorted(known, versions[-1])) + 1
    if end - begin != len(versions):
        return "some versions between cannot be read"
    rows = lifetimes.intervals.rows
    first, last = (rows.column(name).to_numpy().astype(np.int64) for name in ("first", "last"))
    chosen = np.flatnonzero((first < end) & (last > begin))
    first, last = np.maximum(first[chosen], begin) - begin, np.minimum(last[chosen], end) - begin
    if single_chunk(rows.column("deletion_vector")).take(pa.array(chosen)).null_count != len(chosen):
        return "deletion vectors remove rows"
    paths = lifetimes.intervals.paths(rows.take(pa.array(chosen))).to_pylist()
    indices = _covering(first, last)
    if len(indices) > max_plans:
        return f"{len(indices):,} versions would be planned, so that each file is in one of them"
    return _plan_splits(source, versions, indices, _Files(paths, first, last), where)


@dataclass(frozen=True, slots=True)
class _Files:
    """Files that are live over ranges of positions."""

    paths: Sequence[str]
    first: Ints
    last: Ints


def _why_not_exact(source: History, versions: Sequence[int], columns: Sequence[str]) -> str | None:
    readable = read_apart(source.schemas, versions, source.format.storage)
    if readable.unread:
        return "some versions cannot be read"
    schemas = [schema for _, part in readable.parts for schema in part]
    if any(schema.is_merged for schema in schemas):
        return "rows are merged by their primary key"
    of_each = [
        {(column.id, column.name, column.type) for column in schema.columns if column.name in columns}
        for schema in schemas
    ]
    if any(item != of_each[-1] or len(item) != len(columns) for item in of_each):
        return "a column of the condition was added, renamed or had another type"
    deletes = read_apart(partial(delete_manifests, source.format), versions, source.format.storage)
    if deletes.unread:
        return "some versions cannot be read"
    if any(manifest for _, part in deletes.parts for manifest in part):
        return "delete files remove rows"
    modifiers = source.format.row_modifiers()
    if "another branch" in modifiers:
        return "rows are those of two branches"
    return "rows are not those of single files" if modifiers else None


def _covering(first: Ints, last: Ints) -> list[int]:
    """Return the fewest positions at which every file is live: greedily the last one of the file that ends first."""
    result: list[int] = []
    seen = -1
    for index in np.argsort(last, kind="stable").tolist():
        if first[index] > seen:
            seen = int(last[index]) - 1
            result.append(seen)
    return result


def _plan_splits(
    source: History, versions: Sequence[int], indices: Sequence[int], files: _Files, where: Predicate | None
) -> SinglePass | str:
    """Return the splits of files at some positions, or why the plans do not match the files."""
    reads = []
    order: list[int] = []
    is_open = np.ones(len(files.paths), np.bool_)
    for index in indices:
        version = source.format.version(versions[index])
        plan = version.plan(where)
        parts = [part for split in plan.splits for part in version.split_by_file(split)]
        live = np.flatnonzero((files.first <= index) & (index < files.last)).tolist()
        numbers = {files.paths[item]: item for item in live}
        skipped = sum(plan.skipped()["files"].to_pylist())
        named = {path for part in parts for path in part.files}
        if not (named <= numbers.keys() and len(named) == len(parts) and len(parts) + skipped == len(numbers)):
            return "its files are not read one by one"
        if not all(part.raw for part in parts):
            return "deletes remove rows of files"
        fresh = [part for part in parts if is_open[numbers[part.files[0]]]]
        order += [numbers[part.files[0]] for part in fresh]
        is_open[live] = False
        reads.append((version, tuple(fresh)))
    return SinglePass(reads=tuple(reads), first=files.first[order], last=files.last[order], count=len(versions))
