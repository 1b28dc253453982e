"""Find values of a condition outside of data files: in files of row changes, and in statistics of metadata."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from snapshot_explorer.analysis.diff.aligned_columns import align_columns
from snapshot_explorer.analysis.row_history import HistoryScan, SplitHistory
from snapshot_explorer.analysis.row_history.planning import SplitState
from snapshot_explorer.analysis.rows.matching_rows import FAILURES, count_matches
from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.core.errors import InvalidArgumentError
from snapshot_explorer.core.progress import step
from snapshot_explorer.core.records import Bounds, runs_of, runs_text
from snapshot_explorer.engines.conditions import Condition, parse_condition
from snapshot_explorer.formats import TableFormat, TableVersion
from snapshot_explorer.formats.interface import Changelogs
from snapshot_explorer.formats.statistics import StatisticsFile

_AT_ONCE = 32
"""Metadata files whose statistics are in memory at the same time."""
_ERRORS = (*FAILURES, InvalidArgumentError, pa.ArrowException)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedChangelog:
    """The matching rows in a file of row changes, as far as known."""

    version: int
    path: str
    rows: int | None
    """Matching rows, before or after a change; None if unknown."""
    reason: str | None = None
    """Why the number is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedChangelogs:
    """The matching rows in all files of row changes, as far as known."""

    files: list[TracedChangelog] = field(default_factory=list)
    """By version."""
    unread: list[str] = field(default_factory=list)
    """Unreadable metadata that names other files of row changes, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedMetadata:
    """The matching statistics in a metadata file, as far as known."""

    file: StatisticsFile
    columns: tuple[str, ...] | None
    """The columns whose recorded minimum or maximum matches; None if unknown."""
    reason: str | None = None
    """Why they are unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedStatistics:
    """The matching statistics in all metadata files, as far as known."""

    files: list[TracedMetadata] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Unreadable metadata that names other metadata files, and columns that were not compared; a sentence each."""


def traced_changelogs(
    table_format: TableFormat, versions: Sequence[int], reference: TableVersion, where: Condition
) -> TracedChangelogs:
    """Return the matching rows in the files of row changes that commits wrote. Reads each of these files once.

    Args:
        versions: Ascending.
        reference: The version whose columns the condition names.
    """
    result = TracedChangelogs()
    changelogs = table_format.changelogs
    if changelogs is None:
        return result
    unread: defaultdict[str, list[int]] = defaultdict(list)
    paths = _changelog_paths(table_format, versions, unread)
    with step("Reading changelogs", total=len(paths)) as reading:
        for number, named in paths.items():
            counts = _changelog_rows(changelogs, number, reference, where)
            for path in named:
                count = counts if isinstance(counts, Exception) else counts.get(path)
                rows = count if isinstance(count, int) else None
                reason = None if rows is not None else str(count or "the reader of changes leaves it out")
                result.files.append(TracedChangelog(version=number, path=path, rows=rows, reason=reason))
            reading.advance()
    result.unread.extend(
        f"The changelogs of {runs_text(runs_of(numbers))} are unknown: {reason.rstrip('.')}."
        for reason, numbers in unread.items()
    )
    return result


def _changelog_paths(
    table_format: TableFormat, versions: Sequence[int], unread: defaultdict[str, list[int]]
) -> dict[int, list[str]]:
    """Return the files of row changes by version, without versions that have none. Adds the errors to `unread`."""
    try:
        changes = table_format.changes(versions)
    except _ERRORS as error:
        if len(versions) == 1:
            unread[error.message].append(versions[0])
            return {}
        middle = len(versions) // 2
        return _changelog_paths(table_format, versions[:middle], unread) | _changelog_paths(
            table_format, versions[middle:], unread
        )
    changes = changes.filter(pc.equal(changes["list"], "changelog"))
    paths: defaultdict[int, list[str]] = defaultdict(list)
    for number, path in zip(changes["version"].to_pylist(), changes["path"].to_pylist(), strict=True):
        paths[number].append(path)
    return dict(sorted(paths.items()))


def _changelog_rows(
    changelogs: Changelogs, number: int, reference: TableVersion, where: Condition
) -> dict[str, int | str] | Exception:
    """Return the matching rows of each file, or the error by which none can be read."""
    try:
        changes = changelogs.of_version(number)
        if changes is None:
            return {}
        splits = changes.splits(None)
        columns = align_columns(changes.reader, reference, sorted(where.columns))
        own = parse_condition(where.text, columns.schema)
        state = SplitState(first=0, last=1)
        read = [
            SplitHistory(version=changes.reader, columns=columns, split=split, states=(state,), predicate=None)
            for split in splits
        ]
        scan = HistoryScan(splits=read, schema=pa.schema([]), where=own, count=1, are_joined=False)
        counts = count_matches(scan)
    except _ERRORS as error:
        return error
    known: dict[int, int | str] = {**counts.stored, **counts.reasons}
    return {split.files[0]: known[number] for number, split in enumerate(splits)}


def traced_metadata(
    table_format: TableFormat, versions: Sequence[int], reference: TableVersion, where: Condition
) -> TracedStatistics:
    """Return the metadata files with statistics, and in which the recorded minimum or maximum of a column matches.

    A range that merely includes a value does not match. Reads each of these files once.

    Args:
        versions: Ascending.
        reference: The version whose columns the condition names.
    """
    result = TracedStatistics()
    matching = _MatchingBounds(reference.arrow_schema, where)
    named = table_format.maintenance.statistics_files(versions, reference.number or 0, where.columns)
    result.unread.extend(named.unread)
    if named.files and matching.left_out:
        names = ", ".join(matching.left_out)
        result.unread.append(f"Statistics of {names} were not examined: the condition is not one on each column alone.")
    with step("Reading statistics", total=len(named.files)) as reading:
        for begin in range(0, len(named.files), _AT_ONCE):
            files = named.files[begin : begin + _AT_ONCE]
            result.files.extend(_traced(files, named.read, matching))
            reading.advance(len(files))
    return result


def _traced(
    files: Sequence[StatisticsFile],
    read: Callable[[Sequence[StatisticsFile]], Sequence[Sequence[Bounds]]],
    matching: "_MatchingBounds",
) -> list[TracedMetadata]:
    try:
        columns = matching.columns_of(read(files))
    except _ERRORS as error:
        if len(files) > 1:  # one by one, to find those that cannot be read, or whose columns cannot be compared
            return [traced for file in files for traced in _traced([file], read, matching)]
        return [TracedMetadata(file=files[0], columns=None, reason=str(error))]
    return [TracedMetadata(file=file, columns=names) for file, names in zip(files, columns, strict=True)]


class _MatchingBounds:
    """Compares bounds with the parts of a condition that read one column each."""

    def __init__(self, schema: pa.Schema, where: Condition) -> None:
        parts = {name: where.on(frozenset((name,))) for name in schema.names if name in where.columns}
        self._schema = schema
        self._parts = {name: part for name, part in parts.items() if part is not None}
        self.left_out = tuple(name for name in parts if name not in self._parts)

    def columns_of(self, files: Sequence[Sequence[Bounds]]) -> list[tuple[str, ...]]:
        """Return for each file the columns whose minimum or maximum matches.

        Each part of the condition is evaluated once over the bounds of all files: an evaluation costs milliseconds.
        """
        matches = {name: self._matches(name, part, files) for name, part in self._parts.items()}
        return [tuple(name for name in matches if index in matches[name]) for index in range(len(files))]

    def _matches(self, name: str, part: Condition, files: Sequence[Sequence[Bounds]]) -> frozenset[int]:
        """Return the positions of the files with a matching minimum or maximum of a column."""
        target = self._schema.field(name).type
        recorded = [
            (index, single_chunk(table.column(name)).drop_null().cast(target))
            for index, known in enumerate(files)
            for bounds in known
            for table in (bounds.lower, bounds.upper)
            if name in table.column_names
        ]
        if not any(len(values) for _, values in recorded):
            return frozenset()
        owners = np.repeat([index for index, _ in recorded], [len(values) for _, values in recorded])
        mask = part.mask(pa.table({name: pa.chunked_array([values for _, values in recorded], target)}))
        return frozenset(owners[mask.to_numpy(zero_copy_only=False)].tolist())
