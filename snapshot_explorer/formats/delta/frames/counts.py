"""Counts of files, rows and bytes that commits added and removed, and of live rows after each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import pyarrow as pa

from snapshot_explorer.arrow import compute as pc
from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.delta.metadata.records import Actions
from snapshot_explorer.formats.delta.metadata.replay import keys
from snapshot_explorer.formats.delta.scan.statistics import rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of a file in the log; None if unknown."""

    rows: int | None
    """Live rows in the file: without the rows that its deletion vector removes."""
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The counts of a commit; None if unknown."""

    added_files: int = 0
    removed_files: int = 0
    added_rows: int | None = 0
    """Live rows in the added files. For a file that one commit removes and adds with another deletion vector, only the
    restored rows."""
    removed_rows: int | None = 0
    """Live rows in the removed files. For a file that one commit removes and adds, only the deleted rows."""
    added_bytes: int | None = 0
    removed_bytes: int | None = 0
    total_rows: int | None = None
    """Live rows in all live files after the commit."""
    replaces_vectors: bool = False
    """Whether a deletion vector replaces another one: if it deletes other rows, their numbers are not the difference of
    both."""
    repeats_files: bool = False
    """Whether a file is added again that is known to be live: it adds no row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaLiveFiles:
    """The live files after a version."""

    version: int
    """The version; -1 before the first."""
    adds: pa.Table


@dataclass(slots=True)
class _Commit:
    added: list[tuple[str, Size]] = field(default_factory=list)
    removed: list[tuple[str, Size]] = field(default_factory=list)


def counts_of(versions: Sequence[int], actions: Actions, known: DeltaLiveFiles | None) -> dict[int, Counts]:
    """Return the counts of each version.

    If a remove lacks the counts of its file, they are looked up among the live files.

    Args:
        versions: Consecutive versions, ascending.
        known: The live files before the first version, or after one of the versions. From there on totals are known.
            Without them, missing counts of removes are looked up only among the adds of `actions`.
    """
    commits = _by_version(actions)
    touched = pa.concat_arrays([keys(actions.removes), keys(actions.adds)])
    live: dict[str, Size] = {}
    rows = _Sum(())
    if known is not None and known.version < versions[0]:
        live, rows = _live(known.adds, touched)
    result: dict[int, Counts] = {}
    for version in versions:
        commit = commits.get(version, _Commit())
        removed = []
        for file, recorded in commit.removed:
            was = live.pop(file, None)
            removed.append(_merge_sizes(recorded, was))
            if was is not None:
                rows.take(was.rows)
        repeats_files = False
        for file, size in commit.added:
            if (was := live.get(file)) is not None:
                repeats_files = True
                rows.take(was.rows)
            live[file] = size
            rows.add(size.rows)
        if known is not None and known.version == version:
            live, rows = _live(known.adds, touched)
        added = [size for _, size in commit.added]
        added_rows, removed_rows = _rows(commit, removed)
        result[version] = Counts(
            added_files=len(added),
            removed_files=len(removed),
            added_rows=added_rows,
            removed_rows=removed_rows,
            added_bytes=_Sum(item.size_bytes for item in added).value,
            removed_bytes=_Sum(item.size_bytes for item in removed).value,
            total_rows=rows.value if known is not None and known.version <= version else None,
            replaces_vectors=_replaces_vectors(commit),
            repeats_files=repeats_files,
        )
    return result


def _live(adds: pa.Table, touched: pa.Array) -> tuple[dict[str, Size], "_Sum"]:
    """Return the sizes of the live files that commits touch, and the total rows."""
    touched_adds = adds.filter(pc.is_in(keys(adds), value_set=touched))
    rows = _present_rows(adds)
    return dict(_with_sizes(touched_adds)), _Sum((pc.sum(rows).as_py() or 0, *repeat(None, rows.null_count)))


def _rows(commit: _Commit, removed: Sequence[Size]) -> tuple[int | None, int | None]:
    """Return the rows that a commit added and removed; for a replaced deletion vector, the difference."""
    before = {_path(file): size for (file, _), size in zip(commit.removed, removed, strict=True)}
    after = {_path(file): size for file, size in commit.added}
    kept = before.keys() & after.keys()
    if len(before) < len(removed) or len(after) < len(commit.added):  # with a path twice, the pairs are ambiguous
        kept = kept - kept
    added_rows, removed_rows = _Sum(()), _Sum(())
    for path in kept:
        rows, was = after[path].rows, before[path].rows
        grown = None if rows is None or was is None else rows - was
        added_rows.add(None if grown is None else max(grown, 0))
        removed_rows.add(None if grown is None else max(-grown, 0))
    for path, size in after.items() if kept else ():
        if path not in kept:
            added_rows.add(size.rows)
    for path, size in before.items() if kept else ():
        if path not in kept:
            removed_rows.add(size.rows)
    if kept:
        return added_rows.value, removed_rows.value
    return _Sum(size.rows for _, size in commit.added).value, _Sum(size.rows for size in removed).value


def _replaces_vectors(commit: _Commit) -> bool:
    """Return whether a file has a deletion vector before and another one after the commit."""
    before, after = ({_path(file): file for file, _ in side if "\n" in file} for side in (commit.removed, commit.added))
    return any(after.get(path, file) != file for path, file in before.items())


def _path(key: str) -> str:
    return key.partition("\n")[0]


class _Sum:
    """A sum that is unknown while one of its terms is unknown."""

    def __init__(self, numbers: Iterable[int | None]) -> None:
        self._sum = self._unknown = 0
        for number in numbers:
            self.add(number)

    def add(self, number: int | None) -> None:
        self._sum += number or 0
        self._unknown += number is None

    def take(self, number: int | None) -> None:
        self._sum -= number or 0
        self._unknown -= number is None

    @property
    def value(self) -> int | None:
        return None if self._unknown else self._sum


def _merge_sizes(recorded: Size, was: Size | None) -> Size:
    if was is None:
        return recorded
    return Size(
        rows=was.rows if recorded.rows is None else recorded.rows,
        size_bytes=was.size_bytes if recorded.size_bytes is None else recorded.size_bytes,
    )


def _present_rows(files: pa.Table) -> pa.Array:
    """Return the number of live rows of each file; null where unknown."""
    vectors = single_chunk(files["deletion_vector"])
    if vectors.null_count == len(vectors):
        return rows_of(files)
    deleted = pc.if_else(pc.is_valid(vectors), pc.struct_field(vectors, ["cardinality"]), 0)
    rows = pc.subtract(rows_of(files), deleted)
    return pc.if_else(pc.less(rows, 0), pa.scalar(None, pa.int64()), rows)  # a contradiction is not a count


def _with_sizes(files: pa.Table) -> list[tuple[str, Size]]:
    rows = _present_rows(files)
    sizes = zip(rows.to_pylist(), files["size_bytes"].to_pylist(), strict=True)
    pairs = (Size(rows=rows, size_bytes=size_bytes) for rows, size_bytes in sizes)
    return list(zip(keys(files).to_pylist(), pairs, strict=True))


def _by_version(actions: Actions) -> Mapping[int, _Commit]:
    commits: dict[int, _Commit] = {}
    for version, sized in zip(actions.removes["version"].to_pylist(), _with_sizes(actions.removes), strict=True):
        commits.setdefault(version, _Commit()).removed.append(sized)
    for version, sized in zip(actions.adds["version"].to_pylist(), _with_sizes(actions.adds), strict=True):
        commits.setdefault(version, _Commit()).added.append(sized)
    return commits
