"""How many files, rows and bytes commits added and removed, and how many rows were live after each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from snapshot_explorer.formats.delta.records import Actions
from snapshot_explorer.formats.delta.replay import keys
from snapshot_explorer.formats.delta.statistics import rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What the log says of a file's size; None where it does not."""

    rows: int | None
    """Rows in the file, those included that a deletion vector takes away."""
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
    """Rows in the added files, those included that deletion vectors take away."""
    removed_rows: int | None = 0
    """Rows in the removed files, likewise."""
    added_bytes: int | None = 0
    """Bytes of the added files."""
    removed_bytes: int | None = 0
    """Bytes of the removed files."""
    total_rows: int | None = None
    """Rows in all live files after the commit, likewise."""


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
        found[version] = Counts(
            added_files=len(added),
            removed_files=len(removed),
            added_rows=_Sum(one.rows for one in added).value,
            removed_rows=_Sum(one.rows for one in removed).value,
            added_bytes=_Sum(one.size_bytes for one in added).value,
            removed_bytes=_Sum(one.size_bytes for one in removed).value,
            total_rows=rows.value if known is not None and known.version <= version else None,
        )
    return found


def _live(adds: pa.Table, touched: pa.Array) -> tuple[dict[str, Size], "_Sum"]:
    """Return the sizes of those live files that commits touch, and the rows of all."""
    some = adds.filter(pc.is_in(keys(adds), value_set=touched))
    rows = rows_of(adds)
    return dict(_sized(some)), _Sum((pc.sum(rows).as_py() or 0, *repeat(None, rows.null_count)))


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


def _sized(files: pa.Table) -> list[tuple[str, Size]]:
    sizes = zip(rows_of(files).to_pylist(), files["size_bytes"].to_pylist(), strict=True)
    found = (Size(rows=rows, size_bytes=size_bytes) for rows, size_bytes in sizes)
    return list(zip(keys(files).to_pylist(), found, strict=True))


def _by_version(actions: Actions) -> Mapping[int, _Commit]:
    commits: dict[int, _Commit] = {}
    for version, one in zip(actions.removes["version"].to_pylist(), _sized(actions.removes), strict=True):
        commits.setdefault(version, _Commit()).removed.append(one)
    for version, one in zip(actions.adds["version"].to_pylist(), _sized(actions.adds), strict=True):
        commits.setdefault(version, _Commit()).added.append(one)
    return commits
