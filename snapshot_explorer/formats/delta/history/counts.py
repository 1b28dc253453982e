"""How many files, rows and bytes commits added and removed, and how many rows were live after each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.arrow.chunks import single_chunk
from snapshot_explorer.formats.delta.log.records import Actions
from snapshot_explorer.formats.delta.log.replay import keys
from snapshot_explorer.formats.delta.scan.statistics import rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What the log says of a file's size; None where it does not."""

    rows: int | None
    """Rows in the file, without those that its deletion vector removes."""
    size_bytes: int | None
    """Bytes of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a commit added and removed; None where it is not known."""

    added_files: int = 0
    """Add actions."""
    removed_files: int = 0
    """Remove actions."""
    added_rows: int | None = 0
    """Rows in the added files, without those that deletion vectors remove; of a file that is removed and added at
    once, with another deletion vector, those that came back."""
    removed_rows: int | None = 0
    """Rows in the removed files, likewise; of such a file those that were deleted."""
    added_bytes: int | None = 0
    """Bytes of the added files."""
    removed_bytes: int | None = 0
    """Bytes of the removed files."""
    total_rows: int | None = None
    """Rows in all live files after the commit, without those that deletion vectors remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Which files are live after a version."""

    version: int
    """The version; -1 for before all."""
    adds: pa.Table
    """ADDS."""


@dataclass(slots=True)
class _Commit:
    added: list[tuple[str, Size]] = field(default_factory=list)
    removed: list[tuple[str, Size]] = field(default_factory=list)


def counts_of(versions: Sequence[int], actions: Actions, known: Known | None) -> dict[int, Counts]:
    """Return the counts of each version.

    A removed file of which the remove says nothing is looked up among the files that were live.

    Args:
        versions: Versions without gaps, ascending.
        actions: What they did.
        known: Which files were live before the first version, or after one of them. From there on there are totals;
            without it what a remove does not say is looked up only among the adds of `actions`.
    """
    commits = _by_version(actions)
    touched = pa.concat_arrays([keys(actions.removes), keys(actions.adds)])
    live: dict[str, Size] = {}
    rows = _Sum(())
    if known is not None and known.version < versions[0]:
        live, rows = _live(known.adds, touched)
    found: dict[int, Counts] = {}
    for version in versions:
        commit = commits.get(version, _Commit())
        removed = []
        for file, said in commit.removed:
            was = live.pop(file, None)
            removed.append(_known(said, was))
            if was is not None:
                rows.take(was.rows)
        for file, size in commit.added:
            if (was := live.get(file)) is not None:
                rows.take(was.rows)
            live[file] = size
            rows.add(size.rows)
        if known is not None and known.version == version:
            live, rows = _live(known.adds, touched)
        added = [size for _, size in commit.added]
        added_rows, removed_rows = _rows(commit, removed)
        found[version] = Counts(
            added_files=len(added),
            removed_files=len(removed),
            added_rows=added_rows,
            removed_rows=removed_rows,
            added_bytes=_Sum(one.size_bytes for one in added).value,
            removed_bytes=_Sum(one.size_bytes for one in removed).value,
            total_rows=rows.value if known is not None and known.version <= version else None,
        )
    return found


def _live(adds: pa.Table, touched: pa.Array) -> tuple[dict[str, Size], "_Sum"]:
    """Return the sizes of those live files that commits touch, and the rows of all."""
    some = adds.filter(pc.is_in(keys(adds), value_set=touched))
    rows = _present_rows(adds)
    return dict(_sized(some)), _Sum((pc.sum(rows).as_py() or 0, *repeat(None, rows.null_count)))


def _rows(commit: _Commit, removed: Sequence[Size]) -> tuple[int | None, int | None]:
    """Return how many rows a commit added and removed: of a file whose deletion vector it replaced, the difference."""
    before = {_path(file): size for (file, _), size in zip(commit.removed, removed, strict=True)}
    after = {_path(file): size for file, size in commit.added}
    kept = before.keys() & after.keys()
    if len(before) < len(removed) or len(after) < len(commit.added):  # a path twice: which is which is not told
        kept = kept - kept
    gained, lost = _Sum(()), _Sum(())
    for path in kept:
        rows, was = after[path].rows, before[path].rows
        grown = None if rows is None or was is None else rows - was
        gained.add(None if grown is None else max(grown, 0))
        lost.add(None if grown is None else max(-grown, 0))
    for path, size in after.items() if kept else ():
        if path not in kept:
            gained.add(size.rows)
    for path, size in before.items() if kept else ():
        if path not in kept:
            lost.add(size.rows)
    if kept:
        return gained.value, lost.value
    return _Sum(size.rows for _, size in commit.added).value, _Sum(size.rows for size in removed).value


def _path(key: str) -> str:
    """Return the path of a file by its key, to which its deletion vector belongs too."""
    return key.partition("\n")[0]


class _Sum:
    """A sum that is unknown as long as one of its numbers is."""

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


def _known(said: Size, was: Size | None) -> Size:
    if was is None:
        return said
    return Size(
        rows=was.rows if said.rows is None else said.rows,
        size_bytes=was.size_bytes if said.size_bytes is None else said.size_bytes,
    )


def _present_rows(files: pa.Table) -> pa.Array:
    """Return how many rows each file has without those that its deletion vector removes; null where it is unknown."""
    vectors = single_chunk(files["deletion_vector"])
    if vectors.null_count == len(vectors):
        return rows_of(files)
    deleted = pc.if_else(pc.is_valid(vectors), pc.struct_field(vectors, ["cardinality"]), 0)
    rows = pc.subtract(rows_of(files), deleted)
    return pc.if_else(pc.less(rows, 0), pa.scalar(None, pa.int64()), rows)  # a contradiction is not a count


def _sized(files: pa.Table) -> list[tuple[str, Size]]:
    rows = _present_rows(files)
    sizes = zip(rows.to_pylist(), files["size_bytes"].to_pylist(), strict=True)
    found = (Size(rows=rows, size_bytes=size_bytes) for rows, size_bytes in sizes)
    return list(zip(keys(files).to_pylist(), found, strict=True))


def _by_version(actions: Actions) -> Mapping[int, _Commit]:
    commits: dict[int, _Commit] = {}
    for version, one in zip(actions.removes["version"].to_pylist(), _sized(actions.removes), strict=True):
        commits.setdefault(version, _Commit()).removed.append(one)
    for version, one in zip(actions.adds["version"].to_pylist(), _sized(actions.adds), strict=True):
        commits.setdefault(version, _Commit()).added.append(one)
    return commits
